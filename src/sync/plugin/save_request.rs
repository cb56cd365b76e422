//! Requests to save an object.

use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use super::attributes::Attributes;
use super::stats::SyncStats;
use crate::sim::SimTick;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, intersection, is_empty};
use crate::sync::masks::{WORD_BITS, bits};
use crate::wire::{AttributeType, ReplicatedAttribute};
use crate::world::{Object, ObjectRef, PlayerId, SimScene};

/// Values of an object to be saved.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::sync::SaveRequest;
///
/// /// A store of your own: `PlayerStorePlugin` does this for you.
/// fn save(mut requests: MessageReader<SaveRequest>) {
///     for request in requests.read() {
///         println!("{} values of player {:?}", request.values.len(), request.player);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SaveRequest {
    /// Its entity; it may be gone.
    pub entity: Entity,
    /// Its reference for messages and files.
    pub object: ObjectRef,
    /// The player that controlled it.
    pub player: Option<PlayerId>,
    /// The tick of the values. A store that has later ones of this player keeps those.
    pub tick: u64,
    /// Attributes by ascending bit: their id and encoded value.
    pub values: Vec<(u16, Vec<u8>)>,
    /// The ids of attributes whose components were removed, by ascending bit: since the object was assigned to this player, if
    /// it has one. Attributes that the object never had are not included, so a store keeps its values of those.
    pub removed: Vec<u16>,
}

impl SaveRequest {
    /// The value of an attribute, decoded; `None` where it did not change.
    #[must_use]
    pub fn get<A: ReplicatedAttribute>(&self) -> Option<A::Value> {
        let (_, bytes) = self.values.iter().find(|(id, _)| *id == A::ID)?;
        A::Value::decode(A::ENCODING, bytes)
    }
}

/// The current values of a set of an object's attributes, and those of them that it lost.
pub(super) fn request_of(
    object: EntityRef,
    attributes: &Attributes,
    (set, lost): (&AttributeSet, &AttributeSet),
    tick: u64,
) -> Option<SaveRequest> {
    let (mut values, mut removed) = (Vec::new(), Vec::new());
    let has_lost = |bit: usize| lost[bit / WORD_BITS] >> (bit % WORD_BITS) & 1 == 1;
    for (bit, registered) in bits(set).map_while(|bit| Some((bit, attributes.get(bit)?))) {
        let mut value = Vec::new();
        if registered.encode(object, &mut value).is_some() {
            values.push((registered.spec.id, value));
        } else if has_lost(bit) {
            removed.push(registered.spec.id);
        }
    }
    let is_empty = values.is_empty() && removed.is_empty();
    (!is_empty).then_some(SaveRequest {
        entity: object.id(),
        object: owner_ref(object)?,
        player: object.get::<PlayerId>().copied(),
        tick,
        values,
        removed,
    })
}

/// The owner of an entity's attributes: an object or a scene.
pub(super) fn owner_ref(entity: EntityRef) -> Option<ObjectRef> {
    let object = entity.get::<Object>().map(Object::reference);
    object.or_else(|| entity.get::<SimScene>().map(SimScene::reference))
}

/// An object despawns: requests a save of everything that is not saved yet.
pub(super) fn save_on_despawn(
    world: &mut DeferredWorld,
    entity: Entity,
    unsaved: AttributeSet,
    lost: &AttributeSet,
) {
    // Changes of this tick are not marked yet, and nothing of a player may be lost.
    let unsaved = if world.get::<PlayerId>(entity).is_some() {
        [!0; ATTRIBUTE_WORDS]
    } else {
        unsaved
    };
    write_request(world, entity, (unsaved, lost), None);
}

/// An object is not this player's any more: requests a save of everything for that player.
pub(super) fn save_for_former_player(
    world: &mut DeferredWorld,
    entity: Entity,
    player: PlayerId,
    lost: &AttributeSet,
) {
    write_request(world, entity, ([!0; ATTRIBUTE_WORDS], lost), Some(player));
}

/// Requests a save of some attributes of an object, for its player or for another.
fn write_request(
    world: &mut DeferredWorld,
    entity: Entity,
    (set, lost): (AttributeSet, &AttributeSet),
    player: Option<PlayerId>,
) {
    let (Some(attributes), Some(tick)) = (
        world.get_resource::<Attributes>(),
        world.get_resource::<SimTick>(),
    ) else {
        return;
    };
    let set = intersection(set, *attributes.persistent());
    if is_empty(&set) {
        return;
    }
    let object = world.get_entity(entity).ok();
    let request = object.and_then(|object| request_of(object, attributes, (&set, lost), tick.0));
    if let Some(request) = request {
        if let Some(mut stats) = world.get_resource_mut::<SyncStats>() {
            stats.saves += 1;
        }
        world.write_message(SaveRequest {
            player: player.or(request.player),
            ..request
        });
    }
}
