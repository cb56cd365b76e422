//! Whether players can play: the reply of `/readyz`, and a log message at each change.

use bevy_ecs::prelude::*;
use throng::net::UdpListener;
#[cfg(feature = "web")]
use throng::net::WebListener;
use throng::store::PlayerStore;
use tracing::{error, warn};

/// Whether players can play on this server. If they cannot, `/readyz` answers 503 with the reason.
#[derive(Resource, Debug, Default)]
pub struct ServerHealth {
    is_stopping: bool,
    is_store_failing: bool,
    has_lost_network: bool,
}

impl ServerHealth {
    /// The server is stopping: `/readyz` answers 503 from the end of this tick on.
    pub const fn set_stopping(&mut self) {
        self.is_stopping = true;
    }

    /// Whether a stop was requested.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Why players cannot play; `None` if they can.
    #[must_use]
    pub const fn not_ready_reason(&self) -> Option<&'static str> {
        if self.has_lost_network {
            Some("failed: a network thread has ended; restart the server")
        } else if self.is_store_failing {
            Some("store unreachable: logins are refused and saves wait")
        } else {
            None
        }
    }
}

/// Updates the state, and logs each change.
pub(super) fn update_health(
    mut health: ResMut<ServerHealth>,
    directory: Option<Res<PlayerStore>>,
    udp: Option<Res<UdpListener>>,
    #[cfg(feature = "web")] web: Option<Res<WebListener>>,
) {
    let is_failing = directory.is_some_and(|directory| directory.is_store_failing());
    if is_failing != health.is_store_failing {
        health.is_store_failing = is_failing;
        // Both at one level, so that a log filter shows both or neither.
        if is_failing {
            warn!("store unreachable: /readyz answers 503");
        } else {
            warn!("store back: /readyz answers 200");
        }
    }
    let is_running = udp.is_none_or(|udp| udp.is_running());
    #[cfg(feature = "web")]
    let is_running = is_running && web.is_none_or(|web| web.is_running());
    if !is_running && !health.has_lost_network {
        health.has_lost_network = true;
        error!("network thread ended: players cannot connect; restart the server");
    }
}
