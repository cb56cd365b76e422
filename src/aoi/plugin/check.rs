//! Checks views against the world. The expected state of each object is read again from its components, with separate code.
//!
//! Cost: O(objects² + links); for tests and for the expectations of scenarios.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::components::{ViewRelations, ViewTag, Viewable, Viewer};
use super::exceptions::ViewExceptions;
use super::interest::SceneInterest;
use crate::aoi::{ViewException, ViewInvariantError, ViewTraits};
use crate::world::{
    GuildId, Object, ObjectCategory, ObjectId, ObjectKinds, ObjectRef, PartyId, Position, SceneIds,
    TeamId,
};

/// Checks the views of a scene: that they contain every object with the state of its components, and no other object, and then
/// all that [`SceneViews::validate`](crate::aoi::SceneViews::validate) checks. Call it after a tick, before anything is
/// changed: a change since the last View counts as an error. A scene without views is valid.
///
/// # Errors
/// The invariant that does not hold, and the object.
pub fn validate_views(world: &World, scene: Entity) -> Result<(), ViewInvariantError> {
    let (Some(interest), Some(objects)) = (
        world.get::<SceneInterest>(scene),
        world.get::<SceneIds>(scene),
    ) else {
        return Ok(());
    };
    let views = interest.views();
    for (id, entity) in objects.iter() {
        check_object(world, interest, objects, id, entity).map_err(ViewInvariantError::new)?;
    }
    for id in 0..=objects.max_objects() {
        if views.contains(id) && objects.entity(ObjectId(id)).is_none() {
            return Err(ViewInvariantError::new(format!(
                "{id} is in the views and is gone"
            )));
        }
    }
    views.validate()
}

fn check_object(
    world: &World,
    interest: &SceneInterest,
    objects: &SceneIds,
    id: ObjectId,
    entity: Entity,
) -> Result<(), String> {
    let views = interest.views();
    let object = world.get::<Object>(entity);
    let object = object.ok_or_else(|| format!("{id} is no object"))?;
    let traits = views.traits(id.0);
    let traits = traits.ok_or_else(|| format!("{id} is not in the views"))?;
    let fault = |what: &str| Err(format!("the views know a wrong {what} of {id}: {traits:?}"));
    if interest.object_ref(id.0) != object.reference() {
        return fault("generation");
    }
    let position = world.get::<Position>(entity).map(|position| position.0);
    if views.position(id.0) != position {
        return fault("position");
    }
    let viewer = world.get::<Viewer>(entity);
    if views.caps(id.0) != viewer.map(|viewer| viewer.caps) {
        return fault("cap");
    }
    if views.radius(id.0) != viewer.and_then(Viewer::valid_range_m) {
        return fault("range");
    }
    let lives = |at: u32, tie: Option<ObjectRef>| match tie {
        Some(tie) if tie.scene == object.scene() => {
            let known = objects.resolve(tie.id, tie.generation);
            at == if known.is_some() { tie.id.0 } else { 0 }
        }
        _ => at == 0,
    };
    let ties = world.get::<ViewRelations>(entity);
    if !lives(traits.owner, ties.and_then(|ties| ties.owner)) {
        return fault("owner");
    }
    if !lives(traits.target, ties.and_then(|ties| ties.target)) {
        return fault("target");
    }
    let viewable = world.get::<Viewable>(entity);
    let kinds = world.resource::<ObjectKinds>();
    let class = kinds.get(object.kind()).map(|kind| kind.class);
    let team = world.get::<TeamId>(entity).map(|team| team.0);
    let guild = world.get::<GuildId>(entity).map(|guild| guild.0);
    let party = world.get::<PartyId>(entity).map(|party| party.0);
    let expected = ViewTraits {
        id: id.0,
        owner: traits.owner,
        target: traits.target,
        tag: world.get::<ViewTag>(entity).copied().unwrap_or_default().0,
        team: team.map_or(0, |team| team.wrapping_add(1)),
        party: party.unwrap_or(0),
        guild: guild.map_or(0, |guild| guild.wrapping_add(1)),
        layers: viewable.map_or(0, |viewable| viewable.layers),
        sees: viewer.map_or(0, |viewer| viewer.sees),
        class: class.unwrap_or_default(),
        hidden: viewable.is_none_or(|viewable| viewable.hidden),
        scenery: class == Some(ObjectCategory::Thing),
    };
    if traits != expected {
        return fault("trait");
    }
    let exceptions = world.get::<ViewExceptions>(entity);
    let exceptions = exceptions.into_iter().flat_map(ViewExceptions::iter);
    let here = exceptions.filter_map(|(target, exception)| {
        let target = world.get::<Object>(target)?.reference();
        (target.scene == object.scene()).then_some((target, exception))
    });
    let here: BTreeMap<ObjectRef, ViewException> = here.collect();
    let known = views.exceptions(id.0);
    if !known
        .map(|(target, exception)| (interest.object_ref(target), exception))
        .eq(here)
    {
        return fault("exception");
    }
    Ok(())
}
