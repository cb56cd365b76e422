//! A client's mirror beside the server.

use bevy_ecs::prelude::*;

use super::attributes::{Attributes, Audience};
use super::{motion_of, words};
use crate::aoi::SceneInterest;
use crate::session::Sessions;
use crate::sync::Mirror;
use crate::wire::{ClientId, Motion};
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
    let ids = world.get::<SceneObjects>(own.scene_entity());
    for id in expected {
        let Some(entity) = ids.and_then(|ids| ids.entity(ObjectId(id))) else {
            return Err(format!("it knows object {id}, which does not exist"));
        };
        compare_object(world, entity, mirror, id == own.id().0)
            .map_err(|what| format!("object {id}: {what}"))?;
    }
    Ok(())
}

fn compare_object(world: &World, entity: Entity, mirror: &Mirror, own: bool) -> Result<(), String> {
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
    let moving = entity.components::<(&Position, &Velocity, &Heading, &Floor)>();
    let motion = Motion {
        discontinuity: known.motion.discontinuity,
        ..motion_of(moving)
    };
    if known.motion != motion {
        return Err(format!("motion {:?}, not {motion:?}", known.motion));
    }
    let attributes = world.resource::<Attributes>();
    let mut expected = Vec::new();
    for registered in attributes.table() {
        let mut value = Vec::new();
        let told = own || registered.spec.audience == Audience::Viewers;
        if told && (registered.encode)(entity, &mut value) {
            value.truncate(registered.spec.bytes_max as usize);
            expected.push((registered.spec.id, value));
        }
    }
    expected.sort_unstable();
    if known.attributes == expected {
        Ok(())
    } else {
        Err(format!(
            "attributes {:?}, not {expected:?}",
            known.attributes
        ))
    }
}
