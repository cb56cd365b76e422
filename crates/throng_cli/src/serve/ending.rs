//! How a server stops: it says so, waits, lets players finish, and ends.
//!
//! ```text
//! signal ─▶ lead: all goes on, /readyz is 503 ─▶ play on: no new logins ─▶ over: players are saved and disconnected
//! ```

use std::time::Duration;

use bevy_ecs::prelude::*;
use throng::net::{ListeningSocket, ListeningWeb};
use throng::session::Sessions;
use throng::sim::clock::Stopwatch;
use throng_inspect::ServerHealth;

/// Where a server is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Lead,
    PlayOn,
    Over,
}

/// The times of the end.
#[derive(Clone, Copy, Debug)]
struct EndTimes {
    lead: Duration,
    play_on: Duration,
}

impl EndTimes {
    /// The phase after another, in which the server is for so long.
    fn next(&self, phase: Phase, is_asked: bool, spent: Duration, has_players: bool) -> Phase {
        match phase {
            Phase::Serving if is_asked => Phase::Lead,
            Phase::Lead if spent >= self.lead => Phase::PlayOn,
            Phase::PlayOn if spent >= self.play_on || !has_players => Phase::Over,
            phase => phase,
        }
    }
}

/// Takes a server from the signal to its end.
#[derive(Debug)]
pub(super) struct Ending {
    times: EndTimes,
    phase: Phase,
    since: Stopwatch,
}

impl Ending {
    /// After a lead time, and a time in which players play on.
    pub fn new(lead: Duration, play_on: Duration) -> Self {
        Self {
            times: EndTimes { lead, play_on },
            phase: Phase::Serving,
            since: Stopwatch::start(),
        }
    }

    /// Whether it was asked to stop.
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Serving
    }

    /// Whether no more ticks are to be done, since it `is_asked` to stop and the times are over.
    pub fn is_over(&mut self, world: &mut World, is_asked: bool) -> bool {
        // Without times it is over at once.
        loop {
            let has_players = self.phase != Phase::PlayOn || players(world) > 0;
            let spent = self.since.elapsed();
            let next = self.times.next(self.phase, is_asked, spent, has_players);
            if next == self.phase {
                return self.phase == Phase::Over;
            }
            (self.phase, self.since) = (next, Stopwatch::start());
            self.enter(world);
        }
    }

    fn enter(&self, world: &mut World) {
        match self.phase {
            Phase::Serving | Phase::Over => {}
            Phase::Lead => {
                world.resource_mut::<ServerHealth>().set_stopping();
                let [lead_s, play_on_s] =
                    [self.times.lead, self.times.play_on].map(|time| time.as_secs_f64());
                tracing::warn!(lead_s, play_on_s, "server stops: /readyz answers 503");
            }
            Phase::PlayOn => world.resource_mut::<Sessions>().refuse_logins(),
        }
    }
}

/// Clients that are connected over the network.
fn players(world: &World) -> u64 {
    let udp = world.get_resource::<ListeningSocket>();
    let web = world.get_resource::<ListeningWeb>();
    udp.map_or(0, |udp| udp.stats().clients) + web.map_or(0, |web| web.stats().clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_waits_for_lead_and_for_players() {
        let [none, short, long] = [0, 4, 9].map(Duration::from_secs);
        let times = EndTimes {
            lead: Duration::from_secs(5),
            play_on: Duration::from_secs(5),
        };
        use Phase::{Lead, Over, PlayOn, Serving};
        for (phase, is_asked, spent, has_players, next) in [
            (Serving, false, long, true, Serving),
            (Serving, true, long, true, Lead),
            (Lead, true, short, false, Lead),
            (Lead, true, long, true, PlayOn),
            (PlayOn, true, short, true, PlayOn),
            (PlayOn, true, none, false, Over),
            (PlayOn, true, long, true, Over),
        ] {
            let found = times.next(phase, is_asked, spent, has_players);
            assert_eq!(found, next, "{phase:?} {spent:?}");
        }
    }
}
