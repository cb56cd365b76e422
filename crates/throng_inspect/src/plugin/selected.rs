//! The object selected on a page: its state, its path, its view, its viewers, and why another object is seen or not.

use bevy_ecs::prelude::*;
use glam::Vec2;
use serde_json::{Value as Json, json};

use super::waits::{WaitReasons, party_of};
use crate::visibility_reason::{PairRules, explain_visibility};
use throng::aoi::{SceneInterest, ViewRules};
use throng::map::SceneMap;
use throng::matchmaking::{Matchmaker, TicketParty};
use throng::nav::NavPath;
use throng::session::controlling_client;
use throng::sync::Attributes;
use throng::wire::AttributeValue;
use throng::world::{
    GuildId, Object, ObjectCategory, ObjectId, ObjectKinds, PartyId, PlayerId, Position, SceneId,
    SceneIds, Scenes, TeamId, Velocity,
};

/// Maximum number of objects in a list, and of points of a path.
const LISTED_MAX: usize = 512;

/// Everything about an object, or that it no longer exists.
pub(super) fn selected_json(
    world: &World,
    (scene, id): (SceneId, u32),
    other: Option<u32>,
    (waits, tick): (&WaitReasons, u64),
) -> String {
    let found = find_object(world, scene, id).map(|(entity, of)| {
        let mut reply = object_json(world, entity, of, other);
        reply["wait_reason"] = waits.party_json(world, entity, tick);
        reply
    });
    let mut reply = found.unwrap_or_else(|| json!({ "gone": true }));
    reply["type"] = "selected".into();
    reply["scene"] = scene.0.into();
    reply["id"] = id.into();
    reply.to_string()
}

/// The party with which an object waits for a match.
pub(super) fn waiting_party(world: &World, scene: SceneId, id: u32) -> Option<TicketParty> {
    let matchmaker = world.get_resource::<Matchmaker>()?;
    party_of(matchmaker, find_object(world, scene, id)?.0)
}

/// An object of a scene, and the scene's entity.
fn find_object(world: &World, scene: SceneId, id: u32) -> Option<(EntityRef<'_>, Entity)> {
    let of = world.get_resource::<Scenes>()?.entity(scene)?;
    let entity = world.get::<SceneIds>(of)?.entity(ObjectId(id))?;
    Some((world.get_entity(entity).ok()?, of))
}

fn object_json(world: &World, entity: EntityRef, of: Entity, other: Option<u32>) -> Json {
    let kind = entity.get::<Object>().map(Object::kind);
    let kinds = world.get_resource::<ObjectKinds>();
    let kind = kinds.zip(kind).and_then(|(kinds, kind)| kinds.get(kind));
    let at = entity
        .get::<Position>()
        .map_or(Vec2::ZERO, |position| position.0);
    let speed = entity
        .get::<Velocity>()
        .map_or(0.0, |velocity| velocity.0.length());
    let mut reply = json!({
        "kind": kind.map(|kind| kind.name.as_str()),
        "at": [at.x, at.y],
        "speed": speed,
        "team": entity.get::<TeamId>().map(|team| team.0),
        "party": entity.get::<PartyId>().map(|party| party.0),
        "guild": entity.get::<GuildId>().map(|guild| guild.0),
        "player": entity.get::<PlayerId>().map(|player| player.0.to_string()),
        "client": controlling_client(world, entity.id()).map(|client| client.0),
        "attributes": attributes_json(world, entity),
        "path": path_json(world, entity, of),
    });
    if let (Some(interest), Some(object)) = (world.get::<SceneInterest>(of), entity.get::<Object>())
    {
        let (views, id) = (interest.views(), object.id().0);
        let seen = views.seen_by(id).take(LISTED_MAX);
        reply["sees"] = seen.map(|(target, class)| json!([target, class])).collect();
        reply["sees_count"] = views.seen_by(id).count().into();
        reply["seen_by"] = views
            .watchers(id)
            .take(LISTED_MAX)
            .map(Json::from)
            .collect();
        reply["seen_by_count"] = views.watchers(id).count().into();
        if let Some(caps) = views.caps(id) {
            let classes = [
                ObjectCategory::Player,
                ObjectCategory::Npc,
                ObjectCategory::Thing,
            ];
            let lists = classes.into_iter().zip(caps.by_class());
            let lists = lists.map(|(class, cap)| json!([views.list_len(id, class), cap]));
            reply["lists"] = lists.collect();
        }
        if let Some(other) = other {
            reply["why"] = json!({
                "other": other,
                "sees": visibility_json(world, (interest, of), id, other),
                "seen": visibility_json(world, (interest, of), other, id),
                "apart_m": views.position(other).map(|there| there.distance(at)),
            });
        }
    }
    reply
}

/// Whether one object sees another, and why.
fn visibility_json(
    world: &World,
    (interest, of): (&SceneInterest, Entity),
    viewer: u32,
    target: u32,
) -> Json {
    let entity = interest.entity(ObjectId(target));
    let object = entity.and_then(|entity| world.get::<Object>(entity));
    let kinds = world.get_resource::<ObjectKinds>();
    let kind = kinds
        .zip(object)
        .and_then(|(kinds, object)| kinds.get(object.kind()));
    let own = world.get::<ViewRules>(of);
    let rules = PairRules {
        filter: own.and_then(|rules| rules.allows),
        visibility: kind.map(|kind| kind.visibility),
        has_custom_ranking: own.is_some_and(|rules| rules.class.is_some()),
    };
    let reason = explain_visibility(interest.views(), rules, viewer, target);
    let class = kind.map_or(ObjectCategory::Thing, |kind| kind.class);
    json!([reason.is_seen(), reason.describe(class)])
}

fn attributes_json(world: &World, entity: EntityRef) -> Vec<Json> {
    let Some(attributes) = world.get_resource::<Attributes>() else {
        return Vec::new();
    };
    let values = attributes.specs().enumerate().filter_map(|(place, spec)| {
        let value = match attributes.value(place, entity)? {
            AttributeValue::Unsigned(value) => value.to_string(),
            AttributeValue::Signed(value) => value.to_string(),
            AttributeValue::Float(value) => value.to_string(),
            AttributeValue::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Some(json!([spec.name, value]))
    });
    values.take(LISTED_MAX).collect()
}

/// The remaining path, in metres.
fn path_json(world: &World, entity: EntityRef, of: Entity) -> Vec<Json> {
    let (Some(path), Some(map)) = (entity.get::<NavPath>(), world.get::<SceneMap>(of)) else {
        return Vec::new();
    };
    let points = path.remaining().iter().take(LISTED_MAX);
    let points = points.map(|&tile| map.centre_of(tile));
    points.map(|point| json!([point.x, point.y])).collect()
}
