//! The authentication hook. It replies at once or later, from any thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use throng_net::TokenUserData;

use crate::inbox::VerifiedIdentity;
use crate::wire::{ClientId, LoginRefusal};
use crate::world::PlayerId;

/// Authenticates clients. Called in `Ingest`, once for each login. A lookup that takes time belongs on a thread of the
/// authenticator, to which the [`LoginResponder`] is moved. Until the reply, or until
/// [`authentication_timeout_s`](super::SessionSettings::authentication_timeout_s) has expired, only this client waits.
pub trait Authenticator: Send + Sync {
    /// Checks a login, and replies now or later. A dropped responder is no reply: the client's time expires.
    fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder);

    /// Whether a client may resume a session whose resume token it has. Called in `Ingest`, and must not block. Refuse players whom
    /// [`authenticate`](Self::authenticate) would refuse now, such as banned ones. A refused client may still log in.
    fn may_resume(&mut self, resume: &ResumeAttempt<'_>) -> bool {
        let _ = resume;
        true
    }

    /// Whether connections from an address are refused.
    fn is_banned(&mut self, address: SocketAddr) -> bool {
        let _ = address;
        false
    }
}

/// The login of a client, and what the server knows about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// The client's id.
    pub client: ClientId,
    /// The player that the client claims to be; that of its token if its *Login* names none (0).
    pub player: PlayerId,
    /// Proof of the claim, as the game defines it; at most 512 bytes, untrusted.
    pub credential: &'a [u8],
    /// What its transport has verified.
    pub claims: VerifiedIdentity,
    /// The user data of its token, as its issuer wrote it; the client can neither read nor change it. `None` if it has none.
    pub user_data: Option<&'a TokenUserData>,
    /// The address of the client.
    pub address: Option<SocketAddr>,
}

/// A client that wants to resume a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeAttempt<'a> {
    /// The client's id.
    pub client: ClientId,
    /// The player of the session.
    pub player: PlayerId,
    /// What the client's transport has verified.
    pub claims: VerifiedIdentity,
    /// The user data of the token with which it has connected now. `None` if it has none.
    pub user_data: Option<&'a TokenUserData>,
    /// The address of the client.
    pub address: Option<SocketAddr>,
}

/// The order of admission when the server is full; slots can be reserved for each class.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum AdmissionClass {
    /// No special rights.
    #[default]
    #[serde(alias = "Anybody")]
    Standard,
    /// Of a party that has an admitted member; sessions detect this themselves.
    Party,
    /// Preferred by the game.
    Preferred,
    /// Moderators, and others who must always get in.
    Staff,
}

impl AdmissionClass {
    /// The number of classes.
    pub const COUNT: usize = 4;
}

/// The reply of the hook about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginDecision {
    pub client: ClientId,
    pub identity: Result<(PlayerId, AdmissionClass), LoginRefusal>,
}

/// Replies of the hook that the tick has not processed yet.
pub(super) type LoginDecisions = Arc<Mutex<Vec<LoginDecision>>>;

/// Replies to one login, once.
#[derive(Debug)]
pub struct LoginResponder {
    client: ClientId,
    /// The cause, if the hook refuses the client.
    refusal: LoginRefusal,
    decisions: LoginDecisions,
}

impl LoginResponder {
    fn new(login: &LoginRequest<'_>, decisions: LoginDecisions) -> Self {
        let refusal = match login.claims.player {
            None => LoginRefusal::Unverified,
            Some(token) if token != login.player => LoginRefusal::WrongPlayer {
                token: token.0,
                login: login.player.0,
            },
            Some(_) => LoginRefusal::ByGame,
        };
        Self {
            client: login.client,
            refusal,
            decisions,
        }
    }

    /// Accepts the client as this player, whatever player it claimed to be.
    pub fn accept(self, player: PlayerId) {
        self.accept_as(player, AdmissionClass::Standard);
    }

    /// Accepts the client as this player, with an admission class.
    pub fn accept_as(self, player: PlayerId, class: AdmissionClass) {
        self.send(Ok((player, class)));
    }

    /// Refuses the client: its connection is closed, and both ends log the cause: the login names another player than the token, the
    /// transport has verified no player, or else the game's own rule.
    pub fn refuse(self) {
        let refusal = self.refusal;
        self.send(Err(refusal));
    }

    fn send(self, found: Result<(PlayerId, AdmissionClass), LoginRefusal>) {
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
    /// Accepts the player that the transport has verified, and refuses all others.
    fn default() -> Self {
        Self::from_fn(|login| login.claims.player.filter(|&player| player == login.player))
    }
}

impl Authentication {
    /// Uses this authenticator.
    #[must_use]
    pub fn new(hook: impl Authenticator + 'static) -> Self {
        Self {
            hook: Box::new(hook),
            decisions: LoginDecisions::default(),
        }
    }

    /// Uses a function that replies at once: with the player, or `None` to refuse.
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

    /// Calls the hook, and takes the replies that are available.
    pub(super) fn authenticate(&mut self, login: &LoginRequest<'_>, into: &mut Vec<LoginDecision>) {
        let answer = LoginResponder::new(login, self.decisions.clone());
        self.hook.authenticate(login, answer);
        self.drain_decisions(into);
    }

    /// The number of logins whose reply is pending.
    pub(super) fn pending(&self) -> usize {
        // Each pending login has a reference to the list of replies.
        Arc::strong_count(&self.decisions) - 1
    }

    /// Takes the replies that are available.
    pub(super) fn drain_decisions(&self, into: &mut Vec<LoginDecision>) {
        into.append(
            &mut self
                .decisions
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}
