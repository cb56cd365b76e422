//! `throng bench nav`: all algorithms on the reference workload and on real maps, what building and following edits costs,
//! and a tick full of requests.
//!
//! | file | holds |
//! |---|---|
//! | `edits` | what building costs, and following an edit of one tile |
//! | `one_goal` | many NPCs with one goal: a search that they share beside one each |
//! | `tick` | a tick in which 10,000 NPCs ask for paths |
//! | here | all algorithms on the reference workload and on real maps |

mod edits;
mod one_goal;
mod tick;

use std::path::Path;

use super::Failure;
use super::rows::BenchRow;
use crate::cli::is_interrupted;
use crate::map::{self, TileMap};
use crate::nav::{Algorithm, NavMap, Outcome, Query, Search, parse_scen, workload};
use crate::sim::clock::Stopwatch;

/// The reference workload: a town of this side, queries this far apart.
const TOWN_TILES: u32 = 1_024;
const TILES_APART: u32 = 200;

/// Real maps, how rows call them, and aims in mean µs of all queries: with sign planes, the table, the graph.
const MAPS: [(&str, &str, [Option<f64>; 3]); 7] = [
    ("orz900d", "orz900d", [Some(65.0), Some(60.0), Some(40.0)]),
    (
        "TheFrozenSea",
        "FrozenSea",
        [Some(110.0), Some(110.0), Some(90.0)],
    ),
    ("16room_000", "16room", [Some(48.0), Some(42.0), Some(28.0)]),
    (
        "Berlin_0_1024",
        "Berlin",
        [Some(12.0), Some(10.0), Some(8.0)],
    ),
    ("maze512-16-0", "maze512-16", [Some(20.0), None, Some(8.0)]),
    (
        "random512-25-0",
        "random512-25",
        [Some(1_000.0), None, Some(1_000.0)],
    ),
    (
        "maze512-1-0",
        "maze512-1",
        [Some(1_000.0), None, Some(760.0)],
    ),
];

/// How often all queries are asked; each query's least time counts.
const ROUNDS: usize = 3;

/// Every row; `quick` takes a tenth of the queries.
pub(super) fn measure(quick: bool, threads: usize) -> Result<Vec<BenchRow>, Failure> {
    let mut rows = reference_workload(if quick { 500 } else { 10_000 })?;
    if let Some(folder) = std::env::var_os("THRONG_MOVINGAI") {
        for (name, short, aims) in MAPS {
            rows.extend(real_map(Path::new(&folder), name, short, aims, quick)?);
            if is_interrupted() {
                return Ok(rows);
            }
        }
    }
    rows.extend(edits::measure(quick)?);
    rows.push(one_goal::measure(if quick { 10 } else { 100 })?);
    rows.push(tick::measure(threads)?);
    Ok(rows)
}

/// The old-to-new table: time, expansions and heap operations of every algorithm on the same queries.
fn reference_workload(count: usize) -> Result<Vec<BenchRow>, Failure> {
    let map = workload::town(TOWN_TILES)?;
    let queries = workload::queries_apart(&map, count, TILES_APART, 1);
    let reference = ask(&map, &NavMap::default(), Algorithm::AStar, &queries, 1);
    let row = |name: &str, found: &MeanAnswers| {
        let wrong = found.wrong(&reference);
        [
            BenchRow::new("nav", name, found.mean_us, "us/query")
                .beside("astar", reference.mean_us)
                .aiming(
                    format!("the same {count} lengths ({wrong} differ)"),
                    wrong == 0,
                ),
            BenchRow::new("nav", "", found.expanded, "expanded")
                .beside("astar", reference.expanded),
            BenchRow::new("nav", "", found.heap, "heap ops").beside("astar", reference.heap),
        ]
    };
    let mut rows = Vec::new();
    rows.extend(row(Algorithm::AStar.name(), &reference));
    for algorithm in Algorithm::ALL.into_iter().skip(1) {
        if is_interrupted() {
            break;
        }
        if algorithm == Algorithm::JpsBitPrune {
            let found = ask(&map, &NavMap::default(), algorithm, &queries, ROUNDS);
            rows.extend(row("..prune, no planes", &found));
        }
        let found = ask(
            &map,
            &prepared(&map, algorithm),
            algorithm,
            &queries,
            ROUNDS,
        );
        rows.extend(row(algorithm.name(), &found));
    }
    Ok(rows)
}

/// Every query of a `.scen` file, by the algorithms that need something prepared, with the lengths of the file.
fn real_map(
    folder: &Path,
    name: &str,
    short: &str,
    aims: [Option<f64>; 3],
    quick: bool,
) -> Result<Vec<BenchRow>, Failure> {
    let file = folder.join(format!("{name}.map"));
    let map = map::load(&file)?;
    let scen_file = file.with_extension("map.scen");
    let text = std::fs::read_to_string(&scen_file)
        .map_err(|error| Failure::new(format!("{}: {error}", scen_file.display())))?;
    let scen = parse_scen(&scen_file.display().to_string(), &text)?;
    let stride = if quick { 10 } else { 1 };
    let (queries, lengths): (Vec<Query>, Vec<_>) = scen
        .queries()
        .step_by(stride)
        .map(|query| (Query::new(query.from, query.to), *query))
        .unzip();
    let algorithms = [
        ("planes", Algorithm::JpsBitPrune),
        ("table", Algorithm::JpsBitPrunePre),
        ("graph", Algorithm::JpsGraph),
    ];
    let mut rows = Vec::new();
    for ((with, algorithm), aim) in algorithms.into_iter().zip(aims) {
        let found = ask(
            &map,
            &prepared(&map, algorithm),
            algorithm,
            &queries,
            ROUNDS,
        );
        let agrees = found.outcomes.iter().zip(&lengths).filter(|(outcome, known)| {
            matches!(outcome, Outcome::Found(path) if known.agrees_with(Some(path.length_tiles())))
        });
        let wrong = queries.len() - agrees.count();
        let row = BenchRow::new("nav", format!("{short} {with}"), found.mean_us, "us/query");
        rows.push(match aim {
            Some(aim) => row.aiming(
                format!("<= {aim} us, all lengths of the file ({wrong} differ)"),
                found.mean_us <= aim && wrong == 0,
            ),
            None => row.aiming(
                format!("all lengths of the file ({wrong} differ)"),
                wrong == 0,
            ),
        });
    }
    Ok(rows)
}

fn prepared(map: &TileMap, algorithm: Algorithm) -> NavMap {
    let mut nav_map = NavMap::default();
    nav_map.prepare(map, algorithm);
    nav_map
}

/// What an algorithm answers, with means a query.
struct MeanAnswers {
    outcomes: Vec<Outcome>,
    mean_us: f64,
    expanded: f64,
    heap: f64,
}

impl MeanAnswers {
    fn wrong(&self, reference: &MeanAnswers) -> usize {
        let pairs = self.outcomes.iter().zip(&reference.outcomes);
        pairs.filter(|(a, b)| a != b).count()
    }
}

/// Asks all queries so many times; each query's least time counts.
fn ask(
    map: &TileMap,
    nav_map: &NavMap,
    algorithm: Algorithm,
    queries: &[Query],
    rounds: usize,
) -> MeanAnswers {
    let (mut search, mut waypoints) = (Search::new(), Vec::new());
    let mut least_ns = vec![u64::MAX; queries.len()];
    let mut outcomes = Vec::new();
    let (mut expanded, mut heap) = (0, 0);
    for _ in 0..rounds {
        outcomes.clear();
        (expanded, heap) = (0, 0);
        for (query, least) in queries.iter().zip(&mut least_ns) {
            let mut stopwatch = Stopwatch::start();
            outcomes.push(search.find(map, nav_map, algorithm, *query, &mut waypoints));
            *least = stopwatch.lap_ns().min(*least);
            expanded += u64::from(search.expanded());
            heap += u64::from(search.heap_operations());
        }
    }
    let mean = |sum: u64| sum as f64 / queries.len().max(1) as f64;
    MeanAnswers {
        outcomes,
        mean_us: mean(least_ns.iter().sum()) / 1e3,
        expanded: mean(expanded),
        heap: mean(heap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_workload_has_every_algorithm_and_no_wrong_length() {
        let rows = reference_workload(3).unwrap();
        assert_eq!(rows.len(), 3 * (Algorithm::ALL.len() + 1));
        assert!(rows.iter().all(|row| row.meets != Some(false)), "{rows:?}");
    }
}
