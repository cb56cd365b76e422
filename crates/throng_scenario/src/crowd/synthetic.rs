//! One synthetic client: a player's program, and how it handles what it receives.

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

/// A player's program.
#[derive(Debug, MemoryUse)]
pub(super) struct SyntheticClient {
    pub player: PlayerId,
    pub crowd: CrowdId,
    pub client: Option<ClientId>,
    /// Whether it receives packets and holds a mirror.
    pub receives_packets: bool,
    /// When it returns; a script may keep it offline for good.
    pub reconnect_at: Option<u64>,
    /// The connection of its mirror, which may be closed.
    pub mirror_client: Option<ClientId>,
    pub mirror: Mirror,
    /// The previous connection of the same player, which it replaced by this one, and what it received there.
    pub previous: Option<Box<(ClientId, Mirror)>>,
    /// The error of the first packet that its mirror rejected.
    #[memory(skip)]
    pub mirror_error: Option<String>,
    /// The token that resumes its session over another connection.
    pub resume_token: Option<ResumeToken>,
    /// Its connection is lost, and it will resume its session with this token.
    pub resuming_with: Option<ResumeToken>,
    /// The server found no session to resume.
    pub is_resume_refused: bool,
    /// It logs in a second time while it is online.
    pub logs_in_twice: bool,
    /// Whether it uses its other address.
    pub uses_second_address: bool,
    /// It requested to resume its session, and has no reply yet.
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

    /// Its address: its own, and another one after its connection was lost.
    pub fn address(&self) -> SocketAddr {
        let nth = (self.player.0 - FIRST_PLAYER) as u32;
        let network: u32 = if self.uses_second_address {
            0x6440_0000
        } else {
            0x0a00_0000
        };
        (Ipv4Addr::from_bits(network + nth), 40_000).into()
    }

    /// Takes a packet for one of its connections, and handles its session messages.
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

    /// Drops what was received over the replaced connection.
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
            // It has no session to resume, and logs in over a connection that is new to its mirror, too.
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
        let given_up = Box::new((client, std::mem::take(&mut self.mirror)));
        self.previous.replace(given_up).map(|former| former.0)
    }

    /// How it connects.
    pub fn connection_info(&self) -> ConnectionInfo {
        ConnectionInfo {
            receives: self.receives_packets,
            // The data that it would load is the server's already.
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

    /// Sends a move to a position: as an input for a number of server ticks, or as a plain move.
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

    /// Its session or its connection has ended, if it was online: it returns later.
    pub fn disconnect(&mut self, back_at: Option<u64>) -> Option<ClientId> {
        let client = self.client.take()?;
        self.reconnect_at = back_at;
        Some(client)
    }
}
