//! 9 of 9. Look at `Walker::frame`: a client with 100 ms latency walks at once, by the server's own rules, and is corrected after a push.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::collections::VecDeque;
use std::sync::Arc;

use glam::Vec2;
use throng::movement::{Ground, PlayerStep};
use throng::outbox::MemorySink;
use throng::prelude::*;
use throng::session::{ConnectionInfo, TransportHandle, connect};
use throng::sync::{Mirror, Predictor};
use throng::wire::{ClientInput, ClientMessage, InputMotion};
use throng::world::teleport;

const LAG_TICKS: usize = 2; // 100 ms at 20 Hz, in each direction.
const SPEED_M_S: f32 = 4.0;

struct Walker {
    tiles: Arc<TileMap>,
    mirror: Mirror,
    predictor: Predictor,
}

impl Walker {
    /// Applies the packets of a tick, steps, and returns the message to send.
    fn frame(&mut self, tick: u64, packets: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        let (tiles, tile_m) = (&self.tiles, 0.5);
        let on = |mirror: &Mirror| PlayerStep {
            ground: Some(Ground { tiles, tile_m }),
            size_m: mirror.size_m(),
            step_m: mirror.own_step_m(), // Computed from the speed that the server sent.
        };
        for packet in packets {
            self.mirror.receive(&packet).ok()?;
            let corrected = self.predictor.reconcile(&on(&self.mirror), &self.mirror);
            if let Some(correction) = corrected {
                println!("tick {tick}: corrected by {:.3} m", correction.error_m);
            }
        }
        let direction = (tick / 30 * 40) as u8;
        let mut input = ClientInput::default();
        (input.motion, input.heading) = (InputMotion::Towards(direction), direction);
        let input = self.predictor.apply_input(&on(&self.mirror), input)?;
        Some(ClientMessage::Input(input).to_bytes())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tiles = Arc::new(TileMap::from_fn(60, 60, |x, y| x % 9 == 4 && y % 7 != 3)?);
    let mut server = Server::builder().build();
    let map = SceneMap::new(tiles.clone(), 0.5);
    let spec = SceneSpec::new("hall", map.size_m());
    let hall = server.world_mut().spawn((spec, map)).id();
    let sink = MemorySink::default();
    server.set_sink(sink.clone());
    let client = connect(
        server.world_mut(),
        ConnectionInfo::player(7).without_loading(),
    )?;
    let place = (InScene(hall), Position(Vec2::splat(15.3)));
    let sessions = server.world().resource::<Sessions>();
    let session = sessions
        .client_entity(client)
        .ok_or("client without a session")?;
    let own = (Player, ControlledBy(session), MaxSpeed(SPEED_M_S));
    let own = server.world_mut().spawn((own, place)).id();
    let handle = server.world().resource::<TransportHandle>().clone();
    handle.receive(client, &ClientMessage::login(7).to_bytes())?;
    let (mirror, predictor) = (Mirror::default(), Predictor::default());
    let mut walker = Walker {
        tiles,
        mirror,
        predictor,
    };
    let mut down = VecDeque::from([const { Vec::new() }; LAG_TICKS]);
    let mut up = VecDeque::from([const { None }; LAG_TICKS]);
    for tick in 0..200 {
        up.push_back(walker.frame(tick, down.pop_front().unwrap_or_default()));
        if let Some(input) = up.pop_front().flatten() {
            handle.receive(client, &input)?;
        }
        if tick == 120 {
            teleport(server.world_mut(), own, Vec2::splat(20.2))?;
        }
        server.step(1);
        let frames = sink.take().packets;
        down.push_back(frames.iter().map(|(_, packet)| packet.to_vec()).collect());
    }
    println!("at {:?}", walker.predictor.position());
    Ok(())
}
