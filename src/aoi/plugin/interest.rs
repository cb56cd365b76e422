//! The views of a scene in the tick, and their events.

use std::cmp::Reverse;

use bevy_ecs::prelude::*;
use glam::Vec2;
use tracing::error;

use super::components::SceneAoiSettings;
use super::entities::EntityByObjectId;
use super::keep_flags::KeepFlags;
use super::settings::{AoiSettings, AoiStats, add_since};
use crate::aoi::{GridError, SceneViews, ViewCounters, ViewEvent, ViewLeaveReason};
use crate::memory::{MemoryUse, clear_and_shrink};
use crate::sim::{Overload, Workers};
use crate::world::{Generation, ObjectId, ObjectRef, SceneId, SceneIds, SceneOpened, SimScene};

/// The views of a scene; on the scene's entity from its first Locate on.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::aoi::SceneInterest;
///
/// /// Objects that came into view and left it in this tick.
/// fn count_changes(scenes: Query<(&SimScene, &SceneInterest)>) {
///     for (scene, interest) in &scenes {
///         println!("{}: {} changes", scene.name(), interest.events().len());
///     }
/// }
/// ```
#[derive(Component, Debug, MemoryUse)]
pub struct SceneInterest {
    scene: SceneId,
    pub(super) views: SceneViews,
    pub(super) entities: EntityByObjectId,
    pub(super) keep_flags: KeepFlags,
    last_counters: ViewCounters,
    /// What the last update changed.
    events: Vec<ViewEvent>,
}

impl SceneInterest {
    /// Grid, rows and lists.
    #[must_use]
    pub const fn views(&self) -> &SceneViews {
        &self.views
    }

    /// All changes of the last View in this scene, for systems that keep their own data about links. It is complete:
    /// [`ViewEntered`] and [`ViewLeft`] are written from it, for systems that prefer messages.
    ///
    /// Each event has the ids of viewer and target and the viewer's list; a leave also has its reason. Ids are unique within a
    /// tick, since an id is not reused before its `ObjectDespawned` went through a whole Replicate:
    /// [`object_ref`](Self::object_ref) returns the generation that each of this tick's events means, also for despawned objects.
    ///
    /// The events of one viewer are in the order in which they happened. Events of different viewers are in an order that is the
    /// same in every run and with any number of workers. The leaves of removed objects come first.
    ///
    /// The list stays as it is until the next View. When a scene closes, its links end without events.
    #[must_use]
    pub fn events(&self) -> &[ViewEvent] {
        &self.events
    }

    /// The scene whose views these are.
    #[must_use]
    pub const fn scene(&self) -> SceneId {
        self.scene
    }

    /// The object that has, or last had, this id: the one that an event means. O(1).
    #[must_use]
    pub fn object_ref(&self, id: u32) -> ObjectRef {
        ObjectRef {
            scene: self.scene,
            id: ObjectId(id),
            generation: self.generation(ObjectId(id)),
        }
    }

    /// The generation of the object that has, or last had, this id. O(1).
    #[must_use]
    pub fn generation(&self, id: ObjectId) -> Generation {
        self.entities.generation(id)
    }

    /// The entity of the object that has, or last had, this id; it may be despawned, or in another scene. `None` for an id that was
    /// never used. O(1).
    #[must_use]
    pub fn entity(&self, id: ObjectId) -> Option<Entity> {
        self.entities.entity(id)
    }

    /// Whether the client of a viewer that knows a target (id and generation) keeps it out of view, by [`Viewable::keep`].
    ///
    /// [`Viewable::keep`]: super::Viewable::keep
    pub(crate) fn keeps(&self, viewer: u32, (target, generation): (u32, u32)) -> bool {
        self.is_marked_to_keep(target)
            && self.generation(ObjectId(target)).0 == generation
            && self.views.allows(viewer, target)
    }

    /// Whether an object has [`Viewable::keep`](super::Viewable::keep).
    pub(crate) fn is_marked_to_keep(&self, id: u32) -> bool {
        self.keep_flags.contains(id)
    }

    /// Whether the result of [`keeps`](Self::keeps) may have changed in the last View, for any pair.
    pub(crate) const fn has_keep_changes(&self) -> bool {
        self.keep_flags.has_changes()
    }

    /// The same for the pairs of an object, as viewer or as target.
    pub(crate) fn is_keep_changed(&self, id: u32) -> bool {
        self.keep_flags.is_changed(id)
    }

    /// The message for an enter, with the entities of both ends.
    pub(super) fn to_entered(&self, event: &ViewEvent) -> Option<ViewEntered> {
        let ViewEvent::Enter { priority, .. } = *event else {
            return None;
        };
        let (viewer, target) = event.pair();
        Some(ViewEntered {
            viewer_entity: self.entity_or_placeholder(viewer),
            target_entity: self.entity_or_placeholder(target),
            scene: self.scene,
            viewer: ObjectId(viewer),
            target: ObjectId(target),
            priority,
        })
    }

    /// The message for a leave, with the current or last entities of both ends.
    pub(super) fn to_left(&self, event: &ViewEvent) -> Option<ViewLeft> {
        let ViewEvent::Leave { reason, .. } = *event else {
            return None;
        };
        let (viewer, target) = event.pair();
        Some(ViewLeft {
            viewer_entity: self.entity_or_placeholder(viewer),
            target_entity: self.entity_or_placeholder(target),
            scene: self.scene,
            viewer: ObjectId(viewer),
            target: ObjectId(target),
            target_generation: self.generation(ObjectId(target)),
            reason,
        })
    }

    /// The entity that an event names. Every object in the views was registered here before.
    fn entity_or_placeholder(&self, id: u32) -> Entity {
        self.entity(ObjectId(id)).unwrap_or(Entity::PLACEHOLDER)
    }
}

/// A viewer sees a target from this tick on.
///
/// A message, and an event for observers on the viewer (`commands.entity(player).observe(|entered: On<ViewEntered>| …)`) or on
/// all viewers. Observers run within View, scene by scene, and for each viewer in the order in which the changes happened. A
/// viewer without observers costs nothing. Messages are for bulk. They are always written, since readers cannot be known (code
/// with access to the world may read [`Messages`](bevy_ecs::message::Messages) after the tick); each has at most 40 bytes.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn greet(mut entered: MessageReader<ViewEntered>) {
///     for seen in entered.read() {
///         println!("{} sees {}", seen.viewer_entity, seen.target_entity);
///     }
/// }
/// ```
#[derive(Message, EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewEntered {
    /// The entity that sees.
    #[event_target]
    pub viewer_entity: Entity,
    /// The entity that is seen.
    pub target_entity: Entity,
    /// The scene.
    pub scene: SceneId,
    /// The object that sees, by its id in that scene.
    pub viewer: ObjectId,
    /// The object that is seen, by its id in that scene.
    pub target: ObjectId,
    /// The class of the pair; a higher one has priority.
    pub priority: u8,
}

/// A viewer no longer sees a target. Every `ViewLeft` follows exactly one [`ViewEntered`] of the same pair; when a scene
/// closes, its links end without it. A message and an event, like [`ViewEntered`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::aoi::ViewLeaveReason;
///
/// /// Guards lose interest in what has hidden itself.
/// fn forget(mut left: MessageReader<ViewLeft>) {
///     for lost in left.read().filter(|lost| lost.reason == ViewLeaveReason::Hidden) {
///         println!("{} has lost {}", lost.viewer_entity, lost.target_entity);
///     }
/// }
/// ```
#[derive(Message, EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewLeft {
    /// The entity that saw. It may be despawned by now, and its observers with it.
    #[event_target]
    pub viewer_entity: Entity,
    /// The entity that was seen; it may be despawned by now.
    pub target_entity: Entity,
    /// The scene.
    pub scene: SceneId,
    /// The object that saw, by its id in that scene.
    pub viewer: ObjectId,
    /// The object that was seen, by its id in that scene.
    pub target: ObjectId,
    /// The generation of the target's id.
    pub target_generation: Generation,
    /// Why the link ended.
    pub reason: ViewLeaveReason,
}

/// Gives each new scene its grid.
pub(super) fn open_grids(
    mut opened: MessageReader<SceneOpened>,
    settings: Res<AoiSettings>,
    scenes: Query<(&SimScene, &SceneIds, Option<&SceneAoiSettings>)>,
    mut commands: Commands,
) {
    for scene_entity in opened.read().map(|message| message.entity) {
        let Ok((scene, objects, spec)) = scenes.get(scene_entity) else {
            continue;
        };
        let spec = spec.copied().unwrap_or(SceneAoiSettings {
            cell_m: settings.cell_m,
            margin_m: settings.margin_m,
            view_link_mode: settings.view_link_mode,
        });
        match new_interest(scene.id(), scene.size_m(), spec, objects.max_objects()) {
            Ok(interest) => {
                commands.entity(scene_entity).insert(interest);
            }
            // The scene runs without views; the embedder has to correct its settings.
            Err(error) => {
                error!(scene = scene.id().0, name = scene.name(), %error, "scene has no views: invalid grid settings")
            }
        }
    }
}

fn new_interest(
    scene: SceneId,
    size_m: Vec2,
    spec: SceneAoiSettings,
    max_objects: u32,
) -> Result<SceneInterest, GridError> {
    // Ids begin at 1, so the largest is `max_objects` itself.
    let views = SceneViews::with_size(
        (size_m.x, size_m.y),
        spec.cell_m,
        spec.margin_m,
        max_objects + 1,
    )?
    .with_view_link_mode(spec.view_link_mode);
    Ok(SceneInterest {
        scene,
        views,
        entities: EntityByObjectId::default(),
        keep_flags: KeepFlags::default(),
        last_counters: ViewCounters::default(),
        events: Vec::new(),
    })
}

/// Updates the view lists from the cells, scenes in parallel.
pub(super) fn update_views(
    settings: Res<AoiSettings>,
    (workers, overload): (Res<Workers>, Res<Overload>),
    mut scenes: Query<&mut SceneInterest>,
    mut stats: ResMut<AoiStats>,
) {
    let mut by_size: Vec<_> = scenes.iter_mut().map(Mut::into_inner).collect();
    by_size.sort_unstable_by_key(|interest| Reverse(interest.views.link_count()));
    let sweeps_max = overload.deferrable_budget_u32(settings.full_scans_per_tick_max);
    let exact_scans_max = overload.deferrable_budget_u32(settings.exact_scans_per_tick_max);
    let sight_tests_max = overload.deferrable_budget_u32(settings.scans_per_tick_max);
    workers.for_each_in_turn(&mut by_size, |interest| {
        let SceneInterest {
            views,
            events,
            keep_flags,
            ..
        } = &mut **interest;
        clear_and_shrink(events);
        if keep_flags.is_used() {
            keep_flags.set_changes(views.changed());
        }
        views.set_rerank_ticks(settings.rerank_ticks);
        views.set_full_scans_max(sweeps_max);
        views.set_exact_scans_max(exact_scans_max);
        views.update_with(*workers, sight_tests_max, events);
    });
    (stats.links, stats.queued) = (0, 0);
    for interest in by_size {
        let counters = interest.views.counters();
        add_since(&mut stats.counters, counters, interest.last_counters);
        interest.last_counters = counters;
        stats.links += interest.views.link_count() as u64;
        stats.queued += interest.views.queue_len() as u64;
    }
}
