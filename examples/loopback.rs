//! 7 of 9. A complete transport. Look at `Loopback`, its output, and at the handle in `play`, its input, on a thread of its own.
#![allow(clippy::print_stdout, reason = "the output of the example")]

use bevy_ecs::prelude::*;
use glam::Vec2;
use std::sync::mpsc::{Receiver, Sender, channel};
use throng::outbox::PacketSink;
use throng::prelude::*;
use throng::session::{ConnectionInfo, TransportHandle};
use throng::sync::Mirror;
use throng::wire::{Channel, ClientMessage, CloseReason};

struct Loopback(Sender<Vec<u8>>);

impl PacketSink for Loopback {
    fn deliver(&mut self, _client: ClientId, _channel: Channel, packet: &[u8]) {
        let _ = self.0.send(packet.to_vec());
    }
    fn close(&mut self, _client: ClientId, _reason: CloseReason) {
        self.0 = channel().0; // Dropping the sender ends the receiver's loop.
    }
}

/// The client is in this process and authenticates itself; a socket would have checked a token.
fn play(server: TransportHandle, packets: Receiver<Vec<u8>>) -> Option<u64> {
    let client = server
        .connect(ConnectionInfo::player(7).without_loading())
        .ok()?;
    let send = |message: ClientMessage| server.receive(client, &message.to_bytes()).ok();
    send(ClientMessage::login(7))?;
    let mut mirror = Mirror::default();
    for packet in packets {
        mirror.receive(&packet).ok()?;
        let own = mirror.controlled_object().map(|(own, _)| own);
        match own.and_then(|own| mirror.position(own, mirror.tick())) {
            Some(at) if at.x > 12.0 => send(ClientMessage::Logout),
            Some(at) => send(ClientMessage::move_to(at + Vec2::X * 0.1, 0)),
            None => continue,
        };
    }
    Some(mirror.packets())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::builder().build();
    let town = server.world_mut().spawn(SceneSpec::default()).id();
    let (end, packets) = channel();
    server.set_sink(Loopback(end));
    let handle = server.world().resource::<TransportHandle>().clone();
    let client = std::thread::spawn(|| play(handle, packets));
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
        std::thread::yield_now();
    }
    println!("the client received {:?} packets", client.join());
    Ok(())
}
