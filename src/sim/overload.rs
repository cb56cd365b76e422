//! Overload levels: which work is reduced when ticks take too long, and in which order it is restored.
//!
//! ```text
//!         enter_at.stretch      enter_at.defer     enter_at.refuse    enter_at.dilate
//! Normal ────────────────▶ ReducedUpdates ─▶ DeferredWork ─▶ QueuedLogins ─▶ TimeDilated
//!        ◀────────────────                ◀─              ◀─              ◀─
//!         leave_at.stretch      leave_at.defer     leave_at.refuse    leave_at.dilate
//! ```
//! A level includes all lower ones. The *load* is the cost of a tick divided by its budget, in millionths. The budget is the tick length
//! in simulated time, also while time is dilated. The load is smoothed by an exponential mean in which one tick counts for at most
//! [`LOAD_MAX`], so a single stall changes no level.
//!
//! Invariants:
//! - A step goes to an adjacent level. At least `enter_ticks` lie between a step and the next one up, `leave_ticks` before one
//!   down.
//! - A constant load never alternates between levels, and a higher load never leads to a lower level.
//! - Only integers are used: equal loads give equal levels on every machine.

use bevy_ecs::prelude::Resource;
use serde::{Deserialize, Serialize};
use throng_core::Variants;

/// The load of a tick that costs exactly its budget.
pub const LOAD_FULL: u32 = 1_000_000;

/// The maximum load of one tick: four budgets.
pub const LOAD_MAX: u32 = 4 * LOAD_FULL;

/// The step size of the rate of time, in percent.
const TIME_PERCENT_STEP: u8 = 5;

/// Which work is reduced; each level includes all lower ones.
#[derive(
    Variants,
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
)]
#[cfg_attr(feature = "reflect", derive(super::Reflect))]
pub enum OverloadLevel {
    /// Nothing is reduced.
    #[default]
    Normal,
    /// Clients receive updates of the same objects less often.
    #[serde(alias = "UpdatesStretched")]
    ReducedUpdates,
    /// Fewer view enters and path searches are started per tick.
    #[serde(alias = "WorkDeferred")]
    DeferredWork,
    /// No player is admitted: logins wait in the login queue.
    #[serde(alias = "LoginsRefused")]
    QueuedLogins,
    /// Simulated time passes more slowly than real time; clients are notified.
    TimeDilated,
}

impl OverloadLevel {
    /// Its index in [`ALL`](Self::ALL): 0 is normal.
    #[must_use]
    pub const fn number(self) -> usize {
        self as usize
    }

    fn next(self) -> Option<Self> {
        Self::ALL.get(self.number() + 1).copied()
    }

    fn previous(self) -> Option<Self> {
        let before = self.number().checked_sub(1)?;
        Self::ALL.get(before).copied()
    }
}

/// When levels change, and their effects: [`OverloadSettings`](super::OverloadSettings) in ticks and integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadTickSettings {
    /// The smoothed load at which each level but the first is entered, in the order of the levels.
    pub enter_at: [u32; 4],
    /// The smoothed load below which each is left; limited to `enter_at`.
    pub leave_at: [u32; 4],
    /// The time constant of the smoothed load, in ticks; 0 counts as 1.
    pub smoothing_ticks: u32,
    /// The minimum number of ticks at a level before the next one is entered, and at a rate of time before it changes.
    pub enter_ticks: u32,
    /// The minimum number of ticks at a level before it is left.
    pub leave_ticks: u32,
    /// The slowest rate of time, in percent of real time; 0 counts as 1.
    pub time_percent_min: u8,
    /// The effects of levels.
    pub effects: OverloadEffects,
}

/// How much the levels reduce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverloadEffects {
    /// How often the time between two updates doubles.
    pub update_doublings: u8,
    /// The remaining share of budgets for work that can wait, in percent; 0 counts as 1.
    pub deferred_percent: u8,
}

/// A change of the level or of the rate of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadChange {
    /// The previous level.
    pub from: OverloadLevel,
    /// The new level: an adjacent one, or the same if only the rate of time changed.
    pub to: OverloadLevel,
    /// The new rate of simulated time, in percent of real time.
    pub time_percent: u8,
}

/// The current overload level. Modules whose budget depends on it read it here; they are not notified.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    level: OverloadLevel,
    time_percent: u8,
    /// The smoothed load.
    load: u32,
    /// Ticks since the level changed.
    level_ticks: u32,
    /// Ticks since the rate of time changed.
    pace_ticks: u32,
    effects: OverloadEffects,
}

impl Default for Overload {
    fn default() -> Self {
        Self {
            level: OverloadLevel::Normal,
            time_percent: 100,
            load: 0,
            level_ticks: 0,
            pace_ticks: 0,
            effects: OverloadEffects::default(),
        }
    }
}

impl Overload {
    /// Takes the cost of the last tick, in millionths of its budget. Call it once per tick. O(1).
    pub fn observe(&mut self, load: u32, rules: &OverloadTickSettings) -> Option<OverloadChange> {
        let (mean, ticks) = (
            i64::from(self.load),
            i64::from(rules.smoothing_ticks.max(1)),
        );
        let mean = mean + (i64::from(load.min(LOAD_MAX)) - mean) / ticks;
        self.load = u32::try_from(mean).unwrap_or(0);
        self.level_ticks = self.level_ticks.saturating_add(1);
        self.pace_ticks = self.pace_ticks.saturating_add(1);
        self.effects = rules.effects;
        let (from, from_percent) = (self.level, self.time_percent);
        self.level = self.next_level(rules);
        if self.level != from {
            self.level_ticks = 0;
        }
        self.time_percent = self.next_pace(from, rules);
        if self.time_percent != from_percent {
            self.pace_ticks = 0;
        }
        self.change_since(from, from_percent)
    }

    /// Returns to the next lower level, whatever the load is: for a governor that is disabled. `None` at the normal level.
    pub fn lower_level(&mut self) -> Option<OverloadChange> {
        let (from, from_percent) = (self.level, self.time_percent);
        *self = Self {
            level: from.previous().unwrap_or_default(),
            effects: self.effects,
            ..Self::default()
        };
        self.change_since(from, from_percent)
    }

    const fn change_since(&self, from: OverloadLevel, percent: u8) -> Option<OverloadChange> {
        let (to, time_percent) = (self.level, self.time_percent);
        if from.number() == to.number() && percent == time_percent {
            return None;
        }
        Some(OverloadChange {
            from,
            to,
            time_percent,
        })
    }

    fn next_level(&self, rules: &OverloadTickSettings) -> OverloadLevel {
        let number = self.level.number();
        if let (Some(next), Some(&enter_at)) = (self.level.next(), rules.enter_at.get(number))
            && self.load >= enter_at
        {
            let is_due = self.level_ticks > rules.enter_ticks;
            return if is_due { next } else { self.level };
        }
        if let Some(previous) = self.level.previous() {
            let leave_at = rules.leave_at[number - 1].min(rules.enter_at[number - 1]);
            if self.load < leave_at && self.level_ticks > rules.leave_ticks {
                return previous;
            }
        }
        self.level
    }

    /// The rate of time at which ticks of the current cost finish before the next one is due.
    fn next_pace(&self, from: OverloadLevel, rules: &OverloadTickSettings) -> u8 {
        if self.level != OverloadLevel::TimeDilated {
            return 100;
        }
        if from == self.level && self.pace_ticks <= rules.enter_ticks {
            return self.time_percent;
        }
        let percent = u64::from(LOAD_FULL) * 100 / u64::from(self.load.max(LOAD_FULL));
        let stepped = percent as u8 / TIME_PERCENT_STEP * TIME_PERCENT_STEP;
        stepped.max(rules.time_percent_min.clamp(1, 100))
    }

    /// The current level.
    #[must_use]
    pub const fn level(&self) -> OverloadLevel {
        self.level
    }

    /// The smoothed load: the cost of a tick divided by its budget.
    #[must_use]
    pub fn load(&self) -> f32 {
        self.load as f32 / LOAD_FULL as f32
    }

    /// The rate of simulated time, in percent of real time: 100 except at the last level.
    #[must_use]
    pub const fn time_percent(&self) -> u8 {
        self.time_percent
    }

    /// How often the time between two updates of the same object is doubled: 0 while updates are not reduced.
    #[must_use]
    pub fn update_doublings(&self) -> u8 {
        if self.level >= OverloadLevel::ReducedUpdates {
            self.effects.update_doublings
        } else {
            0
        }
    }

    /// The remaining budget of a tick for work that can wait: all of it while nothing is deferred, otherwise a share, but at least
    /// 1 of a budget that is not 0, so that deferred work makes progress.
    #[must_use]
    pub fn deferrable_budget(&self, budget: u64) -> u64 {
        if self.level < OverloadLevel::DeferredWork {
            return budget;
        }
        let percent = u128::from(self.effects.deferred_percent.clamp(1, 100));
        let left = u128::from(budget) * percent / 100;
        // It is at most the budget.
        (left as u64).max(budget.min(1))
    }

    /// The same for a smaller integer type.
    #[must_use]
    pub fn deferrable_budget_u32(&self, budget: u32) -> u32 {
        self.deferrable_budget(u64::from(budget)) as u32
    }

    /// Whether players are admitted.
    #[must_use]
    pub fn admits_logins(&self) -> bool {
        self.level < OverloadLevel::QueuedLogins
    }

    /// Passes the state as words, for a hash.
    pub fn hash_state(&self, mut word: impl FnMut(u64)) {
        word((self.level.number() as u64) << 32 | u64::from(self.load));
        word(u64::from(self.level_ticks) << 32 | u64::from(self.pace_ticks));
        let OverloadEffects {
            update_doublings,
            deferred_percent,
        } = self.effects;
        let [time, doublings, deferred] =
            [self.time_percent, update_doublings, deferred_percent].map(u64::from);
        word(time << 16 | doublings << 8 | deferred);
    }
}

#[cfg(test)]
mod tests {
    use super::OverloadLevel::{DeferredWork, Normal, ReducedUpdates, TimeDilated};
    use super::*;
    use proptest::prelude::*;

    const RULES: OverloadTickSettings = OverloadTickSettings {
        enter_at: [800_000, 900_000, 950_000, 1_000_000],
        leave_at: [500_000, 600_000, 650_000, 700_000],
        smoothing_ticks: 4,
        enter_ticks: 3,
        leave_ticks: 8,
        time_percent_min: 25,
        effects: OverloadEffects {
            update_doublings: 1,
            deferred_percent: 25,
        },
    };

    /// A governor that computes everything from its history: loads, and the levels and rates that it chose.
    #[derive(Default)]
    struct NaiveOverload {
        loads: Vec<u32>,
        chosen: Vec<(usize, u8)>,
    }

    impl NaiveOverload {
        fn mean(&self, ticks: u32) -> i128 {
            let ticks = i128::from(ticks.max(1));
            self.loads.iter().fold(0, |mean, &load| {
                mean + (i128::from(load.min(4_000_000)) - mean) / ticks
            })
        }

        /// The number of ticks at the end, including this one, since the choice last changed.
        fn since<T: PartialEq>(&self, of: impl Fn(&(usize, u8)) -> T, at_first: T) -> usize {
            let chosen: Vec<T> = std::iter::once(at_first)
                .chain(self.chosen.iter().map(of))
                .collect();
            let last = chosen.len() - 1;
            (0..=last)
                .take_while(|back| chosen[last - back] == chosen[last])
                .count()
        }

        fn observe(&mut self, load: u32, rules: &OverloadTickSettings) -> (usize, u8) {
            self.loads.push(load);
            let mean = self.mean(rules.smoothing_ticks);
            let (level, percent) = self.chosen.last().copied().unwrap_or((0, 100));
            let held = self.since(|chosen| chosen.0, 0);
            let paced = self.since(|chosen| chosen.1, 100);
            let may_rise = held > rules.enter_ticks as usize;
            let may_fall = held > rules.leave_ticks as usize;
            let wants_more = level < 4 && mean >= i128::from(rules.enter_at[level]);
            let wants_less = level > 0
                && mean < i128::from(rules.leave_at[level - 1].min(rules.enter_at[level - 1]));
            let next = match (wants_more, wants_less) {
                (true, _) if may_rise => level + 1,
                (false, true) if may_fall => level - 1,
                _ => level,
            };
            let pace = if next < 4 {
                100
            } else if level == 4 && paced <= rules.enter_ticks as usize {
                percent
            } else {
                let needed = (100.0 * 1e6 / mean.max(1_000_000) as f64) as u8;
                (needed - needed % 5).max(rules.time_percent_min.clamp(1, 100))
            };
            self.chosen.push((next, pace));
            (next, pace)
        }
    }

    fn rules() -> impl Strategy<Value = OverloadTickSettings> {
        let thresholds = || prop::array::uniform4(0..2_000_000_u32);
        let ticks = (0..8_u32, 0..6_u32, 0..12_u32);
        (thresholds(), thresholds(), ticks, any::<u8>()).prop_map(
            |(enter_at, leave_at, (smoothing_ticks, rise_ticks, fall_ticks), time_percent_min)| {
                OverloadTickSettings {
                    enter_at,
                    leave_at,
                    smoothing_ticks,
                    enter_ticks: rise_ticks,
                    leave_ticks: fall_ticks,
                    time_percent_min,
                    ..RULES
                }
            },
        )
    }

    /// Runs of equal loads.
    fn loads() -> impl Strategy<Value = Vec<u32>> {
        let spell = (0..3_000_000_u32, 1..30_usize);
        prop::collection::vec(spell, 0..12).prop_map(|spells| {
            let all = spells
                .into_iter()
                .flat_map(|(load, ticks)| vec![load; ticks]);
            all.collect()
        })
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn overload_matches_the_naive_model(rules in rules(), loads in loads()) {
            let (mut overload, mut naive) = (Overload::default(), NaiveOverload::default());
            for load in loads {
                let before = (overload.level(), overload.time_percent());
                let change = overload.observe(load, &rules);
                let now = (overload.level(), overload.time_percent());
                prop_assert_eq!((now.0.number(), now.1), naive.observe(load, &rules));
                let expected_change = (now != before).then_some(OverloadChange {
                    from: before.0, to: now.0, time_percent: now.1,
                });
                prop_assert_eq!(change, expected_change);
            }
        }

        #[test]
        fn levels_are_not_skipped_or_left_early(rules in rules(), loads in loads()) {
            let (mut overload, mut last) = (Overload::default(), None);
            for (tick, load) in (0_u32..).zip(loads) {
                let Some(change) = overload.observe(load, &rules) else { continue };
                let (from, to) = (change.from.number(), change.to.number());
                prop_assert!(from.abs_diff(to) <= 1);
                prop_assert!(change.time_percent == 100 || to == 4);
                if from != to {
                    let held = last.map_or(tick, |last| tick - last - 1);
                    let least = if to > from { rules.enter_ticks } else { rules.leave_ticks };
                    prop_assert!(held >= least);
                    last = Some(tick);
                }
            }
        }

        #[test]
        fn zero_load_returns_to_normal_in_a_bounded_time(rules in rules(), loads in loads()) {
            // A level that is never left has a threshold of 0.
            let rules = OverloadTickSettings {
                enter_at: rules.enter_at.map(|at| at.max(2_000)),
                leave_at: rules.leave_at.map(|at| at.max(2_000)),
                ..rules
            };
            let mut overload = Overload::default();
            for load in loads {
                overload.observe(load, &rules);
            }
            // The smoothed load falls by a fraction per tick, down to the remainder of integer division; then by one level per minimum
            // duration.
            let ticks = 20 * rules.smoothing_ticks.max(1) + 5 * (rules.leave_ticks + 1);
            for _ in 0..ticks {
                overload.observe(0, &rules);
            }
            prop_assert_eq!((overload.level(), overload.time_percent()), (Normal, 100));
        }

        #[test]
        fn higher_load_never_leads_to_a_lower_level(
            rules in rules(), before in loads(), less in 0..3_000_000_u32, more in 0..3_000_000_u32,
        ) {
            let mut overload = Overload::default();
            for load in before {
                overload.observe(load, &rules);
            }
            let after = |load: u32| {
                let mut overload = overload;
                overload.observe(load, &rules);
                (overload.level(), std::cmp::Reverse(overload.time_percent()))
            };
            prop_assert!(after(less.min(more)).0 <= after(less.max(more)).0);
            // At two dilated levels, the higher load gives the slower rate.
            if after(less).0 == after(more).0 {
                prop_assert!(after(less.min(more)) <= after(less.max(more)));
            }
        }

        #[test]
        fn constant_load_settles_at_one_level(
            rules in rules(), less in 0..3_000_000_u32, more in 0..3_000_000_u32,
        ) {
            let settle = |load: u32| {
                let mut overload = Overload::default();
                let mut levels = Vec::new();
                for _ in 0..400 {
                    overload.observe(load, &rules);
                    levels.push(overload.level());
                }
                levels
            };
            let (low, high) = (settle(less.min(more)), settle(less.max(more)));
            prop_assert!(low.is_sorted() && high.is_sorted(), "up only");
            prop_assert!(low.last() <= high.last());
        }
    }

    fn after(overload: &mut Overload, load: u32, ticks: u32) -> Vec<(OverloadLevel, u8)> {
        let changes = (0..ticks).filter_map(|_| overload.observe(load, &RULES));
        changes
            .map(|change| (change.to, change.time_percent))
            .collect()
    }

    #[test]
    fn levels_rise_one_by_one_and_fall_in_reverse_order() {
        let mut overload = Overload::default();
        let up = after(&mut overload, 2_000_000, 60);
        let levels: Vec<_> = up.iter().map(|change| change.0.number()).collect();
        assert!(levels.is_sorted() && levels[..4] == [1, 2, 3, 4], "{up:?}");
        assert_eq!(up.last(), Some(&(TimeDilated, 50)));
        let down = after(&mut overload, 0, 120);
        let levels = down.iter().map(|change| change.0.number());
        let mut levels: Vec<_> = levels.collect();
        levels.dedup();
        assert_eq!(levels[levels.len() - 4..], [3, 2, 1, 0], "{down:?}");
        assert_eq!(overload.time_percent(), 100);
    }

    #[test]
    fn level_stays_between_its_thresholds() {
        let mut overload = Overload::default();
        assert_eq!(after(&mut overload, 790_000, 100), []);
        assert_eq!(after(&mut overload, 850_000, 100), [(ReducedUpdates, 100)]);
        assert_eq!(after(&mut overload, 510_000, 100), []);
        assert_eq!(after(&mut overload, 490_000, 100), [(Normal, 100)]);
    }

    #[test]
    fn single_stall_changes_no_level() {
        let rules = OverloadTickSettings {
            smoothing_ticks: 10,
            ..RULES
        };
        let mut overload = Overload::default();
        for tick in 0..100 {
            let load = if tick == 50 { u32::MAX } else { 300_000 };
            assert_eq!(overload.observe(load, &rules), None, "{tick}");
        }
    }

    #[test]
    fn level_includes_the_effects_of_all_lower_ones() {
        let mut overload = Overload::default();
        let given_up = |overload: &Overload| {
            let waits = overload.deferrable_budget(40) == 10;
            let stretches = overload.update_doublings() == 1;
            let is_dilated = overload.time_percent() < 100;
            [stretches, waits, !overload.admits_logins(), is_dilated]
        };
        let mut seen = vec![given_up(&overload)];
        for _ in 0..40 {
            if overload.observe(3_000_000, &RULES).is_some() {
                seen.push(given_up(&overload));
            }
        }
        let of_levels: Vec<_> = (0..5).map(|n| [0, 1, 2, 3].map(|of| of < n)).collect();
        assert_eq!(seen[..5], of_levels);
        assert_eq!(
            overload.deferrable_budget(3),
            1,
            "never nothing of something"
        );
        assert_eq!(
            [0, u64::MAX].map(|all| overload.deferrable_budget(all) > 0),
            [false, true]
        );
    }

    #[test]
    fn lower_level_steps_down_one_by_one() {
        let mut overload = Overload::default();
        after(&mut overload, 960_000, 60);
        assert!(overload.level() > DeferredWork);
        let mut levels = vec![overload.level().number()];
        while let Some(change) = overload.lower_level() {
            levels.push(change.to.number());
        }
        assert_eq!(levels, [3, 2, 1, 0]);
    }
}
