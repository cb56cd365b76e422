//! Encodes the attributes in the dirty masks as messages.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use tracing::warn;

use super::attributes::{AttributeSpec, Attributes};
use super::audience::Audience;
use super::dirty::{DirtyMasks, MaskSlot};
use super::messages::{write_delta, write_unseen_delta};
use super::replicator::Replicator;
use super::save_request::owner_ref;
use super::sent_values::SentValues;
use super::stats::SyncStats;
use crate::memory::{MemoryUse, clear_and_shrink};
use crate::outbox::{MessageSpan, Outbox};
use crate::sim::{HeartbeatPhase, Overload, SimTick, WarnedCauses, Workers};
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, intersection, is_empty};
use crate::sync::masks::{WORD_BITS, bits};
use crate::sync::message_list::MessageList;
use crate::sync::scene_messages::{ObjectChanges, PARTY};
use crate::world::ObjectRef;

/// Fewer are not worth another thread.
const CHUNK_MIN: usize = if cfg!(test) { 2 } else { 64 };

/// The pending attributes of one object.
#[derive(Clone, Copy, Debug)]
struct PendingCollect {
    object: ObjectRef,
    entity: Entity,
    set: AttributeSet,
}

/// The differences between an object and what clients have of it.
#[derive(Clone, Copy, Debug)]
struct ChangedValues {
    object: ObjectRef,
    entity: Entity,
    /// Attributes with changed values.
    changed: AttributeSet,
    /// Attributes that it no longer has.
    removed: AttributeSet,
}

/// The results of one worker.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct CollectWorker {
    changed: Vec<ChangedValues>,
    /// All values, one attribute after the other.
    values: MessageList,
    /// The current value.
    value: Vec<u8>,
    dirty: u64,
    clamped: u64,
    /// An object with a value that its encoding cannot represent, for each such attribute.
    #[memory(skip)]
    clamped_of: SmallVec<[(usize, ObjectRef); 1]>,
}

/// Buffers of [`collect`].
#[derive(Resource, Debug, Default, MemoryUse)]
pub(super) struct CollectBuffers {
    pending: Vec<PendingCollect>,
    #[memory(each)]
    workers: Vec<CollectWorker>,
    warned: WarnedCauses,
}

/// Encodes all changes that are scheduled, and all changes of objects that a client starts to know: so all clients that know
/// an object have the same values of it.
///
/// Values are encoded and compared in parallel, then stored and sent in the order of the objects.
#[expect(
    clippy::disallowed_methods,
    reason = "values are read from entities and packets written; no command or hook runs"
)]
pub(super) fn collect(world: &mut World) {
    let pool = *world.resource::<Workers>();
    world.resource_scope(|world, mut buffers: Mut<CollectBuffers>| {
        let CollectBuffers {
            pending: due,
            workers,
            warned,
        } = &mut *buffers;
        find_pending(world, due);
        world.resource_scope(|world, attributes: Mut<Attributes>| {
            let seen: &World = world;
            pool.for_each_chunk(due, CHUNK_MIN, workers, |worker, _, due| {
                due.iter()
                    .for_each(|due| worker.compare(seen, due, &attributes));
            });
            // Chunks are consecutive, and so are the results of their workers.
            workers.iter_mut().for_each(|worker| {
                worker.warn_of_clamped(&attributes, warned);
                worker.commit(world, &attributes);
            });
        });
        clear_and_shrink(due);
    });
}

/// Finds the scheduled attributes of each object.
#[expect(
    clippy::disallowed_methods,
    reason = "reads the world and writes buffers; runs no command or hook"
)]
fn find_pending(world: &mut World, due: &mut Vec<PendingCollect>) {
    let (phase, tick) = (
        *world.resource::<HeartbeatPhase>(),
        world.resource::<SimTick>().0,
    );
    let stretch = 1 << world.resource::<Overload>().update_doublings();
    world.resource_scope(|world, mut masks: Mut<DirtyMasks>| {
        let (replicator, attributes) = (
            world.resource::<Replicator>(),
            world.resource::<Attributes>(),
        );
        masks.drain(|entity, mask| {
            let Some(object) = world.get_entity(entity).ok().and_then(owner_ref) else {
                mask.fill(0);
                return;
            };
            let id = object.id.0;
            let now = if replicator.is_requested(object.scene, id) {
                [!0; ATTRIBUTE_WORDS]
            } else {
                let beat = tick / u64::from(phase.period) + u64::from(id);
                let in_heartbeat = phase.covers(id) && beat.is_multiple_of(stretch);
                attributes.scheduled(tick, id, in_heartbeat, stretch)
            };
            let mut set = [0; ATTRIBUTE_WORDS];
            for ((mask, now), set) in mask.iter_mut().zip(now).zip(&mut set) {
                *set = *mask & now;
                *mask &= !now;
            }
            if !is_empty(&set) {
                due.push(PendingCollect {
                    object,
                    entity,
                    set,
                });
            }
        });
    });
    due.sort_unstable_by_key(|due| due.object);
}

impl CollectWorker {
    /// Finds the values of an object that differ from those of clients, or that it no longer has.
    fn compare(&mut self, world: &World, due: &PendingCollect, attributes: &Attributes) {
        let entity = world.get_entity(due.entity).ok();
        let Some((entity, sent)) = entity.and_then(|it| Some((it, it.get::<SentValues>()?))) else {
            return;
        };
        let mut changed = ChangedValues {
            object: due.object,
            entity: due.entity,
            changed: [0; ATTRIBUTE_WORDS],
            removed: [0; ATTRIBUTE_WORDS],
        };
        for bit in bits(&due.set) {
            // A new mask has all bits set, and one that was set by hand may belong to no attribute.
            let Some(registered) = attributes.get(bit) else {
                break;
            };
            let (word, flag) = (bit / WORD_BITS, 1 << (bit % WORD_BITS));
            let before = sent.get(bit);
            self.value.clear();
            if let Some(fits) = registered.encode(entity, &mut self.value) {
                self.dirty += 1;
                if !fits {
                    self.clamped += 1;
                    if self.clamped_of.iter().all(|known| known.0 != bit) {
                        self.clamped_of.push((bit, due.object));
                    }
                }
                if before != Some(&self.value) {
                    changed.changed[word] |= flag;
                    self.values
                        .push(|bytes| bytes.extend_from_slice(&self.value));
                }
            } else if before.is_some() {
                self.dirty += 1;
                changed.removed[word] |= flag;
            }
        }
        if !is_empty(&changed.all()) {
            self.changed.push(changed);
        }
    }

    /// Logs, once for each attribute, that clients do not receive the value that the game has set.
    fn warn_of_clamped(&mut self, attributes: &Attributes, warned: &mut WarnedCauses) {
        for (bit, object) in self.clamped_of.drain(..) {
            if let Some(attribute) = attributes.get(bit)
                && warned.is_new(0, bit as u64)
            {
                let AttributeSpec { name, encoding, .. } = &attribute.spec;
                warn!(
                    attribute = name,
                    ?encoding,
                    ?object,
                    "attribute value cut: its encoding cannot represent it, clients receive the nearest value"
                );
            }
        }
    }

    /// Applies the results, encodes them, counts them and clears them.
    #[expect(
        clippy::disallowed_methods,
        reason = "values are read from entities and packets written; no command or hook runs"
    )]
    fn commit(&mut self, world: &mut World, attributes: &Attributes) {
        world.resource_scope(|world, mut replicator: Mut<Replicator>| {
            world.resource_scope(|world, mut outbox: Mut<Outbox>| {
                let mut values = self.values.iter();
                for changed in &self.changed {
                    store_sent_values(world, changed, &mut values);
                    write_deltas(world, changed, attributes, &mut replicator, &mut outbox);
                }
                debug_assert!(values.next().is_none(), "each value belongs to an object");
            });
        });
        let different = self.changed.iter().map(|changed| changed.all());
        let different = different.map(|all| bits(&all).count() as u64);
        let mut stats = world.resource_mut::<SyncStats>();
        stats.attributes_changed += different.sum::<u64>();
        stats.attributes_dirty += std::mem::take(&mut self.dirty);
        stats.attributes_clamped += std::mem::take(&mut self.clamped);
        self.values.clear();
        clear_and_shrink(&mut self.changed);
    }
}

impl ChangedValues {
    fn all(&self) -> AttributeSet {
        std::array::from_fn(|word| self.changed[word] | self.removed[word])
    }
}

/// Sets the values that clients have of an object to the current ones.
fn store_sent_values<'a>(
    world: &mut World,
    changed: &ChangedValues,
    values: &mut impl Iterator<Item = &'a [u8]>,
) {
    let mut sent = world.get_mut::<SentValues>(changed.entity);
    debug_assert!(
        sent.is_some(),
        "no object is despawned while values are collected"
    );
    // Take the value first in any case, or one of the next object would be lost.
    for (bit, value) in bits(&changed.changed).zip(values) {
        if let Some(sent) = &mut sent {
            sent.set(bit, value);
        }
    }
    let Some(mut sent) = sent else {
        return;
    };
    bits(&changed.removed).for_each(|bit| sent.remove(bit));
}

/// Writes the changes of an object, once for all clients that receive the same attributes of it.
fn write_deltas(
    world: &mut World,
    of: &ChangedValues,
    attributes: &Attributes,
    replicator: &mut Replicator,
    outbox: &mut Outbox,
) {
    let (Some(sent), Some(records)) = (
        world.get::<SentValues>(of.entity),
        replicator.scenes.get_mut(&of.object.scene),
    ) else {
        return;
    };
    let changed = of.all();
    let (id, generation) = (of.object.id.0, of.object.generation.0);
    let mut written = EncodedOnce::new();
    // A scene is not visible: all clients receive it as an unseen object.
    let is_scene = id == 0;
    let seen = if is_scene {
        &[]
    } else {
        attributes.viewer_variants()
    };
    for &variant in seen {
        let variant = usize::from(variant.0);
        let set = intersection(changed, attributes.variant_sets()[variant]);
        if is_empty(&set) {
            continue;
        }
        let span = encode_once(&mut written, outbox, set, |bytes| {
            write_delta(bytes, id, generation, attributes, (sent, &set));
        });
        records.deltas[variant].set(id, span);
        records.mark_changed(id, ObjectChanges::DELTA);
    }
    written.clear();
    let told_to = |relation| {
        let variant = attributes.unseen_variant(relation);
        variant.map(|variant| attributes.variant_sets()[usize::from(variant.0)])
    };
    if told_to(Audience::SCENE).is_some_and(|set| !is_empty(&intersection(changed, set))) {
        records.publish(id, generation);
    }
    let is_public = records.public.binary_search(&(id, generation)).is_ok();
    if is_public || records.affiliation(id)[PARTY] != 0 {
        for &variant in attributes.unseen_variants() {
            let variant = usize::from(variant.0);
            let set = intersection(changed, attributes.variant_sets()[variant]);
            if is_empty(&set) {
                continue;
            }
            let span = encode_once(&mut written, outbox, set, |bytes| {
                write_unseen_delta(bytes, of.object, attributes, (sent, &set));
            });
            records.unseen_deltas[variant].set(id, span);
            records.mark_changed(id, ObjectChanges::UNSEEN_DELTA);
        }
    }
    let stored = intersection(changed, *attributes.persistent());
    if !is_empty(&stored) {
        let slot = world.get::<MaskSlot>(of.entity).copied();
        let mut masks = world.resource_mut::<DirtyMasks>();
        if let Some(slot) = slot {
            bits(&stored).for_each(|bit| masks.mark_unsaved(slot, bit as u32));
        }
    }
}

/// The messages written for an object in this tick, by their attributes.
type EncodedOnce = SmallVec<[(AttributeSet, MessageSpan); 4]>;

fn encode_once(
    written: &mut EncodedOnce,
    outbox: &mut Outbox,
    set: AttributeSet,
    write: impl FnOnce(&mut Vec<u8>),
) -> MessageSpan {
    if let Some(&(_, span)) = written.iter().find(|(other, _)| *other == set) {
        return span;
    }
    let span = outbox.batch_mut().push_shared(write);
    written.push((set, span));
    span
}
