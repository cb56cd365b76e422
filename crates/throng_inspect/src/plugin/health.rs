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

    /// Records what is known now, and logs each change.
    fn update(&mut self, is_store_failing: bool, is_network_running: bool) {
        if is_store_failing != self.is_store_failing {
            self.is_store_failing = is_store_failing;
            // Both at one level, so that a log filter shows both or neither.
            if is_store_failing {
                warn!("store unreachable: /readyz answers 503");
            } else {
                warn!("store back: /readyz answers 200");
            }
        }
        if !is_network_running && !self.has_lost_network {
            self.has_lost_network = true;
            error!("network thread ended: players cannot connect; restart the server");
        }
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

pub(super) fn update_health(
    mut health: ResMut<ServerHealth>,
    directory: Option<Res<PlayerStore>>,
    udp: Option<Res<UdpListener>>,
    #[cfg(feature = "web")] web: Option<Res<WebListener>>,
) {
    let is_failing = directory.is_some_and(|directory| directory.is_store_failing());
    let is_running = udp.is_none_or(|udp| udp.is_running());
    #[cfg(feature = "web")]
    let is_running = is_running && web.is_none_or(|web| web.is_running());
    health.update(is_failing, is_running);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_network_thread_is_final_and_a_failing_store_is_not() {
        let mut health = ServerHealth::default();
        let mut reason = |is_store_failing, is_network_running| {
            health.update(is_store_failing, is_network_running);
            health.not_ready_reason().unwrap_or_default()
        };
        assert_eq!(reason(false, true), "");
        assert!(reason(true, true).starts_with("store unreachable"));
        assert_eq!(reason(false, true), "");
        for is_store_failing in [true, false] {
            let found = reason(is_store_failing, false);
            assert!(found.contains("network thread"), "{found}");
        }
        // The thread does not come back.
        assert!(reason(false, true).contains("network thread"));
    }
}
