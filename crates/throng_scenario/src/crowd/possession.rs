//! Players that control another object than their own, and spectators. The connection stays the same.
//!
//! ```text
//! own object ── possess ──▶ an NPC, a vehicle; the own object stands by ──┐
//!            └─ spectate ─▶ a view on another's; the own object is gone ──┴─ release ─▶ own object
//! ```
//! Invariants: a possessed object has a view and no [`Walker`], since its player moves it; a released object is as it was before.
//! The end of a player's session also removes its own object and releases what it controls.

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use thiserror::Error;

use super::clients::SyntheticClients;
use super::commands::members;
use super::crowds::{CrowdId, CrowdMember, Crowds};
use super::disconnects::client_of;
use super::spawn::spawn_member;
use throng::aoi::Viewer;
use throng::movement::{AttachedTo, Walker};
use throng::nav::NavPath;
use throng::session::{ControlledBy, LoggedOut, Sessions, control};
use throng::wire::ClientId;
use throng::world::{
    Object, ObjectCategory, ObjectKinds, PlayerId, Players, Position, WorldError, despawn_object,
    spawn_object,
};

/// Why players did not get control of an object, a view or their own object.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PossessionError {
    /// There are fewer objects than players.
    #[error("{found} uncontrolled objects, expected {expected}")]
    TooFewObjects {
        /// The number of players.
        expected: usize,
        /// The number of available objects.
        found: usize,
    },
    /// There is no object to watch.
    #[error("no other player to spectate")]
    NoSpectateTarget,
    /// A scene has no room, or no free tile.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Gives each player control of one object with tag `of` that is not a player and not controlled. Players and objects are paired in
/// order. Returns the number of players that got control.
///
/// # Errors
/// [`PossessionError::TooFewObjects`]; the first players control the objects that exist.
pub fn possess(world: &mut World, players: &[Entity], of: &str) -> Result<usize, PossessionError> {
    let free = |&entity: &Entity| {
        world.get::<ControlledBy>(entity).is_none() && world.get::<PlayerId>(entity).is_none()
    };
    let targets: Vec<Entity> = members(world, of, None).into_iter().filter(free).collect();
    let mut possessed = 0;
    for (&body, &target) in players.iter().zip(&targets) {
        let (Some(client), viewer) = (client_of(world, body), world.get::<Viewer>(body).copied())
        else {
            continue;
        };
        if let Some(mut path) = world.get_mut::<NavPath>(target) {
            path.clear();
        }
        let mut entity = world.entity_mut(target);
        entity.remove::<Walker>();
        entity.insert(viewer.unwrap_or_default());
        possessed += usize::from(control(world, client, target));
    }
    if targets.len() < players.len() {
        return Err(PossessionError::TooFewObjects {
            expected: players.len(),
            found: targets.len(),
        });
    }
    Ok(possessed)
}

/// Replaces the objects of players by views that follow objects with tag `follow`, in any scene. Players and objects are paired in
/// order; if there are fewer objects, they are used again from the first. Returns the number of spectators.
///
/// # Errors
/// [`PossessionError`]; the players before have become spectators.
pub fn spectate(
    world: &mut World,
    players: &[Entity],
    follow: &str,
) -> Result<usize, PossessionError> {
    let mut watched = members(world, follow, None);
    watched.retain(|entity| !players.contains(entity));
    if watched.is_empty() {
        return Err(PossessionError::NoSpectateTarget);
    }
    let mut spectators = 0;
    for (&body, &other) in players.iter().zip(watched.iter().cycle()) {
        let (Some(client), Some(&own)) = (client_of(world, body), world.get::<Object>(body)) else {
            continue;
        };
        let (Some(target), Some(&Position(at))) =
            (world.get::<Object>(other), world.get::<Position>(other))
        else {
            continue;
        };
        let viewer = world.get::<Viewer>(body).copied().unwrap_or_default();
        let scene = target.scene_entity();
        let view = spawn_object(world, scene, own.kind(), at, (viewer, AttachedTo(other)))?;
        spectators += usize::from(control(world, client, view));
        despawn_object(world, body)?;
    }
    Ok(spectators)
}

/// Returns up to `count` players with a tag, which possess an object or spectate, to their own objects. Returns their number.
///
/// # Errors
/// [`PossessionError::World`] of the first player without room; the players before it have theirs.
pub fn release(world: &mut World, tag: &str, count: u32) -> Result<usize, PossessionError> {
    let mut released = 0;
    for (crowd, client, player, controlled) in possessing_players(world, tag) {
        if released >= count as usize {
            break;
        }
        let own = world.resource::<Players>().entity(player);
        let own = match own {
            Some(own) => own,
            None => spawn_member(world, crowd, player.0, player)?,
        };
        released += usize::from(control(world, client, own));
        if world.get::<AttachedTo>(controlled).is_some() {
            despawn_object(world, controlled)?;
        } else {
            release_object(world, controlled);
        }
    }
    Ok(released)
}

/// Number of players with a tag that possess an object or spectate.
#[must_use]
pub fn count_possessing(world: &World, tag: &str) -> usize {
    possessing_players(world, tag).len()
}

/// The players with a tag that control another object than their own, and that object.
fn possessing_players(world: &World, tag: &str) -> Vec<(CrowdId, ClientId, PlayerId, Entity)> {
    let (sessions, players) = (world.resource::<Sessions>(), world.resource::<Players>());
    let synthetics = world.resource::<SyntheticClients>();
    let tagged = world.resource::<Crowds>().with_tag(tag);
    let all = tagged.flat_map(|crowd| {
        synthetics
            .clients_of(crowd)
            .map(move |(c, p)| (crowd, c, p))
    });
    all.filter_map(|(crowd, client, player)| {
        let controlled = sessions.get(client)?.controlled_entity?;
        (players.entity(player) != Some(controlled)).then_some((crowd, client, player, controlled))
    })
    .collect()
}

/// Ends the control of an object: removes its view, and lets the server move it again. Objects of players stay as they are.
fn release_object(world: &mut World, entity: Entity) {
    let kind = world.get::<Object>(entity).map(Object::kind);
    let kinds = world.resource::<ObjectKinds>();
    let class = kind.and_then(|kind| kinds.get(kind)).map(|kind| kind.class);
    if class == Some(ObjectCategory::Player) {
        return;
    }
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.remove::<Viewer>();
        entity.insert(Walker);
        if let Some(mut path) = entity.get_mut::<NavPath>() {
            path.clear();
        }
    }
}

/// Despawns the player's own object when a session ends while it controls another object.
pub(super) fn despawn_orphaned_characters(
    world: &mut World,
    mut logged_out: Local<MessageCursor<LoggedOut>>,
) {
    let logouts = logged_out.read(world.resource::<Messages<LoggedOut>>());
    let players = world.resource::<Players>();
    let bodies: Vec<Entity> = logouts
        .filter_map(|logout| players.entity(logout.player))
        .filter(|&body| {
            world.get::<CrowdMember>(body).is_some() && world.get::<ControlledBy>(body).is_none()
        })
        .collect();
    for body in bodies {
        // An error means that the object no longer exists.
        let _ = despawn_object(world, body);
    }
}
