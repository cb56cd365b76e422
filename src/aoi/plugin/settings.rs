//! Limits and rates of the update of views, and the counters of what it did.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::aoi::{RERANK_TICKS, ViewCounters, ViewLinkMode};

/// Defaults for scenes and viewers without settings of their own.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::aoi::AoiSettings;
///
/// // A client screen shows 90 m × 60 m.
/// app.insert_resource(AoiSettings { cell_m: 30.0, ..AoiSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct AoiSettings {
    /// Side of a grid cell, in metres. Nine cells should be one to two client screens: 50 m suits 150 m × 100 m. See
    /// [`cell_m_for_screen`](crate::aoi::cell_m_for_screen). With smaller cells, objects appear in the middle of the screen; with larger
    /// ones, updates are slower, and lists fill with objects beyond the screen.
    pub cell_m: f32,
    /// Distance by which an object may leave its cell before the cell changes, in metres; at most a quarter of the cell. It keeps an object
    /// that walks to and fro on a border in one cell. The default is the way that a runner takes in a second.
    pub margin_m: f32,
    /// Scans per tick and scene for queued viewers; the rest waits for the next tick. With one-way links, the queue has the viewers
    /// that `full_scans_per_tick_max` deferred; with mutual links, also those that had a full list and lost an object.
    ///
    /// It limits nothing else: see `full_scans_per_tick_max` for viewers that move, and `rerank_ticks`. Leaves are never deferred.
    /// With one-way links a free slot is filled in the same tick, unless the scene has a custom ranking or the list has scenery and
    /// other objects: then a queued scan fills it, from the next tick on.
    #[serde(alias = "looks_per_tick_max")]
    pub scans_per_tick_max: u32,
    /// How many of the viewers that were spawned, changed their cell or whose traits changed are scanned in the same tick, per
    /// scene, lower ids first. When there are more, as after a mass teleport or login, the rest is queued and sees no new objects
    /// until its scan. A scan takes about 1 µs, so that the default limits these scans to about 4 ms of a tick.
    #[serde(alias = "sweeps_per_tick_max")]
    pub full_scans_per_tick_max: u32,
    /// Each viewer with a full list compares distances again after this many ticks; 0 for never. It costs as many scans per tick as
    /// there are such viewers, divided by this.
    pub rerank_ticks: u32,
    /// How many viewers with a [`range_m`](super::Viewer::range_m), or under [`ViewRules::by_distance`](super::ViewRules), are
    /// scanned in the same tick, per scene. If more are due, because they or objects near them moved, the others lose at once the
    /// objects that they can no longer see, and see no new ones until their scan. Those that wait longest go first.
    pub exact_scans_per_tick_max: u32,
    /// How many exceptions a viewer can have, including those for objects in other scenes; see [`show_to`](super::show_to). At this
    /// limit, another one is an error and changes nothing.
    pub exceptions_per_viewer_max: u32,
    /// Whether a view link is one-way or needs both ends. Read when a scene opens.
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
            exact_scans_per_tick_max: 1024,
            rerank_ticks: RERANK_TICKS,
            exceptions_per_viewer_max: 256,
            view_link_mode: ViewLinkMode::Directed,
        }
    }
}

/// Totals over all scenes, closed ones included.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AoiStats {
    /// Sum of the counters of all scenes since they opened.
    pub counters: ViewCounters,
    /// Current number of links; a link is one direction.
    pub links: u64,
    /// Viewers that are queued for a scan.
    pub queued: u64,
    /// Entities with [`Viewer`](super::Viewer) or [`Viewable`](super::Viewable) that were not an object of a scene when they got
    /// it. They see nothing and are not seen. A warning names the first.
    pub non_objects: u64,
    /// Viewers with a negative [`range_m`](super::Viewer::range_m), or NaN, counted when they were spawned or changed. They see the
    /// cells around them. A warning names the first.
    pub invalid_ranges: u64,
    /// Positions that were set to a value outside of their scene, or to NaN. A warning names the first.
    pub outside_scene: u64,
}

/// Adds the counts of a scene since the last tick.
pub(super) fn add_since(total: &mut ViewCounters, now: ViewCounters, before: ViewCounters) {
    total.enters += now.enters - before.enters;
    total.leaves += now.leaves - before.leaves;
    total.evictions += now.evictions - before.evictions;
    total.refills += now.refills - before.refills;
    total.full_list_attempts += now.full_list_attempts - before.full_list_attempts;
    total.scans += now.scans - before.scans;
    total.exact_scans += now.exact_scans - before.exact_scans;
    total.exact_scans_deferred += now.exact_scans_deferred - before.exact_scans_deferred;
    total.longest_list = total.longest_list.max(now.longest_list);
}
