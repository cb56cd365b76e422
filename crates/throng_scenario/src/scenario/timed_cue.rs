//! The schedule of cues: once, repeatedly, in steps, or when a condition becomes true.

use bevy_ecs::world::World;

use super::schema::{Action, Cue};
use super::selection;
use crate::crowd;
use throng::sim::StateHasher;

/// The tick that begins at 0 s.
const FIRST_TICK: u64 = 1;

/// A cue, and when it runs next.
#[derive(Debug)]
pub(super) struct TimedCue {
    /// The next tick in which it runs, or from which on its condition is checked.
    next: Option<u64>,
    /// The interval in ticks; 0 for a cue that runs once.
    every: u64,
    until: u64,
    /// Maximum number of further runs; `None` for no limit.
    runs_left: Option<u32>,
    trigger: Trigger,
    action: Action,
}

/// What triggers a cue.
#[derive(Debug)]
enum Trigger {
    /// Its time only.
    Time,
    /// Its time; each step runs its share of a number.
    Ramp { number: u32, steps: u64, done: u64 },
    /// A condition that becomes true.
    Condition { condition: Condition, was_met: bool },
}

#[derive(Debug)]
enum Condition {
    Attribute {
        tag: String,
        attribute: String,
        limits: (Option<i64>, Option<i64>),
    },
    AtMost {
        tag: String,
        count: u32,
    },
    AtLeast {
        tag: String,
        count: u32,
    },
}

impl Condition {
    /// The condition of a cue; `None` when it has none.
    fn from_cue(cue: &Cue) -> Option<Self> {
        Some(match cue {
            Cue::At { .. } | Cue::Every { .. } | Cue::Ramp { .. } => return None,
            Cue::When {
                tag,
                attribute,
                below,
                at_least,
                ..
            } => Self::Attribute {
                tag: tag.clone(),
                attribute: attribute.clone(),
                limits: (*below, *at_least),
            },
            Cue::WhenCount {
                tag,
                at_most: Some(count),
                ..
            } => Self::AtMost {
                tag: tag.clone(),
                count: *count,
            },
            Cue::WhenCount { tag, at_least, .. } => Self::AtLeast {
                tag: tag.clone(),
                count: at_least.unwrap_or(u32::MAX),
            },
        })
    }

    fn is_met(&self, world: &World) -> bool {
        let count_of = |tag| crowd::members(world, tag, None).len();
        match self {
            Self::Attribute {
                tag,
                attribute,
                limits,
            } => selection::any_has_attribute(world, tag, attribute, *limits),
            Self::AtMost { tag, count } => count_of(tag) <= *count as usize,
            Self::AtLeast { tag, count } => count_of(tag) >= *count as usize,
        }
    }
}

/// Converts times of cues to ticks, at this tick rate. The tick that ends at time t has number t × hz; a cue at time t runs in the
/// tick after it.
#[derive(Clone, Copy)]
pub(super) struct Ticks(pub f64);

impl Ticks {
    fn at(self, t_s: f64) -> u64 {
        (t_s * self.0).floor() as u64 + 1
    }

    fn between(self, t_s: f64) -> u64 {
        ((t_s * self.0).round() as u64).max(1)
    }
}

impl TimedCue {
    pub fn new(cue: &Cue, ticks: Ticks) -> Self {
        let end = |until_s: &Option<f64>| until_s.map_or(u64::MAX, |t_s| ticks.at(t_s));
        let once = |next, action: &Action| Self {
            next: Some(next),
            every: 0,
            until: u64::MAX,
            runs_left: None,
            trigger: Trigger::Time,
            action: action.clone(),
        };
        match cue {
            Cue::At { t_s, run } => once(ticks.at(*t_s), run),
            Cue::Every {
                t_s,
                from_s,
                until_s,
                times,
                run,
            } => {
                let first = ticks.at(if *from_s > 0.0 { *from_s } else { *t_s });
                Self {
                    next: Some(first).filter(|&first| first <= end(until_s)),
                    every: ticks.between(*t_s),
                    until: end(until_s),
                    runs_left: *times,
                    ..once(first, run)
                }
            }
            Cue::Ramp {
                from_s,
                until_s,
                every_s,
                run,
            } => {
                let (first, last) = (ticks.at(*from_s), ticks.at(*until_s));
                let every = ticks.between(*every_s);
                Self {
                    every,
                    until: last,
                    trigger: Trigger::Ramp {
                        number: run.ramp_count().unwrap_or_default(),
                        steps: last.saturating_sub(first) / every + 1,
                        done: 0,
                    },
                    ..once(first, run)
                }
            }
            Cue::When {
                from_s,
                until_s,
                times,
                run,
                ..
            }
            | Cue::WhenCount {
                from_s,
                until_s,
                times,
                run,
                ..
            } => Self {
                until: end(until_s),
                runs_left: Some(*times),
                trigger: Condition::from_cue(cue).map_or(Trigger::Time, |condition| {
                    Trigger::Condition {
                        // Before the first object has spawned, there are none. The number has not fallen then, so this is no
                        // trigger.
                        was_met: matches!(condition, Condition::AtMost { .. }),
                        condition,
                    }
                }),
                ..once(ticks.at(*from_s), run)
            },
        }
    }

    /// Whether it is triggered by its time only, and is due in the first tick, at 0 s.
    pub fn is_first(&self) -> bool {
        let is_timed = !matches!(self.trigger, Trigger::Condition { .. });
        is_timed && self.next.is_some_and(|next| next <= FIRST_TICK)
    }

    /// Whether it has several steps.
    pub const fn is_ramp(&self) -> bool {
        matches!(self.trigger, Trigger::Ramp { .. })
    }

    /// Returns the action to run in this tick, if any.
    pub fn poll(&mut self, world: &World, tick: u64) -> Option<Action> {
        if self.runs_left == Some(0)
            || self.next.is_none_or(|next| tick < next)
            || tick > self.until
        {
            return None;
        }
        let action = match &mut self.trigger {
            Trigger::Condition { condition, was_met } => {
                let before = std::mem::replace(was_met, condition.is_met(world));
                (*was_met && !before).then(|| self.action.clone())?
            }
            Trigger::Time => {
                self.next = next_after(tick, self.every, self.until);
                self.action.clone()
            }
            Trigger::Ramp {
                number,
                steps,
                done,
            } => {
                self.next = next_after(tick, self.every, self.until);
                let share = |steps_done: u64| u64::from(*number) * steps_done / *steps;
                let before = share(*done);
                *done += 1;
                let part = share(*done) - before;
                (part > 0).then(|| self.action.with_ramp_count(part as u32))?
            }
        };
        self.runs_left = self.runs_left.map(|left| left - 1);
        Some(action)
    }

    /// Hashes the next tick, and further state only if the cue has it: the hash of a cue with a time only stays as in former
    /// versions.
    pub fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.next.unwrap_or(u64::MAX));
        if let Some(left) = self.runs_left {
            hasher.write_u64(u64::from(left));
        }
        match &self.trigger {
            Trigger::Time => {}
            Trigger::Ramp { done, .. } => hasher.write_u64(*done),
            Trigger::Condition { was_met, .. } => hasher.write_u64(u64::from(*was_met)),
        }
    }
}

fn next_after(tick: u64, every: u64, until: u64) -> Option<u64> {
    (every > 0)
        .then_some(tick + every)
        .filter(|&next| next <= until)
}
