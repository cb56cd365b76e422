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

/// An object's slot in [`DirtyMasks`]: on every object and scene, allocated when it spawns and freed when it despawns.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::sync::{DirtyMasks, MaskSlot};
///
/// #[derive(Resource)]
/// struct HealthBit(u32);
///
/// /// Marks a change that was written with `bypass_change_detection`.
/// fn mark(bit: Res<HealthBit>, mut masks: ResMut<DirtyMasks>, hurt: Query<&MaskSlot>) {
///     for &slot in &hurt {
///         masks.mark(slot, bit.0);
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(on_insert = on_slot_inserted, on_discard = on_slot_discarded, clone_behavior = Ignore)]
pub struct MaskSlot(u32);

/// The attributes of each object that changed since they were last collected.
///
/// Game code that writes often can mark changes by hand, at the cost of two `or`s; ordinary writes are found by change detection
/// (see [`ReplicateAppExt`](super::ReplicateAppExt)).
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
pub struct DirtyMasks {
    /// Changes that clients have not received.
    unsent: SlotMasks,
    /// Changes that were not requested to be saved.
    unsaved: SlotMasks,
    /// Attributes whose components were removed from the entity, since it spawned or was assigned to its player.
    removed: SlotMasks,
    /// The player of each slot's entity.
    players: Vec<Option<PlayerId>>,
    /// The entity of each slot.
    entities: Vec<Option<Entity>>,
    free: Vec<u32>,
    /// Slots to be saved in this tick, regardless of their turn.
    urgent_saves: Vec<u32>,
}

impl DirtyMasks {
    /// Marks an attribute of an object as changed; `bit` is the result of its registration, any other one is ignored.
    #[inline]
    pub fn mark(&mut self, slot: MaskSlot, bit: u32) {
        self.unsent.mark(slot.0, bit);
    }

    /// Marks an attribute whose component was removed; does nothing when the whole object despawns, slot included.
    pub(super) fn mark_removed(&mut self, entity: Entity, slot: MaskSlot, bit: u32) {
        if self.entities.get(slot.0 as usize) == Some(&Some(entity)) {
            self.mark(slot, bit);
            self.removed.mark(slot.0, bit);
        }
    }

    /// The attributes that an object lost since it spawned or was assigned to its player, even if it has them again.
    pub(super) fn removed_of(&self, slot: MaskSlot) -> AttributeSet {
        union([&self.removed], slot)
    }

    /// Assigns an object to a player: attributes that it lost before are not losses of another player. Returns the previous
    /// player, if it is another one, with the attributes lost as that player's.
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

    /// Requests a save of an object's changes in this tick (the next one, after
    /// [`SyncSystems::Save`](super::SyncSystems::Save)), not at its turn.
    pub fn save_now(&mut self, slot: MaskSlot) {
        self.urgent_saves.push(slot.0);
    }

    /// Takes the slots of [`save_now`](Self::save_now), with those persistent attributes that were not sent or not saved.
    /// They are saved again at their turn, as in [`drain_unsaved`](Self::drain_unsaved).
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

    /// The objects with changes that were not collected, and their masks. O(slots / 64 + changed objects).
    pub(super) fn unsent(&self) -> impl Iterator<Item = (Entity, &[u64])> {
        let slots = 0..self.entities.len() as u32;
        let dirty = slots.filter(|&slot| self.unsent.is_dirty(slot));
        dirty.filter_map(|slot| Some((self.entities[slot as usize]?, self.unsent.mask_of(slot))))
    }

    /// Calls `take` with every changed object and its mask. Bits that `take` leaves in the mask stay.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Entity, &mut [u64])) {
        drain(&mut self.unsent, &self.entities, |entity, _, mask| {
            take(entity, mask)
        });
    }

    /// Calls `take` with every object that has something to save and its mask. If `take` returns that a save was requested,
    /// only unsent bits stay: when the value is sent later and equals the one that clients have, that is not a change for them,
    /// but it is one for the store.
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

    /// The attributes of an object that were not sent or not saved.
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
        // All attributes of a new object are new.
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

/// Assigns an object to a player.
pub(super) fn assign_player(given: On<Insert<PlayerId>>, mut world: DeferredWorld) {
    let player = world.get::<PlayerId>(given.entity).copied();
    change_player(&mut world, given.entity, player);
}

/// Removes an object from its player.
pub(super) fn unassign_player(taken: On<Remove<PlayerId>>, mut world: DeferredWorld) {
    change_player(&mut world, taken.entity, None);
}

/// Requests a save of what the former player had and lost at once: later its player is not known.
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
