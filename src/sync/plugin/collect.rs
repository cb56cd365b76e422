//! Dirty masks become messages.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::attributes::Attributes;
use super::audience::Audience;
use super::dirty::{DirtyMasks, MaskSlot};
use super::messages::{write_delta, write_remote_delta};
use super::replicator::Replicator;
use super::save_request::bearer;
use super::sent_values::SentValues;
use super::stats::SyncStats;
use crate::outbox::{MessageSpan, Outbox};
use crate::sim::{HeartbeatPhase, Overload, SimTick};
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, both, is_empty};
use crate::sync::masks::{WORD_BITS, bits};
use crate::sync::records::{LinkNews, PARTY};
use crate::world::ObjectRef;

/// What is collected of one object.
#[derive(Clone, Copy, Debug)]
struct Due {
    object: ObjectRef,
    entity: Entity,
    set: AttributeSet,
}

/// Buffers of [`collect`].
#[derive(Debug, Default)]
pub(super) struct Buffers {
    due: Vec<Due>,
    /// The value in hand.
    value: Vec<u8>,
}

/// Encodes what changed and is due, and all that changed of those that somebody comes to know: so all that know an object
/// hold the same values of it.
pub(super) fn collect(world: &mut World, mut buffers: Local<Buffers>) {
    let (phase, tick) = (
        *world.resource::<HeartbeatPhase>(),
        world.resource::<SimTick>().0,
    );
    let stretch = 1 << world.resource::<Overload>().update_doublings();
    let Buffers { due, value } = &mut *buffers;
    due.clear();
    world.resource_scope(|world, mut masks: Mut<DirtyMasks>| {
        let (replicator, attributes) = (
            world.resource::<Replicator>(),
            world.resource::<Attributes>(),
        );
        masks.drain(|entity, mask| {
            let Some(object) = world.get_entity(entity).ok().and_then(bearer) else {
                mask.fill(0);
                return;
            };
            let id = object.id.0;
            let now = if replicator.is_wanted(object.scene, id) {
                [!0; ATTRIBUTE_WORDS]
            } else {
                let beat = tick / u64::from(phase.of) + u64::from(id);
                let in_heartbeat = phase.covers(id) && beat.is_multiple_of(stretch);
                attributes.due(tick, id, in_heartbeat, stretch)
            };
            let mut set = [0; ATTRIBUTE_WORDS];
            for ((mask, now), set) in mask.iter_mut().zip(now).zip(&mut set) {
                *set = *mask & now;
                *mask &= !now;
            }
            if !is_empty(&set) {
                due.push(Due {
                    object,
                    entity,
                    set,
                });
            }
        });
    });
    due.sort_unstable_by_key(|due| due.object);
    world.resource_scope(|world, attributes: Mut<Attributes>| {
        world.resource_scope(|world, mut replicator: Mut<Replicator>| {
            world.resource_scope(|world, mut outbox: Mut<Outbox>| {
                for &due in &*due {
                    let changed = take_values(world, due, &attributes, value);
                    if !is_empty(&changed) {
                        tell(
                            world,
                            due,
                            changed,
                            &attributes,
                            &mut replicator,
                            &mut outbox,
                        );
                    }
                }
            });
        });
    });
}

/// Takes over the values of an object, and says which of them are others than clients hold, or are no more.
fn take_values(
    world: &mut World,
    due: Due,
    attributes: &Attributes,
    value: &mut Vec<u8>,
) -> AttributeSet {
    let mut changed = [0; ATTRIBUTE_WORDS];
    let Ok(mut object) = world.get_entity_mut(due.entity) else {
        return changed;
    };
    let Some(mut sent) = object
        .get_mut::<SentValues>()
        .map(|mut sent| std::mem::take(&mut *sent))
    else {
        return changed;
    };
    let (mut dirty, mut different, mut clamped) = (0, 0, 0);
    for bit in bits(&due.set) {
        // A fresh mask has all bits set, and one that was set by hand may be no attribute's.
        let Some(registered) = attributes.get(bit) else {
            break;
        };
        value.clear();
        if let Some(fits) = registered.encode(EntityRef::from(&object), value) {
            dirty += 1;
            clamped += u64::from(!fits);
            if sent.set(bit, value) {
                changed[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
                different += 1;
            }
        } else if sent.remove(bit) {
            changed[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
            (dirty, different) = (dirty + 1, different + 1);
        }
    }
    if let Some(mut kept) = object.get_mut::<SentValues>() {
        *kept = sent;
    }
    let mut stats = world.resource_mut::<SyncStats>();
    stats.attributes_dirty += dirty;
    stats.attributes_changed += different;
    stats.attributes_clamped += clamped;
    changed
}

/// Writes what changed of an object, once for all clients that learn the same of it.
fn tell(
    world: &mut World,
    due: Due,
    changed: AttributeSet,
    attributes: &Attributes,
    replicator: &mut Replicator,
    outbox: &mut Outbox,
) {
    let (Some(sent), Some(records)) = (
        world.get::<SentValues>(due.entity),
        replicator.scenes.get_mut(&due.object.scene),
    ) else {
        return;
    };
    let (id, generation) = (due.object.id.0, due.object.generation.0);
    let mut written = EncodedOnce::new();
    // Nobody sees a scene: all are told of it as of something remote.
    let is_scene = id == 0;
    let seen = if is_scene { &[] } else { attributes.seen() };
    for &variant in seen {
        let variant = usize::from(variant.0);
        let set = both(changed, attributes.told()[variant]);
        if is_empty(&set) {
            continue;
        }
        let span = once(&mut written, outbox, set, |bytes| {
            write_delta(bytes, id, generation, attributes, (sent, &set));
        });
        records.deltas[variant].set(id, span);
        records.tell(id, LinkNews::DELTA);
    }
    written.clear();
    let told_to = |relation| {
        let variant = attributes.remote(relation);
        variant.map(|variant| attributes.told()[usize::from(variant.0)])
    };
    if told_to(Audience::SCENE).is_some_and(|told| !is_empty(&both(changed, told))) {
        records.publish(id, generation);
    }
    let is_public = records.public.binary_search(&(id, generation)).is_ok();
    if is_public || records.affiliation(id)[PARTY] != 0 {
        for &variant in attributes.remotes() {
            let variant = usize::from(variant.0);
            let set = both(changed, attributes.told()[variant]);
            if is_empty(&set) {
                continue;
            }
            let span = once(&mut written, outbox, set, |bytes| {
                write_remote_delta(bytes, due.object, attributes, (sent, &set));
            });
            records.remote_deltas[variant].set(id, span);
            records.tell(id, LinkNews::REMOTE_DELTA);
        }
    }
    let stored = both(changed, *attributes.persistent());
    if !is_empty(&stored) {
        let slot = world.get::<MaskSlot>(due.entity).copied();
        let mut masks = world.resource_mut::<DirtyMasks>();
        if let Some(slot) = slot {
            bits(&stored).for_each(|bit| masks.mark_unsaved(slot, bit as u32));
        }
    }
}

/// What was written of an object in this tick, by what of it is told.
type EncodedOnce = SmallVec<[(AttributeSet, MessageSpan); 4]>;

fn once(
    written: &mut EncodedOnce,
    outbox: &mut Outbox,
    set: AttributeSet,
    write: impl FnOnce(&mut Vec<u8>),
) -> MessageSpan {
    if let Some(&(_, span)) = written.iter().find(|(other, _)| *other == set) {
        return span;
    }
    let span = outbox.batch_mut().share(write);
    written.push((set, span));
    span
}
