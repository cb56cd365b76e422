//! The authentication hook. It replies at once or later, from any thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::inbox::VerifiedIdentity;
use crate::wire::ClientId;
use crate::world::PlayerId;

/// Says who a client is. Asked in `Ingest`, once for each login; a look-up that takes time belongs on a thread of the
/// authenticator's own, to which the [`LoginResponder`] is moved. Until it is answered, or
/// [`authentication_timeout_s`](super::SessionSettings::authentication_timeout_s) is over, the client waits and nobody else does.
pub trait Authenticator: Send + Sync {
    /// Looks into a login, and answers it now or later. An answer that is dropped is none, and the client's time runs out.
    fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder);

    /// Whether a client may resume a session whose resume token it has. Called in `Ingest`, and must not block. Refuse players whom
    /// [`authenticate`](Self::authenticate) would refuse now, such as banned ones. A refused client may still log in.
    fn may_resume(&mut self, resume: &ResumeAttempt) -> bool {
        let _ = resume;
        true
    }

    /// Whether connections from an address are refused.
    fn is_banned(&mut self, address: SocketAddr) -> bool {
        let _ = address;
        false
    }
}

/// What a client says, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// The client's number.
    pub client: ClientId,
    /// Who it says it is.
    pub player: PlayerId,
    /// What is to prove it, as the game defines it; at most 512 bytes, and as hostile as any.
    pub credential: &'a [u8],
    /// What its transport has proof of.
    pub claims: VerifiedIdentity,
    /// Where it comes from.
    pub address: Option<SocketAddr>,
}

/// A client that wants to resume a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeAttempt {
    /// The client's number.
    pub client: ClientId,
    /// The player of the session.
    pub player: PlayerId,
    /// What the client's transport has proof of.
    pub claims: VerifiedIdentity,
    /// Where the client comes from.
    pub address: Option<SocketAddr>,
}

/// In which order players go in when the server is full, and whose places are kept for them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum AdmissionClass {
    /// Anybody.
    #[default]
    #[serde(alias = "Anybody")]
    Standard,
    /// Of a party that has somebody inside; sessions find that out by themselves.
    Party,
    /// Whom the game prefers.
    Preferred,
    /// Moderators, and whoever has to get in.
    Staff,
}

impl AdmissionClass {
    /// How many there are.
    pub const COUNT: usize = 4;
}

/// What the hook said of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginDecision {
    pub client: ClientId,
    pub identity: Option<(PlayerId, AdmissionClass)>,
}

/// Answers of the hook that the tick has not taken yet.
pub(super) type LoginDecisions = Arc<Mutex<Vec<LoginDecision>>>;

/// Answers one login, once.
#[derive(Debug)]
pub struct LoginResponder {
    client: ClientId,
    decisions: LoginDecisions,
}

impl LoginResponder {
    pub(super) const fn new(client: ClientId, answers: LoginDecisions) -> Self {
        Self {
            client,
            decisions: answers,
        }
    }

    /// The client is this player, whoever it said it was.
    pub fn accept(self, player: PlayerId) {
        self.accept_as(player, AdmissionClass::Standard);
    }

    /// The same, of a class.
    pub fn accept_as(self, player: PlayerId, class: AdmissionClass) {
        self.send(Some((player, class)));
    }

    /// The client is nobody: its connection is closed, and it is told why.
    pub fn refuse(self) {
        self.send(None);
    }

    fn send(self, found: Option<(PlayerId, AdmissionClass)>) {
        let client = self.client;
        let mut answers = self
            .decisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        answers.push(LoginDecision {
            client,
            identity: found,
        });
    }
}

/// The hook.
#[derive(Resource)]
pub struct Authentication {
    pub(super) hook: Box<dyn Authenticator>,
    pub(super) decisions: LoginDecisions,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Authentication")
            .finish_non_exhaustive()
    }
}

impl Default for Authentication {
    /// A client is the player for which its transport vouches, and nobody otherwise.
    fn default() -> Self {
        Self::from_fn(|login| login.claims.player.filter(|&player| player == login.player))
    }
}

impl Authentication {
    /// Asks this authenticator.
    #[must_use]
    pub fn new(hook: impl Authenticator + 'static) -> Self {
        Self {
            hook: Box::new(hook),
            decisions: LoginDecisions::default(),
        }
    }

    /// Asks a function that knows at once: the player, or nobody.
    #[must_use]
    pub fn from_fn(
        find: impl FnMut(&LoginRequest<'_>) -> Option<PlayerId> + Send + Sync + 'static,
    ) -> Self {
        struct FromFn<F>(F);
        impl<F> Authenticator for FromFn<F>
        where
            F: FnMut(&LoginRequest<'_>) -> Option<PlayerId> + Send + Sync,
        {
            fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder) {
                match (self.0)(login) {
                    Some(player) => answer.accept(player),
                    None => answer.refuse(),
                }
            }
        }
        Self::new(FromFn(find))
    }

    /// Asks the hook, and takes the answers that are there.
    pub(super) fn authenticate(&mut self, login: &LoginRequest<'_>, into: &mut Vec<LoginDecision>) {
        let answer = LoginResponder::new(login.client, self.decisions.clone());
        self.hook.authenticate(login, answer);
        self.drain_decisions(into);
    }

    /// How many logins the hook was asked of and has in hand.
    pub(super) fn pending(&self) -> usize {
        // Each has a share in the list into which it answers.
        Arc::strong_count(&self.decisions) - 1
    }

    /// Takes the answers that are there.
    pub(super) fn drain_decisions(&self, into: &mut Vec<LoginDecision>) {
        into.append(
            &mut self
                .decisions
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}
