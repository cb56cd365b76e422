//! Messages and look-ups reach players on other nodes: three apps with their own nodes, a bus in memory, and rows in memory or Postgres.
//!
//! The Postgres server is that of `THRONG_POSTGRES`; without it, look-ups on Postgres are not tested. `THRONG_FIGURES=1` with `--nocapture`
//! prints the durations of look-ups.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedMain, FixedUpdate};
use bevy_ecs::prelude::*;
use throng_cluster::{
    BusPeer, ClusterAnnounced, ClusterAnnouncement, ClusterKey, ClusterPlayers, ClusterPlugin,
    ClusterRecord, ClusterReply, ClusterRequest, ClusterStore, DriverSettings, LocalBus,
    MessageBus, MessengerStats, NodeDriver, PlayerHooks, PlayerLookedUp, PlayerLookups,
    PlayerMessageReceived, PlayerMessageRequest, PlayerMove, PostgresRows, SharedRows,
};
use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};
use throng_store::{CacheSettings, CacheStats};

use crate::patience::{RowClock, patient_messages};

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const PARTY: [PlayerId; 3] = [PlayerId(1), PlayerId(2), PlayerId(3)];

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, _: &World, _: Entity) -> Vec<u8> {
        b"state".to_vec()
    }

    fn on_receive(&self, world: &mut World, _: PlayerId, _: &ClusterRecord) -> Entity {
        world.spawn_empty().id()
    }
}

/// The messages that arrived in an app.
#[derive(Resource, Default)]
struct ReceivedMessages {
    /// By player.
    messages: BTreeMap<PlayerId, Vec<u8>>,
    announced: Vec<u8>,
    looked_up: Vec<PlayerLookedUp>,
}

fn collect_messages(
    mut messages: MessageReader<PlayerMessageReceived>,
    mut announced: MessageReader<ClusterAnnounced>,
    mut looked_up: MessageReader<PlayerLookedUp>,
    mut received: ResMut<ReceivedMessages>,
) {
    for it in messages.read() {
        assert_eq!(it.channel, 5);
        let messages = received.messages.entry(it.player).or_default();
        messages.extend_from_slice(&it.bytes);
    }
    for it in announced.read() {
        received.announced.extend_from_slice(&it.bytes);
    }
    received.looked_up.extend(looked_up.read().cloned());
}

/// Where the nodes of a test keep their rows.
#[derive(Clone)]
enum Store {
    Server(Arc<TestSchema>),
    Memory(SharedRows),
}

impl Store {
    fn open(&self) -> Box<dyn ClusterStore> {
        match self {
            Self::Server(schema) => Box::new(PostgresRows::new(
                &schema.source(),
                Duration::from_millis(450),
            )),
            Self::Memory(rows) => Box::new(rows.clone()),
        }
    }
}

/// The time of the rows of a test.
struct StoreTime {
    rows: SharedRows,
    clock: RowClock,
}

fn start(store: &Store, bus: &LocalBus, name: &str) -> App {
    let mut settings = DriverSettings::new(name);
    settings.node.save_interval_ms = 50;
    settings.nodes_interval = Duration::from_millis(50);
    settings.start_timeout = Duration::from_secs(60);
    settings.messages = patient_messages();
    let driver = NodeDriver::start(
        &settings,
        || store.open(),
        |run| {
            let own = BusPeer::Node(run.node);
            let key = ClusterKey::new(&[7; 32]);
            Ok(MessageBus::new(Box::new(bus.join(own)), key, own, run.run))
        },
    );
    let mut app = App::new();
    // No result is too old because the machine was busy.
    let lookups = PlayerLookups::new(CacheSettings {
        ttl_ms: 60_000,
        load_timeout_ms: 60_000,
        ..CacheSettings::default()
    });
    app.init_resource::<ReceivedMessages>()
        .insert_resource(lookups)
        .add_plugins(ClusterPlugin::new(Game))
        .add_systems(FixedUpdate, collect_messages);
    let mut players = app.world_mut().resource_mut::<ClusterPlayers>();
    players.open(driver.unwrap());
    app
}

fn players(app: &App) -> &ClusterPlayers {
    app.world().resource::<ClusterPlayers>()
}

fn stats(app: &App) -> MessengerStats {
    let driver = players(app).driver().unwrap();
    driver.with_messages(|messenger, _, _| messenger.stats())
}

fn log_in(apps: &mut Vec<App>, time: &StoreTime, node: usize, player: PlayerId) {
    players(&apps[node]).log_in(player);
    until(apps, time, "login", |apps| {
        players(&apps[node]).entity(player).is_some()
    });
}

fn send(app: &mut App, to: &[PlayerId], number: u8) {
    app.world_mut().write_message(PlayerMessageRequest {
        to: to.to_vec(),
        channel: 5,
        bytes: vec![number],
    });
}

fn received_by(apps: &[App], player: PlayerId) -> Vec<u8> {
    let each = apps
        .iter()
        .map(|app| app.world().resource::<ReceivedMessages>());
    let mut messages: Vec<u8> = each
        .filter_map(|received| received.messages.get(&player))
        .flatten()
        .copied()
        .collect();
    messages.sort_unstable();
    messages
}

/// Ticks all apps until a condition holds.
fn until(
    apps: &mut Vec<App>,
    time: &StoreTime,
    what: &str,
    condition: impl Fn(&mut Vec<App>) -> bool,
) {
    for _ in 0..ROUNDS_MAX {
        time.clock.advance(&time.rows);
        for app in apps.iter_mut() {
            app.world_mut().run_schedule(FixedMain);
        }
        if condition(apps) {
            return;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    let received = PARTY.map(|player| received_by(apps, player));
    let stats: Vec<_> = apps.iter().map(stats).collect();
    panic!("{what}: received {received:?}, {stats:?}");
}

/// Three nodes with a member of the party on each.
fn three_nodes(clock: RowClock) -> (Vec<App>, StoreTime, LocalBus) {
    let (rows, bus) = (SharedRows::default(), LocalBus::default());
    let store = Store::Memory(rows.clone());
    let time = StoreTime { rows, clock };
    let mut apps: Vec<App> = ["n1", "n2", "n3"]
        .map(|name| start(&store, &bus, name))
        .into();
    for (node, player) in PARTY.into_iter().enumerate() {
        log_in(&mut apps, &time, node, player);
    }
    (apps, time, bus)
}

#[test]
fn party_messages_arrive_in_full_while_members_move() {
    let (mut apps, time, _) = three_nodes(RowClock::patient());
    let mut sent = Vec::new();
    for number in 0..30 {
        // A member moves to the next node, and another one sends a message at the same time.
        let mover = PARTY[usize::from(number) % 3];
        let home = apps
            .iter()
            .position(|app| players(app).entity(mover).is_some());
        if let Some(home) = home {
            let to = format!("n{}", (home + 1) % 3 + 1);
            let world = apps[home].world_mut();
            world.write_message(PlayerMove { player: mover, to });
        }
        send(&mut apps[usize::from(number / 3) % 3], &PARTY, number);
        sent.push(number);
        until(&mut apps, &time, "message", |apps| {
            PARTY
                .iter()
                .all(|player| received_by(apps, *player) == sent)
        });
    }
    // Members have moved, and some messages were sent to nodes that a player had left.
    let moved = |app: &App| players(app).stats().handed_off;
    assert!(apps.iter().map(moved).sum::<u64>() > 10);
}

#[test]
fn local_messages_arrive_at_once_and_announcements_reach_all() {
    let (mut apps, time, _) = three_nodes(RowClock::patient());
    send(&mut apps[0], &[PARTY[0], PARTY[0]], 1);
    apps[0].world_mut().run_schedule(FixedMain);
    let received = apps[0]
        .world()
        .resource::<Messages<PlayerMessageReceived>>();
    assert_eq!(received.iter_current_update_messages().count(), 1);
    apps[1].world_mut().write_message(ClusterAnnouncement {
        channel: 9,
        bytes: vec![7],
    });
    until(&mut apps, &time, "announcement", |apps| {
        let mut received = apps
            .iter()
            .map(|app| &app.world().resource::<ReceivedMessages>().announced);
        received.all(|announced| *announced == [7])
    });
    assert_eq!(received_by(&apps, PARTY[0]), [1]);
    let world = apps[0].world_mut();
    world.write_message(ClusterAnnouncement {
        channel: 9,
        bytes: vec![0; 5_000],
    });
    until(&mut apps, &time, "limit", |apps| {
        stats(&apps[0]).too_large == 1
    });
}

#[test]
fn messages_to_unknown_players_and_dead_nodes_are_counted() {
    let (mut apps, time, _bus) = three_nodes(RowClock::start());
    send(&mut apps[0], &[PARTY[1], PARTY[2], PlayerId(99)], 1);
    until(&mut apps, &time, "message", |apps| {
        received_by(apps, PARTY[2]) == [1] && received_by(apps, PARTY[1]) == [1]
    });
    until(&mut apps, &time, "count", |apps| {
        stats(&apps[0]).offline == 1
    });
    // The third node dies. Its player is claimed, and receives later messages.
    apps.truncate(2);
    until(&mut apps, &time, "claim", |apps| {
        apps.iter()
            .any(|app| players(app).entity(PARTY[2]).is_some())
    });
    // Until the sender knows that, a message to the node is lost.
    until(&mut apps, &time, "death", |apps| {
        let nodes = players(&apps[0]).driver().unwrap().nodes();
        nodes.iter().filter(|node| node.is_alive).count() == 2
    });
    let lost = stats(&apps[0]).dead;
    send(&mut apps[0], &PARTY, 2);
    until(&mut apps, &time, "message", |apps| {
        received_by(apps, PARTY[2]) == [2]
    });
    assert_eq!(received_by(&apps, PARTY[1]), [1, 2]);
    assert_eq!(stats(&apps[0]).dead, lost);
}

fn look_up(app: &mut App, player: PlayerId, number: u64) -> bool {
    let mut lookups = app.world_mut().resource_mut::<PlayerLookups>();
    let known = lookups.look_up(player, number).unwrap();
    known.is_some_and(|known| PlayerLookups::state(&known) == Some(b"state"))
}

/// Looks up two players, one of them twice, and returns the counters before.
fn look_up_all(app: &mut App) -> CacheStats {
    let before = cache_stats(app);
    for (number, player) in [(0, PARTY[1]), (1, PlayerId(99)), (2, PARTY[1])] {
        assert!(!look_up(app, player, number));
    }
    before
}

fn cache_stats(app: &App) -> CacheStats {
    app.world().resource::<PlayerLookups>().cache().stats()
}

fn saved_player_is_looked_up(store: &Store, rows: SharedRows) {
    let (bus, clock) = (LocalBus::default(), RowClock::patient());
    let time = StoreTime { rows, clock };
    let mut apps: Vec<App> = ["n1", "n2"].map(|name| start(store, &bus, name)).into();
    log_in(&mut apps, &time, 1, PARTY[1]);
    let mut reader = store.open();
    until(&mut apps, &time, "save", |_| {
        let request = ClusterRequest::ReadPlayers {
            players: vec![PARTY[1]],
            with_records: true,
        };
        match store.open().execute(&request) {
            Ok(ClusterReply::Players(found)) => found[0].record.as_ref().unwrap().revision > 0,
            Ok(other) => panic!("{other:?}"),
            // A busy server has not replied in time.
            Err(_) => false,
        }
    });
    let before = Cell::new(look_up_all(&mut apps[0]));
    until(&mut apps, &time, "result", |apps| {
        let mut received = apps[0].world_mut().resource_mut::<ReceivedMessages>();
        if received.looked_up.len() < 3 {
            return false;
        }
        let are_read = received.looked_up.iter().all(|it| it.result.is_ok());
        if !are_read {
            // A busy store has not replied in time.
            received.looked_up.clear();
            before.set(look_up_all(&mut apps[0]));
        }
        are_read
    });
    let received = apps[0].world().resource::<ReceivedMessages>();
    let results: Vec<_> = received
        .looked_up
        .iter()
        .map(|it| (it.player, it.number))
        .collect();
    // In the order of the first look-ups.
    assert_eq!(results, [(PARTY[1], 0), (PARTY[1], 2), (PlayerId(99), 1)]);
    let states = received
        .looked_up
        .iter()
        .map(|it| it.result.as_ref().unwrap());
    let states: Vec<_> = states.map(PlayerLookups::state).collect();
    assert_eq!(states, [Some(&b"state"[..]), Some(&b"state"[..]), None]);
    // Now it is cached.
    assert!(look_up(&mut apps[0], PARTY[1], 3));
    let (before, stats) = (before.get(), cache_stats(&apps[0]));
    assert_eq!(stats.players_requested - before.players_requested, 2);
    assert_eq!(stats.hits - before.hits, 1);
    if std::env::var_os("THRONG_FIGURES").is_some() {
        print_figures(&mut apps[0], &mut *reader);
    }
}

fn print_figures(app: &mut App, reader: &mut dyn ClusterStore) {
    let mut lookups = app.world_mut().resource_mut::<PlayerLookups>();
    let hits = 1_000_000;
    let clock = Stopwatch::start();
    for number in 0..hits {
        black_box(lookups.look_up(black_box(PARTY[1]), number).unwrap());
    }
    let hit_ns = clock.elapsed().as_nanos() as f64 / hits as f64;
    let request = ClusterRequest::ReadPlayers {
        players: vec![PARTY[1]],
        with_records: true,
    };
    let mut times: Vec<Duration> = (0..2_000)
        .map(|_| {
            let clock = Stopwatch::start();
            reader.execute(&request).unwrap();
            clock.elapsed()
        })
        .collect();
    times.sort_unstable();
    let (median, p99) = (times[1_000], times[1_980]);
    println!("look-up: hit {hit_ns:.1} ns; read of one player {median:?}, p99 {p99:?}");
}

#[test]
fn look_up_reads_once_and_later_ones_are_cached() {
    let rows = SharedRows::default();
    saved_player_is_looked_up(&Store::Memory(rows.clone()), rows);
}

#[test]
fn look_up_works_on_postgres() {
    let Some(url) = postgres_url() else { return };
    let store = Store::Server(Arc::new(TestSchema::new(&url)));
    saved_player_is_looked_up(&store, SharedRows::default());
}
