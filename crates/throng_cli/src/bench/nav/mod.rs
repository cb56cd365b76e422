//! `throng bench nav`: all algorithms on the reference workload and on real maps, the cost of building search data and of following edits,
//! and a tick full of path requests.
//!
//! | file | holds |
//! |---|---|
//! | `edits` | the cost of building search data, and of following an edit of one tile |
//! | `one_goal` | many NPCs with one goal: a shared search compared with one search each |
//! | `tick` | a tick in which 10,000 NPCs request paths |
//! | this file | all algorithms on the reference workload and on real maps |

mod edits;
mod one_goal;
mod tick;

use std::path::Path;

use super::CliError;
use super::rows::BenchRow;
use crate::is_interrupted;
use throng::map::{self, TileMap};
use throng::nav::{Algorithm, NavMap, PathQuery, PathSearch, SearchOutcome, parse_scen};
use throng::sim::clock::Stopwatch;
use throng_nav::workload;

/// The reference workload: a town of this size, and queries over this distance.
const TOWN_TILES: u32 = 1_024;
const TILES_APART: u32 = 200;

/// Real maps: file name, name in rows, and target mean µs per query with sign planes, the table and the graph.
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

/// Rounds over all queries; the result is the median of the mean of each round.
const ROUNDS: usize = 3;

/// Measures everything; `quick` takes a tenth of the queries.
pub(super) fn measure(quick: bool, threads: usize) -> Result<Vec<BenchRow>, CliError> {
    let mut rows = reference_workload(if quick { 500 } else { 10_000 })?;
    if let Some(folder) = std::env::var_os("THRONG_MOVINGAI") {
        for (name, short, aims) in MAPS {
            rows.extend(real_map(Path::new(&folder), name, short, aims, quick)?);
            if is_interrupted() {
                return Ok(rows);
            }
        }
    }
    if is_interrupted() {
        return Ok(rows);
    }
    rows.extend(edits::measure(quick)?);
    rows.push(one_goal::measure(if quick { 10 } else { 100 })?);
    rows.push(tick::measure(threads)?);
    Ok(rows)
}

/// The table of algorithms from oldest to newest: time, expanded nodes and heap operations on the same queries.
fn reference_workload(count: usize) -> Result<Vec<BenchRow>, CliError> {
    let map = workload::town(TOWN_TILES)?;
    let queries = workload::queries_at_distance(&map, count, TILES_APART, 1);
    let mut contenders = Vec::new();
    for algorithm in Algorithm::ALL {
        if algorithm == Algorithm::JpsBitPrune {
            let without_planes = Contender::new("..prune, no planes", algorithm, NavMap::default());
            contenders.push(without_planes);
        }
        let nav_map = if algorithm == Algorithm::AStar {
            NavMap::default()
        } else {
            prepared(&map, algorithm)
        };
        contenders.push(Contender::new(algorithm.name(), algorithm, nav_map));
    }
    alternate_rounds(&mut contenders, &map, &queries);
    let Some((reference, others)) = contenders
        .split_first()
        .filter(|(astar, _)| astar.has_run())
    else {
        return Ok(Vec::new());
    };
    let mut rows = Vec::from(rows_of(reference, None, count));
    for contender in others.iter().filter(|contender| contender.has_run()) {
        rows.extend(rows_of(contender, Some(reference), count));
    }
    Ok(rows)
}

/// The cost of an algorithm, compared with the reference.
fn rows_of(found: &Contender, reference: Option<&Contender>, count: usize) -> [BenchRow; 3] {
    let name = found.name;
    let beside = if reference.is_some() {
        ", compared with A*"
    } else {
        ": textbook A*, the reference"
    };
    let us = BenchRow::repeated("nav", name, &found.round_us, "us/query").about(format!(
        "A path to a goal {TILES_APART} tiles away in a town of {TOWN_TILES}² tiles{beside}."
    ));
    let figure =
        |what: &str, value, unit| BenchRow::new("nav", format!("{name} {what}"), value, unit);
    let expanded = figure("expanded", found.expanded, "nodes").about("Nodes expanded per search.");
    let heap =
        figure("heap", found.heap, "heap ops").about("Operations on the open list per search.");
    let Some(reference) = reference else {
        return [us, expanded, heap];
    };
    let wrong = found.count_wrong(reference);
    let compared = format!("the lengths of all {count} paths ({wrong} differ)");
    [
        us.with_repeated_reference("astar", &reference.round_us)
            .with_comparison(compared, wrong == 0),
        expanded.with_reference("astar", reference.expanded),
        heap.with_reference("astar", reference.heap),
    ]
}

/// Every query of a `.scen` file, by the algorithms with search data; path lengths must equal those in the file.
fn real_map(
    folder: &Path,
    name: &str,
    short: &str,
    aims: [Option<f64>; 3],
    quick: bool,
) -> Result<Vec<BenchRow>, CliError> {
    let file = folder.join(format!("{name}.map"));
    let map = map::load(&file)?;
    let scen_file = file.with_extension("map.scen");
    let text = std::fs::read_to_string(&scen_file)
        .map_err(|error| CliError::new(format!("{}: {error}", scen_file.display())))?;
    let scen = parse_scen(&scen_file.display().to_string(), &text)?;
    let stride = if quick { 10 } else { 1 };
    let (queries, lengths): (Vec<PathQuery>, Vec<_>) = scen
        .queries()
        .step_by(stride)
        .map(|query| (PathQuery::new(query.from, query.to), *query))
        .unzip();
    let mut contenders = [
        ("planes", Algorithm::JpsBitPrune),
        ("table", Algorithm::JpsBitPrunePre),
        ("graph", Algorithm::JpsGraph),
    ]
    .map(|(with, algorithm)| Contender::new(with, algorithm, prepared(&map, algorithm)));
    alternate_rounds(&mut contenders, &map, &queries);
    let prepared_contenders = contenders
        .iter()
        .zip(aims)
        .filter(|(found, _)| found.has_run());
    let rows = prepared_contenders.map(|(found, aim)| {
        let agrees = found.outcomes.iter().zip(&lengths).filter(|(outcome, known)| {
            matches!(outcome, SearchOutcome::Found(path) if known.agrees_with(Some(path.length_tiles())))
        });
        let wrong = queries.len() - agrees.count();
        let case = format!("{short} {}", found.name);
        let row = BenchRow::repeated("nav", case, &found.round_us, "us/query")
            .about(format!(
                "A query of {name}.map.scen, with {} prepared; {} queries per round.",
                found.name,
                queries.len()
            ))
            .with_comparison(
                format!("the lengths of the file ({wrong} differ)"),
                wrong == 0,
            );
        aim.map_or(row.clone(), |aim| row.with_target_below(aim, "us"))
    });
    Ok(rows.collect())
}

fn prepared(map: &TileMap, algorithm: Algorithm) -> NavMap {
    let mut nav_map = NavMap::default();
    nav_map.prepare(map, algorithm);
    nav_map
}

/// An algorithm with its search data, its results of the last round, and its mean time per query.
struct Contender {
    name: &'static str,
    algorithm: Algorithm,
    nav_map: NavMap,
    search: PathSearch,
    outcomes: Vec<SearchOutcome>,
    /// The mean time per query of each round.
    round_us: Vec<f64>,
    expanded: f64,
    heap: f64,
}

impl Contender {
    fn new(name: &'static str, algorithm: Algorithm, nav_map: NavMap) -> Self {
        Self {
            name,
            algorithm,
            nav_map,
            search: PathSearch::new(),
            outcomes: Vec::new(),
            round_us: Vec::new(),
            expanded: 0.0,
            heap: 0.0,
        }
    }

    /// Whether it has run a round: after an interruption some have not.
    const fn has_run(&self) -> bool {
        !self.round_us.is_empty()
    }

    fn count_wrong(&self, reference: &Self) -> usize {
        let pairs = self.outcomes.iter().zip(&reference.outcomes);
        pairs.filter(|(a, b)| a != b).count()
    }

    /// Runs all queries once.
    fn run_queries(&mut self, map: &TileMap, queries: &[PathQuery]) {
        self.outcomes.clear();
        let mut waypoints = Vec::new();
        let (mut ns, mut expanded, mut heap) = (0, 0, 0);
        for query in queries {
            let mut stopwatch = Stopwatch::start();
            let outcome =
                self.search
                    .find(map, &self.nav_map, self.algorithm, *query, &mut waypoints);
            ns += stopwatch.lap_ns();
            self.outcomes.push(outcome);
            expanded += u64::from(self.search.expanded());
            heap += u64::from(self.search.heap_operations());
        }
        let mean = |sum: u64| sum as f64 / queries.len().max(1) as f64;
        self.round_us.push(mean(ns) / 1e3);
        self.expanded = mean(expanded);
        self.heap = mean(heap);
    }
}

/// Rounds of all algorithms, alternating, so that other load of the machine affects all of them.
fn alternate_rounds(contenders: &mut [Contender], map: &TileMap, queries: &[PathQuery]) {
    for _ in 0..ROUNDS {
        for contender in contenders.iter_mut() {
            if is_interrupted() {
                return;
            }
            contender.run_queries(map, queries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_workload_runs_every_algorithm_without_wrong_length() {
        let rows = reference_workload(3).unwrap();
        assert_eq!(rows.len(), 3 * (Algorithm::ALL.len() + 1));
        assert!(rows.iter().all(|row| !row.has_failed()), "{rows:?}");
        let compared = rows.iter().filter(|row| row.results_agree == Some(true));
        assert_eq!(compared.count(), Algorithm::ALL.len());
        let spread = rows[0].spread.expect("several rounds");
        assert_eq!(spread.repeats, ROUNDS);
    }
}
