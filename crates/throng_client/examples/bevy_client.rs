//! A minimal Bevy game client. Start `throng serve town` first, and build the example before making the token, which expires soon: `cargo
//! run -p throng_client --features bevy --example bevy_client -- $(throng token --player 7 --server 127.0.0.1:7000)`
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::thread::sleep;
use std::time::Duration;

use bevy_app::{App, Update};
use bevy_ecs::prelude::*;
use throng_client::{
    Client, ClientDisconnected, ClientEventReceived, ClientPlugin, ClientSettings,
};
use throng_client::{ControlState, ControlledObject, GameClient, RenderPosition, VisibleObject};

/// A renderer would draw each object at its position.
fn draw(
    all: Query<(&VisibleObject, &RenderPosition, Has<ControlledObject>)>,
    mut frame: Local<u32>,
) {
    *frame += 1;
    if frame.is_multiple_of(60) {
        let own = all.iter().find(|(.., is_own)| *is_own);
        println!(
            "{} in sight, I am at {:?}",
            all.iter().len(),
            own.map(|own| own.1.0)
        );
    }
}

fn read(
    mut received: MessageReader<ClientEventReceived>,
    mut ended: MessageReader<ClientDisconnected>,
) {
    for event in received.read().take(3) {
        println!("{:?}", event.0);
    }
    for end in ended.read() {
        println!("{}", end.0);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = std::env::args()
        .nth(1)
        .ok_or("expected a token, as `throng token` prints it")?;
    let digits = |at: usize| token.get(at..at + 2).unwrap_or("?");
    let bytes: Result<Vec<u8>, _> = (0..token.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits(at), 16))
        .collect();
    let mut client = Client::connect(&bytes?, ClientSettings::default())?;
    client.set_controls(ControlState::towards(32));
    let mut app = App::new();
    app.add_plugins(ClientPlugin)
        .insert_resource(GameClient(client))
        .add_systems(Update, (draw, read));
    for _ in 0..600 {
        app.update();
        sleep(Duration::from_millis(16));
    }
    Ok(())
}
