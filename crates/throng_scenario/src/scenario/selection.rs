//! The objects that a cue acts on: those with its tag that match all conditions of `only`, the first or random ones of them.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::RngExt;

use super::scenario_world::ScenarioWorld;
use super::schema::{ObjectCondition, ObjectSelector, SelectionOrder};
use crate::crowd::{self, CrowdArea};
use throng::aoi::SceneInterest;
use throng::sim::{RandomStreams, SimTick};
use throng::world::{Object, ObjectId, Position, SceneIds};

/// The name of the random stream of cues.
pub(super) const SCRIPT_STREAM: &str = "script";

/// Selects the objects of an action. O(objects with the tag × conditions); for `Near`, times the number of objects with the other
/// tag.
pub(super) fn select_objects(world: &mut World, who: ObjectSelector<'_>) -> Vec<Entity> {
    let count = who.count.map_or(usize::MAX, |count| count as usize);
    if who.only.is_empty() && who.pick == SelectionOrder::First && !who.is_clients_only {
        return crowd::members(world, who.tag, who.count);
    }
    let mut all = candidates(world, who, None);
    for only in who.only {
        retain(world, only, &mut all);
    }
    if who.pick == SelectionOrder::Random && count < all.len() {
        let mut streams = world.resource_mut::<RandomStreams>();
        let random = streams.stream(SCRIPT_STREAM);
        for nth in 0..count {
            let other = random.random_range(nth..all.len());
            all.swap(nth, other);
        }
    }
    all.truncate(count);
    all
}

/// Up to `max` candidates of an action: all with the tag, or the online players among them.
pub(super) fn candidates(world: &World, who: ObjectSelector<'_>, max: Option<u32>) -> Vec<Entity> {
    if !who.is_clients_only {
        return crowd::members(world, who.tag, max);
    }
    let mut all = crowd::members(world, who.tag, None);
    all.retain(|&entity| crowd::client_of(world, entity).is_some());
    all.truncate(max.map_or(usize::MAX, |max| max as usize));
    all
}

/// Whether an attribute of any object with a tag is less than `below`, or at least `at_least`.
pub(super) fn any_has_attribute(
    world: &World,
    tag: &str,
    attribute: &str,
    (below, at_least): (Option<i64>, Option<i64>),
) -> bool {
    let has = |entity: &Entity| {
        crowd::attribute(world, *entity, attribute).is_some_and(|value| {
            below.is_some_and(|limit| value < limit) || at_least.is_some_and(|limit| value >= limit)
        })
    };
    crowd::members(world, tag, None).iter().any(has)
}

/// Keeps the objects that match a condition, in their order.
fn retain(world: &World, only: &ObjectCondition, all: &mut Vec<Entity>) {
    match only {
        ObjectCondition::Within(area) => {
            let mut areas = AreaByScene::default();
            all.retain(|&entity| {
                areas.contains(world, entity, |stage, scene| {
                    stage.resolve_area(world, scene, area)
                })
            });
        }
        ObjectCondition::Outside(area) => {
            let mut areas = AreaByScene::default();
            all.retain(|&entity| {
                !areas.contains(world, entity, |stage, scene| {
                    stage.resolve_area(world, scene, area)
                })
            });
        }
        ObjectCondition::OutsideZone { .. } => {
            let (center_m, radius_m) = current_zone(world, only);
            let area = super::schema::ScenarioArea::Ring {
                center_m,
                radius_m,
                width_m: 0.0,
            };
            retain(world, &ObjectCondition::Outside(area), all);
        }
        ObjectCondition::Near { tag, radius_m } => {
            let centres = positions_by_scene(world, tag);
            all.retain(|&entity| {
                position(world, entity).is_some_and(|(scene, at)| {
                    let near = |&(other, centre): &(Entity, Vec2)| {
                        other != entity && centre.distance(at) <= *radius_m
                    };
                    centres
                        .get(&scene)
                        .is_some_and(|here| here.iter().any(near))
                })
            });
        }
        ObjectCondition::InViewOf(tag) => {
            let seen = seen_by_tag(world, tag);
            all.retain(|entity| seen.contains(entity));
        }
        ObjectCondition::Seeing(tag) => {
            let tagged = ids_by_scene(world, tag);
            all.retain(|&entity| sees_any(world, entity, &tagged));
        }
        ObjectCondition::Below { attribute, value } => all.retain(|&entity| {
            crowd::attribute(world, entity, attribute).is_some_and(|found| found < *value)
        }),
        ObjectCondition::AtLeast { attribute, value } => all.retain(|&entity| {
            crowd::attribute(world, entity, attribute).is_some_and(|found| found >= *value)
        }),
    }
}

/// An area, resolved for each scene on demand.
#[derive(Default)]
struct AreaByScene(BTreeMap<Entity, CrowdArea>);

impl AreaByScene {
    /// Whether an object is in the area; an object without a scene is not.
    fn contains(
        &mut self,
        world: &World,
        entity: Entity,
        place: impl Fn(&ScenarioWorld, Entity) -> CrowdArea,
    ) -> bool {
        let Some((scene, at)) = position(world, entity) else {
            return false;
        };
        let area = self
            .0
            .entry(scene)
            .or_insert_with(|| place(world.resource::<ScenarioWorld>(), scene));
        area.surrounds(at)
    }
}

/// The position and size of a zone in this tick.
fn current_zone(world: &World, only: &ObjectCondition) -> (Vec2, f32) {
    let ObjectCondition::OutsideZone {
        center_m,
        radius_m,
        to_center_m,
        to_radius_m,
        from_s,
        until_s,
    } = only
    else {
        return (Vec2::ZERO, 0.0);
    };
    let now_s =
        world.resource::<SimTick>().0 as f64 / world.resource::<ScenarioWorld>().scenario.tick_hz;
    let share = ((now_s - from_s) / (until_s - from_s)).clamp(0.0, 1.0) as f32;
    (
        center_m.lerp(to_center_m.unwrap_or(*center_m), share),
        radius_m + (to_radius_m - radius_m) * share,
    )
}

/// The scene of an object, and its position.
fn position(world: &World, entity: Entity) -> Option<(Entity, Vec2)> {
    let scene = world.get::<Object>(entity)?.scene_entity();
    Some((scene, world.get::<Position>(entity)?.0))
}

/// The positions of the objects with a tag, by scene.
fn positions_by_scene(world: &World, tag: &str) -> BTreeMap<Entity, Vec<(Entity, Vec2)>> {
    let mut centres: BTreeMap<Entity, Vec<(Entity, Vec2)>> = BTreeMap::new();
    for entity in crowd::members(world, tag, None) {
        if let Some((scene, at)) = position(world, entity) {
            centres.entry(scene).or_default().push((entity, at));
        }
    }
    centres
}

/// All objects that any object with a tag sees. O(objects with the tag × view size).
fn seen_by_tag(world: &World, tag: &str) -> BTreeSet<Entity> {
    let mut found = BTreeSet::new();
    for entity in crowd::members(world, tag, None) {
        let Some(object) = world.get::<Object>(entity) else {
            continue;
        };
        let scene = object.scene_entity();
        let parts = world
            .get::<SceneInterest>(scene)
            .zip(world.get::<SceneIds>(scene));
        if let Some((interest, objects)) = parts {
            let seen = interest.views().seen_by(object.id().0);
            found.extend(seen.filter_map(|(target, _)| objects.entity(ObjectId(target))));
        }
    }
    found
}

/// The ids of the objects with a tag, by scene.
fn ids_by_scene(world: &World, tag: &str) -> BTreeMap<Entity, BTreeSet<u32>> {
    let mut ids: BTreeMap<Entity, BTreeSet<u32>> = BTreeMap::new();
    for entity in crowd::members(world, tag, None) {
        if let Some(object) = world.get::<Object>(entity) {
            let in_scene = ids.entry(object.scene_entity()).or_default();
            in_scene.insert(object.id().0);
        }
    }
    ids
}

/// Whether an object sees any of the targets. The check goes through the viewer's view, not the targets' viewers: a view is
/// bounded by its caps, while all objects in a hot spot may see one target. O(min(targets, view size)).
fn sees_any(world: &World, entity: Entity, ids: &BTreeMap<Entity, BTreeSet<u32>>) -> bool {
    const FEW: usize = 32;
    let Some(object) = world.get::<Object>(entity) else {
        return false;
    };
    let (scene, viewer) = (object.scene_entity(), object.id().0);
    let parts = ids.get(&scene).zip(world.get::<SceneInterest>(scene));
    parts.is_some_and(|(ids, interest)| {
        let views = interest.views();
        if ids.len() <= FEW {
            ids.iter().any(|&id| views.visible(viewer, id))
        } else {
            views
                .seen_by(viewer)
                .any(|(target, _)| ids.contains(&target))
        }
    })
}
