//! The client's end of a connection, from its token on: handshake, encryption, endpoint. No sockets, no clock, no ECS.
//!
//! ```text
//! ConnectToken ─▶ handshake ─▶ open ─┬─ send ─▶ update ─▶ datagrams ─▶ the server
//!                                    └─ messages ◀─ receive ◀─ datagrams
//! ```

use std::net::SocketAddr;

use thiserror::Error;
use throng_protocol::wire::CloseReason;

use super::cipher::{ConnectionCipher, DecryptError, SealedKind};
use super::endpoint::{EndpointSettings, PacketError, ReliableEndpoint, SendError};
use super::handshake::{ClientHandshake, ClientHandshakeError};
use super::packet::{PacketStamp, StreamId};
use super::path::{PathSecret, write_numbered};
use super::reset::{ResetCause, ResetGrant};
use super::token::ConnectToken;

/// Number of disconnect packets. They are not acknowledged, so several are sent.
const DISCONNECT_PACKETS: usize = 3;

/// After this time without a packet of the server, packets contain the number of the connection: a NAT may have changed this end's
/// address, or the server has restarted and can send a reset. In microseconds.
const SILENCE_US: u64 = 600_000;

/// Why a connection ended or failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The handshake failed.
    #[error(transparent)]
    Failed(#[from] ClientHandshakeError),
    /// The server closed it.
    #[error("the server closed the connection: {}", close_text(*reason))]
    Closed {
        /// The reason; `None` if this version does not know its number.
        reason: Option<CloseReason>,
    },
    /// No packet of the server arrived within the timeout of the token, or the server gave the connection up.
    #[error("the connection is lost: nothing arrived from the other side for too long")]
    Lost,
    /// The server has restarted, and does not know the connection any more.
    #[error("the server restarted: connect again with a new token")]
    Restarted,
    /// A packet of the server could not be decoded.
    #[error("a packet of the server cannot be decoded: {0}")]
    Broken(PacketError),
    /// This client left.
    #[error("the client left")]
    Left,
}

fn close_text(reason: Option<CloseReason>) -> String {
    reason.map_or_else(
        || "the reason is unknown to this version".to_owned(),
        |reason| reason.to_string(),
    )
}

/// Why a datagram is refused. It changes nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramError {
    /// It was not sealed by the server, or is a replay.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    /// Its content is not a valid packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The connection has ended.
    #[error(transparent)]
    Ended(#[from] ConnectionError),
}

/// State of a connection.
#[derive(Debug)]
enum ClientPhase {
    Connecting(Box<ClientHandshake>),
    Open(Box<ConnectionCipher>),
    Over(ConnectionError),
}

/// The client's end of a connection.
#[derive(Debug)]
pub struct ClientConnection {
    phase: ClientPhase,
    endpoint: ReliableEndpoint,
    server: Option<SocketAddr>,
    timeout_us: Option<u64>,
    last_received_us: u64,
    /// An empty packet has to be sent, to confirm the connection.
    must_confirm: bool,
    /// The server's number of the connection.
    number: u32,
    reset: ResetGrant,
    /// Whether packets contain that number, because the server may have another address of this end.
    sends_number: bool,
    /// The address has changed for certain, and the server has not challenged the new one yet.
    address_changed: bool,
    /// The response to the server's path challenge.
    path_response: Option<PathSecret>,
    packet: Vec<u8>,
    sealed: Vec<u8>,
    numbered: Vec<u8>,
}

impl ClientConnection {
    /// Starts to connect with an unused token. `settings` are those of the server; the client derives its own.
    #[must_use]
    pub fn new(token: ConnectToken, settings: EndpointSettings) -> Self {
        let timeout_s = u64::try_from(token.timeout_s).ok();
        Self {
            timeout_us: timeout_s.map(|timeout_s| timeout_s.saturating_mul(1_000_000)),
            phase: ClientPhase::Connecting(Box::new(ClientHandshake::new(token))),
            endpoint: ReliableEndpoint::new(settings.for_client()),
            server: None,
            last_received_us: 0,
            must_confirm: false,
            number: 0,
            reset: ResetGrant::default(),
            sends_number: false,
            address_changed: false,
            path_response: None,
            packet: Vec::new(),
            sealed: Vec::new(),
            numbered: Vec::new(),
        }
    }

    /// `true` when connected, `false` while connecting.
    ///
    /// # Errors
    /// Why the connection ended.
    pub const fn is_open(&self) -> Result<bool, ConnectionError> {
        match self.phase {
            ClientPhase::Connecting(_) => Ok(false),
            ClientPhase::Open(_) => Ok(true),
            ClientPhase::Over(end) => Err(end),
        }
    }

    /// The address of the server that the client tries or is connected to.
    #[must_use]
    pub fn server(&self) -> Option<SocketAddr> {
        match &self.phase {
            ClientPhase::Connecting(handshake) => handshake.server(),
            _ => self.server,
        }
    }

    /// Time since the last packet of the server arrived, in microseconds; 0 while there is no connection.
    #[must_use]
    pub const fn silent_us(&self, now_us: u64) -> u64 {
        match self.phase {
            ClientPhase::Open(_) => now_us.saturating_sub(self.last_received_us),
            _ => 0,
        }
    }

    /// The endpoint, with loss and round trip.
    #[must_use]
    pub const fn endpoint(&self) -> &ReliableEndpoint {
        &self.endpoint
    }

    /// Sends a reliable message: it arrives once and in order. While connecting, it waits.
    ///
    /// # Errors
    /// [`SendError`]: the message is empty or longer than 1,024 bytes, or the send queue is full.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.endpoint.push(StreamId::World, message)
    }

    /// Sends an unreliable message with the next [`update`](Self::update). It may be lost.
    ///
    /// # Errors
    /// [`SendError`] if it is empty or longer than a packet.
    pub fn send_unreliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.endpoint.push_unreliable(message)
    }

    /// Handles a datagram of the [server](Self::server): decrypts it in place and calls `deliver` with each complete message.
    ///
    /// # Errors
    /// [`DatagramError`]. A forged datagram can cause it; [`is_open`](Self::is_open) has the state of the connection.
    pub fn receive(
        &mut self,
        now_us: u64,
        datagram: &mut [u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<(), DatagramError> {
        match &mut self.phase {
            ClientPhase::Over(end) => Err((*end).into()),
            ClientPhase::Connecting(handshake) => {
                handshake.receive(now_us, datagram)?;
                self.open_if_connected(now_us);
                Ok(())
            }
            ClientPhase::Open(line) => {
                if let Some(cause) = self.reset.read_reset(datagram) {
                    self.phase = ClientPhase::Over(match cause {
                        ResetCause::Restarted => ConnectionError::Restarted,
                        ResetCause::Ended => ConnectionError::Lost,
                    });
                    return Ok(());
                }
                let (kind, packet) = line.open(datagram)?;
                self.last_received_us = self.last_received_us.max(now_us);
                match kind {
                    // The server sends packets of the connection to the address that it knows, so it knows this one.
                    SealedKind::Payload => self.sends_number &= self.address_changed,
                    SealedKind::PathChallenge => {
                        self.address_changed = false;
                        self.path_response = PathSecret::try_from(&*packet).ok();
                        return Ok(());
                    }
                    SealedKind::Disconnect => {
                        let number = packet.first().copied();
                        let reason = number.and_then(CloseReason::from_number);
                        self.phase = ClientPhase::Over(match reason {
                            Some(CloseReason::Lost) => ConnectionError::Lost,
                            reason => ConnectionError::Closed { reason },
                        });
                        return Ok(());
                    }
                    // The server has not received a packet of this end yet.
                    SealedKind::KeepAlive => {
                        self.must_confirm = true;
                        return Ok(());
                    }
                    _ => return Ok(()),
                }
                let taken = self.endpoint.receive(now_us, packet, |delivery| {
                    deliver(delivery.bytes);
                });
                taken.map_err(|refused| {
                    if refused.is_fatal() {
                        self.phase = ClientPhase::Over(ConnectionError::Broken(refused));
                    }
                    refused.into()
                })
            }
        }
    }

    /// Opens the connection when the handshake is complete.
    fn open_if_connected(&mut self, now_us: u64) {
        let left = ClientPhase::Over(ConnectionError::Left);
        self.phase = match std::mem::replace(&mut self.phase, left) {
            ClientPhase::Connecting(handshake) => match handshake.is_connected() {
                Err(why) => ClientPhase::Over(why.into()),
                Ok(false) => ClientPhase::Connecting(handshake),
                Ok(true) => {
                    self.server = handshake.server();
                    self.number = handshake.number();
                    self.reset = handshake.reset_grant();
                    self.last_received_us = now_us;
                    self.must_confirm = true;
                    let line = handshake.into_cipher();
                    line.map_or(ClientPhase::Over(ConnectionError::Lost), |line| {
                        ClientPhase::Open(Box::new(line))
                    })
                }
            },
            phase => phase,
        };
    }

    /// Calls `send` with each pending datagram and its destination. Call it about once per tick: messages between two calls share packets.
    pub fn update(&mut self, now_us: u64, mut send: impl FnMut(SocketAddr, &[u8])) {
        let Self {
            packet,
            sealed,
            numbered,
            ..
        } = self;
        if let ClientPhase::Connecting(handshake) = &mut self.phase {
            handshake.update(now_us, packet);
            if let Some(server) = handshake.server().filter(|_| !packet.is_empty()) {
                send(server, packet);
            }
            self.open_if_connected(now_us);
            return;
        }
        let (ClientPhase::Open(line), Some(server)) = (&mut self.phase, self.server) else {
            return;
        };
        let silent_us = now_us.saturating_sub(self.last_received_us);
        if self.timeout_us.is_some_and(|most_us| silent_us >= most_us) {
            self.phase = ClientPhase::Over(ConnectionError::Lost);
            return;
        }
        self.sends_number |= silent_us >= SILENCE_US;
        let (number, run, is_numbered) = (self.number, self.reset.run, self.sends_number);
        let mut seal = |kind, body: &[u8]| {
            line.seal(kind, body, sealed);
            if is_numbered {
                write_numbered(number, run, sealed, numbered);
                send(server, numbered);
            } else {
                send(server, sealed);
            }
        };
        if let Some(secret) = self.path_response.take() {
            seal(SealedKind::PathResponse, &secret);
        }
        if std::mem::take(&mut self.must_confirm) {
            seal(SealedKind::KeepAlive, &[0; 8]);
        }
        let stamp = PacketStamp::default();
        self.endpoint
            .flush(now_us, stamp, usize::MAX, packet, |packet| {
                seal(SealedKind::Payload, packet);
            });
    }

    /// Call this when the client's address has changed. Packets name their connection until the server knows the new address.
    pub fn rebind(&mut self) {
        (self.sends_number, self.address_changed) = (true, true);
        self.must_confirm = true;
    }

    /// Whether the server has not verified the client's new address yet.
    #[must_use]
    pub const fn is_migrating(&self) -> bool {
        self.sends_number
    }

    /// Replaces `packet` by this sealed datagram with the number of the connection, as after a change of address.
    #[cfg(any(test, feature = "bench"))]
    pub fn number_datagram(&self, sealed: &[u8], packet: &mut Vec<u8>) {
        write_numbered(self.number, self.reset.run, sealed, packet);
    }

    /// Closes the connection: calls `send` with the datagrams that notify the server. Unacknowledged messages are dropped.
    pub fn leave(&mut self, mut send: impl FnMut(SocketAddr, &[u8])) {
        if let (ClientPhase::Open(line), Some(server)) = (&mut self.phase, self.server) {
            for _ in 0..DISCONNECT_PACKETS {
                line.seal(SealedKind::Disconnect, &[], &mut self.sealed);
                send(server, &self.sealed);
            }
        }
        if !matches!(self.phase, ClientPhase::Over(_)) {
            self.phase = ClientPhase::Over(ConnectionError::Left);
        }
    }
}
