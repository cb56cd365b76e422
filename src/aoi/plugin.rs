//! Interest management in the tick: reads objects and positions, updates view links, emits events.
//!
//! ```text
//! ObjectDespawned, ObjectSpawned, ObjectTeleported, ┐
//! AffiliationChanged, ViewRerankRequest,            ├─track_objects─▶ SceneViews ─update_views─┬─▶ SceneInterest::events
//! Changed<Position …>                               ┘                                          └─▶ ViewEntered, ViewLeft ─▶ observers
//! ```
//! | file | holds |
//! |---|---|
//! | `settings` | limits and rates of the update, and its counters |
//! | `components` | components for scenes and objects, view rules included |
//! | `exceptions` | objects that are shown to one viewer, or hidden from one |
//! | `commands` | the same by commands |
//! | `interest` | the views of a scene, their update and their events |
//! | `entities` | the entity that has, or last had, each object id |
//! | `messages` | messages, and events for observers |
//! | `keep_flags` | objects that clients keep out of view |
//! | `views` | seen objects and watchers by entity, for systems |
//! | `track_objects` | applies changes of the world to the views |
//! | `check` | compares views with the world, by brute force |

mod check;
mod commands;
mod components;
mod entities;
mod exceptions;
mod interest;
mod keep_flags;
mod messages;
mod settings;
#[cfg(test)]
mod tests;
mod track_objects;
mod views;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

pub use check::validate_views;
pub use commands::ViewEntityCommandsExt;
pub use components::{
    SceneAoiSettings, ViewRelations, ViewRerankRequest, ViewRules, ViewTag, Viewable, Viewer,
};
pub use exceptions::{ViewError, ViewExceptions, clear_view_exception, hide_from, show_to};
pub use interest::{SceneInterest, ViewEntered, ViewLeft};
pub use settings::{AoiSettings, AoiStats};
pub use views::Views;

use crate::memory::MemoryAppExt;
use crate::sim::{CounterDelta, HashAppExt, SimSystems, WorkAppExt};
use crate::world::{Npc, ObjectHashAppExt, Player, Scenes, WorldPlugin};

/// Interest management: which objects each viewer sees.
///
/// Players are viewers, and players and NPCs can be seen; other objects need [`Viewer`] or [`Viewable`]. Read the changes of a tick
/// from [`ViewEntered`] and [`ViewLeft`], or by an observer of the same types, and the present state from [`Views`]. [`ViewRules`] on a
/// scene decide who may see whom; [`hide_from`] and [`show_to`] decide it for single pairs.
///
/// Views are complete after [`SimSystems::View`], in every tick. [`AoiSettings`] has the size of cells and the limits,
/// [`AoiStats`] the counters. The cost depends on the objects that moved or changed, not on all pairs. Adds [`WorldPlugin`] when it is
/// missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct AoiPlugin;

crate::sim::sim_plugin!(AoiPlugin, WorldPlugin);

impl AoiPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<Viewer>()
            .register_type::<Viewable>()
            .register_type::<ViewTag>()
            .register_type::<ViewRelations>()
            .register_type::<SceneAoiSettings>()
            .register_type::<AoiSettings>();
        app.register_required_components::<Player, Viewer>();
        app.register_required_components::<Player, Viewable>();
        app.register_required_components::<Npc, Viewable>();
        app.init_resource::<AoiSettings>()
            .init_resource::<AoiStats>()
            .count_component_memory::<SceneInterest>("aoi")
            .add_counted_message::<ViewEntered>("aoi")
            .add_counted_message::<ViewLeft>("aoi")
            .add_message::<ViewRerankRequest>()
            .add_observer(exceptions::end_exceptions)
            .add_systems(
                FixedUpdate,
                (
                    (
                        interest::open_grids,
                        track_objects::count_non_objects,
                        track_objects::update_rules,
                        track_objects::remove_despawned,
                        track_objects::insert_spawned,
                        track_objects::apply_teleports,
                        track_objects::update_traits,
                        track_objects::update_exceptions,
                        track_objects::locate,
                    )
                        .chain()
                        .in_set(SimSystems::Locate),
                    (
                        interest::update_views,
                        messages::write_view_events,
                        messages::trigger_view_observers,
                    )
                        .chain()
                        .in_set(SimSystems::View),
                ),
            )
            .add_cost_estimator({
                let (mut looks, mut changes) = (CounterDelta::default(), CounterDelta::default());
                move |world, costs| {
                    let counters = world.resource::<AoiStats>().counters;
                    let changed = changes.update(counters.enters + counters.leaves);
                    looks.update(counters.scans + counters.exact_scans) * u64::from(costs.scan_ns)
                        + changed * u64::from(costs.link_change_ns)
                }
            })
            .hash_component::<ViewRelations>("ties")
            .hash_component::<Viewer>("viewer")
            .hash_component::<Viewable>("viewable")
            .hash_component::<ViewTag>("view_tag")
            .hash_part("view_exceptions", exceptions::hash_exceptions())
            .hash_part("views", |world, hasher| {
                let scenes: Vec<Entity> = world
                    .resource::<Scenes>()
                    .iter()
                    .map(|(_, entity)| entity)
                    .collect();
                for interest in scenes
                    .into_iter()
                    .filter_map(|scene| world.get::<SceneInterest>(scene))
                {
                    interest
                        .views
                        .hash_state(&mut |word| hasher.write_u64(word));
                }
            });
    }
}
