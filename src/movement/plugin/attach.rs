//! Objects at the position of another object: spectators, riders on a mount.

use bevy_ecs::prelude::*;

use crate::sim::StateHasher;
use crate::world::{Heading, Object, Position, Velocity, change_scene};

/// Keeps this object at the position of another, from the end of [`Move`](crate::sim::SimSystems::Move) on, also when that one changes
/// scene. With a `Viewer` and no `Viewable` it is a spectator, which sees what is around the other and is seen by no one. If the other
/// despawns, this object stays where it was; if a scene has no room for it, it stays behind. In a chain of attached objects,
/// each is one tick behind the one before it. An object with [`MaxSpeed`](super::MaxSpeed) is also moved by its client or along its path.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// /// A spectator moves with the player that it watches.
/// fn watch(spectator: Entity, player: Entity, mut commands: Commands) {
///     commands.entity(spectator).insert(AttachedTo(player));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedTo(pub Entity);

/// The pose of the target; `None` if it is gone.
type Pose = Option<(Object, Position, Velocity, Heading)>;

/// Whether any object is attached.
pub(super) fn has_attached(followers: Query<(), With<AttachedTo>>) -> bool {
    !followers.is_empty()
}

/// Moves all attached objects to their targets, in the order of their ids.
pub(super) fn update_attached(
    world: &mut World,
    followers: &mut QueryState<(Entity, &Object, &AttachedTo)>,
    mut moves: Local<Vec<(u64, Entity, Pose)>>,
) {
    let all = followers.iter(world);
    moves.extend(all.map(|(entity, object, &AttachedTo(other))| {
        let there = world.get::<Object>(other);
        let pose = there
            .zip(world.get::<Position>(other))
            .map(|(&there, &at)| {
                let velocity = world.get::<Velocity>(other).copied().unwrap_or_default();
                let heading = world.get::<Heading>(other).copied().unwrap_or_default();
                (there, at, velocity, heading)
            });
        (object.key(), entity, pose)
    }));
    // An object that changes scenes gets an id there, so the order matters.
    moves.sort_unstable_by_key(|&(key, ..)| key);
    for (_, entity, pose) in moves.drain(..) {
        let here = world.get::<Object>(entity).map(Object::scene_entity);
        let pose = pose.filter(|(there, to, ..)| {
            let scene = there.scene_entity();
            here == Some(scene) || change_scene(world, entity, scene, to.0).is_ok()
        });
        let Some((_, to, velocity, heading)) = pose else {
            stop(world, entity);
            continue;
        };
        let Ok(mut follower) = world.get_entity_mut(entity) else {
            continue;
        };
        if let Some(mut position) = follower.get_mut::<Position>() {
            position.set_if_neq(to);
        }
        if let Some(mut own) = follower.get_mut::<Velocity>() {
            own.set_if_neq(velocity);
        }
        if let Some(mut own) = follower.get_mut::<Heading>() {
            own.set_if_neq(heading);
        }
    }
}

/// Stops an object that cannot follow where it was.
fn stop(world: &mut World, entity: Entity) {
    if let Some(mut velocity) = world.get_mut::<Velocity>(entity) {
        velocity.set_if_neq(Velocity::default());
    }
}

/// Adds all attachments to the state hash.
pub(super) fn hash_attached(world: &mut World, hasher: &mut StateHasher) {
    let mut followers = world.query::<(&Object, &AttachedTo)>();
    let key = |entity| world.get::<Object>(entity).map_or(u64::MAX, Object::key);
    let pairs = followers.iter(world);
    let mut pairs: Vec<[u64; 2]> = pairs.map(|(own, of)| [own.key(), key(of.0)]).collect();
    pairs.sort_unstable();
    pairs
        .into_iter()
        .flatten()
        .for_each(|word| hasher.write_u64(word));
}
