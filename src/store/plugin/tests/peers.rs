//! Servers of one store that show each other's players, with notifications that are lost, duplicated, delayed and reordered.

use std::collections::BTreeMap;

use bevy_time::{Fixed, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::store::{CacheSettings, PeerFaults, PeerHub, PeerMessage, Peers};

const SERVERS: [&str; 3] = ["a", "b", "c"];
const PLAYERS: u64 = 5;
const HOUR_MS: u64 = 3_600_000;
const DEADLINE_MS: u64 = 200;

/// The error is a violated expectation.
type PeersChecked = Result<(), String>;

fn server(name: &str, disk: &MemoryDisk, peers: impl Peers + 'static, ttl_ms: u64) -> App {
    let settings = PlayerStoreSettings {
        server: name.to_owned(),
        reply_mode: StoreReplyMode::NextTick,
        cache: CacheSettings {
            ttl_ms,
            missing_ttl_ms: ttl_ms,
            load_timeout_ms: DEADLINE_MS,
            ..CacheSettings::default()
        },
        ..PlayerStoreSettings::default()
    };
    let mut app = game_with(disk.clone(), settings);
    app.insert_resource(SyncSettings {
        save_every_ticks: 4,
        ..SyncSettings::default()
    });
    app.world_mut().resource_mut::<PlayerStore>().join(peers);
    app
}

/// Accepts every record as newer than all before it: the fault that the test has to find.
#[derive(Debug)]
struct TrustingPeers<P> {
    peers: P,
    newest: u64,
}

impl<P: Peers> Peers for TrustingPeers<P> {
    fn send(&mut self, server: &str, message: PeerMessage) {
        self.peers.send(server, message);
    }

    fn broadcast(&mut self, message: PeerMessage) {
        self.peers.broadcast(message);
    }

    fn receive(&mut self) -> Option<PeerMessage> {
        let mut message = self.peers.receive()?;
        if let PeerMessage::Saved(records) = &mut message {
            for record in records {
                self.newest += 1;
                Arc::make_mut(record).revision = 1_000 + self.newest;
            }
        }
        Some(message)
    }
}

/// Servers, and the true state of players.
struct PeerTrial {
    hub: PeerHub,
    apps: Vec<App>,
    disk: MemoryDisk,
    random: Pcg64Mcg,
    ttl_ms: u64,
    /// By player: the coins on the disk, with the time of each change.
    kept: BTreeMap<u64, Vec<(u64, u64)>>,
    /// The server of each player, and since when.
    sent_to: BTreeMap<u64, (usize, ClientId, u32)>,
    tick: u32,
    number: u64,
    /// Pending lookups: the server, the player, and since when.
    waiting: BTreeMap<u64, (usize, u64, u64)>,
    /// The most coins of a player that a server returned.
    shown: BTreeMap<(usize, u64), u64>,
}

impl PeerTrial {
    fn new(seed: u64, ttl_ms: u64, faults: PeerFaults, trusts: bool) -> Self {
        let (hub, disk) = (PeerHub::new(seed, faults), MemoryDisk::default());
        let apps = SERVERS.map(|name| {
            let peers = hub.join(name);
            if trusts {
                let peers = TrustingPeers { peers, newest: 0 };
                server(name, &disk, peers, ttl_ms)
            } else {
                server(name, &disk, peers, ttl_ms)
            }
        });
        Self {
            hub,
            apps: apps.into(),
            disk,
            random: Pcg64Mcg::seed_from_u64(seed),
            ttl_ms,
            kept: BTreeMap::new(),
            sent_to: BTreeMap::new(),
            tick: 0,
            number: 0,
            waiting: BTreeMap::new(),
            shown: BTreeMap::new(),
        }
    }

    /// The time of all servers, which are stepped one after the other.
    fn now_ms(&self) -> u64 {
        let time = self.apps[0].world().resource::<Time<Fixed>>();
        time.elapsed().as_millis() as u64
    }

    fn tick_ms(&self) -> u64 {
        let time = self.apps[0].world().resource::<Time<Fixed>>();
        time.timestep().as_millis() as u64 + 1
    }

    fn lookup(&mut self, server: usize, player: u64) {
        self.number += 1;
        request_lookup(&mut self.apps[server], player, self.number);
        let look = (server, player, self.now_ms());
        self.waiting.insert(self.number, look);
    }

    /// Some players log in, some log out, some get coins, some are looked up.
    fn change_players(&mut self) {
        for player in 1..=PLAYERS {
            let at = (0..self.apps.len()).find(|&nth| purse(&mut self.apps[nth], player).is_some());
            match (at, self.sent_to.get(&player)) {
                (Some(nth), _) if self.random.random_bool(0.3) => {
                    purse(&mut self.apps[nth], player).unwrap().0 += 1;
                }
                (Some(nth), Some(&(_, client, _))) if self.random.random_bool(0.04) => {
                    send(&mut self.apps[nth], client, ClientMessage::Logout);
                    self.sent_to.remove(&player);
                }
                (None, sent) if sent.is_none_or(|sent| self.tick > sent.2 + 10) => {
                    let nth = self.random.random_range(0..self.apps.len());
                    let client = log_in(&mut self.apps[nth], player);
                    self.sent_to.insert(player, (nth, client, self.tick));
                }
                _ => {}
            }
            for nth in 0..self.apps.len() {
                if self.random.random_bool(0.15) {
                    self.lookup(nth, player);
                }
            }
        }
    }

    fn step(&mut self) -> PeersChecked {
        self.tick += 1;
        for nth in 0..self.apps.len() {
            self.apps[nth].update();
            for (number, coins) in lookup_results(&self.apps[nth]) {
                self.check(number, coins)?;
            }
        }
        let now_ms = self.now_ms();
        for player in 1..=PLAYERS {
            let coins = stored_coins(&self.disk, player).map_or(0, |kept| kept.0);
            let times = self.kept.entry(player).or_default();
            if times.last().map_or(0, |last| last.1) != coins {
                times.push((now_ms, coins));
            }
        }
        let late_ms = DEADLINE_MS + 2 * self.tick_ms();
        match self.waiting.values().find(|look| now_ms - look.2 > late_ms) {
            Some(look) => Err(format!("no reply to {look:?} at {now_ms} ms")),
            None => Ok(()),
        }
    }

    /// Checks a reply: only one per lookup, not older than allowed, and with no fewer coins than returned before.
    fn check(&mut self, number: u64, coins: Result<Option<u64>, PlayerStoreError>) -> PeersChecked {
        let Some((server, player, _)) = self.waiting.remove(&number) else {
            return Err(format!("look {number} was answered before"));
        };
        let Ok(coins) = coins else {
            return Ok(());
        };
        let (coins, now_ms) = (coins.unwrap_or(0), self.now_ms());
        let shown = self.shown.entry((server, player)).or_default();
        if coins < *shown {
            return Err(format!(
                "{server} showed {shown} coins of {player}, and then {coins}"
            ));
        }
        *shown = coins;
        let oldest_ms = self.ttl_ms.max(DEADLINE_MS) + 2 * self.tick_ms();
        let times = self.kept.get(&player).into_iter().flatten();
        let old = times.filter(|kept| kept.0 + oldest_ms < now_ms);
        let least = old.map(|kept| kept.1).max().unwrap_or(0);
        if coins < least {
            return Err(format!(
                "{server} shows {coins} coins of {player} at {now_ms} ms; {oldest_ms} ms ago there were {least}"
            ));
        }
        Ok(())
    }

    fn run(&mut self, ticks: u32) -> PeersChecked {
        for _ in 0..ticks {
            self.change_players();
            self.step()?;
        }
        Ok(())
    }

    /// All players log out and pending messages arrive; then all servers return the state of the disk.
    fn converge(&mut self) -> PeersChecked {
        for &(nth, client, _) in self.sent_to.values() {
            let mut bytes = Vec::new();
            ClientMessage::Logout.encode(&mut bytes);
            // A refused session has ended already.
            let transport = self.apps[nth].world().resource::<TransportHandle>();
            let _ = transport.receive(client, &bytes);
        }
        for _ in 0..40 {
            self.step()?;
        }
        for nth in 0..self.apps.len() {
            (1..=PLAYERS).for_each(|player| self.lookup(nth, player));
        }
        self.step()?;
        self.step()?;
        for (&(server, player), &shown) in &self.shown {
            let kept = stored_coins(&self.disk, player).map_or(0, |kept| kept.0);
            if shown != kept {
                return Err(format!(
                    "{server} shows {shown} coins of {player} in the end, and there are {kept}"
                ));
            }
        }
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(format!("no reply to {:?}", self.waiting))
        }
    }
}

const LOSSES: PeerFaults = PeerFaults {
    dropped: 0.3,
    duplicated: 0.2,
    reordered: 0.3,
    delayed: 0.5,
};

/// No message is lost; all other faults occur.
const DISORDER: PeerFaults = PeerFaults {
    dropped: 0.0,
    duplicated: 0.3,
    reordered: 0.5,
    delayed: 0.6,
};

/// Servers that refresh their cache and lose messages; then servers that rely on messages alone.
fn trial(seed: u64, trusts: bool) -> PeersChecked {
    let mut refreshing = PeerTrial::new(seed, 400, LOSSES, trusts);
    refreshing.run(150)?;
    let pause = 400 / refreshing.tick_ms() as u32 + 2;
    (0..pause).try_for_each(|_| refreshing.step())?;
    refreshing.converge()?;
    let mut trial = PeerTrial::new(seed, HOUR_MS, DISORDER, trusts);
    trial.run(150)?;
    trial.hub.set_faults(PeerFaults {
        delayed: 0.0,
        ..DISORDER
    });
    trial.converge()
}

#[test]
fn remote_players_are_fresh_monotonic_and_converge() {
    for seed in 0..4 {
        trial(seed, false).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn unchecked_peer_records_are_detected_by_the_trial() {
    let found = (0..4).find_map(|seed| trial(seed, true).err());
    assert!(found.is_some());
}

#[test]
fn subscriber_receives_saves_and_all_servers_receive_departures() {
    let (hub, disk) = (PeerHub::default(), MemoryDisk::default());
    let [mut a, mut b, mut c] = SERVERS.map(|name| server(name, &disk, hub.join(name), HOUR_MS));
    log_in(&mut a, 7);
    ticks(&mut a, 2);
    let mut loads = Vec::new();
    let step = |a: &mut App, b: &mut App, c: &mut App, count| {
        for _ in 0..count {
            a.update();
            b.update();
            c.update();
        }
        let known = |app: &mut App| {
            request_lookup(app, 7, 0);
            app.update();
            let result = lookup_results(app).pop();
            result.and_then(|(_, coins)| coins.unwrap())
        };
        (known(b), known(c))
    };
    purse(&mut a, 7).unwrap().0 = 1;
    ticks(&mut a, 8);
    for app in [&mut b, &mut c] {
        request_lookup(app, 7, 0);
        ticks(app, 2);
        loads.push(
            app.world()
                .resource::<PlayerStore>()
                .cache_stats()
                .unwrap()
                .players_requested,
        );
    }
    assert_eq!(loads, [1, 1]);
    purse(&mut a, 7).unwrap().0 = 2;
    assert_eq!(step(&mut a, &mut b, &mut c, 10), (Some(2), Some(2)));
    purse(&mut a, 7).unwrap().0 = 3;
    assert!(close_player_store(a.world_mut(), MINUTE));
    assert_eq!(step(&mut a, &mut b, &mut c, 3), (Some(3), Some(3)));
    let published = |app: &App| app.world().resource::<PlayerStore>().peer_stats();
    assert!(published(&a).is_none() && published(&b).unwrap().published == 0);
    let stats = b.world().resource::<PlayerStore>().cache_stats().unwrap();
    assert_eq!(
        (stats.players_requested, stats.pushes),
        (1, 2),
        "it read nothing itself"
    );
}

#[test]
fn peer_messages_per_tick_are_limited() {
    let (hub, disk) = (PeerHub::default(), MemoryDisk::default());
    let mut app = server("a", &disk, hub.join("a"), HOUR_MS);
    app.world_mut()
        .resource_mut::<PlayerStoreSettings>()
        .peers
        .messages_per_tick_max = 3;
    let mut other = hub.join("b");
    (0..8).for_each(|_| other.broadcast(PeerMessage::Saved(Vec::new())));
    let received = [(); 4].map(|()| {
        app.update();
        let stats = app.world().resource::<PlayerStore>().peer_stats();
        stats.unwrap().received
    });
    assert_eq!(received, [3, 6, 8, 8]);
}
