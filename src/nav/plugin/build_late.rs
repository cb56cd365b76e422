//! The message for late builds.

use bevy_ecs::prelude::*;

use super::ground::MapKey;

/// The search data of a scene was adopted later than planned: in real time no tick waits for it. Until then its paths
/// were as short, but may have been others of the same length than in a run that waits; requests of wide walkers were delayed.
/// Written in the tick that starts to use the data; if scenes share one eroded map, for the first.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::nav::NavBuildLate;
///
/// fn log(mut late: MessageReader<NavBuildLate>) {
///     for it in late.read() {
///         println!("search data of scene {}: {} ticks late", it.scene, it.late_ticks);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NavBuildLate {
    /// The scene.
    pub scene: Entity,
    /// The clearance that it is for, as in [`PathRequest::clearance`](super::PathRequest::clearance).
    pub clearance: u8,
    /// The delay in ticks.
    pub late_ticks: u64,
}

impl NavBuildLate {
    /// The message for a build that is adopted in a tick; `None` if it is on time.
    pub(super) fn of(map: MapKey, tick: u64, due_tick: u64) -> Option<Self> {
        let late_ticks = tick.checked_sub(due_tick).filter(|&late| late > 0)?;
        Some(Self {
            scene: map.scene,
            clearance: map.clearance,
            late_ticks,
        })
    }
}
