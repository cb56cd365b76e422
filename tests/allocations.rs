//! After warm-up, the pure cores allocate nothing, and a whole app allocates nothing that grows with the number of objects; the memory
//! accounting of modules matches the allocated memory; leaks are found with the function that allocated them. This is a separate binary,
//! because its allocator is global to the process.
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

/// The number of allocations of this many calls.
fn allocations(calls: u32, mut call: impl FnMut()) -> u64 {
    let before = memory::allocation_count();
    (0..calls).for_each(|_| call());
    memory::allocation_count() - before
}

/// A single test, because others would allocate at the same time.
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
                // Some messages are refused, and counted.
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

/// Fifty connections that lose a tenth of their packets in both directions.
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

/// An attribute that is sent to all who see the object, and changes often.
#[derive(Component)]
struct Health(u32);

/// The centre of an object's path, which is a small circle.
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

/// An app with all plugins. This many players walk, lose health, turn when their clients ask for it, and see each other.
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
    // Bevy allocates a few times per update; lists that still grow double their capacity.
    assert!(
        many <= few + 20,
        "allocations in 100 ticks: {few} with 200 players, {many} with 600"
    );
    assert!(few < 100 * 30, "{few} allocations in 100 ticks");
}

/// The memory of an app with this many players after 100 ticks: as allocated, and as its modules report.
fn memory_used(players: u32) -> [f64; 2] {
    let before = memory::allocated().bytes;
    let (mut app, _clients) = app_of(players);
    (0..100).for_each(|_| app.update());
    let allocated = memory::allocated().bytes - before;
    let modules = memory_by_module(app.world()).into_values();
    [allocated, modules.sum()].map(|bytes| bytes as f64)
}

fn check_modules_account_for_objects() {
    // The difference excludes the memory of a server without players, mainly schedules.
    let (few, many) = (memory_used(100), memory_used(500));
    let [allocated, modules] = [0, 1].map(|nth| many[nth] - few[nth]);
    assert!(
        (0.95..1.05).contains(&(modules / allocated)),
        "400 more players take {allocated} bytes, modules report {modules}"
    );
}

/// A lobby whose players fight in match scenes, trade, and are saved in a store.
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

/// Looks up players on other nodes.
fn write_lookups(tick: Res<SimTick>, mut lookups: MessageWriter<PlayerLookup>) {
    for nth in 0..20 {
        let number = tick.0 * 20 + nth;
        let player = PlayerId(1_000_000 + number % 700);
        lookups.write(PlayerLookup {
            player,
            request_id: number,
        });
    }
}

/// The lobby after its last tick, and the store of its players.
fn lobby() -> (ScenarioRun, MemoryDisk) {
    let disk = MemoryDisk::default();
    let store = disk.clone();
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
            directory.open(store).unwrap();
        })],
        ..RunOptions::default()
    };
    let loaded = LoadedScenario::from_text("lobby.ron", LOBBY).unwrap();
    let mut run = ScenarioRun::new(loaded, options).unwrap();
    while run.step().unwrap() {}
    (run, disk)
}

/// The module to which a type's memory is attributed; messages belong to the module of their content.
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

/// The memory that is freed when the resources and components of each module are removed. The world is unusable afterwards.
fn freed_by_module(world: &mut World) -> BTreeMap<String, usize> {
    // Makes room in Bevy's list of free entities for those that are despawned below.
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
    // Shared data is freed with its last owner: a sink by crowds instead of the outbox, incoming messages by the inbox instead of sessions.
    // Removing a scene also removes its objects.
    owners.sort_by_key(|(is_component, module, id)| match is_component {
        false => (0, module != "session", *id),
        true => (1, module == "world", *id),
    });
    let mut modules = BTreeMap::<String, usize>::new();
    for (is_component, module, id) in owners {
        let owners_of_id = world.archetypes().iter().filter(|of| of.contains(id));
        let owners_of_id = owners_of_id.flat_map(|of| of.entities()).map(|of| of.id());
        let owners_of_id: Vec<Entity> = owners_of_id.collect();
        if owners_of_id.is_empty() {
            continue;
        }
        // Without Bevy's tables, which change with the removal.
        let held = |world: &World| memory::allocated().bytes - memory_by_module(world)["ecs"];
        let before = held(world);
        for &entity in &owners_of_id {
            if is_component {
                world.entity_mut(entity).remove_by_id(id);
            } else {
                world.despawn(entity);
            }
        }
        // Bevy records removals, which can take more memory than was freed.
        *modules.entry(module).or_default() += before.saturating_sub(held(world));
    }
    modules
}

fn check_modules_account_for_resources_and_components() {
    let (mut run, _disk) = lobby();
    let world = run.server().world_mut();
    let reported = memory_by_module(world);
    let freed = freed_by_module(world);
    for (module, &freed) in &freed {
        // The search data of maps has a row of its own, next to that of its module.
        let rows = reported
            .iter()
            .filter(|(row, _)| row.split('_').next() == Some(&**module));
        let reported: usize = rows.map(|(_, bytes)| bytes).sum();
        // Tolerance for small lists that are not counted, and for Bevy's records of removals.
        let far = freed / 10 + 16_000;
        assert!(
            reported.abs_diff(freed) <= far,
            "{module} reports {reported} bytes, and {freed} were freed with it"
        );
    }
    for module in ["matchmaking", "instance", "store", "crowd", "sync", "aoi"] {
        assert!(
            freed[module] > 32_000,
            "{module} was hardly used: {freed:?}"
        );
    }
}

/// Allocates blocks that are never freed.
#[inline(never)]
fn plant(blocks: usize) {
    for _ in 0..blocks {
        std::mem::forget(std::hint::black_box(vec![1u8; 1_000]));
    }
}

/// Allocates blocks and frees them.
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
    // A list that grew is one block, with its current capacity.
    assert!(
        found
            .sites
            .iter()
            .any(|site| (site.blocks, site.bytes) == (1, 4 * grown.capacity()))
    );
    // Restarting forgets earlier allocations, and freed blocks are forgotten, too.
    memory::track_leaks();
    drop(grown);
    let block = vec![0u8; 3_000];
    assert_eq!(
        memory::allocation_sites()
            .sites
            .iter()
            .map(|site| site.bytes)
            .sum::<usize>(),
        3_000
    );
    drop(block);
    memory::stop_tracking_leaks();
    assert_eq!(memory::allocation_sites(), AllocationSites::default());
}

/// The result of `NoLeaks` in a run whose players log in and out, with this system added.
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
    let result = run.finish().unwrap().expectations.swap_remove(0);
    (result.verdict, result.found)
}

#[derive(Resource, Default)]
struct Hoard(Vec<Vec<u8>>);

/// Allocates in every tick; the memory is freed with the server.
fn keep(mut hoard: ResMut<Hoard>) {
    hoard.0.push(vec![7; 8]);
}

fn idle(_: Res<Hoard>) {}

/// Leaks memory in every tick.
fn lose(_: Res<Hoard>) {
    plant(1);
}

/// Leaks memory in every tick, on a new thread each time.
fn lose_everywhere(_: Res<Hoard>) {
    std::thread::spawn(|| plant(1)).join().unwrap();
}

fn check_leak_expectation_names_the_leaking_system() {
    let (verdict, found) = leaks_of(idle);
    assert_eq!((verdict, &*found), (Verdict::Passed, "nothing is left"));
    for (function, (verdict, found)) in [
        ("::keep", leaks_of(keep)),
        ("::plant", leaks_of(lose)),
        ("::plant", leaks_of(lose_everywhere)),
    ] {
        assert_eq!(verdict, Verdict::Failed);
        assert!(found.ends_with(function), "{found}");
    }
}
