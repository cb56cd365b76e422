//! What changed of objects, for whoever stores it.
//!
//! ```text
//! collect ─▶ a mask an object ─ every so many ticks, phased ─▶ SaveRequest ─▶ the store
//!                  ▲                                                            │
//!                  └────────────────────── SaveFailed ◀─────────────────────────┘
//! ```
//! A request carries values, so that it outlives its object: one that goes away asks to be stored at once. What a store
//! could not take comes back as [`SaveFailed`] and is asked for again, with what is newest by then.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use tracing::error;

use super::attributes::{ATTRIBUTE_WORDS, AttributeSet, Attributes};
use super::collect::{both, is_empty};
use super::dirty::{DirtyMasks, MaskSlot, bearer};
use super::{SyncSettings, SyncStats};
use crate::sim::{HeartbeatSystems, SimTick};
use crate::sync::masks::bits;
use crate::world::{ObjectRef, PlayerId};

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
}

/// The store could not take a request. Whoever stores writes it, and is asked again.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SaveFailed(pub SaveRequest);

/// Requests of objects that are gone, which the store could not take.
#[derive(Resource, Clone, Debug, Default)]
struct Orphans(Vec<SaveRequest>);

pub(super) fn install(app: &mut App) {
    app.init_resource::<Orphans>()
        .add_message::<SaveRequest>()
        .add_message::<SaveFailed>()
        .add_systems(
            FixedUpdate,
            (take_back, request)
                .chain()
                .after(super::collect::collect)
                .in_set(HeartbeatSystems::Collect),
        );
}

/// What a store could not take is marked again, or kept where its object is gone.
fn take_back(
    mut failed: MessageReader<SaveFailed>,
    mut masks: ResMut<DirtyMasks>,
    mut orphans: ResMut<Orphans>,
    mut stats: ResMut<SyncStats>,
    attributes: Res<Attributes>,
    settings: Res<SyncSettings>,
    objects: Query<&MaskSlot>,
) {
    for SaveFailed(request) in failed.read() {
        if let Ok(&slot) = objects.get(request.entity) {
            let bits = (0..).zip(attributes.specs()).filter_map(|(bit, spec)| {
                let asked = request.values.iter().any(|&(id, _)| id == spec.id);
                asked.then_some(bit)
            });
            bits.for_each(|bit| masks.mark_unsaved(slot, bit));
        } else if orphans.0.len() < settings.orphans_max as usize {
            orphans.0.push(request.clone());
        } else {
            stats.saves_lost += 1;
            error!(
                player = ?request.player,
                "values of an object that is gone are lost: {} others wait for the store already",
                settings.orphans_max
            );
        }
    }
}

/// Asks for what changed of those objects whose turn it is.
fn request(world: &mut World, mut due: Local<Vec<(ObjectRef, Entity, AttributeSet)>>) {
    let tick = world.resource::<SimTick>().0;
    let every = u64::from(world.resource::<SyncSettings>().save_every_ticks.max(1));
    due.clear();
    world.resource_scope(|world, mut masks: Mut<DirtyMasks>| {
        masks.drain_unsaved(|entity, mask| {
            let Some(object) = world.get_entity(entity).ok().and_then(bearer) else {
                mask.fill(0);
                return;
            };
            if (tick + u64::from(object.id.0)).is_multiple_of(every) {
                let mut set = [0; ATTRIBUTE_WORDS];
                set[..mask.len()].copy_from_slice(mask);
                mask.fill(0);
                due.push((object, entity, set));
            }
        });
    });
    due.sort_unstable_by_key(|&(object, ..)| object);
    let mut requests = if tick.is_multiple_of(every) {
        std::mem::take(&mut world.resource_mut::<Orphans>().0)
    } else {
        Vec::new()
    };
    let attributes = world.resource::<Attributes>();
    for &(_, entity, set) in &*due {
        let object = world.get_entity(entity).ok();
        requests.extend(object.and_then(|object| request_of(object, attributes, &set, tick)));
    }
    world.resource_mut::<SyncStats>().saves += requests.len() as u64;
    world.write_message_batch(requests);
}

/// The values of an object as they are now.
fn request_of(
    object: EntityRef,
    attributes: &Attributes,
    set: &AttributeSet,
    tick: u64,
) -> Option<SaveRequest> {
    let mut values = Vec::new();
    for registered in bits(set).map_while(|bit| attributes.get(bit)) {
        let mut value = Vec::new();
        if registered.encode(object, &mut value) {
            values.push((registered.spec.id, value));
        }
    }
    (!values.is_empty()).then_some(SaveRequest {
        entity: object.id(),
        object: bearer(object)?,
        player: object.get::<PlayerId>().copied(),
        tick,
        values,
    })
}

/// An object goes: whatever of it is not stored yet is asked for now.
pub(super) fn save_last(world: &mut DeferredWorld, entity: Entity, slot: MaskSlot) {
    let (Some(masks), Some(attributes), Some(tick)) = (
        world.get_resource::<DirtyMasks>(),
        world.get_resource::<Attributes>(),
        world.get_resource::<SimTick>(),
    ) else {
        return;
    };
    let set = both(masks.of_both(slot), *attributes.persistent());
    if is_empty(&set) {
        return;
    }
    let object = world.get_entity(entity).ok();
    let request = object.and_then(|object| request_of(object, attributes, &set, tick.0));
    if let Some(request) = request {
        if let Some(mut stats) = world.get_resource_mut::<SyncStats>() {
            stats.saves += 1;
        }
        world.write_message(request);
    }
}
