//! One synthetic client: a player's program, and what it makes of what it is told.

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

/// Where the ids of synthetic players in scenes begin, so that they are unlikely to be those of an embedder's own. Who is
/// synthetic is known by its client, not by this.
pub(super) const FIRST_PLAYER: u64 = 1 << 32;

/// A player's program.
#[derive(Debug, MemoryUse)]
pub(super) struct SyntheticClient {
    pub player: PlayerId,
    pub crowd: CrowdId,
    pub client: Option<ClientId>,
    /// Whether it receives packets and holds a mirror.
    pub receives_packets: bool,
    /// When it comes back; a script may keep it away for ever.
    pub reconnect_at: Option<u64>,
    /// The connection over which its mirror is told, which may be over.
    pub mirror_client: Option<ClientId>,
    pub mirror: Mirror,
    /// Another connection of the same player, which it gave up for this one, and what it was told.
    pub previous: Option<Box<(ClientId, Mirror)>>,
    /// What was wrong with the first packet that a mirror of it could not take.
    #[memory(skip)]
    pub mirror_error: Option<String>,
    /// By which its session can go on over another connection.
    pub resume_token: Option<ResumeToken>,
    /// Its line is down, and it means to go on with its session by this.
    pub resuming_with: Option<ResumeToken>,
    /// The server knew no session that goes on.
    pub is_resume_refused: bool,
    /// It logs in once more while it is there.
    pub logs_in_twice: bool,
    /// Whether it is at its other address.
    pub uses_second_address: bool,
    /// It asked to go on with its session, and was not answered yet.
    pub awaits_resume_reply: bool,
    /// The number of its last input.
    pub seq: u16,
    /// How often its session went on by its token.
    pub resume_count: u64,
    /// How often it was told why its session ended.
    pub end_notices: u64,
}

impl SyntheticClient {
    /// A program of a player that is to come as soon as it can.
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

    /// Where it connects from: an address of its own, and another one after its line was lost.
    pub fn address(&self) -> SocketAddr {
        let nth = (self.player.0 - FIRST_PLAYER) as u32;
        let network: u32 = if self.uses_second_address {
            0x6440_0000
        } else {
            0x0a00_0000
        };
        (Ipv4Addr::from_bits(network + nth), 40_000).into()
    }

    /// Takes a packet that came for one of its connections, and takes notice of what it says of the session.
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

    /// What was told over the connection that it gave up is of no use any more.
    pub fn drop_previous(&mut self) {
        if let Some(former) = &mut self.previous {
            former.1 = Mirror::default();
        }
    }

    /// Does what was told or asked of it. Gives the connection over which no mirror of it is told any more, if there is one.
    pub fn update(&mut self, transport: &TransportHandle, tick: u64) -> Option<ClientId> {
        if std::mem::take(&mut self.is_resume_refused)
            && let Some(client) = self.disconnect(Some(tick))
        {
            // It has no session to go on with, and logs in over a connection that is new to its mirror, too.
            transport.disconnect(client, DisconnectReason::Closed);
        }
        std::mem::take(&mut self.logs_in_twice)
            .then(|| self.switch_connection(tick))
            .flatten()
    }

    /// Gives up the connection that it has for another one, from another address: another mirror is told over it from now on. Gives
    /// the one that it had given up before.
    pub fn switch_connection(&mut self, tick: u64) -> Option<ClientId> {
        let client = self.disconnect(Some(tick))?;
        self.uses_second_address ^= true;
        self.mirror_client = None;
        let given_up = Box::new((client, std::mem::take(&mut self.mirror)));
        self.previous.replace(given_up).map(|former| former.0)
    }

    /// As what it connects.
    pub fn connection_info(&self) -> ConnectionInfo {
        ConnectionInfo {
            receives: self.receives_packets,
            // What it would load is the server's own already.
            ..ConnectionInfo::player(self.player.0)
                .without_loading()
                .with_address(self.address())
        }
    }

    /// What it says first over a new connection: it goes on with its session, or logs in.
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

    /// Says that it goes there: by an input of so many server ticks, or plainly.
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

    /// Its session is over, or its line, if it is there: it comes back then.
    pub fn disconnect(&mut self, back_at: Option<u64>) -> Option<ClientId> {
        let client = self.client.take()?;
        self.reconnect_at = back_at;
        Some(client)
    }
}
