//! Searches: all algorithms side by side on the same queries, with the same lengths.

use std::path::Path;

use criterion::Criterion;
use throng::map::{CaveRecipe, MapRecipe, RoomsRecipe, TileMap, TownRecipe, generate, load};
use throng::nav::{Algorithm, NavMap, Outcome, Query, Search, parse_scen, workload};

/// Queries of one iteration.
const QUERIES: usize = 32;

/// Where the maps of the Moving AI Lab lie, if they were put there.
const MOVING_AI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/movingai");

pub fn bench(criterion: &mut Criterion) {
    let (width_tiles, height_tiles) = (512, 512);
    let recipes = [
        (
            "town/512",
            MapRecipe::Town(TownRecipe {
                width_tiles,
                height_tiles,
                ..TownRecipe::default()
            }),
        ),
        (
            "rooms/512",
            MapRecipe::Rooms(RoomsRecipe {
                width_tiles,
                height_tiles,
                ..RoomsRecipe::default()
            }),
        ),
        (
            "cave/512",
            MapRecipe::Cave(CaveRecipe {
                width_tiles,
                height_tiles,
                ..CaveRecipe::default()
            }),
        ),
    ];
    for (name, recipe) in recipes {
        let map = generate(&recipe, 1).expect("the recipe makes a map");
        let queries = workload::queries(&map, QUERIES, 1);
        side_by_side(criterion, name, &map, &queries, None);
    }
    for name in ["Berlin_0_1024", "orz900d"] {
        let file = Path::new(MOVING_AI).join(format!("{name}.map"));
        let scen_file = file.with_extension("map.scen");
        let (Ok(map), Ok(text)) = (load(&file), std::fs::read_to_string(&scen_file)) else {
            continue;
        };
        let scen = parse_scen(name, &text).expect("a file of the benchmark is well-formed");
        let every = (scen.queries().count() / QUERIES).max(1);
        let picked: Vec<_> = scen.queries().step_by(every).take(QUERIES).collect();
        let queries: Vec<Query> = picked
            .iter()
            .map(|query| Query::new(query.from, query.to))
            .collect();
        let agrees = |nth: usize, length: f64| picked[nth].agrees_with(Some(length));
        side_by_side(criterion, name, &map, &queries, Some(&agrees));
    }
}

fn side_by_side(
    criterion: &mut Criterion,
    name: &str,
    map: &TileMap,
    queries: &[Query],
    agrees: Option<&dyn Fn(usize, f64) -> bool>,
) {
    let mut nav_map = NavMap::default();
    for algorithm in Algorithm::ALL {
        nav_map.prepare(map, algorithm);
    }
    let (mut search, mut waypoints) = (Search::new(), Vec::new());
    let mut all = |algorithm: Algorithm| -> Vec<Outcome> {
        queries
            .iter()
            .map(|&query| search.find(map, &nav_map, algorithm, query, &mut waypoints))
            .collect()
    };
    let expected = all(Algorithm::AStar);
    for (nth, outcome) in expected.iter().enumerate() {
        let Outcome::Found(found) = outcome else {
            panic!("{:?}: {outcome:?}", queries[nth])
        };
        assert!(
            agrees.is_none_or(|agrees| agrees(nth, found.length_tiles())),
            "{:?}",
            queries[nth]
        );
    }
    for algorithm in Algorithm::ALL {
        criterion.bench_function(&format!("nav::{}/{name}", algorithm.name()), |bencher| {
            bencher.iter(|| assert_eq!(all(algorithm), expected));
        });
    }
}
