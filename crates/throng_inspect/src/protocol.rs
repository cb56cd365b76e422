//! The messages between the tick and the thread that serves pages, and their counters.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::exposition::MetricFamily;
use throng::map::TileMap;

/// Maximum number of open connections per address.
pub const CONNECTIONS_MAX: usize = 64;

/// Maximum time of a connection for its request and reply, in seconds.
pub const CONNECTION_S_MAX: u64 = 10;

/// Maximum number of requests pending for the tick.
pub(super) const REQUESTS_MAX: usize = 256;

/// Maximum number of updates pending for the thread.
pub(super) const REPLIES_MAX: usize = 64;

/// Maximum number of open pages.
pub const PAGES_MAX: usize = 16;

/// What a page wants to show. Missing fields are not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    /// The scene; without it, the first one.
    pub scene: Option<u32>,
    /// The number of the selected object.
    pub selected: Option<u32>,
    /// The number of another object, to explain why the selected one sees it or not.
    pub other: Option<u32>,
    /// Whether it shows the longest-waiting parties.
    pub wait_reasons: bool,
    /// Whether it shows matches, queues and parties.
    pub matches: bool,
    /// The list of sessions that it shows, if any.
    pub sessions: Option<SessionListQuery>,
    /// The heat map that it shows; the heat of the dots is counted by the page itself.
    pub heat: Option<HeatOf>,
}

/// Which sessions a page lists: the first ones in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionListQuery {
    /// The key.
    pub by: SessionSort,
    /// Whether the largest come first.
    pub is_descending: bool,
}

/// What sessions are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionSort {
    /// The number of the session.
    #[default]
    Client,
    /// The number of the player.
    Player,
    /// From connecting to lost, in the order of a session's life.
    State,
    /// Round trip time.
    Ping,
    /// Bytes per second to the client.
    Bytes,
    /// The tick of the last error.
    Error,
}

/// A search of a page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageSearch {
    /// The text; longer ones than [`SEARCH_CHARS_MAX`] are not searched for.
    pub find: String,
}

/// Maximum length of a search, in characters.
pub(super) const SEARCH_CHARS_MAX: usize = 64;

/// An action requested by a page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageAction {
    /// The action as written in a script.
    pub action: String,
    /// The token of the operator, if the page was opened with one.
    #[serde(default)]
    pub operator: Option<String>,
}

/// Who requested an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    /// The name of the operator, or [`ANY_PAGE`].
    pub who: String,
    /// The address of the page's connection.
    pub from: SocketAddr,
}

/// The requester of an action of a page that was opened without an operator's token.
pub(super) const ANY_PAGE: &str = "page";

/// A pace request of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceRequest {
    /// Pause.
    Pause,
    /// Resume at the former speed.
    Resume,
    /// Do one tick, then pause.
    Step,
    /// Simulated time in per cent of real time; 0 is as fast as possible.
    Speed(u32),
}

/// The pace of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunPace {
    /// Whether the run is paused and does single ticks on request.
    pub is_paused: bool,
    /// Simulated time in per cent of real time while it is not paused; 0 is as fast as possible.
    pub speed_percent: u32,
}

/// The pace request of a page's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PagePaceRequest {
    pub pace: PaceRequest,
}

/// An action preset that a page may show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionPreset {
    /// Its label.
    pub name: String,
    /// The action. `{at}` stands for the clicked position, `x, y` in metres, and `{scene}` for the name of the scene that is
    /// shown.
    pub text: String,
}

/// The quantity counted per cell of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HeatOf {
    /// The number of view links of the viewers in a cell.
    Links = 1,
    /// Nodes searched for paths that begin in the cell, in the last seconds.
    Nodes = 2,
}

/// Requests of the thread to the tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InspectRequest {
    /// Metrics.
    Metrics,
    /// A page was opened.
    Opened(u64),
    /// What a page wants to show.
    Query(u64, PageQuery),
    /// A search of a page.
    Search(u64, String),
    /// An action of a page.
    Action(String, Requester),
    /// A pace request of a page.
    Pace(PaceRequest),
    /// A page was closed.
    Closed(u64),
}

/// Replies and updates of the tick.
pub(super) enum InspectReply {
    /// Metrics after a tick.
    Metrics(Vec<MetricFamily>),
    /// An update for these pages.
    Pages(Vec<u64>, PageUpdate),
}

/// An update of a page.
pub(super) enum PageUpdate {
    /// JSON that is sent once, before all other updates.
    Hello(String),
    /// JSON.
    Text(String),
    /// The bytes of a frame.
    Frame(Vec<u8>),
    /// The map of a scene, to be encoded by the thread.
    Map {
        /// The number of the scene.
        scene: u32,
        /// Its tiles.
        tiles: Arc<TileMap>,
        /// The side of a tile, in metres.
        tile_m: f32,
    },
}

/// State that both threads can read at any time.
#[derive(Debug, Default)]
pub(super) struct InspectStatus {
    /// The last finished tick.
    pub tick: AtomicU64,
    /// Whether the server refuses logins.
    pub is_draining: AtomicBool,
    /// Whether a stop was requested.
    pub is_stopping: AtomicBool,
    /// Why players cannot play, if they cannot.
    not_ready_reason: Mutex<Option<String>>,
}

impl InspectStatus {
    /// Why players cannot play.
    pub fn not_ready_reason(&self) -> Option<String> {
        let fault = self
            .not_ready_reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        fault.clone()
    }

    pub fn set_not_ready_reason(&self, fault: Option<&str>) {
        let mut now = self
            .not_ready_reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if now.as_deref() != fault {
            *now = fault.map(str::to_owned);
        }
    }
}

macro_rules! inspect_counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of the inspector's addresses.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct InspectStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The same, as shared atomic counters.
        #[derive(Debug, Default)]
        pub(super) struct InspectCounters {
            $(pub $name: AtomicU64,)*
        }

        impl InspectCounters {
            /// The counts so far.
            pub fn read(&self) -> InspectStats {
                InspectStats {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

inspect_counters! {
    /// Connections that are open now.
    connections,
    /// Accepted connections.
    accepted,
    /// Connections beyond the limit: only probes are answered there.
    refused,
    /// Connections closed because they timed out or were malformed.
    broken,
    /// Accepted requests, including those whose data is not available yet.
    answered,
    /// Refused requests: unknown page, other method, wrong token, page of another site.
    denied,
    /// Pages that are open now.
    pages,
    /// Pages closed because they read too slowly.
    pages_slow,
    /// Malformed messages of pages.
    junk,
    /// Updates of the tick that were dropped for lack of room.
    dropped,
    /// Nanoseconds that ticks spent in this crate.
    spent_ns,
}

impl InspectCounters {
    /// Counts one.
    pub fn increment(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Decrements a counter.
    pub fn decrement(counter: &AtomicU64) {
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}
