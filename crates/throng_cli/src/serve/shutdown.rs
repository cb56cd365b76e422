//! How a server stops: it reports that it is stopping, waits, lets players finish, and stops.
//!
//! ```text
//! signal ─▶ drain lead: unchanged, but /readyz is 503 ─▶ drain: no new logins ─▶ stopped: players are saved and disconnected
//! ```

use std::time::Duration;

use bevy_ecs::prelude::*;
use throng::net::{UdpListener, WebListener};
use throng::session::Sessions;
use throng::sim::clock::Stopwatch;
use throng_inspect::ServerHealth;

/// The phases of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    DrainLead,
    Drain,
    Stopped,
}

/// Durations of the phases.
#[derive(Clone, Copy, Debug)]
struct ShutdownTimes {
    drain_lead: Duration,
    drain: Duration,
}

impl ShutdownTimes {
    /// The phase after `spent` time in this phase. `is_signaled`: a signal requested the stop.
    fn next(&self, phase: Phase, is_signaled: bool, spent: Duration, has_players: bool) -> Phase {
        match phase {
            Phase::Serving if is_signaled => Phase::DrainLead,
            Phase::DrainLead if spent >= self.drain_lead => Phase::Drain,
            Phase::Drain if spent >= self.drain || !has_players => Phase::Stopped,
            phase => phase,
        }
    }
}

/// Stops a server in phases.
#[derive(Debug)]
pub(super) struct Shutdown {
    times: ShutdownTimes,
    phase: Phase,
    since: Stopwatch,
}

impl Shutdown {
    /// With the durations of the two phases before the stop.
    pub fn new(lead: Duration, play_on: Duration) -> Self {
        Self {
            times: ShutdownTimes {
                drain_lead: lead,
                drain: play_on,
            },
            phase: Phase::Serving,
            since: Stopwatch::start(),
        }
    }

    /// Whether the server is stopping.
    pub fn has_started(&self) -> bool {
        self.phase != Phase::Serving
    }

    /// Moves on to the next phase if it is time. Returns whether the server must run no more ticks.
    pub fn is_finished(&mut self, world: &mut World, is_signaled: bool) -> bool {
        // Phases without duration end at once.
        loop {
            let has_players = self.phase != Phase::Drain || players(world) > 0;
            let spent = self.since.elapsed();
            let next = self.times.next(self.phase, is_signaled, spent, has_players);
            if next == self.phase {
                return self.phase == Phase::Stopped;
            }
            (self.phase, self.since) = (next, Stopwatch::start());
            self.enter(world);
        }
    }

    fn enter(&self, world: &mut World) {
        match self.phase {
            Phase::Serving | Phase::Stopped => {}
            Phase::DrainLead => {
                world.resource_mut::<ServerHealth>().set_stopping();
                let [lead_s, play_on_s] =
                    [self.times.drain_lead, self.times.drain].map(|time| time.as_secs_f64());
                tracing::warn!(lead_s, play_on_s, "server stops: /readyz answers 503");
            }
            Phase::Drain => world.resource_mut::<Sessions>().refuse_logins(),
        }
    }
}

/// Number of clients connected over the network.
fn players(world: &World) -> u64 {
    let udp = world.get_resource::<UdpListener>();
    let web = world.get_resource::<WebListener>();
    udp.map_or(0, |udp| udp.stats().clients) + web.map_or(0, |web| web.stats().clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shutdown_waits_for_lead_and_for_players() {
        let whole = Duration::from_secs(5);
        let (none, long) = (Duration::ZERO, 2 * whole);
        let short = whole - Duration::from_nanos(1);
        let times = ShutdownTimes {
            drain_lead: whole,
            drain: whole,
        };
        use Phase::{Drain, DrainLead, Serving, Stopped};
        for (phase, is_signaled, spent, has_players, next) in [
            (Serving, false, long, true, Serving),
            (Serving, true, long, true, DrainLead),
            (DrainLead, true, short, false, DrainLead),
            (DrainLead, true, whole, true, Drain),
            (DrainLead, true, long, true, Drain),
            (Drain, true, short, true, Drain),
            (Drain, true, none, false, Stopped),
            (Drain, true, whole, true, Stopped),
            (Drain, true, long, true, Stopped),
        ] {
            let found = times.next(phase, is_signaled, spent, has_players);
            assert_eq!(found, next, "{phase:?} {spent:?}");
        }
    }
}
