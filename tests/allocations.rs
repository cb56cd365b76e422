//! After warm-up nothing is allocated by the pure cores, and by a whole app nothing that grows with the number of objects. A
//! binary of its own, because the allocator is the whole process's.
#![expect(
    unsafe_code,
    reason = "an allocator that counts cannot be written without"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use bevy_app::{App, FixedUpdate, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;
use throng::ThrongPlugins;
use throng::aoi::ViewCaps;
use throng::aoi::{Viewable, Viewer};
use throng::inbox::{InboxLimits, MessageQueue};
use throng::outbox::workload::{WorkloadShard, fill};
use throng::outbox::{Assembler, Batch, CountingSink};
use throng::session::{Connected, TransportHandle, connect, control};
use throng::sim::{SimSystems, SimTick, clock, single_threaded};
use throng::sync::SlotMasks;
use throng::sync::{AttributeSpec, Cadence, ReplicateAppExt, SyncStats};
use throng::wire::{ClientId, Encoding};
use throng::world::{KindId, Object, Position, SceneSpec, Velocity, open_scene, spawn_object};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of so many calls.
fn allocations(calls: u32, mut call: impl FnMut()) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..calls).for_each(|_| call());
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// The only test here: others would allocate beside it.
#[test]
fn what_is_warm_allocates_nothing_that_grows() {
    a_warm_outbox_allocates_nothing();
    a_warm_inbox_and_warm_masks_allocate_nothing();
    a_whole_app_allocates_nothing_that_grows_with_its_objects();
}

fn a_warm_outbox_allocates_nothing() {
    let mut batch = Batch::default();
    fill(&mut batch, 1, 2_000, 200, 60);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    let mut shard = WorkloadShard::new(1 << 20, Box::new(CountingSink::default()));
    let mut tick = || {
        for line in batch.parts.iter().flat_map(|part| part.lines()) {
            assembler.line(1, line, &batch.shared, &mut sink);
        }
        shard.offer(&batch);
        shard.take();
    };
    (0..300).for_each(|_| tick());
    assert_eq!(allocations(100, tick), 0);
}

fn a_warm_inbox_and_warm_masks_allocate_nothing() {
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
                let _ = queue.offer(ClientId(client), &[4, 1]);
            }
            masks.mark(client * 2, client % 128);
        }
        while queue.take(2).is_some() {}
        queue.take_refused(&mut refused);
        refused.clear();
        masks.drain(|_, mask| mask.fill(0));
    };
    (0..10).for_each(|_| tick());
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

/// An app of all plugins, in which so many players walk, are hurt, turn on the spot when their clients say so, and see each
/// other.
fn app_of(players: u32) -> (App, Vec<ClientId>) {
    let mut app = App::new();
    app.add_plugins((TaskPoolPlugin::default(), TimePlugin, ThrongPlugins))
        .insert_resource(Time::<Fixed>::from_hz(20.0))
        .add_systems(FixedUpdate, (walk, hurt).chain().in_set(SimSystems::Move));
    let health = AttributeSpec::new("health", 1, Encoding::Varint).at(Cadence::EveryTick);
    app.replicate_field(health, |health: &Health| health.0)
        .unwrap();
    clock::one_tick_an_update(&mut app);
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
        let client = connect(world, Connected::unknown().ready()).unwrap();
        assert!(control(world, client, object));
        client
    });
    let clients = clients.collect();
    (app, clients)
}

fn a_whole_app_allocates_nothing_that_grows_with_its_objects() {
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
