//! Requests to the matchmaker, over all modes.

use super::*;

fn duel() -> MatchmakingCore {
    let other = GroupModeSettings {
        name: "other".to_owned(),
        ..mode(5)
    };
    MatchmakingCore::new(
        &[
            MatchModeSettings::Groups(mode(1)),
            MatchModeSettings::Groups(other),
        ],
        20.0,
    )
    .unwrap()
}

fn hash_words(matcher: &MatchmakingCore) -> Vec<u64> {
    let mut fed = Vec::new();
    matcher.hash_state(&mut |word| fed.push(word));
    fed
}

#[test]
fn refused_requests_name_their_reason_and_change_nothing() {
    let mut matcher = duel();
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    let before = hash_words(&matcher);
    let mut with_queued_player = ticket(2, 1, 0, 0);
    with_queued_player.members[0] = 10.into();
    let refused = TicketError::PlayerAlreadyQueued {
        party: 2.into(),
        player: 10.into(),
        queued_in: 1.into(),
    };
    assert_eq!(
        matcher.enqueue(with_queued_player.clone()),
        Err(refused.clone())
    );
    with_queued_player.mode = ModeId(1);
    assert_eq!(
        matcher.enqueue(with_queued_player),
        Err(refused),
        "also in another mode"
    );
    assert_eq!(
        matcher.enqueue(ticket(1, 1, 0, 0)),
        Err(TicketError::PartyAlreadyQueued { party: 1.into() })
    );
    let too_large = TicketError::LargerThanGroup {
        party: 3.into(),
        size: 2,
        group_size: 1,
    };
    assert_eq!(matcher.enqueue(ticket(3, 2, 0, 0)), Err(too_large));
    let stray = Ticket {
        mode: ModeId(2),
        ..ticket(3, 1, 0, 0)
    };
    assert_eq!(
        matcher.enqueue(stray),
        Err(TicketError::UnknownMode {
            party: 3.into(),
            mode: ModeId(2),
            modes: 2
        })
    );
    assert_eq!(
        matcher.cancel(9),
        Err(TicketError::NotQueued { party: 9.into() })
    );
    assert_eq!(
        matcher.cancel_by_member(1, 77),
        Err(TicketError::NotAMember {
            party: 1.into(),
            player: 77.into()
        })
    );
    assert_eq!(matcher.remove_player(77), None);
    assert_eq!(hash_words(&matcher), before);
    assert_eq!(
        (matcher.waiting_parties(), matcher.waiting_players()),
        (1, 1)
    );
}

#[test]
fn full_queue_refuses_tickets_and_counts_them() {
    let settings = GroupModeSettings {
        tickets_max: 1,
        ..mode(5)
    };
    let mut matcher = MatchmakingCore::new(&[MatchModeSettings::Groups(settings)], 20.0).unwrap();
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    assert_eq!(
        matcher.enqueue(ticket(2, 1, 0, 0)),
        Err(TicketError::QueueFull {
            party: 2.into(),
            tickets_max: 1
        })
    );
    assert_eq!(matcher.stats(ModeId(0)).unwrap().refused, 1);
    matcher.cancel(1).unwrap();
    assert_eq!(matcher.enqueue(ticket(2, 1, 0, 0)), Ok(()));
}

#[test]
fn leaving_member_cancels_the_whole_ticket() {
    let mut matcher = duel();
    let party = Ticket {
        mode: ModeId(1),
        ..ticket(4, 3, 0, 0)
    };
    matcher.enqueue(party.clone()).unwrap();
    assert_eq!(matcher.party_of(42), Some(4.into()));
    assert_eq!(matcher.remove_player(42), Some(party));
    assert_eq!(
        (matcher.waiting_parties(), matcher.waiting_players()),
        (0, 0)
    );
    assert_eq!(matcher.stats(ModeId(1)).unwrap().cancelled, 1);
    assert_eq!(
        matcher.enqueue(ticket(5, 1, 0, 0)),
        Ok(()),
        "the others may queue anew"
    );
}

#[test]
fn modes_must_have_different_names() {
    let error = MatchmakingCore::new(
        &[
            MatchModeSettings::Groups(mode(1)),
            MatchModeSettings::Groups(mode(5)),
        ],
        20.0,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected different names for the queues, found `arena` twice"
    );
    assert_eq!(duel().mode_by_name("other"), Some(ModeId(1)));
    assert_eq!(duel().mode_by_name("nothing"), None);
}

#[test]
fn waiting_party_reports_its_wait_reason() {
    let settings = GroupModeSettings {
        skill_window_start: 10,
        skill_window_widen_per_s: 0,
        power_gap_start: 5,
        power_gap_widen_per_s: 0,
        ..mode(5)
    };
    let mut matcher = MatchmakingCore::new(&[MatchModeSettings::Groups(settings)], 20.0).unwrap();
    assert_eq!(matcher.wait_reason(1), None);
    matcher.enqueue(ticket(1, 5, 0, 0)).unwrap();
    assert_eq!(
        matcher.wait_reason(1),
        Some(WaitReason::TooFewPlayers {
            waiting: 5,
            needed: 10
        })
    );
    matcher.enqueue(ticket(2, 3, 0, 0)).unwrap();
    matcher.enqueue(ticket(3, 3, 0, 0)).unwrap();
    assert_eq!(matcher.wait_reason(1), Some(WaitReason::SizesDoNotFit));
    matcher
        .enqueue(Ticket {
            power: 90,
            ..ticket(4, 5, 900, 0)
        })
        .unwrap();
    let outside = WaitReason::OutsideWindow {
        window: 10,
        opens_in_ticks: 1200,
    };
    assert_eq!(matcher.wait_reason(1), Some(outside));
    matcher
        .enqueue(Ticket {
            power: 90,
            ..ticket(5, 5, 1, 0)
        })
        .unwrap();
    let gap = 90 - u64::from(ticket(1, 5, 0, 0).power);
    let uneven = WaitReason::PowerGap {
        gap,
        limit: 5,
        opens_in_ticks: 1190,
    };
    let mut outcome = HeartbeatOutcome::default();
    matcher.run_heartbeat(10, &mut outcome);
    assert_eq!(matcher.wait_reason(1), Some(uneven));
    for party in [6, 7] {
        matcher.enqueue(ticket(party, 5, 500, 10)).unwrap();
    }
    assert_eq!(matcher.wait_reason(6), Some(WaitReason::NextHeartbeat));
    for party in [6, 7] {
        matcher.cancel(party).unwrap();
    }
    matcher.run_heartbeat(1500, &mut outcome);
    assert_eq!(matcher.wait_reason(1), None);
    assert_eq!(outcome.matches[0].groups[0][0].party, 1);
}

#[test]
fn wait_reasons_cover_regions_levels_and_preferences() {
    let mut matcher = matcher(GroupModeSettings {
        level_band_start: 5,
        level_band_widen_per_s: 0,
        ..mode(1)
    });
    let wishing = |party: u32, level: u16, wishes: TicketPreferences| Ticket {
        level,
        preferences: Some(Box::new(wishes)),
        ..ticket(party, 1, 0, 0)
    };
    let avoid = TicketPreferences {
        avoid: [20u64].into_iter().map(Into::into).collect(),
        ..TicketPreferences::default()
    };
    let region = |regions| TicketPreferences {
        regions,
        ..TicketPreferences::default()
    };
    matcher.enqueue(wishing(1, 1, avoid)).unwrap();
    matcher
        .enqueue(wishing(2, 1, TicketPreferences::default()))
        .unwrap();
    let disagree = WaitReason::PreferencesConflict {
        opens_in_ticks: 1200,
    };
    assert_eq!(matcher.wait_reason(1), Some(disagree));
    matcher.cancel(2).unwrap();
    matcher
        .enqueue(wishing(3, 90, TicketPreferences::default()))
        .unwrap();
    let levels = WaitReason::OutsideLevels {
        band: 5,
        opens_in_ticks: 1200,
    };
    assert_eq!(matcher.wait_reason(1), Some(levels));
    matcher.cancel(1).unwrap();
    matcher.cancel(3).unwrap();
    matcher.enqueue(wishing(4, 1, region(0b01))).unwrap();
    matcher.enqueue(wishing(5, 1, region(0b10))).unwrap();
    assert_eq!(matcher.wait_reason(4), Some(WaitReason::OutsideRegions));
}
