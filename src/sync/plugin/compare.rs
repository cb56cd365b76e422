//! Compares a client's mirror with the server.
//!
//! What a client may know is derived from the components of the world and from the registration of attributes, not from the records of
//! replication, which may contain the very error.

use bevy_ecs::prelude::*;

use super::attributes::{AttributeSpec, Attributes};
use super::audience::Audience;
use super::audiences::Audiences;
use super::foreign_members::ForeignMembers;
use super::motions::motion_state_of;
use super::replicator::Replicator;
use super::sent_values::SentValues;
use super::settings::SyncSettings;
use crate::aoi::{SceneInterest, Viewable};
use crate::session::{Sessions, controlling_client};
use crate::sync::attribute_set::ATTRIBUTES_MAX;
use crate::sync::unseen::unseen_object_id;
use crate::sync::{AttributeValues, Mirror};
use crate::wire::{ClientId, UnseenObjectId};
use crate::world::{
    Floor, GuildId, Heading, Object, ObjectId, PartyId, Position, SceneIds, Scenes, SimScene,
    TeamId, Velocity,
};

/// Compares what a client has with what it should have when nothing changes any more; a client that controls nothing should
/// have nothing. Beyond its view a client may have objects that are marked with [`Viewable::keep`]; it has their current values.
/// A client may keep attributes that it received while it belonged to a team, party, guild or another audience.
/// O(objects of all scenes).
///
/// # Errors
/// The first difference, as text.
pub fn compare_mirror(world: &World, client: ClientId, mirror: &Mirror) -> Result<(), String> {
    compare(world, client, mirror, false)
}

/// The same if no client ever left a team, party, guild or other audience: a client then has no attribute that it does not
/// receive now.
///
/// # Errors
/// The first difference, as text.
pub fn compare_mirror_exactly(
    world: &World,
    client: ClientId,
    mirror: &Mirror,
) -> Result<(), String> {
    compare(world, client, mirror, true)
}

fn compare(world: &World, client: ClientId, mirror: &Mirror, exact: bool) -> Result<(), String> {
    let session = world
        .get_resource::<Sessions>()
        .and_then(|sessions| sessions.get(client));
    // A client whose session ended receives nothing any more.
    let Some(session) = session else {
        return Ok(());
    };
    let own = session
        .controlled_entity
        .and_then(|entity| world.get_entity(entity).ok());
    let Some((own, object)) = own.and_then(|own| Some((own, own.get::<Object>()?))) else {
        return compare_empty(mirror);
    };
    let reference = object.reference();
    let (scene, id) = (reference.scene.0, reference.id.0);
    let generation = reference.generation.0;
    if (mirror.scene(), mirror.controlled_object()) != (Some(scene), Some((id, generation))) {
        return Err(format!(
            "it controls {:?} of scene {:?}, not {reference:?}",
            mirror.controlled_object(),
            mirror.scene()
        ));
    }
    let interest = world.get::<SceneInterest>(object.scene_entity());
    let seen = interest.into_iter();
    let seen = seen.flat_map(|interest| interest.views().seen_by(id));
    let mut expected: Vec<u32> = std::iter::once(id).chain(seen.map(|(id, _)| id)).collect();
    expected.sort_unstable();
    let claims = MirrorCheck {
        world,
        client,
        controlled: own,
        exact,
    };
    let known = mirror.ids();
    let is_missing = expected.iter().any(|id| known.binary_search(id).is_err());
    let out_of_view = known.iter().copied();
    let out_of_view: Vec<u32> = out_of_view
        .filter(|id| expected.binary_search(id).is_err())
        .collect();
    if is_missing || !out_of_view.iter().all(|&of| claims.may_keep(object, of)) {
        return Err(format!("it knows the objects {known:?}, not {expected:?}"));
    }
    claims.compare_kept(&out_of_view)?;
    claims.compare_unseen(object, &known, mirror)?;
    let ids = world.get::<SceneIds>(object.scene_entity());
    for id in known {
        let entity = ids.and_then(|ids| ids.entity(ObjectId(id)));
        let entity = entity.and_then(|entity| world.get_entity(entity).ok());
        let Some(entity) = entity else {
            return Err(format!("it knows object {id}, which does not exist"));
        };
        claims
            .compare_object(entity, mirror)
            .map_err(|what| format!("object {id}: {what}"))?;
    }
    Ok(())
}

/// A client that controls nothing knows nothing.
fn compare_empty(mirror: &Mirror) -> Result<(), String> {
    let (own, ids, remotes) = (
        mirror.controlled_object(),
        mirror.ids(),
        mirror.unseen_objects().count(),
    );
    if own.is_none() && mirror.scene().is_none() && ids.is_empty() && remotes == 0 {
        return Ok(());
    }
    Err(format!(
        "it controls nothing, and believes to control {own:?} of scene {:?}, knows the objects {ids:?} and {remotes} unseen",
        mirror.scene()
    ))
}

/// What a client may know.
struct MirrorCheck<'w> {
    world: &'w World,
    client: ClientId,
    /// The object that it controls.
    controlled: EntityRef<'w>,
    /// Whether it must have nothing that it may not receive now.
    exact: bool,
}

impl MirrorCheck<'_> {
    /// Whether the client may have an object that is out of its view: it is marked to be kept, and the client may see it at some distance.
    fn may_keep(&self, own: &Object, id: u32) -> bool {
        let scene = own.scene_entity();
        let objects = self.world.get::<SceneIds>(scene);
        let entity = objects.and_then(|objects| objects.entity(ObjectId(id)));
        let viewable = entity.and_then(|entity| self.world.get::<Viewable>(entity));
        let interest = self.world.get::<SceneInterest>(scene);
        viewable.is_some_and(|viewable| viewable.keep)
            && interest.is_some_and(|interest| interest.views().allows(own.id().0, id))
    }

    /// Compares the objects that the client has out of its view with those that the server believes it to have, and with the limit.
    fn compare_kept(&self, out_of_view: &[u32]) -> Result<(), String> {
        let max = self.world.resource::<SyncSettings>().kept_objects_max as usize;
        if out_of_view.len() > max {
            return Err(format!(
                "it keeps {} objects out of view, more than {max}",
                out_of_view.len()
            ));
        }
        let clients = &self.world.resource::<Replicator>().clients;
        let place = clients.binary_search_by_key(&self.client, |state| state.client);
        let kept = place.map_or(&[][..], |place| clients[place].kept_ids());
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        if kept == out_of_view {
            return Ok(());
        }
        Err(format!(
            "it keeps the objects {out_of_view:?} out of view; the server sends changes of {kept:?}"
        ))
    }

    /// Whether the client may receive an attribute of an object or scene, by the attribute's registration.
    fn may_receive(&self, spec: AttributeSpec, of: EntityRef, is_seen: bool) -> bool {
        let told_to = |audience| spec.audience.contains(audience);
        if controlling_client(self.world, of.id()) == Some(self.client) {
            return true;
        }
        let to_registered = || {
            let audiences = self.world.get_resource::<Audiences>();
            audiences.is_some_and(|audiences| {
                let mine = audiences.memberships(self.controlled).into_iter();
                mine.zip(audiences.memberships(of))
                    .enumerate()
                    .any(|(nth, (mine, theirs))| {
                        let same = mine.subscribes.is_some() && mine.subscribes == theirs.publishes;
                        same && told_to(Audience::custom(nth))
                    })
            })
        };
        let is_here = scene_of(of).is_some() && scene_of(of) == scene_of(self.controlled);
        told_to(Audience::SCENE) && is_here
            || told_to(Audience::PARTY) && self.has_same::<PartyId>(of)
            || is_seen
                && (told_to(Audience::VIEWERS)
                    || told_to(Audience::TEAM) && self.has_same::<TeamId>(of)
                    || told_to(Audience::GUILD) && self.has_same::<GuildId>(of)
                    || to_registered())
    }

    fn has_same<C: Component + PartialEq>(&self, of: EntityRef) -> bool {
        let mine = self.controlled.get::<C>();
        mine.is_some() && mine == of.get::<C>()
    }

    /// Compares the attributes that the client has of an entity with those that the entity has and the client may receive.
    fn compare_attributes(
        &self,
        held: &AttributeValues,
        of: EntityRef,
        is_seen: bool,
    ) -> Result<(), String> {
        let attributes = self.world.resource::<Attributes>();
        let mut expected = Vec::new();
        let mut sent_ids = Vec::new();
        for attribute in (0..ATTRIBUTES_MAX).map_while(|bit| attributes.get(bit)) {
            if !self.may_receive(attribute.spec, of, is_seen) {
                continue;
            }
            sent_ids.push(attribute.spec.id);
            let mut value = Vec::new();
            if attribute.encode(of, &mut value).is_some() {
                expected.push((attribute.spec.id, value));
            }
        }
        expected.sort_unstable();
        let beyond = held.iter().find(|(id, _)| !sent_ids.contains(id));
        if let Some((id, value)) = beyond.filter(|_| self.exact) {
            return Err(format!("attribute {id} is sent to others: {value:?}"));
        }
        // It keeps what it received while it belonged to the object's team or party, but not what the object no longer has.
        let held = held.iter().filter(|(id, _)| sent_ids.contains(id));
        let held: Vec<_> = held.map(|(id, value)| (id, value.to_vec())).collect();
        if held == expected {
            Ok(())
        } else {
            Err(format!("attributes {held:?}, not {expected:?}"))
        }
    }

    fn compare_object(&self, entity: EntityRef, mirror: &Mirror) -> Result<(), String> {
        let object = entity.get::<Object>().ok_or("it is no object")?;
        let known = mirror.object(object.id().0).ok_or("it is not known")?;
        if (known.generation, known.kind) != (object.generation().0, object.kind().0) {
            return Err(format!(
                "generation and kind {:?}",
                (known.generation, known.kind)
            ));
        }
        let moving =
            motion_state_of(entity.components::<(&Position, &Velocity, &Heading, &Floor)>());
        let mut expected = moving.motion(u64::from(known.motion.at));
        expected.discontinuity = known.motion.discontinuity;
        let records = &self.world.resource::<Replicator>().scenes;
        let records = records.get(&object.scene());
        let base = records.and_then(|records| records.bases.get(object.id().0 as usize));
        // A moving object is where it is extrapolated; an object at rest is exactly where it is.
        if known.motion != expected
            && (expected.is_at_rest() || base.map(|b| b.motion) != Some(known.motion))
        {
            return Err(format!("motion {:?}, not {expected:?}", known.motion));
        }
        self.compare_attributes(&known.attributes, entity, true)
    }

    /// Tests every object of the world: members of the party and public objects are sent, unless they are seen.
    fn compare_unseen(&self, own: &Object, seen: &[u32], mirror: &Mirror) -> Result<(), String> {
        let mut expected: Vec<(UnseenObjectId, EntityRef)> = Vec::new();
        for (scene, scene_entity) in self.world.resource::<Scenes>().iter() {
            let is_here = scene == own.scene();
            let entities = self.world.get::<SceneIds>(scene_entity).into_iter();
            let entities = entities.flat_map(SceneIds::iter);
            for entity in std::iter::once(scene_entity).chain(entities.map(|(_, entity)| entity)) {
                let Ok(entity) = self.world.get_entity(entity) else {
                    continue;
                };
                let reference = entity.get::<Object>().map(Object::reference);
                let reference = reference.or(entity.get::<SimScene>().map(SimScene::reference));
                let Some(reference) = reference else {
                    continue;
                };
                let is_seen = is_here && seen.contains(&reference.id.0);
                if !is_seen && self.receives_unseen(entity, is_here) {
                    expected.push((unseen_object_id(reference), entity));
                }
            }
        }
        let seen_elsewhere = self.compare_foreign(mirror)?;
        expected.sort_unstable_by_key(|&(of, _)| of);
        // Foreign members are in the last scene.
        let found = mirror.unseen_objects().map(|(of, _)| of);
        let mut found: Vec<UnseenObjectId> = found.collect();
        found.truncate(found.len() - seen_elsewhere);
        let expected_ids: Vec<UnseenObjectId> = expected.iter().map(|&(of, _)| of).collect();
        if found != expected_ids {
            return Err(format!(
                "the client has the unseen objects {found:?}, expected {expected_ids:?}"
            ));
        }
        for ((of, remote), (_, entity)) in mirror.unseen_objects().zip(expected) {
            let kind = entity.get::<Object>().map_or(0, |object| object.kind().0);
            if remote.kind != kind {
                return Err(format!("{of:?}, unseen: kind {}, not {kind}", remote.kind));
            }
            self.compare_attributes(&remote.attributes, entity, false)
                .map_err(|what| format!("{of:?}, unseen: {what}"))?;
        }
        Ok(())
    }

    /// Tests the members of the client's party that are not in this world; returns their number.
    fn compare_foreign(&self, mirror: &Mirror) -> Result<usize, String> {
        let attributes = self.world.resource::<Attributes>();
        let party = self.controlled.get::<PartyId>();
        let party = party.filter(|_| attributes.has_party_attributes());
        let foreign = self.world.get_resource::<ForeignMembers>();
        let mut expected = Vec::new();
        if let (Some(&party), Some(foreign)) = (party, foreign) {
            expected.extend(foreign.in_party(party, attributes));
            expected.sort_unstable_by_key(|&(object, ..)| object);
        }
        let (count, total) = (expected.len(), mirror.unseen_objects().count());
        for ((of, known), (object, kind, mut values)) in mirror
            .unseen_objects()
            .skip(total.saturating_sub(count))
            .zip(expected)
        {
            values.sort_unstable();
            let held: Vec<(u16, &[u8])> = known.attributes.iter().collect();
            if (of, known.kind, &held) != (unseen_object_id(object), kind.0, &values) {
                return Err(format!(
                    "{of:?}, elsewhere: {held:?}, not {values:?} of {object:?}"
                ));
            }
        }
        if total < count {
            return Err(format!(
                "{count} members are elsewhere, it knows {total} unseen objects"
            ));
        }
        Ok(count)
    }

    /// Whether the client receives an object or scene that it does not see: it has a party attribute, or it
    /// has, or had, an attribute for all clients in the scene.
    fn receives_unseen(&self, entity: EntityRef, is_here: bool) -> bool {
        let attributes = self.world.resource::<Attributes>();
        let of = |audience: Audience| {
            let all = (0..).map_while(|bit| Some((bit, attributes.get(bit)?)));
            all.filter(move |(_, attribute)| attribute.spec.audience.contains(audience))
        };
        let to_party = self.has_same::<PartyId>(entity) && of(Audience::PARTY).next().is_some();
        // Also when the component is gone by now: an object keeps its sent values.
        let sent = entity.get::<SentValues>();
        let has = |(bit, _)| sent.is_some_and(|sent| sent.was_set(bit));
        to_party || is_here && of(Audience::SCENE).any(has)
    }
}

/// The scene of an object, or a scene itself.
fn scene_of(entity: EntityRef) -> Option<u32> {
    let object = entity.get::<Object>().map(Object::scene);
    let scene = object.or_else(|| entity.get::<SimScene>().map(SimScene::id));
    scene.map(|scene| scene.0)
}
