//! Resume tokens that another server process has issued, for players that it has handed over to this one.
//!
//! A client gets a new token when this process takes it over. If its connection is lost before, it has only the former one. That token
//! is accepted until the client resumes with its new one, its session ends, or its time has passed.

use std::collections::BTreeMap;

use super::sessions::{ResumeRequest, Sessions};
use super::token::SessionKey;
use crate::memory::MemoryUse;
use crate::wire::{ClientId, ResumeToken};
use crate::world::PlayerId;

/// Maximum number of tokens. Further ones are ignored: their clients log in again.
const TOKENS_MAX: usize = 65_536;

/// The tokens, with the ticks until which they are accepted. At most one for each player.
#[derive(Debug, Default, MemoryUse)]
pub(super) struct MovedTokens(BTreeMap<PlayerId, (ResumeToken, u64)>);

impl MovedTokens {
    fn insert(&mut self, now: u64, player: PlayerId, token: ResumeToken, until_tick: u64) {
        if self.0.len() >= TOKENS_MAX {
            self.0.retain(|_, (_, until_tick)| *until_tick > now);
        }
        if self.0.len() < TOKENS_MAX {
            self.0.insert(player, (token, until_tick));
        }
    }

    fn get(&self, now: u64, player: PlayerId) -> Option<ResumeToken> {
        let (token, until_tick) = *self.0.get(&player)?;
        (until_tick > now).then_some(token)
    }

    pub fn remove(&mut self, player: PlayerId) {
        self.0.remove(&player);
    }
}

impl Sessions {
    /// The token with which the client of a player would resume, for a server process to which the player is handed over: that of its
    /// session, or else the one of [`allow_resume`](Self::allow_resume). It is a secret. O(log sessions).
    #[must_use]
    pub fn resume_token(&self, player: PlayerId) -> Option<ResumeToken> {
        let session = self.client_of(player).and_then(|client| self.get(client));
        let moved = || self.moved_tokens.get(self.now, player);
        session.map(|session| session.token).or_else(moved)
    }

    /// Accepts a resume token of another server process, which has handed this player over, until a tick. Only a client whose transport
    /// has verified the player can use it. The client then continues as [`ContinuedConnection`](super::ContinuedConnection) describes.
    pub fn allow_resume(&mut self, player: PlayerId, token: ResumeToken, until_tick: u64) {
        let now = self.now;
        self.moved_tokens.insert(now, player, token, until_tick);
    }

    /// Continues the session of another server process, if this is its token. `false` if it is not.
    pub(super) fn resume_moved(
        &mut self,
        client: ClientId,
        ticket: ResumeRequest,
        key: &mut SessionKey,
    ) -> bool {
        let verified = self.get(client).and_then(|session| session.claims.player);
        let moved = self.moved_tokens.get(self.now, ticket.player);
        let is_it = moved.is_some_and(|token| token.is_same(ticket.token));
        if !is_it || verified != Some(ticket.player) || self.is_draining {
            return false;
        }
        // The token stays: the reply may be lost with this connection, too.
        self.continue_session(client, ticket.player, key);
        true
    }
}
