//! Which objects a client may name in its messages: itself, the object that it controls, and objects that it sees. All such checks are
//! here.

use bevy_ecs::prelude::*;

use crate::aoi::SceneInterest;
use crate::world::{Generation, Object, ObjectId, SceneIds};

/// Why a message is refused.
pub(super) type RefusalReason = &'static str;

/// The object that a client names by its id, if it controls or sees it. For an object that the client does not see the result
/// is the same as for one that does not exist, so a client cannot find out about it.
pub(super) fn named_object(
    world: &World,
    own: Entity,
    id: u32,
    generation: u32,
) -> Result<Entity, RefusalReason> {
    const UNSEEN: RefusalReason = "names an object that it neither sees nor controls";
    let object = world.get::<Object>(own).ok_or("controls no object")?;
    let scene = object.scene_entity();
    let ids = world.get::<SceneIds>(scene).ok_or(UNSEEN)?;
    let target = ids
        .resolve(ObjectId(id), Generation(generation))
        .ok_or(UNSEEN)?;
    if target == own {
        return Ok(target);
    }
    let interest = world.get::<SceneInterest>(scene).ok_or(UNSEEN)?;
    let is_as_seen = interest.generation(ObjectId(id)) == Generation(generation);
    let is_seen = is_as_seen && interest.views().visible(object.id().0, id);
    is_seen.then_some(target).ok_or(UNSEEN)
}
