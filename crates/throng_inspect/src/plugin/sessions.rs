//! The list of sessions, for pages: open ones in the order that the page requests, and the newest ended ones.

use std::cmp::Ordering;

use bevy_ecs::prelude::*;
use serde_json::{Value, json};

use super::metrics::state_name;
use super::session_log::{SessionLog, describe_end};
use crate::protocol::{SessionListQuery, SessionSort};
#[cfg(feature = "web")]
use throng::net::WebListener;
use throng::net::{ConnectionStats, UdpListener};
use throng::session::{Session, Sessions};
use throng::wire::ClientId;
use throng::world::Object;

/// Maximum number of listed sessions.
pub(super) const SESSIONS_LISTED_MAX: usize = 50;

/// Maximum number of listed ended sessions.
const ENDED_LISTED_MAX: usize = 20;

/// A session with the figures that it is sorted by.
struct SessionRow<'a> {
    client: ClientId,
    session: &'a Session,
    connection: Option<ConnectionStats>,
    error: Option<(u64, &'static str)>,
}

impl SessionRow<'_> {
    fn ping_us(&self) -> u64 {
        self.connection.map_or(0, |stats| stats.round_trip_us)
    }

    fn bytes_per_s(&self) -> u64 {
        self.connection.map_or(0, |stats| stats.bytes_per_s)
    }

    /// Compares by the sort key, ascending; equal keys by client id.
    fn compare(&self, other: &Self, by: SessionSort) -> Ordering {
        let key = match by {
            SessionSort::Client => Ordering::Equal,
            SessionSort::Player => self.session.player.cmp(&other.session.player),
            SessionSort::State => (self.session.state as u8).cmp(&(other.session.state as u8)),
            SessionSort::Ping => self.ping_us().cmp(&other.ping_us()),
            SessionSort::Bytes => self.bytes_per_s().cmp(&other.bytes_per_s()),
            SessionSort::Error => {
                let tick = |row: &Self| row.error.map_or(0, |(tick, _)| tick);
                tick(self).cmp(&tick(other))
            }
        };
        key.then(self.client.cmp(&other.client))
    }
}

/// The list as JSON: the first sessions by this order, the number of all, and the newest ended ones. O(sessions).
pub(super) fn sessions_json(world: &World, query: SessionListQuery) -> String {
    let log = world.get_resource::<SessionLog>();
    let sessions = world.get_resource::<Sessions>();
    let mut rows: Vec<SessionRow> = sessions
        .into_iter()
        .flat_map(Sessions::iter)
        .map(|(client, session)| SessionRow {
            client,
            session,
            connection: connection_stats(world, client),
            error: log.and_then(|log| log.last_error(client)),
        })
        .collect();
    let total = rows.len();
    let order = |one: &SessionRow, other: &SessionRow| {
        let ascending = one.compare(other, query.by);
        if query.is_descending {
            ascending.reverse()
        } else {
            ascending
        }
    };
    if total > SESSIONS_LISTED_MAX {
        rows.select_nth_unstable_by(SESSIONS_LISTED_MAX, order);
        rows.truncate(SESSIONS_LISTED_MAX);
    }
    rows.sort_by(order);
    let rows: Vec<Value> = rows.iter().map(|row| row_json(world, row)).collect();
    let ended = log.into_iter().flat_map(SessionLog::ended);
    let ended: Vec<Value> = ended
        .take(ENDED_LISTED_MAX)
        .map(|ended| {
            json!({
                "client": ended.client.0,
                "player": ended.player.map(|player| player.0.to_string()),
                "tick": ended.tick,
                "reason": describe_end(ended.reason),
            })
        })
        .collect();
    json!({
        "type": "sessions",
        "by": query.by,
        "is_descending": query.is_descending,
        "rows": rows,
        "total": total,
        "ended": ended,
    })
    .to_string()
}

fn row_json(world: &World, row: &SessionRow) -> Value {
    let object = row.session.controlled_entity;
    let object = object.and_then(|entity| world.get::<Object>(entity));
    let ping = row.connection.filter(|stats| stats.round_trip_us > 0);
    json!({
        "client": row.client.0,
        "player": row.session.player.map(|player| player.0.to_string()),
        "state": state_name(row.session.state),
        "scene": object.map(|object| object.scene().0),
        "object": object.map(|object| object.id().0),
        "ping_ms": ping.map(|stats| stats.round_trip_us as f64 / 1e3),
        "bytes_per_s": row.connection.map(|stats| stats.bytes_per_s),
        "loss": row.connection.map(|stats| stats.loss),
        "address": row.session.address.map(|address| address.to_string()),
        "error": row.error.map(|(tick, reason)| json!([tick, reason])),
    })
}

/// The figures of a client's connection; `None` for clients inside this process.
fn connection_stats(world: &World, client: ClientId) -> Option<ConnectionStats> {
    let socket = world.get_resource::<UdpListener>();
    let found = socket.and_then(|socket| socket.connection_stats(client));
    #[cfg(feature = "web")]
    let found = found.or_else(|| {
        let web = world.get_resource::<WebListener>();
        web.and_then(|web| web.connection_stats(client))
    });
    found
}
