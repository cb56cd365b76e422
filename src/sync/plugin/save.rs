//! Changes of objects, for a store.
//!
//! ```text
//! collect ─▶ a mask per object ─ every few ticks, in phases ─▶ SaveRequest ─▶ the store
//!                  ▲                                                             │
//!                  └────────────────────── SaveFailed ◀──────────────────────────┘
//! ```
//! A request contains values, so it can outlive its object: a despawned object is saved at once. Values that the store did not save come
//! back as [`SaveFailed`] and are requested again, with the newest values.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use tracing::error;

use super::attributes::Attributes;
use super::dirty::{DirtyMasks, MaskSlot, assign_player, unassign_player};
use super::order::SyncSystems;
use super::save_request::{SaveRequest, owner_ref, request_of};
use super::settings::SyncSettings;
use super::stats::SyncStats;
use crate::memory::MemoryAppExt;
use crate::sim::SimTick;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet};
use crate::world::{ObjectRef, PlayerId};

/// The store could not save a request. The store writes this message, and the request is repeated.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::sync::{SaveFailed, SaveRequest};
///
/// /// A store of your own: what it could not save comes back with the next requests.
/// fn save(mut requests: MessageReader<SaveRequest>, mut failed: MessageWriter<SaveFailed>) {
///     for request in requests.read() {
///         if std::fs::write(format!("{:?}", request.player), format!("{:?}", request.values)).is_err() {
///             failed.write(SaveFailed(request.clone()));
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SaveFailed(pub SaveRequest);

/// Requests of despawned objects that the store could not save.
#[derive(Resource, Clone, Debug, Default)]
struct DeferredSaves(Vec<SaveRequest>);

pub(super) fn install(app: &mut App) {
    app.init_resource::<DeferredSaves>()
        .add_message::<SaveFailed>()
        .add_counted_message::<SaveRequest>("sync")
        .add_observer(assign_player)
        .add_observer(unassign_player)
        .add_systems(
            FixedUpdate,
            (retry_failed, write_save_requests)
                .chain()
                .in_set(SyncSystems::Save),
        );
}

/// Marks values that a store could not save again, or keeps the request if its object is gone.
fn retry_failed(
    mut failed: MessageReader<SaveFailed>,
    mut masks: ResMut<DirtyMasks>,
    mut orphans: ResMut<DeferredSaves>,
    mut stats: ResMut<SyncStats>,
    attributes: Res<Attributes>,
    settings: Res<SyncSettings>,
    objects: Query<&MaskSlot>,
) {
    for SaveFailed(request) in failed.read() {
        if let Ok(&slot) = objects.get(request.entity) {
            let bits = (0..).zip(attributes.specs()).filter_map(|(bit, spec)| {
                let asked = request.values.iter().any(|&(id, _)| id == spec.id)
                    || request.removed.contains(&spec.id);
                asked.then_some(bit)
            });
            bits.for_each(|bit| masks.mark_unsaved(slot, bit));
        } else if orphans.0.len() < settings.deferred_saves_max as usize {
            orphans.0.push(request.clone());
        } else {
            stats.saves_dropped += 1;
            error!(
                player = ?request.player,
                deferred_saves_max = settings.deferred_saves_max,
                "save dropped: retry queue of despawned objects full"
            );
        }
    }
}

/// Requests saves of the changes of objects whose turn it is.
#[expect(
    clippy::disallowed_methods,
    reason = "reads the world and writes buffers; runs no command or hook"
)]
fn write_save_requests(world: &mut World, mut due: Local<Vec<(ObjectRef, Entity, AttributeSet)>>) {
    let tick = world.resource::<SimTick>().0;
    let every = u64::from(world.resource::<SyncSettings>().save_every_ticks.max(1));
    due.clear();
    world.resource_scope(|world, mut masks: Mut<DirtyMasks>| {
        masks.drain_unsaved(|entity, mask| {
            let Some(object) = world.get_entity(entity).ok().and_then(owner_ref) else {
                mask.fill(0);
                return false;
            };
            let is_due = (tick + u64::from(object.id.0)).is_multiple_of(every);
            if is_due {
                let mut set = [0; ATTRIBUTE_WORDS];
                set[..mask.len()].copy_from_slice(mask);
                due.push((object, entity, set));
            }
            is_due
        });
        let persistent = *world.resource::<Attributes>().persistent();
        masks.drain_urgent(persistent, |entity, set| {
            if let Some(object) = world.get_entity(entity).ok().and_then(owner_ref) {
                due.push((object, entity, set));
            }
        });
    });
    due.sort_unstable_by_key(|&(object, ..)| object);
    let mut requests = if tick.is_multiple_of(every) {
        std::mem::take(&mut world.resource_mut::<DeferredSaves>().0)
    } else {
        Vec::new()
    };
    let asked = due
        .iter()
        .filter_map(|(_, entity, set)| partial_save_request(world, *entity, set));
    requests.extend(asked);
    world.resource_mut::<SyncStats>().saves += requests.len() as u64;
    world.write_message_batch(requests);
}

/// Requests a save of all persistent attributes of every object with a player, whether they changed or not: for the end of an
/// app, after its last tick.
pub fn save_all(world: &mut World) {
    let mut players: Vec<(ObjectRef, Entity)> = world
        .query_filtered::<EntityRef, With<PlayerId>>()
        .iter(world)
        .filter_map(|entity| Some((owner_ref(entity)?, entity.id())))
        .collect();
    players.sort_unstable();
    let requests = players.into_iter();
    let requests = requests.filter_map(|(_, entity)| full_save_request(world, entity));
    let requests: Vec<SaveRequest> = requests.collect();
    world.resource_mut::<SyncStats>().saves += requests.len() as u64;
    world.write_message_batch(requests);
}

/// All persistent attributes of an object with their current values; `None` for an entity without persistent attributes.
#[must_use]
pub fn full_save_request(world: &World, entity: Entity) -> Option<SaveRequest> {
    let persistent = world.get_resource::<Attributes>()?.persistent();
    partial_save_request(world, entity, persistent)
}

/// The current values of a set of an object's attributes, as a save request.
fn partial_save_request(world: &World, entity: Entity, set: &AttributeSet) -> Option<SaveRequest> {
    let attributes = world.get_resource::<Attributes>()?;
    let tick = world.get_resource::<SimTick>()?.0;
    let object = world.get_entity(entity).ok()?;
    let masks = world.get_resource::<DirtyMasks>()?;
    let lost = object.get::<MaskSlot>().map(|&slot| masks.removed_of(slot));
    request_of(object, attributes, (set, &lost.unwrap_or_default()), tick)
}
