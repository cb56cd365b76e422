//! Players who control something else than their own object, and players who watch, all without connecting anew.
//!
//! ```text
//! own object ── possess ──▶ an NPC, a vehicle; the own object stands by ──┐
//!            └─ spectate ─▶ a view on another's; the own object is gone ──┴─ release ─▶ own object
//! ```
//! Invariants: what is possessed has a view and no [`Walker`], since its player moves it; what was let go of is as it was before.
//! With a player's session goes what it controls, and its own object, too.

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

/// Why not all players got control of what they were to.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PossessionError {
    /// There are fewer than players.
    #[error("{found} uncontrolled objects, expected {expected}")]
    TooFewObjects {
        /// How many players there are.
        expected: usize,
        /// How many there are for them.
        found: usize,
    },
    /// There is nobody.
    #[error("no other player to spectate")]
    NoSpectateTarget,
    /// There is no room in a scene, or nothing to stand in it.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Players get control of what bears a tag, is no player and is nobody's: the first of them of the first, and so on. Gives how
/// many did.
///
/// # Errors
/// [`PossessionError::TooFewObjects`]; the first players have what there is.
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

/// Players' objects go, and they watch what bears a tag, wherever it goes: the first of them the first, and so on, from the first
/// again where there are fewer. Gives how many do.
///
/// # Errors
/// [`PossessionError`]; those before have become spectators.
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
        let (Some(there), Some(&Position(at))) =
            (world.get::<Object>(other), world.get::<Position>(other))
        else {
            continue;
        };
        let viewer = world.get::<Viewer>(body).copied().unwrap_or_default();
        let scene = there.scene_entity();
        let view = spawn_object(world, scene, own.kind(), at, (viewer, AttachedTo(other)))?;
        spectators += usize::from(control(world, client, view));
        despawn_object(world, body)?;
    }
    Ok(spectators)
}

/// Up to `count` players of a tag who possess something or watch have an object of their own again. Gives how many do.
///
/// # Errors
/// [`PossessionError::World`] of the first that finds no room; those before have theirs.
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

/// How many players of a tag possess something or watch.
#[must_use]
pub fn count_possessing(world: &World, tag: &str) -> usize {
    possessing_players(world, tag).len()
}

/// The players of a tag that control something else than their own object, with that.
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

/// Something is nobody's again, and goes on as it did before.
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

/// With a player's session its own object goes, where it controlled something else.
pub(super) fn despawn_orphaned_characters(
    world: &mut World,
    mut logged_out: Local<MessageCursor<LoggedOut>>,
) {
    let gone = logged_out.read(world.resource::<Messages<LoggedOut>>());
    let players = world.resource::<Players>();
    let bodies: Vec<Entity> = gone
        .filter_map(|gone| players.entity(gone.player))
        .filter(|&body| {
            world.get::<CrowdMember>(body).is_some() && world.get::<ControlledBy>(body).is_none()
        })
        .collect();
    for body in bodies {
        // Whoever is gone already needs no more.
        let _ = despawn_object(world, body);
    }
}
