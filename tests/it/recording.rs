//! Promise: all input goes through the transport handle, so replaying recorded input reproduces the run.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::prelude::*;
use throng::session::TransportHandle;
use throng::session::{SessionStats, TransportEvent};
use throng_scenario::testing::TestServer;
use throng_scenario::{self as scenario, RunOptions, ScenarioRun};

use crate::harness::{RunConfig, scenario_of, start};

/// The received events of each tick.
type Traffic = Vec<Vec<TransportEvent>>;

/// The events of a scenario's synthetic players, who log in and out all the time.
fn traffic(name: &str, ticks: u64) -> Traffic {
    let play = RunConfig {
        threads: 1,
        ticks,
        ..RunConfig::default()
    };
    let mut run = start(scenario::load(name).unwrap(), play);
    let handle = run.server().world().resource::<TransportHandle>().clone();
    handle.set_recording(true);
    let mut traffic = Vec::new();
    while run.step().expect("the run writes no output") {
        traffic.push(handle.take_record());
    }
    assert_eq!(handle.unrecorded(), 0);
    traffic
}

/// A different game: every player that logs in stands on a meadow, and walks where its client says.
fn meadow() -> TestServer {
    fn game(app: &mut App) {
        fn spawn_characters(
            mut new: MessageReader<LoggedIn>,
            scene: Query<Entity, With<SimScene>>,
            mut commands: Commands,
        ) {
            let Ok(scene) = scene.single() else {
                return;
            };
            for login in new.read() {
                let player = login.player;
                let at = Vec2::new((player.0 % 190) as f32, (player.0 / 190 % 190) as f32);
                let place = (InScene(scene), Position(at + Vec2::splat(5.0)));
                commands.spawn((
                    Player,
                    player,
                    ControlledBy(login.client_entity),
                    MaxSpeed(5.0),
                    place,
                ));
            }
        }
        app.add_systems(
            FixedUpdate,
            spawn_characters
                .after(SimSystems::Ingest)
                .before(SimSystems::Think),
        );
    }
    let mut server = TestServer::builder().seed(3).configure(game).build();
    open_scene(server.world_mut(), SceneSpec::default(), ()).unwrap();
    server
}

/// Replays recorded events on a new server; returns its state after each tick, and the events that its own handle recorded.
fn replay(traffic: &Traffic) -> (Vec<u64>, Traffic) {
    let mut server = meadow();
    let handle = server.world().resource::<TransportHandle>().clone();
    handle.set_recording(true);
    let mut recorded = Vec::new();
    let hashes = traffic.iter().map(|events| {
        handle.replay(events).unwrap();
        recorded.push(handle.take_record());
        server.step(1);
        server.state_hash()
    });
    let hashes = hashes.collect();
    let stats = server.stats::<SessionStats>();
    assert!(stats.logins > 100 && stats.logouts > 10, "{stats:?}");
    (hashes, recorded)
}

#[test]
fn recorded_traffic_reproduces_the_run() {
    let traffic = traffic("churn", 120);
    let (hashes, recorded) = replay(&traffic);
    assert_eq!(recorded, traffic);
    let (again, _) = replay(&recorded);
    assert_eq!(again, hashes);

    // Without a single message, the run differs from that tick on, and not before.
    let mut other = recorded;
    let tick = 60;
    let is_message = |event: &TransportEvent| matches!(event, TransportEvent::Received(..));
    let nth = other[tick].iter().position(is_message).unwrap();
    other[tick].remove(nth);
    let (found, _) = replay(&other);
    let differs = (0..hashes.len()).find(|&tick| found[tick] != hashes[tick]);
    assert_eq!(differs, Some(tick));
}

/// The bytes written by all clones.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Every packet of a run in which players log in.
fn packets(outside: bool) -> Vec<u8> {
    let written = SharedBuffer::default();
    let text = "Scenario(name: \"x\", scenes: [Scene(name: \"a\")], crowds: [Crowd(tag: \"t\", kind: \"player\", count: 3, client_share: 1)])";
    let options = RunOptions {
        ticks: Some(5),
        threads: 1,
        capture: Some(Box::new(written.clone())),
        has_external_clients: outside,
        ..RunOptions::default()
    };
    let mut run = ScenarioRun::new(scenario_of(text), options).unwrap();
    while run.step().unwrap() {}
    drop(run);
    let written = written.0.lock().unwrap();
    written.clone()
}

#[test]
fn packets_are_reproducible_except_resume_tokens() {
    assert_eq!(packets(false), packets(false));
    assert_ne!(
        packets(true),
        packets(true),
        "tokens do not depend on the seed"
    );
}
