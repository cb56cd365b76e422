//! `throng bench session`: crowds that log in or reconnect at once, compared with admitting them all in one tick; the cost of a message
//! until its handler; and the memory of a session.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin};
use glam::Vec2;

use super::CliError;
use super::rows::BenchRow;
use throng::aoi::{ViewCaps, Viewable, Viewer};
use throng::inbox::InboxSettings;
use throng::outbox::{MemorySink, Outbox};
use throng::session::{
    ConnectionInfo, ControlledBy, DisconnectReason, LoggedIn, PlayerInput, SESSION_BYTES,
    SessionPlugin, SessionSettings, SessionStats, Sessions, TransportHandle, connect,
};
use throng::sim::clock::{Stopwatch, one_tick_per_update};
use throng::sim::{SimSystems, single_threaded};
use throng::sync::{CLIENT_STATE_BYTES, Mirror, SyncPlugin};
use throng::wire::{ClientId, ClientInput, ClientMessage, InputMotion, ResumeToken, SessionNotice};
use throng::world::{InScene, Player, PlayerId, Position, SceneSpec, open_scene};

const SYSTEM: &str = "session";

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let rounds = if quick { 1 } else { 3 };
    let (logins, resumes) = if quick { (2_000, 500) } else { (5_000, 1_000) };
    Ok(vec![
        burst(logins, rounds),
        mass_resume(resumes, rounds),
        dispatch(if quick { 9 } else { 31 }),
        size(),
    ])
}

/// The size of a session with its message queue and its replication state, without buffers.
fn size() -> BenchRow {
    let bytes = SESSION_BYTES + throng::inbox::CLIENT_QUEUE_BYTES + CLIENT_STATE_BYTES;
    BenchRow::new(SYSTEM, "size", bytes as f64, "B")
        .about("A session with its inbox queue and its replication state, without their buffers.")
        .with_target_below(1_000.0, "B")
}

#[derive(Resource)]
struct LoginScene(Entity);

/// A server with one large scene. Every player that logs in gets an object that sees at most fifty others.
struct LoginRig {
    app: App,
    transport: TransportHandle,
    sink: MemorySink,
}

impl LoginRig {
    fn new(admitted_per_tick_max: u32) -> Self {
        fn spawn_characters(
            mut new: MessageReader<LoggedIn>,
            plaza: Res<LoginScene>,
            mut commands: Commands,
        ) {
            for login in new.read() {
                let player = login.player;
                let nth = player.0 as f32;
                let at = Vec2::new(nth * 7.3 % 2_000.0, nth * 3.1 % 2_000.0);
                let place = (InScene(plaza.0), Position(at));
                let sight = (Viewer::new(ViewCaps::all(50)), Viewable::default());
                commands.spawn((
                    Player,
                    player,
                    ControlledBy(login.client_entity),
                    place,
                    sight,
                ));
            }
        }
        let mut app = App::new();
        app.add_plugins((TimePlugin, SyncPlugin))
            .insert_resource(Time::<Fixed>::from_hz(20.0))
            .insert_resource(SessionSettings {
                admitted_per_tick_max,
                unauthenticated_per_address_max: u32::MAX,
                ..SessionSettings::default()
            })
            .add_systems(FixedUpdate, spawn_characters.in_set(SimSystems::Think));
        one_tick_per_update(&mut app);
        single_threaded(&mut app);
        let spec = SceneSpec {
            size_m: Vec2::splat(2_000.0),
            max_objects: 1 << 14,
            ..SceneSpec::default()
        };
        let scene = open_scene(app.world_mut(), spec, ());
        app.insert_resource(LoginScene(scene.unwrap_or(Entity::PLACEHOLDER)));
        let sink = MemorySink::default();
        app.world_mut()
            .resource_mut::<Outbox>()
            .set_sink(sink.clone());
        let transport = app.world().resource::<TransportHandle>().clone();
        Self {
            app,
            transport,
            sink,
        }
    }

    fn log_in(&mut self, players: u32) -> Vec<ClientId> {
        let clients = (0..u64::from(players)).filter_map(|player| {
            let client = self
                .transport
                .connect(ConnectionInfo::player(player).without_loading())
                .ok()?;
            let login = ClientMessage::login(player).to_bytes();
            self.transport.receive(client, &login).ok()?;
            Some(client)
        });
        clients.collect()
    }

    /// Runs this many ticks, and returns the time of the longest one, in milliseconds.
    fn worst_tick_ms(&mut self, ticks: usize) -> f64 {
        let mut worst = 0.0_f64;
        for _ in 0..ticks {
            let watch = Stopwatch::start();
            self.app.update();
            worst = worst.max(watch.elapsed().as_secs_f64() * 1e3);
        }
        worst
    }

    fn stats(&self) -> SessionStats {
        *self.app.world().resource::<SessionStats>()
    }
}

/// This many players log in at once.
fn burst(players: u32, rounds: usize) -> BenchRow {
    let (mut ours, mut at_once, mut all) = (Vec::new(), Vec::new(), true);
    for _ in 0..rounds {
        for (admitted, into) in [
            (SessionSettings::default().admitted_per_tick_max, &mut ours),
            (u32::MAX, &mut at_once),
        ] {
            let mut rig = LoginRig::new(admitted);
            rig.log_in(players);
            into.push(rig.worst_tick_ms(60));
            all &= rig.stats().logins == u64::from(players);
        }
    }
    BenchRow::repeated(SYSTEM, format!("{players} logins"), &ours, "ms")
        .with_repeated_reference("all in one tick", &at_once)
        .about(format!(
            "The longest tick while {players} players log in at once, get an object each and receive the objects that they see."
        ))
        .with_comparison("all players are logged in after three seconds", all)
        .with_target_below(50.0, "ms")
}

/// This many players reconnect with their tokens in one tick.
fn mass_resume(players: u32, rounds: usize) -> BenchRow {
    let (mut times, mut all) = (Vec::new(), true);
    for _ in 0..rounds {
        let mut rig = LoginRig::new(SessionSettings::default().admitted_per_tick_max);
        let clients = rig.log_in(players);
        rig.worst_tick_ms(60);
        let tokens = tokens(&rig.sink, &clients);
        for &client in &clients {
            rig.transport.disconnect(client, DisconnectReason::Lost);
        }
        rig.worst_tick_ms(5);
        for (player, token) in tokens {
            if let Ok(client) = rig
                .transport
                .connect(ConnectionInfo::unknown().without_loading())
            {
                let resume = ClientMessage::Resume {
                    player: player.0,
                    token,
                    received: None,
                };
                let _ = rig.transport.receive(client, &resume.to_bytes());
            }
        }
        times.push(rig.worst_tick_ms(20));
        all &= rig.stats().resumed == u64::from(players);
    }
    BenchRow::repeated(SYSTEM, format!("{players} resumes"), &times, "ms")
        .about(format!(
            "The longest tick while {players} players reconnect at once with their tokens and receive the objects that they see again."
        ))
        .with_comparison("all players are reconnected", all)
        .with_target_below(50.0, "ms")
}

/// The messages of a tick through the whole set `Ingest`, minus the same tick without messages.
fn dispatch(rounds: usize) -> BenchRow {
    const CLIENTS: u32 = 1_000;
    const EACH: u32 = 8;
    /// Number of inputs that reached the handler.
    #[derive(Resource, Default)]
    struct ReceivedInputs(u64);
    fn count(mut inputs: MessageReader<PlayerInput>, mut arrived: ResMut<ReceivedInputs>) {
        arrived.0 += inputs.read().count() as u64;
    }
    let mut app = App::new();
    app.add_plugins((TimePlugin, SessionPlugin))
        .init_resource::<ReceivedInputs>()
        .add_systems(FixedUpdate, count.after(SimSystems::Ingest))
        .insert_resource(Time::<Fixed>::from_hz(20.0))
        // All pending messages are handled in their tick.
        .insert_resource(InboxSettings::reference());
    one_tick_per_update(&mut app);
    single_threaded(&mut app);
    let clients = log_in_clients(&mut app, CLIENTS);
    let transport = app.world().resource::<TransportHandle>().clone();
    let tick_ns = |app: &mut App| {
        let watch = Stopwatch::start();
        app.update();
        watch.elapsed().as_secs_f64() * 1e9
    };
    let (mut times, mut seq) = (Vec::new(), 0_u16);
    for _ in 0..rounds {
        let without_ns = tick_ns(&mut app);
        for _ in 0..EACH {
            seq = seq.wrapping_add(1);
            let input = ClientInput {
                seq,
                motion: InputMotion::Towards(seq as u8),
                ..ClientInput::default()
            };
            let bytes = ClientMessage::Input(input).to_bytes();
            for &client in &clients {
                let _ = transport.receive(client, &bytes);
            }
        }
        let with_ns = tick_ns(&mut app);
        times.push((with_ns - without_ns).max(0.0) / f64::from(CLIENTS * EACH));
    }
    let all = u64::from(CLIENTS * EACH) * rounds as u64;
    BenchRow::repeated(SYSTEM, "decode and dispatch", &times, "ns/msg")
        .about("Taking an input of each of 1,000 clients in turn, decoding it, checking its number and dispatching it.")
        .with_comparison("every message arrives", app.world().resource::<ReceivedInputs>().0 == all)
        .with_target_below(100.0, "ns")
}

/// Logs in this many clients, each with an object.
fn log_in_clients(app: &mut App, players: u32) -> Vec<ClientId> {
    let spec = SceneSpec {
        max_objects: 1 << 14,
        ..SceneSpec::default()
    };
    let Ok(scene) = open_scene(app.world_mut(), spec, ()) else {
        return Vec::new();
    };
    let clients = (0..u64::from(players)).filter_map(|player| {
        let client = connect(
            app.world_mut(),
            ConnectionInfo::player(player).without_loading(),
        )
        .ok()?;
        let transport = app.world().resource::<TransportHandle>();
        let login = ClientMessage::login(player).to_bytes();
        transport.receive(client, &login).ok()?;
        let place = (Player, InScene(scene), Position(Vec2::ONE));
        let session = app.world().resource::<Sessions>().client_entity(client)?;
        app.world_mut().spawn((ControlledBy(session), place));
        Some(client)
    });
    let clients = clients.collect();
    (0..60).for_each(|_| app.update());
    clients
}

/// The reconnect token of each client.
fn tokens(sink: &MemorySink, clients: &[ClientId]) -> Vec<(PlayerId, ResumeToken)> {
    let sent = sink.take();
    let mut mirrors: Vec<Mirror> = clients.iter().map(|_| Mirror::default()).collect();
    for (client, packet) in sent.packets.iter() {
        if let Ok(nth) = clients.binary_search(&client) {
            // A missing token shows up in the number of reconnected clients.
            let _ = mirrors[nth].receive(packet);
        }
    }
    let notices = mirrors.iter_mut().flat_map(Mirror::take_notices);
    let welcomes = notices.filter_map(|notice| match notice {
        SessionNotice::Welcome { player, token } => Some((PlayerId(player), token)),
        _ => None,
    });
    welcomes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_log_in_and_resume() {
        assert_eq!(burst(50, 1).results_agree, Some(true));
        assert_eq!(mass_resume(20, 1).results_agree, Some(true));
        assert_eq!(dispatch(2).results_agree, Some(true));
        assert!(!size().has_failed());
    }
}
