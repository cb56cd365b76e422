//! 8 of 9. Clients over UDP. Look at `listen`, the one call that the server needs, and at `play`, a client with a token on its own thread.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_ecs::prelude::*;
use glam::Vec2;
use std::{thread, time::Duration};
use throng::net::{ConnectToken, EndpointSettings, ListenSettings, SecretKey, TokenClaims};
use throng::net::{UdpClient, listen, stop_listening};
use throng::sync::Mirror;
use throng::wire::ClientMessage;
use throng::{prelude::*, sim::clock::unix_ms};

fn play(token: ConnectToken) -> Option<Vec2> {
    let mut client = UdpClient::connect(token, EndpointSettings::default()).ok()?;
    let mut mirror = Mirror::default();
    client
        .send(&ClientMessage::login_by_token().to_bytes())
        .ok()?; // The token contains the player.
    loop {
        client
            .update(|packet| mirror.receive(packet).unwrap())
            .ok()?;
        let own = mirror.controlled_object().map(|(own, _)| own);
        let walk = match own.and_then(|own| mirror.position(own, mirror.tick())) {
            Some(at) if at.x > 12.0 => return Some(at),
            Some(at) => ClientMessage::move_to(at + Vec2::X * 0.1, 0),
            None => ClientMessage::Ping { number: 0 },
        };
        client.send(&walk.to_bytes()).ok()?;
        thread::sleep(Duration::from_millis(50));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::builder().pace(Pace::RealTime).build();
    let world = server.world_mut();
    let town = world.spawn(SceneSpec::default()).id();
    let key = SecretKey::random()?;
    let mut settings = ListenSettings::default();
    settings.udp.requires_ready = false; // Its clients need not load the town first.
    let address = listen(world, "127.0.0.1:0".parse()?, key, settings, None)?;
    // A login service that knows the player and has the key would do this, and send the token over a secure channel.
    let claims = TokenClaims::new(7, vec![address], unix_ms() / 1_000);
    let token = ConnectToken::issue(&claims, key)?;
    let client = thread::spawn(|| play(token));
    while !client.is_finished() {
        server.step(1);
        let mut new = server.world_mut().resource_mut::<Messages<LoggedIn>>();
        let new: Vec<LoggedIn> = new.drain().collect();
        for login in new {
            let place = (InScene(town), Position(Vec2::splat(10.0)));
            let own = (Player, login.player, MaxSpeed(3.0), place);
            let control = ControlledBy(login.client_entity);
            server.world_mut().spawn((own, control));
        }
    }
    println!("the client walked to {:?}", client.join());
    println!("{:?}", stop_listening(server.world_mut()));
    Ok(())
}
