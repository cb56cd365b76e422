//! Area of interest: who sees whom in a scene, exactly, under caps.
//!
//! ```text
//! Position ──locate──▶ sticky GridCell ──update──▶ links + Enter / Leave ──▶ sync
//!                       (grid/)         (views/)    (links/)
//! ```
//! | file | holds |
//! |---|---|
//! | `priority` | what views read of an object, the classes of pairs and the bands of distance |
//! | `share` | which of a scene's viewers belong together |
//! | `grid/` | cells: where everybody is, and who is in a cell |
//! | `links/` | who sees whom, kept at both ends |
//! | `views/` | the views of a scene, and the update that keeps them exact |
//! | `plugin/` | components and messages of the tick |
//! | `workload`, `reference`, `sets` | what views are measured with, and two designs to measure beside |
//!
//! Invariants, after each update: a link joins two that can see each other now; link ⇔ membership ⇔ an entry
//! at each end; nobody is over cap; leavers are gone the same tick. *Directed* sight: unless a viewer is
//! queued, nobody whom it could see and does not has a higher class than a member of the list concerned, and
//! it has no free place while such an object exists. *Mutual* sight: of every pair that both ends would
//! accept and that is not linked, an end is queued. The queue is worked by a fixed number of looks a tick and
//! lets go of a viewer only when it has nothing to gain; of those who move at most so many sweep in the same
//! tick, and the rest joins the queue. Of one class the nearer band of distance goes first;
//! bands are right once every viewer had its turn (`rerank_ticks`) and its look.
//!
//! The viewers of a large scene with directed sight are divided into shards (views/shard.rs), which are updated side
//! by side: links, queue and counters are the same for any number of shards and threads.
//!
//! Cost: O(links that begin or end) plus, for each object that changed cell, a comparison of ties with the
//! population of the cells that differ, and a share of re-ranked viewers; bench `aoi::*`, and `throng bench aoi` beside [`mod@reference`] and [`sets`].

mod grid;
mod links;
mod plugin;
mod priority;
#[cfg(any(test, feature = "bench"))]
pub mod reference;
#[cfg(any(test, feature = "bench"))]
pub mod sets;
mod share;
mod views;
#[cfg(any(test, feature = "bench"))]
pub mod workload;

pub use grid::{CELLS_MAX, GridCell, GridError, SceneGrid, cell_m_for_screen};
pub use links::{IDS_MAX, LISTS, UNCAPPED};
pub use plugin::{
    AoiPlugin, AoiSettings, AoiStats, Entered, InterestSpec, Left, PriorityChanged, SceneInterest,
    Ties, ViewError, ViewExceptions, ViewRules, ViewTag, Viewable, Viewer, Views, end_exception,
    hide_from, show_to, validate_views,
};
pub use priority::{
    ATTACKER, BANDS, Bands, CLASS_MAX, GUILD, OTHER, OWN, PARTY, SCENERY, TEAM, ViewFilter,
    ViewPriority, ViewTraits, by_relationship,
};
pub use views::{
    InsertError, LeaveReason, Profile, RERANK_TICKS, Removal, SceneViews, Sight, ViewCaps,
    ViewCounters, ViewEvent, ViewException, ViewFault,
};
