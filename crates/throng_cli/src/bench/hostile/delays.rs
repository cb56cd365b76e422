//! Quantiles of delays during an attack, compared with the quiet phases before and after it.

use super::phases::PhaseSamples;
use super::trial::TrialResult;

/// Quantiles of delays, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DelayQuantiles {
    pub count: usize,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl DelayQuantiles {
    fn of(mut delays_ms: Vec<f64>) -> Self {
        delays_ms.sort_unstable_by(f64::total_cmp);
        let count = delays_ms.len();
        let at = |share: f64| {
            let nth = (count as f64 * share).ceil() as usize;
            delays_ms
                .get(nth.saturating_sub(1))
                .copied()
                .unwrap_or_default()
        };
        Self {
            count,
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// A delay in quiet phases and during an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DelayPair {
    pub quiet: DelayQuantiles,
    pub attack: DelayQuantiles,
}

impl DelayPair {
    /// By how much the attack increases the p99 delay, in milliseconds.
    pub fn added_ms(&self) -> f64 {
        self.attack.p99 - self.quiet.p99
    }
}

/// The delays of an attack.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttackDelays {
    /// The number of the phase, from 0.
    pub phase: usize,
    /// From the tick of a packet to its arrival, relative to the fastest packet of the quiet phase before.
    pub packets: DelayPair,
    /// From an input to its acknowledgement.
    pub inputs: DelayPair,
    /// From the first request of a newcomer to its first packet from the world.
    pub logins: DelayPair,
    /// Input delays of the client whose address the attacker forges.
    pub victim: DelayPair,
    pub failed_logins: usize,
}

/// The delays of each attack.
pub(super) fn compare(result: &TrialResult) -> Vec<AttackDelays> {
    let attacks = result.reports.iter().enumerate();
    let attacks = attacks.filter(|(_, report)| report.plan.is_compared);
    let pairs = attacks.filter_map(|(nth, _)| {
        // Index 0 of the samples is the time between phases.
        let before = result.samples.get(nth)?;
        let during = result.samples.get(nth + 1)?;
        let after = result.samples.get(nth + 2);
        Some(compare_phase(nth, before, during, after))
    });
    pairs.collect()
}

fn compare_phase(
    phase: usize,
    before: &PhaseSamples,
    during: &PhaseSamples,
    after: Option<&PhaseSamples>,
) -> AttackDelays {
    let pair = |of: fn(&PhaseSamples) -> &Vec<f64>| {
        let after = after.map(of).into_iter().flatten();
        DelayPair {
            quiet: DelayQuantiles::of(of(before).iter().chain(after).copied().collect()),
            attack: DelayQuantiles::of(of(during).clone()),
        }
    };
    let fastest = |samples: &PhaseSamples| {
        let all = samples.arrivals_us.iter().copied();
        all.fold(f64::INFINITY, f64::min)
    };
    let late_ms = |samples: &PhaseSamples, fastest_us: f64| {
        let all = samples.arrivals_us.iter();
        let late = all.map(move |at_us| (at_us - fastest_us) / 1e3);
        late.collect::<Vec<f64>>()
    };
    let mut quiet = late_ms(before, fastest(before));
    quiet.extend(
        after
            .into_iter()
            .flat_map(|after| late_ms(after, fastest(after))),
    );
    AttackDelays {
        phase,
        packets: DelayPair {
            quiet: DelayQuantiles::of(quiet),
            attack: DelayQuantiles::of(late_ms(during, fastest(before))),
        },
        inputs: pair(|samples| &samples.input_ms),
        logins: pair(|samples| &samples.login_ms),
        victim: pair(|samples| &samples.victim_ms),
        failed_logins: during.failed_logins,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_smallest_delays_that_cover_their_share() {
        let delays = (1..=200).rev().map(f64::from).collect();
        let found = DelayQuantiles::of(delays);
        assert_eq!((found.p50, found.p99, found.max), (100.0, 198.0, 200.0));
        assert_eq!(DelayQuantiles::of(Vec::new()), DelayQuantiles::default());
    }

    #[test]
    fn slipped_ticks_of_an_attack_count_as_delay() {
        let samples = |first_us: f64| PhaseSamples {
            arrivals_us: (0..100)
                .map(|nth| first_us + f64::from(nth) * 10.0)
                .collect(),
            ..PhaseSamples::default()
        };
        // From the attack on, all ticks are 70 ms late.
        let [before, during, after] = [5_000.0, 75_000.0, 75_000.0].map(samples);
        let found = compare_phase(1, &before, &during, Some(&after)).packets;
        assert!((found.quiet.p99 - 0.98).abs() < 0.011, "{found:?}");
        assert!((found.added_ms() - 70.0).abs() < 0.1, "{found:?}");
    }
}
