//! Many NPCs with one goal: a search that they share beside one each.

use crate::cli::Failure;
use crate::cli::bench::rows::BenchRow;
use crate::nav::{Algorithm, Outcome, Query, Search, SharedSearch, workload};
use crate::sim::clock::Stopwatch;

use super::{ROUNDS, TOWN_TILES, prepared};

const STARTS: usize = 64;
const TILES_AWAY_MAX: u32 = 80;

pub(super) fn measure(goals: usize) -> Result<BenchRow, Failure> {
    let map = workload::town(TOWN_TILES)?;
    let algorithm = Algorithm::default();
    let nav_map = prepared(&map, algorithm);
    let (mut single, mut shared) = (Search::new(), SharedSearch::new());
    let (mut answers, mut waypoints) = (Vec::new(), Vec::new());
    let (mut single_us, mut shared_us, mut wrong) = (0.0, 0.0, 0);
    for (seed, around) in (0..).zip(workload::queries(&map, goals, 1)) {
        let goal = around.to;
        let starts = workload::starts_within(&map, goal, TILES_AWAY_MAX, STARTS, seed);
        let mut expected: Vec<Outcome> = Vec::new();
        let (mut least_single, mut least_shared) = (u64::MAX, u64::MAX);
        for _ in 0..ROUNDS {
            expected.clear();
            let mut stopwatch = Stopwatch::start();
            for &start in &starts {
                let query = Query::new(start, goal);
                expected.push(single.find(&map, &nav_map, algorithm, query, &mut waypoints));
            }
            least_single = least_single.min(stopwatch.lap_ns());
            shared.find(&map, &nav_map, goal, &starts, None, &mut answers);
            (0..starts.len()).for_each(|nth| shared.write_path(nth, &mut waypoints));
            least_shared = least_shared.min(stopwatch.lap_ns());
        }
        wrong += expected
            .iter()
            .zip(&answers)
            .filter(|(a, b)| a != b)
            .count();
        single_us += least_single as f64 / 1e3;
        shared_us += least_shared as f64 / 1e3;
    }
    let name = format!("{STARTS} to a goal, shared");
    let mean = |us: f64| us / goals.max(1) as f64;
    Ok(BenchRow::new("nav", name, mean(shared_us), "us/goal")
        .beside("one each", mean(single_us))
        .aiming(
            format!("faster, with the same lengths ({wrong} differ)"),
            wrong == 0 && shared_us <= single_us,
        ))
}
