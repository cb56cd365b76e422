//! The client's side of a handshake.

use std::net::SocketAddr;

use thiserror::Error;

use super::{CHALLENGE_BYTES, REQUEST_BYTES};
use crate::cipher::{ConnectionCipher, DecryptError, SealedKind, VERSION};
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
}

/// How long a server is tried before the next one, in microseconds. The last one is tried until the timeout of the token.
const SERVER_TIMEOUT_US: u64 = 3_000_000;

/// State of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Requesting,
    /// With the content of the challenge.
    Responding(Vec<u8>),
    Connected,
    Failed(ClientHandshakeError),
}

/// The client's side of a handshake.
#[derive(Debug)]
pub struct ClientHandshake {
    token: ConnectToken,
    cipher: ConnectionCipher,
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
            cipher: ConnectionCipher::new(token.protocol, &token.to_server, &token.to_client),
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
            Progress::Requesting | Progress::Responding(_) => Ok(false),
        }
    }

    /// The encryption of the connection; `None` before it is connected.
    #[must_use]
    pub fn into_cipher(self) -> Option<ConnectionCipher> {
        (self.progress == Progress::Connected).then_some(self.cipher)
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
                packet.extend_from_slice(VERSION);
                packet.extend_from_slice(&self.token.protocol.to_le_bytes());
                packet.extend_from_slice(&self.token.expires_s.to_le_bytes());
                packet.extend_from_slice(&self.token.nonce);
                packet.extend_from_slice(&self.token.private);
                debug_assert_eq!(packet.len(), REQUEST_BYTES);
            }
            Progress::Responding(challenge) => {
                self.cipher.seal(SealedKind::Response, challenge, packet);
            }
            Progress::Connected | Progress::Failed(_) => return,
        }
        self.sent_us = Some(now_us);
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
            Progress::Requesting | Progress::Responding(_)
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
        let (kind, body) = self.cipher.open(packet)?;
        self.last_received_us = self.last_received_us.max(now_us);
        let next = match (&self.progress, kind) {
            (Progress::Requesting, SealedKind::Challenge) if body.len() == 8 + CHALLENGE_BYTES => {
                Progress::Responding(body.to_vec())
            }
            (Progress::Responding(_), SealedKind::KeepAlive) => {
                let number = body.first_chunk().copied();
                self.number = u32::from_le_bytes(number.unwrap_or_default());
                Progress::Connected
            }
            (Progress::Requesting | Progress::Responding(_), SealedKind::Denied) => {
                Progress::Failed(ClientHandshakeError::Denied)
            }
            _ => return Ok(()),
        };
        self.progress = next;
        self.sent_us = None;
        Ok(())
    }
}
