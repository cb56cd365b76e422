//! A client predicts its object, 100 ms away from the server: look at the correction, after which both agree again.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::collections::VecDeque;

use glam::Vec2;
use throng_nav::map::TileMap;
use throng_protocol::movement::{Ground, PlayerStep};
use throng_protocol::wire::{self, ClientInput, InputMotion, Motion, PacketHeader};
use throng_protocol::{mirror::Mirror, predictor::Predictor};

const LAG_TICKS: usize = 2; // 100 ms at 20 Hz, each way.

/// What the server sends in a tick: the position after the newest input; at first the scene and the client's object.
fn packet(tick: u16, input: u16, at: Vec2) -> Vec<u8> {
    let mut header = PacketHeader::default();
    (header.epoch, header.sequence, header.tick, header.input) = (1, tick, tick, input);
    let mut bytes = header.to_bytes().to_vec();
    if tick == 0 {
        wire::write_scene(&mut bytes, 1, Vec2::splat(20.0));
        wire::write_controlled_object(&mut bytes, 7, 0);
        wire::write_snapshot_header(&mut bytes, 7, 0, 1, Motion::of(0, at, Vec2::ZERO, 0, 0), 0);
    }
    wire::write_own_position(&mut bytes, at);
    bytes
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tiles = &TileMap::from_fn(40, 40, |x, y| x % 9 == 4 && y % 7 != 3)?;
    let (tile_m, size_m, step_m) = (0.5, Vec2::splat(20.0), 0.2); // 4 m/s.
    let ground = Some(Ground { tiles, tile_m });
    #[rustfmt::skip]
    let on = &PlayerStep { ground, size_m, step_m };
    let (mut mirror, mut predictor) = (Mirror::default(), Predictor::default());
    let mut up = VecDeque::from([ClientInput::default(); LAG_TICKS]);
    let (mut down, mut at) = (VecDeque::new(), Vec2::splat(10.3));
    for tick in 0..100 {
        // The server applies what arrives, and in tick 50 moves the object. A real one would also call `check_move`.
        let input = up.pop_front().unwrap_or_default();
        if let InputMotion::Towards(direction) = input.motion {
            at = on.towards(at, direction);
        }
        at = if tick == 50 { Vec2::splat(15.2) } else { at };
        down.push_back(packet(tick, input.seq, at));
        // The client handles what arrives, and applies its input at once.
        if down.len() > LAG_TICKS {
            mirror.receive(&down.pop_front().unwrap_or_default())?;
        }
        if let Some(correction) = predictor.reconcile(on, &mirror) {
            println!("tick {tick}: it was off by {:.3} m", correction.error_m);
        }
        let (mut input, direction) = (ClientInput::default(), (tick / 30 * 40) as u8);
        (input.motion, input.heading) = (InputMotion::Towards(direction), direction);
        up.push_back(predictor.apply_input(on, input).unwrap_or_default());
    }
    println!("client: {:?}, server: {at}", predictor.position());
    Ok(())
}
