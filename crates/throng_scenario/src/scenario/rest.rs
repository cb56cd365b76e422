//! Brings a run to rest: stops all activity, and runs ticks until the clients have the server's state.
//!
//! A run is at rest when no message, path request, view, packet or login is pending, no object, attribute or motion has to be sent,
//! and no session has changed. Each of these is checked.

use bevy_ecs::prelude::*;

use super::schema::Scenario;
use crate::crowd::{SyntheticClients, halt_crowds, has_logins_under_way, session_states};
use throng::aoi::AoiStats;
use throng::inbox::Inbox;
use throng::nav::NavStats;
use throng::outbox::Outbox;
use throng::server::Server;
use throng::sim::Overload;
use throng::sync::{SendRate, pending_replication};

/// Maximum number of ticks until a run is at rest, in addition to the longest send interval of an attribute.
const REST_TICKS_MAX: u64 = 4000;

/// Maximum number of ticks that are added for the send interval of an attribute.
const ATTRIBUTE_TURN_TICKS_MAX: u64 = 40_000;

/// Number of ticks without pending work, in addition to a heartbeat, after which a run is at rest; game code may create work at
/// intervals.
const SETTLE_TICKS: u64 = 8;

/// Stops the crowds, and runs ticks until nothing is left to do. The error is the work that was still pending at the limit of
/// ticks; `None` means that the run was interrupted.
pub(super) fn come_to_rest(
    server: &mut Server,
    scenario: &Scenario,
    is_interrupted: impl Fn() -> bool,
) -> Option<Result<(), String>> {
    let settle = u64::from(scenario.heartbeat_ticks) + SETTLE_TICKS;
    let turns = scenario.attributes.iter().map(|it| match it.cadence {
        SendRate::EveryNth(ticks) => u64::from(ticks),
        _ => 0,
    });
    let longest_turn = turns.max().unwrap_or(0).min(ATTRIBUTE_TURN_TICKS_MAX);
    let mut pending = String::new();
    let (mut quiet_since, mut sessions) = (None, None);
    for tick in 0..REST_TICKS_MAX + longest_turn {
        if is_interrupted() {
            return None;
        }
        // Repeated in every tick, since pending searches still produce paths.
        halt_crowds(server.world_mut());
        server.step(1);
        let world = server.world();
        // Overload stretches the interval of updates to clients by powers of two.
        let stretch = world.resource::<Overload>().update_doublings();
        let before = sessions.replace(session_states(world));
        if let Some(work) = pending_work(world) {
            (quiet_since, pending) = (None, work);
        } else if before != sessions {
            (quiet_since, pending) = (None, "sessions are changing".to_owned());
        } else if tick - *quiet_since.get_or_insert(tick) >= settle << stretch {
            return Some(Ok(()));
        }
    }
    Some(Err(pending))
}

/// The work that could still change the clients' state, as text; `None` if there is none. O(sessions + objects that clients know).
fn pending_work(world: &World) -> Option<String> {
    let clients = world.resource::<SyntheticClients>();
    let text = if world.resource::<AoiStats>().queued != 0 {
        "view updates are pending"
    } else if world.resource::<Inbox>().backlog() != 0 {
        "client messages are pending"
    } else if world.resource::<NavStats>().waiting != 0 {
        "path requests are pending"
    } else if has_logins_under_way(world) {
        "clients are logging in"
    } else if world.resource::<Outbox>().deferred_bytes() != 0 || clients.has_packets_in_flight() {
        "packets are in flight"
    } else {
        return pending_replication(world).map(|pending| pending.to_string());
    };
    Some(text.to_owned())
}
