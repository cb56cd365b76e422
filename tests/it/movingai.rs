//! Promise: every algorithm returns the optimal length, on real maps and after real edits. The lengths come with the maps (MovingAI
//! benchmark files). Tests are skipped with a message if the environment variable `THRONG_MOVINGAI` does not name the folder that contains
//! them.

use std::path::{Path, PathBuf};

use throng::map::{self, TileEdit, TileMap};
use throng::nav::{
    Algorithm, NavMap, PathQuery, PathSearch, Scen, ScenCommand, ScenQuery, SearchOutcome,
    parse_scen,
};

/// The folder with the benchmark files.
#[expect(clippy::print_stdout, reason = "reports that a test is skipped")]
fn benchmark() -> Option<PathBuf> {
    let folder = std::env::var_os("THRONG_MOVINGAI").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: THRONG_MOVINGAI does not name the folder of the MovingAI files");
    }
    folder
}

/// The `.scen` files of a folder, sorted by name; fails if there are fewer than `count_min`.
fn scens(folder: &Path, count_min: usize) -> Vec<(PathBuf, Scen)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "scen")
    });
    paths.sort();
    assert!(paths.len() >= count_min, "{folder:?}: {paths:?}");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let scen = parse_scen(&path.display().to_string(), &text).unwrap();
        assert!(scen.queries().count() > 0, "{path:?} has no queries");
        (path, scen)
    };
    paths.into_iter().map(read).collect()
}

/// Calls `visit` with every static map and its queries.
fn for_each_map(mut visit: impl FnMut(&str, &TileMap, &Scen)) {
    let Some(folder) = benchmark() else {
        return;
    };
    for (path, scen) in scens(&folder, 12) {
        let map = map::load(path.with_extension("")).unwrap();
        let name = path.display().to_string();
        let size = scen.size.unwrap();
        assert_eq!((size.x, size.y), (map.width(), map.height()), "{name}");
        visit(&name, &map, &scen);
    }
}

/// An algorithm with its search data.
struct CheckedSearch {
    algorithm: Algorithm,
    nav_map: NavMap,
    search: PathSearch,
}

impl CheckedSearch {
    fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            nav_map: NavMap::default(),
            search: PathSearch::new(),
        }
    }

    fn find(&mut self, map: &TileMap, query: &ScenQuery) -> SearchOutcome {
        let mut waypoints = Vec::new();
        let path_query = PathQuery::new(query.from, query.to);
        let (algorithm, nav_map) = (self.algorithm, &mut self.nav_map);
        // Rebuilds data that an edit invalidated, and keeps data that it updated.
        nav_map.prepare(map, algorithm);
        assert!(nav_map.is_prepared(map, algorithm), "{algorithm}");
        let outcome = self
            .search
            .find(map, nav_map, algorithm, path_query, &mut waypoints);
        if let SearchOutcome::Found(_) = outcome {
            let ends = (waypoints.first(), waypoints.last());
            assert_eq!(ends, (Some(&query.from), Some(&query.to)), "{algorithm}");
        }
        outcome
    }

    /// Fails unless a result equals that of the file.
    fn check(&mut self, name: &str, map: &TileMap, query: &ScenQuery) {
        let outcome = self.find(map, query);
        let algorithm = self.algorithm;
        let length_tiles = match outcome {
            SearchOutcome::Found(path) => Some(path.length_tiles()),
            // The benchmark counts a blocked start or goal as unreachable.
            SearchOutcome::Unreachable | SearchOutcome::Blocked => None,
            _ => panic!("{name}: {algorithm} returns {outcome:?} for {query:?}"),
        };
        assert!(
            query.agrees_with(length_tiles),
            "{name}: {algorithm} returns {outcome:?} for {query:?}"
        );
    }
}

/// Checks every `stride`th query, starting in the middle of a stride, because the files are sorted by length.
fn check_maps(algorithm: Algorithm, stride: usize) {
    check_maps_from(algorithm, stride / 2, stride);
}

/// Checks every `stride`th query, starting with `first`.
fn check_maps_from(algorithm: Algorithm, first: usize, stride: usize) {
    let mut searching = CheckedSearch::new(algorithm);
    for_each_map(|name, map, scen| {
        for query in scen.queries().skip(first).step_by(stride) {
            searching.check(name, map, query);
        }
    });
}

/// Runs the files of the dynamic track with all edits, and checks every `stride`th query.
fn check_dynamic(algorithm: Algorithm, stride: usize) {
    let Some(folder) = benchmark() else {
        return;
    };
    let mut searching = CheckedSearch::new(algorithm);
    for (path, scen) in scens(&folder.join("dynamic"), 2) {
        let name = path.display().to_string();
        let patch_file = scen.patch_file.as_ref().unwrap();
        let patches = map::load_patches(path.with_file_name(patch_file)).unwrap();
        scen.check_patches(&name, &patches).unwrap();
        let size = scen.size.unwrap();
        let mut map = TileMap::new(size.x, size.y, starts_blocked(&name)).unwrap();
        let mut written = vec![false; patches.len()];
        let mut query_count = 0;
        for command in &scen.commands {
            match command {
                ScenCommand::Patch(patch) => {
                    let pattern = &patches[patch.patch as usize];
                    let edit = TileEdit::Write(pattern.clone());
                    let changed = map.edit(patch.rect(pattern), &edit).unwrap();
                    searching.nav_map.apply_edit(&map, changed.as_slice());
                    written[patch.patch as usize] = true;
                }
                ScenCommand::Query(query) => {
                    if query_count % stride == stride / 2 {
                        searching.check(&name, &map, query);
                    }
                    query_count += 1;
                }
            }
        }
        assert!(written.iter().all(|written| *written), "{name}");
    }
}

/// Whether a file starts on a blocked map; the others start on free ground.
fn starts_blocked(name: &str) -> bool {
    name.contains("switch_sc1")
}

// Every query is checked, in two tests that can run in parallel.
#[test]
fn prepared_maps_give_every_known_length() {
    check_maps_from(Algorithm::JpsGraph, 0, 2);
}

#[test]
fn prepared_maps_give_every_other_known_length() {
    check_maps_from(Algorithm::JpsGraph, 1, 2);
}

#[test]
fn sign_planes_alone_give_known_lengths() {
    check_maps(Algorithm::JpsBitPrune, 10);
}

#[test]
fn known_lengths_are_found_between_edits() {
    for algorithm in [
        Algorithm::JpsGraph,
        Algorithm::JpsBitPrune,
        Algorithm::JpsBitPrunePre,
    ] {
        check_dynamic(algorithm, 1);
    }
}

#[test]
fn astar_finds_known_lengths() {
    check_maps(Algorithm::AStar, 200);
    check_dynamic(Algorithm::AStar, 20);
}

#[test]
fn all_algorithms_agree_to_the_last_step() {
    let mut searching = Algorithm::ALL.map(CheckedSearch::new);
    for_each_map(|name, map, scen| {
        for query in scen.queries().step_by(200) {
            let [first, others @ ..] = &mut searching;
            let expected = first.find(map, query);
            for other in others {
                let found = other.find(map, query);
                assert_eq!(found, expected, "{name}: {}: {query:?}", other.algorithm);
            }
        }
    });
}
