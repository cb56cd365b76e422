//! Writes the effects of session changes as messages.

use bevy_ecs::prelude::*;

use super::control::ControlledBy;
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
use crate::wire::{ClientId, SessionNotice};
use crate::world::despawn_object;

/// Ends a session. The object that it controls is despawned, [`LoggedOut`] is written for its player, and its client receives
/// the reason. It does nothing when there is no such session.
pub fn disconnect(world: &mut World, client: ClientId, reason: LogoutReason) {
    if world.get_resource::<Sessions>().is_some() {
        end_session(world, client, reason, &mut Vec::new());
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
        for effect in effects.drain(..) {
            write_effect(world, effect);
        }
    }
}

fn write_effect(world: &mut World, effect: SessionEffect) {
    match effect {
        SessionEffect::Promoted(client) => {
            world.resource::<Inbox>().intake().queue.promote(client);
        }
        SessionEffect::Notice(client, notice) => {
            if matches!(notice, SessionNotice::Queued { .. }) {
                world.resource_mut::<SessionStats>().queue_notices += 1;
            }
            world.write_message(SessionNoticeRequest { client, notice });
        }
        SessionEffect::LoggedIn(client, player) => {
            world.resource_mut::<SessionStats>().logins += 1;
            world.write_message(LoggedIn { client, player });
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
                    player,
                    entity,
                });
            }
        }
        SessionEffect::Resumed {
            client,
            before,
            player,
            entity,
        } => {
            world.resource_mut::<SessionStats>().resumed += 1;
            if let Some(mut object) = entity.and_then(|entity| world.get_entity_mut(entity).ok()) {
                object.remove::<AwaitingReconnect>();
                object.insert(ControlledBy::new(client));
            }
            world.write_message(SessionResumed {
                client,
                previous_client: before,
                player,
                entity,
            });
        }
        SessionEffect::Ended(client, session, reason) => {
            write_session_end(world, client, session, reason)
        }
    }
}

/// Ends a session: removes its queue, and despawns its object unless the session is resumed elsewhere.
fn write_session_end(world: &mut World, client: ClientId, session: Session, reason: LogoutReason) {
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
    });
    if reason == LogoutReason::Resumed {
        return;
    }
    // It may be despawned already; then there is nothing to do.
    let entity = session
        .controlled_entity
        .filter(|&entity| despawn_object(world, entity).is_ok());
    if let Some(player) = session.player {
        world.resource_mut::<SessionStats>().logouts += 1;
        world.write_message(LoggedOut {
            client,
            player,
            entity,
            reason,
        });
    }
}
