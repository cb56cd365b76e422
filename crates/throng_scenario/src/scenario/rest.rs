//! How a run comes to rest: all activity stops, and ticks go on until clients have everything that the server has.
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

/// Maximum number of ticks in which a run comes to rest, in addition to the longest time between turns of an attribute.
const REST_TICKS_MAX: u64 = 4000;

/// Maximum number of ticks that a run waits for the turn of an attribute.
const ATTRIBUTE_TURN_TICKS_MAX: u64 = 40_000;

/// Ticks without work, in addition to a heartbeat, after which a run is at rest: game code may create work of its own in turns.
const SETTLE_TICKS: u64 = 8;

/// Stops the crowds, and runs ticks until nothing is left to do. Returns the work that is left if that was not reached; `None`
/// when it was interrupted.
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
    let mut left = String::new();
    let (mut quiet_since, mut sessions) = (None, None);
    for tick in 0..REST_TICKS_MAX + longest_turn {
        if is_interrupted() {
            return None;
        }
        // Repeated in every tick, since pending searches still produce paths.
        halt_crowds(server.world_mut());
        server.step(1);
        let world = server.world();
        // Overload doubles the time in which clients receive updates.
        let stretch = world.resource::<Overload>().update_doublings();
        let before = sessions.replace(session_states(world));
        if let Some(work) = pending_work(world) {
            (quiet_since, left) = (None, work);
        } else if before != sessions {
            (quiet_since, left) = (None, "sessions change".to_owned());
        } else if tick - *quiet_since.get_or_insert(tick) >= settle << stretch {
            return Some(Ok(()));
        }
    }
    Some(Err(left))
}

/// The work that could still change the clients' state, as text; `None` if there is none. O(sessions + objects that clients know).
fn pending_work(world: &World) -> Option<String> {
    let clients = world.resource::<SyntheticClients>();
    let text = if world.resource::<AoiStats>().queued != 0 {
        "views wait to be updated"
    } else if world.resource::<Inbox>().backlog() != 0 {
        "messages of clients wait"
    } else if world.resource::<NavStats>().waiting != 0 {
        "path requests wait"
    } else if has_logins_under_way(world) {
        "clients are logging in"
    } else if world.resource::<Outbox>().deferred_bytes() != 0 || clients.has_packets_in_flight() {
        "packets are under way"
    } else {
        return pending_replication(world).map(|pending| pending.to_string());
    };
    Some(text.to_owned())
}
