//! Views by entity, for the systems of a game.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::interest::SceneInterest;
use crate::world::{Object, ObjectId, SceneIds};

/// Which objects an entity sees and which see it, as of the last View, by entity.
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
/// An entity that is not an object, or was spawned since the last View, has no views; objects that were despawned since are
/// left out. The lists have the order of the views: not sorted, but the same in every run, and so safe for decisions. Caps
/// apply to views: an object next to a viewer whose list is full need not be in it.
///
/// Cost: three component lookups for the two ends, and one lookup in the scene's list of ids for each entity of the result.
/// What a viewer sees is stored; the watchers of a target are found by testing all viewers around it.
#[derive(SystemParam)]
pub struct Views<'w, 's> {
    objects: Query<'w, 's, &'static Object>,
    scenes: Query<'w, 's, (&'static SceneInterest, &'static SceneIds)>,
}

/// An object and the views of its scene.
#[derive(Clone, Copy)]
struct SceneViewRef<'a> {
    id: u32,
    interest: &'a SceneInterest,
    objects: &'a SceneIds,
}

impl SceneViewRef<'_> {
    /// The entity of another object of the scene; `None` for one that was despawned.
    fn entity(&self, other: u32) -> Option<Entity> {
        let id = ObjectId(other);
        self.objects.resolve(id, self.interest.generation(id))
    }
}

impl Views<'_, '_> {
    /// The objects that a viewer sees. O(result).
    pub fn seen_by(&self, viewer: Entity) -> impl Iterator<Item = Entity> {
        self.resolve(viewer).into_iter().flat_map(|known| {
            let seen = known.interest.views().seen_by(known.id);
            seen.filter_map(move |(target, _)| known.entity(target))
        })
    }

    /// The viewers that see a target. O(viewers in the nine cells around it), one load each; for a target with a larger range,
    /// O(viewers within that range).
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

    /// The number of viewers of a target, including those that were despawned since the last View. It costs as much as
    /// [`watchers`](Self::watchers).
    #[must_use]
    pub fn watchers_len(&self, target: Entity) -> usize {
        let known = self.resolve(target);
        known.map_or(0, |known| known.interest.views().watchers_len(known.id))
    }

    /// The object in the views of its scene. One that was spawned, or changed the scene, since the last Locate is not known yet.
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
