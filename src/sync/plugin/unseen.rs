//! Affiliations, and the objects that clients receive without seeing them.

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::audience::Audience;
use super::replicator::Replicator;
use super::sent_values::SentValues;
use crate::sync::client::ClientState;
use crate::sync::membership::Memberships;
use crate::sync::scene_messages::{ObjectChanges, PARTY, SceneMessages};
use crate::sync::unseen::{PartyObjects, UnseenObject};
use crate::world::{
    AffiliationChanged, Generation, GuildId, Object, ObjectDespawned, ObjectId, ObjectRef,
    ObjectSpawned, PartyId, TeamId,
};

/// A party in an [`Affiliation`](crate::sync::records::Affiliation).
pub(super) const fn party_number(party: PartyId) -> u32 {
    party.0.wrapping_add(1)
}

type AffiliationRow = (
    &'static Object,
    Option<&'static TeamId>,
    Option<&'static PartyId>,
    Option<&'static GuildId>,
    &'static SentValues,
);

/// Updates teams, parties and guilds of changed objects, and public objects that appear and disappear.
pub(super) fn update_affiliations(
    mut replicator: ResMut<Replicator>,
    attributes: Res<Attributes>,
    mut despawned: MessageReader<ObjectDespawned>,
    mut spawned: MessageReader<ObjectSpawned>,
    mut changed: MessageReader<AffiliationChanged>,
    objects: Query<AffiliationRow>,
) {
    let Replicator {
        scenes, parties, ..
    } = &mut *replicator;
    for gone in despawned.read() {
        let object = gone.object.reference();
        if let Some(records) = scenes.get_mut(&object.scene) {
            records.unpublish(object.id.0, object.generation.0);
            let before = records.set_affiliation(object.id.0, [0; 3]);
            records.set_memberships(object.id.0, Memberships::default());
            parties.set_party(object, before[PARTY], 0);
        }
    }
    let public = attributes.unseen_variant(Audience::SCENE);
    let public = public.map(|variant| &attributes.variant_sets()[usize::from(variant.0)]);
    let touched = spawned.read().map(|message| message.entity);
    let touched = touched.chain(changed.read().map(|message| message.entity));
    for entity in touched {
        let Ok((object, team, party, guild, sent)) = objects.get(entity) else {
            continue;
        };
        if let Some(records) = scenes.get_mut(&object.scene()) {
            let affiliation = [
                team.map_or(0, |team| team.0.wrapping_add(1)),
                party.map_or(0, |&party| party_number(party)),
                guild.map_or(0, |guild| guild.0.wrapping_add(1)),
            ];
            let before = records.set_affiliation(object.id().0, affiliation);
            parties.set_party(object.reference(), before[PARTY], affiliation[PARTY]);
            // An object from another scene brings its sent values, removed ones included.
            if public.is_some_and(|set| sent.changes(set).next().is_some()) {
                records.publish(object.id().0, object.generation().0);
            }
        }
    }
}

/// Updates a client's unseen objects; returns those that it has to be sent. `moved` is whether anything came
/// into its view or left it. O(1) if nothing changed, else O((party + public objects) × (links + party)).
pub(super) fn update_unseen<'a>(
    state: &'a mut ClientState,
    own: ObjectRef,
    moved: bool,
    meeting_max: u32,
    (records, parties, attributes): (&SceneMessages, &PartyObjects, &Attributes),
    expected: &mut Vec<UnseenObject>,
) -> &'a [UnseenObject] {
    if attributes.unseen_variants().is_empty() {
        return &[];
    }
    let party = records.affiliation(own.id.0)[PARTY];
    let due = moved
        || state.unseen.is_incomplete
        || !state.entering.is_empty()
        || state.unseen.public_version != records.public_version
        || records
            .changes(own.id.0)
            .contains(ObjectChanges::AFFILIATION)
        || parties.changed.contains(&party);
    if !due {
        return &[];
    }
    expected.clear();
    let unseen = |object: ObjectRef| {
        let numbers = (object.id.0, object.generation.0);
        let sees = object.scene == own.scene && state.knows(numbers, records);
        object != own && !sees
    };
    if let Some(variant) = attributes.unseen_variant(Audience::PARTY) {
        let members = parties.members_of(party).iter().copied();
        let members = members.filter(|&member| unseen(member));
        expected.extend(members.map(|object| UnseenObject { object, variant }));
    }
    if let Some(variant) = attributes.unseen_variant(Audience::SCENE) {
        let members = expected.len();
        let to_both = attributes.variant(Audience::PARTY.or(Audience::SCENE));
        for &(id, generation) in &records.public {
            let object = ObjectRef {
                scene: own.scene,
                id: ObjectId(id),
                generation: Generation(generation),
            };
            let mut party = expected[..members].iter_mut();
            match party.find(|other| other.object == object) {
                Some(member) => member.variant = to_both,
                None if unseen(object) => expected.push(UnseenObject { object, variant }),
                None => {}
            }
        }
    }
    expected.sort_unstable();
    state.unseen.update(expected, meeting_max as usize);
    state.unseen.public_version = records.public_version;
    &state.unseen.entering
}
