//! Applies changes of the world to the views: spawned, despawned and teleported objects, and changed traits.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use glam::Vec2;
use tracing::{error, warn};

use super::components::{ViewRelations, ViewRerankRequest, ViewRules, ViewTag, Viewable, Viewer};
use super::exceptions::{ExceptedBy, ViewExceptions};
use super::interest::SceneInterest;
use super::settings::AoiStats;
use crate::aoi::{RemovalReason, SceneViews, ViewException, ViewProfile, ViewTraits};
use crate::world::{
    AffiliationChanged, GuildId, Object, ObjectCategory, ObjectChangedScene, ObjectDespawned,
    ObjectId, ObjectKinds, ObjectRef, ObjectSpawned, ObjectTeleported, PartyId, Position, SceneIds,
    SimScene, SpawnFailed, TeamId,
};

type ProfileRow = (
    &'static Object,
    &'static Position,
    Option<&'static Viewer>,
    Option<&'static Viewable>,
    Option<&'static TeamId>,
    Option<&'static PartyId>,
    Option<&'static GuildId>,
    Option<&'static ViewRelations>,
    Option<&'static ViewTag>,
);
type ProfileItem<'w, 's> = <ProfileRow as bevy_ecs::query::QueryData>::Item<'w, 's>;

/// What the views read of objects.
#[derive(SystemParam)]
pub(super) struct Profiles<'w, 's> {
    objects: Query<'w, 's, ProfileRow>,
    kinds: Res<'w, ObjectKinds>,
}

/// The traits of an object that rules may read.
fn traits_of(profiled: &ProfileItem, kinds: &ObjectKinds, objects: &SceneIds) -> ViewTraits {
    let &(object, _, viewer, viewable, team, party, guild, ties, tag) = profiled;
    // A relation to an object that is despawned or in another scene does not count. Ids begin at 1, so 0 means "none".
    let id_of = |tie: Option<ObjectRef>| {
        let lives = |tie: &ObjectRef| {
            tie.scene == object.scene() && objects.resolve(tie.id, tie.generation).is_some()
        };
        tie.filter(lives).map_or(0, |tie| tie.id.0)
    };
    let class = kinds.get(object.kind()).map(|kind| kind.class);
    ViewTraits {
        id: object.id().0,
        owner: ties.map_or(0, |ties| id_of(ties.owner)),
        target: ties.map_or(0, |ties| id_of(ties.target)),
        tag: tag.map_or([0; 2], |tag| tag.0),
        scenery: class == Some(ObjectCategory::Thing),
        class: class.unwrap_or_default(),
        // 0 means "none" there, so teams and guilds are increased by one.
        team: team.map_or(0, |team| team.0.wrapping_add(1)),
        party: party.map_or(0, |party| party.0),
        guild: guild.map_or(0, |guild| guild.0.wrapping_add(1)),
        layers: viewable.map_or(0, |viewable| viewable.layers),
        sees: viewer.map_or(0, |viewer| viewer.sees),
        // Without `Viewable` no viewer sees it, not even one that it is shown to.
        hidden: viewable.is_none_or(|viewable| viewable.hidden),
    }
}

/// Counts entities with view components that are not objects, and names the first.
pub(super) fn count_non_objects(
    unplaced: Query<
        (Entity, Has<Viewer>),
        (
            Or<(Added<Viewer>, Added<Viewable>)>,
            Without<Object>,
            Without<SpawnFailed>,
        ),
    >,
    mut stats: ResMut<AoiStats>,
) {
    for (entity, sees) in &unplaced {
        if stats.non_objects == 0 {
            warn!(
                %entity,
                component = if sees { "Viewer" } else { "Viewable" },
                "entity ignored by the views: it has this component (`Player` and `Npc` bring it) and is not an object of a scene; \
                 add `InScene(…)` and a `Position` (first case; `AoiStats::non_objects` counts all)"
            );
        }
        stats.non_objects += 1;
    }
}

/// Removes objects that left their scene: their links, relations and exceptions in it end.
pub(super) fn remove_despawned(
    mut gone: MessageReader<ObjectDespawned>,
    mut moved_on: MessageReader<ObjectChangedScene>,
    mut scenes: Query<&mut SceneInterest>,
) {
    let moved_on = moved_on.read().map(|change| change.from.reference());
    let mut moved_on: Vec<ObjectRef> = moved_on.collect();
    moved_on.sort_unstable();
    for ObjectDespawned { object, .. } in gone.read() {
        let Ok(mut interest) = scenes.get_mut(object.scene_entity()) else {
            continue;
        };
        let removal = if moved_on.binary_search(&object.reference()).is_ok() {
            RemovalReason::Scene
        } else {
            RemovalReason::Despawn
        };
        interest.views.remove(object.id().0, removal);
        interest.keep_flags.set(object.id().0, false);
    }
}

/// Inserts spawned objects.
pub(super) fn insert_spawned(
    mut came: MessageReader<ObjectSpawned>,
    profiles: Profiles,
    mut scenes: Query<(&mut SceneInterest, &SceneIds)>,
    mut stats: ResMut<AoiStats>,
) {
    for spawned in came.read() {
        let Ok(profiled) = profiles.objects.get(spawned.entity) else {
            continue;
        };
        let object = profiled.0;
        // A later message of this tick may have moved it to another scene already.
        if object.reference() != spawned.object.reference() {
            continue;
        }
        let Ok((mut interest, objects)) = scenes.get_mut(object.scene_entity()) else {
            continue;
        };
        let id = object.id().0;
        let Some(kind) = profiles.kinds.get(object.kind()) else {
            continue;
        };
        let profile = ViewProfile {
            class: kind.class,
            visibility: kind.visibility,
            traits: traits_of(&profiled, &profiles.kinds, objects),
            // Without `Viewable` it is hidden, which keeps it unseen until the component comes.
            viewable: true,
        };
        let caps = profiled.2.map(|viewer| viewer.caps);
        match interest.views.insert(id, profiled.1.0, profile, caps) {
            Ok(()) => {
                let (views, named) = (&mut interest.views, (spawned.entity, id));
                set_range(views, named, profiled.2, &mut stats);
                let bearers = &mut interest.entities;
                bearers.set(object.id(), spawned.entity, object.generation());
                let keep = profiled.3.is_some_and(|viewable| viewable.keep);
                interest.keep_flags.set(id, keep);
            }
            Err(error) => error!(
                scene = object.scene().0,
                object = id,
                %error,
                "object not added to the views: it sees nobody and is not seen"
            ),
        }
    }
}

/// Applies the range of a viewer; one that is invalid is counted, and the first is named in a warning.
fn set_range(
    views: &mut SceneViews,
    (entity, id): (Entity, u32),
    viewer: Option<&Viewer>,
    stats: &mut AoiStats,
) {
    let range_m = viewer.and_then(|viewer| viewer.range_m);
    let Err(error) = views.set_radius(id, range_m) else {
        return;
    };
    if stats.invalid_ranges == 0 {
        warn!(
            %entity,
            object = id,
            %error,
            "range of a viewer ignored: it sees the cells around it (first case; `AoiStats::invalid_ranges` counts all)"
        );
    }
    stats.invalid_ranges += 1;
    // The error has the range that is refused; without one, there is nothing to refuse.
    let _ = views.set_radius(id, None);
}

/// Applies teleports.
pub(super) fn apply_teleports(
    mut put: MessageReader<ObjectTeleported>,
    objects: Query<(&Object, &Position)>,
    mut scenes: Query<&mut SceneInterest>,
) {
    for teleported in put.read() {
        let Ok((object, position)) = objects.get(teleported.entity) else {
            continue;
        };
        if let Ok(mut interest) = scenes.get_mut(object.scene_entity()) {
            interest.views.teleport(object.id().0, position.0);
        }
    }
}

/// Updates objects whose traits changed.
pub(super) fn update_traits(
    mut affiliations: MessageReader<AffiliationChanged>,
    mut priority: MessageReader<ViewRerankRequest>,
    mut stopped_viewing: RemovedComponents<Viewer>,
    mut stopped_showing: RemovedComponents<Viewable>,
    altered: Query<Entity, Or<(Changed<Viewer>, Changed<Viewable>)>>,
    profiles: Profiles,
    mut scenes: Query<(&mut SceneInterest, &SceneIds)>,
    mut stats: ResMut<AoiStats>,
) {
    let changed = affiliations.read().map(|message| message.entity);
    for entity in changed
        .chain(priority.read().map(|message| message.entity))
        .chain(&altered)
        .chain(stopped_viewing.read())
        .chain(stopped_showing.read())
    {
        let Ok(profiled) = profiles.objects.get(entity) else {
            continue;
        };
        let Ok((mut interest, objects)) = scenes.get_mut(profiled.0.scene_entity()) else {
            continue;
        };
        let id = profiled.0.id().0;
        let traits = traits_of(&profiled, &profiles.kinds, objects);
        interest.views.set_traits(id, traits);
        let keep = profiled.3.is_some_and(|viewable| viewable.keep);
        interest.keep_flags.set(id, keep);
        let caps = profiled.2.map(|viewer| viewer.caps);
        if interest.views.caps(id) != caps {
            interest.views.set_caps(id, caps);
        }
        set_range(&mut interest.views, (entity, id), profiled.2, &mut stats);
    }
}

/// Applies rules that were changed or removed.
pub(super) fn update_rules(
    mut removed: RemovedComponents<ViewRules>,
    changed: Query<Entity, Changed<ViewRules>>,
    mut scenes: Query<(&mut SceneInterest, Option<&ViewRules>)>,
) {
    for entity in removed.read().chain(&changed) {
        if let Ok((mut interest, rules)) = scenes.get_mut(entity) {
            let rules = rules.copied().unwrap_or_default();
            interest.views.set_rules(rules.allows, rules.class);
            interest.views.set_distance_rules(rules.by_distance);
        }
    }
}

/// Copies exceptions to the views: of viewers whose exceptions changed or that entered a scene, and for objects that entered
/// one.
pub(super) fn update_exceptions(
    mut removed: RemovedComponents<ViewExceptions>,
    objects: Query<&Object>,
    changed: Query<(&Object, &ViewExceptions), Or<(Changed<ViewExceptions>, Changed<Object>)>>,
    came: Query<(Entity, &Object, &ExceptedBy), Changed<Object>>,
    viewers: Query<(&Object, &ViewExceptions)>,
    mut scenes: Query<&mut SceneInterest>,
) {
    for entity in removed.read() {
        if let Ok(viewer) = objects.get(entity)
            && let Ok(mut interest) = scenes.get_mut(viewer.scene_entity())
        {
            set_exceptions(&mut interest, viewer.id(), &BTreeMap::new());
        }
    }
    for (viewer, exceptions) in &changed {
        let Ok(mut interest) = scenes.get_mut(viewer.scene_entity()) else {
            continue;
        };
        let here = exceptions.iter().filter_map(|(target, exception)| {
            let target = objects.get(target).ok()?;
            let is_here = target.scene() == viewer.scene();
            is_here.then_some((target.id().0, exception))
        });
        let here: BTreeMap<u32, ViewException> = here.collect();
        set_exceptions(&mut interest, viewer.id(), &here);
    }
    for (entity, target, excepted_by) in &came {
        let Ok(mut interest) = scenes.get_mut(target.scene_entity()) else {
            continue;
        };
        for (viewer, exceptions) in viewers.iter_many(excepted_by.viewers()).flatten() {
            if viewer.scene() == target.scene() {
                let (viewer, exception) = (viewer.id().0, exceptions.get(entity));
                interest
                    .views
                    .set_exception(viewer, target.id().0, exception);
            }
        }
    }
}

/// Replaces the exceptions of a viewer.
fn set_exceptions(
    interest: &mut SceneInterest,
    viewer: ObjectId,
    wanted: &BTreeMap<u32, ViewException>,
) {
    let had = interest
        .views
        .exceptions(viewer.0)
        .map(|(target, _)| target);
    let ended: Vec<u32> = had.filter(|target| !wanted.contains_key(target)).collect();
    for target in ended {
        interest.views.set_exception(viewer.0, target, None);
    }
    for (&target, &exception) in wanted {
        interest
            .views
            .set_exception(viewer.0, target, Some(exception));
    }
}

/// Converts changed positions to cells. A position outside of its scene counts as the nearest cell at the border; the first is
/// named in a warning, all are counted.
pub(super) fn locate(
    moved: Query<(&Object, &Position), Changed<Position>>,
    mut scenes: Query<(&SimScene, &mut SceneInterest)>,
    mut by_scene: Local<Vec<(Entity, u32, Vec2)>>,
    mut stats: ResMut<AoiStats>,
) {
    by_scene.clear();
    by_scene.extend(
        moved
            .iter()
            .map(|(object, position)| (object.scene_entity(), object.id().0, position.0)),
    );
    for run in by_scene.chunk_by(|a, b| a.0 == b.0) {
        let Ok((scene, mut interest)) = scenes.get_mut(run[0].0) else {
            continue;
        };
        for &(_, id, position) in run {
            // False for NaN.
            let is_inside =
                position.cmpge(Vec2::ZERO).all() && position.cmple(scene.size_m()).all();
            if !is_inside {
                if stats.outside_scene == 0 {
                    let (scene, size_m) = (scene.id().0, scene.size_m());
                    warn!(
                        scene,
                        object = id,
                        %position,
                        %size_m,
                        "object outside its scene: expected from (0, 0) to the scene's size in metres (first case; \
                         `AoiStats::outside` counts all)"
                    );
                }
                stats.outside_scene += 1;
            }
            interest.views.locate(id, position);
        }
    }
}
