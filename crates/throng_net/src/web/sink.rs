//! The sink of the server: pushes packets to the send queues of clients, and schedules these when the tick ends.

use std::sync::Arc;

use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId};

use super::send_queue::WebSendQueue;
use super::settings::WebCounters;
use super::shared::WebShared;
use crate::outbox::PacketSink;

/// Sends packets to clients of browsers; packets of other clients go to another sink.
pub struct WebServerSink {
    shared: Arc<WebShared>,
    touched: Vec<Arc<WebSendQueue>>,
    /// The client whose send queue was used last.
    last: Option<ClientId>,
    fallback: Option<Box<dyn PacketSink>>,
}

impl WebServerSink {
    pub(super) fn new(shared: Arc<WebShared>) -> Self {
        Self {
            shared,
            touched: Vec::new(),
            last: None,
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

    /// The send queue of a client, scheduled for the next [`flush`](PacketSink::flush).
    fn send_queue(&mut self, client: ClientId) -> Option<Arc<WebSendQueue>> {
        let line = self.shared.send_queues().get(&client)?.clone();
        // The packets of a client are consecutive.
        if self.last != Some(client) {
            self.last = Some(client);
            self.touched.push(line.clone());
        }
        Some(line)
    }
}

impl PacketSink for WebServerSink {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        if let Some(line) = self.send_queue(client) {
            let shared = &self.shared;
            if !line.push(channel, packet, &shared.waiting_bytes, &shared.settings) {
                WebCounters::one(&shared.counters.dropped);
            }
        } else if let Some(others) = &mut self.fallback {
            others.deliver(client, channel, packet);
        }
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        if let Some(line) = self.send_queue(client) {
            line.close();
        } else if let Some(others) = &mut self.fallback {
            others.close(client, reason);
        }
    }

    fn flush(&mut self) {
        self.last = None;
        self.shared.mark_touched(&mut self.touched);
        if let Some(others) = &mut self.fallback {
            others.flush();
        }
    }

    fn errors(&self) -> u64 {
        let dropped = self.shared.counters.read().dropped;
        dropped + self.fallback.as_ref().map_or(0, |others| others.errors())
    }
}
