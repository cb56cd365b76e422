//! The conformance test of stores for unreadable records.

use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;

use super::error::StoreError;
use super::record::StoredAttribute;
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;
use super::store::{ClaimResult, ClaimTerms, LookupResult, StoreFactory};

const TERMS: ClaimTerms = ClaimTerms {
    at_ms: Some(0),
    lease_ms: 100,
    grace_ms: 0,
};

/// Checks an empty store against the documentation of [`StoreBackend`](super::StoreBackend) for a record that cannot be read: the lease of
/// its player stays free, and all other records are read. `spoil` makes the record of a player unreadable, by means of the tested store.
/// For stores that verify what they read, in addition to [`check_store`](super::conformance::check_store).
///
/// # Errors
/// What was expected, and what was found.
pub fn check_corrupt_records(
    source: &mut dyn StoreFactory,
    spoil: impl FnOnce(PlayerId),
) -> Result<(), String> {
    let failed = |error: StoreError| format!("expected no error, found {error}");
    let players = [3, 2, 1].map(PlayerId);
    let mut store = source.open().map_err(failed)?;
    let level = StoredAttribute {
        id: 1,
        name: "level".to_owned(),
        encoding: Encoding::U8,
    };
    store.register_attributes(&[level]).map_err(failed)?;
    let (one, other): (_, _) = ["a", "b"]
        .map(|name| store.register_server(name, RegistrationTerms::default()))
        .into();
    let (one, other) = (one.map_err(failed)?, other.map_err(failed)?);
    store.claim(&one, &players, TERMS).map_err(failed)?;
    let mut batch = SaveBatch::new(1, 1);
    for player in players {
        let level = [player.0 as u8];
        batch.add((player, 1, 1), std::iter::once((1, Some(&level[..]))));
        batch.release(player, 1);
    }
    store.save(&one, &batch, Some(0)).map_err(failed)?;
    spoil(PlayerId(2));
    let looked = store.lookup(&players).map_err(failed)?;
    match &looked[..] {
        [
            LookupResult::Found(three),
            LookupResult::Unreadable(_),
            LookupResult::Found(one),
        ] if (three.player, one.player) == (PlayerId(3), PlayerId(1)) => {}
        found => {
            return Err(format!(
                "expected the records of 3 and 1, and none of 2, found {found:?}"
            ));
        }
    }
    // The lease is free for the second server, too.
    for by in [&one, &other] {
        let claimed = store.claim(by, &players[1..2], TERMS).map_err(failed)?;
        let [
            ClaimResult::Unreadable {
                player: PlayerId(2),
                ..
            },
        ] = &claimed[..]
        else {
            return Err(format!(
                "expected player 2 to be free and unreadable, found {claimed:?}"
            ));
        };
    }
    match &store.claim(&one, &players, TERMS).map_err(failed)?[..] {
        [
            ClaimResult::Granted { .. },
            ClaimResult::Unreadable { .. },
            ClaimResult::Granted { .. },
        ] => Ok(()),
        found => Err(format!("expected leases of 3 and 1, found {found:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty_store::{FaultShares, FaultySource};
    use crate::memory_store::MemoryDisk;

    #[test]
    fn memory_and_faulty_stores_report_a_corrupt_record() {
        let disk = MemoryDisk::default();
        check_corrupt_records(&mut disk.clone(), |player| disk.corrupt_record(player)).unwrap();
        let disk = MemoryDisk::default();
        let mut source = FaultySource::new(disk.clone(), 1, FaultShares::default());
        check_corrupt_records(&mut source, |player| disk.corrupt_record(player)).unwrap();
    }

    #[test]
    fn store_that_reads_corrupt_records_fails_the_check() {
        let wrong = check_corrupt_records(&mut MemoryDisk::default(), drop).unwrap_err();
        assert!(
            wrong.starts_with("expected the records of 3 and 1"),
            "{wrong}"
        );
    }
}
