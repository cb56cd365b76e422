//! The plugin of instances. It runs in Think, before crowds, so that behaviours find all players in place.
//!
//! | file | contents |
//! |---|---|
//! | `host` | the interface for games: scenes for matches, positions to move players to and back |
//! | `instances` | the running instances: seats and missing players |
//! | `messages` | requests and facts |
//! | `run` | the steps of a tick: parties join, instances end and open |
//! | `seats` | the players of an instance: how they move in, leave, come home and are replaced |
//! | this file | the plugin and its place in the tick |

mod host;
mod instances;
mod messages;
mod run;
mod seats;

use bevy_app::{App, FixedUpdate, PostStartup};
use bevy_ecs::prelude::*;

pub use host::{InstanceHost, InstanceModes, MatchModeAppExt, PlayerHome};
pub use instances::{Instance, InstanceSettings, InstanceStats, Instances};
pub use messages::{
    DepartureReason, EndInstanceRequest, EndReason, InstanceEnded, InstanceError, InstanceId,
    InstanceMoveFailed, InstanceOpened, InstancePartyJoined, InstancePlayerEntered,
    InstancePlayerLeft, InstancePlayerReturned, InstanceRefused, LeaveInstanceRequest, Leaver,
    MemberLeft, PlayerAlreadyInInstance,
};
pub use run::{end_instance, leave_instance};

use crate::matchmaking::MatchmakingPlugin;
use crate::memory::MemoryAppExt;
use crate::sim::{HashAppExt, SimSystems};
use crate::world::WorldPlugin;

/// Instances: runs each match in a scene of its own, and returns its players when it ends.
///
/// Add a mode with [`MatchModeAppExt::add_match_mode`]. Then read [`InstancePlayerEntered`] to prepare a player for the match,
/// [`InstancePlayerReturned`] when it is back, and write an [`EndInstanceRequest`] when a side has won. Players who lose their connection
/// keep their seat for a time; then others are sought to take it.
///
/// [`InstanceSettings`] limits the instances, [`InstanceStats`] counts them. Does nothing while no mode has a host. Adds [`WorldPlugin`]
/// and [`MatchmakingPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstancePlugin;

crate::sim::sim_plugin!(InstancePlugin, (WorldPlugin, MatchmakingPlugin));

impl InstancePlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<InstanceSettings>();
        app.init_resource::<InstanceSettings>()
            .init_resource::<InstanceStats>()
            .init_resource::<InstanceModes>()
            .init_resource::<Instances>()
            .add_message::<EndInstanceRequest>()
            .add_message::<LeaveInstanceRequest>()
            .add_message::<InstanceMoveFailed>()
            .add_message::<InstancePlayerLeft>()
            .add_message::<PlayerAlreadyInInstance>()
            .add_message::<InstancePartyJoined>()
            .count_memory::<Instances>("instance")
            .add_counted_message::<InstancePlayerEntered>("instance")
            .add_counted_message::<InstancePlayerReturned>("instance")
            .add_counted_message::<MemberLeft>("instance")
            .add_counted_message::<InstanceOpened>("instance")
            .add_counted_message::<InstanceRefused>("instance")
            .add_counted_message::<InstanceEnded>("instance")
            .add_systems(PostStartup, run::warn_unknown_modes)
            .add_systems(
                FixedUpdate,
                run::run_instances
                    .run_if(run::is_used)
                    .in_set(InstanceSystems)
                    .in_set(SimSystems::Think),
            )
            .hash_part("instances", |world, hasher| {
                world.resource::<Instances>().hash(hasher);
            });
    }
}

/// All instance systems of a tick, in [`SimSystems::Think`]. Systems that control players inside instances run after it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstanceSystems;
