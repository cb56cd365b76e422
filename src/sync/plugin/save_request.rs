//! What a store is asked to keep of an object.

use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use super::attributes::Attributes;
use super::sent_values::SentValues;
use super::stats::SyncStats;
use crate::sim::SimTick;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, both, is_empty};
use crate::sync::masks::bits;
use crate::world::{Object, ObjectRef, PlayerId, Scene};

/// Values of an object that are to be stored.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SaveRequest {
    /// Whose; it may be gone.
    pub entity: Entity,
    /// Whose, as messages and files name it.
    pub object: ObjectRef,
    /// The player that controlled it.
    pub player: Option<PlayerId>,
    /// When the values held. A store that has a later one of this player keeps that.
    pub tick: u64,
    /// Attributes by ascending bit: their number and encoded value.
    pub values: Vec<(u16, Vec<u8>)>,
    /// The numbers of attributes that it had and has no more, by ascending bit.
    pub removed: Vec<u16>,
}

/// The values of an object as they are now.
pub(super) fn request_of(
    object: EntityRef,
    attributes: &Attributes,
    set: &AttributeSet,
    tick: u64,
) -> Option<SaveRequest> {
    let (mut values, mut removed) = (Vec::new(), Vec::new());
    let sent = object.get::<SentValues>();
    // What a store has of a player may be from a time before this object.
    let is_player = object.contains::<PlayerId>();
    for (bit, registered) in bits(set).map_while(|bit| Some((bit, attributes.get(bit)?))) {
        let mut value = Vec::new();
        if registered.encode(object, &mut value).is_some() {
            values.push((registered.spec.id, value));
        } else if is_player || sent.is_some_and(|sent| sent.had(bit)) {
            removed.push(registered.spec.id);
        }
    }
    let is_empty = values.is_empty() && removed.is_empty();
    (!is_empty).then_some(SaveRequest {
        entity: object.id(),
        object: bearer(object)?,
        player: object.get::<PlayerId>().copied(),
        tick,
        values,
        removed,
    })
}

/// Whose attributes an entity bears: an object's, or a scene's.
pub(super) fn bearer(entity: EntityRef) -> Option<ObjectRef> {
    let object = entity.get::<Object>().map(Object::reference);
    object.or_else(|| entity.get::<Scene>().map(Scene::reference))
}

/// An object goes: whatever of it is not stored yet is asked for now.
pub(super) fn save_last(world: &mut DeferredWorld, entity: Entity, unsaved: AttributeSet) {
    let (Some(attributes), Some(tick)) = (
        world.get_resource::<Attributes>(),
        world.get_resource::<SimTick>(),
    ) else {
        return;
    };
    let object = world.get_entity(entity).ok();
    // What was written in this tick is not marked yet, and of a player nothing may be lost.
    let is_player = object.is_some_and(|object| object.contains::<PlayerId>());
    let unsaved = if is_player {
        [!0; ATTRIBUTE_WORDS]
    } else {
        unsaved
    };
    let set = both(unsaved, *attributes.persistent());
    if is_empty(&set) {
        return;
    }
    let request = object.and_then(|object| request_of(object, attributes, &set, tick.0));
    if let Some(request) = request {
        if let Some(mut stats) = world.get_resource_mut::<SyncStats>() {
            stats.saves += 1;
        }
        world.write_message(request);
    }
}
