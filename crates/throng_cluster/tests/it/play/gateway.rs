//! A gateway for clients over UDP and for browsers.

use std::net::SocketAddr;

use throng::net::{ListenSettings, UdpServer, WebServer, start_udp_server, start_web_server};
use throng_cluster::{BusPeer, ClientGateway, ClusterNodeId, GatewayId, GatewaySettings};
use throng_core::clock::unix_ms;
use throng_net::SecretKey;

use super::nodes::Engines;

/// A busy machine must not end connections.
const PATIENCE_US: u64 = 300_000_000;

pub struct Gateway {
    pub gateway: ClientGateway,
    pub udp: UdpServer,
    pub web: WebServer,
}

impl Gateway {
    /// Starts a gateway. Without another route, it gives clients to the first node.
    pub fn start(engines: &Engines, id: GatewayId) -> Self {
        let settings = GatewaySettings {
            name: format!("g{}", id.0),
            login_nodes: [ClusterNodeId(0)].into(),
            ..GatewaySettings::default()
        };
        let run = unix_ms();
        let bus = engines.bus(BusPeer::Gateway(id), run);
        let mut gateway = ClientGateway::new(settings, bus, run);
        let mut settings = ListenSettings::default();
        settings.web.read_timeout_us = PATIENCE_US;
        settings.web.handshake_timeout_us = PATIENCE_US;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (key, handler) = (SecretKey::INSECURE, gateway.handler());
        let udp = start_udp_server(any, key, &settings, &handler).unwrap();
        let web = start_web_server(any, key, &settings, &handler).unwrap();
        let sink = udp.sink().with_fallback(Some(Box::new(web.sink())));
        gateway.start(Box::new(sink)).unwrap();
        Self { gateway, udp, web }
    }
}
