//! The maximum cost of a heartbeat, and parties without a possible match that do not delay others.

use super::*;
use crate::ticket::{ROLE_COUNT, TicketPreferences};

fn ticket_with_preferences(
    party: u32,
    size: u8,
    skill: i32,
    since_tick: u64,
    wishes: TicketPreferences,
) -> Ticket {
    Ticket {
        preferences: Some(Box::new(wishes)),
        ..ticket(party, size, skill, since_tick)
    }
}

fn avoid_list(players: &[u64]) -> TicketPreferences {
    TicketPreferences {
        avoid: players.iter().copied().map(Into::into).collect(),
        ..TicketPreferences::default()
    }
}

#[test]
fn oldest_parties_of_a_small_region_do_not_block_others() {
    let mut matcher = matcher(GroupModeSettings {
        candidates_per_heartbeat_max: 20_000,
        limits_off_after_s: 0.0,
        matches_per_heartbeat_max: 10,
        ..mode(5)
    });
    // More parties wait than are packed.
    for party in 0..25_000u32 {
        let regions = if party < 9 { 0b10 } else { 0b01 };
        let wishes = TicketPreferences {
            regions,
            ..TicketPreferences::default()
        };
        let skill = (party % 1000) as i32;
        matcher
            .enqueue(ticket_with_preferences(
                party,
                1,
                skill,
                u64::from(party),
                wishes,
            ))
            .unwrap();
    }
    assert_eq!(run(&mut matcher, 30_000).0.len(), 10);
}

#[test]
fn unmatchable_parties_leave_half_of_the_candidates_to_others() {
    let roles = [2, 0, 0, 0];
    let mut matcher = matcher(GroupModeSettings {
        candidates_per_heartbeat_max: 20_000,
        limits_off_after_s: 1e6,
        skill_window_start: 1000,
        matches_per_heartbeat_max: 10,
        roles,
        ..mode(5)
    });
    let plays = |role: u8| TicketPreferences {
        roles: [role, 0, 0, 0],
        ..TicketPreferences::default()
    };
    // The oldest are far away from all parties that play the role, among thousands that do not.
    for party in 0..25_000u32 {
        let (skill, role) = if (100..20_000).contains(&party) {
            (1_000_000 + party as i32, 1)
        } else {
            (party as i32 % 100, 0)
        };
        matcher
            .enqueue(ticket_with_preferences(
                party,
                1,
                skill,
                u64::from(party),
                plays(role),
            ))
            .unwrap();
    }
    let mut made = 0;
    for now_tick in (30_000..30_200).step_by(10) {
        made += run(&mut matcher, now_tick).0.len();
    }
    assert!(made >= 100, "{made}");
    assert!(matcher.stats(ModeId(0)).unwrap().candidates_exhausted > 0);
}

#[test]
fn missing_role_costs_no_search() {
    let mut matcher = matcher(GroupModeSettings {
        roles: [1, 0, 0, 0],
        skill_window_start: UNLIMITED,
        ..mode(10)
    });
    for party in 0..5_000u32 {
        let size = 1 + (party % 3) as u8;
        matcher
            .enqueue(ticket(party, size, 0, u64::from(party)))
            .unwrap();
    }
    assert!(run(&mut matcher, 6_000).0.is_empty());
    assert_eq!(matcher.stats(ModeId(0)).unwrap().searches_capped, 0);
    assert_eq!(matcher.stats(ModeId(0)).unwrap().candidates_exhausted, 0);
}

#[test]
fn heartbeat_stays_within_its_limit_when_all_are_rematches() {
    let mut matcher = matcher(GroupModeSettings {
        rematch_cooldown_s: 1e6,
        skill_window_start: UNLIMITED,
        candidates_per_heartbeat_max: 50_000,
        ..mode(10)
    });
    // Twenty single players who all play, and return together with similar parties.
    for now_tick in (0..400).step_by(10) {
        for party in 0..60 {
            let _ = matcher.enqueue(ticket(party, 1, party as i32, now_tick));
        }
        run(&mut matcher, now_tick);
        let MatchMode::Groups(groups) = &matcher.modes()[0] else {
            panic!("a mode of groups")
        };
        // A search exceeds its share by one set at most.
        assert!(
            groups.examined() <= 50_000 + 10_000,
            "{}",
            groups.examined()
        );
    }
}

#[test]
fn party_avoided_by_all_is_matched_at_the_wait_bound() {
    let mut matcher = matcher(GroupModeSettings {
        priority_after_s: 75.0,
        ..mode(1)
    });
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    let mut matched_at = None;
    for now_tick in (0..=1500).step_by(10) {
        let party = 2 + now_tick as u32;
        matcher
            .enqueue(ticket_with_preferences(
                party,
                1,
                0,
                now_tick,
                avoid_list(&[10]),
            ))
            .unwrap();
        let (matches, _) = run(&mut matcher, now_tick);
        let of_one = |made: &&Match| made.groups[0][0].party == 1;
        if matches.iter().any(|made| of_one(&made)) {
            matched_at = Some(now_tick);
        }
        let _ = matcher.cancel(party);
    }
    // The other's avoid list is ignored once the avoided party's own limits are off.
    assert_eq!(matched_at, Some(1200));
}

#[test]
fn priority_party_is_matched_although_partners_avoid_each_other() {
    let mut matcher = matcher(mode(2));
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    for party in 2..5u32 {
        let others: Vec<u64> = (2..5)
            .filter(|&other| other != party)
            .map(|other| 10 * u64::from(other))
            .collect();
        matcher
            .enqueue(ticket_with_preferences(
                party,
                1,
                0,
                1000,
                avoid_list(&others),
            ))
            .unwrap();
    }
    assert!(run(&mut matcher, 1190).0.is_empty());
    assert_eq!(run(&mut matcher, 1200).0.len(), 1);
}

#[test]
fn uneven_match_does_not_stop_the_search() {
    let mut matcher = matcher(GroupModeSettings {
        power_gap_start: 500,
        power_gap_widen_per_s: 0,
        skill_window_start: UNLIMITED,
        ..mode(1)
    });
    let of_power = |party: u32, skill: i32, power: u32| Ticket {
        power,
        ..ticket(party, 1, skill, 0)
    };
    matcher.enqueue(of_power(1, 0, 1000)).unwrap();
    matcher.enqueue(of_power(2, 1, 3000)).unwrap();
    matcher.enqueue(of_power(3, 2, 1000)).unwrap();
    // Parties without a possible match make the pool too large to be solved exactly.
    for stray in 0..12 {
        matcher
            .enqueue(of_power(10 + stray, 50, 10_000 * (stray + 1)))
            .unwrap();
    }
    let (matches, _) = run(&mut matcher, 0);
    assert_eq!(matches.len(), 1);
    let met: Vec<u32> = matches[0]
        .groups
        .iter()
        .flatten()
        .map(|t| t.party.number())
        .collect();
    assert_eq!(met, [1, 3]);
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn no_match_within_the_power_gap_is_left(
        group_size in 1u8..=4,
        limit in 0u32..40,
        parties in prop::collection::vec((1u8..=4, 0u32..200), 0..12),
    ) {
        let mut matcher = matcher(GroupModeSettings {
            power_gap_start: limit,
            power_gap_widen_per_s: 0,
            skill_window_start: 50,
            ..mode(group_size)
        });
        for (party, &(size, power)) in (0..).zip(&parties) {
            let _ = matcher.enqueue(Ticket { power, ..ticket(party, size, 0, 0) });
        }
        for stray in 0..15 {
            matcher.enqueue(ticket(1000 + stray, 1, 100_000 * (stray as i32 + 1), 0)).unwrap();
        }
        for made in run(&mut matcher, 0).0 {
            prop_assert!(made.quality.power_gap <= u64::from(limit));
        }
        let mut left = waiting(&matcher);
        left.retain(|ticket| ticket.party < 1000.into());
        for mask in 0u32..1 << left.len() {
            for half in 0u32..1 << left.len() {
                if half & mask != half {
                    continue;
                }
                let side = |bits: u32| {
                    let members = (0..left.len()).filter(|at| bits >> at & 1 == 1).map(|at| &left[at]);
                    members.fold((0, 0), |sum, t| (sum.0 + t.size, sum.1 + t.power))
                };
                let (one, other) = (side(half), side(mask & !half));
                let full = one.0 == group_size && other.0 == group_size;
                prop_assert!(!full || one.1.abs_diff(other.1) > limit, "{:?}", left);
            }
        }
    }

    #[test]
    fn oldest_matchable_priority_party_is_served_each_heartbeat(
        group_size in prop::sample::select(vec![1u8, 5, 10]),
        matches_per_heartbeat_max in 1u32..3,
        parties in prop::collection::vec((1u8..=5, -4000i32..4000, 0u64..2000, 0u8..4, prop::option::of(0u32..30)), 0..40),
    ) {
        let mut matcher = matcher(GroupModeSettings { matches_per_heartbeat_max, ..mode(group_size) });
        for (party, &(size, skill, since_tick, regions, avoid)) in (0u32..).zip(&parties) {
            let wishes = TicketPreferences {
                regions: u32::from(regions),
                ..avoid_list(&avoid.map(|party| 10 * u64::from(party)).into_iter().collect::<Vec<_>>())
            };
            let level = (party * 7 % 60) as u16;
            let _ = matcher.enqueue(Ticket { level, ..ticket_with_preferences(party, size, skill, since_tick, wishes) });
        }
        for now_tick in (2000..4000).step_by(100) {
            let before = waiting(&matcher);
            let (matches, _) = run(&mut matcher, now_tick);
            let mut table = CompositionTable::new(group_size);
            let region = |ticket: &Ticket| match ticket.preferences.as_ref().map_or(0, |wishes| wishes.regions) {
                0 => u32::MAX,
                regions => regions,
            };
            for (rank, overdue) in before.iter().enumerate() {
                if overdue.waited_ticks(now_tick) < 1200 {
                    break;
                }
                let could = (0..32).any(|bit| {
                    let here = |ticket: &&Ticket| region(ticket) >> bit & 1 == 1;
                    let others = before.iter().filter(|other| other.party != overdue.party);
                    here(&overdue) && table.fits(&counts([overdue]), &counts(others.filter(here)))
                });
                let older = |party: u32| before[..=rank].iter().any(|ticket| ticket.party == party);
                let served = matches.iter().any(|made| {
                    made.groups.iter().flatten().any(|ticket| older(ticket.party.number()))
                });
                prop_assert!(!could || served, "{:?} at {}", overdue, now_tick);
            }
        }
    }
}

#[test]
fn two_longer_waiting_parties_are_served_before_a_third() {
    let mut matcher = matcher(mode(5));
    // The first needs the second and four single players; two are left, which are too few for the third.
    for (party, size) in [
        (1, 3),
        (2, 3),
        (3, 4),
        (4, 1),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 1),
        (9, 1),
    ] {
        matcher.enqueue(ticket(party, size, 0, 0)).unwrap();
    }
    let first = run(&mut matcher, 2000).0;
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].groups[0][0].party, 1);
    assert_eq!(matcher.party_of(30), Some(3.into()));
    // No party has waited longer now, and with four more there are enough for it.
    for party in 10..14 {
        matcher.enqueue(ticket(party, 1, 9000, 2000)).unwrap();
    }
    assert_eq!(run(&mut matcher, 2010).0[0].groups[0][0].party, 3);
}

#[test]
fn small_pool_does_not_trade_skill_for_balance() {
    let mut matcher = matcher(GroupModeSettings {
        skill_window_widen_per_s: 1000,
        ..mode(1)
    });
    for (party, skill, power) in [(1, 0, 100), (2, 1, 101), (3, 10_000, 100), (4, 10_001, 101)] {
        matcher
            .enqueue(Ticket {
                power,
                ..ticket(party, 1, skill, 0)
            })
            .unwrap();
    }
    // There are no priority parties yet, but the windows hold all four.
    let (matches, _) = run(&mut matcher, 1100);
    assert_eq!(matches.len(), 2);
    assert!(matches.iter().all(|made| made.quality.spread == 1));
}

#[test]
fn more_roles_than_players_are_refused() {
    let mut matcher = matcher(mode(5));
    let mut liar = ticket_with_preferences(1, 1, 0, 0, TicketPreferences::default());
    liar.preferences.as_mut().unwrap().roles = [255; ROLE_COUNT];
    assert_eq!(
        matcher.enqueue(liar),
        Err(TicketError::Roles {
            party: 1.into(),
            size: 1,
            roles: 1020
        })
    );
    assert_eq!(matcher.waiting_parties(), 0);
}
