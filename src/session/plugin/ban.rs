//! Bans that end open sessions.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;

use super::effects::disconnect;
use crate::session::bans::{Ban, BanError, BanList, BanTarget};
use crate::session::reasons::LogoutReason;
use crate::session::sessions::Sessions;
use crate::wire::ClientId;

/// Adds a ban to the [`BanList`] and ends the sessions of its target, also those that wait in the login queue, with
/// [`LogoutReason::Banned`]. Returns the number of ended sessions. O(sessions).
///
/// # Errors
/// [`BanError`] if the ban cannot be added; nothing changes then.
///
/// # Panics
/// Without a [`SessionPlugin`](super::SessionPlugin).
pub fn ban(world: &mut World, ban: Ban) -> Result<usize, BanError> {
    let target = ban.target;
    world.resource_mut::<BanList>().add(ban)?;
    let banned = banned_sessions(world.resource::<Sessions>(), target);
    for &client in &banned {
        disconnect(world, client, LogoutReason::Banned);
    }
    Ok(banned.len())
}

/// The sessions of a target, by ascending client id.
fn banned_sessions(sessions: &Sessions, target: BanTarget) -> Vec<ClientId> {
    let pending = sessions.pending_resumes.iter();
    let resuming = pending.filter(|(_, resume)| BanTarget::Player(resume.player) == target);
    let resuming: BTreeSet<ClientId> = resuming.map(|&(client, _)| client).collect();
    let all = sessions.iter();
    let banned = all.filter(|&(client, session)| match target {
        BanTarget::Player(player) => {
            let is_player = [session.player, session.authenticated_as].contains(&Some(player));
            is_player || resuming.contains(&client)
        }
        BanTarget::Addresses(range) => session
            .address
            .is_some_and(|address| range.contains(address.ip())),
    });
    banned.map(|(client, _)| client).collect()
}
