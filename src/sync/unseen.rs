//! Objects that a client receives without seeing them: its party, wherever it is, and the public objects of its scene.
//!
//! The list is computed again only if its inputs may have changed: the party, the scene's public objects, the client's view.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::counters::SentCounters;
use super::scene_messages::{AudienceVariant, ObjectChanges, SceneMessages};
use crate::memory::MemoryUse;
use crate::outbox::{BatchPart, MessageSpan};
use crate::wire::{UnseenObjectId, write_forget_unseen};
use crate::world::{ObjectRef, SceneId};

/// An object that a client receives without seeing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnseenObject {
    /// Which object.
    pub object: ObjectRef,
    /// The attributes that it receives.
    pub variant: AudienceVariant,
}

/// The id of an object in packets.
pub const fn unseen_object_id(object: ObjectRef) -> UnseenObjectId {
    UnseenObjectId {
        scene: object.scene.0,
        id: object.id.0,
        generation: object.generation.0,
    }
}

/// The unseen objects of a client; all lists ascend.
#[derive(Clone, Debug, Default, PartialEq, MemoryUse)]
pub struct UnseenObjects {
    /// Those that it knows.
    known: Vec<UnseenObject>,
    /// Those that it is sent this tick.
    pub entering: Vec<UnseenObject>,
    /// Those that it has to forget this tick.
    leaving: Vec<ObjectRef>,
    /// The version of the scene's public objects that the list is based on.
    pub public_version: u32,
    /// Whether one of them was gone before its message was written, or more were new than the limit per tick.
    pub is_incomplete: bool,
}

impl UnseenObjects {
    /// The client removes all, without messages.
    pub fn clear(&mut self) {
        self.known.clear();
        self.entering.clear();
        self.leaving.clear();
    }

    /// Whether any has to be sent, or whether the list is older than this version of the scene's public objects.
    pub fn is_pending(&self, public_version: Option<u32>) -> bool {
        self.is_incomplete
            || !self.entering.is_empty()
            || !self.leaving.is_empty()
            || public_version.is_some_and(|version| version != self.public_version)
    }

    /// Adds the known objects to a hash, as words.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        word((self.known.len() as u64) << 1 | u64::from(self.is_incomplete));
        for UnseenObject { object, variant } in &self.known {
            word(u64::from(object.scene.0) << 32 | u64::from(object.id.0));
            word(u64::from(object.generation.0) << 8 | u64::from(variant.0));
        }
    }

    /// Updates the list to the expected one, which ascends and has each object once. At most `meeting_max` objects are sent per tick;
    /// an object whose attributes change is sent again in full.
    pub fn update(&mut self, expected: &[UnseenObject], meeting_max: usize) {
        let Self {
            known,
            entering: meeting,
            leaving: forgotten,
            ..
        } = self;
        meeting.clear();
        let is_new = |remote: &&UnseenObject| known.binary_search(remote).is_err();
        let mut new = expected.iter().filter(is_new);
        meeting.extend(new.by_ref().take(meeting_max));
        self.is_incomplete = new.next().is_some();
        known.retain(|remote| {
            let now = expected.binary_search_by_key(&remote.object, |other| other.object);
            if now.is_err() {
                forgotten.push(remote.object);
            }
            now.is_ok()
        });
    }

    /// Writes the objects to forget, before anything that came into view; returns the bytes.
    #[inline]
    pub fn write_leaving(&mut self, part: &mut BatchPart, counters: &mut SentCounters) -> usize {
        let mut spent = 0;
        for object in self.leaving.drain(..) {
            let bytes =
                part.write_reliable(|bytes| write_forget_unseen(bytes, unseen_object_id(object)));
            counters.unseen.add_one(bytes);
            spent += bytes;
        }
        spent
    }

    /// Writes new unseen objects, and the changes of those that it knows; returns the bytes.
    #[inline]
    pub fn write(
        &mut self,
        part: &mut BatchPart,
        scenes: &BTreeMap<SceneId, SceneMessages>,
        counters: &mut SentCounters,
    ) -> usize {
        let mut spent = 0;
        let mut tell = |span: MessageSpan| {
            part.reliable(span);
            counters.unseen.add_one(span.len());
            spent += span.len();
        };
        let before = self.known.len();
        // Sent in full: a change of this tick is in it.
        let mut resent: SmallVec<[ObjectRef; 4]> = SmallVec::new();
        for remote in self.entering.drain(..) {
            let UnseenObject { object, variant } = remote;
            let scene = scenes.get(&object.scene);
            let Some(span) =
                scene.and_then(|scene| scene.unseen[usize::from(variant.0)].get(object.id.0))
            else {
                self.is_incomplete = true;
                continue;
            };
            tell(span);
            let known = &mut self.known[..before];
            match known.binary_search_by_key(&object, |other| other.object) {
                Ok(place) => {
                    known[place].variant = variant;
                    resent.push(object);
                }
                Err(_) => self.known.push(remote),
            }
        }
        for &UnseenObject { object, variant } in &self.known[..before] {
            if resent.contains(&object) {
                continue;
            }
            let (id, scene) = (object.id.0, scenes.get(&object.scene));
            let changed =
                scene.filter(|scene| scene.changes(id).contains(ObjectChanges::UNSEEN_DELTA));
            changed
                .and_then(|scene| scene.unseen_deltas[usize::from(variant.0)].get(id))
                .into_iter()
                .for_each(&mut tell);
        }
        self.known.sort_unstable();
        spent
    }
}

/// The objects of each party, by its number in an [`Affiliation`](super::scene_messages::Affiliation).
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct PartyObjects {
    #[memory(each_value)]
    members: BTreeMap<u32, Vec<ObjectRef>>,
    /// Parties with members that came, left or changed scene since the last tick.
    pub changed: BTreeSet<u32>,
}

impl PartyObjects {
    /// Moves an object to another party; 0 is none.
    pub fn set_party(&mut self, object: ObjectRef, from: u32, to: u32) {
        if from == to {
            return;
        }
        let parties = [from, to].into_iter().filter(|&party| party != 0);
        self.changed.extend(parties);
        if let Some(members) = self.members.get_mut(&from) {
            members.retain(|&member| member != object);
            if members.is_empty() {
                self.members.remove(&from);
            }
        }
        if to != 0 {
            let members = self.members.entry(to).or_default();
            if let Err(place) = members.binary_search(&object) {
                members.insert(place, object);
            }
        }
    }

    /// Removes the objects of a closed scene. O(objects in parties).
    pub fn remove_scene(&mut self, scene: SceneId) {
        let Self { members, changed } = self;
        members.retain(|&party, members| {
            let before = members.len();
            members.retain(|member| member.scene != scene);
            if members.len() < before {
                changed.insert(party);
            }
            !members.is_empty()
        });
    }

    /// The objects of a party; none of party 0. O(log parties).
    pub fn members_of(&self, party: u32) -> &[ObjectRef] {
        self.members.get(&party).map_or(&[], Vec::as_slice)
    }
}
