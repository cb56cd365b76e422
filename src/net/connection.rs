//! The server's end of one connection: its sealing and its endpoint. No sockets, no clock.
//!
//! ```text
//! datagram ─▶ opened ─▶ endpoint ─▶ messages of the client          packets for it ─▶ endpoint ─▶ sealed ─▶ datagrams
//! ```
//! A client is *confirmed* when anything sealed by it has come; before that it is told nothing but that it is in, again and
//! again, since of what it was told it would drop the rest.

use std::net::SocketAddr;

use super::endpoint::{Endpoint, EndpointSettings, EndpointStats, PushRefused};
use super::handshake::Admitted;
use super::packet::{PacketStamp, StreamId, framed_bytes};
use super::path::PathCandidate;
use super::seal::{SealedKind, SealedLine, random_bytes};
use crate::inbox::DisconnectReason;
use crate::memory::MemoryUse;
use crate::wire::{Channel, ClientId, PACKET_HEADER_BYTES};

/// How often a client is told that it is in, until it says anything, in microseconds.
const GREETING_US: u64 = 100_000;

/// How often it is said that the connection is over, since nothing answers that.
const GOODBYES: usize = 3;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was taken.
    Whole,
    /// It was not sealed by the client, or came before, or its bytes make no sense.
    Refused,
    /// It was taken, and with it the client is at another address.
    Moved,
    /// With it the connection is over.
    Over(DisconnectReason),
}

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub endpoint: EndpointSettings,
    /// How long at most after [`close`](ServerConnection::close) what is left is sent.
    pub linger_us: u64,
    /// How long what was pushed may wait to be acknowledged, before the connection counts as lost.
    pub unacknowledged_us_max: u64,
}

/// Sees to it that nothing waits for an acknowledgement for too long, with one mark that moves behind what was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct AckWatch {
    /// Bytes that were pushed in all.
    pushed: u64,
    /// So many of those were pushed at this time, and are not all acknowledged.
    mark: Option<(u64, u64)>,
}

impl AckWatch {
    /// How long something has waited at least, when so many bytes wait. What is older than this is younger than twice as much.
    fn age_us(&mut self, now_us: u64, waiting: usize) -> u64 {
        let arrived = self.pushed.saturating_sub(waiting as u64);
        if self.mark.is_some_and(|(pushed, _)| arrived >= pushed) {
            self.mark = None;
        }
        if waiting == 0 {
            return 0;
        }
        let (_, since_us) = *self.mark.get_or_insert((self.pushed, now_us));
        now_us.saturating_sub(since_us)
    }
}

/// The server's end.
#[derive(Debug)]
pub(super) struct ServerConnection {
    pub client: ClientId,
    pub address: SocketAddr,
    /// Something was pushed since it was flushed.
    pub is_touched: bool,
    /// When it was flushed last.
    pub flushed_us: u64,
    line: SealedLine,
    endpoint: Endpoint,
    stamp: PacketStamp,
    timeout_us: Option<u64>,
    heard_us: u64,
    greeted_us: Option<u64>,
    is_confirmed: bool,
    /// It is being closed, and is gone then at the latest.
    closes_us: Option<u64>,
    /// Where the client may be, if it answers.
    candidate: Option<PathCandidate>,
    watch: AckWatch,
    limits: ConnectionLimits,
}

impl ServerConnection {
    pub fn new(
        client: ClientId,
        admitted: Admitted,
        limits: ConnectionLimits,
        now_us: u64,
    ) -> Self {
        let timeout_s = u64::try_from(admitted.timeout_s).ok();
        Self {
            client,
            address: admitted.address,
            is_touched: false,
            flushed_us: now_us,
            line: admitted.line,
            endpoint: Endpoint::new(limits.endpoint),
            stamp: PacketStamp::default(),
            timeout_us: timeout_s.map(|timeout_s| timeout_s.saturating_mul(1_000_000)),
            heard_us: now_us,
            greeted_us: None,
            is_confirmed: false,
            closes_us: None,
            candidate: None,
            watch: AckWatch::default(),
            limits,
        }
    }

    /// Takes a datagram that came from an address, changing it, and hands over the messages that are whole with it. If that is not where
    /// the client is, it may be asked there, by [`challenge`](Self::challenge).
    pub fn receive(
        &mut self,
        now_us: u64,
        (from, datagram): (SocketAddr, &mut [u8]),
        mut deliver: impl FnMut(&[u8]),
    ) -> Taken {
        let before = self.line.newest();
        let Ok((kind, packet)) = self.line.open(datagram) else {
            return Taken::Refused;
        };
        self.heard_us = self.heard_us.max(now_us);
        self.is_confirmed = true;
        let candidate = self.candidate.filter(|candidate| candidate.address == from);
        match kind {
            SealedKind::Disconnect => return Taken::Over(DisconnectReason::Closed),
            SealedKind::PathAnswer if candidate.is_some_and(|it| it.secret == *packet) => {
                self.address = from;
                self.candidate = None;
                return Taken::Moved;
            }
            // Of two addresses the one counts from which the newest packet came: others may have been under way for long.
            _ if from != self.address && candidate.is_none() && self.line.newest() > before => {
                let secret = random_bytes();
                self.candidate = secret.ok().map(|secret| PathCandidate {
                    address: from,
                    secret,
                });
            }
            _ => {}
        }
        if kind != SealedKind::Payload {
            return Taken::Whole;
        }
        let is_open = self.closes_us.is_none();
        let taken = self.endpoint.receive(now_us, packet, |delivery| {
            if is_open {
                deliver(delivery.bytes);
            }
        });
        match taken {
            Ok(()) => Taken::Whole,
            Err(refused) if refused.is_final() => Taken::Over(DisconnectReason::Lost),
            Err(_) => Taken::Refused,
        }
    }

    /// Takes a packet for the client. Whether it can still be told everything: if not, it is behind, and to be given up.
    pub fn push(&mut self, channel: Channel, packet: &[u8]) -> bool {
        if self.closes_us.is_some() {
            return true;
        }
        self.is_touched = true;
        if let Some(&[_, epoch, _, _, low, high, ..]) = packet.first_chunk::<PACKET_HEADER_BYTES>()
        {
            self.stamp.tick = u16::from_le_bytes([low, high]);
            self.stamp.epoch = epoch;
        }
        let stream = match channel {
            Channel::Reliable => StreamId::World,
            // One that this path takes in pieces only comes late, which it may, and does not hold up the others.
            Channel::Unreliable => match self.endpoint.push_unreliable(packet) {
                Err(PushRefused::TooLong { .. }) => StreamId::Bulk,
                Ok(()) | Err(_) => return true,
            },
        };
        match self.endpoint.push(stream, packet) {
            Ok(()) => {
                self.watch.pushed += framed_bytes(packet.len()) as u64;
                true
            }
            Err(PushRefused::Behind { .. }) => false,
            // No packet is empty, nor longer than a datagram.
            Err(_) => true,
        }
    }

    /// Seals what is to be sent back to where the client may be, if this is there.
    pub fn challenge(&mut self, at: SocketAddr, sealed: &mut Vec<u8>) -> bool {
        let candidate = self.candidate.filter(|candidate| candidate.address == at);
        if let Some(candidate) = candidate {
            self.line
                .seal(SealedKind::PathChallenge, &candidate.secret, sealed);
        }
        candidate.is_some()
    }

    /// It is told nothing more than what it was given.
    pub fn close(&mut self, now_us: u64) {
        let until_us = now_us.saturating_add(self.limits.linger_us);
        self.closes_us.get_or_insert(until_us);
    }

    /// Seals what is to be sent now, with `packet` and `sealed` as buffers.
    pub fn flush(
        &mut self,
        now_us: u64,
        (packet, sealed): (&mut Vec<u8>, &mut Vec<u8>),
        mut send: impl FnMut(&[u8]),
    ) {
        self.is_touched = false;
        self.flushed_us = now_us;
        if self.is_confirmed {
            let line = &mut self.line;
            self.endpoint
                .flush(now_us, self.stamp, usize::MAX, packet, |packet| {
                    line.seal(SealedKind::Payload, packet, sealed);
                    send(sealed);
                });
            return;
        }
        let is_due = |greeted_us| now_us.saturating_sub(greeted_us) >= GREETING_US;
        if self.greeted_us.is_none_or(is_due) {
            self.greeted_us = Some(now_us);
            let [c0, c1, c2, c3] = self.client.0.to_le_bytes();
            let greeting = [c0, c1, c2, c3, 0, 0, 0, 0];
            self.line.seal(SealedKind::KeepAlive, &greeting, sealed);
            send(sealed);
        }
    }

    /// Seals the last packets, which say that the connection is over.
    pub fn say_goodbye(&mut self, sealed: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        for _ in 0..GOODBYES {
            self.line.seal(SealedKind::Disconnect, &[], sealed);
            send(sealed);
        }
    }

    /// Whether the connection is over: because it was closed and everything is through, or there was no more time for it
    /// (`Closed`); or since nothing comes any more, or nothing arrives (`Lost`).
    pub fn end(&mut self, now_us: u64) -> Option<DisconnectReason> {
        let waiting = self.endpoint.waiting_bytes();
        if let Some(closes_us) = self.closes_us
            && (waiting == 0 || now_us >= closes_us)
        {
            return Some(DisconnectReason::Closed);
        }
        let silent_us = now_us.saturating_sub(self.heard_us);
        let is_silent = self.timeout_us.is_some_and(|most_us| silent_us >= most_us);
        let age_us = self.watch.age_us(now_us, waiting);
        (is_silent || age_us.saturating_mul(2) >= self.limits.unacknowledged_us_max)
            .then_some(DisconnectReason::Lost)
    }

    /// What happened at its end.
    pub const fn stats(&self) -> &EndpointStats {
        self.endpoint.stats()
    }
}

impl MemoryUse for ServerConnection {
    fn heap_bytes(&self) -> usize {
        self.endpoint.heap_bytes()
    }
}
