//! Listening servers: UDP, and with the features `web` and `webtransport` browsers. The transport is `throng_net`, which
//! documents its packets byte by byte.

mod plugin;
#[cfg(feature = "web")]
mod web;

pub use plugin::{
    ListenError, ListenSettings, UdpListener, listen, start_udp_server, stop_listening,
};
pub use throng_net::*;
#[cfg(feature = "web")]
pub use web::{WebListener, listen_web, start_web_server, stop_listening_web};
