//! Whether players can play: what `/readyz` answers, and a line in the log at each change.

use bevy_ecs::prelude::*;
use throng::directory::DirectoryStats;
use throng::net::ListeningSocket;
#[cfg(feature = "web")]
use throng::net::ListeningWeb;
use throng::sim::SimTick;
use tracing::{error, warn};

/// Seconds without another failure after which a store counts as reachable, although nothing was read or saved: without players
/// nothing is tried.
const STORE_QUIET_S: f64 = 30.0;

/// Whether players can play on this server. `/readyz` answers 503 with the reason where they cannot.
#[derive(Resource, Debug, Default)]
pub struct ServerHealth {
    is_stopping: bool,
    store: StoreHealth,
    has_lost_network: bool,
}

impl ServerHealth {
    /// The server was asked to stop: `/readyz` answers 503 from the end of this tick on.
    pub const fn set_stopping(&mut self) {
        self.is_stopping = true;
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Why players cannot play; `None` where they can.
    #[must_use]
    pub const fn fault(&self) -> Option<&'static str> {
        if self.has_lost_network {
            Some("failed: a network thread has ended; restart the server")
        } else if self.store.is_down {
            Some("store unreachable: logins are refused and saves wait")
        } else {
            None
        }
    }
}

/// Whether the store answers, by what became of requests to it.
#[derive(Debug, Default)]
struct StoreHealth {
    is_down: bool,
    /// The tick of the last failure.
    failed: u64,
    failures: u64,
    successes: u64,
}

impl StoreHealth {
    /// Takes totals as they are at a tick; whether the state changed.
    fn note(&mut self, tick: u64, (failures, successes): (u64, u64), quiet_ticks: u64) -> bool {
        let was_down = self.is_down;
        if failures > self.failures {
            (self.is_down, self.failed) = (true, tick);
        } else if successes > self.successes || tick.saturating_sub(self.failed) >= quiet_ticks {
            self.is_down = false;
        }
        (self.failures, self.successes) = (failures, successes);
        was_down != self.is_down
    }
}

/// Notes what changed since the last tick.
pub(super) fn watch_health(
    mut health: ResMut<ServerHealth>,
    tick: Res<SimTick>,
    time: Option<Res<bevy_time::Time<bevy_time::Fixed>>>,
    store: Option<Res<DirectoryStats>>,
    udp: Option<Res<ListeningSocket>>,
    #[cfg(feature = "web")] web: Option<Res<ListeningWeb>>,
) {
    if let Some(store) = store {
        let tick_s = time.map_or(0.05, |time| time.timestep().as_secs_f64());
        let quiet_ticks = (STORE_QUIET_S / tick_s).ceil() as u64;
        let totals = (store.failures, store.loaded + store.transactions);
        if health.store.note(tick.0, totals, quiet_ticks) {
            if health.store.is_down {
                warn!(
                    failures = store.failures,
                    "store unreachable: /readyz answers 503"
                );
            } else {
                // As loud as the line before it.
                warn!("store back");
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_is_down_until_it_succeeds_or_is_quiet() {
        let mut store = StoreHealth::default();
        let mut note = |tick, failures, successes| {
            let changed = store.note(tick, (failures, successes), 100);
            (changed, store.is_down)
        };
        assert_eq!(note(1, 0, 3), (false, false));
        assert_eq!(note(2, 1, 3), (true, true));
        assert_eq!(note(3, 1, 3), (false, true), "told once");
        assert_eq!(note(4, 2, 4), (false, true), "a failure outweighs");
        assert_eq!(note(5, 2, 5), (true, false));
        assert_eq!(note(10, 3, 5), (true, true));
        assert_eq!(note(109, 3, 5), (false, true));
        assert_eq!(note(110, 3, 5), (true, false), "nothing failed since");
    }
}
