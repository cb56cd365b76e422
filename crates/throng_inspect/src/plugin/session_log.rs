//! What happened to sessions: the newest ended ones and their reasons, and the last error of each client.

use std::collections::{BTreeMap, VecDeque};

use bevy_ecs::prelude::*;
use throng::session::{ClientMessageRefused, LoggedOut, LogoutReason, SessionClosed};
use throng::sim::SimTick;
use throng::wire::ClientId;
use throng::world::PlayerId;

/// Maximum number of ended sessions kept: the newest.
pub(super) const ENDED_MAX: usize = 64;

/// Maximum number of clients whose last error is kept: those with the newest errors.
pub(super) const ERRORS_MAX: usize = 256;

/// A session that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedSession {
    pub tick: u64,
    pub client: ClientId,
    /// Its player; `None` if nobody was logged in.
    pub player: Option<PlayerId>,
    pub reason: LogoutReason,
}

/// Ended sessions and errors of clients, both bounded.
#[derive(Resource, Debug, Default)]
pub(super) struct SessionLog {
    ended: VecDeque<EndedSession>,
    errors: BTreeMap<ClientId, (u64, &'static str)>,
    /// The clients with an error, by the tick of the last one.
    by_tick: VecDeque<(u64, ClientId)>,
}

impl SessionLog {
    /// The newest ended sessions, newest first.
    pub fn ended(&self) -> impl Iterator<Item = &EndedSession> {
        self.ended.iter().rev()
    }

    /// The last error of a client: its tick, and the reason.
    pub fn last_error(&self, client: ClientId) -> Option<(u64, &'static str)> {
        self.errors.get(&client).copied()
    }

    fn record_end(&mut self, ended: EndedSession) {
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    fn record_error(&mut self, tick: u64, client: ClientId, reason: &'static str) {
        if self.errors.insert(client, (tick, reason)).is_some() {
            self.by_tick.retain(|(_, with_error)| *with_error != client);
        } else if self.errors.len() > ERRORS_MAX
            && let Some((_, oldest)) = self.by_tick.pop_front()
        {
            self.errors.remove(&oldest);
        }
        self.by_tick.push_back((tick, client));
    }
}

/// Records the sessions that ended and the messages that were refused in this tick. O(refused messages × kept errors), both bounded.
pub(super) fn record_sessions(
    mut log: ResMut<SessionLog>,
    tick: Res<SimTick>,
    mut logouts: MessageReader<LoggedOut>,
    mut closed: MessageReader<SessionClosed>,
    mut refused: MessageReader<ClientMessageRefused>,
) {
    let players: BTreeMap<ClientId, PlayerId> = logouts
        .read()
        .map(|logout| (logout.client, logout.player))
        .collect();
    let skipped = closed.len().saturating_sub(ENDED_MAX);
    for session in closed.read().skip(skipped) {
        log.record_end(EndedSession {
            tick: tick.0,
            client: session.client,
            player: players
                .get(&session.client)
                .copied()
                .or(session.claims.player),
            reason: session.reason,
        });
    }
    for refusal in refused.read() {
        log.record_error(tick.0, refusal.client, refusal.reason);
    }
}

/// The reason of an end in words.
pub(super) const fn describe_end(reason: LogoutReason) -> &'static str {
    match reason {
        LogoutReason::Requested => "logged out",
        LogoutReason::Disconnected => "connection lost",
        LogoutReason::Replaced => "logged in elsewhere",
        LogoutReason::SlowConsumer => "slow consumer: it reads too slowly",
        LogoutReason::Kicked => "kicked",
        LogoutReason::Banned => "banned",
        LogoutReason::Idle => "idle",
        LogoutReason::Flooding => "flooding: too many messages",
        LogoutReason::Refused => "authentication failed",
        LogoutReason::TimedOut => "timed out: login or loading took too long",
        LogoutReason::Full => "server full",
        LogoutReason::Stopping => "server stopping",
        LogoutReason::Resumed => "resumed over another connection",
        LogoutReason::PlayerUnavailable => "stored player unavailable",
        LogoutReason::PlayerTaken => "taken over by another server",
        LogoutReason::Moved => "moved to another node",
        _ => "ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_keeps_the_newest_ends_and_errors() {
        let mut log = SessionLog::default();
        for nth in 0..1_000_u32 {
            log.record_end(EndedSession {
                tick: u64::from(nth),
                client: ClientId(nth),
                player: None,
                reason: LogoutReason::Idle,
            });
            log.record_error(u64::from(nth), ClientId(nth), "malformed message");
            // One of them again and again: it is not the oldest.
            log.record_error(u64::from(nth), ClientId(0), "not logged in");
        }
        assert_eq!(log.ended().count(), ENDED_MAX);
        assert_eq!(log.ended().next().map(|ended| ended.tick), Some(999));
        assert_eq!(
            (log.errors.len(), log.by_tick.len()),
            (ERRORS_MAX, ERRORS_MAX)
        );
        assert_eq!(log.last_error(ClientId(0)), Some((999, "not logged in")));
        assert_eq!(
            log.last_error(ClientId(999)),
            Some((999, "malformed message"))
        );
        assert_eq!(log.last_error(ClientId(500)), None);
    }
}
