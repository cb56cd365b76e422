//! Members of clients' parties that are not in this world, such as players on other nodes of a cluster.
//!
//! To clients they are unseen objects of a scene that does not exist: [`FOREIGN_SCENE`].

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::attributes::Attributes;
use super::audience::Audience;
use super::messages::{write_unseen, write_unseen_delta};
use super::replicator::Replicator;
use super::sent_values::SentValues;
use super::unseen::party_number;
use crate::memory::MemoryUse;
use crate::outbox::Outbox;
use crate::sim::SimTick;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, AttributeSet, intersection, is_empty};
use crate::sync::masks::WORD_BITS;
use crate::sync::scene_messages::ObjectChanges;
use crate::world::{Generation, KindId, Object, ObjectId, ObjectRef, PartyId, PlayerId, SceneId};

/// The scene of [`ForeignMembers`] in messages to clients. No real scene has this id: scenes are numbered from 0, and none is opened after
/// 4,294,967,294.
pub const FOREIGN_SCENE: SceneId = SceneId(u32::MAX);

/// Members of parties that are not in this world: clients of their party receive their attributes with [`Audience::PARTY`] as those of an
/// unseen object of the scene [`FOREIGN_SCENE`]. `throng_cluster` sets those that play on other nodes.
///
/// A player that is also an object of this world has to be removed, or clients receive it twice. Changes are sent in the next tick. Cost:
/// O(attributes · log n) per change, and nothing per tick while there are none.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::sync::{Attributes, ForeignMembers};
/// use throng::world::{KindId, PartyId, PlayerId};
///
/// /// The party receives attribute 5 of player 7, who is on another server, with the encoded value 40.
/// fn add(attributes: Res<Attributes>, mut foreign: ResMut<ForeignMembers>) {
///     foreign.set(&attributes, PlayerId(7), PartyId(1), KindId(0), [(5, &[40][..])]);
/// }
/// ```
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct ForeignMembers {
    #[memory(each_value)]
    members: BTreeMap<PlayerId, ForeignMember>,
    /// Members that are new or have changed since the last tick.
    changed: BTreeSet<PlayerId>,
    /// Members removed since the last tick that clients may know, with their parties.
    removed: Vec<(ObjectRef, PartyId)>,
    /// The slot of each object id, from 1.
    slots: Vec<ForeignSlot>,
    free: BTreeSet<u32>,
    ignored: u64,
}

/// A member as clients know it.
#[derive(Clone, Debug, MemoryUse)]
struct ForeignMember {
    object: ObjectRef,
    kind: KindId,
    party: PartyId,
    /// The party whose clients know it; `None` before its first tick.
    known_party: Option<PartyId>,
    values: SentValues,
    /// Values that clients have not received.
    changed: AttributeSet,
}

/// The user of an object id.
#[derive(Clone, Copy, Debug)]
struct ForeignSlot {
    generation: u32,
    player: Option<PlayerId>,
}

impl ForeignMembers {
    /// Adds a member, or sets all its values: number and encoded value of each attribute. Values of attributes that this app does not have, or
    /// does not send to parties, and bytes that are no value of the attribute are ignored and counted.
    pub fn set<'a>(
        &mut self,
        attributes: &Attributes,
        player: PlayerId,
        party: PartyId,
        kind: KindId,
        values: impl IntoIterator<Item = (u16, &'a [u8])>,
    ) {
        // Clients learn the kind only together with the object.
        if self.members.get(&player).is_none_or(|it| it.kind != kind) {
            self.remove(player);
            let member = ForeignMember {
                object: self.allocate(player),
                kind,
                party,
                known_party: None,
                values: SentValues::default(),
                changed: [0; ATTRIBUTE_WORDS],
            };
            self.members.insert(player, member);
        }
        let Some(member) = self.members.get_mut(&player) else {
            return;
        };
        let mut present = [0; ATTRIBUTE_WORDS];
        for (id, value) in values {
            let Some(bit) = attributes.party_bit(id, value) else {
                self.ignored += 1;
                continue;
            };
            let (word, flag) = (bit / WORD_BITS, 1 << (bit % WORD_BITS));
            present[word] |= flag;
            if member.values.get(bit) != Some(value) {
                member.values.set(bit, value);
                member.changed[word] |= flag;
            }
        }
        let absent: AttributeSet = std::array::from_fn(|word| !present[word]);
        let lost: SmallVec<[usize; 4]> =
            member.values.in_set(&absent).map(|(bit, _)| bit).collect();
        for bit in lost {
            member.values.remove(bit);
            member.changed[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
        }
        member.party = party;
        if !is_empty(&member.changed) || member.known_party != Some(party) {
            self.changed.insert(player);
        }
    }

    /// Removes a member; `false` if there is none.
    pub fn remove(&mut self, player: PlayerId) -> bool {
        let Some(member) = self.members.remove(&player) else {
            return false;
        };
        self.changed.remove(&player);
        if let Some(party) = member.known_party {
            self.removed.push((member.object, party));
        }
        let id = member.object.id.0;
        self.slots[id as usize - 1].player = None;
        self.free.insert(id);
        true
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        while let Some((&player, _)) = self.members.first_key_value() {
            self.remove(player);
        }
    }

    /// The players, ascending.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.members.keys().copied()
    }

    /// The object of a member in messages to clients.
    #[must_use]
    pub fn object(&self, player: PlayerId) -> Option<ObjectRef> {
        Some(self.members.get(&player)?.object)
    }

    /// The values that were ignored by [`set`](Self::set).
    #[must_use]
    pub const fn values_ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes the lowest free object id. Clients distinguish its users by the generation.
    fn allocate(&mut self, player: PlayerId) -> ObjectRef {
        let id = self.free.pop_first().unwrap_or_else(|| {
            self.slots.push(ForeignSlot {
                generation: 0,
                player: None,
            });
            self.slots.len() as u32
        });
        let slot = &mut self.slots[id as usize - 1];
        slot.generation = slot.generation.wrapping_add(1);
        slot.player = Some(player);
        ObjectRef {
            scene: FOREIGN_SCENE,
            id: ObjectId(id),
            generation: Generation(slot.generation),
        }
    }

    /// The members of a party as clients are to know them: object, kind, numbers and values.
    pub(super) fn in_party<'a>(
        &'a self,
        party: PartyId,
        attributes: &'a Attributes,
    ) -> impl Iterator<Item = (ObjectRef, KindId, Vec<(u16, &'a [u8])>)> {
        let members = self.members.values().filter(move |it| it.party == party);
        members.map(|member| {
            let values = member.values.in_set(&[!0; ATTRIBUTE_WORDS]);
            let values = values.filter_map(|(bit, value)| {
                let attribute = attributes.get(bit)?;
                Some((attribute.spec.id, value))
            });
            (member.object, member.kind, values.collect())
        })
    }

    /// Appends the full message about a member; nothing if the object id has no user.
    pub(super) fn write(
        &self,
        id: u32,
        set: &AttributeSet,
        attributes: &Attributes,
        bytes: &mut Vec<u8>,
    ) {
        let slot = (id as usize).checked_sub(1);
        let player = slot.and_then(|slot| self.slots.get(slot)?.player);
        if let Some(member) = player.and_then(|player| self.members.get(&player)) {
            let values = (&member.values, set);
            write_unseen(bytes, member.object, member.kind.0, attributes, values);
        }
    }
}

/// Adds new members to the objects of their parties, removes former ones, and encodes changes.
pub(super) fn update_foreign_members(
    mut replicator: ResMut<Replicator>,
    mut foreign: ResMut<ForeignMembers>,
    mut outbox: ResMut<Outbox>,
    attributes: Res<Attributes>,
    tick: Res<SimTick>,
) {
    if foreign.members.is_empty() && foreign.removed.is_empty() {
        return;
    }
    let Replicator {
        scenes, parties, ..
    } = &mut *replicator;
    let ForeignMembers {
        members,
        changed,
        removed,
        ..
    } = &mut *foreign;
    for (object, party) in removed.drain(..) {
        parties.set_party(object, party_number(party), 0);
    }
    if members.is_empty() {
        scenes.remove(&FOREIGN_SCENE);
        return;
    }
    let records = scenes.entry(FOREIGN_SCENE).or_default();
    records.begin_tick(attributes.variant_sets().len(), tick.0);
    let variant = attributes.unseen_variant(Audience::PARTY);
    for player in std::mem::take(changed) {
        let Some(member) = members.get_mut(&player) else {
            continue;
        };
        let before = member.known_party.replace(member.party);
        parties.set_party(
            member.object,
            before.map_or(0, party_number),
            party_number(member.party),
        );
        let set = std::mem::take(&mut member.changed);
        let Some(variant) = variant.map(|variant| usize::from(variant.0)) else {
            continue;
        };
        let set = intersection(set, attributes.variant_sets()[variant]);
        // Clients receive a new member in full.
        if before.is_none() || is_empty(&set) {
            continue;
        }
        let (object, values) = (member.object, (&member.values, &set));
        let span = outbox.batch_mut().push_shared(|bytes| {
            write_unseen_delta(bytes, object, &attributes, values);
        });
        records.unseen_deltas[variant].set(object.id.0, span);
        records.mark_changed(object.id.0, ObjectChanges::UNSEEN_DELTA);
    }
}

/// The kind of an object, and the numbers and encoded values of its attributes with [`Audience::PARTY`], as clients were last sent them.
/// `None` if the entity is no object, or if no attribute has this audience. For [`ForeignMembers`] of other servers.
pub fn party_values(
    world: &World,
    entity: Entity,
) -> Option<(KindId, impl Iterator<Item = (u16, &[u8])>)> {
    let attributes = world.get_resource::<Attributes>()?;
    let variant = attributes.unseen_variant(Audience::PARTY)?;
    let set = &attributes.variant_sets()[usize::from(variant.0)];
    let entity = world.get_entity(entity).ok()?;
    let (object, sent) = entity.get_components::<(&Object, &SentValues)>().ok()?;
    let values = sent.in_set(set).filter_map(|(bit, value)| {
        let attribute = attributes.get(bit)?;
        Some((attribute.spec.id, value))
    });
    Some((object.kind(), values))
}
