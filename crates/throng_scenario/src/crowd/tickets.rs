//! Tickets of synthetic parties: size, strength and preferences.
//!
//! Invariants: everything is drawn in integers, so that it is the same on all platforms; a field that a spec does not use draws
//! nothing, so that a new preference does not change other parties.

use std::ops::Range;

use arrayvec::ArrayVec;
use rand::Rng;

use crate::scenario::ScenarioMatchMode;
use throng::matchmaking::{
    AVOIDED_MAX, ModeId, PARTY_SIZE_MAX, Ticket, TicketParty, TicketPlayer, TicketPreferences,
};
use throng::world::PlayerId;

/// Maximum number of regions of a spec: one bit each.
pub const REGIONS_MAX: u8 = 32;

/// The ticket of a new party, without its members. The leader is the first player drawn. Avoided players are drawn from `others`, a
/// range of numbers of real players if the party is real, else of synthetic ones.
pub(super) fn draw_ticket(
    rng: &mut impl Rng,
    spec: &ScenarioMatchMode,
    mode: ModeId,
    party: TicketParty,
    size: u8,
    others: Range<u64>,
) -> Ticket {
    let skill = i64::from(spec.skill_mean) + draw_deviation(rng, spec.skill_deviation);
    let mut power = [0u32; PARTY_SIZE_MAX as usize];
    for power in &mut power[..usize::from(size)] {
        let drawn = i64::from(spec.power_per_player) + draw_deviation(rng, spec.power_deviation);
        *power = drawn.clamp(0, i64::from(u32::MAX)) as u32;
    }
    let (low, high) = spec.levels;
    let level = match high.checked_sub(low) {
        None | Some(0) => low,
        Some(more) => low + draw_below(rng, u64::from(more) + 1) as u16,
    };
    Ticket {
        party,
        size,
        power: power.into_iter().fold(0, u32::saturating_add),
        skill: skill.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
        level,
        leader_strength: power[0],
        mode,
        since_tick: 0,
        members: Default::default(),
        preferences: draw_preferences(rng, spec, party, size, others),
    }
}

/// The preferences of a party; `None` for none.
fn draw_preferences(
    rng: &mut impl Rng,
    spec: &ScenarioMatchMode,
    party: TicketParty,
    size: u8,
    others: Range<u64>,
) -> Option<Box<TicketPreferences>> {
    let mut preferences = TicketPreferences::default();
    if draw_share(rng, spec.avoid_share) {
        let avoided = 1 + draw_below(rng, AVOIDED_MAX as u64) as usize;
        let known = others.end.saturating_sub(others.start);
        let of_its_kind = |number| match party {
            TicketParty::Real(_) => TicketPlayer::Real(PlayerId(number)),
            TicketParty::Synthetic(_) => TicketPlayer::Synthetic(number),
        };
        let avoid = (0..avoided.min(known as usize))
            .map(|_| of_its_kind(others.start + draw_below(rng, known)));
        preferences.avoid = avoid.collect::<ArrayVec<TicketPlayer, AVOIDED_MAX>>();
    }
    if spec.role_weights[1..].iter().any(|&weight| weight > 0) {
        for _ in 0..size {
            let drawn = draw_weighted(rng, &spec.role_weights);
            if let Some(role) = drawn.checked_sub(1) {
                preferences.roles[role] += 1;
            }
        }
    }
    let regions = spec.regions.min(REGIONS_MAX);
    if regions > 0 {
        let first = draw_below(rng, u64::from(regions));
        // Half of the parties also accept the next region.
        let next = (first + draw_below(rng, 2)) % u64::from(regions);
        preferences.regions = 1 << first | 1 << next;
    }
    (preferences != TicketPreferences::default()).then(|| Box::new(preferences))
}

/// A random size from 1 to 5 by these weights; 1 if all are 0.
pub(super) fn draw_size(rng: &mut impl Rng, weights: &[u32; 5]) -> u8 {
    draw_weighted(rng, weights) as u8 + 1
}

/// A random index by these weights; 0 if all are 0.
fn draw_weighted(rng: &mut impl Rng, weights: &[u32; 5]) -> usize {
    let total: u64 = weights.iter().copied().map(u64::from).sum();
    let mut drawn = draw_below(rng, total);
    for (place, weight) in weights.iter().copied().map(u64::from).enumerate() {
        if drawn < weight {
            return place;
        }
        drawn -= weight;
    }
    0
}

/// A uniform number below `below`; 0 if `below` is 0. The bias of the multiplication is at most `below` · 2⁻⁶⁴.
fn draw_below(rng: &mut impl Rng, below: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(below)) >> 64) as u64
}

/// Returns `true` with probability `share` (0 to 1); draws nothing at 0.
pub(super) fn draw_share(rng: &mut impl Rng, share: f32) -> bool {
    // NaN stays NaN when clamped, and the cast turns it into 0.
    let of_65536 = (share.clamp(0.0, 1.0) * 65_536.0) as u64;
    of_65536 > 0 && draw_below(rng, 65_536) < of_65536
}

/// A random deviation from a mean: nearly normally distributed with this standard deviation, and at most six times as large. It is
/// the scaled sum of twelve uniform 16-bit draws, whose standard deviation is 2¹⁶. Integers make it the same on all platforms.
fn draw_deviation(rng: &mut impl Rng, deviation: u32) -> i64 {
    let mut sum = 0;
    for _ in 0..3 {
        let word = rng.next_u64();
        sum += (0..4)
            .map(|at| (word >> (16 * at) & 0xffff) as i64)
            .sum::<i64>();
    }
    ((sum - 6 * 0xffff) * i64::from(deviation) + (1 << 15)) >> 16
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    const PARTY: TicketParty = TicketParty::Synthetic(0);

    use super::*;

    #[test]
    fn sizes_follow_their_weights() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let weights = [60, 20, 8, 0, 12];
        let mut counts = [0u32; 5];
        (0..100_000).for_each(|_| counts[usize::from(draw_size(&mut rng, &weights)) - 1] += 1);
        for (count, weight) in counts.into_iter().zip(weights) {
            // Four standard deviations of the largest class are about 620.
            assert!(count.abs_diff(1000 * weight) < 700, "{counts:?}");
        }
        assert_eq!(counts[3], 0);
        assert_eq!(draw_size(&mut rng, &[0; 5]), 1);
        assert_eq!(draw_size(&mut rng, &[0, 0, 0, 0, u32::MAX]), 5);
    }

    #[test]
    fn deviations_have_mean_zero_and_the_requested_width() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let drawn: Vec<i64> = (0..100_000)
            .map(|_| draw_deviation(&mut rng, 1000))
            .collect();
        let mean = drawn.iter().sum::<i64>() / 100_000;
        let variance = drawn.iter().map(|value| value * value).sum::<i64>() / 100_000;
        assert!(mean.abs() <= 13, "{mean}");
        assert!((980_000..1_020_000).contains(&variance), "{variance}");
        let within_one = drawn.iter().filter(|value| value.abs() <= 1000).count();
        assert!((67_000..70_000).contains(&within_one), "{within_one}");
        assert_eq!(draw_deviation(&mut rng, 0), 0);
    }

    #[test]
    fn extreme_numbers_saturate() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let spec = ScenarioMatchMode {
            skill_mean: i32::MAX,
            skill_deviation: u32::MAX,
            power_per_player: u32::MAX,
            power_deviation: 0,
            levels: (u16::MAX, 0),
            avoid_share: f32::INFINITY,
            regions: u8::MAX,
            ..Default::default()
        };
        for size in 1..=5 {
            let ticket = draw_ticket(&mut rng, &spec, ModeId(0), PARTY, size, 0..0);
            assert_eq!((ticket.power, ticket.leader_strength), (u32::MAX, u32::MAX));
            assert_eq!(ticket.level, u16::MAX);
            assert!(ticket.preferences.unwrap().avoid.is_empty());
        }
    }

    #[test]
    fn preferences_follow_the_spec() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let plain = ScenarioMatchMode::default();
        let spec = ScenarioMatchMode {
            levels: (10, 12),
            avoid_share: 0.25,
            role_weights: [0, 1, 0, 3, 0],
            regions: 3,
            ..ScenarioMatchMode::default()
        };
        let (mut avoiding, mut levels, mut regions) = (0, [0; 3], 0);
        for _ in 0..4000 {
            assert_eq!(
                draw_ticket(&mut rng, &plain, ModeId(0), PARTY, 3, 0..9).preferences,
                None
            );
            let ticket = draw_ticket(&mut rng, &spec, ModeId(0), PARTY, 3, 40..60);
            levels[usize::from(ticket.level) - 10] += 1;
            let preferences = ticket.preferences.unwrap();
            assert_eq!(preferences.roles[0] + preferences.roles[2], 3);
            assert!((1..=2).contains(&preferences.regions.count_ones()) && preferences.regions < 8);
            assert!(
                preferences
                    .avoid
                    .iter()
                    .all(|player| { matches!(player, TicketPlayer::Synthetic(40..60)) })
            );
            avoiding += u32::from(!preferences.avoid.is_empty());
            regions |= preferences.regions;
        }
        assert_eq!(regions, 7);
        assert!(levels.iter().all(|&count| count > 1200), "{levels:?}");
        assert!((850..1150).contains(&avoiding), "{avoiding}");
    }
}
