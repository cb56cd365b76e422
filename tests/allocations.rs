//! After warm-up nothing is allocated by the pure cores, and by a whole app nothing that grows with the number of objects; modules
//! account for what objects take; what is never freed is found with who allocated it. A binary of its own, because the allocator
//! is the whole process's.
use std::alloc::System;
use std::collections::BTreeMap;

use bevy_app::{App, FixedUpdate, TaskPoolPlugin};
use bevy_ecs::component::ComponentId;
use bevy_ecs::error::{FallbackErrorHandler, ignore};
use bevy_ecs::prelude::*;
use bevy_ecs::system::ScheduleSystem;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;
use throng::ThrongPlugins;
use throng::aoi::ViewCaps;
use throng::aoi::{Viewable, Viewer};
use throng::inbox::{InboxLimits, MessageQueue};
use throng::memory::{self, AllocationSite, AllocationSites, CountingAllocator, memory_by_module};
use throng::outbox::{Assembler, CountingSink, OutgoingBatch};
use throng::session::{ConnectionInfo, TransportHandle, connect, control};
use throng::sim::{SimSystems, SimTick, clock, single_threaded};
use throng::store::{MemoryDisk, PlayerLookup, PlayerStore, PlayerStoreSettings, StoreReplyMode};
use throng::sync::SlotMasks;
use throng::sync::{AttributeSpec, ReplicateAppExt, SendRate, SyncStats};
use throng::wire::{ClientId, Encoding};
use throng::world::{
    KindId, Object, PlayerId, Position, SceneSpec, Velocity, open_scene, spawn_object,
};
use throng_net::outbox::workload::{WorkloadShard, fill_batch};
use throng_net::workload::ConnectedCrowd;
use throng_scenario::crowd::TradePlugin;
use throng_scenario::{LoadedScenario, RunOptions, ScenarioRun, Verdict};

#[global_allocator]
static ALLOCATOR: CountingAllocator<System> = CountingAllocator::new(System);

/// Allocations of this many calls.
fn allocations(calls: u32, mut call: impl FnMut()) -> u64 {
    let before = memory::allocation_count();
    (0..calls).for_each(|_| call());
    memory::allocation_count() - before
}

/// The only test here: others would allocate beside it.
#[test]
fn memory_is_warm_accounted_for_and_not_leaked() {
    check_leak_names_its_function();
    check_leak_expectation_names_the_leaking_system();
    check_modules_account_for_objects();
    check_modules_account_for_resources_and_components();
    check_warm_outbox();
    check_warm_inbox_and_masks();
    check_warm_transport();
    check_app_allocations_do_not_grow();
}

fn check_warm_outbox() {
    let mut batch = OutgoingBatch::default();
    fill_batch(&mut batch, 1, 2_000, 200, 60);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    let mut shard = WorkloadShard::new(1 << 20, Box::new(CountingSink::default()));
    let mut tick = || {
        for line in batch.parts.iter().flat_map(|part| part.updates()) {
            assembler.write_update(1, line, &batch.shared, &mut sink);
        }
        shard.push_batch(&batch);
        shard.assemble();
    };
    (0..300).for_each(|_| tick());
    assert_eq!(allocations(100, tick), 0);
}

fn check_warm_inbox_and_masks() {
    let limits = InboxLimits {
        backlog_max: 1_000,
        client_backlog_max: 4,
        ..InboxLimits::default()
    };
    let (mut queue, mut masks) = (MessageQueue::new(limits), SlotMasks::new(2));
    for client in (0..500).map(ClientId) {
        queue.open(client);
        queue.promote(client);
    }
    let (mut now, mut refused) = (0, Vec::new());
    masks.grow(1_000);
    let mut tick = || {
        now += 1;
        queue.begin_tick(now, limits);
        for client in 0..500 {
            for _ in 0..3 {
                // Some are refused, which is counted.
                let _ = queue.push(ClientId(client), &[4, 1]);
            }
            masks.mark(client * 2, client % 128);
        }
        while queue.pop(2).is_some() {}
        queue.take_refused(&mut refused);
        refused.clear();
        masks.drain(|_, mask| mask.fill(0));
    };
    (0..10).for_each(|_| tick());
    assert_eq!(allocations(100, tick), 0);
}

/// Fifty connections that lose a tenth of their packets both ways.
fn check_warm_transport() {
    let mut crowd = ConnectedCrowd::new(50, Some(10));
    let mut tick = || {
        crowd.send();
        crowd.run_clients();
        crowd.receive();
    };
    (0..100).for_each(|_| tick());
    assert_eq!(allocations(100, tick), 0);
}

/// Told to all who see it, and changed all the time.
#[derive(Component)]
struct Health(u32);

/// Everybody's path: a small circle.
#[derive(Component)]
struct Circle(Vec2);

const RADIUS_M: f32 = 4.0;

fn walk(tick: Res<SimTick>, mut walkers: Query<(&Circle, &mut Position, &mut Velocity)>) {
    let angle = tick.0 as f32 * 0.03;
    let (sin, cos) = angle.sin_cos();
    for (&Circle(middle), mut position, mut velocity) in &mut walkers {
        position.0 = middle + Vec2::new(cos, sin) * RADIUS_M;
        velocity.0 = Vec2::new(-sin, cos) * (RADIUS_M * 0.03 * 20.0);
    }
}

fn hurt(tick: Res<SimTick>, mut healths: Query<(&Object, &mut Health)>) {
    for (object, mut health) in &mut healths {
        if (tick.0 + u64::from(object.id().0)).is_multiple_of(7) {
            health.0 = (health.0 + 13) % 100;
        }
    }
}

/// An app of all plugins, in which this many players walk, are hurt, turn on the spot when their clients say so, and see each
/// other.
fn app_of(players: u32) -> (App, Vec<ClientId>) {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, ThrongPlugins))
        .insert_resource(Time::<Fixed>::from_hz(20.0))
        .add_systems(FixedUpdate, (walk, hurt).chain().in_set(SimSystems::Move));
    let health = AttributeSpec::new("health", 1, Encoding::Varint).at(SendRate::EveryTick);
    app.replicate_field(health, |health: &Health| health.0);
    clock::one_tick_per_update(&mut app);
    single_threaded(&mut app);
    let columns = (f64::from(players)).sqrt().ceil() as u32;
    let world = app.world_mut();
    let spec = SceneSpec {
        size_m: Vec2::splat(columns as f32 * 12.0 + 20.0),
        ..SceneSpec::default()
    };
    let scene = open_scene(world, spec, ()).unwrap();
    let clients = (0..players).map(|nth| {
        let at = Vec2::new((nth % columns) as f32, (nth / columns) as f32) * 12.0 + 10.0;
        let sight = (Viewer::new(ViewCaps::all(30)), Viewable::default());
        let body = (sight, Circle(at), Health(nth % 100));
        let object = spawn_object(world, scene, KindId(0), at, body).unwrap();
        let client = connect(world, ConnectionInfo::unknown().without_loading()).unwrap();
        assert!(control(world, client, object));
        client
    });
    let clients = clients.collect();
    (app, clients)
}

fn check_app_allocations_do_not_grow() {
    let of = |players| {
        let (mut app, clients) = app_of(players);
        let transport = app.world().resource::<TransportHandle>().clone();
        let mut tick = || {
            let now = *app.world().resource::<SimTick>();
            for &client in clients.iter().step_by(5) {
                transport.receive(client, &[4, now.0 as u8]).unwrap();
            }
            app.update();
        };
        (0..600).for_each(|_| tick());
        let found = allocations(100, tick);
        let sent = app.world().resource::<SyncStats>().sent;
        assert!(sent.motions.messages > 0 && sent.deltas.messages > 0);
        found
    };
    let (few, many) = (of(200), of(600));
    // Bevy itself allocates a few times an update; lists that still grow do so by doubling.
    assert!(
        many <= few + 20,
        "in 100 ticks: {few} with 200 players, {many} with 600"
    );
    assert!(few < 100 * 30, "{few} in 100 ticks");
}

/// What an app with this many players takes after 100 ticks: as counted, and as its modules say.
fn memory_used(players: u32) -> [f64; 2] {
    let before = memory::allocated().bytes;
    let (mut app, _clients) = app_of(players);
    (0..100).for_each(|_| app.update());
    let allocated = memory::allocated().bytes - before;
    let modules = memory_by_module(app.world()).into_values();
    [allocated, modules.sum()].map(|bytes| bytes as f64)
}

fn check_modules_account_for_objects() {
    // What a server has without any players, schedules above all, is in neither difference.
    let (few, many) = (memory_used(100), memory_used(500));
    let [allocated, modules] = [0, 1].map(|nth| many[nth] - few[nth]);
    assert!(
        (0.95..1.05).contains(&(modules / allocated)),
        "400 players more take {allocated} bytes, and modules tell of {modules}"
    );
}

/// A lobby whose players fight in scenes of their own, deal with each other and are kept in a store.
const LOBBY: &str = r#"Scenario(
    name: "lobby", seed: 3, duration_s: 8,
    scenes: [Scene(name: "lobby", map: Generate(Rooms(width_tiles: 100, height_tiles: 100)))],
    crowds: [
        Crowd(tag: "guests", kind: "player", count: 60, client_share: 0.5, messages_per_s: 5, attributes_per_s: 1, party_size: 3,
            churn_per_s: 1, behaviour: Wander(radius_m: 9)),
        Crowd(tag: "dogs", kind: "npc", count: 60, behaviour: Wander(radius_m: 9)),
    ],
    queues: [
        Queue(mode: "arena", settings: Groups(group_size: 3, rematch_cooldown_s: 1), parties: 500, parties_per_s: 40, avoid_share: 0.2,
            requeue_share: 0.3, crowd_tag: "guests", match_duration_s: 4,
            match_scene: Scene(name: "arena")),
        Queue(mode: "yard", settings: Rooms(side_size: 2), parties: 200, parties_per_s: 4, size_weights: (3, 1, 0, 0, 0)),
    ],
    expect: [],
)"#;

/// Looks at players who are not here.
fn write_lookups(tick: Res<SimTick>, mut looks: MessageWriter<PlayerLookup>) {
    for nth in 0..20 {
        let number = tick.0 * 20 + nth;
        let player = PlayerId(1_000_000 + number % 700);
        looks.write(PlayerLookup {
            player,
            request_id: number,
        });
    }
}

/// The lobby after its last tick, and the store of its players.
fn lobby() -> (ScenarioRun, MemoryDisk) {
    let disk = MemoryDisk::default();
    let kept = disk.clone();
    let options = RunOptions {
        threads: 1,
        configure: vec![Box::new(move |app| {
            app.add_plugins(TradePlugin)
                .insert_resource(PlayerStoreSettings {
                    reply_mode: StoreReplyMode::NextTick,
                    ..PlayerStoreSettings::default()
                })
                .add_systems(FixedUpdate, write_lookups.in_set(SimSystems::First));
            let mut directory = app.world_mut().resource_mut::<PlayerStore>();
            directory.open(kept).unwrap();
        })],
        ..RunOptions::default()
    };
    let loaded = LoadedScenario::from_text("lobby.ron", LOBBY).unwrap();
    let mut run = ScenarioRun::new(loaded, options).unwrap();
    while run.step().unwrap() {}
    (run, disk)
}

/// The module under which a type's memory is counted; of messages that of what they tell.
fn module_of(type_name: &str) -> Option<String> {
    let path = &type_name[type_name.find("throng")?..];
    let mut path = path.split("::");
    let (package, folder) = (path.next()?, path.next()?);
    let module = match (package, folder) {
        ("throng_nav", "map") => "map",
        ("throng_nav", _) => "nav",
        ("throng_aoi", _) => "aoi",
        ("throng_matchmaking", _) => "matchmaking",
        ("throng_store", _) => "store",
        ("throng_core", "random" | "hash" | "clock") => "sim",
        ("throng_core", "ids" | "spatial" | "kinds" | "motion") => "world",
        _ => folder,
    };
    Some(module.to_owned())
}

/// How much goes with the resources and components of each module. The world is of no use afterwards.
fn freed_by_module(world: &mut World) -> BTreeMap<String, usize> {
    // Bevy's list of free entities has room for those that go here.
    let spare = world.spawn_batch((0..20_000).map(|_| ()));
    let spare: Vec<Entity> = spare.collect();
    for entity in spare {
        world.despawn(entity);
    }
    world.insert_resource(FallbackErrorHandler(ignore));
    let infos = world.components().iter_registered();
    let infos = infos.filter(|(_, info)| info.drop().is_some());
    let mut owners: Vec<(bool, String, ComponentId)> = infos
        .filter_map(|(id, info)| {
            let is_component = world.resource_entities().get(id).is_none();
            Some((is_component, module_of(&info.name().to_string())?, id))
        })
        .collect();
    // What two share is counted by the one that goes last: a sink by crowds, not the outbox, what comes in by the inbox, not by
    // sessions. A scene takes its objects along.
    owners.sort_by_key(|(is_component, module, id)| match is_component {
        false => (0, module != "session", *id),
        true => (1, module == "world", *id),
    });
    let mut modules = BTreeMap::<String, usize>::new();
    for (is_component, module, id) in owners {
        let bearers = world.archetypes().iter().filter(|of| of.contains(id));
        let bearers = bearers.flat_map(|of| of.entities()).map(|of| of.id());
        let bearers: Vec<Entity> = bearers.collect();
        if bearers.is_empty() {
            continue;
        }
        // Without tables, which change with it.
        let held = |world: &World| memory::allocated().bytes - memory_by_module(world)["ecs"];
        let before = held(world);
        for &entity in &bearers {
            if is_component {
                world.entity_mut(entity).remove_by_id(id);
            } else {
                world.despawn(entity);
            }
        }
        // That they are gone is noted, which may take more than they had.
        *modules.entry(module).or_default() += before.saturating_sub(held(world));
    }
    modules
}

fn check_modules_account_for_resources_and_components() {
    let (mut run, _disk) = lobby();
    let world = run.server().world_mut();
    let told = memory_by_module(world);
    let given = freed_by_module(world);
    for (module, &given) in &given {
        // What searches know of maps is a row beside that of their module.
        let rows = told
            .iter()
            .filter(|(row, _)| row.split('_').next() == Some(&**module));
        let told: usize = rows.map(|(_, bytes)| bytes).sum();
        // Small lists that are not counted, and notes on what is gone.
        let far = given / 10 + 16_000;
        assert!(
            told.abs_diff(given) <= far,
            "{module} tells of {told} bytes, and {given} go with what it has"
        );
    }
    for module in ["matchmaking", "instance", "store", "crowd", "sync", "aoi"] {
        assert!(
            given[module] > 32_000,
            "{module} was hardly used: {given:?}"
        );
    }
}

/// What is planted: never freed.
#[inline(never)]
fn plant(blocks: usize) {
    for _ in 0..blocks {
        std::mem::forget(std::hint::black_box(vec![1u8; 1_000]));
    }
}

/// What is no leak.
#[inline(never)]
fn borrow(blocks: usize) {
    for _ in 0..blocks {
        drop(std::hint::black_box(vec![1u8; 2_000]));
    }
}

fn check_leak_names_its_function() {
    let planted_by = |found: &AllocationSites| -> Vec<AllocationSite> {
        let names = |site: &&AllocationSite| {
            site.function()
                .is_some_and(|name| name.ends_with("::plant"))
        };
        found.sites.iter().filter(names).cloned().collect()
    };
    plant(7);
    memory::track_leaks();
    plant(100);
    borrow(100);
    let mut grown = Vec::new();
    (0..1_000u32).for_each(|nth| grown.push(nth));
    std::thread::spawn(|| plant(50)).join().unwrap();
    memory::stop_tracking_leaks();
    plant(7);
    let found = memory::allocation_sites();
    let planted = planted_by(&found);
    let sizes = planted.iter().map(|site| (site.blocks, site.bytes));
    assert_eq!(
        Vec::from_iter(sizes),
        [(100, 100_000), (50, 50_000)],
        "{found:#?}"
    );
    assert_ne!(planted[0].thread, planted[1].thread);
    assert!(
        planted[0]
            .functions
            .iter()
            .any(|name| name.contains("check_leak_names_its_function"))
    );
    assert!(planted[0].is_own_code());
    let has = |name: &str| {
        let mut sites = found.sites.iter();
        sites.any(|site| {
            site.functions
                .iter()
                .any(|function| function.ends_with(name))
        })
    };
    assert!(!has("::borrow"));
    assert_eq!(found.dropped, 0);
    // A list that grew is there once, as large as it is.
    assert!(
        found
            .sites
            .iter()
            .any(|site| (site.blocks, site.bytes) == (1, 4 * grown.capacity()))
    );
    // Nothing is kept of before, and what is freed meanwhile is forgotten.
    memory::track_leaks();
    drop(grown);
    let kept = vec![0u8; 3_000];
    assert_eq!(
        memory::allocation_sites()
            .sites
            .iter()
            .map(|site| site.bytes)
            .sum::<usize>(),
        3_000
    );
    drop(kept);
    memory::stop_tracking_leaks();
    assert_eq!(memory::allocation_sites(), AllocationSites::default());
}

/// What came of `NoLeaks` in a run of players who come and go, with a system added to it.
fn leaks_of<M>(
    system: impl IntoScheduleConfigs<ScheduleSystem, M> + Send + 'static,
) -> (Verdict, String) {
    let text = r#"Scenario(name: "inn", duration_s: 4, scenes: [Scene(name: "inn")],
        crowds: [Crowd(tag: "guests", kind: "player", count: 30, client_share: 1, churn_per_s: 10, attributes_per_s: 1)], expect: [NoLeaks])"#;
    let options = RunOptions {
        configure: vec![Box::new(|app| {
            app.init_resource::<Hoard>()
                .add_systems(FixedUpdate, system.in_set(SimSystems::First));
        })],
        ..RunOptions::default()
    };
    let mut run =
        ScenarioRun::new(LoadedScenario::from_text("inn.ron", text).unwrap(), options).unwrap();
    while run.step().unwrap() {}
    let judged = run.finish().unwrap().expectations.swap_remove(0);
    (judged.verdict, judged.found)
}

#[derive(Resource, Default)]
struct Hoard(Vec<Vec<u8>>);

/// Keeps something for every tick, while the server lives.
fn keep(mut hoard: ResMut<Hoard>) {
    hoard.0.push(vec![7; 8]);
}

fn idle(_: Res<Hoard>) {}

/// Keeps it for good.
fn lose(_: Res<Hoard>) {
    plant(1);
}

/// Keeps it for good, a little on each of many threads.
fn lose_everywhere(_: Res<Hoard>) {
    std::thread::spawn(|| plant(1)).join().unwrap();
}

fn check_leak_expectation_names_the_leaking_system() {
    let (verdict, found) = leaks_of(idle);
    assert_eq!((verdict, &*found), (Verdict::Passed, "nothing is left"));
    for (who, (verdict, found)) in [
        ("::keep", leaks_of(keep)),
        ("::plant", leaks_of(lose)),
        ("::plant", leaks_of(lose_everywhere)),
    ] {
        assert_eq!(verdict, Verdict::Failed);
        assert!(found.ends_with(who), "{found}");
    }
}
