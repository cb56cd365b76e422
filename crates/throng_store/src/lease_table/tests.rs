//! The requests of a lease table, and their times.

use super::*;

const PLAYER: PlayerId = PlayerId(7);

fn orders(ledger: &mut LeaseTable, now_ms: u64) -> Vec<StoreRequest> {
    let mut orders = Vec::new();
    ledger.next_requests(now_ms, |order| orders.push(order));
    orders
}

fn is_claim(order: &StoreRequest) -> bool {
    matches!(order, StoreRequest::Claim { players, .. } if *players == [PLAYER])
}

/// A table with a player who came at 0.
fn with_one_player() -> LeaseTable {
    with_unsaved_play(0)
}

fn with_unsaved_play(unsaved_play_ms: u64) -> LeaseTable {
    let mut ledger = LeaseTable::new(LeaseTableSettings {
        unsaved_play_ms,
        ..LeaseTableSettings::default()
    });
    ledger.claim(PLAYER, 0).unwrap();
    assert!(orders(&mut ledger, 0).iter().any(is_claim));
    // The renewal marks the server as alive, too.
    ledger.receive(StoreReply::Renewed(Ok(Renewal::default())), 0, |_| ());
    let record = PlayerRecord {
        player: PLAYER,
        revision: 0,
        tick: 0,
        values: BTreeMap::new(),
    };
    let granted = ClaimResult::Granted { epoch: 1, record };
    let claimed = StoreReply::Claimed(vec![PLAYER], Ok(vec![granted]));
    ledger.receive(claimed, 0, |_| ());
    assert!(ledger.is_live(PLAYER));
    ledger
}

#[test]
fn player_leaves_when_its_lease_expires() {
    let mut ledger = with_one_player();
    let until_ms = ledger.lease_valid_until(PLAYER).unwrap();
    ledger.expire(until_ms - 1, |event| panic!("{event:?}"));
    let mut expired = Vec::new();
    ledger.expire(until_ms, |event| expired.push(event));
    assert!(matches!(expired[..], [LeaseEvent::Expired(PLAYER)]));
    assert!(!ledger.is_live(PLAYER));
}

#[test]
fn player_with_unsaved_changes_is_not_claimed_again() {
    let mut ledger = with_one_player();
    ledger.release(PLAYER);
    assert!(ledger.next_save_request().is_some());
    // While the lease is being released, another value is saved, and then the player returns.
    assert!(ledger.save(PLAYER, 2, [(1, Some(&[5][..]))].into_iter()));
    ledger.claim(PLAYER, 0).unwrap();
    ledger.receive(StoreReply::Saved(SaveOutcome::default()), 0, |_| ());
    assert!(!orders(&mut ledger, 0).iter().any(is_claim));
    assert!(ledger.next_save_request().is_some());
    assert!(orders(&mut ledger, 0).iter().any(is_claim));
}

#[test]
fn failed_renewal_is_retried_after_a_second() {
    let mut ledger = with_one_player();
    let renews = |ledger: &mut LeaseTable, now_ms| {
        let orders = orders(ledger, now_ms);
        let is_renewal = |order: &StoreRequest| matches!(order, StoreRequest::Renew { .. });
        orders.iter().any(is_renewal)
    };
    assert!(!renews(&mut ledger, 19_999));
    assert!(renews(&mut ledger, 20_000));
    let failed = StoreReply::Renewed(Err(thread_ended_error()));
    ledger.receive(failed, 20_050, |_| ());
    assert!(!renews(&mut ledger, 21_049));
    assert!(renews(&mut ledger, 21_050));
}

/// A table in which these players are live, with the epochs 1.
fn with_players(settings: LeaseTableSettings, players: &[PlayerId]) -> LeaseTable {
    let mut ledger = LeaseTable::new(settings);
    for &player in players {
        ledger.claim(player, 0).unwrap();
    }
    orders(&mut ledger, 0);
    ledger.receive(StoreReply::Renewed(Ok(Renewal::default())), 0, |_| ());
    let granted = players.iter().map(|&player| ClaimResult::Granted {
        epoch: 1,
        record: PlayerRecord::new(player),
    });
    let claimed = StoreReply::Claimed(players.to_vec(), Ok(granted.collect()));
    ledger.receive(claimed, 0, |_| ());
    ledger
}

#[test]
fn claims_stay_within_the_player_limit() {
    let mut ledger = LeaseTable::new(LeaseTableSettings {
        players_max: 3,
        ..LeaseTableSettings::default()
    });
    for (player, fits) in [(1, true), (2, true), (3, true), (4, false)] {
        let full = PlayerStoreError::PlayerLimitReached {
            player: PlayerId(player),
            held: 3,
            max: 3,
        };
        let expected = if fits { Ok(()) } else { Err(full) };
        assert_eq!(ledger.claim(PlayerId(player), 0), expected);
        // Requested claims count, too.
        orders(&mut ledger, 0);
    }
    ledger.release(PlayerId(1));
    assert_eq!(ledger.len(), 3, "until the store has answered");
    ledger.release(PlayerId(3));
    assert_eq!(ledger.claim(PlayerId(4), 0), Ok(()), "3 was not requested");
}

#[test]
fn claims_are_refused_above_the_unsaved_limit() {
    let players = [1, 2, 3].map(PlayerId);
    let settings = LeaseTableSettings {
        unsaved_players_max: 2,
        ..LeaseTableSettings::default()
    };
    let mut ledger = with_players(settings, &players);
    for (unsaved, player) in (1..).zip(players) {
        assert!(ledger.save(player, 1, std::iter::empty()));
        let claimed = ledger.claim(PlayerId(9), 0);
        let expected = if unsaved <= 2 {
            Ok(())
        } else {
            Err(PlayerStoreError::SaveBacklogFull {
                player: PlayerId(9),
                unsaved: 3,
                max: 2,
            })
        };
        assert_eq!(claimed, expected);
    }
}

#[test]
fn lease_ends_a_lease_time_after_the_claim_was_sent() {
    let mut ledger = LeaseTable::new(LeaseTableSettings::default());
    ledger.claim(PLAYER, 100).unwrap();
    assert!(orders(&mut ledger, 500).iter().any(is_claim));
    let granted = ClaimResult::Granted {
        epoch: 1,
        record: PlayerRecord::new(PLAYER),
    };
    ledger.receive(
        StoreReply::Claimed(vec![PLAYER], Ok(vec![granted])),
        4_000,
        |_| (),
    );
    // The clock of the store may have begun the lease as early as that.
    assert_eq!(ledger.lease_valid_until(PLAYER), Some(60_500));
}

#[test]
fn lease_granted_after_the_player_left_is_released() {
    let mut ledger = LeaseTable::new(LeaseTableSettings::default());
    ledger.claim(PLAYER, 0).unwrap();
    assert!(orders(&mut ledger, 0).iter().any(is_claim));
    ledger.release(PLAYER);
    let granted = ClaimResult::Granted {
        epoch: 5,
        record: PlayerRecord::new(PLAYER),
    };
    let claimed = StoreReply::Claimed(vec![PLAYER], Ok(vec![granted]));
    ledger.receive(claimed, 10, |event| panic!("{event:?}"));
    assert!(!ledger.is_live(PLAYER));
    let Some(StoreRequest::Save { batch }) = ledger.next_save_request() else {
        panic!("the lease is not released");
    };
    assert_eq!(batch.releases(), [(PLAYER, 5)]);
    ledger.receive(StoreReply::Saved(SaveOutcome::default()), 20, |_| ());
    assert!(ledger.is_empty());
}

#[test]
fn answer_about_a_former_lease_does_not_concern_the_next() {
    let mut ledger = with_one_player();
    let renewal = orders(&mut ledger, 20_000);
    assert!(
        matches!(&renewal[..], [StoreRequest::Renew { leases, .. }] if *leases == [(PLAYER, 1)])
    );
    // The player leaves and returns before the answer.
    ledger.release(PLAYER);
    assert!(ledger.next_save_request().is_some());
    ledger.receive(StoreReply::Saved(SaveOutcome::default()), 20_010, |_| ());
    ledger.claim(PLAYER, 20_020).unwrap();
    assert!(orders(&mut ledger, 20_020).iter().any(is_claim));
    let granted = ClaimResult::Granted {
        epoch: 2,
        record: PlayerRecord::new(PLAYER),
    };
    ledger.receive(
        StoreReply::Claimed(vec![PLAYER], Ok(vec![granted])),
        20_030,
        |_| (),
    );
    let lost = StoreReply::Renewed(Ok(Renewal::lost(vec![PLAYER])));
    ledger.receive(lost, 20_040, |event| panic!("{event:?}"));
    assert!(ledger.is_live(PLAYER));
}

#[test]
fn skipped_lease_keeps_its_end_and_is_renewed_after_a_second() {
    let others = [PLAYER, PlayerId(8)];
    let mut ledger = with_players(LeaseTableSettings::default(), &others);
    assert_eq!(orders(&mut ledger, 20_000).len(), 1);
    let skipped = Renewal {
        skipped: vec![PLAYER],
        ..Renewal::default()
    };
    ledger.receive(StoreReply::Renewed(Ok(skipped)), 20_050, |_| ());
    assert_eq!(ledger.lease_valid_until(PLAYER), Some(60_000));
    assert_eq!(ledger.lease_valid_until(PlayerId(8)), Some(80_000));
    assert!(orders(&mut ledger, 21_049).is_empty());
    assert_eq!(orders(&mut ledger, 21_050).len(), 1);
    ledger.receive(StoreReply::Renewed(Ok(Renewal::default())), 21_060, |_| ());
    assert_eq!(ledger.lease_valid_until(PLAYER), Some(81_050));
    assert!(orders(&mut ledger, 41_049).is_empty());
    assert_eq!(orders(&mut ledger, 41_050).len(), 1);
}

/// The times of a store that is away for ten minutes.
const AWAY_MS: std::ops::Range<u64> = 120_000..720_000;

/// How a player fares in [`AWAY_MS`], and until when it was here.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    PlaysOn,
    Expired(u64),
    Taken(u64),
}

/// Plays until two minutes after the outage, and compares every step with a model: the player is here until the end of the last lease
/// that was granted, and the time for unsaved play after it. `is_taken`: another server gets the player in the outage.
fn fate(unsaved_play_ms: u64, is_taken: bool) -> Fate {
    let mut ledger = with_unsaved_play(unsaved_play_ms);
    let lease_ms = LeaseTableSettings::default().lease_ms;
    let (mut until_ms, mut now_ms) = (lease_ms, 0);
    let mut fate = Fate::PlaysOn;
    while now_ms < AWAY_MS.end + 120_000 {
        let end_ms = until_ms + unsaved_play_ms;
        let mut events = Vec::new();
        ledger.expire(now_ms, |event| events.push(event));
        if fate == Fate::PlaysOn && now_ms >= end_ms {
            assert!(matches!(events[..], [LeaseEvent::Expired(PLAYER)]));
            fate = Fate::Expired(now_ms);
        } else {
            assert!(events.is_empty(), "{now_ms}: {events:?}");
        }
        let is_here = fate == Fate::PlaysOn;
        let is_unsaved = is_here && now_ms >= until_ms;
        assert_eq!(ledger.is_live(PLAYER), is_here, "{now_ms}");
        assert_eq!(ledger.unsaved_play_count(), usize::from(is_unsaved));
        for order in orders(&mut ledger, now_ms) {
            let StoreRequest::Renew { leases, .. } = order else {
                panic!("{order:?}");
            };
            let renewed = if AWAY_MS.contains(&now_ms) {
                Err(thread_ended_error())
            } else if is_taken && now_ms >= AWAY_MS.end {
                Ok(Renewal::lost(leases.iter().map(|lease| lease.0).collect()))
            } else {
                if is_here {
                    assert_eq!(leases, [(PLAYER, 1)], "the epoch stays");
                    until_ms = now_ms + lease_ms;
                }
                Ok(Renewal::default())
            };
            let tell = |event| events.push(event);
            ledger.receive(StoreReply::Renewed(renewed), now_ms, tell);
        }
        let is_lost = |event: &LeaseEvent| {
            matches!(
                event,
                LeaseEvent::Lost {
                    player: PLAYER,
                    is_here: true,
                    is_taken: true,
                }
            )
        };
        if is_here && events.iter().any(is_lost) {
            fate = Fate::Taken(now_ms);
        }
        // Both sides of the boundary.
        let steps = [end_ms - 1, end_ms, now_ms + 250].into_iter();
        now_ms = steps.filter(|&next| next > now_ms).min().unwrap();
    }
    fate
}

#[test]
fn outage_is_survived_exactly_as_long_as_allowed() {
    // The last renewal before the outage is at 100 s, so that the lease ends at 160 s.
    let left_ms = AWAY_MS.end - 160_000;
    for play_ms in [0, 1, 240_000, left_ms - 1, left_ms] {
        for is_taken in [false, true] {
            let found = fate(play_ms, is_taken);
            assert_eq!(found, Fate::Expired(160_000 + play_ms), "{play_ms}");
        }
    }
    for play_ms in [left_ms + 1, 1_800_000] {
        assert_eq!(fate(play_ms, false), Fate::PlaysOn, "{play_ms}");
        assert_eq!(fate(play_ms, true), Fate::Taken(AWAY_MS.end), "{play_ms}");
    }
}

#[test]
fn nobody_plays_on_when_the_server_name_is_taken_over() {
    let mut ledger = with_unsaved_play(1_800_000);
    assert_eq!(orders(&mut ledger, 20_000).len(), 1);
    let error = StoreError {
        kind: StoreErrorKind::NameInUse,
        ..thread_ended_error()
    };
    ledger.receive(StoreReply::Renewed(Err(error)), 20_000, |_| ());
    ledger.expire(59_999, |event| panic!("{event:?}"));
    let mut expired = Vec::new();
    ledger.expire(60_000, |event| expired.push(event));
    assert!(matches!(expired[..], [LeaseEvent::Expired(PLAYER)]));
}

#[test]
fn rejected_save_is_reported_and_the_others_are_saved() {
    let (rejected, other) = (PLAYER, PlayerId(8));
    let mut ledger = with_players(LeaseTableSettings::default(), &[rejected, other]);
    for player in [rejected, other] {
        assert!(ledger.save(player, 1, [(1, Some(&[5][..]))].into_iter()));
    }
    assert!(ledger.next_save_request().is_some());
    let error = StoreError {
        store: "of this test".to_owned(),
        kind: StoreErrorKind::ValueRejected,
        cause: "too large".to_owned(),
    };
    let outcome = SaveOutcome {
        refused: vec![rejected],
        errors: vec![(rejected, error)],
        revisions: vec![(other, 1)],
        ..SaveOutcome::default()
    };
    let mut events = Vec::new();
    ledger.receive(StoreReply::Saved(outcome), 0, |event| events.push(event));
    let reported = events
        .iter()
        .any(|event| matches!(event, LeaseEvent::SaveRejected(player) if *player == rejected));
    assert!(reported, "{events:?}");
    assert!(!ledger.is_live(rejected));
    assert!(ledger.is_live(other));
}
