//! The game of `throng node`: a world of several scenes, as an ordinary game on the public API.
//!
//! ```text
//! rows of scenes ─▶ [scenes] open, closed ─▶ NPCs
//! record ─▶ on_receive ─▶ in its scene, or in the waiting room ─▶ [travel] ─▶ PlayerMove to the node of the scene
//! Position ─▶ [portals] ─▶ Destination ─▶ [travel] ─▶ the scene is here: change of scene; elsewhere: PlayerMove
//! Position ─▶ [matches] ─▶ MatchTicket … MatchAssigned ─▶ an instance … MatchEnded ─▶ Destination
//! ```
//!
//! | file | contains |
//! |---|---|
//! | `world_file`, `world_check`, `world_load` | the format of world files; what they must not contain; how they are read |
//! | `player_record` | what is saved of a player, and goes with it to another node |
//! | `scenes` | the scenes that this node runs, and their NPCs |
//! | `players` | players arrive and leave |
//! | `whereabouts` | where players are, and where they go to |
//! | `travel` | players go to other scenes |
//! | `matches` | players queue for matches, and play them in instances |
//! | `trade` | players exchange gold |
//!
//! Each node also has a waiting room: a scene of its own for players whose scene runs nowhere right now.

mod matches;
mod player_record;
mod players;
mod scenes;
mod trade;
mod travel;
mod whereabouts;
mod world_check;
mod world_file;
mod world_load;

pub(super) use player_record::{PLACE_MATCH, PLACE_WAITING, TravellerRecord};
pub(super) use players::{Coins, Place};
pub(super) use scenes::{OpenScenes, WorldAtRest};
pub(super) use world_file::{WorldFile, WorldScene};

use std::sync::Arc;

use bevy_app::{App, FixedPreUpdate, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_cluster::{ClusterPlugin, ClusterSystems};

use matches::OpenMatches;
use players::WorldHooks;

/// The world that this node runs scenes of.
#[derive(Resource, Clone)]
pub(super) struct ClusterWorld(pub Arc<WorldFile>);

/// The game.
pub(super) struct WorldGamePlugin(pub ClusterWorld);

impl Plugin for WorldGamePlugin {
    fn build(&self, app: &mut App) {
        let act = (
            scenes::walk,
            matches::queue_at_boards,
            travel::enter_portals,
            trade::trade,
        );
        let think = (
            scenes::rest,
            act.chain().run_if(|rest: Res<WorldAtRest>| !rest.0),
            matches::run_matches,
            matches::enter_matches,
            matches::leave_matches,
            travel::leave_closed_scenes,
            travel::travel,
        );
        app.insert_resource(self.0.clone())
            .add_plugins(ClusterPlugin::new(WorldHooks(self.0.clone())))
            .init_resource::<OpenScenes>()
            .init_resource::<OpenMatches>()
            .init_resource::<WorldAtRest>()
            .replicate::<Coins>()
            .replicate::<Place>()
            .add_systems(
                FixedPreUpdate,
                scenes::follow_scenes
                    .after(ClusterSystems::Scenes)
                    .before(ClusterSystems::Arrive),
            )
            .add_systems(FixedUpdate, think.chain().in_set(SimSystems::Think));
    }
}
