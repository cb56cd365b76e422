//! View exceptions: objects that are shown to one viewer, or hidden from one, whatever the rules say.
//!
//! ```text
//! viewer: ViewExceptions {target: Show | Hide} ◀──▶ target: ExceptedBy {viewer}
//! ```
//! An exception belongs to two entities and to no scene, so it survives a change of scene. The views of a scene contain the
//! exceptions whose two objects are both in that scene.
//!
//! Invariant: both ends of an exception are live objects, and each is in the component of the other.
//! Cost: O(exceptions of the object) when an object is despawned or changes the scene.

use bevy_ecs::entity::{EntityIndexMap, EntityIndexSet};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryState;
use bevy_ecs::world::DeferredWorld;
use thiserror::Error;

use super::settings::AoiSettings;
use crate::aoi::ViewException;
use crate::sim::StateHasher;
use crate::world::{Object, ObjectRef};

/// The exceptions of a viewer, on its entity; set with [`show_to`] and [`hide_from`].
///
/// They survive a change of scene of either object. An exception ends with [`clear_view_exception`], or when one of the two is
/// despawned or is no longer an object. Removing the component ends all exceptions of the viewer.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::aoi::{ViewException, ViewExceptions};
///
/// fn is_hidden(ghost: Entity, viewer: &ViewExceptions) -> bool {
///     viewer.get(ghost) == Some(ViewException::Hide)
/// }
/// ```
#[derive(Component, Debug)]
#[component(on_discard = on_exceptions_discarded, clone_behavior = Ignore)]
pub struct ViewExceptions(EntityIndexMap<ViewException>);

impl ViewExceptions {
    /// The exception for a target; `None` if the rules apply. O(1).
    #[must_use]
    pub fn get(&self, target: Entity) -> Option<ViewException> {
        self.0.get(&target).copied()
    }

    /// All exceptions with their targets, in any scene. The order is the same in every run.
    pub fn iter(&self) -> impl Iterator<Item = (Entity, ViewException)> + '_ {
        self.0
            .iter()
            .map(|(&target, &exception)| (target, exception))
    }

    /// The number of exceptions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The viewers that have an exception for an object, on the object's entity: the reverse of [`ViewExceptions`].
#[derive(Component, Debug, Default)]
#[component(on_discard = on_excepted_by_discarded, clone_behavior = Ignore)]
pub(super) struct ExceptedBy(EntityIndexSet);

impl ExceptedBy {
    pub fn viewers(&self) -> impl Iterator<Item = Entity> + '_ {
        self.0.iter().copied()
    }
}

/// Removes a viewer whose exceptions were discarded from the lists of its targets.
fn on_exceptions_discarded(mut world: DeferredWorld, context: HookContext) {
    let exceptions = world.get_mut::<ViewExceptions>(context.entity);
    let exceptions = exceptions.map(|mut exceptions| std::mem::take(&mut exceptions.0));
    for target in exceptions.unwrap_or_default().into_keys() {
        if let Some(mut excepted_by) = world.get_mut::<ExceptedBy>(target) {
            excepted_by.0.swap_remove(&context.entity);
        }
    }
}

/// Ends the exceptions for an object that was removed.
fn on_excepted_by_discarded(mut world: DeferredWorld, context: HookContext) {
    let viewers = world.get_mut::<ExceptedBy>(context.entity);
    let viewers = viewers.map(|mut viewers| std::mem::take(&mut viewers.0));
    for viewer in viewers.unwrap_or_default() {
        if let Some(mut exceptions) = world.get_mut::<ViewExceptions>(viewer) {
            // The views drop them with the object, so this is no change to apply.
            let exceptions = exceptions.bypass_change_detection();
            exceptions.0.swap_remove(&context.entity);
        }
    }
}

/// Ends all exceptions of and for an entity that is no longer an object. When it is despawned, the hooks above do this.
pub(super) fn end_exceptions(removed: On<Remove<Object>>, mut world: DeferredWorld) {
    let entity = removed.entity;
    if world.get::<ViewExceptions>(entity).is_some() || world.get::<ExceptedBy>(entity).is_some() {
        let mut commands = world.commands();
        let mut commands = commands.entity(entity);
        commands.try_remove::<(ViewExceptions, ExceptedBy)>();
    }
}

/// The part of the state hash that holds all exceptions. Entities differ between runs, so each end is hashed as an object.
pub(super) fn hash_exceptions() -> impl FnMut(&mut World, &mut StateHasher) {
    let mut query: Option<QueryState<(&Object, &ViewExceptions)>> = None;
    move |world, hasher| {
        let query = query.get_or_insert_with(|| world.query());
        let mut sum = 0u128;
        for (viewer, exceptions) in query.iter(world) {
            for (target, exception) in exceptions.iter() {
                let Some(target) = world.get::<Object>(target) else {
                    continue;
                };
                let mut own = StateHasher::default();
                for object in [viewer, target] {
                    own.write_u64(object.key());
                    own.write_u64(u64::from(object.generation().0));
                }
                own.write_u64(u64::from(exception == ViewException::Show));
                sum = sum.wrapping_add(own.finish());
            }
        }
        hasher.write_u64(sum as u64);
        hasher.write_u64((sum >> 64) as u64);
    }
}

/// Why an exception cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// One of the entities is not an object of a scene.
    #[error("{entity} is not a live object of a scene")]
    NoSuchObject {
        /// The entity that is not an object.
        entity: Entity,
    },
    /// Viewer and target are the same object.
    #[error("object {} of scene {} cannot be shown to itself or hidden from itself", object.id, object.scene.0)]
    Itself {
        /// The object that was given as viewer and as target.
        object: ObjectRef,
    },
    /// The viewer has the maximum number of exceptions.
    #[error(
        "viewer {} of scene {} already has {max} exceptions, the limit of `exceptions_per_viewer_max`",
        viewer.id, viewer.scene.0
    )]
    TooMany {
        /// The viewer at its limit.
        viewer: ObjectRef,
        /// [`AoiSettings::exceptions_per_viewer_max`].
        max: u32,
    },
}

/// Shows an object to a viewer, whatever layers and [`ViewRules`](super::ViewRules) say; see [`ViewException`] for what takes
/// precedence. It replaces an existing exception of the two, and applies from the next View on.
///
/// The exception survives a change of scene of either object, also while they are in different scenes. It ends with
/// [`clear_view_exception`], or when one of the two is despawned. A player who logs in again is a new object, so set it again
/// then. A viewer has at most [`exceptions_per_viewer_max`](AoiSettings::exceptions_per_viewer_max) exceptions, including those
/// for objects in other scenes. O(1); the next View examines all objects around the viewer again.
///
/// In a system, use [`ViewEntityCommandsExt`](super::ViewEntityCommandsExt).
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn show_to(world: &mut World, object: Entity, viewer: Entity) -> Result<(), ViewError> {
    set_exception(world, object, viewer, ViewException::Show)
}

/// Hides an object from one viewer, whatever the rules say; for a blocked player, or stealth. Otherwise like [`show_to`]: the
/// object stays hidden when either changes the scene, until [`clear_view_exception`] or until one of the two is despawned.
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn hide_from(world: &mut World, object: Entity, viewer: Entity) -> Result<(), ViewError> {
    set_exception(world, object, viewer, ViewException::Hide)
}

/// Ends the exception that two objects have, if any, in any scenes: layers and rules apply to them again.
///
/// # Errors
/// See [`ViewError`]; nothing is changed then.
pub fn clear_view_exception(
    world: &mut World,
    object: Entity,
    viewer: Entity,
) -> Result<(), ViewError> {
    check_ends(world, object, viewer)?;
    let exceptions = world.get_mut::<ViewExceptions>(viewer);
    // An exception that does not exist is no change.
    if let Some(mut exceptions) = exceptions.filter(|all| all.0.contains_key(&object)) {
        exceptions.0.swap_remove(&object);
        if let Some(mut excepted_by) = world.get_mut::<ExceptedBy>(object) {
            excepted_by.0.swap_remove(&viewer);
        }
    }
    Ok(())
}

/// The viewer as an object, if the two can have an exception.
fn check_ends(world: &World, object: Entity, viewer: Entity) -> Result<ObjectRef, ViewError> {
    let reference = |entity| {
        let object = world.get::<Object>(entity).map(Object::reference);
        object.ok_or(ViewError::NoSuchObject { entity })
    };
    let target = reference(object)?;
    if object == viewer {
        return Err(ViewError::Itself { object: target });
    }
    reference(viewer)
}

fn set_exception(
    world: &mut World,
    object: Entity,
    viewer: Entity,
    exception: ViewException,
) -> Result<(), ViewError> {
    let reference = check_ends(world, object, viewer)?;
    let max = world.get_resource::<AoiSettings>().map_or_else(
        || AoiSettings::default().exceptions_per_viewer_max,
        |settings| settings.exceptions_per_viewer_max,
    );
    let exceptions = world.get::<ViewExceptions>(viewer);
    let before = exceptions.and_then(|all| all.get(object));
    if before == Some(exception) {
        return Ok(());
    }
    let count = exceptions.map_or(0, ViewExceptions::len);
    if before.is_none() && count as u64 >= u64::from(max) {
        let viewer = reference;
        return Err(ViewError::TooMany { viewer, max });
    }
    let mut viewer_entity = world.entity_mut(viewer);
    let mut viewer_entry = viewer_entity
        .entry::<ViewExceptions>()
        .or_insert_with(|| ViewExceptions(EntityIndexMap::default()));
    viewer_entry.get_mut().0.insert(object, exception);
    let mut object_entity = world.entity_mut(object);
    let mut object_entry = object_entity.entry::<ExceptedBy>().or_default();
    object_entry.get_mut().0.insert(viewer);
    Ok(())
}
