//! The sink of the server: collects the packets of a tick per shard, and passes them on when the tick ends.

use std::sync::Arc;

use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

use super::mailbox::{Outbound, OutboundKind};
use super::settings::UdpCounters;
use super::shared::UdpShared;
use crate::outbox::PacketSink;

/// Sends packets to clients over UDP; packets of other clients go to another sink.
pub struct UdpServerSink {
    shared: Arc<UdpShared>,
    gathered: Vec<Outbound>,
    fallback: Option<Box<dyn PacketSink>>,
}

impl UdpServerSink {
    pub(super) fn new(shared: Arc<UdpShared>) -> Self {
        let shards = shared.mailboxes.len();
        Self {
            shared,
            gathered: (0..shards).map(|_| Outbound::default()).collect(),
            fallback: None,
        }
    }

    /// The same sink, with another one for clients of other transports.
    #[must_use]
    pub fn with_fallback(self, others: Option<Box<dyn PacketSink>>) -> Self {
        Self {
            fallback: others,
            ..self
        }
    }

    fn is_connected(&self, client: ClientId) -> bool {
        self.shared.clients().contains(&client)
    }
}

impl PacketSink for UdpServerSink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        if self.is_connected(client) {
            let shard = self.shared.shard_of(client);
            self.gathered[shard].push((client, OutboundKind::Packet(channel)), packet);
        } else if let Some(others) = &mut self.fallback {
            others.deliver(client, channel, packet);
        }
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        if self.is_connected(client) {
            let shard = self.shared.shard_of(client);
            self.gathered[shard].push((client, OutboundKind::Close(reason)), &[]);
        } else if let Some(others) = &mut self.fallback {
            others.close(client, reason);
        }
    }

    fn flush(&mut self) {
        let bytes_max = self.shared.settings.outbound_bytes_max;
        for (mailbox, gathered) in self.shared.mailboxes.iter().zip(&mut self.gathered) {
            if gathered.is_empty() {
                continue;
            }
            let dropped = mailbox.update(|work| work.move_outbound(gathered, bytes_max));
            UdpCounters::add(&self.shared.counters.outbound_dropped, dropped);
        }
        if let Some(others) = &mut self.fallback {
            others.flush();
        }
    }

    fn errors(&self) -> u64 {
        let dropped = self.shared.counters.read().outbound_dropped;
        dropped + self.fallback.as_ref().map_or(0, |others| others.errors())
    }
}
