//! Shows the groups of a cluster to the modules of a server: `Parties`, and the components `PartyId` and `GuildId` of players.

use bevy_ecs::prelude::*;
use throng::world::{GuildId, PARTY_PLAYERS_MAX, PartyId, set_party_members};
use throng_core::ids::PlayerId;

use crate::plugin::{ClusterGroups, ClusterPlayers, GroupMembersChanged, PlayerGroupChanged};
use crate::request::GroupKind;

const _: () = assert!(
    PARTY_PLAYERS_MAX == GroupKind::Party.members_max(),
    "a party of the cluster fits into one of the server"
);

/// Sets the members of parties with a player on this node, also those on other nodes. Players of this node get the component with it.
pub(super) fn follow_parties(
    mut changed: MessageReader<GroupMembersChanged>,
    groups: Res<ClusterGroups>,
    mut commands: Commands,
) {
    for &GroupMembersChanged(group) in changed.read() {
        if group.kind != GroupKind::Party {
            continue;
        }
        let members = groups.members(group).iter();
        let members: Vec<PlayerId> = members.map(|member| member.player).collect();
        commands.queue(move |world: &mut World| {
            if let Err(error) = set_party_members(world, PartyId(group.id), &members) {
                tracing::warn!(party = group.id, %error, "members of a party not set");
            }
        });
    }
}

/// Sets the guilds of the players of this node.
pub(super) fn follow_guilds(
    mut changed: MessageReader<PlayerGroupChanged>,
    players: Res<ClusterPlayers>,
    mut commands: Commands,
) {
    for &PlayerGroupChanged {
        player,
        kind,
        group,
    } in changed.read()
    {
        let Some(entity) = players.entity(player).filter(|_| kind == GroupKind::Guild) else {
            continue;
        };
        if let Ok(mut entity) = commands.get_entity(entity) {
            match group {
                Some(group) => entity.try_insert(GuildId(group.id)),
                None => entity.try_remove::<GuildId>(),
            };
        }
    }
}
