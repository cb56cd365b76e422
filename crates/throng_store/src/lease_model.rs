//! A model of the whole protocol: servers with different clocks, a store with faults, processes killed at random.
//!
//! ```text
//! login, logout, trade, write ─▶ LeaseTable ─ requests, delayed ─▶ StoreSupervisor ─▶ a store with faults
//!         kill, restart ─▶ ▲                                     │
//!                          └────────────── replies, delayed ◀────┘
//! ```
//!
//! Each server has the two queues of a store thread, handled at random times, so that every order of events occurs. Time is a number.
//! Checked after every step: no player is live twice; stored data never falls behind what was acknowledged; no coin is duplicated or lost.

use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::PlayerId;
use throng_protocol::wire::Encoding;

use super::faulty_store::{FaultShares, FaultySource};
use super::lease_table::{LeaseEvent, LeaseTable, LeaseTableSettings};
use super::memory_store::MemoryDisk;
use super::record::{PlayerRecord, StoredAttribute};
use super::registration::RegistrationTerms;
use super::store::{LookupResult, StoreFactory};
use super::supervisor::{StoreReply, StoreRequest, StoreSupervisor};

const PLAYERS: u64 = 8;
const COINS: u64 = 100;
const DISK: &str = "a disk in memory opens";

/// Attributes of a player: its coins, and how often it was written.
const PURSE: u16 = 1;
const WRITES: u16 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Character {
    coins: u64,
    writes: u64,
}

struct ModelServer {
    name: String,
    ledger: LeaseTable,
    supervisor: StoreSupervisor,
    orders: VecDeque<StoreRequest>,
    reports: VecDeque<StoreReply>,
    /// Offset of its clock, in milliseconds.
    ahead_ms: u64,
    /// Players live here.
    characters: BTreeMap<PlayerId, Character>,
    /// Writes that are not acknowledged yet, in the order of ticks.
    written: Vec<(u64, PlayerId, u64)>,
    tick: u64,
}

struct LeaseModel {
    random: Pcg64Mcg,
    disk: MemoryDisk,
    source: FaultySource<MemoryDisk>,
    servers: Vec<ModelServer>,
    now_ms: u64,
    /// How far the clock of the store was set forward.
    store_ahead_ms: u64,
    clocks: ModelClocks,
    /// Acknowledged writes per player.
    acknowledged: BTreeMap<PlayerId, u64>,
    counts: BTreeMap<&'static str, u64>,
}

fn server(source: &FaultySource<MemoryDisk>, nth: usize, clocks: ModelClocks) -> ModelServer {
    let name = format!("server {nth}");
    let settings = LeaseTableSettings {
        load_timeout_ms: 300,
        lease_ms: 400,
        renew_after_ms: 130,
        clock_grace_ms: clocks.grace_ms,
        ..LeaseTableSettings::default()
    };
    ModelServer {
        supervisor: StoreSupervisor::new(Box::new(source.clone()), name.clone(), attributes())
            .with_registration(RegistrationTerms {
                take_over: true,
                ..RegistrationTerms::default()
            }),
        name,
        ledger: LeaseTable::new(settings),
        orders: VecDeque::new(),
        reports: VecDeque::new(),
        ahead_ms: nth as u64 * clocks.apart_ms / 2,
        characters: BTreeMap::new(),
        written: Vec::new(),
        tick: 0,
    }
}

fn attributes() -> Vec<StoredAttribute> {
    let attribute = |(id, name): (u16, &str)| StoredAttribute {
        id,
        name: name.to_owned(),
        encoding: Encoding::Bytes { max: 8 },
    };
    [(PURSE, "purse"), (WRITES, "writes")]
        .map(attribute)
        .to_vec()
}

impl LeaseModel {
    fn new(seed: u64, clocks: ModelClocks) -> Self {
        let disk = MemoryDisk::default();
        let shares = FaultShares {
            failing: 0.04,
            reply_lost: 0.04,
            slow: 0.1,
            slow_ms: 30,
            full: 0.02,
            closed: 0.1,
        };
        let source = FaultySource::new(disk.clone(), seed, shares);
        let servers = (0..3).map(|nth| server(&source, nth, clocks)).collect();
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            disk,
            source,
            servers,
            now_ms: 10_000,
            store_ahead_ms: 0,
            clocks,
            acknowledged: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn step(&mut self) -> Result<(), String> {
        let slept = self.source.clock();
        self.now_ms += self.random.random_range(0..8);
        if self.random.random_bool(0.001) {
            self.store_ahead_ms += self.clocks.jump_ms;
        }
        let nth = self.random.random_range(0..self.servers.len());
        match self.random.random_range(0..100) {
            0..25 => self.tick(nth)?,
            25..50 => self.run_store(nth)?,
            50..58 => self.log_in(nth),
            58..62 => self.log_out(nth),
            62..99 => self.play(nth),
            _ if self.random.random_bool(0.3) => self.kill(nth),
            _ => {}
        }
        self.now_ms += self.source.clock() - slept;
        self.check_invariants()
    }

    fn clock(&self, nth: usize) -> u64 {
        self.now_ms + self.servers[nth].ahead_ms
    }

    /// The server handles the replies and sends its requests, as at the end of a tick.
    fn tick(&mut self, nth: usize) -> Result<(), String> {
        let now_ms = self.clock(nth);
        let server = &mut self.servers[nth];
        server.tick += 1;
        let mut events = Vec::new();
        let mut live = server.characters.keys();
        let ends_now = live.any(|&player| server.ledger.lease_valid_until(player) == Some(now_ms));
        // Leases of a slow process also expire between two ticks, so it checks its clock first.
        server.ledger.expire(now_ms, |event| events.push(event));
        for &player in server.characters.keys() {
            if server
                .ledger
                .lease_valid_until(player)
                .is_some_and(|until_ms| until_ms <= now_ms)
            {
                return Err(format!("{player:?} is live beyond its lease"));
            }
        }
        if self.random.random_bool(0.7) {
            for report in std::mem::take(&mut server.reports) {
                server
                    .ledger
                    .receive(report, now_ms, |event| events.push(event));
            }
        }
        if ends_now {
            self.count("ended now");
        }
        for event in events {
            self.apply_event(nth, event)?;
        }
        let server = &mut self.servers[nth];
        let tick = server.tick;
        let mut names: Vec<PlayerId> = Vec::new();
        for &(at, player, _) in &server.written {
            if at == tick && !names.contains(&player) {
                names.push(player);
            }
        }
        // Writes since the last tick are saved in this one.
        for player in names {
            if let Some(character) = server.characters.get(&player) {
                save(&mut server.ledger, player, tick, *character);
            }
        }
        let orders = &mut server.orders;
        orders.extend(server.ledger.next_save_request());
        server
            .ledger
            .next_requests(now_ms, |order| orders.push_back(order));
        Ok(())
    }

    fn apply_event(&mut self, nth: usize, event: LeaseEvent) -> Result<(), String> {
        let server = &mut self.servers[nth];
        match event {
            LeaseEvent::Loaded(record) => {
                let read = |id| {
                    let bytes = record.values.get(&id)?;
                    Some(u64::from_le_bytes(bytes.as_slice().try_into().ok()?))
                };
                let character = Character {
                    coins: read(PURSE).unwrap_or(COINS),
                    writes: read(WRITES).unwrap_or(0),
                };
                let least = self.acknowledged.get(&record.player).copied().unwrap_or(0);
                if character.writes < least {
                    return Err(format!(
                        "{:?} was loaded with {} writes, {least} were acknowledged",
                        record.player, character.writes
                    ));
                }
                server.characters.insert(record.player, character);
                self.count("loaded");
            }
            LeaseEvent::Lost { player, .. } => {
                server.characters.remove(&player);
                server.written.retain(|&(_, whose, _)| whose != player);
                self.count("lost");
            }
            LeaseEvent::Expired(player) => {
                let tick = server.tick;
                self.leave(nth, player, tick);
                self.count("expired");
            }
            LeaseEvent::Saved {
                tick, revisions, ..
            } => {
                let saved = |player: PlayerId| revisions.iter().any(|&(other, _)| other == player);
                for &(at, player, writes) in &server.written {
                    if at <= tick && saved(player) {
                        let known = self.acknowledged.entry(player).or_default();
                        *known = writes.max(*known);
                    }
                }
                server.written.retain(|&(at, ..)| at > tick);
                if !revisions.is_empty() {
                    self.count("saved");
                }
            }
            LeaseEvent::LoadFailed(..) => self.count("refused"),
            LeaseEvent::StoreFailed(_) => self.count("trouble"),
            LeaseEvent::SaveRejected(_) => self.count("rejected"),
        }
        Ok(())
    }

    /// The last values of a player who leaves are saved with the release of the lease.
    fn leave(&mut self, nth: usize, player: PlayerId, tick: u64) {
        let server = &mut self.servers[nth];
        if let Some(character) = server.characters.remove(&player) {
            save(&mut server.ledger, player, tick, character);
        }
    }

    fn run_store(&mut self, nth: usize) -> Result<(), String> {
        let (now_ms, at_ms) = (self.now_ms, self.now_ms + self.store_ahead_ms);
        let server = &mut self.servers[nth];
        let Some(order) = server.orders.pop_front() else {
            return Ok(());
        };
        match server.supervisor.execute(&with_time(&order, at_ms), now_ms) {
            Ok(report) => server.reports.push_back(report),
            Err(error) if matches!(order, StoreRequest::Save { .. }) => {
                server.reports.push_back(StoreReply::SaveFailed(error));
                server.orders.push_front(order);
                // Other requests are answered first.
                if let Some(place) = server
                    .orders
                    .iter()
                    .position(|order| !matches!(order, StoreRequest::Save { .. }))
                    && let Some(other) = server.orders.remove(place)
                {
                    let answer = server.supervisor.execute(&with_time(&other, at_ms), now_ms);
                    let answer = answer.map_or_else(|error| other.into_failure(error), Some);
                    server.reports.extend(answer);
                }
            }
            Err(error) => server.reports.extend(order.into_failure(error)),
        }
        Ok(())
    }

    fn log_in(&mut self, nth: usize) {
        let (now_ms, player) = (
            self.clock(nth),
            PlayerId(self.random.random_range(0..PLAYERS)),
        );
        let server = &mut self.servers[nth];
        if !server.characters.contains_key(&player) {
            let _ = server.ledger.claim(player, now_ms);
        }
    }

    fn log_out(&mut self, nth: usize) {
        let player = PlayerId(self.random.random_range(0..PLAYERS));
        let tick = self.servers[nth].tick + 1;
        self.leave(nth, player, tick);
        self.servers[nth].ledger.release(player);
    }

    /// A character does something; two of them trade.
    fn play(&mut self, nth: usize) {
        let random = &mut self.random;
        let server = &mut self.servers[nth];
        // A process checks its clock before each action, so it does none for players whose lease has expired.
        let here: Vec<PlayerId> = server.characters.keys().copied().collect();
        if here.is_empty() {
            return;
        }
        let mut pick = || here[random.random_range(0..here.len())];
        let (one, other) = (pick(), pick());
        let coins = random.random_range(1..20);
        if one != other
            && let Some(giver) = server.characters.get_mut(&one)
            && giver.coins >= coins
        {
            giver.coins -= coins;
            if let Some(taker) = server.characters.get_mut(&other) {
                taker.coins += coins;
            }
            server.ledger.join_saves(one, other, server.tick + 1);
        }
        for player in [one, other] {
            if let Some(character) = server.characters.get_mut(&player) {
                character.writes += 1;
                server
                    .written
                    .push((server.tick + 1, player, character.writes));
            }
        }
    }

    /// Kills the process with its memory; the current request of the store is executed or not. Another process starts.
    fn kill(&mut self, nth: usize) {
        let (now_ms, at_ms) = (self.now_ms, self.now_ms + self.store_ahead_ms);
        let old = &mut self.servers[nth];
        if self.random.random_bool(0.5)
            && let Some(order) = old.orders.pop_front()
        {
            let _ = old.supervisor.execute(&with_time(&order, at_ms), now_ms);
        }
        let mut new = server(&self.source, nth, self.clocks);
        debug_assert_eq!(new.name, self.servers[nth].name);
        new.ahead_ms = self.servers[nth].ahead_ms;
        self.servers[nth] = new;
        self.count("killed");
    }

    fn check_invariants(&mut self) -> Result<(), String> {
        for player in (0..PLAYERS).map(PlayerId) {
            let live = (0..self.servers.len()).filter(|&nth| {
                let server = &self.servers[nth];
                // An expired lease is reported before the player does anything.
                server.characters.contains_key(&player)
                    && server.ledger.lease_valid_until(player) > Some(self.clock(nth))
            });
            if self.clocks.checks_liveness && live.count() > 1 {
                return Err(format!("{player:?} is live twice"));
            }
        }
        let all: Vec<PlayerId> = (0..PLAYERS).map(PlayerId).collect();
        let mut store = self.disk.open().expect(DISK);
        let kept = store.lookup(&all).expect(DISK).into_iter();
        let kept: Vec<PlayerRecord> = kept.filter_map(LookupResult::into_record).collect();
        let coins = |bytes: &Vec<u8>| u64::from_le_bytes(bytes.as_slice().try_into().expect(DISK));
        let sum: u64 = kept
            .iter()
            .map(|record| coins(&record.values[&PURSE]))
            .sum();
        if sum != COINS * kept.len() as u64 {
            return Err(format!("{} players have {sum} coins", kept.len()));
        }
        for record in kept {
            let writes = coins(&record.values[&WRITES]);
            let least = self.acknowledged.get(&record.player).copied().unwrap_or(0);
            if writes < least {
                return Err(format!(
                    "{:?} is stored with {writes} writes, {least} were acknowledged",
                    record.player
                ));
            }
        }
        Ok(())
    }
}

fn save(ledger: &mut LeaseTable, player: PlayerId, tick: u64, character: Character) {
    let values = [
        (PURSE, character.coins.to_le_bytes()),
        (WRITES, character.writes.to_le_bytes()),
    ];
    let values = values.iter().map(|(id, value)| (*id, Some(&value[..])));
    ledger.save(player, tick, values);
}

/// The request with the time of the store's clock.
fn with_time(order: &StoreRequest, at_ms: u64) -> StoreRequest {
    let mut order = order.clone();
    if let StoreRequest::Claim { terms, .. } | StoreRequest::Renew { terms, .. } = &mut order {
        terms.at_ms = Some(at_ms);
    }
    order
}

/// How clocks differ, and what is checked.
#[derive(Clone, Copy)]
struct ModelClocks {
    grace_ms: u64,
    /// Difference between the server that is most ahead and the one that is least.
    apart_ms: u64,
    /// How far the clock of the store is set forward, from time to time.
    jump_ms: u64,
    /// Whether to check that no player is live twice.
    checks_liveness: bool,
}

/// Plays a number of runs. Returns the first problem, and how often each event happened.
fn play(runs: u64, clocks: ModelClocks) -> (Option<String>, BTreeMap<&'static str, u64>) {
    let mut counts = BTreeMap::new();
    for seed in 0..runs {
        let mut model = LeaseModel::new(seed, clocks);
        for step in 0..4_000 {
            if let Err(wrong) = model.step() {
                return (Some(format!("run {seed}, step {step}: {wrong}")), counts);
            }
        }
        for (what, count) in model.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    (None, counts)
}

const RIGHT: ModelClocks = ModelClocks {
    grace_ms: 40,
    apart_ms: 1_000_000_000,
    jump_ms: 20,
    checks_liveness: true,
};

/// Asserts that all named events happened often.
fn assert_exercised(counts: &BTreeMap<&str, u64>, names: &[&str]) {
    for name in names {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count >= 20, "{name}: {counts:?}");
    }
}

#[test]
fn players_are_live_once_and_nothing_is_duplicated_or_lost() {
    let (wrong, counts) = play(40, RIGHT);
    assert_eq!(wrong, None, "after {counts:?}");
    let all = [
        "loaded",
        "expired",
        "ended now",
        "saved",
        "refused",
        "trouble",
        "killed",
    ];
    assert_exercised(&counts, &all);
}

#[test]
fn store_clock_jumps_duplicate_or_lose_nothing() {
    let clocks = ModelClocks {
        jump_ms: 2_000,
        checks_liveness: false,
        ..RIGHT
    };
    let (wrong, counts) = play(40, clocks);
    assert_eq!(wrong, None, "after {counts:?}");
    assert_exercised(&counts, &["loaded", "lost", "saved", "killed"]);
}

#[test]
fn model_detects_store_clock_jumps_beyond_the_grace() {
    let (wrong, _) = play(
        40,
        ModelClocks {
            jump_ms: 200,
            ..RIGHT
        },
    );
    let wrong = wrong.expect("leases are taken too early");
    assert!(wrong.ends_with("is live twice"), "{wrong}");
}
