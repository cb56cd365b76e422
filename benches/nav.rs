//! Path searches: all algorithms on the same queries, with equal path lengths; building their data, and following edits. Real maps are read
//! from the folder that `THRONG_MOVINGAI` names.

use std::path::Path;

use criterion::Criterion;
use throng::map::{
    CaveRecipe, MapRecipe, RoomsRecipe, TileEdit, TileMap, TileRect, TownRecipe, generate, load,
};
use throng::nav::{Algorithm, NavMap, PathQuery, PathSearch, SearchOutcome, parse_scen};
use throng_nav::workload;

/// Queries per iteration.
const QUERIES: usize = 32;

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
    prepare_and_edit(criterion);
    let Some(folder) = std::env::var_os("THRONG_MOVINGAI") else {
        return;
    };
    for name in ["Berlin_0_1024", "orz900d"] {
        let file = Path::new(&folder).join(format!("{name}.map"));
        let scen_file = file.with_extension("map.scen");
        let (Ok(map), Ok(text)) = (load(&file), std::fs::read_to_string(&scen_file)) else {
            continue;
        };
        let scen = parse_scen(name, &text).expect("a file of the benchmark is well-formed");
        let every = (scen.queries().count() / QUERIES).max(1);
        let picked: Vec<_> = scen.queries().step_by(every).take(QUERIES).collect();
        let queries: Vec<PathQuery> = picked
            .iter()
            .map(|query| PathQuery::new(query.from, query.to))
            .collect();
        let agrees = |nth: usize, length: f64| picked[nth].agrees_with(Some(length));
        side_by_side(criterion, name, &map, &queries, Some(&agrees));
    }
}

/// Builds the data of the algorithms for a town of 1,024 × 1,024 tiles, and follows the edit of one tile and its reversal.
fn prepare_and_edit(criterion: &mut Criterion) {
    let map = workload::town(1_024).expect("the recipe makes a map");
    let tile = TileRect::new(500, 500, 1, 1);
    let prepared = |algorithm| {
        let mut nav_map = NavMap::default();
        nav_map.prepare(&map, algorithm);
        nav_map
    };
    for (name, algorithm) in [
        ("planes", Algorithm::JpsBitPrune),
        ("table", Algorithm::JpsBitPrunePre),
        ("graph", Algorithm::JpsGraph),
    ] {
        criterion.bench_function(&format!("nav::prepare/{name}/town/1024"), |bencher| {
            bencher.iter(|| prepared(algorithm));
        });
        // Only sign planes follow an edit: a table is dropped, and a graph is rebuilt.
        if algorithm != Algorithm::JpsBitPrune {
            continue;
        }
        let (mut edited, mut nav_map) = (map.clone(), prepared(algorithm));
        criterion.bench_function(&format!("nav::follow_edit/{name}/town/1024"), |bencher| {
            bencher.iter(|| {
                for _ in 0..2 {
                    let changed = edited.edit(tile, &TileEdit::Toggle).expect("on the map");
                    nav_map.apply_edit(&edited, changed.as_slice());
                }
            });
        });
        assert!(edited == map && nav_map.is_ready(&edited, algorithm));
    }
}

fn side_by_side(
    criterion: &mut Criterion,
    name: &str,
    map: &TileMap,
    queries: &[PathQuery],
    agrees: Option<&dyn Fn(usize, f64) -> bool>,
) {
    let mut nav_map = NavMap::default();
    for algorithm in Algorithm::ALL {
        nav_map.prepare(map, algorithm);
    }
    let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
    let mut all = |algorithm: Algorithm| -> Vec<SearchOutcome> {
        queries
            .iter()
            .map(|&query| search.find(map, &nav_map, algorithm, query, &mut waypoints))
            .collect()
    };
    let expected = all(Algorithm::AStar);
    for (nth, outcome) in expected.iter().enumerate() {
        let SearchOutcome::Found(found) = outcome else {
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
