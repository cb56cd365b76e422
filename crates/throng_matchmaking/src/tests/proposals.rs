//! Matches that have to be accepted, and running ones that are backfilled.

use super::*;
use crate::Backfill;

fn matcher_with_accept() -> MatchmakingCore {
    matcher(GroupModeSettings {
        accept_timeout_s: 10.0,
        ..mode(1)
    })
}

fn heartbeat(matcher: &mut MatchmakingCore, now_tick: u64) -> HeartbeatOutcome {
    let mut beat = HeartbeatOutcome::default();
    matcher.run_heartbeat(now_tick, &mut beat);
    assert!(matcher.modes()[0].tickets_conserved());
    beat
}

#[test]
fn match_starts_when_the_last_player_accepts() {
    let mut matcher = matcher_with_accept();
    for party in [1, 2] {
        matcher.enqueue(ticket(party, 1, 0, 0)).unwrap();
    }
    let found = heartbeat(&mut matcher, 10);
    assert!(found.matches.is_empty() && found.proposed.len() == 1);
    assert_eq!(matcher.waiting_parties(), 2);
    assert_eq!(
        matcher.wait_reason(1),
        Some(WaitReason::Proposed { id: 0, missing: 2 })
    );
    assert_eq!(
        matcher.enqueue(ticket(1, 1, 0, 0)),
        Err(TicketError::PartyAlreadyQueued { party: 1.into() })
    );
    assert_eq!(matcher.accept(10, 20), Ok(None));
    assert_eq!(
        matcher.accept(10, 20),
        Ok(None),
        "accepting twice changes nothing"
    );
    assert_eq!(
        matcher.accept(99, 20),
        Err(TicketError::NoProposedMatch { player: 99.into() })
    );
    let on = matcher.accept(20, 30).unwrap();
    assert_eq!(on, Some(found.proposed[0].clone()));
    assert_eq!(
        (matcher.waiting_parties(), matcher.waiting_players()),
        (0, 0)
    );
    let stats = matcher.stats(ModeId(0)).unwrap();
    assert_eq!(
        (stats.matches, stats.matched_parties, stats.proposed),
        (1, 2, 0)
    );
    assert_eq!(
        stats.wait_ticks.max(),
        30,
        "the time of the proposal is waiting time"
    );
}

#[test]
fn declining_party_leaves_and_others_keep_their_position() {
    for leaves in [false, true] {
        let mut matcher = matcher_with_accept();
        for party in [1, 2] {
            matcher
                .enqueue(ticket(party, 1, 0, u64::from(party)))
                .unwrap();
        }
        heartbeat(&mut matcher, 10);
        matcher.enqueue(ticket(3, 1, 0, 15)).unwrap();
        let out = if leaves {
            matcher.remove_player(20)
        } else {
            matcher.decline(20).ok()
        };
        assert_eq!(out, Some(ticket(2, 1, 0, 2)));
        assert_eq!(waiting(&matcher), [ticket(1, 1, 0, 1), ticket(3, 1, 0, 15)]);
        let stats = matcher.stats(ModeId(0)).unwrap();
        assert_eq!(
            (stats.cancelled, stats.dissolved, stats.proposed),
            (1, 1, 0)
        );
        let next = heartbeat(&mut matcher, 20);
        assert_eq!(next.proposed[0].groups[0], [ticket(1, 1, 0, 1)]);
        assert_eq!(
            matcher.decline(77),
            Err(TicketError::NoProposedMatch { player: 77.into() })
        );
    }
}

#[test]
fn declining_player_is_penalised_and_not_proposed_again() {
    let mut matcher = matcher_with_accept();
    let mut proposals = 0;
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    for nth in 0..60u32 {
        let now_tick = 10 * u64::from(nth);
        // The same player returns at once with another party, and declines each time.
        let members = [20u64.into()].into_iter().collect();
        let come = matcher.enqueue(Ticket {
            members,
            ..ticket(2 + nth, 1, 0, now_tick)
        });
        let barred = nth > 0;
        assert_eq!(come.is_err(), barred, "at {now_tick}");
        proposals += heartbeat(&mut matcher, now_tick).proposed.len();
        let _ = matcher.decline(20);
    }
    assert_eq!(proposals, 1);
    heartbeat(&mut matcher, 600);
    let members = [20u64.into()].into_iter().collect();
    let come = matcher.enqueue(Ticket {
        members,
        ..ticket(90, 1, 0, 600)
    });
    assert_eq!(come, Ok(()), "thirty seconds later");
}

#[test]
fn silent_party_is_removed_at_the_accept_timeout() {
    let mut matcher = matcher_with_accept();
    for party in [1, 2] {
        matcher.enqueue(ticket(party, 1, 0, 0)).unwrap();
    }
    heartbeat(&mut matcher, 10);
    matcher.accept(20, 11).unwrap();
    assert!(heartbeat(&mut matcher, 209).expired.is_empty());
    assert_eq!(heartbeat(&mut matcher, 210).expired, [ticket(1, 1, 0, 0)]);
    assert_eq!(waiting(&matcher), [ticket(2, 1, 0, 0)]);
    assert_eq!(matcher.stats(ModeId(0)).unwrap().expired, 1);
}

#[test]
fn backfill_adds_exactly_the_missing_players() {
    let mut matcher = matcher(GroupModeSettings {
        skill_window_start: 100,
        ..mode(5)
    });
    for (party, size, skill) in [(1, 2, 90), (2, 2, 40), (3, 1, -60), (4, 1, 150), (5, 4, 0)] {
        matcher.enqueue(ticket(party, size, skill, 0)).unwrap();
    }
    let mut wanted = Backfill {
        missing: 3,
        level: 1,
        ..Backfill::default()
    };
    let joined = matcher.backfill(ModeId(0), &wanted, 0);
    let parties: Vec<u32> = joined.iter().map(|ticket| ticket.party.number()).collect();
    assert_eq!(parties, [2, 3]);
    assert_eq!(matcher.party_of(20), None);
    wanted.missing = 1;
    assert!(
        matcher.backfill(ModeId(0), &wanted, 0).is_empty(),
        "party 4 is too far"
    );
    assert_eq!(matcher.waiting_parties(), 3);
    assert!(matcher.modes()[0].tickets_conserved());
    for missing in [0, 6, u8::MAX] {
        wanted.missing = missing;
        assert!(matcher.backfill(ModeId(0), &wanted, 0).is_empty());
    }
}

#[test]
fn incompatible_party_does_not_block_a_backfill() {
    let mut matcher = matcher(mode(5));
    let wishing = |party: u32, skill: i32, avoid: &[u64], regions: u32| Ticket {
        preferences: Some(Box::new(crate::TicketPreferences {
            avoid: avoid.iter().copied().map(Into::into).collect(),
            regions,
            ..Default::default()
        })),
        ..ticket(party, 1, skill, 0)
    };
    // The nearest avoids the two others; of the rest, two pairs share a region each, but no three.
    matcher.enqueue(wishing(1, 0, &[20, 30], 0)).unwrap();
    matcher.enqueue(wishing(2, 1, &[], 0b011)).unwrap();
    matcher.enqueue(wishing(3, 2, &[], 0b110)).unwrap();
    matcher.enqueue(wishing(4, 3, &[], 0b101)).unwrap();
    let mut wanted = Backfill {
        missing: 3,
        level: 1,
        ..Backfill::default()
    };
    assert!(matcher.backfill(ModeId(0), &wanted, 0).is_empty());
    wanted.missing = 2;
    let joined = matcher.backfill(ModeId(0), &wanted, 0);
    let parties: Vec<u32> = joined.iter().map(|ticket| ticket.party.number()).collect();
    assert_eq!(parties, [1, 4]);
    wanted.avoid = vec![20.into()];
    assert!(matcher.backfill(ModeId(0), &wanted, 0).is_empty());
    wanted.avoid.clear();
    assert_eq!(matcher.backfill(ModeId(0), &wanted, 0).len(), 2);
}

#[test]
fn partners_of_a_priority_party_are_kept_from_backfills() {
    let mut matcher = matcher(mode(5));
    matcher.enqueue(ticket(1, 5, 9000, 0)).unwrap();
    for party in 2..7u32 {
        let now_tick = 1200 + 10 * u64::from(party);
        matcher.enqueue(ticket(party, 1, 0, now_tick)).unwrap();
        let wanted = Backfill {
            missing: 1,
            level: 1,
            ..Backfill::default()
        };
        assert!(matcher.backfill(ModeId(0), &wanted, now_tick).is_empty());
    }
    assert_eq!(heartbeat(&mut matcher, 1300).matches.len(), 1);
}

#[test]
fn backfill_picks_the_nearest_power_with_the_required_role() {
    let mut matcher = matcher(mode(5));
    for (party, power, role) in [(1, 10, 0), (2, 500, 0), (3, 90, 1), (4, 1000, 1)] {
        let mut wishes = crate::TicketPreferences::default();
        wishes.roles[role] = 1;
        let wishes = Some(Box::new(wishes));
        matcher
            .enqueue(Ticket {
                power,
                preferences: wishes,
                ..ticket(party, 1, party as i32, 0)
            })
            .unwrap();
    }
    let wanted = Backfill {
        missing: 2,
        level: 1,
        roles: [0, 1, 0, 0],
        power: Some(600),
        ..Backfill::default()
    };
    let joined = matcher.backfill(ModeId(0), &wanted, 0);
    let parties: Vec<u32> = joined.iter().map(|ticket| ticket.party.number()).collect();
    assert_eq!(parties, [2, 3]);
}

#[test]
fn proposed_parties_count_against_the_ticket_limit() {
    let mut matcher = matcher(GroupModeSettings {
        accept_timeout_s: 10.0,
        tickets_max: 2,
        ..mode(1)
    });
    for party in [1, 2] {
        matcher.enqueue(ticket(party, 1, 0, 0)).unwrap();
    }
    let full = Err(TicketError::QueueFull {
        party: 3.into(),
        tickets_max: 2,
    });
    assert_eq!(matcher.enqueue(ticket(3, 1, 0, 0)), full, "both wait");
    assert_eq!(heartbeat(&mut matcher, 10).proposed.len(), 1);
    assert_eq!(matcher.enqueue(ticket(3, 1, 0, 0)), full, "both may return");
    matcher.decline(20).unwrap();
    assert_eq!(matcher.enqueue(ticket(3, 1, 0, 0)), Ok(()));
    assert_eq!(matcher.stats(ModeId(0)).unwrap().refused, 2);
}

#[test]
fn decline_penalty_counts_from_the_last_response() {
    let mut matcher = matcher_with_accept();
    for party in [1, 2] {
        matcher.enqueue(ticket(party, 1, 0, 0)).unwrap();
    }
    heartbeat(&mut matcher, 10);
    assert_eq!(matcher.accept(10, 50), Ok(None));
    matcher.decline(20).unwrap();
    let until_tick = 50 + 30 * 20;
    assert_eq!(
        matcher.enqueue(ticket(2, 1, 0, 50)),
        Err(TicketError::DeclinePenalty {
            party: 2.into(),
            player: 20.into(),
            until_tick
        })
    );
}

#[test]
fn backfill_takes_no_party_that_avoids_a_player_of_the_match() {
    let mut matcher = matcher(mode(5));
    let wishes = crate::TicketPreferences {
        avoid: [77_u64.into()].into_iter().collect(),
        ..Default::default()
    };
    let shy = Ticket {
        preferences: Some(Box::new(wishes)),
        ..ticket(1, 1, 0, 0)
    };
    matcher.enqueue(shy).unwrap();
    matcher.enqueue(ticket(2, 1, 5, 0)).unwrap();
    let mut wanted = Backfill {
        missing: 1,
        level: 1,
        players: vec![76.into(), 77.into()],
        ..Backfill::default()
    };
    let joined = matcher.backfill(ModeId(0), &wanted, 0);
    assert_eq!(joined, [ticket(2, 1, 5, 0)], "party 1 is nearer");
    assert!(matcher.backfill(ModeId(0), &wanted, 0).is_empty());
    wanted.players = vec![76.into()];
    assert_eq!(matcher.backfill(ModeId(0), &wanted, 0).len(), 1);
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn responses_in_any_order_conserve_tickets(answers in prop::collection::vec((0u64..120, 0u8..8), 0..200)) {
        let mut matcher = matcher_with_accept();
        let mut matched = 0;
        for (nth, &(player, what)) in answers.iter().enumerate() {
            let now_tick = 3 * nth as u64;
            match what {
                0..3 => drop(matcher.enqueue(ticket(player as u32 / 10, 1, 0, now_tick))),
                3..5 => matched += u64::from(matcher.accept(player / 10 * 10, now_tick).is_ok_and(|on| on.is_some())),
                5 => drop(matcher.decline(player / 10 * 10)),
                6 => drop(matcher.remove_player(player)),
                _ => drop(heartbeat(&mut matcher, now_tick)),
            }
            prop_assert!(matcher.modes()[0].tickets_conserved());
            prop_assert_eq!(matcher.waiting_parties() as u64, matcher.modes()[0].waiting_parties());
            prop_assert_eq!(matcher.waiting_players(), matcher.waiting_parties());
        }
        prop_assert_eq!(matcher.stats(ModeId(0)).unwrap().matches, matched);
    }
}

#[test]
fn party_with_a_penalised_member_is_refused() {
    let mut matcher = matcher(GroupModeSettings {
        accept_timeout_s: 10.0,
        decline_penalty_s: 30.0,
        ..mode(2)
    });
    for party in [1, 2] {
        matcher.enqueue(ticket(party, 2, 0, 0)).unwrap();
    }
    heartbeat(&mut matcher, 10);
    matcher.decline(20).unwrap();
    let until_tick = 10 + 30 * 20;
    for barred in [20_u64, 21] {
        // With a player who has no penalty, first or second.
        for members in [[barred, 30], [30, barred]] {
            let party = Ticket {
                members: members.into_iter().map(TicketPlayer::from).collect(),
                ..ticket(3, 2, 0, 20)
            };
            let refused = TicketError::DeclinePenalty {
                party: 3.into(),
                player: barred.into(),
                until_tick,
            };
            assert_eq!(matcher.enqueue(party), Err(refused));
        }
    }
    heartbeat(&mut matcher, until_tick);
    assert_eq!(matcher.enqueue(ticket(2, 2, 0, until_tick)), Ok(()));
}
