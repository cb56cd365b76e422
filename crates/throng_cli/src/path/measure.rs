//! Runs all queries and edits of a plan with one algorithm, and times each query.
//!
//! Each thread has its own scratch, kept from query to query. A query's time is the minimum over its repetitions, and includes only the
//! search. The data of an algorithm is prepared before the first query, and again after edits that invalidate it, so that every result is
//! by the named algorithm.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use glam::IVec2;
use indicatif::ProgressBar;

use crate::{CliError, is_interrupted};
use throng::map::{TileEdit, TileMap, TileRect};
use throng::memory::MemoryUse;
use throng::nav::{Algorithm, Diagonal, NavMap, PathQuery, PathSearch, ScenQuery, SearchOutcome};
use throng::sim::Workers;

/// The steps of a measurement on a map, in order.
pub(super) struct QueryPlan {
    /// The map before the first step.
    pub map: Arc<TileMap>,
    pub diagonal: Diagonal,
    /// The patches that edits refer to by number.
    pub patches: Vec<TileEdit>,
    pub steps: Vec<PlanStep>,
    pub tasks: Vec<Task>,
}

pub(super) enum PlanStep {
    /// Writes a patch over a rectangle.
    Edit { rect: TileRect, patch: usize },
    /// Runs some of the tasks.
    Query(Range<usize>),
}

/// A query, and its known result.
pub(super) struct Task {
    /// Its index among all queries of the file, from 0.
    pub index: usize,
    pub query: PathQuery,
    pub expected: Option<ScenQuery>,
}

/// The results of one algorithm for a plan.
pub(super) struct MeasuredAnswers {
    pub algorithm: Algorithm,
    /// By task; `None` for tasks skipped by an interruption.
    pub answers: Vec<Option<TimedAnswer>>,
    /// The time of all preparations together.
    pub prepare_ms: f64,
    pub scratch_bytes: usize,
    /// The map after the last step.
    pub map: Arc<TileMap>,
    /// The search data for that map.
    pub nav_map: NavMap,
}

#[derive(Clone, Copy)]
pub(super) struct TimedAnswer {
    pub outcome: SearchOutcome,
    pub us: f64,
    pub expanded: u32,
    pub generated: u32,
}

impl MeasuredAnswers {
    pub(super) fn prepared_bytes(&self) -> usize {
        self.nav_map.prepared_bytes(self.algorithm)
    }

    /// Repeats a query with a new scratch.
    pub(super) fn run_again(&self, query: PathQuery) -> ThreadScratch {
        let mut scratch = ThreadScratch::default();
        let outcome = scratch.find(&self.map, &self.nav_map, self.algorithm, query);
        scratch.outcome = Some(outcome);
        scratch
    }
}

impl TimedAnswer {
    /// The length found, or `None` if there is no path; the outer `None` means that the search stopped at its limit, which proves neither.
    pub(super) fn length_tiles(&self) -> Option<Option<f64>> {
        match self.outcome {
            SearchOutcome::Found(path) => Some(Some(path.length_tiles())),
            SearchOutcome::Unreachable | SearchOutcome::Blocked | SearchOutcome::OutOfBounds => {
                Some(None)
            }
            SearchOutcome::Capped => None,
        }
    }
}

/// A thread's scratch, and the turning points of its last path.
#[derive(Default)]
pub(super) struct ThreadScratch {
    pub search: PathSearch,
    pub waypoints: Vec<IVec2>,
    /// The outcome, if a query was [repeated](MeasuredAnswers::run_again).
    pub outcome: Option<SearchOutcome>,
}

impl ThreadScratch {
    fn find(
        &mut self,
        map: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: PathQuery,
    ) -> SearchOutcome {
        self.search
            .find(map, nav_map, algorithm, query, &mut self.waypoints)
    }

    fn run_query(
        &mut self,
        map: &TileMap,
        nav_map: &NavMap,
        algorithm: Algorithm,
        query: PathQuery,
        repeat: u32,
    ) -> TimedAnswer {
        let mut least = f64::INFINITY;
        let mut outcome = SearchOutcome::Capped;
        for _ in 0..repeat.max(1) {
            let start = Instant::now();
            outcome = self.find(map, nav_map, algorithm, query);
            least = least.min(start.elapsed().as_secs_f64() * 1e6);
        }
        TimedAnswer {
            outcome,
            us: least,
            expanded: self.search.expanded(),
            generated: self.search.generated(),
        }
    }
}

/// Runs a plan with one algorithm. Ends early on an interruption.
pub(super) fn measure(
    plan: &QueryPlan,
    algorithm: Algorithm,
    repeat: u32,
    workers: Workers,
    bar: &ProgressBar,
) -> Result<MeasuredAnswers, CliError> {
    let mut map = plan.map.clone();
    let mut answers = vec![None; plan.tasks.len()];
    let mut scratch: Vec<ThreadScratch> = Vec::new();
    let mut nav_map = NavMap::new(plan.diagonal);
    let mut prepare_ms = 0.0;
    for step in &plan.steps {
        match step {
            PlanStep::Edit { rect, patch } => {
                let map = Arc::make_mut(&mut map);
                if let Some(changed) = map.edit(*rect, &plan.patches[*patch])? {
                    nav_map.apply_edit(map, &[changed]);
                }
            }
            PlanStep::Query(range) => {
                let start = Instant::now();
                nav_map.prepare(&map, algorithm);
                prepare_ms += start.elapsed().as_secs_f64() * 1e3;
                let nav_map = &nav_map;
                let answers = &mut answers[range.clone()];
                workers.for_each_chunk(answers, 1, &mut scratch, |scratch, first, chunk| {
                    for (task, answer) in plan.tasks[range.start + first..].iter().zip(chunk) {
                        if is_interrupted() {
                            return;
                        }
                        *answer =
                            Some(scratch.run_query(&map, nav_map, algorithm, task.query, repeat));
                        bar.inc(1);
                    }
                });
            }
        }
        if is_interrupted() {
            break;
        }
    }
    Ok(MeasuredAnswers {
        algorithm,
        answers,
        prepare_ms,
        scratch_bytes: scratch
            .iter()
            .map(|scratch| scratch.search.heap_bytes())
            .sum(),
        map,
        nav_map,
    })
}
