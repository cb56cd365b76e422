//! The search for the largest crowd that a machine carries. Pure code: the caller measures the crowds.
//!
//! The search doubles the crowd until one misses the target, halves the gap until it is below 5 %, and then repeats both ends, because a
//! single run can be lucky or unlucky. The result is a range: the lower end met the target in every try, the upper end in none. Crowds that
//! did both lie in between.

use std::collections::BTreeMap;

/// Number of tries at each end of the range.
pub(crate) const TRIES: u32 = 3;

/// Maximum number of tries; then the search ends with the range found so far.
const TRIES_MAX: u32 = 40;

/// The tries so far.
pub(crate) struct CrowdSearch {
    first: u32,
    /// The smallest crowd to try.
    least: u32,
    players_max: u32,
    tries_each: u32,
    tries_max: u32,
    tried: BTreeMap<u32, Tries>,
}

/// The results of one crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tries {
    pub passed: u32,
    pub failed: u32,
}

impl Tries {
    pub(crate) const fn count(self) -> u32 {
        self.passed + self.failed
    }
}

/// The range of crowds that a machine carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrowdRange {
    /// The largest crowd that passed every try, with no failed try of a smaller crowd; 0 if there is none.
    pub max_passed: u32,
    pub passed_tries: u32,
    /// The smallest crowd that failed every try, with no passed try of a larger crowd.
    pub min_failed: Option<u32>,
    pub failed_tries: u32,
}

impl CrowdSearch {
    /// Starts with this number of players and goes up to `players_max`; each end of the range needs `tries_each` tries.
    pub(crate) fn new(first: u32, players_max: u32, tries_each: u32) -> Self {
        Self {
            first,
            least: 0,
            players_max,
            tries_each,
            tries_max: TRIES_MAX,
            tried: BTreeMap::new(),
        }
    }

    /// Ends after this number of tries at the latest.
    pub(crate) fn at_most(self, tries_max: u32) -> Self {
        Self { tries_max, ..self }
    }

    /// How often each end is tried.
    pub(crate) const fn tries_each(&self) -> u32 {
        self.tries_each
    }

    /// The crowds tried so far, ascending.
    pub(crate) fn tried(&self) -> impl Iterator<Item = (u32, Tries)> {
        self.tried.iter().map(|(&players, &tries)| (players, tries))
    }

    /// The number of tries so far.
    pub(crate) fn tries(&self) -> u32 {
        self.tried.values().map(|tries| tries.count()).sum()
    }

    /// Whether it ended by the limit of tries: an end of the range may have been tried less often.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.tries() >= self.tries_max && self.next_within(u32::MAX).is_some()
    }

    /// Sets the smallest crowd to try, which must be the first one.
    pub(crate) fn not_below(self, least: u32) -> Self {
        debug_assert_eq!(least, self.first, "the first try is the smallest");
        Self { least, ..self }
    }

    /// Records the result of a try.
    pub(crate) fn record(&mut self, players: u32, holds: bool) {
        let tries = self.tried.entry(players).or_default();
        if holds {
            tries.passed += 1;
        } else {
            tries.failed += 1;
        }
    }

    /// The current range.
    pub(crate) fn range(&self) -> CrowdRange {
        let (held_max, missed_min) = self.overlap();
        let below = self.tried.range(..missed_min).next_back();
        let above = self.tried.range(held_max + 1..).next();
        CrowdRange {
            max_passed: below.map_or(0, |(&players, _)| players),
            passed_tries: below.map_or(0, |(_, tries)| tries.count()),
            min_failed: above.map(|(&players, _)| players),
            failed_tries: above.map_or(0, |(_, tries)| tries.count()),
        }
    }

    /// The largest crowd that passed some try, and the smallest that failed some.
    fn overlap(&self) -> (u32, u32) {
        let held = self.tried.iter().rfind(|(_, tries)| tries.passed > 0);
        let missed = self.tried.iter().find(|(_, tries)| tries.failed > 0);
        (
            held.map_or(0, |(&players, _)| players),
            missed.map_or(u32::MAX, |(&players, _)| players),
        )
    }

    /// The next crowd to try; `None` if the range is narrow enough and both its ends are confirmed.
    pub(crate) fn next(&self) -> Option<u32> {
        self.next_within(self.tries_max)
    }

    fn next_within(&self, tries_max: u32) -> Option<u32> {
        if self.tries() >= tries_max {
            return None;
        }
        let (held_max, missed_min) = self.overlap();
        let CrowdRange {
            max_passed: held,
            min_failed: missed,
            ..
        } = self.range();
        match missed {
            None if held_max == 0 && self.tried.is_empty() => return Some(self.first),
            None if held_max < self.players_max => {
                // No try failed so far, or the largest crowd both passed and failed.
                let is_clear = missed_min == u32::MAX;
                let more = if is_clear {
                    held_max
                } else {
                    (held_max / 10).max(10)
                };
                return Some((held_max + more).min(self.players_max));
            }
            _ => {}
        }
        // The gaps next to the overlap: between the crowds that always passed and the overlap, and between the overlap and those that
        // always failed.
        let wide = |low: u32, high: u32| high - low > (low / 20).max(10);
        let low = held.max(self.least.min(missed_min));
        if missed_min < u32::MAX && wide(low, missed_min) {
            return Some(low + (missed_min - low) / 2);
        }
        let high_min = |missed: u32| held_max.max(self.least.min(missed));
        if let Some(missed) = missed.filter(|missed| wide(high_min(*missed), *missed)) {
            return Some(high_min(missed) + (missed - high_min(missed)) / 2);
        }
        let count = |players: u32| self.tried.get(&players).map_or(0, |tries| tries.count());
        let ends = [Some(held).filter(|held| *held > 0), missed];
        let doubtful = ends.into_iter().flatten();
        doubtful
            .filter(|players| count(*players) < self.tries_each)
            .min_by_key(|players| count(*players))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u32 = 200_000;

    /// The crowds tried if `holds(players, nth)` is the result of the nth try of a crowd, and the final range.
    fn search(holds: impl Fn(u32, u32) -> bool) -> (Vec<u32>, CrowdRange) {
        let mut search = CrowdSearch::new(1_000, MAX, TRIES);
        let mut tried = Vec::new();
        while let Some(players) = search.next() {
            let nth = tried.iter().filter(|&&other| other == players).count();
            tried.push(players);
            search.record(players, holds(players, nth as u32));
        }
        (tried, search.range())
    }

    #[test]
    fn sharp_limit_is_found_within_5_percent_and_both_sides_retried() {
        for limit in [12, 300, 999, 1_000, 7_777, 123_456] {
            let (tried, range) = search(|players, _| players <= limit);
            let missed = range.min_failed.unwrap();
            assert!(
                range.max_passed <= limit && limit < missed,
                "{limit}: {range:?}"
            );
            assert!(
                missed - range.max_passed <= (range.max_passed / 20).max(10),
                "{limit}: {range:?}"
            );
            assert!(tried.len() < 25, "{limit}: {tried:?}");
            for (end, counted_tries) in [
                (range.max_passed, range.passed_tries),
                (missed, range.failed_tries),
            ] {
                let tries = tried.iter().filter(|&&players| players == end).count();
                assert_eq!(counted_tries as usize, tries, "{limit}: {range:?}");
                assert!(end == 0 || tries == TRIES as usize, "{limit}: {tried:?}");
            }
        }
    }

    #[test]
    fn unlimited_machine_passes_largest_crowd_and_full_one_none() {
        let (_, range) = search(|_, _| true);
        assert_eq!((range.max_passed, range.min_failed), (MAX, None));
        let (_, range) = search(|_, _| false);
        assert_eq!(range.max_passed, 0);
        assert!(range.min_failed.unwrap() <= 20, "{range:?}");
    }

    #[test]
    fn lucky_run_moves_upper_end_and_unlucky_run_the_lower() {
        // From 4,000 to 5,000 players every second try passes.
        let noisy = |players: u32, nth| players < 4_000 || (players < 5_000 && nth % 2 == 0);
        let (tried, range) = search(noisy);
        let missed = range.min_failed.unwrap();
        assert!(
            range.max_passed < 4_000 && missed >= 5_000,
            "{range:?} {tried:?}"
        );
        assert!(
            range.max_passed > 3_700 && missed < 5_500,
            "{range:?} {tried:?}"
        );
    }

    #[test]
    fn nothing_below_the_least_is_tried() {
        for limit in [0, 500, 999, 1_000, 5_000] {
            let mut search = CrowdSearch::new(1_000, 8_000, 2).not_below(1_000);
            let mut tried = Vec::new();
            while let Some(value) = search.next() {
                tried.push(value);
                search.record(value, value <= limit);
            }
            assert!(
                tried.iter().all(|value| (1_000..=8_000).contains(value)),
                "{tried:?}"
            );
            let range = search.range();
            if limit < 1_000 {
                assert_eq!((range.max_passed, tried), (0, vec![1_000, 1_000]));
            } else {
                assert!(range.max_passed <= limit && limit - range.max_passed <= limit / 20 + 10);
            }
        }
    }

    #[test]
    fn search_ends_at_its_limit_and_says_so() {
        let noisy = |players: u32, nth: u32| !(players / 7 + nth).is_multiple_of(3);
        let run = |tries_max: u32, holds: &dyn Fn(u32, u32) -> bool| {
            let mut search = CrowdSearch::new(1_000, MAX, TRIES).at_most(tries_max);
            while let Some(players) = search.next() {
                let nth = search.tried().find(|(tried, _)| *tried == players);
                let nth = nth.map_or(0, |(_, tries)| tries.count());
                search.record(players, holds(players, nth));
            }
            (search.tries(), search.is_cut_off())
        };
        assert_eq!(run(9, &noisy), (9, true));
        let (enough, _) = run(TRIES_MAX, &|players, _| players <= 7_777);
        assert_eq!(run(enough, &|players, _| players <= 7_777), (enough, false));
        let less = enough - 1;
        assert_eq!(run(less, &|players, _| players <= 7_777), (less, true));
    }

    #[test]
    fn search_ends_also_with_random_results() {
        let (tried, range) = search(|players, nth| (players / 7 + nth) % 3 != 0);
        assert!(tried.len() <= TRIES_MAX as usize);
        assert!(
            range
                .min_failed
                .is_none_or(|missed| missed > range.max_passed),
            "{range:?}"
        );
    }
}
