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
    let mut ledger = LeaseTable::new(LeaseTableSettings::default());
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
