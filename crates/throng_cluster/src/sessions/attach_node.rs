//! Connects a node and its gateways to a server.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng::outbox::{Outbox, OutboxSettings, PacketSink};
use throng::session::TransportHandle;

use crate::driver::NodeDriver;
use crate::gateway::{GATEWAY_PACKET_BYTES_MAX, GatewayPort};
use crate::link::LinkSettings;
use crate::plugin::ClusterPlayers;
use crate::sessions::moved_tokens::NodePort;

/// Connects a running node to the world of a server: the server gets the players of the node, and the clients at gateways. Packets for other
/// clients go to `others`. Limits the packets of the outbox to the length that gateways can send. Returns the node's end of the links to
/// gateways.
///
/// Needs [`ClusterPlugin`](crate::ClusterPlugin) and a throng server.
pub fn attach_node(
    world: &mut World,
    driver: NodeDriver,
    links: LinkSettings,
    others: Option<Box<dyn PacketSink>>,
) -> GatewayPort {
    let handler = world.get_resource_or_init::<TransportHandle>().clone();
    let run = driver.with_node(|node, _| node.run().run);
    let port = GatewayPort::new(run, links, Arc::new(handler));
    driver.set_relay(Box::new(port.clone()));
    let mut outbox = world.get_resource_or_init::<OutboxSettings>();
    outbox.mtu_bytes = outbox.mtu_bytes.min(GATEWAY_PACKET_BYTES_MAX);
    let mut outbox = world.get_resource_or_init::<Outbox>();
    outbox.set_sink(port.sink(others));
    world.get_resource_or_init::<ClusterPlayers>().open(driver);
    world.insert_resource(NodePort(port.clone()));
    port
}
