//! A client's mirror beside the server.

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::audience::{Audience, relation};
use super::motions::moving_of;
use super::replicator::{Replicator, words};
use super::sent_values::SentValues;
use crate::aoi::SceneInterest;
use crate::session::Sessions;
use crate::sync::masks::bits;
use crate::sync::records::{SceneRecords, Variant};
use crate::sync::remotes::remote_id;
use crate::sync::{AttributeValues, Mirror};
use crate::wire::ClientId;
use crate::world::{
    Floor, Heading, Object, ObjectId, ObjectRef, PartyId, Position, Scene, SceneObjects, Scenes,
    Velocity,
};

/// Compares what a client holds with what it should hold when nothing changes any more.
///
/// # Errors
/// What differs first, for a person to read.
pub fn compare_mirror(world: &World, client: ClientId, mirror: &Mirror) -> Result<(), String> {
    let session = world
        .get_resource::<Sessions>()
        .and_then(|sessions| sessions.get(client));
    let own = session.and_then(|session| world.get::<Object>(session.controls?));
    let Some(own) = own else { return Ok(()) };
    let reference = words(own.reference());
    if (mirror.scene(), mirror.own()) != (Some(reference.0), Some((reference.1, reference.2))) {
        return Err(format!(
            "it controls {:?} of scene {:?}, not {reference:?}",
            mirror.own(),
            mirror.scene()
        ));
    }
    let interest = world.get::<SceneInterest>(own.scene_entity());
    let mut expected: Vec<u32> = std::iter::once(own.id().0)
        .chain(
            interest
                .into_iter()
                .flat_map(|interest| interest.views().seen_by(own.id().0))
                .map(|(id, _)| id),
        )
        .collect();
    expected.sort_unstable();
    if mirror.ids() != expected {
        return Err(format!(
            "it knows the objects {:?}, not {expected:?}",
            mirror.ids()
        ));
    }
    let (ids, attributes) = (
        world.get::<SceneObjects>(own.scene_entity()),
        world.resource::<Attributes>(),
    );
    let Some(records) = world.resource::<Replicator>().scenes.get(&own.scene()) else {
        return Err("nothing was replicated in its scene".into());
    };
    let standing = records.standing(own.id().0);
    compare_remotes(world, own, &expected, mirror)?;
    for id in expected {
        let Some(entity) = ids.and_then(|ids| ids.entity(ObjectId(id))) else {
            return Err(format!("it knows object {id}, which does not exist"));
        };
        let variant = if id == own.id().0 {
            attributes.variant(Attributes::OWN)
        } else {
            attributes.variant(relation(standing, records.standing(id)))
        };
        compare_object(world, entity, mirror, records, variant)
            .map_err(|what| format!("object {id}: {what}"))?;
    }
    Ok(())
}

/// Looks at every object of the world: whoever is of the party or of public interest is told of, unless it is seen.
fn compare_remotes(
    world: &World,
    own: &Object,
    seen: &[u32],
    mirror: &Mirror,
) -> Result<(), String> {
    let attributes = world.resource::<Attributes>();
    if attributes.remotes().is_empty() {
        return Ok(());
    }
    let own_entity = world.get::<SceneObjects>(own.scene_entity());
    let own_entity = own_entity.and_then(|objects| objects.entity(own.id()));
    let party_of = |entity: Entity| world.get::<PartyId>(entity);
    let own_party = own_entity.and_then(party_of);
    let mut expected = Vec::new();
    let mut expect = |reference: ObjectRef, entity: Entity| -> Result<(), String> {
        let here = reference.scene == own.scene();
        if here && seen.contains(&reference.id.0) {
            return Ok(());
        }
        let entity = world
            .get_entity(entity)
            .map_err(|error| error.to_string())?;
        let values = |relation| values_of(attributes, attributes.variant(relation), entity);
        let is_member = own_party.is_some() && entity.get::<PartyId>() == own_party;
        let is_member = is_member && attributes.remote(Audience::PARTY).is_some();
        // Also when the component is gone by now: an object keeps what was told of it.
        let public = attributes.remote(Audience::SCENE);
        let public = public.map(|variant| &attributes.told()[usize::from(variant.0)]);
        let sent = entity.get::<SentValues>();
        let has_public =
            public.is_some_and(|told| sent.is_some_and(|sent| sent.of(told).next().is_some()));
        let is_public = here && has_public;
        let values = match (is_member, is_public) {
            (true, true) => values(Audience::PARTY.or(Audience::SCENE)),
            (true, false) => values(Audience::PARTY),
            (false, true) => values(Audience::SCENE),
            (false, false) => return Ok(()),
        };
        let kind = entity.get::<Object>().map_or(0, |object| object.kind().0);
        expected.push((remote_id(reference), kind, values));
        Ok(())
    };
    for (scene, entity) in world.resource::<Scenes>().iter() {
        if let Some(scene) = world.get::<Scene>(entity).filter(|_| scene == own.scene()) {
            expect(scene.reference(), entity)?;
        }
        let objects = world.get::<SceneObjects>(entity).into_iter();
        for (_, entity) in objects.flat_map(SceneObjects::iter) {
            if let Some(object) = world.get::<Object>(entity) {
                expect(object.reference(), entity)?;
            }
        }
    }
    let found: Vec<_> = mirror
        .remotes()
        .zip(&expected)
        .map(|((of, remote), (_, _, expected))| {
            let is_expected = |id| expected.iter().any(|&(other, _)| other == id);
            let values = remote.attributes.iter().filter(|&&(id, _)| is_expected(id));
            (
                of,
                remote.kind,
                values.cloned().collect::<AttributeValues>(),
            )
        })
        .collect();
    if found == expected && mirror.remotes().count() == expected.len() {
        Ok(())
    } else {
        Err(format!("it was told of {found:?} unseen, not {expected:?}"))
    }
}

/// The values of a variant's attributes that an entity has, by number.
fn values_of(attributes: &Attributes, variant: Variant, entity: EntityRef) -> AttributeValues {
    let told = &attributes.told()[usize::from(variant.0)];
    let mut values = AttributeValues::new();
    for registered in bits(told).map_while(|bit| attributes.get(bit)) {
        let mut value = Vec::new();
        if registered.encode(entity, &mut value) {
            values.push((registered.spec.id, value));
        }
    }
    values.sort_unstable();
    values
}

fn compare_object(
    world: &World,
    entity: Entity,
    mirror: &Mirror,
    records: &SceneRecords,
    variant: Variant,
) -> Result<(), String> {
    let entity = world
        .get_entity(entity)
        .map_err(|error| error.to_string())?;
    let object = entity.get::<Object>().ok_or("it is no object")?;
    let known = mirror.object(object.id().0).ok_or("it is not known")?;
    if (known.generation, known.kind) != (object.generation().0, object.kind().0) {
        return Err(format!(
            "generation and kind {:?}",
            (known.generation, known.kind)
        ));
    }
    let moving = moving_of(entity.components::<(&Position, &Velocity, &Heading, &Floor)>());
    let mut expected = moving.motion(u64::from(known.motion.at));
    expected.discontinuity = known.motion.discontinuity;
    let base = records.bases.get(object.id().0 as usize);
    // What moves is where it is reckoned to be; what rests is exactly where it is.
    if known.motion != expected
        && (expected.is_at_rest() || base.map(|b| b.motion) != Some(known.motion))
    {
        return Err(format!("motion {:?}, not {expected:?}", known.motion));
    }
    let expected = values_of(world.resource::<Attributes>(), variant, entity);
    // What it learnt while it belonged to the object's team or party, it keeps.
    let told = |id| expected.iter().any(|&(other, _)| other == id);
    let known = known.attributes.iter().filter(|&&(id, _)| told(id));
    let known: Vec<_> = known.cloned().collect();
    if known == expected {
        Ok(())
    } else {
        Err(format!("attributes {known:?}, not {expected:?}"))
    }
}
