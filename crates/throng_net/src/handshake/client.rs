//! The client's side of a handshake.

use std::net::SocketAddr;

use thiserror::Error;
use throng_protocol::wire::CloseReason;

use super::REQUEST_BYTES;
use super::version::{REFUSAL, SpokenProtocol, read_refusal};
use crate::cipher::{
    ConnectionCipher, ConnectionRandom, DecryptError, HANDSHAKE_VERSION, RandomnessUnavailable,
    SealedKind, open_handshake, random_bytes, seal_handshake,
};
use crate::reset::ResetGrant;
use crate::token::ConnectToken;

/// Time between two attempts without a reply, in microseconds.
const RETRY_US: u64 = 100_000;

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientHandshakeError {
    /// No server of the token replied.
    #[error(
        "no answer from any of the token's servers ({servers}): none runs there, or the token was used before, is expired or of another key"
    )]
    TimedOut {
        /// The number of servers.
        servers: usize,
    },
    /// The token expired before the handshake was complete.
    #[error("the token expired")]
    Expired,
    /// The server is full.
    #[error("the server is full")]
    Denied,
    /// The server speaks another version of the protocol.
    #[error(
        "the server speaks protocol {server}, this client {client}: update the {}",
        if server > client { "client" } else { "server" }
    )]
    Version {
        /// Version of the server.
        server: u32,
        /// Version of this client.
        client: u32,
    },
    /// The token is for another game, or another version of it, than the server.
    #[error(
        "the server has the protocol id {server:#x}, the token {token:#x}: client and server need the same version of the game"
    )]
    ProtocolId {
        /// Protocol id of the server.
        server: u64,
        /// Protocol id of the token.
        token: u64,
    },
    /// The operating system provides no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessUnavailable),
}

/// How long a challenge is answered without a reply, in microseconds. Then the server may have restarted, and a new request follows.
const RESPONSE_TIMEOUT_US: u64 = 1_000_000;

/// How long a server is tried before the next one, in microseconds. The last one is tried until the timeout of the token.
const SERVER_TIMEOUT_US: u64 = 3_000_000;

/// How long a client waits for a challenge after a refusal, in microseconds. A refusal may be forged.
const REFUSAL_DELAY_US: u64 = 500_000;

/// State of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Requesting,
    /// With the random bytes of server and client, since a time.
    Responding([ConnectionRandom; 2], u64),
    Connected,
    Failed(ClientHandshakeError),
}

/// The client's side of a handshake.
#[derive(Debug)]
pub struct ClientHandshake {
    token: ConnectToken,
    /// The encryption of the connection, since the challenge.
    cipher: Option<ConnectionCipher>,
    /// The random bytes of this end, since the first challenge.
    random: Option<ConnectionRandom>,
    progress: Progress,
    server: usize,
    /// Why the current server or an earlier one refused the client.
    refusal: Option<ClientHandshakeError>,
    /// When the current server refused it.
    refused_us: Option<u64>,
    /// Time at which the handshake began, and time at which it began with the current server.
    started_us: Option<u64>,
    last_received_us: u64,
    sent_us: Option<u64>,
    /// The server's number of the connection.
    number: u32,
    /// What the client needs to recognise a reset of the connection.
    reset: ResetGrant,
}

impl ClientHandshake {
    /// Starts a handshake with an unused token.
    #[must_use]
    pub fn new(token: ConnectToken) -> Self {
        Self {
            cipher: None,
            random: None,
            token,
            progress: Progress::Requesting,
            server: 0,
            refusal: None,
            refused_us: None,
            started_us: None,
            last_received_us: 0,
            sent_us: None,
            number: 0,
            reset: ResetGrant::default(),
        }
    }

    /// The server that the client tries or is connected to.
    #[must_use]
    pub fn server(&self) -> Option<SocketAddr> {
        self.token.servers.get(self.server).copied()
    }

    /// The server's number of the connection; 0 before it is connected.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What the client needs to recognise a reset of the connection.
    pub(crate) const fn reset_grant(&self) -> ResetGrant {
        self.reset
    }

    /// Whether the client is connected.
    ///
    /// # Errors
    /// Why the handshake failed.
    pub fn is_connected(&self) -> Result<bool, ClientHandshakeError> {
        match self.progress {
            Progress::Failed(why) => Err(why),
            Progress::Connected => Ok(true),
            Progress::Requesting | Progress::Responding(..) => Ok(false),
        }
    }

    /// The encryption of the connection; `None` before it is connected.
    #[must_use]
    pub fn into_cipher(self) -> Option<ConnectionCipher> {
        self.cipher.filter(|_| self.progress == Progress::Connected)
    }

    /// Replaces `packet` by the packet to send to the [server](Self::server) now, or empties it if there is none. Call it about once per
    /// tick.
    pub fn update(&mut self, now_us: u64, packet: &mut Vec<u8>) {
        packet.clear();
        self.check_timeouts(now_us);
        let is_due = self
            .sent_us
            .is_none_or(|sent_us| now_us.saturating_sub(sent_us) >= RETRY_US);
        if !is_due {
            return;
        }
        match &self.progress {
            Progress::Requesting => {
                packet.push(0);
                packet.extend_from_slice(&HANDSHAKE_VERSION);
                packet.extend_from_slice(&self.token.protocol.to_le_bytes());
                packet.extend_from_slice(&self.token.expires_s.to_le_bytes());
                packet.extend_from_slice(&self.token.nonce);
                packet.extend_from_slice(&self.token.private);
                debug_assert_eq!(packet.len(), REQUEST_BYTES);
            }
            Progress::Responding(random, _) => {
                let (key, protocol) = (&self.token.to_server, self.token.protocol);
                let body = random.as_flattened();
                let sealed = seal_handshake(key, protocol, SealedKind::Response, body, packet);
                if let Err(error) = sealed {
                    self.progress = Progress::Failed(error.into());
                    return;
                }
            }
            Progress::Connected | Progress::Failed(_) => return,
        }
        self.sent_us = Some(now_us);
    }

    /// The encryption of a connection that the server has not accepted yet.
    #[cfg(test)]
    pub(super) fn cipher_for_test(self) -> ConnectionCipher {
        self.cipher.expect("a challenge")
    }

    /// Swaps the challenges of two clients, so that each replies to the other's.
    #[cfg(test)]
    pub(super) fn swap_challenges(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.progress, &mut other.progress);
    }

    /// Moves on to the next server if this one does not reply, and fails when the token expires.
    fn check_timeouts(&mut self, now_us: u64) {
        if !matches!(
            self.progress,
            Progress::Requesting | Progress::Responding(..)
        ) {
            return;
        }
        let began_us = *self.started_us.get_or_insert_with(|| {
            self.last_received_us = now_us;
            now_us
        });
        let valid_us = (self.token.expires_s - self.token.created_s).saturating_mul(1_000_000);
        if now_us.saturating_sub(began_us) >= valid_us {
            self.progress = Progress::Failed(ClientHandshakeError::Expired);
            return;
        }
        let is_refused = self
            .refused_us
            .is_some_and(|refused_us| now_us.saturating_sub(refused_us) >= REFUSAL_DELAY_US);
        let is_late =
            now_us.saturating_sub(self.last_received_us) >= self.server_timeout_us(valid_us);
        if !is_refused && !is_late {
            if let Progress::Responding(_, since_us) = self.progress
                && now_us.saturating_sub(since_us) >= RESPONSE_TIMEOUT_US
            {
                self.progress = Progress::Requesting;
            }
            return;
        }
        self.server += 1;
        self.last_received_us = now_us;
        (self.sent_us, self.refused_us) = (None, None);
        self.progress = if self.server < self.token.servers.len() {
            Progress::Requesting
        } else {
            let servers = self.token.servers.len();
            let timed_out = ClientHandshakeError::TimedOut { servers };
            Progress::Failed(self.refusal.unwrap_or(timed_out))
        };
    }

    /// How long the current server is tried. All servers are tried before the token expires.
    fn server_timeout_us(&self, valid_us: u64) -> u64 {
        let timeout_s = u64::try_from(self.token.timeout_s).unwrap_or(u64::MAX);
        let patience_us = timeout_s.saturating_mul(1_000_000);
        let servers = self.token.servers.len();
        if self.server + 1 < servers {
            patience_us
                .min(valid_us / servers as u64)
                .min(SERVER_TIMEOUT_US)
        } else {
            patience_us
        }
    }

    /// Handles a packet of the server, which it decrypts in place.
    ///
    /// # Errors
    /// [`DecryptError`] if the server did not seal the packet for this client.
    pub fn receive(&mut self, now_us: u64, packet: &mut [u8]) -> Result<(), DecryptError> {
        let malformed = DecryptError::Malformed {
            found: packet.len(),
        };
        if packet.first() == Some(&REFUSAL) {
            let server = read_refusal(packet, &self.token.nonce).ok_or(malformed)?;
            self.record_refusal(now_us, server);
            return Ok(());
        }
        let kind = packet.first().map(|first| first & 0xf);
        let is_of_connection =
            [SealedKind::KeepAlive, SealedKind::Disconnect].map(|kind| Some(kind as u8));
        let next = if is_of_connection.contains(&kind) {
            let cipher = self.cipher.as_mut().ok_or(malformed)?;
            let (kind, body) = cipher.open(packet)?;
            if kind == SealedKind::Disconnect {
                let is_full = body.first() == Some(&CloseReason::Full.number());
                let denied = ClientHandshakeError::Denied;
                let servers = self.token.servers.len();
                let ended = ClientHandshakeError::TimedOut { servers };
                Progress::Failed(if is_full { denied } else { ended })
            } else {
                let number = body.first_chunk().copied();
                self.number = u32::from_le_bytes(number.unwrap_or_default());
                self.reset = body.get(8..).and_then(ResetGrant::read).unwrap_or_default();
                Progress::Connected
            }
        } else {
            let (key, protocol) = (&self.token.to_client, self.token.protocol);
            let (kind, body) = open_handshake(key, protocol, packet)?;
            match (&self.progress, kind, body.first_chunk()) {
                (Progress::Requesting, SealedKind::Challenge, Some(random)) => {
                    (self.refusal, self.refused_us) = (None, None);
                    self.respond(now_us, *random)
                }
                (_, SealedKind::Denied, _) => Progress::Failed(ClientHandshakeError::Denied),
                _ => self.progress.clone(),
            }
        };
        self.last_received_us = self.last_received_us.max(now_us);
        if next != self.progress
            && matches!(
                self.progress,
                Progress::Requesting | Progress::Responding(..)
            )
        {
            self.progress = next;
            self.sent_us = None;
        }
        Ok(())
    }

    /// Records that the server refuses this version. It counts only if no challenge follows.
    fn record_refusal(&mut self, now_us: u64, server: SpokenProtocol) {
        let own = SpokenProtocol::of_game(self.token.protocol);
        if self.progress != Progress::Requesting || server == own {
            return;
        }
        self.refused_us.get_or_insert(now_us);
        self.refusal = Some(if server.version == own.version {
            ClientHandshakeError::ProtocolId {
                server: server.id,
                token: own.id,
            }
        } else {
            ClientHandshakeError::Version {
                server: server.version,
                client: own.version,
            }
        });
    }

    /// Answers a challenge: derives the keys of the connection from the random bytes of both ends.
    fn respond(&mut self, now_us: u64, server: ConnectionRandom) -> Progress {
        let client = match self.random.map_or_else(random_bytes, Ok) {
            Ok(random) => *self.random.insert(random),
            Err(error) => return Progress::Failed(error.into()),
        };
        let keys = [&self.token.to_server, &self.token.to_client];
        let cipher = ConnectionCipher::new(self.token.protocol, keys, [&server, &client]);
        self.cipher = Some(cipher);
        Progress::Responding([server, client], now_us)
    }
}
