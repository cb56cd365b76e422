//! The parties and guilds of the players of this node, with their members on all nodes.

use std::collections::BTreeMap;

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate};
use bevy_ecs::prelude::*;
use throng_core::ids::{GuildId, PartyId, PlayerId};

use super::ClusterSystems;
use super::arrive::arrive_players;
use super::cluster_players::ClusterPlayers;
use super::player_messages::{PlayerMessageRequest, send_messages};
use crate::groups::{GroupEvent, GroupNotChanged};
use crate::request::{GroupChange, GroupId, GroupKind, GroupMember};

/// The parties and guilds of the players of this node, as they were last read. Members may be on any node. Usually a change by another node is
/// known here within milliseconds; if its hint was lost, within [`read_interval_ms`](crate::GroupSettings::read_interval_ms).
///
/// It changes in [`ClusterSystems::Arrive`]. A player that has just arrived is in no group until its row is read.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{ClusterGroups, GroupKind};
/// use throng_core::ids::PlayerId;
///
/// fn show(player: PlayerId, groups: Res<ClusterGroups>) {
///     if let Some(party) = groups.group_of(player, GroupKind::Party) {
///         let online = groups.members(party).iter().filter(|member| member.owner.is_some());
///         println!("{} members, {} online", groups.members(party).len(), online.count());
///     }
/// }
/// ```
#[derive(Resource, Debug, Default)]
pub struct ClusterGroups {
    players: BTreeMap<(PlayerId, GroupKind), GroupId>,
    groups: BTreeMap<GroupId, Vec<GroupMember>>,
    unknown: u64,
}

impl ClusterGroups {
    /// The group of a player of this node. O(log n).
    #[must_use]
    pub fn group_of(&self, player: PlayerId, kind: GroupKind) -> Option<GroupId> {
        self.players.get(&(player, kind)).copied()
    }

    /// The party of a player of this node. O(log n).
    #[must_use]
    pub fn party_of(&self, player: PlayerId) -> Option<PartyId> {
        let party = self.group_of(player, GroupKind::Party)?;
        Some(PartyId(party.id))
    }

    /// The guild of a player of this node. O(log n).
    #[must_use]
    pub fn guild_of(&self, player: PlayerId) -> Option<GuildId> {
        let guild = self.group_of(player, GroupKind::Guild)?;
        Some(GuildId(guild.id))
    }

    /// The members of a group with a member on this node, the leader first. Each with its node when the group was read, which may be
    /// outdated. O(log n).
    #[must_use]
    pub fn members(&self, group: impl Into<GroupId>) -> &[GroupMember] {
        self.groups.get(&group.into()).map_or(&[], Vec::as_slice)
    }

    /// Messages to groups that were dropped because the group has no member on this node.
    #[must_use]
    pub const fn unknown_groups(&self) -> u64 {
        self.unknown
    }
}

/// Changes the group of a player of this node: it founds, joins or leaves a party or guild. Or removes a player of any node from a group with a
/// member on this node. [`GroupChangeFinished`] follows. The game decides who may do that, and sends invitations itself, for example as a
/// [`PlayerMessageRequest`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{GroupChange, GroupChangeRequest, GroupKind};
/// use throng_core::ids::{PartyId, PlayerId};
///
/// fn found(leader: PlayerId, mut requests: MessageWriter<GroupChangeRequest>) {
///     requests.write(GroupChangeRequest { player: leader, change: GroupChange::Create(GroupKind::Party) });
/// }
///
/// /// Call it on the node of the player, when the player accepts the invitation.
/// fn join(player: PlayerId, party: PartyId, mut requests: MessageWriter<GroupChangeRequest>) {
///     requests.write(GroupChangeRequest { player, change: GroupChange::Join(party.into()) });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupChangeRequest {
    /// The player.
    pub player: PlayerId,
    /// The change.
    pub change: GroupChange,
}

/// The outcome of a [`GroupChangeRequest`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::GroupChangeFinished;
///
/// fn log(mut finished: MessageReader<GroupChangeFinished>) {
///     for it in finished.read() {
///         match it.result {
///             Ok(group) => println!("player {} is in {group:?}", it.player.0),
///             Err(error) => println!("player {}: {error}", it.player.0),
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupChangeFinished {
    /// The player.
    pub player: PlayerId,
    /// The change.
    pub change: GroupChange,
    /// The group of the player after the change, or why it was not done.
    pub result: Result<Option<GroupId>, GroupNotChanged>,
}

/// A player of this node is in another group: by a change, because its row was read after it has arrived, or because it has left and come back
/// within a tick.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::PlayerGroupChanged;
///
/// fn log(mut changed: MessageReader<PlayerGroupChanged>) {
///     for it in changed.read() {
///         println!("player {}: {:?} {:?}", it.player.0, it.kind, it.group);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerGroupChanged {
    /// The player.
    pub player: PlayerId,
    /// The kind of the group.
    pub kind: GroupKind,
    /// Its group now.
    pub group: Option<GroupId>,
}

/// The members of a group have changed, or the group has its first member on this node, or none any more. Then
/// [`ClusterGroups::members`] is empty.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{ClusterGroups, GroupMembersChanged};
///
/// fn log(mut changed: MessageReader<GroupMembersChanged>, groups: Res<ClusterGroups>) {
///     for GroupMembersChanged(group) in changed.read() {
///         println!("{group:?} has {} members", groups.members(*group).len());
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMembersChanged(
    /// The group.
    pub GroupId,
);

/// Sends a message to all members of a group that has a member on this node, wherever they are. It is a [`PlayerMessageRequest`] to these players.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::GroupMessageRequest;
/// use throng_core::ids::GuildId;
///
/// const CHAT: u16 = 1;
///
/// fn say(guild: GuildId, text: &str, mut requests: MessageWriter<GroupMessageRequest>) {
///     requests.write(GroupMessageRequest { group: guild.into(), channel: CHAT, bytes: text.into() });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct GroupMessageRequest {
    /// The group.
    pub group: GroupId,
    /// The kind of the message, a number of the game.
    pub channel: u16,
    /// The content.
    pub bytes: Vec<u8>,
}

pub(super) fn add_groups(app: &mut App) {
    app.init_resource::<ClusterGroups>()
        .add_message::<GroupChangeRequest>()
        .add_message::<GroupChangeFinished>()
        .add_message::<PlayerGroupChanged>()
        .add_message::<GroupMembersChanged>()
        .add_message::<GroupMessageRequest>()
        .add_systems(
            FixedPreUpdate,
            follow_groups
                .after(arrive_players)
                .in_set(ClusterSystems::Arrive),
        )
        .add_systems(
            FixedPostUpdate,
            (change_groups, send_group_messages)
                .before(send_messages)
                .in_set(ClusterSystems::Collect),
        );
}

/// Reports the players of this node, and takes the changes of their groups.
fn follow_groups(
    players: Res<ClusterPlayers>,
    mut groups: ResMut<ClusterGroups>,
    mut finished: MessageWriter<GroupChangeFinished>,
    mut of_players: MessageWriter<PlayerGroupChanged>,
    mut of_groups: MessageWriter<GroupMembersChanged>,
) {
    let Some(driver) = players.driver() else {
        groups.players.clear();
        let known = std::mem::take(&mut groups.groups).into_keys();
        of_groups.write_batch(known.map(GroupMembersChanged));
        return;
    };
    let present = players.present.iter();
    let present = present.map(|(player, present)| (*player, present.arrival));
    let events = driver.with_groups(|directory| {
        directory.set_players(present);
        directory.take_events()
    });
    for event in events {
        match event {
            GroupEvent::Player {
                player,
                kind,
                group,
            } => {
                match group {
                    Some(group) => _ = groups.players.insert((player, kind), group),
                    None => _ = groups.players.remove(&(player, kind)),
                }
                if players.entity(player).is_some() {
                    of_players.write(PlayerGroupChanged {
                        player,
                        kind,
                        group,
                    });
                }
            }
            GroupEvent::Members(group, members) => {
                if members.is_empty() {
                    groups.groups.remove(&group);
                } else {
                    groups.groups.insert(group, members);
                }
                of_groups.write(GroupMembersChanged(group));
            }
            GroupEvent::Finished {
                player,
                change,
                result,
            } => {
                finished.write(GroupChangeFinished {
                    player,
                    change,
                    result,
                });
            }
        }
    }
}

/// Passes the requests of the game on.
fn change_groups(
    players: Res<ClusterPlayers>,
    mut requests: MessageReader<GroupChangeRequest>,
    mut finished: MessageWriter<GroupChangeFinished>,
) {
    let Some(driver) = players.driver().filter(|_| !requests.is_empty()) else {
        requests.clear();
        return;
    };
    driver.with_groups(|directory| {
        for &GroupChangeRequest { player, change } in requests.read() {
            if let Err(error) = directory.change(player, change) {
                finished.write(GroupChangeFinished {
                    player,
                    change,
                    result: Err(error),
                });
            }
        }
    });
}

fn send_group_messages(
    mut groups: ResMut<ClusterGroups>,
    mut requests: MessageReader<GroupMessageRequest>,
    mut messages: MessageWriter<PlayerMessageRequest>,
) {
    for request in requests.read() {
        let members = groups.groups.get(&request.group);
        let Some(members) = members else {
            groups.unknown += 1;
            continue;
        };
        messages.write(PlayerMessageRequest {
            to: members.iter().map(|member| member.player).collect(),
            channel: request.channel,
            bytes: request.bytes.clone(),
        });
    }
}
