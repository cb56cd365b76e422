//! Listening servers: UDP, and with the features `web` and `webtransport` browsers. The transport is `throng_net`, which
//! documents its packets byte by byte.
//!
//! | file | holds |
//! |---|---|
//! | `plugin` | [`listen`]: clients over UDP |
//! | `web` | `listen_web`: clients over WebSockets and WebTransport |

mod plugin;
#[cfg(feature = "web")]
mod web;

pub use plugin::{ListenError, ListenSettings, UdpListener, listen, stop_listening};
pub use throng_net::*;
#[cfg(feature = "web")]
pub use web::{WebListener, listen_web, stop_listening_web};
