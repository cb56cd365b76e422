//! The client's side of a handshake.

use std::net::SocketAddr;

use thiserror::Error;

use super::REQUEST_BYTES;
use crate::cipher::{
    ConnectionCipher, ConnectionRandom, DecryptError, HANDSHAKE_VERSION, RandomnessUnavailable,
    SealedKind, open_handshake, random_bytes, seal_handshake,
};
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
    /// The operating system provides no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessUnavailable),
}

/// How long a challenge is answered without a reply, in microseconds. Then the server may have restarted, and a new request follows.
const RESPONSE_TIMEOUT_US: u64 = 1_000_000;

/// How long a server is tried before the next one, in microseconds. The last one is tried until the timeout of the token.
const SERVER_TIMEOUT_US: u64 = 3_000_000;

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
    /// Time at which the handshake began, and time at which it began with the current server.
    started_us: Option<u64>,
    last_received_us: u64,
    sent_us: Option<u64>,
    /// The server's number of the connection.
    number: u32,
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
            started_us: None,
            last_received_us: 0,
            sent_us: None,
            number: 0,
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
        if now_us.saturating_sub(self.last_received_us) < self.server_timeout_us(valid_us) {
            if let Progress::Responding(_, since_us) = self.progress
                && now_us.saturating_sub(since_us) >= RESPONSE_TIMEOUT_US
            {
                self.progress = Progress::Requesting;
            }
            return;
        }
        self.server += 1;
        self.last_received_us = now_us;
        self.sent_us = None;
        self.progress = if self.server < self.token.servers.len() {
            Progress::Requesting
        } else {
            let servers = self.token.servers.len();
            Progress::Failed(ClientHandshakeError::TimedOut { servers })
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
        let kind = packet.first().map(|first| first & 0xf);
        let next = if kind == Some(SealedKind::KeepAlive as u8) {
            let cipher = self.cipher.as_mut().ok_or(malformed)?;
            let (_, body) = cipher.open(packet)?;
            let number = body.first_chunk().copied();
            self.number = u32::from_le_bytes(number.unwrap_or_default());
            Progress::Connected
        } else {
            let (key, protocol) = (&self.token.to_client, self.token.protocol);
            let (kind, body) = open_handshake(key, protocol, packet)?;
            match (&self.progress, kind, body.first_chunk()) {
                (Progress::Requesting, SealedKind::Challenge, Some(random)) => {
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
