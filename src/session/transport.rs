//! The seam between the server and every transport: one handle in, one sink out.
//!
//! ```text
//!  a transport, on threads of its own                      the server, in its tick
//!  ┌─────────────────────────────┐  TransportHandle   ┌──────────────────────────────┐
//!  │ sockets, tokens, encryption │── connect ────────▶│ Ingest: sessions open, log in │
//!  │ acknowledgements, resending │── receive ────────▶│ and end; messages are handled │
//!  │                             │── disconnect ─────▶│ within a budget               │
//!  │                             │◀─ Sink::deliver ───│ Send: packets                 │
//!  │                             │◀─ Sink::close ─────│ this client is done with      │
//!  └─────────────────────────────┘                    └──────────────────────────────┘
//! ```
//! Sockets, browsers, players in memory, captures and recordings all come in this way; there is no other. A run that is to
//! repeat itself feeds the handle in a fixed order between ticks.
//!
//! # The contract, for who writes a transport
//!
//! **Who may call what from where.** A [`TransportHandle`] is `Send + Sync + Clone`: any thread, at any time, the tick's own
//! included. Each call takes a lock that nobody holds for longer than it takes to move a few dozen messages, and never waits for
//! the tick. The [`Sink`](crate::outbox::Sink) is called by the server: in its tick, or by sender threads where
//! [`OutboxSettings::shards`](crate::outbox::OutboxSettings) says so; it must not block.
//!
//! **The order of things.** [`connect`](TransportHandle::connect) gives the client's number, which is never given again. With
//! it the transport hands over each message as [`wire`](crate::wire) has it, whole and decrypted, in the order of its reliable
//! channel; unreliable ones whenever they come: one call a message, and the calls for one client one after the other. A message of
//! the reliable channel that is refused is a hole in it, which the transport does not mend; the number of inputs counts it. With
//! sender threads the sink may be called for a number before `connect` has returned it: keep such packets, or make the number
//! known to the sink under a lock that is held around the call to `connect`. [`disconnect`](TransportHandle::disconnect) is said once, when the connection is
//! over at the transport's end, and what was accepted before it is still handled. The tick takes notice of all of it in its
//! next `Ingest`.
//!
//! **What is proved.** [`TransportClaims`](crate::inbox::TransportClaims) are what the transport itself has proof of. A transport that checked a
//! token vouches for the player in it; one that checked nothing claims nothing, and then the *Login* has to convince the game's
//! [`Authenticator`](super::Authenticator). Nobody is a player by saying so.
//!
//! **What comes out.** Packets for a client in their order a channel; those of the reliable one have to arrive, once and in that
//! order. After [`Sink::close`](crate::outbox::Sink::close) there are none: the transport gets rid of the connection once what
//! it was given is through. The last packet says why in words that the client knows (*Closed*). A client that the transport said
//! is disconnected may be closed afterwards all the same; that needs nothing.
//!
//! **When a connection is lost.** What the transport was given on the reliable channel and could not bring through is lost with the
//! connection, as far as the transport is concerned: it throws it away. The server keeps a copy for as long as
//! [`in_flight_s_max`](crate::sync::SyncSettings::in_flight_s_max) says, so a transport says `disconnect` within that time of the
//! first packet that the other end did not acknowledge. A client that comes back does so by a new `connect`, and tells in its
//! *Resume* how far it got; [`wire`](crate::wire) has what it is told then.
//!
//! **What is bounded, and what happens at each bound.**
//!
//! | bound | what happens |
//! |---|---|
//! | connections that no tick has seen yet: 65,536 | `connect` is refused; a tick opens [`opened_per_tick_max`](super::SessionSettings::opened_per_tick_max) in their order |
//! | [`sessions_max`](super::SessionSettings::sessions_max) | who has not asked to log in for a while makes room; if nobody has, the new one is closed as `Full` |
//! | sessions without a login from one address (of IPv6: a network of 64 bits) | the new one is closed as `Full` |
//! | the time to log in | closed as `Late` |
//! | [`CLIENT_MESSAGE_BYTES_MAX`](crate::wire::CLIENT_MESSAGE_BYTES_MAX) | the message is refused |
//! | [`questions_max`](super::SessionSettings::questions_max) | whose login the hook would have to be asked of is closed as `Full` |
//! | [`admitted_per_tick_max`](super::SessionSettings::admitted_per_tick_max), [`resumed_per_tick_max`](super::SessionSettings::resumed_per_tick_max) | who logs in, or comes back, waits for one of the next ticks |
//! | [`kept_bytes_max`](crate::sync::SyncSettings::kept_bytes_max) | announcements to who is away that are more end its session as `Behind`; so does a *Resume* that names what is kept no more, or was never sent. All else comes by fresh snapshots then |
//! | a client's [`quota`](crate::inbox::ClientQuota) | the message is refused; who goes on is closed as `Flooding` |
//! | a client's [`client_backlog_max`](crate::inbox::InboxSettings::client_backlog_max) | a new input takes the place of the oldest; anything else is refused |
//! | [`backlog_max`](crate::inbox::InboxSettings::backlog_max) | the message is refused, unless it is a player's only one |
//! | a number that no client has | the message is refused, and nothing is kept of it |
//!
//! A refusal is a value and a counter; a transport need do nothing about it, and may slow down who caused it. None of it grows
//! with how fast anybody sends.
//!
//! `examples/loopback.rs` is a transport in under sixty lines.

use std::sync::{Arc, Mutex};

use bevy_ecs::prelude::*;

use super::reasons::SessionRefused;
use crate::inbox::{Connected, DisconnectReason, Inbox, Intake, Refused, TransportEvent, lock};
use crate::wire::ClientId;

/// What a transport calls. A resource, of which every thread may have a clone; the [module's page](self) has the contract.
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
    /// A client connected; gives the number that stands for it from now on.
    ///
    /// # Errors
    /// [`SessionRefused`] when more wait for the next tick than may. Whether there is room for the session is for that tick to
    /// say; where there is none, the client is closed with the reason.
    pub fn connect(&self, connected: Connected) -> Result<ClientId, SessionRefused> {
        let number = lock(&self.intake).connect(connected);
        number.map_err(SessionRefused::Crowded)
    }

    /// A message of a client came.
    ///
    /// # Errors
    /// [`Refused`] at one of the bounds; it is counted, and there is nothing to be done about it.
    pub fn receive(&self, client: ClientId, bytes: &[u8]) -> Result<(), Refused> {
        lock(&self.intake).receive(client, bytes)
    }

    /// A client's connection is over. Nothing happens where it was already, or the server closed it.
    pub fn disconnect(&self, client: ClientId, reason: DisconnectReason) {
        lock(&self.intake).disconnect(client, reason);
    }

    /// Keeps what comes in from now on, to be taken with [`take_record`](Self::take_record) and fed to another server; or
    /// forgets it. What is not taken is kept up to a million events; what comes after those is
    /// [counted](Self::unrecorded) and not kept.
    pub fn set_recording(&self, is_on: bool) {
        lock(&self.intake).set_recording(is_on);
    }

    /// What came in since the last time, in its order, while it was [recorded](Self::set_recording).
    #[must_use]
    pub fn take_record(&self) -> Vec<TransportEvent> {
        lock(&self.intake).take_record()
    }

    /// How many events came since the recording began and were not kept. A recording that lacks any is not to be fed.
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        lock(&self.intake).unrecorded()
    }

    /// Feeds what another handle recorded. Numbers come out as they were where this is all that was ever fed.
    ///
    /// # Errors
    /// The number that was expected and found, at the first client that gets another; what came before it has been fed.
    pub fn feed(&self, record: &[TransportEvent]) -> Result<(), (ClientId, Option<ClientId>)> {
        for event in record {
            match event {
                TransportEvent::Connected(expected, connected) => {
                    let found = self.connect(*connected).ok();
                    if found != Some(*expected) {
                        return Err((*expected, found));
                    }
                }
                // What was refused then is refused again.
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
    fn a_handle_goes_to_any_thread() {
        fn assert_shared<T: Send + Sync + Clone>() {}
        assert_shared::<TransportHandle>();
    }
}
