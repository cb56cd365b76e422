//! The interface between the server and transports: one handle in, one sink out.
//!
//! ```text
//!  a transport, on its own threads                               the server, in its tick
//!  ┌─────────────────────────────┐     TransportHandle      ┌───────────────────────────────┐
//!  │ sockets, tokens, encryption │── connect ──────────────▶│ Ingest: sessions open, log in │
//!  │ acknowledgements, resending │── receive ──────────────▶│ and end; messages are handled │
//!  │                             │── disconnect ───────────▶│ within a budget               │
//!  │                             │◀─ PacketSink::deliver ───│ Send: packets                 │
//!  │                             │◀─ PacketSink::close ─────│ the client is closed          │
//!  └─────────────────────────────┘                          └───────────────────────────────┘
//! ```
//! Sockets, browsers, synthetic players, captures and recordings all use this interface; there is no other. For a reproducible run, call
//! the handle in a fixed order between ticks. `examples/loopback.rs` is a transport in less than sixty lines.
//!
//! # Contract for transports
//!
//! **Threads.** A [`TransportHandle`] is `Send + Sync + Clone`. Call it from any thread at any time, also within the tick. Each call takes a
//! lock for a short time and never waits for the tick. The server calls the [`PacketSink`](crate::outbox::PacketSink) in its tick, or on sender threads if
//! [`OutboxSettings::sender_threads`](crate::outbox::OutboxSettings) is set. The sink must not block.
//!
//! **Order.** [`connect`](TransportHandle::connect) returns the client's id, which is never used again. Then pass each message, complete and
//! decrypted, in the format of [`wire`](crate::wire): one call per message, calls for one client not concurrently. Pass messages of the
//! reliable channel in their order, and unreliable ones as they arrive. A refused message of the reliable channel is lost; the transport
//! does not send it again, and the input numbers account for it. A *Login* or *Resume* for which the inbox has
//! no room closes the client, which receives the reason *Full*. With sender threads the sink may receive packets for an id before
//! `connect` has returned it: keep such packets, or publish the id to the sink under a lock that you hold around `connect`. Call
//! [`disconnect`](TransportHandle::disconnect) once, when the connection is closed at the transport's end. Messages accepted before it are
//! still handled. The tick sees all of this in its next `Ingest`.
//!
//! **Authentication.** [`VerifiedIdentity`](crate::inbox::VerifiedIdentity) contains what the transport has verified. A transport that checked
//! a token claims the token's player, and passes the user data of the token. A transport that checked nothing claims nothing; then the game's
//! [`Authenticator`](super::Authenticator) has to authenticate the *Login*. A player id in a login proves nothing.
//!
//! **Output.** Packets of a client are delivered in order per channel. Those of the reliable channel must arrive once and in order. After
//! [`PacketSink::close`](crate::outbox::PacketSink::close) there are no more packets: the transport closes the connection once it has sent what it has. The
//! last packet contains the reason (*Closed*). The server may also close a client after `disconnect`; this needs no action.
//!
//! **Lost connections.** The transport discards undelivered packets of a lost connection. The server keeps a copy for
//! [`in_flight_s_max`](crate::sync::SyncSettings::in_flight_s_max), so the transport must call `disconnect` within this time after the first
//! packet that was not acknowledged. A client that returns gets a new `connect`; its *Resume* contains what it has received, and
//! [`wire`](crate::wire) documents what the server sends then.
//!
//! **Limits.**
//!
//! | limit | at the limit |
//! |---|---|
//! | 65,536 connections that no tick has handled yet | `connect` is refused; a tick opens [`sessions_opened_per_tick_max`](super::SessionSettings::sessions_opened_per_tick_max) of them in order |
//! | [`sessions_max`](super::SessionSettings::sessions_max) | a session that has not sent a login for some time is closed; if there is none, the new session is closed as `Full` |
//! | sessions without a login from one address (IPv6: one /64 network) | the new one is closed as `Full` |
//! | the time to log in | closed as `TimedOut` |
//! | [`CLIENT_MESSAGE_BYTES_MAX`](crate::wire::CLIENT_MESSAGE_BYTES_MAX) | the message is refused |
//! | [`pending_logins_max`](super::SessionSettings::pending_logins_max) pending authentications | the new login is closed as `Full` |
//! | [`admitted_per_tick_max`](super::SessionSettings::admitted_per_tick_max), [`resumed_per_tick_max`](super::SessionSettings::resumed_per_tick_max) | the login or resume waits for one of the next ticks |
//! | [`resume_buffer_bytes_max`](crate::sync::SyncSettings::resume_buffer_bytes_max) | too many announcements for an absent client end its session as `SlowConsumer`; so does a *Resume* that names data that is no longer kept or was never sent. Everything else is sent again as snapshots |
//! | a client's [`quota`](crate::inbox::ClientQuota) | the message is refused; a client that continues is closed as `Flooding` |
//! | a client's [`client_backlog_max`](crate::inbox::InboxSettings::client_backlog_max) | a new input replaces the oldest one; any other message is refused |
//! | [`backlog_max`](crate::inbox::InboxSettings::backlog_max) | the message is refused, unless it is the only one of a player |
//! | an unknown client id | the message is refused, and nothing is stored |
//!
//! A refusal is a value and a counter. The transport need not react to it, and may slow the client down. The server's cost does not grow
//! with the rate at which a client sends.

use std::sync::{Arc, Mutex};

use bevy_ecs::prelude::*;

use super::reasons::AcceptError;
use crate::inbox::{
    ConnectionInfo, DisconnectReason, Inbox, Intake, ReceiveError, TransportEvent, lock,
};
use crate::wire::ClientId;

/// The interface that a transport calls. A resource that can be cloned for any thread; the [module's page](self) documents the
/// contract.
#[derive(Resource, Clone, Debug)]
pub struct TransportHandle {
    intake: Arc<Mutex<Intake>>,
}

impl FromWorld for TransportHandle {
    fn from_world(world: &mut World) -> Self {
        let inbox = world.get_resource_or_init::<Inbox>();
        Self {
            intake: inbox.shared(),
        }
    }
}

impl TransportHandle {
    /// Reports a new connection and returns its client id.
    ///
    /// # Errors
    /// [`AcceptError`] when too many connections wait for the next tick. That tick decides whether there is room for the session;
    /// if there is none, the client is closed with the reason.
    pub fn connect(&self, connected: ConnectionInfo) -> Result<ClientId, AcceptError> {
        let number = lock(&self.intake).connect(connected);
        number.map_err(AcceptError::TooManyPending)
    }

    /// Passes a message of a client.
    ///
    /// # Errors
    /// [`ReceiveError`] at one of the limits; it is counted, and the transport need not react.
    pub fn receive(&self, client: ClientId, bytes: &[u8]) -> Result<(), ReceiveError> {
        lock(&self.intake).receive(client, bytes)
    }

    /// Reports that a client's connection is closed. Does nothing if it is closed already, also by the server.
    pub fn disconnect(&self, client: ClientId, reason: DisconnectReason) {
        lock(&self.intake).disconnect(client, reason);
    }

    /// Starts or stops recording. Recorded events are taken with [`take_record`](Self::take_record) and can be replayed on another
    /// server; stopping discards them. At most a million events are stored until they are taken; further ones are
    /// [counted](Self::unrecorded) and not stored.
    pub fn set_recording(&self, is_on: bool) {
        lock(&self.intake).set_recording(is_on);
    }

    /// The events since the last call, in order, while they were [recorded](Self::set_recording).
    #[must_use]
    pub fn take_record(&self) -> Vec<TransportEvent> {
        lock(&self.intake).take_recording()
    }

    /// The number of events that were not stored since the recording began. A recording that lacks events must not be replayed.
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        lock(&self.intake).unrecorded()
    }

    /// Replays what another handle recorded. Client ids are the same if nothing else was ever passed to this handle.
    ///
    /// # Errors
    /// At the first client that gets a different id: the expected id and the assigned one. Events before it were replayed.
    pub fn replay(&self, record: &[TransportEvent]) -> Result<(), (ClientId, Option<ClientId>)> {
        for event in record {
            match event {
                TransportEvent::Connected(expected, connected) => {
                    let found = self.connect(connected.clone()).ok();
                    if found != Some(*expected) {
                        return Err((*expected, found));
                    }
                }
                // What was refused in the recording is refused again.
                TransportEvent::Received(client, bytes) => drop(self.receive(*client, bytes)),
                TransportEvent::Disconnected(client, reason) => self.disconnect(*client, *reason),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_handle_is_send_and_sync() {
        fn assert_shared<T: Send + Sync + Clone>() {}
        assert_shared::<TransportHandle>();
    }
}
