//! Promise: every algorithm returns the optimal length, on real maps and after real edits. The lengths come with the
//! maps (MovingAI benchmark files); the tests say that they were skipped when the environment variable
//! `THRONG_MOVINGAI` does not name the folder that holds them.

use std::path::{Path, PathBuf};

use throng::map::{self, TileEdit, TileMap, TilePattern, TileRect};
use throng::nav::{Algorithm, Outcome, Query, Scen, ScenCommand, ScenQuery, Search, parse_scen};

/// The folder of the benchmark.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn benchmark() -> Option<PathBuf> {
    let folder = std::env::var_os("THRONG_MOVINGAI").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: THRONG_MOVINGAI does not name the folder of the MovingAI files");
    }
    folder
}

/// The `.scen` files of a folder, in the order of names; at least `count_min` of them.
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

/// Calls `visit` with every map that does not change and its queries.
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

/// What a search finds for the query of a file.
fn find(search: &mut Search, map: &TileMap, algorithm: Algorithm, query: &ScenQuery) -> Outcome {
    let mut waypoints = Vec::new();
    let outcome = search.find(
        map,
        algorithm,
        Query::new(query.from, query.to),
        &mut waypoints,
    );
    if let Outcome::Found(_) = outcome {
        let ends = (waypoints.first(), waypoints.last());
        assert_eq!(ends, (Some(&query.from), Some(&query.to)), "{algorithm}");
    }
    outcome
}

/// Fails unless an answer is the one of the file.
fn check(name: &str, search: &mut Search, map: &TileMap, algorithm: Algorithm, query: &ScenQuery) {
    let outcome = find(search, map, algorithm, query);
    let length_tiles = match outcome {
        Outcome::Found(path) => Some(path.length_tiles()),
        // The competition counts a blocked start or goal as one that cannot be reached.
        Outcome::Unreachable | Outcome::Blocked => None,
        _ => panic!("{name}: {algorithm} answers {outcome:?} to {query:?}"),
    };
    assert!(
        query.agrees_with(length_tiles),
        "{name}: {algorithm} answers {outcome:?} to {query:?}"
    );
}

/// Checks every `stride`th query, from the middle of a stride on: the files are sorted by length.
fn check_maps(algorithm: Algorithm, stride: usize) {
    let mut search = Search::new();
    for_each_map(|name, map, scen| {
        for query in scen.queries().skip(stride / 2).step_by(stride) {
            check(name, &mut search, map, algorithm, query);
        }
    });
}

/// Plays the samples of the dynamic track, all edits included, and checks every `stride`th query.
fn check_dynamic(algorithm: Algorithm, stride: usize) {
    let Some(folder) = benchmark() else {
        return;
    };
    let mut search = Search::new();
    for (path, scen) in scens(&folder.join("dynamic"), 2) {
        let name = path.display().to_string();
        let patch_file = scen.patch_file.as_ref().unwrap();
        let patches = map::load_patches(path.with_file_name(patch_file)).unwrap();
        let size = scen.size.unwrap();
        let mut map = TileMap::new(size.x, size.y, starts_blocked(&name)).unwrap();
        let mut written = vec![false; patches.len()];
        let mut query_count = 0;
        for command in &scen.commands {
            match command {
                ScenCommand::Patch(patch) => {
                    let pattern = &patches[patch.patch as usize];
                    write(&mut map, pattern, patch.at.x, patch.at.y);
                    written[patch.patch as usize] = true;
                }
                ScenCommand::Query(query) => {
                    if query_count % stride == stride / 2 {
                        check(&name, &mut search, &map, algorithm, query);
                    }
                    query_count += 1;
                }
            }
        }
        assert!(written.iter().all(|written| *written), "{name}");
    }
}

/// Whether a sample starts from a map all blocked. The other starts on free ground.
fn starts_blocked(name: &str) -> bool {
    name.contains("switch_sc1")
}

fn write(map: &mut TileMap, pattern: &TilePattern, x: u32, y: u32) {
    let rect = TileRect::new(x, y, pattern.width(), pattern.height());
    map.edit(rect, &TileEdit::Write(pattern.clone())).unwrap();
}

#[test]
fn the_default_finds_every_known_length() {
    check_maps(Algorithm::default(), 1);
}

#[test]
fn the_default_finds_every_known_length_between_edits() {
    check_dynamic(Algorithm::default(), 1);
}

#[test]
fn a_star_finds_known_lengths() {
    check_maps(Algorithm::AStar, 200);
    check_dynamic(Algorithm::AStar, 20);
}

#[test]
fn all_algorithms_agree_to_the_last_step_with_the_default() {
    let mut search = Search::new();
    for_each_map(|name, map, scen| {
        for query in scen.queries().step_by(40) {
            let expected = find(&mut search, map, Algorithm::default(), query);
            let others = Algorithm::ALL
                .into_iter()
                .filter(|algorithm| ![Algorithm::default(), Algorithm::AStar].contains(algorithm));
            for algorithm in others {
                let found = find(&mut search, map, algorithm, query);
                assert_eq!(found, expected, "{name}: {algorithm}: {query:?}");
            }
        }
    });
}
