//! The slot of every object in the dirty masks.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;

use super::save_request::{save_for_former_player, save_on_despawn};
use crate::memory::MemoryUse;
use crate::sim::StateHasher;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, intersection};
use crate::sync::masks::{SlotMasks, WORD_BITS, bits};
use crate::world::PlayerId;

/// An object's place in [`DirtyMasks`]: on every object and scene, given out when it comes and back when it goes.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(on_insert = on_slot_inserted, on_discard = on_slot_discarded, clone_behavior = Ignore)]
pub struct MaskSlot(u32);

/// Which attributes of which objects changed since they were last collected.
///
/// Game code that writes often marks by hand, for two `or`s; what is written the ordinary way is found by change detection
/// (see [`ReplicateAppExt`](super::ReplicateAppExt)).
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
pub struct DirtyMasks {
    /// What clients were not told yet.
    unsent: SlotMasks,
    /// What the store was not asked to keep yet.
    unsaved: SlotMasks,
    /// Attributes whose components were taken off the bearer, since it came or became its player's.
    removed: SlotMasks,
    /// The player whose the bearer is, by slot.
    players: Vec<Option<PlayerId>>,
    /// Who has each slot.
    entities: Vec<Option<Entity>>,
    free: Vec<u32>,
    /// Whom the store is asked to keep in this tick, whosever turn it is.
    urgent_saves: Vec<u32>,
}

impl DirtyMasks {
    /// Marks an attribute of an object as changed; `bit` is what its registration returned, another one is ignored.
    #[inline]
    pub fn mark(&mut self, slot: MaskSlot, bit: u32) {
        self.unsent.mark(slot.0, bit);
    }

    /// Marks an attribute whose component an object loses; nothing when all of the object goes, slot included.
    pub(super) fn mark_removed(&mut self, entity: Entity, slot: MaskSlot, bit: u32) {
        if self.entities.get(slot.0 as usize) == Some(&Some(entity)) {
            self.mark(slot, bit);
            self.removed.mark(slot.0, bit);
        }
    }

    /// What an object had and lost since it came or became its player's, whether it has it again or not.
    pub(super) fn removed_of(&self, slot: MaskSlot) -> AttributeSet {
        union([&self.removed], slot)
    }

    /// Whose an object is from now on: what it lost before is no loss of another player. Whose it was until then, if that is another,
    /// with what it lost as that player's.
    fn assign(
        &mut self,
        (entity, slot): (Entity, MaskSlot),
        player: Option<PlayerId>,
    ) -> Option<(PlayerId, AttributeSet)> {
        let place = slot.0 as usize;
        let is_bearer = self.entities.get(place) == Some(&Some(entity));
        if !is_bearer || self.players[place] == player {
            return None;
        }
        let lost = self.removed_of(slot);
        if player.is_some() {
            self.removed.clear(slot.0);
        }
        let former = std::mem::replace(&mut self.players[place], player);
        former.map(|former| (former, lost))
    }

    /// Whether anything of an object changed.
    #[must_use]
    pub fn is_dirty(&self, slot: MaskSlot) -> bool {
        self.unsent.is_dirty(slot.0)
    }

    /// Has the store asked to keep what changed of an object in this tick (the next one, after
    /// [`SyncSystems::Save`](super::SyncSystems::Save)), and not when its turn comes.
    pub fn save_now(&mut self, slot: MaskSlot) {
        self.urgent_saves.push(slot.0);
    }

    /// Whom [`save_now`](Self::save_now) named, with what of the attributes that are kept clients were not told or the store was not asked for.
    /// It is asked again when their turn comes, as in [`drain_unsaved`](Self::drain_unsaved).
    pub(super) fn drain_urgent(
        &mut self,
        persistent: AttributeSet,
        mut take: impl FnMut(Entity, AttributeSet),
    ) {
        for slot in std::mem::take(&mut self.urgent_saves) {
            if let Some(&Some(entity)) = self.entities.get(slot as usize) {
                let set = intersection(self.unsent_or_unsaved(MaskSlot(slot)), persistent);
                bits(&set).for_each(|bit| self.unsaved.mark(slot, bit as u32));
                take(entity, set);
            }
        }
    }

    pub(super) fn mark_unsaved(&mut self, slot: MaskSlot, bit: u32) {
        self.unsaved.mark(slot.0, bit);
    }

    pub(super) fn widen(&mut self, words: usize) {
        self.unsent.widen(words);
        self.unsaved.widen(words);
        self.removed.widen(words);
    }

    /// Shows every object of which something changed with what that is. What `take` leaves in the mask stays.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Entity, &mut [u64])) {
        drain(&mut self.unsent, &self.entities, |entity, _, mask| {
            take(entity, mask)
        });
    }

    /// Shows every object of which something is to be stored with what that is. Where `take` says that the store is asked for it,
    /// only that stays of which clients were not told: a value that is what clients hold by then is no change to them, and is
    /// one to the store.
    pub(super) fn drain_unsaved(&mut self, mut take: impl FnMut(Entity, &mut [u64]) -> bool) {
        let (masks, unsaved) = (&self.unsent, &mut self.unsaved);
        drain(unsaved, &self.entities, |entity, slot, mask| {
            if take(entity, mask) {
                let untold = masks.mask_of(slot).iter();
                mask.iter_mut()
                    .zip(untold)
                    .for_each(|(mask, word)| *mask &= word);
            }
        });
    }

    /// What of an object clients were not told or the store was not asked to keep.
    pub(super) fn unsent_or_unsaved(&self, slot: MaskSlot) -> AttributeSet {
        union([&self.unsent, &self.unsaved], slot)
    }

    fn allocate(&mut self, entity: Entity, player: Option<PlayerId>) -> MaskSlot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entities.push(None);
            self.players.push(None);
            let slots = self.entities.len();
            for masks in [&mut self.unsent, &mut self.unsaved, &mut self.removed] {
                masks.grow(slots);
            }
            slots as u32 - 1
        });
        self.entities[slot as usize] = Some(entity);
        self.players[slot as usize] = player;
        // All that it comes with is new.
        let bits = self.unsent.words() * WORD_BITS;
        (0..bits as u32).for_each(|bit| self.unsent.mark(slot, bit));
        MaskSlot(slot)
    }

    fn release(&mut self, slot: MaskSlot) {
        if let Some(bearer) = self.entities.get_mut(slot.0 as usize)
            && bearer.take().is_some()
        {
            self.unsent.clear(slot.0);
            self.unsaved.clear(slot.0);
            self.removed.clear(slot.0);
            self.free.push(slot.0);
        }
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for &slot in &self.urgent_saves {
            hasher.write_u64(u64::from(slot));
        }
        for masks in [&self.unsent, &self.unsaved, &self.removed] {
            for slot in (0..self.entities.len() as u32).filter(|&slot| masks.is_dirty(slot)) {
                hasher.write_u64(u64::from(slot));
                let words = masks.mask_of(slot).iter();
                words.for_each(|&word| hasher.write_u64(word));
            }
        }
    }
}

fn union<const N: usize>(all: [&SlotMasks; N], slot: MaskSlot) -> AttributeSet {
    let mut set = [0; ATTRIBUTE_WORDS];
    for masks in all {
        let words = masks.mask_of(slot.0).iter();
        set.iter_mut()
            .zip(words)
            .for_each(|(set, word)| *set |= word);
    }
    set
}

fn drain(
    masks: &mut SlotMasks,
    bearers: &[Option<Entity>],
    mut take: impl FnMut(Entity, u32, &mut [u64]),
) {
    masks.drain(|slot, mask| match bearers[slot as usize] {
        Some(entity) => take(entity, slot, mask),
        None => mask.fill(0),
    });
}

fn on_slot_inserted(mut world: DeferredWorld, context: HookContext) {
    let player = world.get::<PlayerId>(context.entity).copied();
    let Some(mut masks) = world.get_resource_mut::<DirtyMasks>() else {
        return;
    };
    let allotted = masks.allocate(context.entity, player);
    if let Some(mut slot) = world.get_mut::<MaskSlot>(context.entity) {
        *slot = allotted;
    }
}

fn on_slot_discarded(mut world: DeferredWorld, context: HookContext) {
    let Some(slot) = world.get::<MaskSlot>(context.entity).copied() else {
        return;
    };
    let masks = world.get_resource::<DirtyMasks>();
    if let Some((unsaved, lost)) =
        masks.map(|masks| (masks.unsent_or_unsaved(slot), masks.removed_of(slot)))
    {
        save_on_despawn(&mut world, context.entity, unsaved, &lost);
    }
    if let Some(mut masks) = world.get_resource_mut::<DirtyMasks>() {
        masks.release(slot);
    }
}

/// An object becomes a player's.
pub(super) fn assign_player(given: On<Insert<PlayerId>>, mut world: DeferredWorld) {
    let player = world.get::<PlayerId>(given.entity).copied();
    change_player(&mut world, given.entity, player);
}

/// An object is no player's any more.
pub(super) fn unassign_player(taken: On<Remove<PlayerId>>, mut world: DeferredWorld) {
    change_player(&mut world, taken.entity, None);
}

/// A store is asked at once to keep what the former player had and lost: later nobody knows whose it was.
fn change_player(world: &mut DeferredWorld, entity: Entity, player: Option<PlayerId>) {
    let Some(slot) = world.get::<MaskSlot>(entity).copied() else {
        return;
    };
    let masks = world.get_resource_mut::<DirtyMasks>();
    let former = masks.and_then(|mut masks| masks.assign((entity, slot), player));
    if let Some((former, lost)) = former {
        save_for_former_player(world, entity, former, &lost);
    }
}
