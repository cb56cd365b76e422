//! The systems that connect sessions with players.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use throng::session::{
    ControlledBy, LoggedIn, LoggedOut, LogoutReason, OutlivesSession, SessionCommandsExt, Sessions,
};
use throng::sim::SimTick;
use throng::world::Object;
use throng_core::ids::PlayerId;

use super::{ClusterSessionsSettings, ticks};
use crate::plugin::{
    ClusterPlayer, ClusterPlayers, FrozenPlayer, PlayerLogOut, PlayerLoginRefused,
};

/// A session whose player is not here, or is being logged out.
#[derive(Clone, Copy, Debug, Default)]
struct WaitingSession {
    /// The tick in which the session ends; `None` while its login is not refused.
    until_tick: Option<u64>,
    /// The tick in which its login is repeated.
    login_tick: Option<u64>,
}

/// The sessions whose players are not here, or are being logged out.
#[derive(Resource, Debug, Default)]
pub(super) struct ClusterSessions {
    waiting: BTreeMap<PlayerId, WaitingSession>,
    /// Players that have left since the last tick.
    departed: Vec<PlayerId>,
}

/// A player without a client since this tick.
#[derive(Component, Clone, Copy, Debug)]
pub(super) struct UnattendedPlayer(u64);

/// Notes players that leave the node, with or without a session.
pub(super) fn note_departure(
    left: On<Remove<ClusterPlayer>>,
    players: Query<&ClusterPlayer>,
    mut sessions: ResMut<ClusterSessions>,
) {
    if let Ok(player) = players.get(left.entity) {
        sessions.departed.push(player.0);
    }
}

/// Logs out players whose sessions have ended. Frozen players are left out: if they stay, they log out after `client_wait_s`.
pub(super) fn end_sessions(
    mut ended: MessageReader<LoggedOut>,
    sessions: Res<Sessions>,
    players: Res<ClusterPlayers>,
    frozen: Query<(), With<FrozenPlayer>>,
    mut log_outs: MessageWriter<PlayerLogOut>,
) {
    for &LoggedOut { player, reason, .. } in ended.read() {
        let is_over = reason != LogoutReason::Moved && sessions.client_of(player).is_none();
        let here = players.entity(player).filter(|_| is_over);
        if here.is_some_and(|entity| !frozen.contains(entity)) {
            log_outs.write(PlayerLogOut(player));
        }
    }
}

/// Logs in the players of new sessions, and ends sessions that do not get their players in time.
pub(super) fn start_sessions(
    mut logins: MessageReader<LoggedIn>,
    mut refused: MessageReader<PlayerLoginRefused>,
    (players, sessions): (Res<ClusterPlayers>, Res<Sessions>),
    mut own: ResMut<ClusterSessions>,
    settings: Res<ClusterSessionsSettings>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    mut commands: Commands,
) {
    let (now, timestep) = (tick.0, time.timestep());
    let ClusterSessions { waiting, departed } = &mut *own;
    for player in departed.drain(..) {
        match waiting.get_mut(&player) {
            // Its client has logged in while the player was logged out.
            Some(session) => session.login_tick = Some(now),
            None => {
                let until = now + ticks(settings.client_wait_s, timestep);
                let departure = WaitingSession {
                    until_tick: Some(until),
                    login_tick: None,
                };
                waiting.insert(player, departure);
            }
        }
    }
    for login in logins.read() {
        waiting.insert(login.player, WaitingSession::default());
        if players.entity(login.player).is_none() {
            players.log_in(login.player);
        }
    }
    for refusal in refused.read() {
        if let Some(session) = waiting.get_mut(&refusal.player) {
            let until = now + ticks(settings.login_wait_s, timestep);
            session.until_tick.get_or_insert(until);
            session.login_tick = Some(now + ticks(settings.login_interval_s, timestep));
        }
    }
    waiting.retain(|&player, session| {
        let stays = players.entity(player).is_some() && !players.is_logging_out(player);
        let client = sessions.client_of(player);
        let Some(client) = client.filter(|_| !stays) else {
            return false;
        };
        if session.until_tick.is_some_and(|until| now >= until) {
            tracing::debug!(player = player.0, "session ended: its player is elsewhere");
            commands.disconnect_client(client, LogoutReason::PlayerUnavailable);
            return false;
        }
        if session.login_tick.take_if(|at| now >= *at).is_some() {
            players.log_in(player);
        }
        true
    });
}

/// Gives clients control of their players, and logs out players without a client for `client_wait_s`.
pub(super) fn attach_players(
    uncontrolled: Query<
        (
            Entity,
            &ClusterPlayer,
            Option<&UnattendedPlayer>,
            Has<Object>,
            Has<FrozenPlayer>,
        ),
        Without<ControlledBy>,
    >,
    sessions: Res<Sessions>,
    settings: Res<ClusterSessionsSettings>,
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    mut log_outs: MessageWriter<PlayerLogOut>,
    mut commands: Commands,
) {
    let wait = ticks(settings.client_wait_s, time.timestep());
    for (entity, &ClusterPlayer(player), unattended, is_object, is_frozen) in &uncontrolled {
        let client = sessions.client_of(player);
        if let Some(session) = client.and_then(|client| sessions.get(client)) {
            let mut entity = commands.entity(entity);
            entity.try_remove::<UnattendedPlayer>();
            // The game may have given the client control of something else.
            if is_object && session.controlled_entity.is_none() {
                entity.try_insert((OutlivesSession, ControlledBy(session.client_entity)));
            }
            continue;
        }
        match unattended {
            None => _ = commands.entity(entity).try_insert(UnattendedPlayer(tick.0)),
            Some(since) if tick.0 >= since.0 + wait && !is_frozen => {
                tracing::debug!(
                    player = player.0,
                    "player logged out: its client did not come"
                );
                log_outs.write(PlayerLogOut(player));
            }
            Some(_) => {}
        }
    }
}
