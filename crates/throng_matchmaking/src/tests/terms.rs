//! Preferences, levels, roles and rematches against brute force.

use super::*;
use crate::pack::exact::PARTIES_MAX;
use crate::rematch::Rematches;
use crate::ticket::{ROLE_COUNT, TicketPreferences};

/// The first of the parties without a possible match.
const STRAY: u32 = 1000;

/// A party of a random queue.
#[derive(Clone, Debug)]
struct Drawn {
    size: u8,
    skill: i32,
    level: u16,
    avoid: Option<u8>,
    regions: u32,
    role: usize,
    since_tick: u64,
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let party = (
        1u8..=4,
        -30i32..30,
        1u16..20,
        prop::option::weighted(0.3, 0u8..14),
        prop::sample::select(vec![0u32, 0, 1, 2, 3]),
        0..ROLE_COUNT,
        0u64..1100,
    );
    let party = party.prop_map(
        |(size, skill, level, avoid, regions, role, since_tick)| Drawn {
            size,
            skill,
            level,
            avoid,
            regions,
            role,
            since_tick,
        },
    );
    prop::collection::vec(party, 0..13)
}

fn ticket_of(party: u32, drawn: &Drawn) -> Ticket {
    let mut roles = [0; ROLE_COUNT];
    roles[drawn.role] = drawn.size;
    Ticket {
        level: drawn.level,
        preferences: Some(Box::new(TicketPreferences {
            avoid: drawn
                .avoid
                .map(|party| (10 * u64::from(party)).into())
                .into_iter()
                .collect(),
            regions: drawn.regions,
            roles,
        })),
        ..ticket(party, drawn.size, drawn.skill, drawn.since_tick)
    }
}

/// Whether these parties, oldest first, are an allowed match at `now_tick`, directly by the rules.
fn is_allowed(
    parties: &[&Ticket],
    rules: &GroupModeTickSettings,
    met: &Rematches,
    now_tick: u64,
) -> bool {
    let waited = |ticket: &Ticket| ticket.waited_ticks(now_tick);
    let Some(oldest) = parties.first() else {
        return false;
    };
    let levels = || parties.iter().map(|ticket| u32::from(ticket.level));
    let skills = || parties.iter().map(|ticket| ticket.skill);
    let spread = skills().max().unwrap().abs_diff(skills().min().unwrap());
    let band = levels().max().unwrap() - levels().min().unwrap();
    let wishes = |ticket: &Ticket| ticket.preferences.clone().unwrap_or_default();
    let regions = |ticket: &Ticket| match wishes(ticket).regions {
        0 => u32::MAX,
        regions => regions,
    };
    let avoids = |one: &Ticket, other: &Ticket| {
        one.party != other.party
            && waited(one) < rules.limits_off_after_ticks
            && waited(other) < rules.limits_off_after_ticks
            && other
                .members
                .iter()
                .any(|player| wishes(one).avoid.contains(player))
    };
    let quarrel = parties
        .iter()
        .any(|one| parties.iter().any(|other| avoids(one, other)));
    // A priority party is matched all the same.
    if quarrel && waited(oldest) < rules.priority_after_ticks
        || spread > rules.window_at(waited(oldest))
        || band > rules.level_band_at(waited(oldest))
        || parties
            .iter()
            .fold(u32::MAX, |shared, ticket| shared & regions(ticket))
            == 0
    {
        return false;
    }
    (0u32..1 << parties.len()).any(|mask| {
        let side = |bit: u32| {
            let of_side = (0..parties.len()).filter(move |at| mask >> at & 1 == bit);
            of_side.map(|at| parties[at]).collect::<Vec<&Ticket>>()
        };
        let sides = [side(0), side(1)];
        let full = |side: &Vec<&Ticket>| {
            side.iter().map(|ticket| ticket.size).sum::<u8>() == rules.group_size
                && (0..ROLE_COUNT).all(|role| {
                    let filled = side
                        .iter()
                        .map(|ticket| wishes(ticket).roles[role])
                        .sum::<u8>();
                    filled >= rules.roles[role]
                })
        };
        let players = |side: &Vec<&Ticket>| {
            let members = side
                .iter()
                .flat_map(|ticket| ticket.members.iter().copied());
            members.collect::<Vec<TicketPlayer>>()
        };
        let (one, other) = (players(&sides[0]), players(&sides[1]));
        sides.iter().all(full)
            && !one
                .iter()
                .any(|&a| other.iter().any(|&b| met.were_opponents(a, b)))
    })
}

#[test]
fn opponents_do_not_rematch_before_the_cooldown() {
    let mut matcher = matcher(GroupModeSettings {
        rematch_cooldown_s: 60.0,
        ..mode(1)
    });
    for now_tick in [0, 10, 1190, 1200] {
        for party in [1, 2] {
            let _ = matcher.enqueue(ticket(party, 1, 0, now_tick));
        }
        let made = run(&mut matcher, now_tick).0.len();
        assert_eq!(
            made,
            usize::from([0, 1200].contains(&now_tick)),
            "at {now_tick}"
        );
    }
}

#[test]
fn recent_opponents_can_be_on_one_side() {
    let mut matcher = matcher(GroupModeSettings {
        rematch_cooldown_s: 60.0,
        ..mode(2)
    });
    for round in 0..2u32 {
        for party in 4 * round..4 * round + 4 {
            // The same four players under new party ids.
            let members = [u64::from(party % 4).into()].into_iter().collect();
            let _ = matcher.enqueue(Ticket {
                members,
                ..ticket(party, 1, 0, u64::from(round))
            });
        }
    }
    let first = &run(&mut matcher, 0).0[0];
    let side = |groups: &[Vec<Ticket>; 2], player: u64| {
        groups[0]
            .iter()
            .any(|ticket| ticket.members.contains(&player.into()))
    };
    let groups = first.groups.clone();
    for party in 4..8 {
        let members = [u64::from(party % 4).into()].into_iter().collect();
        matcher
            .enqueue(Ticket {
                members,
                ..ticket(party, 1, 0, 10)
            })
            .unwrap();
    }
    // Any split of four players has opponents of the first one on two sides.
    assert!(run(&mut matcher, 10).0.is_empty());
    for party in [20, 21] {
        matcher.enqueue(ticket(party, 1, 0, 10)).unwrap();
    }
    let again = run(&mut matcher, 10).0.remove(0);
    for a in 0..4 {
        for b in 0..4 {
            let played = [a, b].iter().all(|&player| {
                again
                    .groups
                    .iter()
                    .flatten()
                    .any(|ticket| ticket.members.contains(&player.into()))
            });
            if played && side(&groups, a) != side(&groups, b) {
                assert_eq!(side(&again.groups, a), side(&again.groups, b));
            }
        }
    }
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn no_match_that_the_terms_allow_is_left(
        group_size in 1u8..=5,
        roles in any::<bool>(),
        rematch in any::<bool>(),
        large in any::<bool>(),
        parties in drawn(),
    ) {
        let settings = GroupModeSettings {
            skill_window_widen_per_s: 1,
            level_band_start: 3,
            candidates_per_heartbeat_max: 1 << 30,
            level_band_widen_per_s: 1,
            rematch_cooldown_s: if rematch { 1e6 } else { 0.0 },
            roles: if roles && group_size > 1 { [1, 0, 0, 0] } else { [0; ROLE_COUNT] },
            ..mode(group_size)
        };
        let mut matcher = matcher(settings);
        let mut met = Rematches::default();
        for (party, drawn) in (0..).zip(&parties) {
            let _ = matcher.enqueue(ticket_of(party, drawn));
        }
        // Parties without a possible match make the pool too large to be solved exactly.
        for stray in 0..if large { PARTIES_MAX as u32 + 1 } else { 0 } {
            let skill = 100_000 * (stray as i32 + 1);
            matcher.enqueue(ticket(STRAY + stray, 1, skill, 1100)).unwrap();
        }
        let rules = rules_of(&matcher);
        // The same players return after each heartbeat, so that rematches matter.
        for now_tick in [1100, 1110, 1210] {
            let (matches, _) = run(&mut matcher, now_tick);
            for made in &matches {
                let mut all: Vec<&Ticket> = made.groups.iter().flatten().collect();
                all.sort_by_key(|ticket| ticket.since_tick);
                prop_assert!(is_allowed(&all, &rules, &met, now_tick));
                for (group, side) in made.groups.iter().zip([false, true]) {
                    for &player in group.iter().flat_map(|ticket| &ticket.members) {
                        if rules.rematch_cooldown_ticks > 0 {
                            met.record(player, made.id, side, now_tick);
                        }
                    }
                }
            }
            let mut left = waiting(&matcher);
            left.retain(|ticket| ticket.party < STRAY.into());
            for mask in 1u32..1 << left.len() {
                let set: Vec<&Ticket> = (0..left.len())
                    .filter(|at| mask >> at & 1 == 1)
                    .map(|at| &left[at])
                    .collect();
                let players: u32 = set.iter().map(|ticket| u32::from(ticket.size)).sum();
                if players == 2 * u32::from(group_size) {
                    prop_assert!(!is_allowed(&set, &rules, &met, now_tick), "{:?}", set);
                }
            }
            for ticket in matches.iter().flat_map(|made| made.groups.iter().flatten()) {
                let since_tick = now_tick;
                let _ = matcher.enqueue(Ticket { since_tick, ..ticket.clone() });
            }
        }
    }

    #[test]
    fn small_pools_are_matched_optimally(
        group_size in 1u8..=5,
        parties in prop::collection::vec((1u8..=5, 0u32..1000), 0..=PARTIES_MAX),
    ) {
        let mut matcher = matcher(GroupModeSettings { skill_window_start: UNLIMITED, ..mode(group_size) });
        for (party, &(size, power)) in (0..).zip(&parties) {
            let _ = matcher.enqueue(Ticket { power, ..ticket(party, size, 0, 0) });
        }
        let tickets = waiting(&matcher);
        let (matches, _) = run(&mut matcher, 0);
        let gaps: u64 = matches.iter().map(|made| made.quality.power_gap).sum();
        let found = (matches.len() as u32, gaps);
        prop_assert_eq!(found, workload::best_by_brute_force(&tickets, group_size));
    }
}
