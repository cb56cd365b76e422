//! Players move between two apps, over a real Postgres server and a real NATS server, while one of the two dies at any step.
//!
//! The store is the server of `THRONG_POSTGRES`; without it, or without the program `nats-server`, nothing is tested:
//! `.ci/with_nats .ci/with_postgres cargo test -p throng_cluster` starts both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedMain};
use bevy_ecs::prelude::*;
use throng_cluster::{
    BusPeer, ClusterKey, ClusterPlayers, ClusterPlugin, ClusterRecord, ClusterReply,
    ClusterRequest, ClusterStore, ClusterStoreError, DriverSettings, DriverStartError,
    FrozenPlayer, LeaveReason, LocalBus, MessageBus, NatsSettings, NodeDriver, PlayerExchange,
    PlayerHooks, PlayerLogOut, PlayerLoginRefused, PlayerMove, PostgresRows, SharedRows,
};
use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::patience::{RowClock, connect_nats};
use crate::servers::NatsServer;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const PLAYER: PlayerId = PlayerId(7);
const OTHER: PlayerId = PlayerId(8);

/// What the game of these tests knows about a player.
#[derive(Component, Debug, PartialEq, Eq)]
struct Gold(u64);

/// What happened in an app.
#[derive(Resource, Default)]
struct Diary(Vec<(PlayerId, &'static str)>);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        world.get::<Gold>(player).unwrap().0.to_le_bytes().to_vec()
    }

    fn on_receive(&self, world: &mut World, player: PlayerId, record: &ClusterRecord) -> Entity {
        let gold = if record.revision == 0 {
            10
        } else {
            u64::from_le_bytes(record.bytes[..].try_into().unwrap())
        };
        note(world, player, "received");
        world.spawn(Gold(gold)).id()
    }

    fn on_leave(&self, world: &mut World, player: Entity, reason: LeaveReason) {
        let player = world
            .get::<throng_cluster::ClusterPlayer>(player)
            .unwrap()
            .0;
        let text = match reason {
            LeaveReason::Moved => "moved",
            LeaveReason::LoggedOut => "logged out",
            LeaveReason::Lost => "lost",
        };
        note(world, player, text);
    }

    fn on_arrive(&self, world: &mut World, player: Entity) {
        let player = world
            .get::<throng_cluster::ClusterPlayer>(player)
            .unwrap()
            .0;
        note(world, player, "arrived");
    }
}

fn note(world: &mut World, player: PlayerId, text: &'static str) {
    world.resource_mut::<Diary>().0.push((player, text));
}

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Before the store executes the request.
    Before,
    /// After it, before the reply.
    After,
}

/// Kills a process at a request.
#[derive(Default)]
struct Executioner {
    at: Mutex<Option<(&'static str, Death)>>,
    is_dead: AtomicBool,
}

struct MortalStore {
    store: Box<dyn ClusterStore>,
    executioner: Arc<Executioner>,
}

impl ClusterStore for MortalStore {
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
        let dead = Err(ClusterStoreError::Unknown("the process is dead".to_owned()));
        if self.executioner.is_dead.load(Ordering::Acquire) {
            return dead;
        }
        let at = *self.executioner.at.lock().unwrap();
        let hit = at.filter(|(kind, _)| format!("{request:?}").starts_with(kind));
        if let Some((_, death)) = hit {
            if death == Death::After {
                let reply = self.store.execute(request);
                assert!(!matches!(reply, Ok(ClusterReply::Refused(_))), "{reply:?}");
            }
            self.executioner.is_dead.store(true, Ordering::Release);
            return dead;
        }
        self.store.execute(request)
    }
}

/// Where the nodes of a test keep their rows and messages.
#[derive(Clone)]
enum Engines {
    Servers(Arc<TestSchema>, NatsSettings),
    Memory(SharedRows, LocalBus),
}

/// A process: an app and its node.
struct Process {
    app: App,
    executioner: Arc<Executioner>,
}

fn start(engines: &Engines, name: &str) -> Result<Process, DriverStartError> {
    let executioner = Arc::new(Executioner::default());
    let mut settings = DriverSettings::new(name);
    settings.node.save_interval_ms = 100;
    settings.nodes_interval = Duration::from_millis(50);
    settings.start_timeout = Duration::from_secs(60);
    let timeout = Duration::from_millis(settings.node.request_timeout_ms);
    let open = || {
        let store: Box<dyn ClusterStore> = match engines {
            Engines::Servers(schema, _) => Box::new(PostgresRows::new(&schema.source(), timeout)),
            Engines::Memory(rows, _) => Box::new(rows.clone()),
        };
        let executioner = executioner.clone();
        Box::new(MortalStore { store, executioner }) as Box<dyn ClusterStore>
    };
    let driver = NodeDriver::start(&settings, open, |run| {
        let own = BusPeer::Node(run.node);
        let transport: Box<dyn throng_cluster::BusTransport> = match engines {
            Engines::Servers(_, nats) => Box::new(connect_nats(nats, own)),
            Engines::Memory(_, bus) => Box::new(bus.join(own)),
        };
        let key = ClusterKey::new(&[7; 32]);
        Ok(MessageBus::new(transport, key, own, run.run))
    })?;
    let mut app = App::new();
    app.init_resource::<Diary>();
    app.add_plugins(ClusterPlugin::new(Game));
    app.world_mut()
        .resource_mut::<ClusterPlayers>()
        .open(driver);
    Ok(Process { app, executioner })
}

impl Process {
    fn tick(&mut self) {
        self.app.world_mut().run_schedule(FixedMain);
    }

    fn players(&self) -> &ClusterPlayers {
        self.app.world().resource::<ClusterPlayers>()
    }

    fn gold(&self, player: PlayerId) -> Option<u64> {
        let entity = self.players().entity(player)?;
        Some(self.app.world().get::<Gold>(entity)?.0)
    }

    fn set_gold(&mut self, player: PlayerId, gold: u64) {
        let entity = self.players().entity(player).unwrap();
        self.app.world_mut().get_mut::<Gold>(entity).unwrap().0 = gold;
    }

    /// Whether the game may change the player here.
    fn is_free(&self, player: PlayerId) -> bool {
        let entity = self.players().entity(player);
        entity.is_some_and(|entity| self.app.world().get::<FrozenPlayer>(entity).is_none())
    }

    fn send(&mut self, message: impl Message) {
        self.app.world_mut().write_message(message);
    }

    fn is_dead(&self) -> bool {
        self.executioner.is_dead.load(Ordering::Acquire)
    }

    fn diary(&self, player: PlayerId) -> Vec<&'static str> {
        let diary = self.app.world().resource::<Diary>().0.iter();
        diary
            .filter(|(of, _)| *of == player)
            .map(|(_, text)| *text)
            .collect()
    }
}

/// Ticks all processes until a condition holds. Dead processes vanish. No player is ever free in two of them.
fn until(
    processes: &mut Vec<Process>,
    what: &str,
    mut condition: impl FnMut(&mut Vec<Process>) -> bool,
) {
    let mut rounds = 0;
    loop {
        for process in processes.iter_mut() {
            process.tick();
        }
        for player in [PLAYER, OTHER] {
            let free = processes.iter().filter(|process| process.is_free(player));
            assert!(free.count() <= 1, "{what}: player {} is doubled", player.0);
        }
        processes.retain(|process| !process.is_dead());
        if condition(processes) {
            return;
        }
        let diaries: Vec<_> = processes
            .iter()
            .map(|process| process.diary(PLAYER))
            .collect();
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "{what}: {diaries:?}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

fn knows(process: &Process, name: &str) -> bool {
    let driver = process.players().driver();
    driver.is_some_and(|driver| driver.node_named(name).is_some())
}

/// Two nodes, and the player with 3 gold on the first one, saved.
fn two_nodes(engines: &Engines) -> Vec<Process> {
    let mut processes = vec![start(engines, "n1").unwrap(), start(engines, "n2").unwrap()];
    processes[0].players().log_in(PLAYER);
    until(&mut processes, "login", |processes| {
        processes[0].gold(PLAYER) == Some(10)
    });
    processes[0].set_gold(PLAYER, 3);
    until(&mut processes, "first save", |processes| {
        let is_saved = match engines {
            Engines::Servers(schema, _) => {
                let text = "SELECT encode(record, 'hex') FROM cluster_player WHERE player = 7";
                schema.operator().query::<String>(text)[0].starts_with("03")
            }
            Engines::Memory(rows, _) => {
                let three = 3_u64.to_le_bytes();
                rows.with_rows(|rows| rows.records().any(|(_, record)| record.bytes == three))
            }
        };
        let names = ["n1", "n2"];
        is_saved
            && names
                .iter()
                .all(|name| processes.iter().all(|process| knows(process, name)))
    });
    processes
}

fn servers(url: &str, nats: &NatsServer, prefix: &str) -> Engines {
    let mut settings = NatsSettings::new(nats.address());
    settings.prefix = prefix.to_owned();
    Engines::Servers(Arc::new(TestSchema::new(url)), settings)
}

/// Asks for the move of the player to the other node, if it is free. A node that pauses on a busy machine drops the request.
fn request_move(processes: &mut [Process], from: usize) {
    if processes[from].is_free(PLAYER) {
        let to = ["n2", "n1"][from].to_owned();
        processes[from].send(PlayerMove { player: PLAYER, to });
    }
}

/// Moves the player to the other node.
fn hand_off(processes: &mut Vec<Process>, from: usize) {
    request_move(processes, from);
    until(processes, "hand-off", |processes| {
        request_move(processes, from);
        processes[1 - from].is_free(PLAYER)
    });
}

/// Runs a test on servers, if there are any.
fn with_servers(work: impl FnOnce(&str, &NatsServer)) {
    let Some(url) = postgres_url() else { return };
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    work(&url, &nats);
}

/// The player goes to the other node and back, and logs out there.
fn play(engines: &Engines) {
    let mut processes = two_nodes(engines);
    for (from, to) in [(0, 1), (1, 0)] {
        let gold = 5 + to as u64;
        processes[from].set_gold(PLAYER, gold);
        hand_off(&mut processes, from);
        until(&mut processes, "release", |processes| {
            processes[from].gold(PLAYER).is_none()
        });
        assert_eq!(processes[to].gold(PLAYER), Some(gold));
    }
    assert_eq!(
        processes[0].diary(PLAYER),
        ["received", "arrived", "moved", "received", "arrived"]
    );
    assert_eq!(processes[1].diary(PLAYER), ["received", "arrived", "moved"]);
    processes[0].send(PlayerLogOut(PLAYER));
    until(&mut processes, "log-out", |processes| {
        processes[0].gold(PLAYER).is_none()
    });
    assert_eq!(processes[0].diary(PLAYER).last(), Some(&"logged out"));
    // It is saved, and free for any node. A node that asks for a player of another one is refused.
    processes[1].players().log_in(PLAYER);
    until(&mut processes, "login elsewhere", |processes| {
        processes[1].gold(PLAYER).is_some()
    });
    assert_eq!(processes[1].gold(PLAYER), Some(5));
    processes[0].players().log_in(PLAYER);
    until(&mut processes, "refusal", |processes| {
        let refused = processes[0]
            .app
            .world()
            .resource::<Messages<PlayerLoginRefused>>();
        !refused.is_empty()
    });
    assert_eq!(processes[0].gold(PLAYER), None);
}

#[test]
fn player_moves_between_two_apps_and_back() {
    with_servers(|url, nats| play(&servers(url, nats, "moves")));
}

#[test]
fn same_code_runs_in_one_process_in_memory() {
    let rows = SharedRows::default();
    let clock_of = rows.clone();
    let ends = Arc::new(AtomicBool::new(false));
    let has_ended = ends.clone();
    // The clock of the store in memory.
    let clock = thread::spawn(move || {
        let time = RowClock::patient();
        while !has_ended.load(Ordering::Acquire) {
            time.advance(&clock_of);
            thread::park_timeout(Duration::from_millis(5));
        }
    });
    play(&Engines::Memory(rows, LocalBus::default()));
    ends.store(true, Ordering::Release);
    clock.join().unwrap();
}

#[test]
fn death_of_the_target_at_any_step_loses_nothing() {
    with_servers(|url, nats| {
        let steps = [
            ("HandOff", None),
            ("Adopt", Some(Death::Before)),
            ("Adopt", Some(Death::After)),
            ("live", None),
        ];
        thread::scope(|scope| {
            for (nth, (step, death)) in steps.into_iter().enumerate() {
                scope.spawn(move || {
                    let engines = servers(url, nats, &format!("target{nth}"));
                    let mut processes = two_nodes(&engines);
                    *processes[1].executioner.at.lock().unwrap() = death.map(|death| (step, death));
                    if step == "HandOff" {
                        // Dead, and the store does not know it yet.
                        let dead = processes.pop().unwrap();
                        dead.executioner.is_dead.store(true, Ordering::Release);
                    }
                    if step == "live" {
                        hand_off(&mut processes, 0);
                        processes.pop();
                    }
                    request_move(&mut processes, 0);
                    until(&mut processes, step, |processes| {
                        request_move(processes, 0);
                        processes.len() == 1 && processes[0].is_free(PLAYER)
                    });
                    assert_eq!(processes[0].gold(PLAYER), Some(3), "{step} {death:?}");
                });
            }
        });
    });
}

#[test]
fn death_of_the_source_at_any_step_loses_nothing() {
    with_servers(|url, nats| {
        let steps = [
            ("HandOff", Some(Death::Before)),
            ("HandOff", Some(Death::After)),
            ("live", None),
        ];
        thread::scope(|scope| {
            for (nth, (step, death)) in steps.into_iter().enumerate() {
                scope.spawn(move || {
                    let engines = servers(url, nats, &format!("source{nth}"));
                    let mut processes = two_nodes(&engines);
                    *processes[0].executioner.at.lock().unwrap() = death.map(|death| (step, death));
                    if step == "live" {
                        hand_off(&mut processes, 0);
                        processes.remove(0);
                    }
                    request_move(&mut processes, 0);
                    until(&mut processes, step, |processes| {
                        request_move(processes, 0);
                        processes.len() == 1 && processes[0].is_free(PLAYER)
                    });
                    assert_eq!(processes[0].gold(PLAYER), Some(3), "{step} {death:?}");
                });
            }
        });
    });
}

#[test]
fn exchange_is_saved_with_the_player_who_leaves_at_once() {
    with_servers(|url, nats| {
        let engines = servers(url, nats, "exchange");
        let mut processes = two_nodes(&engines);
        processes[0].players().log_in(OTHER);
        until(&mut processes, "second login", |processes| {
            processes[0].gold(OTHER) == Some(10)
        });
        // The trade and the hand-off are in the same tick; then the process dies.
        processes[0].set_gold(PLAYER, 0);
        processes[0].set_gold(OTHER, 13);
        processes[0].send(PlayerExchange([PLAYER, OTHER]));
        hand_off(&mut processes, 0);
        processes.remove(0);
        until(&mut processes, "claim", |processes| {
            processes[0].is_free(OTHER)
        });
        let gold = [PLAYER, OTHER].map(|player| processes[0].gold(player));
        assert_eq!(gold, [Some(0), Some(13)]);
    });
}

#[test]
fn second_process_of_a_name_may_start_after_a_stop() {
    with_servers(|url, nats| {
        let engines = servers(url, nats, "names");
        let mut processes = vec![start(&engines, "n1").unwrap()];
        until(&mut processes, "first heartbeat", |processes| {
            let driver = processes[0].players().driver().unwrap();
            driver.with_node(|node, now_ms| node.is_valid(now_ms))
        });
        let mut settings = DriverSettings::new("n1");
        settings.start_timeout = Duration::ZERO;
        let Engines::Servers(schema, _) = &engines else {
            unreachable!("it has servers")
        };
        let open = || {
            let rows = PostgresRows::new(&schema.source(), Duration::from_secs(20));
            Box::new(rows) as Box<dyn ClusterStore>
        };
        let refused = NodeDriver::start(&settings, open, |_| {
            Err(DriverStartError::Bus("no bus in this test".to_owned()))
        });
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("`n1` runs already"), "{error}");
        let world = processes[0].app.world_mut();
        let driver = world.resource_mut::<ClusterPlayers>().close();
        driver.unwrap().stop();
        start(&engines, "n1").unwrap();
    });
}

/// `THRONG_FIGURES=1 … -- --nocapture` prints how long hand-offs take.
#[test]
fn many_hand_offs_between_two_apps() {
    with_servers(|url, nats| {
        let wanted = if std::env::var("THRONG_FIGURES").is_ok() {
            500
        } else {
            20
        };
        let mut processes = two_nodes(&servers(url, nats, "figures"));
        let mut times = Vec::new();
        for nth in 0..wanted {
            let (from, to) = (nth % 2, 1 - nth % 2);
            processes[from].set_gold(PLAYER, nth as u64);
            let begun = Stopwatch::start();
            hand_off(&mut processes, from);
            times.push(begun.elapsed());
            assert_eq!(processes[to].gold(PLAYER), Some(nth as u64));
            until(&mut processes, "release", |processes| {
                processes[from].gold(PLAYER).is_none()
            });
        }
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!(
            "{} hand-offs, from the request to the spawned player, ticks of 2 ms: median {:?}, p99 {:?}, longest {:?}",
            times.len(),
            at(50),
            at(99),
            at(100)
        );
    });
}

/// `THRONG_FIGURES=1 … -- --nocapture` prints how long it takes with more players.
#[test]
fn players_of_a_dead_node_live_on_the_other_one() {
    with_servers(|url, nats| {
        let wanted = if std::env::var("THRONG_FIGURES").is_ok() {
            400
        } else {
            100
        };
        let mut processes = two_nodes(&servers(url, nats, "death"));
        for player in 100..100 + wanted {
            processes[0].players().log_in(PlayerId(player));
        }
        let count = |process: &Process| process.players().players().count() as u64;
        until(&mut processes, "logins", |processes| {
            count(&processes[0]) == wanted + 1
        });
        let dead = processes.remove(0);
        dead.executioner.is_dead.store(true, Ordering::Release);
        let begun = Stopwatch::start();
        let mut first = None;
        until(&mut processes, "claims", |processes| {
            if count(&processes[0]) > 0 {
                first.get_or_insert(begun.elapsed());
            }
            count(&processes[0]) == wanted + 1
        });
        println!(
            "{} players of a dead node: the first after {:?}, all after {:?}",
            wanted + 1,
            first.unwrap(),
            begun.elapsed()
        );
        assert_eq!(processes[0].gold(PLAYER), Some(3));
    });
}
