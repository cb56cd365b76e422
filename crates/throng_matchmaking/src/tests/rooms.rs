//! Rooms: which parties gather with which.

use super::*;
use crate::RoomModeSettings;
use crate::rooms::mode::SPECTATORS_MAX;

fn rooms(settings: RoomModeSettings) -> MatchmakingCore {
    MatchmakingCore::new(&[MatchModeSettings::Rooms(settings)], 20.0).expect("valid settings")
}

fn settings(side_size: u8) -> RoomModeSettings {
    RoomModeSettings {
        side_size,
        strength_start: 100,
        strength_widen_per_s: 0,
        rank_weight_percent: 0,
        expire_after_s: 0.0,
        ..RoomModeSettings::default()
    }
}

fn party(party: u32, size: u8, leader_strength: u32, since_tick: u64) -> Ticket {
    Ticket {
        leader_strength,
        ..ticket(party, size, 0, since_tick)
    }
}

fn room_mates(matcher: &MatchmakingCore, of: u32) -> Vec<u32> {
    let MatchMode::Rooms(rooms) = &matcher.modes()[0] else {
        panic!("a mode of rooms")
    };
    let slot = rooms
        .queue()
        .iter()
        .find(|(_, ticket)| ticket.party == of)
        .unwrap()
        .0;
    let mut mates: Vec<u32> = rooms
        .room_of(slot)
        .map(|ticket| ticket.party.number())
        .collect();
    mates.sort_unstable();
    mates
}

#[test]
fn incomplete_rooms_merge_and_exact_fits_fill_them() {
    let mut matcher = rooms(settings(3));
    for (id, size) in [(1, 1), (2, 1), (3, 2)] {
        matcher
            .enqueue(party(id, size, 500, u64::from(id)))
            .unwrap();
    }
    assert!(run(&mut matcher, 10).0.is_empty());
    assert_eq!(room_mates(&matcher, 1), [1, 2, 3]);
    assert_eq!(
        matcher.wait_reason(3),
        Some(WaitReason::InRoom {
            players: 4,
            missing: 2
        })
    );
    // A party of three fits no side, a party of two fills the room.
    matcher.enqueue(party(4, 3, 500, 11)).unwrap();
    matcher.enqueue(party(5, 2, 500, 12)).unwrap();
    let made = run(&mut matcher, 20).0.remove(0);
    let mut met: Vec<u32> = made
        .groups
        .iter()
        .flatten()
        .map(|ticket| ticket.party.number())
        .collect();
    met.sort_unstable();
    assert_eq!(met, [1, 2, 3, 5]);
    assert_eq!(matcher.waiting_parties(), 1);
}

#[test]
fn leaders_too_far_apart_wait_until_limits_are_off() {
    let mut matcher = rooms(settings(1));
    matcher.enqueue(party(1, 1, 100, 0)).unwrap();
    matcher.enqueue(party(2, 1, 900, 0)).unwrap();
    assert!(run(&mut matcher, 1199).0.is_empty());
    assert_eq!(run(&mut matcher, 1200).0.len(), 1);
}

#[test]
fn rank_increases_a_leaders_strength() {
    let mut matcher = rooms(RoomModeSettings {
        rank_weight_percent: 10,
        ..settings(1)
    });
    matcher
        .enqueue(Ticket {
            level: 10,
            ..party(1, 1, 500, 0)
        })
        .unwrap();
    matcher
        .enqueue(Ticket {
            level: 0,
            ..party(2, 1, 500, 0)
        })
        .unwrap();
    assert!(run(&mut matcher, 0).0.is_empty());
    matcher
        .enqueue(Ticket {
            level: 0,
            ..party(3, 1, 950, 0)
        })
        .unwrap();
    assert_eq!(run(&mut matcher, 10).0[0].groups[1][0].party, 3);
}

#[test]
fn parties_of_equal_size_match_the_nearest_leader() {
    let mut matcher = rooms(RoomModeSettings {
        equal_size: true,
        ..settings(3)
    });
    for (id, size, strength) in [
        (1, 2, 500),
        (2, 1, 500),
        (3, 2, 560),
        (4, 2, 510),
        (5, 3, 500),
    ] {
        matcher
            .enqueue(party(id, size, strength, u64::from(id)))
            .unwrap();
    }
    let (matches, _) = run(&mut matcher, 10);
    assert_eq!(matches.len(), 1);
    assert_eq!(matches[0].quality.spread, 10);
    assert_eq!(
        matches[0].groups,
        [vec![party(1, 2, 500, 1)], vec![party(4, 2, 510, 4)]]
    );
}

#[test]
fn cancelled_party_leaves_its_room() {
    let mut matcher = rooms(settings(2));
    for id in 1..=3 {
        matcher.enqueue(party(id, 1, 500, 0)).unwrap();
    }
    run(&mut matcher, 10);
    matcher.cancel(2).unwrap();
    assert_eq!(room_mates(&matcher, 1), [1, 3]);
    matcher.enqueue(party(4, 2, 500, 10)).unwrap();
    assert_eq!(run(&mut matcher, 20).0.len(), 1);
    assert_eq!(matcher.waiting_parties(), 0);
}

#[test]
fn spectators_of_a_room_are_listed_in_its_match() {
    let mut matcher = rooms(settings(1));
    matcher.enqueue(party(1, 1, 500, 0)).unwrap();
    assert_eq!(
        matcher.spectate(1, 77),
        Err(TicketError::NoSpectatorSeat { party: 1.into() })
    );
    run(&mut matcher, 10);
    for player in 70..70 + SPECTATORS_MAX as u64 {
        assert_eq!(matcher.spectate(1, player), Ok(()));
    }
    assert_eq!(
        matcher.spectate(1, 70),
        Ok(()),
        "to watch twice is to watch"
    );
    assert_eq!(
        matcher.spectate(1, 99),
        Err(TicketError::NoSpectatorSeat { party: 1.into() })
    );
    assert_eq!(
        matcher.spectate(5, 99),
        Err(TicketError::NotQueued { party: 5.into() })
    );
    assert!(matches!(
        matcher.spectate(1, 10),
        Err(TicketError::PlayerAlreadyQueued { .. })
    ));
    matcher.enqueue(party(2, 1, 500, 10)).unwrap();
    assert_eq!(run(&mut matcher, 20).0[0].spectators, [70, 71, 72, 73]);
}

#[test]
fn spectator_that_queues_leaves_or_moves_frees_the_seat() {
    let mut matcher = rooms(settings(1));
    for (id, strength) in [(1, 500), (2, 5000)] {
        matcher.enqueue(party(id, 1, strength, 0)).unwrap();
    }
    run(&mut matcher, 10);
    for player in [30, 71, 72, 73] {
        matcher.spectate(1, player).unwrap();
    }
    // One queues, one watches another room, one logs out, one stops watching.
    matcher.enqueue(party(3, 1, 9000, 10)).unwrap();
    matcher.spectate(2, 71).unwrap();
    assert_eq!(matcher.remove_player(72), None);
    assert!(matcher.stop_spectating(73) && !matcher.stop_spectating(73));
    matcher.spectate(1, 74).unwrap();
    matcher.enqueue(party(4, 1, 500, 10)).unwrap();
    assert_eq!(run(&mut matcher, 20).0[0].spectators, [74]);
}

#[test]
fn spectators_of_a_declined_match_are_counted() {
    let mut matcher = rooms(RoomModeSettings {
        accept_timeout_s: 10.0,
        ..settings(1)
    });
    matcher.enqueue(party(1, 1, 500, 0)).unwrap();
    run(&mut matcher, 10);
    for player in [70, 71] {
        matcher.spectate(1, player).unwrap();
    }
    matcher.enqueue(party(2, 1, 500, 10)).unwrap();
    run(&mut matcher, 20);
    assert!(matcher.stop_spectating(70));
    matcher.decline(20).unwrap();
    assert_eq!(matcher.stats(ModeId(0)).unwrap().spectators_dropped, 1);
    assert!(!matcher.stop_spectating(71));
}

#[test]
fn spectators_without_a_seat_after_a_merge_are_counted() {
    let mut matcher = rooms(settings(3));
    for (id, strength) in [(1, 100), (2, 900)] {
        matcher.enqueue(party(id, 1, strength, 0)).unwrap();
    }
    run(&mut matcher, 10);
    for (id, seats) in [(1, 70..73), (2, 80..83)] {
        for player in seats {
            matcher.spectate(id, player).unwrap();
        }
    }
    // From this tick on the leaders are near enough.
    run(&mut matcher, 1200);
    assert_eq!(room_mates(&matcher, 1), [1, 2]);
    let dropped = matcher.stats(ModeId(0)).unwrap().spectators_dropped;
    assert_eq!(dropped, 6 - SPECTATORS_MAX as u64);
    let mut seated: Vec<u64> = (70..73).chain(80..83).collect();
    seated.retain(|&player| matcher.stop_spectating(player));
    assert_eq!(seated.len(), SPECTATORS_MAX, "{seated:?}");
}

#[test]
fn recent_opponents_do_not_share_a_room() {
    for equal_size in [false, true] {
        let mut matcher = rooms(RoomModeSettings {
            rematch_cooldown_s: 60.0,
            equal_size,
            ..settings(1)
        });
        let mut made = Vec::new();
        for now_tick in (0..=1300).step_by(10) {
            for id in [1, 2] {
                let _ = matcher.enqueue(party(id, 1, 500, now_tick));
            }
            made.extend(run(&mut matcher, now_tick).0.iter().map(|_| now_tick));
        }
        assert_eq!(made, [0, 1200]);
    }
}

#[test]
fn longest_waiting_party_considers_all_rooms() {
    let mut matcher = rooms(RoomModeSettings {
        equal_size: true,
        limits_off_after_s: 0.0,
        priority_after_s: 0.0,
        ..settings(1)
    });
    let region = |ticket: Ticket, regions: u32| Ticket {
        preferences: Some(Box::new(crate::TicketPreferences {
            regions,
            ..Default::default()
        })),
        ..ticket
    };
    // The first two can only meet each other, and there are dozens between them.
    matcher.enqueue(region(party(1, 1, 100, 0), 0b10)).unwrap();
    for id in 10..90 {
        let elsewhere = region(party(id, 1, 200 + id, 1), 1 << (id % 29 + 2));
        matcher.enqueue(elsewhere).unwrap();
    }
    matcher.enqueue(region(party(2, 1, 900, 2), 0b10)).unwrap();
    let (matches, _) = run(&mut matcher, 10);
    let met = |made: &Match| {
        let tickets = made.groups.iter().flatten();
        tickets
            .map(|ticket| ticket.party.number())
            .collect::<Vec<_>>()
    };
    assert!(matches.iter().any(|made| met(made) == [1, 2]));
}

#[test]
fn side_size_must_be_one_to_three() {
    for side_size in [0, 4] {
        assert!(settings(side_size).tick_settings(20.0).is_err());
    }
    let mut matcher = rooms(settings(3));
    assert!(matcher.enqueue(party(1, 4, 0, 0)).is_err());
}

#[test]
fn room_mode_parses_from_ron() {
    let mode: MatchModeSettings =
        ron::from_str("Rooms((name: \"yard\", side_size: 2, equal_size: true))").unwrap();
    assert_eq!(mode.name(), "yard");
    assert!(ron::from_str::<MatchModeSettings>("Rooms((group_size: 1))").is_err());
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn rooms_conserve_tickets_sizes_and_the_wait_bound(
        side_size in 1u8..=3,
        equal_size in any::<bool>(),
        script in prop::collection::vec((0u32..60, 1u8..=3, 0u32..2000, 0u8..10), 0..120),
    ) {
        let settings = RoomModeSettings { equal_size, priority_after_s: 0.0, expire_after_s: 200.0, ..settings(side_size) };
        let play = || -> Result<Vec<Match>, TestCaseError> {
            let mut matcher = rooms(settings.clone());
            let mut all = Vec::new();
            for (nth, &(id, size, strength, what)) in script.iter().enumerate() {
                let now_tick = 40 * nth as u64;
                match what {
                    0..6 => drop(matcher.enqueue(party(id, size, strength, now_tick))),
                    6 => drop(matcher.cancel(id)),
                    7 => drop(matcher.spectate(id, 10_000 + u64::from(strength))),
                    _ => {
                        let (matches, _) = run(&mut matcher, now_tick);
                        for made in &matches {
                            let sizes = made.groups.each_ref().map(|group| group.iter().map(|t| t.size).sum::<u8>());
                            prop_assert_eq!(sizes[0], sizes[1]);
                            let one_each = made.groups.iter().all(|group| group.len() == 1);
                            prop_assert!(one_each || !equal_size);
                            prop_assert!(equal_size || sizes[0] == side_size);
                            prop_assert!(made.spectators.len() <= SPECTATORS_MAX);
                        }
                        all.extend(matches);
                        // A priority party waits only if nothing fits.
                        let left = waiting(&matcher);
                        let mut table = CompositionTable::new(side_size);
                        for overdue in left.iter().filter(|ticket| ticket.waited_ticks(now_tick) >= 1200) {
                            let others = left.iter().filter(|other| other.party != overdue.party);
                            let fits = if equal_size {
                                others.clone().any(|other| other.size == overdue.size)
                            } else {
                                table.fits(&counts([overdue]), &counts(others))
                            };
                            prop_assert!(!fits, "{:?} of {:?}", overdue, left);
                        }
                    }
                }
                prop_assert!(matcher.modes()[0].tickets_conserved());
            }
            Ok(all)
        };
        prop_assert_eq!(play()?, play()?);
    }
}

#[test]
fn level_band_keeps_parties_out_of_a_room_until_it_widens() {
    for equal_size in [false, true] {
        let mut matcher = rooms(RoomModeSettings {
            equal_size,
            level_band_start: 5,
            level_band_widen_per_s: 1,
            ..settings(1)
        });
        for (id, level) in [(1, 10), (2, 18)] {
            let ticket = party(id, 1, 500, 0);
            matcher.enqueue(Ticket { level, ..ticket }).unwrap();
        }
        // Three levels more take three seconds of twenty ticks.
        assert!(run(&mut matcher, 59).0.is_empty(), "{equal_size}");
        assert_eq!(run(&mut matcher, 60).0.len(), 1, "{equal_size}");
    }
}

#[test]
fn room_with_uneven_sides_waits_for_other_parties() {
    for equal_size in [false, true] {
        let mut matcher = rooms(RoomModeSettings {
            equal_size,
            strength_gap_start: 10,
            strength_gap_widen_per_s: 0,
            ..settings(1)
        });
        matcher.enqueue(party(1, 1, 500, 0)).unwrap();
        matcher.enqueue(party(2, 1, 511, 1)).unwrap();
        assert!(run(&mut matcher, 10).0.is_empty(), "{equal_size}");
        matcher.enqueue(party(3, 1, 510, 11)).unwrap();
        let (found, _) = run(&mut matcher, 20);
        let parties: Vec<u32> = found[0]
            .groups
            .iter()
            .flatten()
            .map(|t| t.party.number())
            .collect();
        assert_eq!(parties, [1, 3], "{equal_size}");
        // A room that cannot start does not make another party wait forever.
        matcher.enqueue(party(4, 1, 600, 21)).unwrap();
        assert!(run(&mut matcher, 30).0.is_empty());
        assert_eq!(run(&mut matcher, 20 * 75).0.len(), 1, "{equal_size}");
    }
}
