//! Views by entity, for a game's own systems.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::interest::SceneInterest;
use crate::world::{Object, ObjectId, SceneObjects};

/// Whom does this entity see, and who sees it: as of the last View, by entity.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::prelude::*;
///
/// #[derive(Component)]
/// struct Frightening;
///
/// fn frighten(views: Views, frightening: Query<Entity, With<Frightening>>, mut speeds: Query<&mut MaxSpeed>) {
///     for entity in &frightening {
///         for witness in views.watchers(entity) {
///             if let Ok(mut speed) = speeds.get_mut(witness) {
///                 speed.0 = 3.0;
///             }
///         }
///     }
/// }
/// ```
/// Of an entity that is no object, or came since, there is nothing; who is gone since is left out. The order of the lists is
/// that in which views keep them: not sorted, the same in every run, and so fit for decisions. Caps hold for views and not
/// for the world: who stands next to a viewer whose list is full need not be in it.
///
/// Cost: finding the two ends is three look-ups of components, each of the list's entities one in the scene's list of ids.
/// Whom a viewer sees is at hand; who sees a target is asked of all viewers around it.
#[derive(SystemParam)]
pub struct Views<'w, 's> {
    objects: Query<'w, 's, &'static Object>,
    scenes: Query<'w, 's, (&'static SceneInterest, &'static SceneObjects)>,
}

/// An object as the views of its scene know it.
#[derive(Clone, Copy)]
struct SceneViewRef<'a> {
    id: u32,
    interest: &'a SceneInterest,
    objects: &'a SceneObjects,
}

impl SceneViewRef<'_> {
    /// The entity of another of the scene; `None` for one that is gone.
    fn entity(&self, other: u32) -> Option<Entity> {
        let id = ObjectId(other);
        self.objects.resolve(id, self.interest.generation(id))
    }
}

impl Views<'_, '_> {
    /// Whom a viewer sees. O(those).
    pub fn seen_by(&self, viewer: Entity) -> impl Iterator<Item = Entity> {
        self.resolve(viewer).into_iter().flat_map(|known| {
            let seen = known.interest.views().seen_by(known.id);
            seen.filter_map(move |(target, _)| known.entity(target))
        })
    }

    /// Who sees a target. O(viewers in the nine cells around it), a load for each; of one that is seen from afar, of all from
    /// where it is.
    pub fn watchers(&self, target: Entity) -> impl Iterator<Item = Entity> {
        self.resolve(target).into_iter().flat_map(|known| {
            let watchers = known.interest.views().watchers(known.id);
            watchers.filter_map(move |viewer| known.entity(viewer))
        })
    }

    /// Whether a viewer sees a target; see [`SceneViews::visible`](crate::aoi::SceneViews::visible) for what it costs.
    #[must_use]
    pub fn sees(&self, viewer: Entity, target: Entity) -> bool {
        let (Some(viewer), Some(target)) = (self.resolve(viewer), self.resolve(target)) else {
            return false;
        };
        let is_here = viewer.interest.scene() == target.interest.scene();
        is_here && viewer.interest.views().visible(viewer.id, target.id)
    }

    /// How many see a target, those who are gone since the last View included. It costs what [`watchers`](Self::watchers)
    /// costs.
    #[must_use]
    pub fn watchers_len(&self, target: Entity) -> usize {
        let known = self.resolve(target);
        known.map_or(0, |known| known.interest.views().watchers_len(known.id))
    }

    /// The object as the views know it: one that came, or went to another scene, since the last Locate is not known yet.
    fn resolve(&self, entity: Entity) -> Option<SceneViewRef<'_>> {
        let object = self.objects.get(entity).ok()?;
        let (interest, objects) = self.scenes.get(object.scene_entity()).ok()?;
        let id = object.id().0;
        let is_known =
            interest.views().contains(id) && interest.object_ref(id) == object.reference();
        is_known.then_some(SceneViewRef {
            id,
            interest,
            objects,
        })
    }
}
