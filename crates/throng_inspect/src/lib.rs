//! Inspection of a running server: Prometheus metrics, readiness, a live page, and an administration API.
//!
//! ```text
//!           ┌─ requests: "metrics", "scene 3" ◀────┐            ┌──▶ /metrics, /healthz, /readyz
//! the tick ─┤                                      ├─ a thread ─┤
//!           └─▶ updates: numbers, dots, replies ───┘            └──▶ /, /live (WebSocket)
//! ```
//!
//! [`InspectPlugin`] records tick times and logs slow ticks; [`open_inspector`] opens the addresses.
//!
//! Invariants: the tick waits for nothing here. It reads requests and sends updates through channels of a fixed length; an update
//! without room is dropped and counted. Metrics are gathered on request, at most [`METRIC_UPDATES_PER_S`] times a second; the
//! memory of modules, which takes milliseconds, is gathered every [`MEMORY_INTERVAL_S`] seconds. At most [`CONNECTIONS_MAX`]
//! connections are open at an address, each for [`CONNECTION_S_MAX`] seconds, and [`CONNECTIONS_PER_PEER_MAX`] of one peer.
//! Beyond that only `/healthz` and `/readyz` are answered, from a reserve in which a new connection replaces the oldest. Nothing
//! here is game state.
//!
//! The page is plain HTML, CSS and JavaScript under `page`, embedded in the binary as it is: types are in JSDoc, there is no
//! build step and no framework, and nothing is fetched from other servers. The page receives the crowd of its scene ten times a
//! second, as binary frames; figures twice, and the selected object five times, as JSON. It requests wait reasons, heat maps, the
//! list of sessions, and matches explicitly; what is not requested is not computed. A list contains at most 50 entries and the
//! number of all, and is sent once a second. A search is answered at most ten times a second per page. A page that reads too slowly
//! is closed.
//!
//! A page that was opened with an operator's token of the administration API can kick and ban: it sends the API's own requests,
//! with the token in a header, below `/admin/` of its own address. Otherwise a page is read-only, unless
//! [`InspectSettings::action_presets`] enables actions. An action is a text in a bounded queue; the code that opened the server
//! takes it between two ticks, and checks it. If a run does not keep real time, [`InspectSettings::pace`] lets pages pause it, do
//! single ticks and set its speed in the same way; [`refresh_pages`] updates the pages while the world is paused.
//!
//! With a browser client (`net::listen_web`), a page can open the client's page, and forwards the frames of dots to it, window to
//! window, on request; the server sends them to no other page.
//!
//! A page and its figures are for operators. A page that is open beyond this machine requires a token; a page on this machine
//! requires that the browser's page came from it, so that no page of another site can read it. Metrics require no token: everyone
//! who reaches their address can read them.
#![warn(missing_docs)]

// | file | holds |
// | `exposition` | families of metrics, and Prometheus' text of them |
// | `ticks` | tick times: histogram, the last minute, and the causes of slow ticks |
// | `protocol` | the messages between tick and thread, and their counters |
// | `heat` | values per cell, and their binary frame |
// | `frames` | the crowd and the map as binary frames for a page |
// | `visibility_reason` | why a viewer sees another object, or does not |
// | `wait_reason` | why a party waits for a match |
// | `connection_limits` | how many connections a peer may open |
// | `routes` | which requests are allowed |
// | `server/` | the thread: sockets, requests, pages |
// | `admin/` | the administration API: players, kicks and bans |
// | `token_service/` | the token service: connect tokens for a login service |
// | `http_listener` | a small HTTP server, for both |
// | `metrics_server` | metrics of a process that runs no ticks |
// | `cluster_page` | the page of a cluster, from the rows that a program reads |
// | `audit` | the records of the audit log |
// | `plugin` | the systems at the tick's end: what is gathered, and when |

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct InspectReadme;

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/draws.rs"]
mod draws;

mod admin;
mod audit;
mod cluster_page;
mod connection_limits;
mod exposition;
mod frames;
mod heat;
mod http_listener;
mod metrics_server;
mod plugin;
mod protocol;
mod routes;
mod server;
mod ticks;
mod token_service;
mod visibility_reason;
mod wait_reason;

pub use admin::{
    ADMIN_COMMANDS_PER_TICK_MAX, AdminError, AdminServer, AdminSettings, AdminTokens,
    InvalidAdminTokens, open_admin,
};
pub use audit::AuditRecord;
pub use cluster_page::{ClusterPage, ClusterPageError};
pub use connection_limits::CONNECTIONS_PER_PEER_MAX;
pub use exposition::{MetricFamily, MetricType, exposition};
pub use frames::{DOT_BYTES, DOTS_HEAD_BYTES, Dot, dots_frame, map_frame};
pub use metrics_server::MetricsServer;
pub use plugin::{
    AppMetrics, AuditLog, InspectAddresses, InspectError, InspectPlugin, InspectSettings,
    Inspector, MEMORY_INTERVAL_S, METRIC_UPDATES_PER_S, PAGE_ACTIONS_MAX, ServerHealth,
    open_inspector, refresh_pages,
};
pub use protocol::{
    ActionPreset, CONNECTION_S_MAX, CONNECTIONS_MAX, InspectStats, PAGES_MAX, PaceRequest, RunPace,
};
pub use ticks::{
    SETS, SLOW_TICK_HISTORY_MAX, SlowTick, TICK_BUCKETS_S, TICK_HISTORY_MAX, TickHistory, TickWork,
    TimedTick,
};
pub use token_service::{TokenService, TokenServiceError, TokenServiceSettings, TokenServiceStats};
pub use visibility_reason::{PairRules, VisibilityReason, explain_visibility};
pub use wait_reason::describe_wait;
