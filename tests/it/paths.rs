//! Promise: every algorithm returns the optimal length, on real maps too. The lengths come with the maps
//! (MovingAI benchmark files); without the folder that holds them there is nothing to compare with.

use std::path::PathBuf;

use throng::map::{self, TileMap};
use throng::nav::{Algorithm, Outcome, Query, ScenQuery, Search, parse_scen};

/// Calls `visit` with every real map that has a `.scen` file, in the order of names.
fn for_each_map(mut visit: impl FnMut(&str, &TileMap, &[ScenQuery])) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/movingai");
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut scens: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    scens.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "scen")
    });
    scens.sort();
    for scen in scens {
        let name = scen.display().to_string();
        let text = std::fs::read_to_string(&scen).expect("a readable file");
        let queries = parse_scen(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        let map = map::load(scen.with_extension("")).unwrap_or_else(|error| panic!("{error}"));
        assert!(!queries.is_empty(), "{name} has no queries");
        for query in &queries {
            assert_eq!(
                (query.width, query.height),
                (map.width(), map.height()),
                "{name}"
            );
        }
        visit(&name, &map, &queries);
    }
}

/// Checks every `stride`th query, from the middle of a stride on: the files are sorted by length.
fn check_lengths(algorithm: Algorithm, stride: usize) {
    let mut search = Search::new();
    let mut waypoints = Vec::new();
    for_each_map(|name, map, queries| {
        for query in queries.iter().skip(stride / 2).step_by(stride) {
            let outcome = search.find(
                map,
                algorithm,
                Query::new(query.from, query.to),
                &mut waypoints,
            );
            let Outcome::Found(path) = outcome else {
                panic!("{name}: {algorithm} answers {outcome:?} to {query:?}");
            };
            let length_tiles = path.length_tiles();
            assert!(
                query.agrees_with(length_tiles),
                "{name}: {algorithm} finds {length_tiles} for {query:?}"
            );
            assert_eq!(
                (waypoints.first(), waypoints.last()),
                (Some(&query.from), Some(&query.to)),
                "{name}"
            );
        }
    });
}

#[test]
fn a_star_finds_the_known_lengths_on_real_maps() {
    check_lengths(Algorithm::AStar, 200);
}

#[test]
fn jps_bit_finds_the_known_lengths_on_real_maps() {
    check_lengths(Algorithm::JpsBit, 20);
}

#[test]
fn jps_bit_prune_finds_the_known_lengths_on_real_maps() {
    check_lengths(Algorithm::JpsBitPrune, 20);
}

#[test]
fn algorithms_agree_to_the_last_step_on_real_maps() {
    let mut search = Search::new();
    let mut waypoints = Vec::new();
    for_each_map(|name, map, queries| {
        for query in queries.iter().step_by(60) {
            let query = Query::new(query.from, query.to);
            let pruned = search.find(map, Algorithm::JpsBitPrune, query, &mut waypoints);
            let unpruned = search.find(map, Algorithm::JpsBit, query, &mut waypoints);
            assert_eq!(pruned, unpruned, "{name}: {query:?}");
        }
    });
}
