//! Limits and rates of the update of views, and the counters of what it did.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::aoi::{RERANK_TICKS, ViewCounters, ViewLinkMode};

/// What holds for scenes and viewers that say nothing else.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct AoiSettings {
    /// Side of a grid cell, in metres. Nine cells should be one to two client screens: 50 m suits 150 m × 100 m. See
    /// [`cell_m_for_screen`](crate::aoi::cell_m_for_screen).
    pub cell_m: f32,
    /// How far beyond its cell an object may go before the cell changes, in metres; at most a quarter of the cell.
    pub margin_m: f32,
    /// Looks a tick and scene for viewers that wait in the queue; the rest waits for the next tick. Where sight is directed
    /// these are the viewers that `full_scans_per_tick_max` put off; where it is mutual, also those who had a full list and lost
    /// somebody.
    ///
    /// It bounds nothing else: see `full_scans_per_tick_max` for those who move, and `rerank_ticks`. Leaving is never put off, and
    /// where sight is directed a place that falls free is filled in the same tick, unless the scene has a ranking of its own, or
    /// the list scenery and others: then it is filled by such a look, from the next tick on.
    #[serde(alias = "looks_per_tick_max")]
    pub scans_per_tick_max: u32,
    /// How many of the viewers that came, changed their cell or whose traits changed look around in the same tick, in each
    /// scene, the lower ids first. When there are more, as after a mass teleport or login, the rest waits in the queue and sees nobody new until
    /// its look.
    #[serde(alias = "sweeps_per_tick_max")]
    pub full_scans_per_tick_max: u32,
    /// Each viewer with a full list looks at distances anew every so many ticks; 0 for never. Costs as many looks a
    /// tick as there are such viewers, divided by this.
    pub rerank_ticks: u32,
    /// How many objects can be shown to one viewer, or hidden from it, against the rules, those in other scenes included; see
    /// [`show_to`](super::show_to). At this limit a further one is an error and changes nothing.
    pub exceptions_per_viewer_max: u32,
    /// Whether a link needs the other end's consent. Read when a scene opens.
    #[serde(alias = "sight")]
    pub view_link_mode: ViewLinkMode,
}

impl Default for AoiSettings {
    fn default() -> Self {
        Self {
            cell_m: 50.0,
            margin_m: 5.0,
            scans_per_tick_max: 1024,
            full_scans_per_tick_max: 4096,
            rerank_ticks: RERANK_TICKS,
            exceptions_per_viewer_max: 256,
            view_link_mode: ViewLinkMode::Directed,
        }
    }
}

/// Totals over all scenes, closed ones included.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AoiStats {
    /// What the views of all scenes counted since they opened.
    pub counters: ViewCounters,
    /// Links that there are now; a link is one direction.
    pub links: u64,
    /// Viewers that wait for a look.
    pub queued: u64,
    /// Entities with [`Viewer`](super::Viewer) or [`Viewable`](super::Viewable) that were no object of a scene when they got
    /// it, and so see nobody and are seen by nobody. A warning names the first.
    pub non_objects: u64,
    /// Positions that were changed to one outside of their scene, or to what is no number. A warning names the first.
    pub outside_scene: u64,
}

/// Adds what a scene counted since the last tick.
pub(super) fn add_since(total: &mut ViewCounters, now: ViewCounters, before: ViewCounters) {
    total.enters += now.enters - before.enters;
    total.leaves += now.leaves - before.leaves;
    total.evictions += now.evictions - before.evictions;
    total.refills += now.refills - before.refills;
    total.full_list_attempts += now.full_list_attempts - before.full_list_attempts;
    total.scans += now.scans - before.scans;
    total.longest_list = total.longest_list.max(now.longest_list);
}
