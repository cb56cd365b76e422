//! Work beside the ticks.

use std::fmt;

use bevy_tasks::Task;

use super::stats::MapBuildStats;
use crate::memory::with_thread_tag;
use crate::sim::clock::Stopwatch;
use crate::sim::{SimSystems, begin_task, wait_for};

/// Something that is being made.
pub(super) enum Background<T> {
    Task(Task<T>),
    /// Without threads it is made when it is due.
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

    /// What was made; the work itself when it is not done and is not to be waited for.
    pub(super) fn finish(self, wait: bool) -> Result<T, Self> {
        match self {
            Self::Task(task) if wait || task.is_finished() => Ok(wait_for(task)),
            Self::Task(_) => Err(self),
            Self::Deferred(make) => Ok(make()),
            Self::Done(made) => Ok(*made),
        }
    }

    /// The same between two ticks, so that the tick in which it is due finds it done: waited for if it is to be, and made
    /// where there are no threads.
    pub(super) fn finish_before_tick(self, wait: bool, stats: &mut MapBuildStats) -> Self {
        let is_at_hand = match &self {
            Self::Task(task) => task.is_finished(),
            Self::Deferred(_) => false,
            Self::Done(_) => true,
        };
        let clock = Stopwatch::start();
        match self.finish(wait) {
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
