//! One synthetic client: its connections, its mirrors, and its handling of session messages.

use std::net::{Ipv4Addr, SocketAddr};

use super::crowds::CrowdId;
use throng::inbox::{ConnectionInfo, DisconnectReason};
use throng::memory::MemoryUse;
use throng::session::TransportHandle;
use throng::sync::Mirror;
use throng::wire::{
    ClientId, ClientInput, ClientMessage, InputMotion, QuantizedPosition, ResumeToken,
    SessionNotice,
};
use throng::world::{Heading, PlayerId};

/// The first id of synthetic players, so that they are unlikely to collide with ids of an embedder. A synthetic player is
/// recognized by its client, not by this id.
pub(super) const FIRST_PLAYER: u64 = 1 << 32;

/// A synthetic client.
#[derive(Debug, MemoryUse)]
pub(super) struct SyntheticClient {
    pub player: PlayerId,
    pub crowd: CrowdId,
    pub client: Option<ClientId>,
    /// Whether it receives packets and holds a mirror.
    pub receives_packets: bool,
    /// The tick from which it connects while it is offline; `None` if only a script brings it back.
    pub reconnect_at: Option<u64>,
    /// The connection of its mirror, which may be closed.
    pub mirror_client: Option<ClientId>,
    pub mirror: Mirror,
    /// The previous connection of the same player, replaced by a second login, and its mirror.
    pub previous: Option<Box<(ClientId, Mirror)>>,
    /// The error of the first packet that its mirror rejected.
    #[memory(skip)]
    pub mirror_error: Option<String>,
    /// The token that resumes its session over another connection.
    pub resume_token: Option<ResumeToken>,
    /// The token with which it will resume its session after a lost connection.
    pub resuming_with: Option<ResumeToken>,
    /// Whether the server refused to resume its session.
    pub is_resume_refused: bool,
    /// Whether it logs in a second time while it is online.
    pub logs_in_twice: bool,
    /// Whether it uses its other address.
    pub uses_second_address: bool,
    /// Whether it sent a resume request and has no reply yet.
    pub awaits_resume_reply: bool,
    /// The number of its last input.
    pub seq: u16,
    /// How often its session was resumed by token.
    pub resume_count: u64,
    /// How often it received a close reason.
    pub end_notices: u64,
}

impl SyntheticClient {
    /// The client of a player that logs in as soon as possible.
    pub fn new(player: PlayerId, crowd: CrowdId, receives: bool) -> Self {
        Self {
            player,
            crowd,
            client: None,
            receives_packets: receives,
            reconnect_at: Some(0),
            mirror_client: None,
            mirror: Mirror::default(),
            previous: None,
            mirror_error: None,
            resume_token: None,
            resuming_with: None,
            is_resume_refused: false,
            logs_in_twice: false,
            uses_second_address: false,
            awaits_resume_reply: false,
            seq: 0,
            resume_count: 0,
            end_notices: 0,
        }
    }

    /// Its current address: one of two, switched when a connection is lost or replaced.
    pub fn address(&self) -> SocketAddr {
        let nth = (self.player.0 - FIRST_PLAYER) as u32;
        let network: u32 = if self.uses_second_address {
            0x6440_0000
        } else {
            0x0a00_0000
        };
        (Ipv4Addr::from_bits(network + nth), 40_000).into()
    }

    /// Applies a packet of one of its connections to the mirror, and handles session messages.
    pub fn receive(&mut self, client: ClientId, packet: &[u8]) {
        let is_former = self.mirror_client != Some(client);
        let mirror = match &mut self.previous {
            Some(former) if is_former && former.0 == client => &mut former.1,
            _ if is_former => return,
            _ => &mut self.mirror,
        };
        self.mirror_error = mirror.receive(packet).err().map(|error| error.to_string());
        let mut is_over = false;
        for notice in mirror.take_notices() {
            match notice {
                SessionNotice::Closed { .. } => {
                    self.end_notices += 1;
                    is_over |= is_former;
                }
                SessionNotice::Welcome { token, .. } if !is_former => {
                    self.resume_token = Some(token);
                    self.resume_count += u64::from(std::mem::take(&mut self.awaits_resume_reply));
                }
                SessionNotice::ResumeRefused if !is_former => self.is_resume_refused = true,
                _ => {}
            }
        }
        if is_over {
            self.drop_previous();
        }
    }

    /// Clears the mirror of the replaced connection.
    pub fn drop_previous(&mut self) {
        if let Some(former) = &mut self.previous {
            former.1 = Mirror::default();
        }
    }

    /// Handles received messages and pending requests. Returns the connection that its mirrors no longer use, if any.
    pub fn update(&mut self, transport: &TransportHandle, tick: u64) -> Option<ClientId> {
        if std::mem::take(&mut self.is_resume_refused)
            && let Some(client) = self.disconnect(Some(tick))
        {
            // It will log in over a new connection, with an empty mirror.
            transport.disconnect(client, DisconnectReason::Closed);
        }
        std::mem::take(&mut self.logs_in_twice)
            .then(|| self.switch_connection(tick))
            .flatten()
    }

    /// Replaces its connection by another one, from another address; a new mirror uses it from now on. Returns the connection
    /// that it had replaced before.
    pub fn switch_connection(&mut self, tick: u64) -> Option<ClientId> {
        let client = self.disconnect(Some(tick))?;
        self.uses_second_address ^= true;
        self.mirror_client = None;
        let replaced = Box::new((client, std::mem::take(&mut self.mirror)));
        self.previous.replace(replaced).map(|former| former.0)
    }

    /// The data of its next connection.
    pub fn connection_info(&self) -> ConnectionInfo {
        ConnectionInfo {
            receives: self.receives_packets,
            // It has no world data to load.
            ..ConnectionInfo::player(self.player.0)
                .without_loading()
                .with_address(self.address())
        }
    }

    /// Its first message over a new connection: it resumes its session, or logs in.
    pub fn first_message(&mut self) -> ClientMessage<'static> {
        let player = self.player.0;
        (self.resume_token, self.awaits_resume_reply) = (None, self.resuming_with.is_some());
        match self.resuming_with.take() {
            Some(token) => {
                self.mirror.reconnect();
                ClientMessage::Resume {
                    player,
                    token,
                    received: Some(self.mirror.received_bytes()),
                }
            }
            None => {
                self.mirror = Mirror::default();
                ClientMessage::login(player)
            }
        }
    }

    /// Creates a move message: an input with this tick, or a plain move without a tick.
    pub const fn move_message(
        &mut self,
        to: QuantizedPosition,
        heading: Heading,
        tick: Option<u64>,
    ) -> ClientMessage<'static> {
        let heading = heading.0;
        let Some(tick) = tick else {
            return ClientMessage::Move { to, heading };
        };
        self.seq = self.seq.wrapping_add(1);
        ClientMessage::Input(ClientInput {
            seq: self.seq,
            client_tick: tick as u16,
            motion: InputMotion::To(to),
            heading,
            buttons: 0,
        })
    }

    /// Takes its connection, if it is online, and sets the tick of its return; `None` keeps it offline.
    pub fn disconnect(&mut self, back_at: Option<u64>) -> Option<ClientId> {
        let client = self.client.take()?;
        self.reconnect_at = back_at;
        Some(client)
    }
}
