//! Many NPCs with one goal: a shared search compared with one search each.

use crate::CliError;
use crate::bench::rows::BenchRow;
use throng::nav::{Algorithm, MultiStartSearch, PathQuery, PathSearch, SearchOutcome};
use throng::sim::clock::Stopwatch;
use throng_nav::workload;

use super::{ROUNDS, TOWN_TILES, prepared};

const STARTS: usize = 64;
const TILES_AWAY_MAX: u32 = 80;

pub(super) fn measure(goals: usize) -> Result<BenchRow, CliError> {
    let map = workload::town(TOWN_TILES)?;
    let algorithm = Algorithm::default();
    let nav_map = prepared(&map, algorithm);
    let (mut single, mut shared) = (PathSearch::new(), MultiStartSearch::new());
    let (mut answers, mut waypoints) = (Vec::new(), Vec::new());
    // Sums over all goals, per round.
    let (mut single_us, mut shared_us, mut wrong) = ([0.0; ROUNDS], [0.0; ROUNDS], 0);
    for (seed, around) in (0..).zip(workload::queries(&map, goals, 1)) {
        let goal = around.to;
        let starts = workload::starts_within(&map, goal, TILES_AWAY_MAX, STARTS, seed);
        let mut expected: Vec<SearchOutcome> = Vec::new();
        for round in 0..ROUNDS {
            expected.clear();
            let mut stopwatch = Stopwatch::start();
            for &start in &starts {
                let query = PathQuery::new(start, goal);
                expected.push(single.find(&map, &nav_map, algorithm, query, &mut waypoints));
            }
            single_us[round] += stopwatch.lap_ns() as f64 / 1e3;
            shared.find(&map, &nav_map, goal, &starts, None, &mut answers);
            (0..starts.len()).for_each(|nth| shared.write_path(nth, &mut waypoints));
            shared_us[round] += stopwatch.lap_ns() as f64 / 1e3;
        }
        wrong += expected
            .iter()
            .zip(&answers)
            .filter(|(a, b)| a != b)
            .count();
    }
    let name = format!("{STARTS} to a goal, shared");
    let a_goal = |us: [f64; ROUNDS]| us.map(|us| us / goals.max(1) as f64);
    Ok(BenchRow::repeated("nav", name, &a_goal(shared_us), "us/goal")
        .with_repeated_reference("one each", &a_goal(single_us))
        .about(format!(
            "{STARTS} NPCs within {TILES_AWAY_MAX} tiles of one goal: one shared search, compared with one search each."
        ))
        .with_comparison(format!("all lengths ({wrong} differ)"), wrong == 0)
        .with_target_ratio(1.0))
}
