//! The server's end of one connection: its sealing and its endpoint. No sockets, no clock.
//!
//! ```text
//! datagram ─▶ opened ─▶ endpoint ─▶ messages of the client          packets for it ─▶ endpoint ─▶ sealed ─▶ datagrams
//! ```
//! A client is *confirmed* when anything sealed by it has come; before that it is told nothing but that it is in, again and
//! again, since of what it was told it would drop the rest.

use std::net::SocketAddr;

use throng_core::memory::MemoryUse;
use throng_protocol::wire::ClientId;

use super::cipher::{ConnectionCipher, SealedKind, random_bytes};
use super::handshake::AcceptedClient;
use super::path::PathCandidate;
use super::server_endpoint::{ConnectionLimits, ServerEndpoint};
use crate::inbox::DisconnectReason;

/// How often a client is told that it is in, until it says anything, in microseconds.
const KEEP_ALIVE_US: u64 = 100_000;

/// How often it is said that the connection is over, since nothing answers that.
const DISCONNECT_PACKETS: usize = 3;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramResult {
    /// It was taken.
    Accepted,
    /// It was not sealed by the client, or came before, or its bytes make no sense.
    Refused,
    /// It was taken, and with it the client is at another address.
    Moved,
    /// With it the connection is over.
    Ended(DisconnectReason),
}

/// The server's end.
#[derive(Debug, MemoryUse)]
pub(super) struct ServerConnection {
    pub client: ClientId,
    pub address: SocketAddr,
    pub endpoint: ServerEndpoint,
    #[memory(skip)]
    cipher: ConnectionCipher,
    keep_alive_sent_us: Option<u64>,
    is_confirmed: bool,
    /// Where the client may be, if it answers.
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
            keep_alive_sent_us: None,
            is_confirmed: false,
            candidate: None,
        }
    }

    /// Takes a datagram that came from an address, changing it, and hands over the messages that are whole with it. If that is not where
    /// the client is, it may be asked there, by [`challenge`](Self::challenge).
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
            // Of two addresses the one counts from which the newest packet came: others may have been under way for long.
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

    /// Seals what is to be sent back to where the client may be, if this is there.
    pub fn challenge(&mut self, at: SocketAddr, sealed: &mut Vec<u8>) -> bool {
        let candidate = self.candidate.filter(|candidate| candidate.address == at);
        if let Some(candidate) = candidate {
            self.cipher
                .seal(SealedKind::PathChallenge, &candidate.secret, sealed);
        }
        candidate.is_some()
    }

    /// Seals what is to be sent now, with `packet` and `sealed` as buffers.
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
            let [c0, c1, c2, c3] = self.client.0.to_le_bytes();
            let greeting = [c0, c1, c2, c3, 0, 0, 0, 0];
            self.cipher.seal(SealedKind::KeepAlive, &greeting, sealed);
            send(sealed);
        }
    }

    /// Seals the last packets, which say that the connection is over.
    pub fn send_disconnect(&mut self, sealed: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        for _ in 0..DISCONNECT_PACKETS {
            self.cipher.seal(SealedKind::Disconnect, &[], sealed);
            send(sealed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::SecretKey;
    use crate::endpoint::EndpointSettings;

    #[test]
    fn delayed_packet_from_another_address_starts_no_challenge() {
        let [up, down] = [(); 2].map(|()| SecretKey::random().unwrap());
        let [home, elsewhere] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let admitted = AcceptedClient {
            client: 1,
            address: home,
            timeout_s: 10,
            user_data: [0; _],
            cipher: ConnectionCipher::new(7, &down, &up),
        };
        let limits = ConnectionLimits {
            endpoint: EndpointSettings::default(),
            linger_us: 1,
            unacknowledged_us_max: 1,
        };
        let mut server = ServerConnection::new(ClientId(1), admitted, limits, 0);
        let mut client = ConnectionCipher::new(7, &up, &down);
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
