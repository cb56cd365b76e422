//! One session and its states.

use std::net::SocketAddr;

use bevy_ecs::prelude::*;

use super::admission::QueueKey;
use super::authentication::AdmissionClass;
use crate::inbox::VerifiedIdentity;
use crate::wire::{ClientId, ResumeToken};
use crate::world::{PlayerId, SceneId};

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// The client is connected, and has not said who it is.
    #[default]
    Connecting,
    /// It said so, and the hook is asked.
    Authenticating,
    /// The hook knows it; it goes in this tick or joins the line.
    Authenticated,
    /// It stands in the line, and was told where.
    Queued,
    /// Its player is logged in and controls nothing yet, or nothing any more.
    Entering,
    /// It controls an object of a scene for which it is not ready.
    Loading,
    /// It is told what its object sees.
    InWorld,
    /// Its connection is lost; its object stays for a while, and it may come back.
    AwaitingReconnect,
}

/// A client's session: who plays, and which object it controls.
// What every message reads and writes comes first, so that it takes up two lines of memory at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Session {
    /// Who plays; `None` before the player is logged in.
    pub player: Option<PlayerId>,
    /// The object that this client controls, or watches through.
    pub controlled_entity: Option<Entity>,
    pub(super) last_message_tick: u64,
    /// The scene that it was told to load, and whether it is ready for it.
    pub(super) loading: Option<(SceneId, bool)>,
    /// The number of its newest message that was handled or refused, modulo 65,536: packets say so, and a client that counts
    /// what it sent knows what the server has seen. Every message that came from it counts, whatever became of it. From its
    /// first `Input` on it is the number of the newest of those.
    pub last_input: u16,
    pub(super) has_input_numbers: bool,
    /// Whether packets are made for it; a client that only sends (a load generator's, say) needs none.
    pub receives: bool,
    /// Where it is in its life.
    pub state: SessionState,
    pub(super) requires_ready: bool,
    /// The token with which it was resumed, until its client is heard.
    pub(super) former_token: Option<ResumeToken>,
    pub(super) class: AdmissionClass,
    /// Where it comes from.
    pub address: Option<SocketAddr>,
    /// What its transport has proof of.
    pub claims: VerifiedIdentity,
    /// The session that it goes on with, if it resumed one.
    pub resumed_from: Option<ClientId>,
    /// The bytes of the reliable class that its client had of the connection before, by its own word; `None` where it has
    /// nothing any more, or resumed nothing.
    pub received_bytes: Option<u32>,
    /// Who it is by the hook.
    pub(super) authenticated_as: Option<PlayerId>,
    pub(super) queue_key: Option<QueueKey>,
    /// The place in the line that it was told.
    pub(super) queue_position: u32,
    pub(super) token: ResumeToken,
    pub(super) since_tick: u64,
    pub(super) deadline_tick: u64,
}

/// The bytes of a session.
pub const SESSION_BYTES: usize = size_of::<Session>();

const _: () = assert!(SESSION_BYTES <= 216);
const _: () = assert!(std::mem::offset_of!(Session, class) <= 64);

impl Session {
    /// Whether it may be told of a scene.
    #[must_use]
    pub fn is_ready_for(&self, scene: SceneId) -> bool {
        self.state != SessionState::AwaitingReconnect && self.has_loaded(scene)
    }

    /// Whether the client, there or away, has what it needs of a scene.
    #[must_use]
    pub fn has_loaded(&self, scene: SceneId) -> bool {
        !self.requires_ready || self.loading == Some((scene, true))
    }

    /// Whether [`last_input`](Self::last_input) is a number of the client's own, of an `Input`.
    #[must_use]
    pub const fn has_input_numbers(&self) -> bool {
        self.has_input_numbers
    }

    /// An input with a number of its own is handled; `false` where it is no newer than the last.
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

    /// A session as words, for a hash; the object is the plugin's to say.
    pub(super) fn hash_state(&self, client: ClientId, mut word: impl FnMut(u64)) {
        word(u64::from(client.0) << 16 | u64::from(self.last_input));
        word(self.player.map_or(u64::MAX, |player| player.0));
        let flags = [self.receives, self.requires_ready, self.has_input_numbers];
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
