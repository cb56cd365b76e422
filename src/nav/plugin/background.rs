//! Work outside the ticks.

use std::fmt;

use bevy_tasks::Task;

use super::stats::MapBuildStats;
use crate::memory::with_thread_tag;
use crate::sim::clock::Stopwatch;
use crate::sim::{SimSystems, begin_task, wait_for};

/// A result that is being computed.
pub(super) enum Background<T> {
    Task(Task<T>),
    /// Without threads it is computed when it is due.
    Deferred(Box<dyn FnOnce() -> T + Send + Sync>),
    Done(Box<T>),
}

impl<T: Send + 'static> Background<T> {
    pub(super) fn start(make: impl FnOnce() -> T + Send + Sync + 'static) -> Self {
        let tag = SimSystems::Navigate.allocation_tag();
        match begin_task(tag, make) {
            Ok(task) => Self::Task(task),
            Err(make) => Self::Deferred(Box::new(move || with_thread_tag(tag, make))),
        }
    }

    /// The result; the work itself if it is not finished and `wait` is false.
    pub(super) fn finish(self, wait: bool) -> Result<T, Self> {
        match self {
            Self::Task(task) if wait || task.is_finished() => Ok(wait_for(task)),
            Self::Task(_) => Err(self),
            Self::Deferred(make) => Ok(make()),
            Self::Done(made) => Ok(*made),
        }
    }

    /// The same between two ticks, so that it is finished in the tick in which it is due: waits if `wait` is true, and computes
    /// it here if there are no threads.
    pub(super) fn finish_before_tick(self, wait: bool, stats: &mut MapBuildStats) -> Self {
        let is_at_hand = match &self {
            Self::Task(task) if task.is_finished() => true,
            // Not asked again: it may finish meanwhile, and would count as work that was waited for.
            Self::Task(_) if !wait => return self,
            Self::Task(_) | Self::Deferred(_) => false,
            Self::Done(_) => true,
        };
        let clock = Stopwatch::start();
        match self.finish(true) {
            Ok(made) => {
                if !is_at_hand {
                    stats.waited += 1;
                    stats.wait_time += clock.elapsed();
                }
                Self::Done(Box::new(made))
            }
            Err(work) => work,
        }
    }
}

impl<T> fmt::Debug for Background<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Task(_) => "Task",
            Self::Deferred(_) => "Due",
            Self::Done(_) => "Done",
        })
    }
}
