//! The server's end of one connection: its encryption and its endpoint. No sockets, no clock.
//!
//! ```text
//! datagram ─▶ decrypt ─▶ endpoint ─▶ messages of the client          packets for it ─▶ endpoint ─▶ encrypt ─▶ datagrams
//! ```
//!
//! A client is *confirmed* when the first packet sealed by it has arrived. Before that the server sends only keep-alive packets,
//! repeatedly, because the client drops other packets until it has received one.

use std::net::SocketAddr;

use throng_core::memory::MemoryUse;
use throng_protocol::wire::{ClientId, CloseReason};

use super::cipher::{ConnectionCipher, SealedKind, random_bytes};
use super::handshake::{AcceptedClient, TokenUse};
use super::path::PathCandidate;
use super::reset::ResetGrant;
use super::server_endpoint::{ConnectionLimits, ServerEndpoint};
use crate::inbox::DisconnectReason;

/// Time between keep-alive packets until the client is confirmed, in microseconds.
const KEEP_ALIVE_US: u64 = 100_000;

/// Number of disconnect packets. They are not acknowledged, so several are sent.
const DISCONNECT_PACKETS: usize = 3;

/// Outcome of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramResult {
    /// It was accepted.
    Accepted,
    /// It was not sealed by the client, was received before, or is malformed.
    Refused,
    /// It was accepted, and the client has moved to another address.
    Moved,
    /// It ended the connection.
    Ended(DisconnectReason),
}

/// The server's end of a connection.
#[derive(Debug, MemoryUse)]
pub(super) struct ServerConnection {
    pub client: ClientId,
    pub address: SocketAddr,
    pub endpoint: ServerEndpoint,
    #[memory(skip)]
    cipher: ConnectionCipher,
    #[memory(skip)]
    reset: ResetGrant,
    /// The use of the token that admitted it.
    #[memory(skip)]
    pub token: TokenUse,
    keep_alive_sent_us: Option<u64>,
    /// A packet of the client was received.
    pub is_confirmed: bool,
    #[memory(skip)]
    /// Why the server closes it, if it does.
    pub close_reason: Option<CloseReason>,
    /// The address to which the client may have moved, until it replies.
    candidate: Option<PathCandidate>,
}

impl ServerConnection {
    pub fn new(
        client: ClientId,
        admitted: AcceptedClient,
        limits: ConnectionLimits,
        now_us: u64,
    ) -> Self {
        Self {
            client,
            address: admitted.address,
            endpoint: ServerEndpoint::new(admitted.timeout_s, limits, now_us),
            cipher: admitted.cipher,
            reset: admitted.reset,
            token: admitted.token,
            keep_alive_sent_us: None,
            is_confirmed: false,
            close_reason: None,
            candidate: None,
        }
    }

    /// Handles a datagram from an address, decrypting it in place, and passes the messages that it completes to `deliver`. If the address
    /// is not the client's, it becomes a candidate that [`challenge`](Self::challenge) can verify.
    pub fn receive(
        &mut self,
        now_us: u64,
        (from, datagram): (SocketAddr, &mut [u8]),
        deliver: impl FnMut(&[u8]),
    ) -> DatagramResult {
        let before = self.cipher.newest();
        let Ok((kind, packet)) = self.cipher.open(datagram) else {
            return DatagramResult::Refused;
        };
        self.endpoint.mark_received(now_us);
        self.is_confirmed = true;
        let candidate = self.candidate.filter(|candidate| candidate.address == from);
        match kind {
            SealedKind::Disconnect => return DatagramResult::Ended(DisconnectReason::Closed),
            SealedKind::PathResponse if candidate.is_some_and(|it| it.secret == *packet) => {
                self.address = from;
                self.candidate = None;
                return DatagramResult::Moved;
            }
            // Only the newest packet can propose another address: older ones may have been delayed.
            _ if from != self.address && candidate.is_none() && self.cipher.newest() > before => {
                let secret = random_bytes();
                self.candidate = secret.ok().map(|secret| PathCandidate {
                    address: from,
                    secret,
                });
            }
            _ => {}
        }
        if kind != SealedKind::Payload {
            return DatagramResult::Accepted;
        }
        match self.endpoint.receive(now_us, packet, deliver) {
            Ok(()) => DatagramResult::Accepted,
            Err(refused) if refused.is_fatal() => DatagramResult::Ended(DisconnectReason::Lost),
            Err(_) => DatagramResult::Refused,
        }
    }

    /// Seals a path challenge, if `at` is the candidate address. Returns whether it is.
    pub fn challenge(&mut self, at: SocketAddr, sealed: &mut Vec<u8>) -> bool {
        let candidate = self.candidate.filter(|candidate| candidate.address == at);
        if let Some(candidate) = candidate {
            self.cipher
                .seal(SealedKind::PathChallenge, &candidate.secret, sealed);
        }
        candidate.is_some()
    }

    /// Seals the pending packets, with `packet` and `sealed` as buffers.
    pub fn flush(
        &mut self,
        now_us: u64,
        (packet, sealed): (&mut Vec<u8>, &mut Vec<u8>),
        mut send: impl FnMut(&[u8]),
    ) {
        if self.is_confirmed {
            let line = &mut self.cipher;
            self.endpoint.flush(now_us, packet, |packet| {
                line.seal(SealedKind::Payload, packet, sealed);
                send(sealed);
            });
            return;
        }
        self.endpoint.mark_flushed(now_us);
        let is_due = |greeted_us| now_us.saturating_sub(greeted_us) >= KEEP_ALIVE_US;
        if self.keep_alive_sent_us.is_none_or(is_due) {
            self.keep_alive_sent_us = Some(now_us);
            let mut greeting = [0; 8 + ResetGrant::BYTES];
            greeting[..4].copy_from_slice(&self.client.0.to_le_bytes());
            greeting[8..].copy_from_slice(&self.reset.to_bytes());
            self.cipher.seal(SealedKind::KeepAlive, &greeting, sealed);
            send(sealed);
        }
    }

    /// Seals the disconnect packets, which contain the reason.
    pub fn send_disconnect(
        &mut self,
        reason: CloseReason,
        sealed: &mut Vec<u8>,
        mut send: impl FnMut(&[u8]),
    ) {
        let reason = [reason.number()];
        for _ in 0..DISCONNECT_PACKETS {
            self.cipher.seal(SealedKind::Disconnect, &reason, sealed);
            send(sealed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::SecretKey;
    use crate::endpoint::EndpointSettings;

    /// A connection of a client at an address, and the cipher of that client.
    fn connected(at: SocketAddr) -> (ServerConnection, ConnectionCipher) {
        let [up, down] = [(); 2].map(|()| SecretKey::random().unwrap());
        let admitted = AcceptedClient {
            client: 1,
            address: at,
            timeout_s: 10,
            user_data: [0; _],
            token: TokenUse::default(),
            reset: ResetGrant::default(),
            cipher: ConnectionCipher::new(7, [&down, &up], [&[1; 32], &[2; 32]]),
        };
        let limits = ConnectionLimits {
            endpoint: EndpointSettings::default(),
            linger_us: 1,
            unacknowledged_us_max: 1,
        };
        let server = ServerConnection::new(ClientId(1), admitted, limits, 0);
        let client = ConnectionCipher::new(7, [&up, &down], [&[1; 32], &[2; 32]]);
        (server, client)
    }

    #[test]
    fn disconnect_is_sent_three_times_in_case_of_loss() {
        let (mut server, mut client) = connected(([127, 0, 0, 1], 1).into());
        let mut packets: Vec<Vec<u8>> = Vec::new();
        server.send_disconnect(CloseReason::Kicked, &mut Vec::new(), |packet| {
            packets.push(packet.to_vec());
        });
        assert_eq!(packets.len(), 3);
        for packet in &mut packets {
            let (kind, reason) = client.open(packet).unwrap();
            assert_eq!(kind, SealedKind::Disconnect);
            assert_eq!(*reason, [CloseReason::Kicked.number()]);
        }
    }

    #[test]
    fn delayed_packet_from_another_address_starts_no_challenge() {
        let [home, elsewhere] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let (mut server, mut client) = connected(home);
        let mut packets: [Vec<u8>; 3] = Default::default();
        for packet in &mut packets {
            client.seal(SealedKind::KeepAlive, &[], packet);
        }
        let [late, newer, newest] = &mut packets;
        let mut is_challenged = |from, packet: &mut Vec<u8>| {
            let taken = server.receive(0, (from, packet), |_| ());
            assert_eq!(taken, DatagramResult::Accepted);
            server.challenge(from, &mut Vec::new())
        };
        assert!(!is_challenged(home, newer));
        assert!(!is_challenged(elsewhere, late));
        assert!(is_challenged(elsewhere, newest));
    }
}
