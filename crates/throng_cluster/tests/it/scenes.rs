//! Scenes and their players move between two apps: through a portal, in a drain, back to a restarted node, and away from a dead one. An app
//! that cannot reach the store pauses. Afterwards it continues, or closes its scenes if it was declared dead.
//!
//! In memory, and with the server of `THRONG_POSTGRES`, if there is one: `.ci/with_postgres cargo test -p throng_cluster` starts it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedMain, FixedPreUpdate, FixedUpdate};
use bevy_ecs::prelude::*;
use throng_cluster::{
    BusPeer, ClusterKey, ClusterPlayer, ClusterPlayers, ClusterPlugin, ClusterRecord, ClusterReply,
    ClusterRequest, ClusterScenes, ClusterStore, ClusterStoreError, ClusterSystems, DriverSettings,
    FrozenPlayer, LeaveReason, LocalBus, MessageBus, NodeDriver, PlayerHooks, PlayerMove,
    PostgresRows, SceneAssigned, SceneDeclaration, SceneRemoved, SharedRows,
};
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::patience::RowClock;

/// Rounds of 2 ms or more after which a condition counts as never met.
const ROUNDS_MAX: u32 = 30_000;

const PLAYER: PlayerId = PlayerId(7);

/// A player of the game of these tests.
#[derive(Component, Clone)]
struct Avatar {
    gold: u8,
    scene: String,
}

/// The scenes that are open in an app, with `true` for those that close when their players have left; and the number of scenes opened.
#[derive(Resource, Default)]
struct OpenCopies(BTreeMap<String, bool>, usize);

/// Why players have left an app.
#[derive(Resource, Default)]
struct Departures(Vec<LeaveReason>);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        let avatar = world.get::<Avatar>(player).unwrap();
        [&[avatar.gold], avatar.scene.as_bytes()].concat()
    }

    fn on_receive(&self, world: &mut World, _: PlayerId, record: &ClusterRecord) -> Entity {
        let (gold, scene) = record.bytes.split_first().unwrap_or((&10, b"town"));
        let scene = String::from_utf8(scene.to_vec()).unwrap();
        world.spawn(Avatar { gold: *gold, scene }).id()
    }

    fn on_leave(&self, world: &mut World, _: Entity, reason: LeaveReason) {
        world.resource_mut::<Departures>().0.push(reason);
    }
}

fn open_and_close(
    mut assigned: MessageReader<SceneAssigned>,
    mut removed: MessageReader<SceneRemoved>,
    mut copies: ResMut<OpenCopies>,
) {
    for scene in removed.read() {
        if scene.new_owner.is_some() {
            copies.0.insert(scene.name.clone(), true);
        } else {
            copies.0.remove(&scene.name);
        }
    }
    for scene in assigned.read() {
        assert_eq!(scene.specification, scene.name.as_bytes());
        copies.0.insert(scene.name.clone(), false);
        copies.1 += 1;
    }
}

fn follow(
    players: Query<(&ClusterPlayer, &Avatar), Without<FrozenPlayer>>,
    all: Query<&Avatar>,
    scenes: Res<ClusterScenes>,
    mut moves: MessageWriter<PlayerMove>,
    mut copies: ResMut<OpenCopies>,
) {
    for (player, avatar) in &players {
        moves.write_batch(PlayerMove::to_scene(&scenes, player.0, &avatar.scene));
    }
    let is_used = |name: &String| all.iter().any(|avatar| avatar.scene == *name);
    copies
        .0
        .retain(|name, is_closing| !*is_closing || is_used(name));
}

/// A store that a node may be cut off from.
struct CutStore {
    store: Box<dyn ClusterStore>,
    is_cut: Arc<AtomicBool>,
}

impl ClusterStore for CutStore {
    fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
        if self.is_cut.load(Ordering::Acquire) {
            return Err(ClusterStoreError::NotExecuted("cut off".to_owned()));
        }
        self.store.execute(request)
    }
}

/// Where the nodes of a test keep their rows.
#[derive(Clone)]
enum Store {
    Server(Arc<TestSchema>),
    Memory(SharedRows),
}

fn start(store: &Store, bus: &LocalBus, name: &str, is_cut: &Arc<AtomicBool>) -> App {
    let mut settings = DriverSettings::new(name);
    settings.node.save_interval_ms = 50;
    settings.node.scene_return_after_ms = 500;
    settings.start_timeout = Duration::from_secs(60);
    let timeout = Duration::from_millis(settings.node.request_timeout_ms);
    let open = || {
        let store: Box<dyn ClusterStore> = match store {
            Store::Server(schema) => Box::new(PostgresRows::new(&schema.source(), timeout)),
            Store::Memory(rows) => Box::new(rows.clone()),
        };
        let is_cut = is_cut.clone();
        Box::new(CutStore { store, is_cut }) as Box<dyn ClusterStore>
    };
    let driver = NodeDriver::start(&settings, open, |run| {
        let own = BusPeer::Node(run.node);
        let key = ClusterKey::new(&[7; 32]);
        Ok(MessageBus::new(Box::new(bus.join(own)), key, own, run.run))
    });
    let driver = driver.unwrap();
    driver.declare_scenes(["town", "forest"].map(|scene| SceneDeclaration {
        name: scene.to_owned(),
        specification: scene.into(),
        pinned_to: (scene == "forest").then(|| "n2".to_owned()),
    }));
    let mut app = App::new();
    app.init_resource::<OpenCopies>()
        .init_resource::<Departures>()
        .add_plugins(ClusterPlugin::new(Game))
        .add_systems(
            FixedPreUpdate,
            open_and_close
                .after(ClusterSystems::Scenes)
                .before(ClusterSystems::Arrive),
        )
        .add_systems(FixedUpdate, follow);
    app.world_mut()
        .resource_mut::<ClusterPlayers>()
        .open(driver);
    app
}

fn driver(app: &App) -> &NodeDriver {
    let players = app.world().resource::<ClusterPlayers>();
    players.driver().unwrap()
}

fn avatar(app: &mut App) -> Option<Mut<'_, Avatar>> {
    let entity = app.world().resource::<ClusterPlayers>().entity(PLAYER)?;
    app.world_mut().get_mut::<Avatar>(entity)
}

/// The scenes that are open in an app.
fn open_copies(app: &App) -> Vec<&str> {
    let copies = app.world().resource::<OpenCopies>().0.keys();
    copies.map(String::as_str).collect()
}

/// Ticks all apps until a condition holds. The player is never free in two of them.
fn until(apps: &mut Vec<App>, what: &str, condition: impl Fn(&mut Vec<App>) -> bool) {
    let mut rounds = 0;
    loop {
        let mut free = 0;
        for app in apps.iter_mut() {
            app.world_mut().run_schedule(FixedMain);
            let entity = app.world().resource::<ClusterPlayers>().entity(PLAYER);
            let is_frozen = |entity| app.world().get::<FrozenPlayer>(entity).is_some();
            free += u32::from(entity.is_some_and(|entity| !is_frozen(entity)));
        }
        assert!(free <= 1, "{what}: the player is doubled");
        if condition(apps) {
            return;
        }
        rounds += 1;
        let copies: Vec<_> = apps.iter().map(open_copies).collect();
        assert!(rounds < ROUNDS_MAX, "{what}: {copies:?}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// Until the player is on one node only, and each node has these copies open.
fn until_at(apps: &mut Vec<App>, what: &str, at: usize, copies: [&[&str]; 2]) {
    until(apps, what, |apps| {
        let is_there = avatar(&mut apps[at]).is_some();
        let is_elsewhere = avatar(&mut apps[1 - at]).is_some();
        let shown = apps.iter().map(open_copies).eq(copies);
        is_there && !is_elsewhere && shown
    });
}

fn play(store: &Store) {
    let bus = LocalBus::default();
    let is_cut = [false; 2].map(|is_cut| Arc::new(AtomicBool::new(is_cut)));
    let mut apps = vec![
        start(store, &bus, "n1", &is_cut[0]),
        start(store, &bus, "n2", &is_cut[1]),
    ];
    until(&mut apps, "start", |apps| {
        open_copies(&apps[0]) == ["town"] && open_copies(&apps[1]) == ["forest"]
    });
    let players = apps[0].world().resource::<ClusterPlayers>();
    assert!(players.log_in(PLAYER));
    until(&mut apps, "login", |apps| avatar(&mut apps[0]).is_some());
    assert!(driver(&apps[0]).scene_owner("forest") != driver(&apps[0]).scene_owner("town"));
    // A portal.
    let mut own = avatar(&mut apps[0]).unwrap();
    (own.gold, own.scene) = (42, "forest".to_owned());
    until_at(&mut apps, "portal", 1, [&["town"], &["forest"]]);
    // The scene goes first, and its player follows.
    driver(&apps[1]).set_draining(true);
    until(&mut apps, "drain", |apps| {
        let is_here = avatar(&mut apps[1]).is_some();
        // Its copy of the scene stays open as long as the player is there.
        assert!(!is_here || open_copies(&apps[1]) == ["forest"]);
        !is_here
    });
    until_at(&mut apps, "hand-off", 0, [&["forest", "town"], &[]]);
    assert!(driver(&apps[1]).is_draining() && driver(&apps[1]).scenes().is_empty());
    assert_eq!(avatar(&mut apps[0]).map(|own| own.gold), Some(42));
    // The node restarts, and gets the scene back that is pinned to it.
    let mut stopped = apps.pop().unwrap();
    let reasons = &stopped.world().resource::<Departures>().0;
    assert_eq!(*reasons, [LeaveReason::Moved]);
    let mut players = stopped.world_mut().resource_mut::<ClusterPlayers>();
    players.close().unwrap().stop();
    apps.push(start(store, &bus, "n2", &is_cut[1]));
    until_at(&mut apps, "return", 1, [&["town"], &["forest"]]);
    assert_eq!(avatar(&mut apps[1]).map(|own| own.gold), Some(42));
    let reasons = &apps[0].world().resource::<Departures>().0;
    assert_eq!(*reasons, [LeaveReason::Moved; 2]);
    // The node cannot reach the store, and the other node claims its scene and its player.
    is_cut[1].store(true, Ordering::Release);
    until(&mut apps, "claim", |apps| {
        avatar(&mut apps[0]).is_some() && open_copies(&apps[0]) == ["forest", "town"]
    });
    is_cut[1].store(false, Ordering::Release);
    until(&mut apps, "loss", |apps| {
        apps[1].world().resource::<Departures>().0 == [LeaveReason::Lost]
    });
    until_at(&mut apps, "second return", 1, [&["town"], &["forest"]]);
    // The node dies. The player was saved.
    drop(apps.pop());
    until(&mut apps, "death", |apps| {
        avatar(&mut apps[0]).is_some() && open_copies(&apps[0]) == ["forest", "town"]
    });
    let own = avatar(&mut apps[0]).unwrap();
    assert_eq!((own.gold, own.scene.as_str()), (42, "forest"));
    // The last node cannot reach the store. It pauses, and continues with its open copies.
    let is_paused = |app: &App| app.world().resource::<ClusterScenes>().is_paused();
    let running = |app: &App| app.world().resource::<ClusterScenes>().running().count();
    is_cut[0].store(true, Ordering::Release);
    until(&mut apps, "pause", |apps| is_paused(&apps[0]));
    let gold = avatar(&mut apps[0]).map(|own| own.gold);
    assert_eq!((gold, running(&apps[0])), (Some(42), 0));
    assert_eq!(open_copies(&apps[0]), ["forest", "town"]);
    let opened = |app: &App| app.world().resource::<OpenCopies>().1;
    let before = opened(&apps[0]);
    is_cut[0].store(false, Ordering::Release);
    until(&mut apps, "end of the pause", |apps| running(&apps[0]) == 2);
    assert_eq!(opened(&apps[0]), before);
    assert!(avatar(&mut apps[0]).is_some());
}

#[test]
fn player_follows_its_scene_with_rows_in_memory() {
    let rows = SharedRows::default();
    let clock_of = rows.clone();
    let ends = Arc::new(AtomicBool::new(false));
    let has_ended = ends.clone();
    // The clock of the store in memory.
    let clock = thread::spawn(move || {
        let time = RowClock::start();
        while !has_ended.load(Ordering::Acquire) {
            time.advance(&clock_of);
            thread::park_timeout(Duration::from_millis(5));
        }
    });
    play(&Store::Memory(rows));
    ends.store(true, Ordering::Release);
    clock.join().unwrap();
}

#[test]
fn player_follows_its_scene_with_rows_on_postgres() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    play(&Store::Server(Arc::new(schema)));
}
