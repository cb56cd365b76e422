//! What the tick and the thread that serves pages tell each other, and what is counted of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::exposition::MetricFamily;
use throng::map::TileMap;

/// Connections that are open at a time at an address, at most.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a connection may take for its request and answer, in seconds.
pub const CONNECTION_S_MAX: u64 = 10;

/// Wishes that wait for the tick, at most.
pub(super) const REQUESTS_MAX: usize = 256;

/// News that wait for the thread, at most.
pub(super) const REPLIES_MAX: usize = 64;

/// Pages that are open at a time, at most.
pub const PAGES_MAX: usize = 16;

/// What a page wants to be shown. What it does not say it does not want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    /// The scene; the first one without it.
    pub scene: Option<u32>,
    /// The number of the object that is looked at.
    pub picked: Option<u32>,
    /// The number of another, of which is asked why the first sees it or not.
    pub other: Option<u32>,
    /// Whether it shows the parties that wait longest for a match.
    pub waits: bool,
    /// The heat of cells that it shows, beside that of the dots, which it counts by itself.
    pub heat: Option<HeatOf>,
}

/// What a page asks to be done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageAction {
    /// As a script has it.
    pub cue: String,
}

/// What a page asks of the pace of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceRequest {
    /// No more ticks for now.
    Pause,
    /// Ticks again, at the speed that there was.
    Go,
    /// One tick, and then none.
    Step,
    /// Simulated time in per cent of real time; 0 is as fast as possible.
    Speed(u32),
}

/// How a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunPace {
    /// Whether ticks are done only one by one, when a page asks for it.
    pub is_paused: bool,
    /// Simulated time in per cent of real time, when it is not; 0 is as fast as possible.
    pub speed_percent: u32,
}

/// What of the pace a page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PagePaceRequest {
    pub pace: PaceRequest,
}

/// What a page may propose to whoever looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionPreset {
    /// What it is called.
    pub name: String,
    /// What is asked for. In it `{at}` stands for the place that is clicked on, `x, y` in metres, and `{scene}` for the name of the
    /// scene that is shown.
    pub text: String,
}

/// What is counted by cells of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HeatOf {
    /// How many the viewers of a cell see in all.
    Links = 1,
    /// Nodes that were searched for paths that begin there, those of the last seconds.
    Nodes = 2,
}

/// What the thread asks of the tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InspectRequest {
    /// Numbers.
    Metrics,
    /// A page is open.
    Opened(u64),
    /// What it wants to be shown.
    Query(u64, PageQuery),
    /// What a page wants to be done.
    Action(String),
    /// How it wants the run to go on.
    Pace(PaceRequest),
    /// It is open no more.
    Closed(u64),
}

/// What the tick answers.
pub(super) enum InspectReply {
    /// Numbers as they were after a tick.
    Metrics(Vec<MetricFamily>),
    /// For these pages.
    Pages(Vec<u64>, PageUpdate),
}

/// What a page is told.
pub(super) enum PageUpdate {
    /// JSON, which is told once, before all else.
    Hello(String),
    /// JSON.
    Text(String),
    /// The bytes of a frame.
    Frame(Vec<u8>),
    /// The map of a scene, to be drawn first.
    Map {
        /// The number of the scene.
        scene: u32,
        /// Its tiles.
        tiles: Arc<TileMap>,
        /// The side of a tile, in metres.
        tile_m: f32,
    },
}

/// What both ends may look at at any time.
#[derive(Debug, Default)]
pub(super) struct InspectStatus {
    /// The last tick that is done.
    pub tick: AtomicU64,
    /// Whether the server lets nobody in any more.
    pub is_draining: AtomicBool,
    /// Whether it was asked to stop.
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
        /// What happened at the addresses at which the server is looked at.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct InspectStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The same, as both ends count it.
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
    /// Connections that were taken.
    accepted,
    /// Connections for which there was no place: only probes are answered there.
    refused,
    /// Connections that were closed since they took too long, or made no sense.
    broken,
    /// Requests that were let through; that what they ask for is not there yet may be their answer.
    answered,
    /// Requests that were turned away: no such page, another method, a wrong token, another page's.
    denied,
    /// Pages that are open now.
    pages,
    /// Pages that were closed since they read too slowly.
    pages_slow,
    /// Messages of pages that made no sense.
    junk,
    /// News of the tick for which there was no room.
    dropped,
    /// Nanoseconds that ticks spent on what is here.
    spent_ns,
}

impl InspectCounters {
    /// Counts one.
    pub fn increment(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one less.
    pub fn decrement(counter: &AtomicU64) {
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}
