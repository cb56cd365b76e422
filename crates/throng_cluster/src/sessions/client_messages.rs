//! Passes messages to players on to their clients, as announcements.

use std::collections::BTreeSet;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng::session::Sessions;
use throng::sync::{AnnouncementRequest, AnnouncementScope};
use throng_protocol::wire::{Channel, ClientId};

use crate::plugin::{ClusterAnnounced, PlayerMessageReceived};

/// The channels whose messages are passed on to clients, as reliable announcements without an object. Other messages are only for the game.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::world::PartyId;
/// use throng_cluster::{ClientMessageChannels, GroupMessageRequest};
///
/// const PARTY_CHAT: u16 = 1;
///
/// fn set_up(mut channels: ResMut<ClientMessageChannels>) {
///     channels.0.insert(PARTY_CHAT);
/// }
///
/// /// The members receive it on any node.
/// fn say(party: PartyId, text: &str, requests: &mut MessageWriter<GroupMessageRequest>) {
///     requests.write(GroupMessageRequest { group: party.into(), channel: PARTY_CHAT, bytes: text.into() });
/// }
/// ```
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientMessageChannels(
    /// The channels of [`PlayerMessageRequest`](crate::PlayerMessageRequest) and [`ClusterAnnouncement`](crate::ClusterAnnouncement).
    pub BTreeSet<u16>,
);

/// Sends messages to players to their clients, and announcements to all clients of this node with a player.
pub(super) fn announce_to_clients(
    mut received: MessageReader<PlayerMessageReceived>,
    mut announced: MessageReader<ClusterAnnounced>,
    channels: Res<ClientMessageChannels>,
    sessions: Res<Sessions>,
    mut requests: MessageWriter<AnnouncementRequest>,
) {
    let to_client = |client: ClientId, bytes: &Arc<[u8]>| AnnouncementRequest {
        about: None,
        scope: AnnouncementScope::Client(client),
        channel: Channel::Reliable,
        ttl_ticks: 0,
        bytes: bytes.to_vec(),
    };
    let for_clients = received
        .read()
        .filter(|it| channels.0.contains(&it.channel));
    requests.write_batch(for_clients.filter_map(|it| {
        let client = sessions.client_of(it.player)?;
        Some(to_client(client, &it.bytes))
    }));
    for it in announced
        .read()
        .filter(|it| channels.0.contains(&it.channel))
    {
        let players = sessions
            .iter()
            .filter(|(_, session)| session.player.is_some());
        requests.write_batch(players.map(|(client, _)| to_client(client, &it.bytes)));
    }
}
