//! The conformance test suite of stores. A game's own store runs it with one call.
//!
//! The checks do not depend on how a store works. They compare it with a model on maps, and with the documentation of [`StoreBackend`].

mod clocks;

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::PlayerId;
use throng_protocol::wire::{AttributeValue, Encoding};

use clocks::{leases_from_the_future, names_in_use, old_processes};

use super::error::{StoreError, StoreErrorKind};
use super::lease::ServerId;
use super::record::{PlayerRecord, StoredAttribute};
use super::registration::RegistrationTerms;
use super::save_batch::SaveBatch;
use super::store::{ClaimResult, ClaimTerms, LookupResult, Renewal, StoreBackend, StoreFactory};

/// Attributes with all encodings.
const ENCODINGS: [Encoding; 7] = [
    Encoding::U8,
    Encoding::U16,
    Encoding::U32,
    Encoding::Varint,
    Encoding::Zigzag,
    Encoding::F32,
    Encoding::Bytes { max: 40 },
];

/// How long a lease must be expired before another server gets it, in milliseconds.
const GRACE_MS: u64 = 10;

/// Duration of leases, in milliseconds.
const LEASE_MS: u64 = 100;

/// The terms of a claim or renewal at a time.
const fn terms(now_ms: u64) -> ClaimTerms {
    ClaimTerms {
        at_ms: Some(now_ms),
        lease_ms: LEASE_MS,
        grace_ms: GRACE_MS,
    }
}

/// The terms of a process that starts at a time.
const fn registration_at(now_ms: u64, take_over: bool) -> RegistrationTerms {
    RegistrationTerms {
        at_ms: Some(now_ms),
        lease_ms: LEASE_MS,
        take_over,
    }
}

/// The result of a check: `Err` describes the problem.
type CheckResult = Result<(), String>;

/// Checks a store against the documentation of [`StoreBackend`]. Each call of `make` returns a factory of a new, empty store; all stores
/// that one factory opens share their data.
///
/// # Errors
/// What was done, what was expected, and what was found.
pub fn check_store<S: StoreFactory>(mut make: impl FnMut() -> S) -> CheckResult {
    let checks: [(&str, fn(&mut StoreTrial) -> CheckResult); 15] = [
        ("a new player", new_player),
        ("values", values_of_all_encodings),
        ("leases", leases),
        ("leases of a clock that was ahead", leases_from_the_future),
        ("processes of one name", incarnations),
        ("names that are in use", names_in_use),
        ("processes of long ago", old_processes),
        ("fenced writers", fenced_writers),
        ("ties", joined_saves),
        ("batches done twice", repeated_batches),
        ("batches of two processes", batches_of_two_processes),
        ("what cannot be kept", unstorable_values),
        ("renewal and release", renewal_and_release),
        ("attributes", attributes_keep_their_meaning),
        ("a thousand random calls", random_calls),
    ];
    for (name, check) in checks {
        let mut source = make();
        let checked = StoreTrial::new(&mut source).and_then(|mut bench| check(&mut bench));
        checked.map_err(|wrong| format!("{name}: {wrong}"))?;
    }
    Ok(())
}

/// A store and two servers that use it.
struct StoreTrial<'s> {
    source: &'s mut dyn StoreFactory,
    store: Box<dyn StoreBackend>,
    servers: [ServerId; 2],
    /// Number of the last batch, over all servers.
    number: u64,
}

fn failed(error: StoreError) -> String {
    format!("expected no error, found {error}")
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> CheckResult {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}"))
}

fn dictionary() -> Vec<StoredAttribute> {
    let attribute = |(nth, encoding): (usize, Encoding)| StoredAttribute {
        id: nth as u16 + 1,
        name: format!("attribute \"{nth}\"; 'x"),
        encoding,
    };
    ENCODINGS.into_iter().enumerate().map(attribute).collect()
}

impl<'s> StoreTrial<'s> {
    fn new(source: &'s mut dyn StoreFactory) -> Result<Self, String> {
        let mut store = source.open().map_err(failed)?;
        store.register_attributes(&dictionary()).map_err(failed)?;
        let mut enroll = |name| {
            store
                .register_server(name, registration_at(0, false))
                .map_err(failed)
        };
        let servers = [enroll("a")?, enroll("b")?];
        Ok(Self {
            source,
            store,
            servers,
            number: 0,
        })
    }

    /// Opens another connection to the same store, as after an error.
    fn reopen(&mut self) -> CheckResult {
        self.store = self.source.open().map_err(failed)?;
        self.store
            .register_attributes(&dictionary())
            .map_err(failed)
    }

    fn claim(&mut self, by: usize, player: u64, now_ms: u64) -> Result<ClaimResult, String> {
        let by = self.servers[by].clone();
        self.claim_as(&by, player, now_ms)
    }

    fn claim_as(&mut self, by: &ServerId, player: u64, now_ms: u64) -> Result<ClaimResult, String> {
        let mut claimed = self.store.claim(by, &[PlayerId(player)], terms(now_ms));
        let claimed = claimed.as_mut().map_err(|error| failed(error.clone()))?;
        claimed.pop().ok_or_else(|| "no answer".to_owned())
    }

    /// Claims a free player and returns the epoch.
    fn claim_free(&mut self, by: usize, player: u64, now_ms: u64) -> Result<u64, String> {
        match self.claim(by, player, now_ms)? {
            ClaimResult::Granted { epoch, .. } => Ok(epoch),
            other => Err(format!("expected a lease, found {other:?}")),
        }
    }

    fn batch(&mut self, tick: u64) -> SaveBatch {
        self.number += 1;
        SaveBatch::new(self.number, tick)
    }

    /// Saves, and returns the refused players.
    fn save(&mut self, by: usize, batch: &SaveBatch) -> Result<Vec<u64>, String> {
        let by = self.servers[by].clone();
        let outcome = self.store.save(&by, batch, Some(0)).map_err(failed)?;
        Ok(outcome.refused.iter().map(|player| player.0).collect())
    }

    /// The stored record of a player, without its tick.
    fn lookup(&mut self, player: u64) -> Result<Option<PlayerRecord>, String> {
        let mut found = self.store.lookup(&[PlayerId(player)]).map_err(failed)?;
        match (found.pop(), found.len()) {
            (Some(LookupResult::Found(record)), 0) => Ok(Some(record)),
            (Some(LookupResult::Missing), 0) => Ok(None),
            other => Err(format!("expected one answer, found {other:?}")),
        }
    }
}

fn add_values(batch: &mut SaveBatch, player: u64, epoch: u64, values: &[(u16, Option<&[u8]>)]) {
    let tick = batch.tick;
    batch.add((PlayerId(player), epoch, tick), values.iter().copied());
}

fn new_player(bench: &mut StoreTrial) -> CheckResult {
    expect("no player is stored", bench.lookup(7)?, None)?;
    let granted = ClaimResult::Granted {
        epoch: 1,
        record: PlayerRecord::new(PlayerId(7)),
    };
    expect("the first claim", bench.claim(0, 7, 0)?, granted)?;
    expect("a claim saves nothing", bench.lookup(7)?, None)?;
    let all = [PlayerId(7), PlayerId(8)];
    let found = bench.store.lookup(&all).map_err(failed)?;
    let missing = vec![LookupResult::Missing, LookupResult::Missing];
    expect("a player that was never saved", found, missing)?;
    let epoch = bench.claim_free(0, 8, 0)?;
    let mut batch = bench.batch(1);
    add_values(&mut batch, 8, epoch, &[(1, Some(&[1]))]);
    bench.save(0, &batch)?;
    let found = bench.store.lookup(&[9, 8, 7].map(PlayerId));
    let found = found
        .map_err(failed)?
        .into_iter()
        .map(LookupResult::into_record);
    let found: Vec<_> = found
        .map(|found| found.map(|record| record.player.0))
        .collect();
    let expected = vec![None, Some(8), None];
    expect("answers in the order of players", found, expected)
}

fn values_of_all_encodings(bench: &mut StoreTrial) -> CheckResult {
    let epoch = bench.claim_free(0, u64::MAX, 0)?;
    let samples: [[AttributeValue; 3]; 7] = [
        [0u8.into(), 7u8.into(), u8::MAX.into()],
        [0u16.into(), 700u16.into(), u16::MAX.into()],
        [0u32.into(), 70_000u32.into(), u32::MAX.into()],
        [0u64.into(), 300u64.into(), u64::MAX.into()],
        [i64::MIN.into(), (-3i64).into(), i64::MAX.into()],
        [f32::NAN.into(), f32::INFINITY.into(), (-0.0f32).into()],
        ["".into(), "Zoë's".into(), [0u8, 255, 39].as_slice().into()],
    ];
    let mut expected = PlayerRecord::new(PlayerId(u64::MAX));
    for round in 0..3 {
        let mut batch = bench.batch(round as u64 + 1);
        let mut values = BTreeMap::new();
        for ((attribute, samples), nth) in dictionary().iter().zip(&samples).zip(0..) {
            // Not all attributes change in every round.
            if nth != round {
                let mut bytes = Vec::new();
                attribute.encoding.write(&samples[round], &mut bytes);
                values.insert(attribute.id, bytes);
            }
        }
        let changes: Vec<_> = values
            .iter()
            .map(|(&id, value)| (id, Some(&value[..])))
            .collect();
        add_values(&mut batch, u64::MAX, epoch, &changes);
        expect("no save is refused", bench.save(0, &batch)?, Vec::new())?;
        expected.values.extend(values);
        (expected.revision, expected.tick) = (round as u64 + 1, round as u64 + 1);
        expect(
            "what is kept",
            bench.lookup(u64::MAX)?,
            Some(expected.clone()),
        )?;
    }
    // A varint that is longer than necessary is also stored unchanged.
    let mut batch = bench.batch(4);
    add_values(
        &mut batch,
        u64::MAX,
        epoch,
        &[(4, Some(&[0x80, 0x00])), (1, None), (7, None)],
    );
    bench.save(0, &batch)?;
    expected.values.insert(4, vec![0x80, 0x00]);
    expected.values.remove(&1);
    expected.values.remove(&7);
    (expected.revision, expected.tick) = (4, 4);
    bench.reopen()?;
    let after = bench.lookup(u64::MAX)?;
    expect(
        "after removals, opened again",
        after,
        Some(expected.clone()),
    )?;
    match bench.claim(0, u64::MAX, 1)? {
        ClaimResult::Granted { record, .. } => expect("with a claim", record, expected),
        other => Err(format!("expected a lease, found {other:?}")),
    }
}

fn leases(bench: &mut StoreTrial) -> CheckResult {
    let epoch = bench.claim_free(0, 7, 1_000)?;
    expect("the first epoch", epoch, 1)?;
    bench.reopen()?;
    for now_ms in [1_000, 1_050, 1_000 + LEASE_MS + GRACE_MS] {
        match bench.claim(1, 7, now_ms)? {
            ClaimResult::Refused { player, refusal } => {
                expect("the requested player", player, PlayerId(7))?;
                expect("the holder", refusal.holder, bench.servers[0].clone())?;
                let left_ms = 1_000 + LEASE_MS + GRACE_MS - now_ms;
                expect("how long it lasts", refusal.left_ms, left_ms)?;
            }
            other => {
                return Err(format!(
                    "expected it to be held at {now_ms}, found {other:?}"
                ));
            }
        }
    }
    let epoch = bench.claim_free(1, 7, 1_000 + LEASE_MS + GRACE_MS + 1)?;
    expect("the epoch of who takes what expired", epoch, 2)
}

fn incarnations(bench: &mut StoreTrial) -> CheckResult {
    let older = bench.servers[0].clone();
    bench.claim_free(0, 7, 0)?;
    bench.claim_free(0, 8, 0)?;
    bench.reopen()?;
    let newer = bench
        .store
        .register_server("a", registration_at(0, true))
        .map_err(failed)?;
    expect("the name", newer.name.as_str(), "a")?;
    if newer.incarnation <= older.incarnation {
        return Err(format!(
            "expected a number above {older:?}'s, found {newer:?}"
        ));
    }
    match bench.claim_as(&newer, 7, 1)? {
        ClaimResult::Granted { epoch: 2, .. } => {}
        other => return Err(format!("expected the next epoch at once, found {other:?}")),
    }
    let epoch = bench.claim_free(1, 8, 2)?;
    expect("another server gets what the dead one had", epoch, 2)?;
    // A process whose name was taken over gets no leases.
    match bench.store.claim(&older, &[PlayerId(9)], terms(2)) {
        Err(error) => expect(
            "why it gets no player",
            error.kind,
            StoreErrorKind::NameInUse,
        ),
        other => Err(format!(
            "expected the older process to get no player, found {other:?}"
        )),
    }
}

fn fenced_writers(bench: &mut StoreTrial) -> CheckResult {
    let old = bench.claim_free(0, 7, 0)?;
    let mut batch = bench.batch(1);
    add_values(&mut batch, 7, old, &[(1, Some(&[1]))]);
    bench.save(0, &batch)?;
    let new = bench.claim_free(1, 7, 500)?;
    let kept = bench.lookup(7)?;
    let mut late = bench.batch(2);
    add_values(&mut late, 7, old, &[(1, Some(&[2]))]);
    add_values(&mut late, 9, 1, &[(1, Some(&[2]))]);
    late.release(PlayerId(7), old);
    expect(
        "a late writer, and one without a lease",
        bench.save(0, &late)?,
        vec![7, 9],
    )?;
    expect("what is kept", bench.lookup(7)?, kept)?;
    expect("of who has no lease", bench.lookup(9)?, None)?;
    let mut batch = bench.batch(3);
    add_values(&mut batch, 7, new, &[(1, Some(&[3]))]);
    expect(
        "the new holder is not released",
        bench.save(1, &batch)?,
        Vec::new(),
    )?;
    let refused = bench.claim(0, 7, 501)?;
    if matches!(refused, ClaimResult::Refused { .. }) {
        return Ok(());
    }
    Err(format!(
        "expected the lease to be held still, found {refused:?}"
    ))
}

fn joined_saves(bench: &mut StoreTrial) -> CheckResult {
    let mut epochs = BTreeMap::new();
    for player in 1..=6 {
        epochs.insert(player, bench.claim_free(0, player, 0)?);
    }
    bench.claim_free(1, 3, 500)?;
    let mut batch = bench.batch(1);
    for (&player, &epoch) in &epochs {
        add_values(&mut batch, player, epoch, &[(1, Some(&[player as u8]))]);
    }
    for (one, other) in [(5, 1), (3, 5), (2, 6)] {
        batch.join(PlayerId(one), PlayerId(other));
    }
    let by = bench.servers[0].clone();
    let outcome = bench.store.save(&by, &batch, Some(0)).map_err(failed)?;
    let refused = [1, 3, 5].map(PlayerId).to_vec();
    expect("who is tied to whom", outcome.refused, refused)?;
    expect("whose lease is taken", outcome.taken, vec![PlayerId(3)])?;
    for player in 1..=6 {
        let is_there = bench.lookup(player)?.is_some();
        expect("who is kept", is_there, [2, 4, 6].contains(&player))?;
    }
    Ok(())
}

fn repeated_batches(bench: &mut StoreTrial) -> CheckResult {
    let (seven, eight) = (bench.claim_free(0, 7, 0)?, bench.claim_free(0, 8, 0)?);
    bench.claim_free(1, 8, 500)?;
    let mut batch = bench.batch(1);
    add_values(&mut batch, 7, seven, &[(1, Some(&[1]))]);
    add_values(&mut batch, 8, eight, &[(1, Some(&[1]))]);
    batch.release(PlayerId(7), seven);
    expect("the first time", bench.save(0, &batch)?, vec![8])?;
    let kept = bench.lookup(7)?;
    expect(
        "the revision",
        kept.as_ref().map(|kept| kept.revision),
        Some(1),
    )?;
    // The player has moved to another server since; the save here stays valid.
    let epoch = bench.claim_free(1, 7, 1)?;
    bench.reopen()?;
    expect("the second time", bench.save(0, &batch)?, vec![8])?;
    expect("what is kept", bench.lookup(7)?, kept)?;
    let by = bench.servers[1].clone();
    let lost = bench.store.renew(&by, &[(PlayerId(7), epoch)], terms(800));
    expect("the new lease", lost.map_err(failed)?, Renewal::default())
}

fn batches_of_two_processes(bench: &mut StoreTrial) -> CheckResult {
    let older = bench.claim_free(0, 7, 0)?;
    let mut batch = SaveBatch::new(1, 1);
    add_values(&mut batch, 7, older, &[(1, Some(&[1]))]);
    expect("the older process", bench.save(0, &batch)?, Vec::new())?;
    bench.servers[0] = bench
        .store
        .register_server("a", registration_at(0, true))
        .map_err(failed)?;
    let newer = bench.claim_free(0, 7, 1)?;
    // Each process counts from one.
    let mut batch = SaveBatch::new(1, 2);
    add_values(&mut batch, 7, newer, &[(1, Some(&[2]))]);
    expect("the newer process", bench.save(0, &batch)?, Vec::new())?;
    let kept = bench
        .lookup(7)?
        .map(|kept| (kept.revision, kept.tick, kept.values));
    let values = BTreeMap::from([(1, vec![2])]);
    expect("what is kept", kept, Some((2, 2, values)))
}

fn unstorable_values(bench: &mut StoreTrial) -> CheckResult {
    let mut batch = bench.batch(1);
    for player in 1..=5 {
        let epoch = bench.claim_free(0, player, 0)?;
        // Attribute 999 is not registered.
        let id = if player == 3 { 999 } else { 1 };
        add_values(&mut batch, player, epoch, &[(id, Some(&[player as u8]))]);
        if player == 2 {
            batch.release(PlayerId(player), epoch);
        }
    }
    batch.join(PlayerId(2), PlayerId(3));
    let by = bench.servers[0].clone();
    for round in 0..2 {
        let outcome = bench.store.save(&by, &batch, Some(0)).map_err(failed)?;
        let refused: Vec<u64> = outcome.refused.iter().map(|player| player.0).collect();
        expect("who cannot be kept, and is tied to it", refused, vec![2, 3])?;
        let faults = outcome.errors.iter();
        let faults: Vec<_> = faults
            .map(|(player, error)| (player.0, error.kind))
            .collect();
        let expected = if round == 0 {
            vec![(3, StoreErrorKind::AttributeMismatch)]
        } else {
            Vec::new()
        };
        expect("why", faults, expected)?;
        for player in 1..=5 {
            let is_there = bench.lookup(player)?.is_some();
            expect("who is kept", is_there, [1, 4, 5].contains(&player))?;
        }
    }
    expect(
        "a lease is given back all the same",
        bench.claim_free(1, 2, 1)?,
        2,
    )
}

fn renewal_and_release(bench: &mut StoreTrial) -> CheckResult {
    let (seven, eight) = (bench.claim_free(0, 7, 0)?, bench.claim_free(0, 8, 0)?);
    let other = bench.claim_free(1, 9, 0)?;
    let all =
        [7, 8, 9, 10].map(|player| (PlayerId(player), if player == 9 { other + 1 } else { 1 }));
    let by = bench.servers[0].clone();
    let lost = bench.store.renew(&by, &all, terms(700));
    let lost = lost.map_err(failed)?;
    expect(
        "leases that are others'",
        lost,
        Renewal::lost(vec![PlayerId(9), PlayerId(10)]),
    )?;
    if let granted @ ClaimResult::Granted { .. } = bench.claim(1, 7, 805)? {
        return Err(format!("expected the lease to last, found {granted:?}"));
    }
    let mut batch = bench.batch(1);
    add_values(&mut batch, 7, seven, &[(1, Some(&[1]))]);
    batch.release(PlayerId(7), seven);
    batch.release(PlayerId(8), eight);
    bench.save(0, &batch)?;
    let lost = bench
        .store
        .renew(&by, &all[..2], terms(800))
        .map_err(failed)?;
    expect(
        "leases that were given back",
        lost,
        Renewal::lost(vec![PlayerId(7), PlayerId(8)]),
    )?;
    expect("who is next", bench.claim_free(1, 7, 1)?, 2)?;
    expect("who is next of the other", bench.claim_free(1, 8, 1)?, 2)
}

fn attributes_keep_their_meaning(bench: &mut StoreTrial) -> CheckResult {
    let mut more = dictionary();
    more.push(StoredAttribute {
        id: 900,
        name: "later".to_owned(),
        encoding: Encoding::U8,
    });
    bench.store.register_attributes(&more).map_err(failed)?;
    bench.reopen()?;
    for change in 0..3 {
        let mut other = more.clone();
        match change {
            0 => other[0].name = "renamed".to_owned(),
            1 => other[1].encoding = Encoding::U8,
            _ => other[2].id = 901,
        }
        let mut store = bench.source.open().map_err(failed)?;
        match store.register_attributes(&other) {
            Err(error) if error.kind == StoreErrorKind::AttributeMismatch => {}
            found => return Err(format!("expected a change to be refused, found {found:?}")),
        }
    }
    bench.reopen()
}

/// A player in the model.
#[derive(Clone, Default)]
struct StoreModel {
    epoch: u64,
    holder: Option<usize>,
    expires_ms: u64,
    revision: u64,
    tick: u64,
    values: BTreeMap<u16, Vec<u8>>,
}

fn random_calls(bench: &mut StoreTrial) -> CheckResult {
    let mut random = Pcg64Mcg::seed_from_u64(17);
    let mut model: BTreeMap<u64, StoreModel> = BTreeMap::new();
    let mut now_ms = 0;
    for call in 0..1_000_u64 {
        now_ms += random.random_range(0..20);
        let (by, player) = (random.random_range(0..2), random.random_range(0..6));
        if random.random_bool(0.02) {
            bench.reopen()?;
        }
        match random.random_range(0..10) {
            0..3 => random_claim(bench, &mut model, by, player, now_ms),
            3..9 => random_save(bench, &mut model, by, call, &mut random),
            _ => {
                let known = model.entry(player).or_default();
                let by = bench.servers[0].clone();
                let leases = [(PlayerId(player), known.epoch)];
                let lost = bench.store.renew(&by, &leases, terms(now_ms));
                let is_lost = lost.map_err(failed)? != Renewal::default();
                if known.holder.is_some() {
                    known.expires_ms = now_ms + LEASE_MS;
                }
                expect("whether a lease is lost", is_lost, known.holder.is_none())
            }
        }
        .map_err(|wrong| format!("call {call}: {wrong}"))?;
        let known = model.get(&player).filter(|known| known.revision > 0);
        let expected = known.map(|known| PlayerRecord {
            player: PlayerId(player),
            revision: known.revision,
            tick: known.tick,
            values: known.values.clone(),
        });
        let found = bench.lookup(player)?;
        expect(&format!("call {call}: player {player}"), found, expected)?;
    }
    Ok(())
}

fn random_claim(
    bench: &mut StoreTrial,
    model: &mut BTreeMap<u64, StoreModel>,
    by: usize,
    player: u64,
    now_ms: u64,
) -> CheckResult {
    let known = model.entry(player).or_default();
    let is_had =
        known.holder.is_none_or(|holder| holder == by) || now_ms > known.expires_ms + GRACE_MS;
    if is_had {
        known.epoch += 1;
        known.holder = Some(by);
        known.expires_ms = now_ms + LEASE_MS;
    }
    let expected = is_had.then_some(known.epoch);
    let found = match bench.claim(by, player, now_ms)? {
        ClaimResult::Granted { epoch, record } => {
            expect("the revision with it", record.revision, known.revision)?;
            expect("the values with it", &record.values, &known.values)?;
            Some(epoch)
        }
        ClaimResult::Refused { .. } | ClaimResult::Unreadable { .. } => None,
    };
    expect("the epoch of a claim", found, expected)
}

fn random_save(
    bench: &mut StoreTrial,
    model: &mut BTreeMap<u64, StoreModel>,
    by: usize,
    call: u64,
    random: &mut Pcg64Mcg,
) -> CheckResult {
    let mut batch = bench.batch(call);
    let mut expected = Vec::new();
    for player in 0..6 {
        if random.random_bool(0.5) {
            continue;
        }
        let known = model.entry(player).or_default();
        // Some writers have an old epoch.
        let epoch = known.epoch - u64::from(known.epoch > 0 && random.random_bool(0.3));
        let value = [random.random::<u8>()];
        let is_removed = random.random_bool(0.2);
        let change = (1, (!is_removed).then_some(&value[..]));
        add_values(&mut batch, player, epoch, &[change]);
        // A player of epoch 0 was never claimed, so no server may write it.
        let is_new = known.epoch == 0 || epoch != known.epoch;
        if is_new {
            expected.push(player);
            continue;
        }
        known.revision += 1;
        known.tick = call;
        match change.1 {
            Some(value) => known.values.insert(1, value.to_vec()),
            None => known.values.remove(&1),
        };
        if random.random_bool(0.2) {
            batch.release(PlayerId(player), epoch);
            known.holder = None;
        }
    }
    expect("who is refused", bench.save(by, &batch)?, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_store::MemoryDisk;
    use crate::testing::HookedSource;

    #[test]
    fn memory_store_conforms() {
        check_store(MemoryDisk::default).unwrap();
    }

    #[test]
    fn store_that_hides_refused_players_fails_the_check() {
        let unfenced = || {
            HookedSource::new(MemoryDisk::default(), |saving| {
                let mut outcome = saving()?;
                outcome.refused.clear();
                Ok(outcome)
            })
        };
        let wrong = check_store(unfenced).unwrap_err();
        assert!(wrong.starts_with("fenced writers: "), "{wrong}");
    }
}
