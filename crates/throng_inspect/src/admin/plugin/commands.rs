//! The commands of operators, in the tick.

use bevy_ecs::prelude::*;
use throng::session::{BanList, LogoutReason, Session, Sessions, ban, disconnect};
use throng::sim::clock::unix_ms;
use throng::wire::ClientId;
use throng::world::{Object, Position};

use super::{ADMIN_COMMANDS_PER_TICK_MAX, AdminServer};
use crate::admin::protocol::{AdminAction, AdminCommand, AdminOutcome, LoggedInPlayer};

/// Handles the commands that have arrived, and ends bans that have expired.
pub(crate) fn handle_admin_commands(world: &mut World) {
    let Some(mut admin) = world.get_resource_mut::<AdminServer>() else {
        return;
    };
    let commands = std::iter::from_fn(|| admin.commands.try_recv().ok());
    let commands: Vec<AdminCommand> = commands.take(ADMIN_COMMANDS_PER_TICK_MAX).collect();
    world
        .resource_mut::<BanList>()
        .end_expired(unix_ms() / 1000);
    for AdminCommand { action, reply } in commands {
        // The operator may have given up; the command is executed nevertheless.
        let _ = reply.send(execute(world, action));
    }
}

fn execute(world: &mut World, action: AdminAction) -> AdminOutcome {
    match action {
        AdminAction::ListPlayers { after, limit } => list_players(world, after, limit),
        AdminAction::ShowPlayer(player) => {
            let sessions = world.resource::<Sessions>();
            let client = sessions.client_of(player);
            let session = client.and_then(|client| Some((client, sessions.get(client)?)));
            let row = session.and_then(|(client, session)| describe_player(world, client, session));
            AdminOutcome::Player(row)
        }
        AdminAction::Kick(player) => {
            let client = world.resource::<Sessions>().client_of(player);
            if let Some(client) = client {
                disconnect(world, client, LogoutReason::Kicked);
            }
            AdminOutcome::Kicked(client.is_some())
        }
        AdminAction::ListBans { skip, limit } => {
            let bans = world.resource::<BanList>();
            let page = bans.iter().skip(skip).take(limit).cloned();
            AdminOutcome::Bans {
                bans: page.collect(),
                next: skip.checked_add(limit).filter(|&end| end < bans.len()),
            }
        }
        AdminAction::Ban(new) => AdminOutcome::Banned(ban(world, new)),
        AdminAction::Lift(target) => {
            let lifted = world.resource_mut::<BanList>().lift(target);
            AdminOutcome::Lifted(lifted.is_some())
        }
    }
}

/// O(sessions).
fn list_players(world: &World, after: Option<u64>, limit: usize) -> AdminOutcome {
    let sessions = world.resource::<Sessions>();
    let all = sessions.iter();
    let players = all.filter_map(|(client, session)| Some((session.player?.0, client, session)));
    let mut players: Vec<_> = players
        .filter(|&(player, ..)| after.is_none_or(|after| player > after))
        .collect();
    players.sort_unstable_by_key(|&(player, ..)| player);
    let has_more = players.len() > limit;
    players.truncate(limit);
    let next = players.last().map(|&(player, ..)| player);
    let rows = players.into_iter();
    AdminOutcome::Players {
        players: rows
            .filter_map(|(_, client, session)| describe_player(world, client, session))
            .collect(),
        next: next.filter(|_| has_more),
    }
}

/// `None` if the session has no player.
fn describe_player(world: &World, client: ClientId, session: &Session) -> Option<LoggedInPlayer> {
    let entity = session.controlled_entity;
    let object = entity.and_then(|entity| world.get::<Object>(entity));
    let position = entity.and_then(|entity| world.get::<Position>(entity));
    Some(LoggedInPlayer {
        player: session.player?.0,
        client: client.0,
        state: format!("{:?}", session.state),
        address: session.address.map(|address| address.to_string()),
        scene: object.map(|object| object.scene().0),
        object: object.map(|object| object.id().0),
        position: position.map(|position| position.0.to_array()),
    })
}
