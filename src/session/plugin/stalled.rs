//! Warns of the first players who log in and then see nothing for a while.

use std::collections::VecDeque;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::warn;

use super::messages::LoggedIn;
use crate::session::{SessionState, Sessions};
use crate::sim::SimTick;

/// How long after its login a player may see nothing before the warning, in seconds.
const STALLED_AFTER_S: f64 = 10.0;

/// The maximum number of logins that are watched at a time; others in the meantime are not.
const WATCHED_MAX: usize = 64;

/// Watched logins, oldest first, until each of the two warnings was logged.
#[derive(Default)]
pub(super) struct WatchedLogins {
    logins: VecDeque<(u64, LoggedIn)>,
    has_warned_no_object: bool,
    has_warned_loading: bool,
}

/// Logs each mistake once: a session without an object, and a client that does not reply to *Loading*.
pub(super) fn warn_of_stalled_sessions(
    mut logged_in: MessageReader<LoggedIn>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    sessions: Res<Sessions>,
    mut watched: Local<WatchedLogins>,
) {
    let watched = &mut *watched;
    if watched.has_warned_no_object && watched.has_warned_loading {
        watched.logins.clear();
        logged_in.clear();
        return;
    }
    for &login in logged_in.read() {
        if watched.logins.len() < WATCHED_MAX {
            watched.logins.push_back((tick.0, login));
        }
    }
    let ticks = (STALLED_AFTER_S / time.timestep().as_secs_f64()).ceil() as u64;
    while let Some(&(since, login)) = watched.logins.front()
        && tick.0 - since >= ticks
    {
        watched.logins.pop_front();
        let session = sessions.get(sessions.current_id(login.client));
        match session.map(|session| session.state) {
            Some(SessionState::Entering) if !watched.has_warned_no_object => {
                watched.has_warned_no_object = true;
                warn!(
                    client = login.client.0,
                    player = login.player.0,
                    "player sees nothing for {STALLED_AFTER_S} s after its login: it controls no object; spawn one with \
                     `ControlledBy(LoggedIn::client_entity)` (first case)"
                );
            }
            Some(SessionState::Loading) if !watched.has_warned_loading => {
                watched.has_warned_loading = true;
                warn!(
                    client = login.client.0,
                    player = login.player.0,
                    "player sees nothing for {STALLED_AFTER_S} s after its login: its client has not replied to Loading with Ready; \
                     a client that loads nothing connects with `ConnectionInfo::without_loading` (first case)"
                );
            }
            _ => {}
        }
    }
}
