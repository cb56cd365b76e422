//! Promise: a client that predicts its movement agrees with the server, except for what it could not foresee; and no client input
//! gains anything beyond the stated allowance, or harms other clients.

use std::collections::{BTreeMap, VecDeque};

use bevy_ecs::prelude::*;
use glam::{IVec2, Vec2};
use throng::inbox::{Inbox, InboxSettings};
use throng::map::{TileEdit, TileRect, edit_map};
use throng::movement::{Ground, MoveRefused, MovementSettings, MovementStats, PlayerStep};
use throng::outbox::MemorySink;
use throng::prelude::*;
use throng::session::{ConnectionInfo, PlayerInput, SessionStats, TransportHandle};
use throng::sync::{Correction, Mirror, Predictor, UNHANDLED_MAX};
use throng::wire::{
    Channel, ClientInput, ClientMessage, InputMotion, PacketHeader, QuantizedPosition, WireReader,
};
use throng::world::teleport;

const TILE_M: f32 = 0.5;
const SPEED: f32 = 4.0;

/// Numbers that repeat themselves.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn walled(side: u32, blocked_in_a_hundred: u64) -> TileMap {
    let mut chance = TestRandom(5);
    TileMap::from_fn(side, side, |_, _| chance.below(100) < blocked_in_a_hundred).unwrap()
}

/// A server with one scene; every player that logs in gets an object on a free tile.
struct TestWorld {
    server: Server,
    scene: Entity,
    transport: TransportHandle,
    sink: MemorySink,
}

impl TestWorld {
    fn new(tiles: &TileMap, hz: f64) -> Self {
        let mut server = Server::builder().tick_hz(hz).build();
        let map = SceneMap::new(std::sync::Arc::new(tiles.clone()), TILE_M);
        let spec = SceneSpec {
            size_m: map.size_m(),
            ..SceneSpec::default()
        };
        let scene = open_scene(server.world_mut(), spec, map).unwrap();
        let sink = MemorySink::default();
        server.set_sink(sink.clone());
        let transport = server.world().resource::<TransportHandle>().clone();
        Self {
            server,
            scene,
            transport,
            sink,
        }
    }

    fn log_in(&mut self, player: u64, at: Vec2) -> (ClientId, Entity) {
        let connected = ConnectionInfo::player(player).without_loading();
        let client = self.transport.connect(connected).unwrap();
        self.send(client, &ClientMessage::login(player));
        self.server.step(1);
        let new = self.messages::<LoggedIn>();
        assert_eq!(new.len(), 1);
        let place = (InScene(self.scene), Position(at));
        let own = (
            Player,
            new[0].player,
            ControlledBy(new[0].client_entity),
            MaxSpeed(SPEED),
        );
        let entity = self.server.world_mut().spawn((own, place)).id();
        (client, entity)
    }

    fn send(&self, client: ClientId, message: &ClientMessage) {
        let _ = self.transport.receive(client, &message.to_bytes());
    }

    fn messages<M: Message + Copy>(&self) -> Vec<M> {
        let messages = self.server.world().resource::<Messages<M>>();
        messages.iter_current_update_messages().copied().collect()
    }

    fn position(&self, entity: Entity) -> Vec2 {
        self.server.world().get::<Position>(entity).unwrap().0
    }
}

/// How bad a line is.
#[derive(Clone, Copy)]
struct TestNetwork {
    /// Ticks that everything takes, and up to how many more it may take.
    lag: u64,
    jitter: u64,
    /// Of a hundred inputs, and of a hundred unreliable packets, this many are lost.
    loss: u64,
    /// Whether inputs overtake each other.
    reorders: bool,
}

/// What happens to a client beside its own inputs.
#[derive(Clone, Copy, PartialEq)]
enum TestScenario {
    Undisturbed,
    /// It is made faster or slower now and then, as the server tells it.
    ChangesSpeed,
    /// It is teleported, pushed out of a wall that is built where it stands, and made faster or slower.
    Disturbed,
}

/// A client at the end of a line.
struct Walker {
    client: ClientId,
    entity: Entity,
    tiles: TileMap,
    mirror: Mirror,
    predictor: Predictor,
    /// Packets and inputs on their way, with the tick of their arrival.
    down: VecDeque<(u64, Vec<u8>)>,
    up: Vec<(u64, Vec<u8>)>,
    reliable_due: u64,
    input_due: u64,
}

impl Walker {
    fn step(&self) -> PlayerStep<'_> {
        PlayerStep {
            ground: Some(Ground {
                tiles: &self.tiles,
                tile_m: TILE_M,
            }),
            size_m: self.mirror.size_m(),
            step_m: self.mirror.own_step_m(),
        }
    }
}

/// What a walk came to.
#[derive(Debug, Default)]
struct WalkCounts {
    inputs: u32,
    replies: u32,
    corrections: Vec<Correction>,
    slid_or_stood: u32,
}

/// Plays a client and its server tick by tick. Whenever it is told where it stands, that is the server's place at that tick bit
/// for bit, and what it had walked itself unless there was a reason that it could not know.
fn walk(line: TestNetwork, fate: TestScenario, hz: f64, ticks: u64, seed: u64) -> WalkCounts {
    let tiles = walled(80, 20);
    let mut world = TestWorld::new(&tiles, hz);
    let start = tiles.nearest_free(IVec2::splat(40), 40).unwrap();
    let at = (start.as_vec2() + 0.37) * TILE_M;
    let (client, entity) = world.log_in(7, at);
    let mut walker = Walker {
        client,
        entity,
        tiles,
        mirror: Mirror::default(),
        predictor: Predictor::default(),
        down: VecDeque::new(),
        up: Vec::new(),
        reliable_due: 0,
        input_due: 0,
    };
    let mut chance = TestRandom(seed);
    let (mut walked, mut direction) = (WalkCounts::default(), 0);
    // By tick: where the server had it, and whether there was a reason for both to part.
    let (mut places, mut reasons) = (BTreeMap::new(), Vec::new());
    let (mut told_tick, mut last_seq) = (0, None);
    for now in world.server.tick()..world.server.tick() + ticks {
        reconcile(
            &mut walker,
            now,
            (&places, &reasons),
            &mut told_tick,
            &mut walked,
        );
        if chance.below(8) == 0 {
            direction = chance.below(256) as u8;
        }
        send_input(
            &mut walker,
            (now, direction),
            line,
            &mut chance,
            &mut walked,
        );
        let due = walker.up.iter().filter(|(due, _)| *due <= now);
        for (_, bytes) in due {
            let _ = world.transport.receive(client, bytes);
        }
        walker.up.retain(|(due, _)| *due > now);
        let is_touched = fate == TestScenario::Disturbed && now % 60 == 59;
        if is_touched {
            disturb(&mut world, &mut walker, now, &mut chance);
        } else if fate == TestScenario::ChangesSpeed && now % 50 == 49 {
            let speed = MaxSpeed(2.0 + chance.below(5) as f32);
            world.server.world_mut().entity_mut(entity).insert(speed);
        }
        world.server.step(1);
        let tick = world.server.tick();
        for input in world.messages::<PlayerInput>() {
            let seq = input.input.seq;
            // One before it was lost, or will be refused for coming late.
            if last_seq.is_some_and(|last: u16| last.wrapping_add(1) != seq) {
                reasons.push(tick..=tick);
            }
            last_seq = Some(seq);
        }
        if !world.messages::<MoveRefused>().is_empty() {
            reasons.push(tick..=tick);
        }
        if is_touched {
            // What was under way was walked on the old map, or at the old speed.
            reasons.push(tick..=tick + 2 * (line.lag + line.jitter) + 7);
        }
        places.insert(tick, world.position(entity));
        send_down(&world, &mut walker, now, line, &mut chance);
    }
    walked
}

/// The client takes what came.
fn reconcile(
    walker: &mut Walker,
    now: u64,
    (places, reasons): (&BTreeMap<u64, Vec2>, &[std::ops::RangeInclusive<u64>]),
    told_tick: &mut u64,
    walked: &mut WalkCounts,
) {
    while let Some(nth) = walker.down.iter().position(|(due, _)| *due <= now) {
        let (_, packet) = walker.down.remove(nth).unwrap();
        walker.mirror.receive(&packet).unwrap();
        let led: BTreeMap<u16, Vec2> = walker
            .predictor
            .unhandled()
            .map(|(input, to)| (input.seq, to))
            .collect();
        let mut predictor = std::mem::take(&mut walker.predictor);
        let corrected = predictor.reconcile(&walker.step(), &walker.mirror);
        walker.predictor = predictor;
        let Some(told) = walker.mirror.own_position() else {
            continue;
        };
        if told.tick == *told_tick {
            assert_eq!(corrected, None, "nothing new came");
            continue;
        }
        walked.replies += 1;
        let since = std::mem::replace(told_tick, told.tick) + 1;
        let of_server = places[&told.tick];
        assert_eq!(walker.predictor.confirmed(), Some(of_server));
        assert_eq!(told.position, of_server);
        match corrected {
            None => {
                let led = led.get(&told.input);
                assert!(led.is_none_or(|&led| led == of_server), "{led:?}");
            }
            Some(correction) => {
                let has_reason = reasons
                    .iter()
                    .any(|reason| *reason.start() <= told.tick && *reason.end() >= since);
                assert!(has_reason, "{correction:?} at {} since {since}", told.tick);
                walked.corrections.push(correction);
            }
        }
    }
}

/// The client acts, and its input goes on its way.
fn send_input(
    walker: &mut Walker,
    (now, direction): (u64, u8),
    line: TestNetwork,
    chance: &mut TestRandom,
    walked: &mut WalkCounts,
) {
    let before = walker.predictor.position();
    let motion = match chance.below(30) {
        0 => InputMotion::Stand,
        _ => InputMotion::Towards(direction),
    };
    let mut predictor = std::mem::take(&mut walker.predictor);
    let input = ClientInput {
        motion,
        heading: direction,
        ..ClientInput::default()
    };
    let acted = predictor.apply_input(&walker.step(), input);
    walker.predictor = predictor;
    let Some(input) = acted else {
        return;
    };
    walked.inputs += 1;
    let way = before.zip(walker.predictor.position());
    let is_short = way.is_some_and(|(from, to)| from.distance(to) < walker.step().step_m * 0.95);
    walked.slid_or_stood += u32::from(is_short && motion != InputMotion::Stand);
    if chance.below(100) < line.loss {
        return;
    }
    let mut due = now + line.lag + chance.below(line.jitter + 1);
    if !line.reorders {
        due = due.max(walker.input_due);
        walker.input_due = due;
    }
    let bytes = ClientMessage::Input(input).to_bytes();
    walker.up.push((due, bytes));
}

/// What a client cannot foresee happens to it.
fn disturb(world: &mut TestWorld, walker: &mut Walker, now: u64, chance: &mut TestRandom) {
    let scene = world.scene;
    let entity = walker.entity;
    match now / 60 % 3 {
        0 => {
            let tile = IVec2::new(chance.below(80) as i32, chance.below(80) as i32);
            let to = walker.tiles.nearest_free(tile, 40).unwrap();
            let to = (to.as_vec2() + 0.61) * TILE_M;
            teleport(world.server.world_mut(), entity, to).unwrap();
        }
        1 => {
            let at = (world.position(entity) / TILE_M).as_uvec2();
            let at = at.min(glam::UVec2::splat(78));
            let rect = TileRect::new(at.x, at.y, 2, 2);
            edit_map(world.server.world_mut(), scene, rect, &TileEdit::Block).unwrap();
            let map = world.server.world().get::<SceneMap>(scene).unwrap();
            walker.tiles = map.tiles().as_ref().clone();
        }
        _ => {
            let speed = MaxSpeed(2.0 + chance.below(5) as f32);
            world.server.world_mut().entity_mut(entity).insert(speed);
        }
    }
}

/// What the server sent goes on its way: reliable packets in order, the others as they come.
fn send_down(
    world: &TestWorld,
    walker: &mut Walker,
    now: u64,
    line: TestNetwork,
    chance: &mut TestRandom,
) {
    let kept = world.sink.take();
    let frames = kept.packets.iter();
    for (_, packet) in frames.filter(|(client, _)| *client == walker.client) {
        let header = PacketHeader::read(&mut WireReader::new(packet)).unwrap();
        let mut due = now + 1 + line.lag + chance.below(line.jitter + 1);
        if header.channel == Channel::Reliable {
            due = due.max(walker.reliable_due);
            walker.reliable_due = due;
        } else if chance.below(100) < line.loss {
            continue;
        }
        walker.down.push_back((due, packet.to_vec()));
    }
}

const PERFECT_NETWORK: TestNetwork = TestNetwork {
    lag: 2,
    jitter: 0,
    loss: 0,
    reorders: false,
};

#[test]
fn in_order_inputs_are_never_corrected() {
    for (line, hz) in [
        (PERFECT_NETWORK, 20.0),
        (
            TestNetwork {
                lag: 0,
                ..PERFECT_NETWORK
            },
            30.0,
        ),
        (
            TestNetwork {
                jitter: 4,
                ..PERFECT_NETWORK
            },
            20.0,
        ),
        (
            TestNetwork {
                lag: 9,
                ..PERFECT_NETWORK
            },
            64.0,
        ),
    ] {
        let walked = walk(line, TestScenario::Undisturbed, hz, 1_200, 3);
        assert!(walked.inputs > 1_100 && walked.replies > 400, "{walked:?}");
        assert!(walked.slid_or_stood > 100, "there are walls: {walked:?}");
        assert!(walked.corrections.is_empty(), "{walked:?}");
    }
}

#[test]
fn change_of_speed_is_no_correction() {
    for (line, hz) in [
        (PERFECT_NETWORK, 20.0),
        (
            TestNetwork {
                lag: 9,
                ..PERFECT_NETWORK
            },
            64.0,
        ),
    ] {
        let walked = walk(line, TestScenario::ChangesSpeed, hz, 1_200, 3);
        assert!(walked.inputs > 1_100 && walked.replies > 400, "{walked:?}");
        assert!(walked.corrections.is_empty(), "{walked:?}");
    }
}

#[test]
fn only_lost_and_late_inputs_are_corrected() {
    for seed in 1..4 {
        let line = TestNetwork {
            jitter: 3,
            loss: 8,
            reorders: true,
            ..PERFECT_NETWORK
        };
        let walked = walk(line, TestScenario::Undisturbed, 20.0, 1_200, seed);
        assert!(walked.replies > 400, "{walked:?}");
        assert!(walked.corrections.len() > 20, "{walked:?}");
    }
}

#[test]
fn predictor_follows_teleports_pushes_and_speed_changes() {
    let lossy = TestNetwork {
        jitter: 2,
        loss: 5,
        ..PERFECT_NETWORK
    };
    for line in [PERFECT_NETWORK, lossy] {
        let walked = walk(line, TestScenario::Disturbed, 20.0, 1_800, 9);
        assert!(walked.corrections.len() > 10, "{walked:?}");
        let farthest = walked.corrections.iter().map(|it| it.error_m);
        assert!(farthest.fold(0.0, f32::max) > 5.0, "it was teleported");
    }
}

#[test]
fn unacknowledged_client_stops_and_continues_later() {
    let dead = TestNetwork {
        lag: 200,
        ..PERFECT_NETWORK
    };
    let walked = walk(dead, TestScenario::Undisturbed, 20.0, 480, 1);
    // Two round trips of 401 ticks are longer than the test; the first one delivers the client's object.
    assert_eq!(walked.inputs as usize, UNHANDLED_MAX, "{walked:?}");
}

/// Inputs of a client that tries what it can, as they are sent.
fn any_input(chance: &mut TestRandom, seq: &mut u16, at: Vec2) -> ClientInput {
    let near = |chance: &mut TestRandom, reach: u64| {
        let mut off = || (chance.below(2 * reach + 1) as f32 - reach as f32) / 64.0;
        throng::wire::quantise(at + Vec2::new(off(), off()))
    };
    let motion = match chance.below(8) {
        0 => InputMotion::Stand,
        1 | 2 => InputMotion::Towards(chance.below(256) as u8),
        3 => InputMotion::To(QuantizedPosition {
            x: u32::MAX - chance.below(9) as u32,
            y: chance.below(1 << 32) as u32,
        }),
        4 => InputMotion::To(near(chance, 4_000)),
        5 => InputMotion::To(near(chance, 64)),
        _ => InputMotion::To(near(chance, 14)),
    };
    let number = match chance.below(12) {
        0 => seq.wrapping_sub(chance.below(9) as u16),
        1 => seq.wrapping_sub(1 << 15),
        _ => {
            let ahead = if chance.below(50) == 0 { 900 } else { 1 };
            *seq = seq.wrapping_add(ahead);
            *seq
        }
    };
    ClientInput {
        seq: number,
        client_tick: chance.below(65_536) as u16,
        motion,
        heading: chance.below(256) as u8,
        buttons: chance.below(1 << 32) as u32,
    }
}

/// An inbox that lets through as much as can be sent here.
fn no_quota() -> InboxSettings {
    InboxSettings {
        quota: throng::inbox::ClientQuota {
            messages_per_s: 100_000,
            messages_max: 100_000,
            bytes_per_s: 10_000_000,
            bytes_max: 10_000_000,
            violations_max: 100_000,
        },
        client_backlog_max: 500,
        ..InboxSettings::default()
    }
}

#[test]
fn cheaters_gain_at_most_the_budget_and_idle_players_stay() {
    let few = walled(60, 5);
    let is_blocked = |x, y| x == 30 || few.is_blocked((x as i32, y as i32).into());
    let tiles = TileMap::from_fn(60, 60, is_blocked).unwrap();
    let mut world = TestWorld::new(&tiles, 20.0);
    world.server.world_mut().insert_resource(no_quota());
    let mut chance = TestRandom(23);
    let mut hackers = Vec::new();
    for player in 0..8 {
        let tile = IVec2::new(7 * player, 55 - 6 * player);
        let from = tiles.nearest_free(tile, 60).unwrap();
        let at = (from.as_vec2() + 0.5) * TILE_M;
        let (client, entity) = world.log_in(player as u64, at);
        hackers.push((client, entity, from, 0_u16, 0.0_f64, 0.0_f64));
    }
    // Two clients send nothing.
    let quiet: Vec<_> = hackers.drain(..2).collect();
    world.server.step(1);
    let before: Vec<Vec2> = quiet.iter().map(|it| world.position(it.1)).collect();
    let rules = MovementSettings::default().move_limits();
    let burst_m = f64::from(rules.allowance_m(SPEED, 0.0));
    let a_tick_m = f64::from(rules.allowance_m(SPEED, 0.05)) - burst_m;
    let ground = Ground {
        tiles: &tiles,
        tile_m: TILE_M,
    };
    let (mut sent, mut greedy, mut was_at) = (0, 0, Vec2::ZERO);
    for _ in 0..1_600 {
        for (nth, (client, entity, _, seq, ..)) in hackers.iter_mut().enumerate() {
            let at = world.position(*entity);
            // One goes straight on, two steps a tick, until something is in the way.
            let is_greedy = nth == 0;
            if is_greedy && std::mem::replace(&mut was_at, at).distance(at) < 0.15 {
                greedy = chance.below(256) as u8;
            }
            let count = match chance.below(42) {
                _ if is_greedy => 2,
                nth @ 0..7 => [0, 3, 9, 9, 30, 30, 150][nth as usize],
                _ => 0,
            };
            for _ in 0..count {
                let mut input = any_input(&mut chance, seq, at);
                if is_greedy {
                    input.seq = *seq;
                    *seq = seq.wrapping_add(1);
                    input.motion = InputMotion::Towards(greedy);
                }
                world.send(*client, &ClientMessage::Input(input));
            }
            sent += count;
        }
        let before: Vec<Vec2> = hackers.iter().map(|it| world.position(it.1)).collect();
        world.server.step(1);
        for ((_, entity, from, _, ahead_m, least_m), before) in hackers.iter_mut().zip(before) {
            let at = world.position(*entity);
            let tile = ground.tile_at(at);
            assert!(
                tiles.is_free(tile) && tiles.are_connected(*from, tile),
                "{at}"
            );
            *ahead_m += f64::from(before.distance(at)) - a_tick_m;
            let gained_m = *ahead_m - *least_m;
            assert!(gained_m <= burst_m + 1e-3, "{gained_m} of {burst_m}");
            *least_m = least_m.min(*ahead_m);
        }
    }
    assert_eq!(
        before,
        Vec::from_iter(quiet.iter().map(|it| world.position(it.1)))
    );
    assert!(sent > 30_000, "{sent}");
    let stats = *world.server.world().resource::<MovementStats>();
    let late = world.server.world().resource::<SessionStats>().late_inputs;
    assert!(stats.moves_refused > 1_000 && late > 1_000, "{stats:?}");
    assert!(stats.moves_accepted > 1_000, "{stats:?}");
    assert_eq!(world.server.world().resource::<Sessions>().len(), 8);
}

#[test]
fn server_counts_any_bytes_it_receives() {
    let mut world = TestWorld::new(&walled(20, 10), 20.0);
    let tile = walled(20, 10).nearest_free(IVec2::splat(9), 20).unwrap();
    let at = (tile.as_vec2() + 0.5) * TILE_M;
    let (player, entity) = world.log_in(1, at);
    let newcomer = world.transport.connect(ConnectionInfo::unknown()).unwrap();
    let mut chance = TestRandom(41);
    let folder = crate::harness::root().join("tests/corpus/inbound");
    let mut kept: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    kept.sort_by_key(|entry| entry.as_ref().unwrap().path());
    let kept: Vec<Vec<u8>> = kept
        .into_iter()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    for nth in 0..4_000_u64 {
        let mut bytes = match chance.below(3) {
            0 => kept[chance.below(kept.len() as u64) as usize].clone(),
            1 => vec![chance.below(19) as u8; chance.below(40) as usize],
            _ => vec![chance.below(256) as u8; [3, 1_024, 1_025, 70_000][(nth % 4) as usize]],
        };
        for _ in 0..chance.below(4) {
            let at = chance.below(bytes.len().max(1) as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = chance.below(256) as u8;
            }
        }
        // A logout would end the session.
        if bytes != [2] {
            let from = [player, newcomer, ClientId(77)][chance.below(3) as usize];
            let _ = world.transport.receive(from, &bytes);
        }
        if nth % 10 == 9 {
            world.server.step(1);
        }
    }
    let inbox = world.server.world().resource::<Inbox>();
    let counted = inbox.counters();
    assert_eq!(
        counted.received,
        counted.handled + counted.refused + inbox.backlog() as u64
    );
    let stats = world.server.world().resource::<SessionStats>();
    assert!(
        stats.bad_messages > 200 && counted.unknown_client > 500,
        "{stats:?} {counted:?}"
    );
    assert_eq!((stats.logins, stats.logouts), (1, 0));
    // It moved as far as it may, and stands on free ground.
    let ground = Ground {
        tiles: &walled(20, 10),
        tile_m: TILE_M,
    };
    assert!(ground.is_free_at(world.position(entity)));
}
