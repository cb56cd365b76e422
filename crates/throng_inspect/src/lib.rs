//! A running server to look at: metrics for Prometheus, whether it is ready, and a page.
//!
//! ```text
//!           ┌─ wishes: "metrics", "scene 3" ◀─┐             ┌──▶ /metrics, /healthz, /readyz
//! the tick ─┤                                 ├─ a thread ──┤
//!           └─▶ news: numbers, dots, answers ─┘             └──▶ /, /live (WebSocket)
//! ```
//! | file | holds |
//! |---|---|
//! | `exposition` | families of metrics, and Prometheus' text of them |
//! | `ticks` | how long ticks took: by size, for a minute, and why the slow ones did |
//! | `traffic` | what thread and tick tell each other, and what is counted of it |
//! | `heat` | values by cells, and their bytes |
//! | `frames` | the crowd and the map as bytes, for a page |
//! | `why` | why a viewer sees another object, or does not |
//! | `waiting` | why a party waits for a match |
//! | `places` | how many connections a peer may open |
//! | `routes` | who may ask for what |
//! | `server/` | the thread: sockets, requests, pages |
//! | `plugin` | the tick's end: what is gathered, and when |
//!
//! [`InspectPlugin`] notes how long ticks take, and writes a line about slow ones; [`open_inspector`] opens the addresses.
//!
//! Invariants: the tick waits for nothing here. It reads wishes and leaves news in channels of a fixed length; news for which
//! there is no room is dropped and counted. Numbers are gathered when somebody asked for them, at most [`METRIC_UPDATES_PER_S`]
//! times a second, and by nobody who asks more often; what memory modules hold, which takes milliseconds, every
//! [`MEMORY_INTERVAL_S`] seconds. At most [`CONNECTIONS_MAX`] connections are open at an address, each for
//! [`CONNECTION_S_MAX`] seconds, and [`CONNECTIONS_PER_PEER_MAX`] of one peer. Beyond that only `/healthz` and `/readyz` are
//! answered, from a reserve in which a new connection replaces the oldest. Nothing here is game state.
//!
//! The page is plain HTML, CSS and JavaScript under `page`, in the binary as it is written: types are said in JSDoc, nothing
//! is built, no framework is used, and nothing is fetched from elsewhere. It is told the crowd of its scene ten times a second,
//! as bytes; figures twice, and what there is to say of the object that it looks at five times, as JSON. Whose reasons to wait for a
//! match it shows, and which heat of cells, it says: what nobody asks for is not computed. A page that does not read what it is
//! told is closed.
//!
//! A page only looks, unless [`InspectSettings::action_presets`] says otherwise: then it may ask for something to be done. What it asks for is a
//! text, kept in a bounded queue until whoever opened the server takes it between two ticks, and checks it. Where a run does not keep
//! real time, [`InspectSettings::pace`] lets pages pause it, do single ticks and set its speed, by the same way; [`refresh_pages`] shows
//! them a world that stands still.
//!
//! Where browsers walk in, too (`net::listen_web`), a page opens the one that does, and hands on to it, window to window,
//! the frames of dots that it gets itself, as long as it is asked to: the server tells them to nobody else.
//!
//! A page and its figures are for operators. A page that listens beyond this machine asks for a token; what listens on
//! it asks that the browser's page came from there, so that no page from elsewhere can look over its shoulder. Metrics ask for no
//! token: whoever reaches their address reads them.
#![warn(missing_docs)]

/// What the README shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct InspectReadme;

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod connection_limits;
mod exposition;
mod frames;
mod heat;
mod plugin;
mod protocol;
mod routes;
mod server;
mod ticks;
mod visibility_reason;
mod wait_reason;

pub use connection_limits::CONNECTIONS_PER_PEER_MAX;
pub use exposition::{MetricFamily, MetricType, exposition};
pub use frames::{DOT_BYTES, DOTS_HEAD_BYTES, Dot, dots_frame, map_frame};
pub use plugin::{
    InspectAddresses, InspectError, InspectPlugin, InspectSettings, Inspector, MEMORY_INTERVAL_S,
    METRIC_UPDATES_PER_S, PAGE_ACTIONS_MAX, ServerHealth, open_inspector, refresh_pages,
};
pub use protocol::{
    ActionPreset, CONNECTION_S_MAX, CONNECTIONS_MAX, InspectStats, PAGES_MAX, PaceRequest, RunPace,
};
pub use ticks::{
    SETS, SLOW_TICK_HISTORY_MAX, SlowTick, TICK_BUCKETS_S, TICK_HISTORY_MAX, TickHistory, TickWork,
    TimedTick,
};
pub use visibility_reason::{PairRules, VisibilityReason, explain_visibility};
pub use wait_reason::describe_wait;
