//! A client's mirror beside the server.

use bevy_ecs::prelude::*;

use super::attributes::Attributes;
use super::{Replicator, moving_of, relation, words};
use crate::aoi::SceneInterest;
use crate::session::Sessions;
use crate::sync::Mirror;
use crate::sync::masks::bits;
use crate::sync::records::{SceneRecords, Variant};
use crate::wire::ClientId;
use crate::world::{Floor, Heading, Object, ObjectId, Position, SceneObjects, Velocity};

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
    for id in expected {
        let Some(entity) = ids.and_then(|ids| ids.entity(ObjectId(id))) else {
            return Err(format!("it knows object {id}, which does not exist"));
        };
        let variant = if id == own.id().0 {
            attributes.variant(Attributes::OWN)
        } else {
            relation(attributes, standing, records.standing(id))
        };
        compare_object(world, entity, mirror, records, variant)
            .map_err(|what| format!("object {id}: {what}"))?;
    }
    Ok(())
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
    let attributes = world.resource::<Attributes>();
    let mut expected = Vec::new();
    for registered in
        bits(&attributes.told()[usize::from(variant.0)]).map_while(|bit| attributes.get(bit))
    {
        let mut value = Vec::new();
        if registered.encode(entity, &mut value) {
            expected.push((registered.spec.id, value));
        }
    }
    expected.sort_unstable();
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
