//! Exceptions from the rules for single viewers: who is shown to one, or hidden from one.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use thiserror::Error;

use super::settings::AoiSettings;
use crate::aoi::ViewException;
use crate::sim::StateHasher;
use crate::world::{Object, ObjectRef, SceneId, SceneObjects, StateHashed};

/// The exceptions that hold for a viewer, on its entity; made by [`show_to`] and [`hide_from`].
///
/// They go with their objects: an exception ends when either end is despawned or goes to another scene.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewExceptions(BTreeMap<ObjectRef, ViewException>);

impl ViewExceptions {
    /// What holds for a target; `None` if the rules do.
    #[must_use]
    pub fn get(&self, target: ObjectRef) -> Option<ViewException> {
        self.0.get(&target).copied()
    }

    /// All exceptions, by target.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectRef, ViewException)> + '_ {
        self.0
            .iter()
            .map(|(&target, &exception)| (target, exception))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps those whose target lives in this scene.
    pub(super) fn retain_live(&mut self, scene: SceneId, objects: &SceneObjects) {
        self.0.retain(|target, _| is_live(target, scene, objects));
    }
}

fn is_live(target: &ObjectRef, scene: SceneId, objects: &SceneObjects) -> bool {
    target.scene == scene && objects.resolve(target.id, target.generation).is_some()
}

impl StateHashed for ViewExceptions {
    fn hash(&self, hasher: &mut StateHasher) {
        for (target, exception) in self.iter() {
            hasher.write_u64(u64::from(target.scene.0) << 32 | u64::from(target.id.0));
            let shows = u64::from(exception == ViewException::Show);
            hasher.write_u64(u64::from(target.generation.0) << 1 | shows);
        }
    }
}

/// Why there can be no such exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// One of the entities is no object of a scene.
    #[error("{entity} is not a live object of a scene")]
    NoSuchObject {
        /// The entity asked for.
        entity: Entity,
    },
    /// Nobody sees itself through a view.
    #[error("object {} of scene {} cannot be shown to itself or hidden from itself", object.id, object.scene.0)]
    Itself {
        /// The object that was named as viewer and as target.
        object: ObjectRef,
    },
    /// The two are in different scenes.
    #[error(
        "viewer {} of scene {} and object {} of scene {} are in different scenes",
        viewer.id, viewer.scene.0, object.id, object.scene.0
    )]
    OtherScene {
        /// Who was to be shown or hidden.
        object: ObjectRef,
        /// The viewer, which is in another scene.
        viewer: ObjectRef,
    },
    /// The viewer has as many exceptions as it may have.
    #[error(
        "viewer {} of scene {} already has {max} exceptions, the limit of `exceptions_per_viewer_max`",
        viewer.id, viewer.scene.0
    )]
    TooMany {
        /// The viewer that can have no more of them.
        viewer: ObjectRef,
        /// [`AoiSettings::exceptions_per_viewer_max`].
        max: u32,
    },
}

/// Lets a viewer see an object whatever layers and [`ViewRules`](super::ViewRules) say; see [`ViewException`] for what goes
/// before what. In place of an exception that there is for the two already. It holds from the next View on, until it is
/// ended or one of the two is despawned or goes to another scene. O(the viewer's exceptions); the next View judges anew
/// whom the viewer sees.
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn show_to(world: &mut World, object: Entity, viewer: Entity) -> Result<(), ViewError> {
    set_exception(world, object, viewer, Some(ViewException::Show))
}

/// Hides an object from one viewer, whatever the rules say and whoever showed it; otherwise as [`show_to`].
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn hide_from(world: &mut World, object: Entity, viewer: Entity) -> Result<(), ViewError> {
    set_exception(world, object, viewer, Some(ViewException::Hide))
}

/// Ends the exception that there is for two, if any: layers and rules hold for them again.
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn clear_view_exception(
    world: &mut World,
    object: Entity,
    viewer: Entity,
) -> Result<(), ViewError> {
    set_exception(world, object, viewer, None)
}

fn set_exception(
    world: &mut World,
    object: Entity,
    viewer: Entity,
    exception: Option<ViewException>,
) -> Result<(), ViewError> {
    let reference = |entity| {
        let object = world.get::<Object>(entity);
        object.copied().ok_or(ViewError::NoSuchObject { entity })
    };
    let (target, me) = (reference(object)?, reference(viewer)?);
    let (target, reference) = (target.reference(), me.reference());
    if object == viewer {
        return Err(ViewError::Itself { object: target });
    }
    if target.scene != reference.scene {
        return Err(ViewError::OtherScene {
            object: target,
            viewer: reference,
        });
    }
    let max = world.get_resource::<AoiSettings>().map_or_else(
        || AoiSettings::default().exceptions_per_viewer_max,
        |settings| settings.exceptions_per_viewer_max,
    );
    let before = world.get::<ViewExceptions>(viewer);
    let mut exceptions = before.cloned().unwrap_or_default();
    if let Some(objects) = world.get::<SceneObjects>(me.scene_entity()) {
        exceptions.retain_live(reference.scene, objects);
    }
    match exception {
        None => {
            exceptions.0.remove(&target);
        }
        Some(exception) => {
            let is_new = exceptions.0.insert(target, exception).is_none();
            if exceptions.len() as u64 > u64::from(max) && is_new {
                let viewer = reference;
                return Err(ViewError::TooMany { viewer, max });
            }
        }
    }
    if before != Some(&exceptions) {
        world.entity_mut(viewer).insert(exceptions);
    }
    Ok(())
}
