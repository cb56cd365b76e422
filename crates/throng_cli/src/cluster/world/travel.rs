//! Players go to other scenes: through portals, from the waiting room, and when their scene runs elsewhere now.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng::world::SceneObjects;
use throng_cluster::{ClusterPlayer, ClusterScenes, FrozenPlayer, PlayerMove};

use super::ClusterWorld;
use super::players::Place;
use super::scenes::{ClosingScene, OpenScenes};
use super::whereabouts::{Destination, MatchGuest};

/// Players that this node may change.
type FreePlayers = (With<ClusterPlayer>, Without<FrozenPlayer>);

/// A player in a portal is on its way to the other scene.
pub(super) fn enter_portals(
    world: Res<ClusterWorld>,
    players: Query<
        (Entity, &Position, &Place),
        (FreePlayers, Without<Destination>, Without<MatchGuest>),
    >,
    mut commands: Commands,
) {
    for (player, at, place) in &players {
        let Some(scene) = world.0.scenes.get(usize::from(place.0)) else {
            continue;
        };
        let mut portals = scene.portals.iter();
        let entered = portals.find(|portal| portal.at_m.distance(at.0) <= portal.radius_m);
        if let Some(portal) = entered {
            let (scene, at_m) = (portal.to.clone(), portal.arrive_at_m);
            commands.entity(player).insert(Destination { scene, at_m });
        }
    }
}

/// Players of a scene that runs elsewhere now follow it there, and the scene is closed after the last one.
pub(super) fn leave_closed_scenes(
    closing: Query<(Entity, &SimScene, Option<&SceneObjects>), With<ClosingScene>>,
    players: Query<(&Position, Has<Destination>, Has<MatchGuest>), With<ClusterPlayer>>,
    mut commands: Commands,
) {
    for (scene, sim_scene, objects) in &closing {
        let mut is_empty = true;
        for object in objects.into_iter().flat_map(SceneObjects::iter) {
            let Ok((at, is_leaving, is_guest)) = players.get(object) else {
                continue;
            };
            is_empty = false;
            // Guests of a match go home when they hear that it is over.
            if !is_leaving && !is_guest {
                let (scene, at_m) = (sim_scene.name().to_owned(), at.0);
                commands.entity(object).insert(Destination { scene, at_m });
            }
        }
        if is_empty {
            commands.entity(scene).despawn();
        }
    }
}

/// Players that are on their way change the scene, if it is here, or go to the node that runs it. Others wait.
pub(super) fn travel(
    world: Res<ClusterWorld>,
    open: Res<OpenScenes>,
    cluster: Res<ClusterScenes>,
    players: Query<(Entity, &ClusterPlayer, &Destination), FreePlayers>,
    mut moves: MessageWriter<PlayerMove>,
    mut commands: Commands,
) {
    for (entity, player, destination) in &players {
        let name = &*destination.scene;
        if let Some((scene, number)) = open.get(name).zip(world.0.number_of(name)) {
            let place = (InScene(scene), Position(destination.at_m), Place(number));
            commands
                .entity(entity)
                .insert(place)
                .remove::<Destination>();
            continue;
        }
        if world.0.scene(name).is_none() {
            // The world file has changed.
            let (scene, at_m) = (world.0.start.clone(), world.0.start_at_m);
            commands.entity(entity).insert(Destination { scene, at_m });
            continue;
        }
        moves.write_batch(PlayerMove::to_scene(&cluster, player.0, name));
    }
}
