//! Resuming a session over another connection.

use super::moved_tokens::MOVED_TOKENS_MAX;
use super::reasons::LogoutReason;
use super::sessions::{ResumeRequest, SessionEffect, Sessions};
use super::state::SessionState;
use super::token::SessionKey;
use crate::wire::{ClientId, ResumeToken, SessionNotice};
use crate::world::PlayerId;

/// The result of a resume request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResumeResult {
    /// The session continues with this client.
    Resumed,
    /// It is decided in one of the next ticks: the limit of this tick is reached.
    Pending,
    /// No session of this player has the token; the client is notified.
    Refused,
    /// The client cannot resume in its state: it has logged in already, or its session ended.
    InvalidState,
}

impl Sessions {
    /// Handles a resume request. Unless the session is resumed or the request is pending, nothing changes.
    pub(super) fn resume(
        &mut self,
        client: ClientId,
        ticket: ResumeRequest,
        key: &mut SessionKey,
    ) -> ResumeResult {
        if !self.can_resume(client) {
            return ResumeResult::InvalidState;
        }
        let Some(before) = self.find_by_token(client, ticket) else {
            if self.resume_moved(client, ticket, key) {
                return ResumeResult::Resumed;
            }
            return self.refuse_resume(client);
        };
        if self.resumed >= self.settings.resumed_per_tick_max {
            self.set_state(client, SessionState::Authenticating);
            self.pending_resumes.push_back((client, ticket));
            return ResumeResult::Pending;
        }
        self.take_over(client, before, Some(ticket), key);
        ResumeResult::Resumed
    }

    /// Whether a client has not logged in and controls nothing.
    pub(super) fn can_resume(&self, client: ClientId) -> bool {
        self.get(client).is_some_and(|session| {
            session.state == SessionState::Connecting && session.controlled_entity.is_none()
        })
    }

    /// Notifies a client that its session is not resumed.
    pub(super) fn refuse_resume(&mut self, client: ClientId) -> ResumeResult {
        self.effects
            .push(SessionEffect::Notice(client, SessionNotice::ResumeRefused));
        ResumeResult::Refused
    }

    /// The session that a token belongs to, unless the transport verified another player than at the start of the session. The
    /// previous token is accepted as well while the connection is lost and no message was received since the current token was
    /// sent: the token may have been lost with the connection.
    fn find_by_token(&self, client: ClientId, ticket: ResumeRequest) -> Option<ClientId> {
        let before = self.client_of(ticket.player)?;
        let session = self.get(before)?;
        let is_former = session.state == SessionState::AwaitingReconnect
            && session
                .former_token
                .is_some_and(|former| former.is_same(ticket.token));
        let is_it = session.token.is_same(ticket.token) || is_former;
        let proved = [self.get(client)?, session].map(|session| session.claims.player);
        let is_other = matches!(proved, [Some(one), Some(other)] if one != other);
        (is_it && !is_other && !self.is_draining).then_some(before)
    }

    /// Handles pending resumes. Each has a session of its own, so `sessions_max` limits them.
    pub(super) fn resume_pending(&mut self, key: &mut SessionKey) {
        while self.resumed < self.settings.resumed_per_tick_max.max(1)
            && let Some((client, ticket)) = self.pending_resumes.pop_front()
        {
            let state = self.get(client).map(|session| session.state);
            if state != Some(SessionState::Authenticating) {
                continue;
            }
            if let Some(before) = self.find_by_token(client, ticket) {
                self.take_over(client, before, Some(ticket), key);
            } else {
                self.set_state(client, SessionState::Connecting);
                self.effects
                    .push(SessionEffect::Notice(client, SessionNotice::ResumeRefused));
            }
        }
    }

    /// A session continues with the client of another session, which sent a resume token or logged in again.
    pub(super) fn take_over(
        &mut self,
        client: ClientId,
        before: ClientId,
        ticket: Option<ResumeRequest>,
        key: &mut SessionKey,
    ) {
        self.remove_from_indexes(before);
        let Some(old) = self.open.remove(before) else {
            return;
        };
        if let Some(player) = old.player.filter(|_| ticket.is_some()) {
            // The client has a token of this process.
            self.moved_tokens.remove(player);
        }
        let (Some(player), token, now) = (old.player, key.issue(client), self.now) else {
            debug_assert!(false, "only who is logged in is taken over");
            return;
        };
        // A client with the previous token received nothing over the last connection, to which that token belongs.
        let received = ticket.and_then(|ticket| {
            let has_some = ticket.token == old.token;
            ticket
                .received_bytes
                .map(|all| if has_some { all } else { 0 })
        });
        self.resumed += 1;
        self.aliases.add_alias(before, client);
        self.effects
            .push(SessionEffect::Ended(before, old, LogoutReason::Resumed));
        self.by_player.insert(player, client);
        let unused_entity = self.get(client).map(|session| session.client_entity);
        self.update(client, |session| {
            session.client_entity = old.client_entity;
            session.player = Some(player);
            session.authenticated_as = Some(player);
            session.class = old.class;
            session.controlled_entity = old.controlled_entity;
            session.token = token;
            session.former_token = ticket.map(|ticket| ticket.token);
            session.resumed_from = Some(before);
            session.received_bytes = received;
            // A client that still has the data that it received also has what it loaded for it.
            session.loading = old
                .loading
                .filter(|&(_, is_ready)| is_ready && received.is_some());
            session.since_tick = now;
            session.state = match old.controlled_entity {
                Some(_) if session.requires_ready && session.loading.is_none() => {
                    SessionState::Loading
                }
                Some(_) => SessionState::InWorld,
                None => SessionState::Entering,
            };
        });
        self.send_welcome(client, player, token);
        self.effects.push(SessionEffect::Resumed {
            client,
            before,
            client_entity: old.client_entity,
            unused_entity,
            player,
            entity: old.controlled_entity,
        });
    }

    /// The tokens with which the client of a player may resume, for a server process to which the player is handed over: the newest 4 of
    /// those of [`allow_resume`](Self::allow_resume) and of its session, oldest first. They are secrets. O(log sessions).
    #[must_use]
    pub fn resume_tokens(&self, player: PlayerId) -> Vec<ResumeToken> {
        let session = self.client_of(player).and_then(|client| self.get(client));
        let own = session.map(|session| [session.former_token, Some(session.token)]);
        let moved = self.moved_tokens.get(self.now, player);
        let mut tokens: Vec<_> = moved.chain(own.into_iter().flatten().flatten()).collect();
        tokens.drain(..tokens.len().saturating_sub(MOVED_TOKENS_MAX));
        tokens
    }

    /// Accepts a resume token of another server process, which has handed this player over, until a tick. Only a client whose transport
    /// has verified the player can use it. The client then continues as [`ContinuedConnection`](crate::inbox::ContinuedConnection) describes.
    /// The newest 4 tokens of a player are accepted.
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
        let is_it = self
            .moved_tokens
            .get(self.now, ticket.player)
            .any(|token| token.is_same(ticket.token));
        if !is_it || verified != Some(ticket.player) || self.is_draining {
            return false;
        }
        // The token stays: the reply may be lost with this connection, too.
        self.continue_session(client, ticket.player, key);
        true
    }
}
