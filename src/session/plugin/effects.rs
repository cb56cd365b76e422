//! Writes the effects of session changes as messages.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use tracing::{debug, warn};

use super::control::{
    ControlledBy, Controls, EndedSessions, OutlivesSession, SessionClient, SessionUserData,
    client_of,
};
use super::messages::{
    AwaitingReconnect, ConnectionLost, LoggedIn, LoggedOut, SessionClosed, SessionNoticeRequest,
    SessionResumed,
};
use super::settings::SessionStats;
use crate::inbox::Inbox;
use crate::memory::clear_and_shrink;
use crate::session::reasons::LogoutReason;
use crate::session::sessions::{SessionEffect, Sessions};
use crate::session::state::Session;
use crate::session::token::SessionKey;
use crate::wire::{ClientId, LoginRefusal, SessionNotice};
use crate::world::despawn_object;

/// Ends a session. The object that it controls is despawned, [`LoggedOut`] is written for its player, and its client receives
/// the reason. It does nothing when there is no such session.
pub fn disconnect(world: &mut World, client: ClientId, reason: LogoutReason) {
    if world.get_resource::<Sessions>().is_some() {
        end_session(world, client, reason, &mut Vec::new());
    }
}

/// Ends the session whose entity is despawned. Before other hooks take its object away, which is despawned with it.
pub(super) fn on_session_despawned(mut world: DeferredWorld, context: HookContext) {
    if let Some(client) = client_of(&world, context.entity) {
        world
            .commands()
            .queue(move |world: &mut World| disconnect(world, client, LogoutReason::Kicked));
    }
}

pub(super) fn end_session(
    world: &mut World,
    client: ClientId,
    reason: LogoutReason,
    effects: &mut Vec<SessionEffect>,
) {
    world.resource_mut::<Sessions>().end(client, reason);
    write_effects(world, effects);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work has the two resources and no world"
)]
pub(super) fn with_key<R>(
    world: &mut World,
    work: impl FnOnce(&mut Sessions, &mut SessionKey) -> R,
) -> R {
    world.resource_scope(|world, mut key: Mut<SessionKey>| {
        work(&mut world.resource_mut::<Sessions>(), &mut key)
    })
}

/// Writes the effects of session changes as messages, in order.
pub(super) fn write_effects(world: &mut World, effects: &mut Vec<SessionEffect>) {
    loop {
        world.resource_mut::<Sessions>().drain_effects(effects);
        if effects.is_empty() {
            clear_and_shrink(effects);
            return;
        }
        let mut refused = None;
        for effect in effects.drain(..) {
            write_effect(world, effect, &mut refused);
        }
    }
}

/// Writes an effect. `refused` is the client whose login was just refused, until its session ends.
fn write_effect(
    world: &mut World,
    effect: SessionEffect,
    refused: &mut Option<(ClientId, LoginRefusal)>,
) {
    match effect {
        SessionEffect::LoginRefused(client, refusal) => {
            log_refusal(world, client, refusal);
            *refused = Some((client, refusal));
        }
        SessionEffect::Promoted(client) => {
            world.resource::<Inbox>().intake().queue.promote(client);
        }
        SessionEffect::Notice(client, notice) => {
            if matches!(notice, SessionNotice::Queued { .. }) {
                world.resource_mut::<SessionStats>().queue_notices += 1;
            }
            world.write_message(SessionNoticeRequest { client, notice });
        }
        SessionEffect::LoggedIn {
            client,
            client_entity,
            player,
        } => {
            world.resource_mut::<SessionStats>().logins += 1;
            world.write_message(LoggedIn {
                client,
                client_entity,
                player,
            });
        }
        SessionEffect::ConnectionLost(client, session) => {
            world.resource_mut::<SessionStats>().connections_lost += 1;
            world.resource::<Inbox>().intake().queue.close(client);
            let entity = session.controlled_entity;
            if let Some(mut object) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                object.insert(AwaitingReconnect);
            }
            if let Some(player) = session.player {
                world.write_message(ConnectionLost {
                    client,
                    client_entity: session.client_entity,
                    player,
                    entity,
                });
            }
        }
        SessionEffect::Resumed {
            client,
            before,
            client_entity,
            unused_entity,
            player,
            entity,
        } => {
            world.resource_mut::<SessionStats>().resumed += 1;
            replace_connection(world, client, (client_entity, unused_entity));
            if let Some(mut object) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                object.remove::<AwaitingReconnect>();
            }
            world.write_message(SessionResumed {
                client,
                previous_client: before,
                client_entity,
                player,
                entity,
            });
        }
        SessionEffect::Ended(client, session, reason) => {
            let refusal = refused.take_if(|(of, _)| *of == client);
            let refusal = refusal.map(|(_, refusal)| refusal);
            write_session_end(world, client, session, (reason, refusal));
        }
    }
}

/// The entity of a resumed session gets the new client id and the user data of the new token. The entity that the new connection had
/// before is despawned.
fn replace_connection(
    world: &mut World,
    client: ClientId,
    (client_entity, unused_entity): (Entity, Option<Entity>),
) {
    let mut ended = world.resource_mut::<EndedSessions>();
    ended.entities.extend(unused_entity);
    let unused = unused_entity.and_then(|entity| world.get_entity_mut(entity).ok());
    let user_data = unused.and_then(|mut unused| unused.take::<SessionUserData>());
    if let Ok(mut session) = world.get_entity_mut(client_entity) {
        match user_data {
            Some(data) => session.insert(data),
            None => session.remove::<SessionUserData>(),
        };
        session.insert(SessionClient::new(client));
    }
}

/// Counts a refused login, and logs its cause. A login for another player than the token's is a mistake of the game or an attempt of its
/// player, who has to get a token for each: both are rare, and their operator wants to know.
fn log_refusal(world: &mut World, client: ClientId, refusal: LoginRefusal) {
    world
        .resource_mut::<SessionStats>()
        .login_refusals
        .count(refusal);
    let sessions = world.resource::<Sessions>();
    let address = sessions.get(client).and_then(|session| session.address);
    if matches!(refusal, LoginRefusal::WrongPlayer { .. }) {
        warn!(client = client.0, ?address, "login refused: {refusal}");
    } else {
        debug!(client = client.0, ?address, "login refused: {refusal}");
    }
}

/// Despawns the object of an ended session, or releases it if it outlives the session. Returns `false` if it was already despawned.
fn release_object(world: &mut World, entity: Entity) -> bool {
    if world.get::<OutlivesSession>(entity).is_none() {
        return despawn_object(world, entity).is_ok();
    }
    world
        .entity_mut(entity)
        .remove::<(ControlledBy, AwaitingReconnect)>();
    true
}

/// Ends a session: removes its queue, and despawns its object unless the session is resumed elsewhere. Its entity is despawned at
/// the end of the tick, so that an object that is spawned for it until then finds that the session has ended.
fn write_session_end(
    world: &mut World,
    client: ClientId,
    session: Session,
    (reason, refusal): (LogoutReason, Option<LoginRefusal>),
) {
    world.resource::<Inbox>().intake().queue.close(client);
    let mut stats = world.resource_mut::<SessionStats>();
    stats.ends.count(reason);
    tracing::debug!(
        client = client.0,
        player = session.player.map(|player| player.0),
        reason = reason.label(),
        "session ended"
    );
    match reason {
        LogoutReason::Full | LogoutReason::Banned | LogoutReason::Refused => stats.refused += 1,
        LogoutReason::TimedOut => stats.timed_out += 1,
        _ => {}
    }
    world.write_message(SessionClosed {
        client,
        receives: session.receives,
        claims: session.claims,
        reason,
        refusal,
    });
    if reason == LogoutReason::Resumed {
        return;
    }
    // It may be despawned already; then there is nothing to do.
    let entity = session
        .controlled_entity
        .filter(|&entity| release_object(world, entity));
    let client_entity = session.client_entity;
    let mut ended = world.resource_mut::<EndedSessions>();
    ended.entities.push(client_entity);
    if let Ok(mut session) = world.get_entity_mut(client_entity) {
        session.remove::<Controls>();
    }
    if let Some(player) = session.player {
        world.resource_mut::<SessionStats>().logouts += 1;
        world.write_message(LoggedOut {
            client,
            client_entity,
            player,
            entity,
            reason,
        });
    }
}
