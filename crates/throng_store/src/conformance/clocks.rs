//! Checks that depend on the clock of a store: leases, and names of servers.

use throng_core::ids::PlayerId;

use super::{CheckResult, GRACE_MS, LEASE_MS, StoreTrial, expect, failed, registration_at, terms};
use crate::error::StoreErrorKind;
use crate::lease::ServerId;
use crate::registration::SERVER_ENTRY_TTL_MS;
use crate::save_batch::SaveBatch;
use crate::store::{ClaimResult, Renewal};

pub(super) fn leases_from_the_future(bench: &mut StoreTrial) -> CheckResult {
    bench.claim_free(0, 7, 1 << 50)?;
    let whole_ms = LEASE_MS + GRACE_MS;
    for (now_ms, left_ms) in [(500, whole_ms), (560, whole_ms - 60)] {
        match bench.claim(1, 7, now_ms)? {
            ClaimResult::Refused { refusal, .. } => {
                expect("how long it lasts", refusal.left_ms, left_ms)?;
            }
            other => return Err(format!("expected it to be held, found {other:?}")),
        }
        bench.reopen()?;
    }
    let epoch = bench.claim_free(1, 7, 500 + whole_ms + 1)?;
    expect("the epoch of who takes it", epoch, 2)?;
    // A renewal by the holder corrects it as well.
    let ahead = bench.claim_free(0, 8, 1 << 50)?;
    let by = bench.servers[0].clone();
    let renewed = bench.store.renew(&by, &[(PlayerId(8), ahead)], terms(500));
    expect("the renewal", renewed.map_err(failed)?, Renewal::default())?;
    let epoch = bench.claim_free(1, 8, 500 + whole_ms + 1)?;
    expect("the epoch of who takes what expired", epoch, 2)
}

/// Registers a process of the third name; returns its number, or `None` if the name is in use.
fn register_third_server(
    bench: &mut StoreTrial,
    now_ms: u64,
    take_over: bool,
) -> Result<Option<ServerId>, String> {
    bench.reopen()?;
    match bench
        .store
        .register_server("c", registration_at(now_ms, take_over))
    {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.kind == StoreErrorKind::NameInUse => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

pub(super) fn names_in_use(bench: &mut StoreTrial) -> CheckResult {
    let number = |id: &Option<ServerId>| id.as_ref().map(|id| id.incarnation);
    let Some(first) = register_third_server(bench, 1_000, false)? else {
        return Err("expected a new name to be free, found it in use".to_owned());
    };
    let in_use = register_third_server(bench, 1_000 + LEASE_MS, false)?;
    expect("within the lease", in_use, None)?;
    let renewed = bench.store.renew(&first, &[], terms(1_050));
    renewed.map_err(failed)?;
    let in_use = register_third_server(bench, 1_050 + LEASE_MS, false)?;
    expect("after a renewal", in_use, None)?;
    let saved = bench.store.save(&first, &SaveBatch::new(1, 1), Some(1_080));
    saved.map_err(failed)?;
    let in_use = register_third_server(bench, 1_080 + LEASE_MS, false)?;
    expect("after a save", in_use, None)?;
    let second = register_third_server(bench, 1_080 + LEASE_MS + 1, false)?;
    expect(
        "after a crash",
        number(&second),
        Some(first.incarnation + 1),
    )?;
    let third = register_third_server(bench, 1_200, true)?;
    expect("taken over", number(&third), Some(first.incarnation + 2))?;
    let (Some(second), Some(third)) = (second, third) else {
        return Err("expected two processes".to_owned());
    };
    // A former process does not keep the name in use, and its end does not free it.
    let renewed = bench.store.renew(&second, &[], terms(9_000));
    renewed.map_err(failed)?;
    bench.store.unregister_server(&second).map_err(failed)?;
    let in_use = register_third_server(bench, 1_201, false)?;
    expect("after the end of a former process", in_use, None)?;
    bench.store.unregister_server(&third).map_err(failed)?;
    let fourth = register_third_server(bench, 1_202, false)?;
    expect(
        "after the end",
        number(&fourth),
        Some(third.incarnation + 1),
    )
}

/// A process is kept as long as it was seen within [`SERVER_ENTRY_TTL_MS`], also when others register; after that its name can be used.
pub(super) fn old_processes(bench: &mut StoreTrial) -> CheckResult {
    let mut register = |name: &str, now_ms: u64| {
        let terms = registration_at(now_ms, false);
        let registered = bench.store.register_server(name, terms).map_err(failed)?;
        Ok::<_, String>(registered.incarnation)
    };
    let first_ms = 1_000;
    expect("the first", register("c", first_ms)?, 1)?;
    expect("another", register("d", first_ms + SERVER_ENTRY_TTL_MS)?, 1)?;
    let second_ms = first_ms + SERVER_ENTRY_TTL_MS;
    expect("at the end of the time", register("c", second_ms)?, 2)?;
    let by = ServerId {
        name: "c".to_owned(),
        incarnation: 2,
    };
    let saved = bench
        .store
        .save(&by, &SaveBatch::new(1, 1), Some(second_ms + 5));
    saved.map_err(failed)?;
    bench.store.unregister_server(&by).map_err(failed)?;
    let mut register = |name: &str, now_ms: u64| {
        let terms = registration_at(now_ms, false);
        let registered = bench.store.register_server(name, terms).map_err(failed)?;
        Ok::<_, String>(registered.incarnation)
    };
    let third_ms = second_ms + SERVER_ENTRY_TTL_MS;
    expect("one that is new", register("e", third_ms)?, 1)?;
    let number = register("c", third_ms + 5)?;
    expect("its last save counts after its end", number, 3)?;
    let later_ms = third_ms + 6 + SERVER_ENTRY_TTL_MS;
    register("e", later_ms)?;
    // Forgotten or not: a number is assigned, and the name is not in use.
    let number = register("c", later_ms)?;
    if [1, 4].contains(&number) {
        return Ok(());
    }
    Err(format!("expected number 1 or 4, found {number}"))
}
