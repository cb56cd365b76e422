//! Logins and the replies of the authentication hook.

use bevy_ecs::prelude::*;
use throng_net::TokenUserData;

use super::control::SessionUserData;
use super::effects::{end_session, with_key, write_effects};
use super::settings::{SessionSettings, SessionStats};
use crate::session::authentication::{
    AdmissionClass, Authentication, LoginDecision, LoginRequest, ResumeAttempt,
};
use crate::session::bans::BanList;
use crate::session::reasons::LogoutReason;
use crate::session::resume::ResumeResult;
use crate::session::sessions::{ResumeRequest, SessionEffect, Sessions};
use crate::session::state::{Session, SessionState};
use crate::wire::ClientId;
use crate::world::{Parties, PlayerId};

/// Handles a login: calls the hook.
pub(super) fn start_login(
    world: &mut World,
    (client, session): (ClientId, &Session),
    player: PlayerId,
    credential: &[u8],
) -> Result<(), &'static str> {
    if session.state != SessionState::Connecting {
        world.resource_mut::<SessionStats>().refused += 1;
        return Err("already logged in, or a login is pending");
    }
    if session.claims.resumes_only {
        world
            .resource_mut::<Sessions>()
            .end(client, LogoutReason::Refused);
        return Err("it returned with a used token, which resumes a session only");
    }
    let pending_logins_max = world.resource::<SessionSettings>().pending_logins_max as usize;
    if world.resource::<Authentication>().pending() >= pending_logins_max {
        world
            .resource_mut::<Sessions>()
            .end(client, LogoutReason::Full);
        return Err("too many pending logins");
    }
    world.resource_mut::<Sessions>().start_login(client);
    let player = match player {
        // The token alone says who it is.
        PlayerId(0) => session.claims.player.unwrap_or(player),
        _ => player,
    };
    let user_data = user_data_of(world, session.client_entity);
    let login = LoginRequest {
        client,
        player,
        credential,
        claims: session.claims,
        user_data: user_data.as_ref(),
        address: session.address,
    };
    let (mut answered, mut effects) = (Vec::new(), Vec::new());
    world
        .resource_mut::<Authentication>()
        .authenticate(&login, &mut answered);
    apply_login_decisions(world, &mut answered, &mut effects);
    Ok(())
}

/// The user data of the token of a session's client.
fn user_data_of(world: &World, client_entity: Entity) -> Option<TokenUserData> {
    let data = world.get::<SessionUserData>(client_entity)?;
    Some(data.data().clone())
}

/// Admits or queues the clients that the hook accepted.
pub(super) fn apply_login_decisions(
    world: &mut World,
    answered: &mut Vec<LoginDecision>,
    effects: &mut Vec<SessionEffect>,
) {
    for LoginDecision {
        client,
        identity: found,
    } in answered.drain(..)
    {
        let is_banned = |player| world.resource::<BanList>().of_player(player).is_some();
        if found.is_ok_and(|(player, _)| is_banned(player)) {
            end_session(world, client, LogoutReason::Banned, effects);
            continue;
        }
        let found = found.map(|(player, class)| {
            let is_raised = class < AdmissionClass::Party && has_party_member_inside(world, player);
            let class = if is_raised {
                AdmissionClass::Party
            } else {
                class
            };
            (player, class)
        });
        with_key(world, |sessions, key| {
            sessions.apply_login_decision(client, found, key)
        });
        write_effects(world, effects);
    }
}

/// Opens the session of a client that another server process has served until now. The transport has verified the player.
pub(super) fn continue_session(
    world: &mut World,
    client: ClientId,
    player: PlayerId,
    effects: &mut Vec<SessionEffect>,
) {
    if world.resource::<BanList>().of_player(player).is_some() {
        return end_session(world, client, LogoutReason::Banned, effects);
    }
    with_key(world, |sessions, key| {
        sessions.continue_session(client, player, key);
    });
    write_effects(world, effects);
}

/// Whether a member of a player's party is admitted.
fn has_party_member_inside(world: &World, player: PlayerId) -> bool {
    let (Some(parties), sessions) = (
        world.get_resource::<Parties>(),
        world.resource::<Sessions>(),
    ) else {
        return false;
    };
    parties.party_of(player).is_some_and(|party| {
        let mut others = parties
            .members(party)
            .iter()
            .filter(|&&member| member != player);
        others.any(|&member| sessions.client_of(member).is_some())
    })
}

/// Handles a resume token.
pub(super) fn resume(
    world: &mut World,
    client: ClientId,
    ticket: ResumeRequest,
) -> Result<(), &'static str> {
    let sessions = world.resource::<Sessions>();
    let asked = sessions.can_resume(client).then(|| sessions.get(client));
    let asked = asked.flatten().copied();
    let user_data = asked.and_then(|session| user_data_of(world, session.client_entity));
    let asked = asked.map(|session| ResumeAttempt {
        client,
        player: ticket.player,
        claims: session.claims,
        user_data: user_data.as_ref(),
        address: session.address,
    });
    let is_banned = world
        .resource::<BanList>()
        .of_player(ticket.player)
        .is_some();
    let hook = &mut world.resource_mut::<Authentication>().hook;
    let may_resume = !is_banned && asked.is_none_or(|asked| hook.may_resume(&asked));
    let fault = match with_key(world, |sessions, key| match may_resume {
        true => sessions.resume(client, ticket, key),
        false => sessions.refuse_resume(client),
    }) {
        ResumeResult::Resumed | ResumeResult::Pending => return Ok(()),
        ResumeResult::Refused => "no session of this player has this token",
        ResumeResult::InvalidState => "resume after a login",
    };
    world.resource_mut::<SessionStats>().refused += 1;
    Err(fault)
}
