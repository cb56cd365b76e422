//! The client's part of a handshake.

use std::net::SocketAddr;

use thiserror::Error;

use super::{CHALLENGE_BYTES, REQUEST_BYTES};
use crate::cipher::{ConnectionCipher, DecryptError, SealedKind, VERSION};
use crate::token::ConnectToken;

/// How often what is not answered is repeated, in microseconds.
const RETRY_US: u64 = 100_000;

/// Why a client is not admitted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientHandshakeError {
    /// No server of the token answered.
    #[error(
        "no answer from any of the token's servers ({servers}): none runs there, or the token was used before, is expired or of another key"
    )]
    TimedOut {
        /// The number of servers.
        servers: usize,
    },
    /// The token expired first.
    #[error("the token expired")]
    Expired,
    /// The server is full.
    #[error("the server is full")]
    Denied,
}

/// How long a server is tried before the next one, in microseconds. The last one is tried until the timeout of the token.
const SERVER_TIMEOUT_US: u64 = 3_000_000;

/// How far a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Requesting,
    /// With what came with the challenge.
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
    /// When it began, and with this server.
    started_us: Option<u64>,
    last_received_us: u64,
    sent_us: Option<u64>,
    /// The server's number of the connection.
    number: u32,
}

impl ClientHandshake {
    /// Starts with a token that was not used before.
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

    /// The server that is being asked or is connected.
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

    /// Replaces `packet` by what is to be sent to the [server](Self::server) now; empty if nothing is due. Call it about once per tick.
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

    /// Two clients that answer each other's challenge.
    #[cfg(test)]
    pub(super) fn swap_challenges(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.progress, &mut other.progress);
    }

    /// Gives a server up that is not heard of, and the token when it expires.
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

    /// How long the current server is tried, so that all servers are tried before the token expires.
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

    /// Takes a packet of the server, changing it.
    ///
    /// # Errors
    /// [`DecryptError`] where it is not one that the server sealed for this client.
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
