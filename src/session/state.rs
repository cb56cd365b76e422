//! One session and its states.

use std::net::SocketAddr;

use bevy_ecs::prelude::*;

use super::admission::QueueKey;
use super::authentication::AdmissionClass;
use crate::inbox::VerifiedIdentity;
use crate::wire::{ClientId, ResumeToken};
use crate::world::{PlayerId, SceneId};

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// The client is connected and has not logged in.
    #[default]
    Connecting,
    /// It has logged in, and its authentication is pending.
    Authenticating,
    /// It is authenticated; it is admitted or queued in this tick.
    Authenticated,
    /// It waits in the login queue and has received its position.
    Queued,
    /// Its player is logged in and does not control an object (yet, or any more).
    Entering,
    /// It controls an object of a scene for which it is not ready.
    Loading,
    /// It receives what its object sees.
    InWorld,
    /// Its connection is lost; its object stays for a while, and the session can be resumed.
    AwaitingReconnect,
}

/// A client's session: its player, and the object that it controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Session {
    /// The player; `None` before the login.
    pub player: Option<PlayerId>,
    /// The object that this client controls or spectates.
    pub controlled_entity: Option<Entity>,
    pub(super) last_message_tick: u64,
    /// The scene that it was asked to load, and whether it is ready for it.
    pub(super) loading: Option<(SceneId, bool)>,
    /// The number of its newest message that was handled or refused, modulo 65,536. Packets contain it, so a client that counts its
    /// messages knows which the server has handled. Every received message counts, whatever its result. From the first `Input` on
    /// it is the number of the newest `Input`.
    pub last_input: u16,
    pub(super) has_input_numbers: bool,
    /// Whether packets are sent to it; a client that only sends, such as a load generator, needs none.
    pub receives: bool,
    /// Its state.
    pub state: SessionState,
    pub(super) requires_ready: bool,
    /// The token with which it was resumed, until its client sends a message.
    pub(super) former_token: Option<ResumeToken>,
    pub(super) class: AdmissionClass,
    /// The address of the client.
    pub address: Option<SocketAddr>,
    /// What its transport has verified.
    pub claims: VerifiedIdentity,
    /// The session that it resumed, if any.
    pub resumed_from: Option<ClientId>,
    /// The bytes of the reliable class that its client received over the previous connection, as reported by the client; `None` if
    /// it has lost all data, or resumed nothing.
    pub received_bytes: Option<u32>,
    /// The player that the hook returned.
    pub(super) authenticated_as: Option<PlayerId>,
    pub(super) queue_key: Option<QueueKey>,
    /// The queue position that was sent.
    pub(super) queue_position: u32,
    pub(super) token: ResumeToken,
    /// The entity of the session, with [`SessionClient`](super::SessionClient). It stays the same when the session is resumed over
    /// another connection.
    pub client_entity: Entity,
    pub(super) since_tick: u64,
    pub(super) deadline_tick: u64,
}

/// The size of a session, in bytes.
pub const SESSION_BYTES: usize = size_of::<Session>();

const _: () = assert!(SESSION_BYTES <= 224);
const _: () = assert!(std::mem::offset_of!(Session, class) <= 64);

impl Session {
    /// Whether it may receive objects of a scene.
    #[must_use]
    pub fn is_ready_for(&self, scene: SceneId) -> bool {
        self.state != SessionState::AwaitingReconnect && self.has_loaded(scene)
    }

    /// Whether the client, connected or not, has loaded a scene.
    #[must_use]
    pub fn has_loaded(&self, scene: SceneId) -> bool {
        !self.requires_ready || self.loading == Some((scene, true))
    }

    /// Whether [`last_input`](Self::last_input) is a number that the client assigned to an `Input`.
    #[must_use]
    pub const fn has_input_numbers(&self) -> bool {
        self.has_input_numbers
    }

    /// Accepts an input with a number of the client; `false` if it is not newer than the last.
    pub(super) fn accept_input(&mut self, seq: u16) -> bool {
        let is_first = !std::mem::replace(&mut self.has_input_numbers, true);
        let is_newer = is_first || crate::wire::is_newer(seq, self.last_input);
        if is_newer {
            self.last_input = seq;
        }
        is_newer
    }

    pub(super) const fn is_logging_in(&self) -> bool {
        use SessionState::{Authenticated, Authenticating, Connecting, Queued};
        matches!(
            self.state,
            Connecting | Authenticating | Authenticated | Queued
        )
    }

    /// The address whose unproven sessions are limited; `None` if its client has a verified player, or has logged in. Many players may share
    /// an address, and all come back at once when their gateway fails.
    pub(super) fn unproven_address(&self) -> Option<SocketAddr> {
        let is_unproven = self.is_logging_in() && self.claims.player.is_none();
        self.address.filter(|_| is_unproven)
    }

    /// Passes a session as words, for a hash; the plugin adds the object.
    pub(super) fn hash_state(&self, client: ClientId, mut word: impl FnMut(u64)) {
        word(u64::from(client.0) << 16 | u64::from(self.last_input));
        word(self.player.map_or(u64::MAX, |player| player.0));
        let flags = [
            self.claims.resumes_only,
            self.receives,
            self.requires_ready,
            self.has_input_numbers,
        ];
        let flags = flags
            .iter()
            .fold(0, |all, &flag| all << 1 | u64::from(flag));
        word(flags << 32 | (self.state as u64) << 16 | self.class as u64);
        word(self.authenticated_as.map_or(u64::MAX, |player| player.0));
        word(self.since_tick);
        word(self.deadline_tick);
        word(self.last_message_tick);
        word(u64::from(self.queue_position) << 1 | u64::from(self.former_token.is_some()));
        word(
            self.resumed_from.map_or(0, |before| u64::from(before.0)) << 32
                | u64::from(self.received_bytes.unwrap_or(u32::MAX)),
        );
        word(self.claims.player.map_or(u64::MAX, |player| player.0));
        crate::inbox::address_words(self.address)
            .into_iter()
            .for_each(&mut word);
        let loading = self.loading.map_or(0, |(scene, is_ready)| {
            u64::from(scene.0) << 2 | 2 | u64::from(is_ready)
        });
        word(loading);
    }
}
