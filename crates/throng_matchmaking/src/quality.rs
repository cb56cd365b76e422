//! The quality of a match.
//!
//! These numbers are for reports only and decide nothing. The predicted chance is Elo's expected score
//! (A. Elo, *The Rating of Chessplayers*, 1978, §1.4) of the groups' mean skills, each party weighted by its
//! players, computed with `libm` so that it is the same on every platform.

use super::ticket::Ticket;

/// The quality of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchQuality {
    /// The gap in power between the groups.
    pub power_gap: u64,
    /// The largest minus the smallest skill of a party in the match; in rooms, of the weighted strength of a leader.
    pub spread: u32,
    /// The predicted chance that the first group wins, 0–1.
    pub win_chance: f64,
    /// The difference in the number of parties: many small parties against few large ones.
    pub party_count_difference: u32,
    /// The mean waiting time of a party, rounded down: ticks.
    pub waited_ticks_mean: u64,
    /// The longest waiting time of a party: ticks.
    pub waited_ticks_max: u64,
}

impl MatchQuality {
    /// Measures a match that is made at `now_tick`. O(parties).
    #[must_use]
    pub fn of(groups: &[Vec<Ticket>; 2], now_tick: u64) -> Self {
        let all = || groups.iter().flatten();
        let power = |group: &[Ticket]| {
            group
                .iter()
                .map(|ticket| u64::from(ticket.power))
                .sum::<u64>()
        };
        let spread = match (all().map(|t| t.skill).min(), all().map(|t| t.skill).max()) {
            (Some(low), Some(high)) => high.abs_diff(low),
            _ => 0,
        };
        let waits = || all().map(|ticket| ticket.waited_ticks(now_tick));
        let waited: u128 = waits().map(u128::from).sum();
        Self {
            power_gap: power(&groups[0]).abs_diff(power(&groups[1])),
            spread,
            win_chance: win_chance(mean_skill(&groups[0]), mean_skill(&groups[1])),
            party_count_difference: groups[0].len().abs_diff(groups[1].len()) as u32,
            waited_ticks_mean: (waited / (all().count() as u128).max(1)) as u64,
            waited_ticks_max: waits().max().unwrap_or(0),
        }
    }

    /// How even the predicted result is: 1 when both groups win equally often, 0 when one always wins. O(1).
    #[must_use]
    pub fn fairness(&self) -> f64 {
        1.0 - (2.0 * self.win_chance - 1.0).abs()
    }
}

/// The mean skill of a group's players.
fn mean_skill(group: &[Ticket]) -> f64 {
    let players: i64 = group.iter().map(|ticket| i64::from(ticket.size)).sum();
    let sum: i64 = group
        .iter()
        .map(|ticket| i64::from(ticket.size) * i64::from(ticket.skill))
        .sum();
    if players == 0 {
        0.0
    } else {
        sum as f64 / players as f64
    }
}

/// Elo's expected score of the first of two skills: 400 points are ten times the odds. O(1).
#[must_use]
pub fn win_chance(first: f64, second: f64) -> f64 {
    1.0 / (1.0 + libm::exp10((second - first) / 400.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::ModeId;

    fn ticket(size: u8, power: u32, skill: i32, since_tick: u64) -> Ticket {
        let members = (0..u64::from(size)).map(Into::into).collect();
        Ticket {
            party: 0.into(),
            size,
            power,
            skill,
            level: 1,
            leader_strength: 0,
            mode: ModeId(0),
            since_tick,
            members,
            preferences: None,
        }
    }

    #[test]
    fn win_chances_follow_elo_and_add_up_to_one() {
        assert!((win_chance(400.0, 0.0) - 10.0 / 11.0).abs() < 1e-12);
        assert!((win_chance(-3.0, 90.0) + win_chance(90.0, -3.0) - 1.0).abs() < 1e-12);
        assert!(win_chance(f64::from(i32::MIN), f64::from(i32::MAX)) < 1e-300);
    }

    #[test]
    fn quality_covers_all_parties_of_a_match() {
        let groups = [
            vec![ticket(2, 50, 100, 10)],
            vec![ticket(1, 30, 80, 4), ticket(1, 15, 120, 7)],
        ];
        let quality = MatchQuality::of(&groups, 10);
        assert_eq!(
            (
                quality.power_gap,
                quality.spread,
                quality.party_count_difference
            ),
            (5, 40, 1)
        );
        assert_eq!(
            (quality.waited_ticks_mean, quality.waited_ticks_max),
            (3, 6)
        );
        assert!((quality.win_chance - 0.5).abs() < 1e-12);
        assert!((quality.fairness() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn quality_of_an_empty_match_is_defined() {
        assert_eq!(MatchQuality::of(&[vec![], vec![]], 5).waited_ticks_max, 0);
    }
}
