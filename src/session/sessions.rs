//! The list of sessions, and the states of a client from its connection to its end.
//!
//! ```text
//!             Login, Resume        authenticated          slot free            an object       Ready
//! Connecting ───────▶ Authenticating ───▶ Authenticated ─────────────▶ Entering ─────▶ Loading ─────▶ InWorld
//!      │                     │             └▶ Queued ─▶┘                  ▲                               │ connection lost
//!      └ timeout             └ timeout,       (queue position sent)       └── its object is gone          ▼
//!                              refused                                                  resumed over ◀── AwaitingReconnect
//!                                                                                       another one      └ reconnect_grace_s expired
//! ```
//! This file does not know the ECS world. What a change means for other modules is stored as a [`SessionEffect`], in order, and written as
//! messages by the plugin.
//!
//! Invariants:
//! - A player has at most one session, and only authenticated clients have a player.
//! - No session stays in a state longer than the deadline of the state.
//! - Limits hold for admissions per tick and for the number of players inside.
//!
//! Cost: O(log sessions) per change, one hash lookup per message; about 220 bytes per session, and an entity.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Bound;
use std::slice;

use bevy_ecs::prelude::*;
use prefetch_index::prefetch_index;

use super::admission::LoginQueue;
use super::authentication::AdmissionClass;
use super::client_aliases::ClientIdAliases;
use super::moved_tokens::MovedTokens;
use super::reasons::LogoutReason;
use super::state::{Session, SessionState};
use super::table::SessionTable;
use super::tick_settings::SessionTickSettings;
use crate::inbox::ConnectionInfo;
use crate::memory::{MemoryUse, clear_and_shrink};
use crate::wire::{ClientId, LoginRefusal, ResumeToken, SessionNotice};
use crate::world::PlayerId;

/// The resume request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResumeRequest {
    pub player: PlayerId,
    pub token: ResumeToken,
    /// Bytes of the reliable class that it has received over the previous connection; `None` if it has lost all data.
    pub received_bytes: Option<u32>,
}

/// An effect of a session change on other modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEffect {
    /// The client has logged in: its backlog limit is higher.
    Promoted(ClientId),
    LoggedIn {
        client: ClientId,
        client_entity: Entity,
        player: PlayerId,
    },
    /// The hook refused the client; the end of its session follows.
    LoginRefused(ClientId, LoginRefusal),
    ConnectionLost(ClientId, Session),
    Resumed {
        client: ClientId,
        before: ClientId,
        /// The entity of the session.
        client_entity: Entity,
        /// The entity that the new connection had before.
        unused_entity: Option<Entity>,
        player: PlayerId,
        entity: Option<Entity>,
    },
    Ended(ClientId, Session, LogoutReason),
    Notice(ClientId, SessionNotice),
}

/// No deadline.
const NEVER: u64 = u64::MAX;

/// All sessions, by ascending client id.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Sessions {
    pub(super) open: SessionTable,
    pub(super) by_player: BTreeMap<PlayerId, ClientId>,
    pub(super) aliases: ClientIdAliases,
    /// Resume requests that exceeded the limit of their tick, oldest first.
    pub(super) pending_resumes: VecDeque<(ClientId, ResumeRequest)>,
    pub(super) moved_tokens: MovedTokens,
    pub(super) queue: LoginQueue,
    /// Whether a queued client has not received its position yet.
    pub(super) has_unnotified: bool,
    /// Clients that are not authenticated and control nothing: first those without a login, then those whose authentication is
    /// pending, oldest first.
    unauthenticated: BTreeSet<(bool, ClientId)>,
    /// Sessions without a player, by address.
    by_address: BTreeMap<IpAddr, u32>,
    deadlines: BTreeSet<(u64, ClientId)>,
    /// Clients that control an object and must be ready for its scene.
    pub(super) loading_clients: BTreeSet<ClientId>,
    pub(super) settings: SessionTickSettings,
    pub(super) now: u64,
    /// Players that were admitted in this tick.
    pub(super) admitted: BTreeSet<PlayerId>,
    /// Sessions that were resumed in this tick.
    pub(super) resumed: u32,
    pub(super) is_draining: bool,
    /// New players are not admitted; admitted players play on.
    pub(super) refuses_logins: bool,
    pub(super) effects: Vec<SessionEffect>,
}

impl Sessions {
    /// An open session.
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&Session> {
        self.open.get(client)
    }

    /// The session of a player that is logged in.
    #[must_use]
    pub fn client_of(&self, player: PlayerId) -> Option<ClientId> {
        let client = *self.by_player.get(&player)?;
        self.get(client)?.player.map(|_| client)
    }

    /// The current id of a client's session: a different one if its player resumed over another connection.
    #[must_use]
    pub fn current_id(&self, client: ClientId) -> ClientId {
        self.aliases.resolve(client)
    }

    /// The entity of a client's session, for [`ControlledBy`](super::ControlledBy); `None` if the session is not open. For a client
    /// that has resumed over another connection, its former id can be used as well. O(1).
    #[must_use]
    pub fn client_entity(&self, client: ClientId) -> Option<Entity> {
        let session = self.get(self.current_id(client))?;
        Some(session.client_entity)
    }

    /// All sessions by ascending client id.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &Session)> {
        self.open.iter()
    }

    /// The sessions from one client id on and below another, if given, by ascending id.
    pub(crate) fn range(
        &self,
        from: Option<ClientId>,
        until: Option<ClientId>,
    ) -> impl Iterator<Item = (ClientId, &Session)> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let until = until.map_or(Bound::Unbounded, Bound::Excluded);
        self.open.range((from, until))
    }

    /// The sessions of clients that connected after one, or of all, by ascending id.
    pub(super) fn clients_after(&self, client: Option<ClientId>) -> impl Iterator<Item = ClientId> {
        let from = client.map_or(Bound::Unbounded, Bound::Excluded);
        self.open.ids_after(from)
    }

    /// The number of open sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no session is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The length of the login queue.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// The number of a client's newest message that was handled or refused; 0 without a session.
    #[must_use]
    pub fn last_input(&self, client: ClientId) -> u16 {
        self.get(client).map_or(0, |session| session.last_input)
    }

    /// The number of players admitted in this tick, without those that had a slot already.
    pub(super) fn admitted(&self) -> usize {
        self.admitted.len()
    }

    pub(super) fn begin_tick(&mut self, now: u64, rules: SessionTickSettings) {
        (self.now, self.settings, self.resumed) = (now, rules, 0);
        self.admitted.clear();
    }

    /// Takes the effects since the last call.
    pub(super) fn drain_effects(&mut self, into: &mut Vec<SessionEffect>) {
        into.append(&mut self.effects);
        clear_and_shrink(&mut self.effects);
    }

    /// Opens the session of a client that connected, or refuses it, which has the same effects as an end.
    pub(super) fn open(
        &mut self,
        (client, client_entity): (ClientId, Entity),
        connected: ConnectionInfo,
        is_banned: bool,
    ) {
        let session = Session {
            player: None,
            controlled_entity: None,
            last_input: connected.continues.map_or(0, |continued| {
                continued.last_input.unwrap_or(continued.last_message)
            }),
            receives: connected.receives,
            state: SessionState::Connecting,
            address: connected.address,
            claims: connected.claims,
            resumed_from: None,
            received_bytes: None,
            former_token: None,
            requires_ready: connected.requires_ready,
            class: AdmissionClass::Standard,
            authenticated_as: None,
            queue_key: None,
            queue_position: 0,
            token: ResumeToken::default(),
            client_entity,
            loading: None,
            has_input_numbers: connected
                .continues
                .is_some_and(|continued| continued.last_input.is_some()),
            since_tick: self.now,
            last_message_tick: self.now,
            deadline_tick: NEVER,
        };
        let refused = if self.is_draining {
            Some(LogoutReason::Stopping)
        } else if is_banned {
            Some(LogoutReason::Banned)
        } else {
            // A client that continues was verified on another node.
            let unproven = session.unproven_address();
            let unproven = unproven.filter(|_| connected.continues.is_none());
            (!self.make_room(unproven)).then_some(LogoutReason::Full)
        };
        self.open.insert(client, session);
        self.add_to_indexes(client);
        if let Some(reason) = refused {
            self.end(client, reason);
        }
    }

    /// Whether there is room for one more session; a client that has not logged in for a while is closed to make room.
    fn make_room(&mut self, address: Option<SocketAddr>) -> bool {
        let of_address = address.and_then(|address| self.by_address.get(&network(address)));
        if of_address.is_some_and(|&count| count >= self.settings.unauthenticated_per_address_max) {
            return false;
        }
        if self.open.len() < self.settings.sessions_max {
            return true;
        }
        let is_old = |client: &ClientId| {
            let session = self.open.get(*client);
            let since = session.map_or(self.now, |session| session.since_tick);
            self.now.saturating_sub(since) >= self.settings.login_grace_ticks
        };
        let first_of = |is_asked: bool| {
            let mut all = self.unauthenticated.range((is_asked, ClientId(0))..);
            all.next()
                .filter(|first| first.0 == is_asked)
                .map(|first| first.1)
        };
        let oldest = [false, true].into_iter().filter_map(first_of).find(is_old);
        match oldest {
            Some(oldest) => {
                self.end(oldest, LogoutReason::TimedOut);
                true
            }
            None => false,
        }
    }

    /// Prefetches the memory that a message of this client needs; the sessions together exceed the caches. Called for several
    /// clients in a row, so that their cache misses overlap.
    #[inline]
    pub(super) fn prefetch(&self, client: ClientId) {
        if let Some(session) = self.open.get(client) {
            prefetch_index(slice::from_ref(&session.player), 0);
            prefetch_index(slice::from_ref(&session.class), 0);
        }
    }

    /// Marks a client's messages up to this number as handled or refused. `None` when there is no such session.
    pub(super) fn acknowledge(&mut self, client: ClientId, number: u16) -> Option<&mut Session> {
        let session = self.open.get_mut(client)?;
        session.last_message_tick = self.now;
        // Clients send nothing between a request to resume and its reply, so this one has received its token.
        session.former_token = None;
        if !session.has_input_numbers {
            session.last_input = number;
        }
        Some(session)
    }

    /// The state of all sessions that affects later ticks, as words, for a hash.
    pub(super) fn hash_state(&self, mut word: impl FnMut(u64)) {
        let flags = [self.has_unnotified, self.is_draining, self.refuses_logins];
        let flags = flags.iter().rev();
        word(flags.fold(0, |word, &flag| word << 1 | u64::from(flag)));
        self.queue
            .iter()
            .for_each(|client| word(u64::from(client.0)));
        for (player, nth, until) in self.queue.kept() {
            [player.0, nth, until].into_iter().for_each(&mut word);
        }
        for (client, ticket) in &self.pending_resumes {
            word(u64::from(client.0));
            word(ticket.player.0);
        }
        self.aliases.hash_state(&mut word);
    }

    /// Handles a closed connection. If the player is logged in, its object stays for a while and the session can be resumed. If it waits in
    /// the login queue, its place is kept for the same time.
    pub(super) fn on_disconnect(&mut self, client: ClientId) {
        let Some(session) = self.get(client).copied() else {
            return;
        };
        let is_kept = self.settings.reconnect_grace_ticks > 0 && !self.is_draining;
        if session.player.is_none() || !is_kept {
            self.end(client, LogoutReason::Disconnected);
            if let (Some(player), Some(place), true) =
                (session.authenticated_as, session.queue_key, is_kept)
            {
                let until = self.now.saturating_add(self.settings.reconnect_grace_ticks);
                self.queue.keep(player, place, until);
            }
        } else if session.state != SessionState::AwaitingReconnect {
            self.set_state(client, SessionState::AwaitingReconnect);
            self.effects
                .push(SessionEffect::ConnectionLost(client, session));
        }
    }

    /// Ends sessions whose deadline has passed, and some of all when draining.
    pub(super) fn end_expired(&mut self) {
        self.queue.expire_kept(self.now);
        while let Some(&(due, client)) = self.deadlines.first()
            && due <= self.now
        {
            let Some(session) = self.get(client).copied() else {
                debug_assert!(false, "who has a deadline has a session");
                self.deadlines.pop_first();
                continue;
            };
            if self.deadline_of(&session) > self.now {
                // A message was received since.
                self.update(client, |_| ());
                continue;
            }
            let reason = match session.state {
                SessionState::AwaitingReconnect => LogoutReason::Disconnected,
                SessionState::InWorld => LogoutReason::Idle,
                _ => LogoutReason::TimedOut,
            };
            self.end(client, reason);
        }
        self.end_draining();
    }

    /// Ends a session. `false` when there is none.
    pub(super) fn end(&mut self, client: ClientId, reason: LogoutReason) -> bool {
        self.remove_from_indexes(client);
        let Some(session) = self.open.remove(client) else {
            return false;
        };
        if let Some(line) = session.queue_key {
            self.queue.remove(line);
        }
        if let Some(player) = session.player {
            self.queue.leave(session.class);
            // A player that moves may have come back already.
            if reason != LogoutReason::Moved {
                self.moved_tokens.remove(player);
            }
        }
        if let Some(player) = session.authenticated_as
            && self.by_player.get(&player) == Some(&client)
        {
            self.by_player.remove(&player);
        }
        self.aliases.remove(client);
        self.effects
            .push(SessionEffect::Ended(client, session, reason));
        true
    }

    /// Sets the object that a client controls; `false` when there is no such session.
    pub(super) fn set_control(&mut self, client: ClientId, entity: Option<Entity>) -> bool {
        if self.open.get(client).is_none() {
            return false;
        }
        let now = self.now;
        self.update(client, |session| {
            use SessionState::{Connecting, Entering, InWorld, Loading};
            session.controlled_entity = entity;
            if entity.is_none() {
                // It must be ready again for its next object.
                session.loading = None;
            }
            let before = session.state;
            session.state = match (before, entity) {
                (Entering, Some(_)) if session.requires_ready => Loading,
                (Entering, Some(_)) => InWorld,
                (Loading | InWorld, None) => Entering,
                (state, _) => state,
            };
            if session.state != before || before == Connecting {
                session.since_tick = now;
            }
        });
        true
    }

    pub(super) fn set_state(&mut self, client: ClientId, state: SessionState) {
        let now = self.now;
        self.update(client, |session| {
            (session.state, session.since_tick) = (state, now)
        });
    }

    /// Changes a session and the lists that depend on it.
    pub(super) fn update(&mut self, client: ClientId, change: impl FnOnce(&mut Session)) {
        self.remove_from_indexes(client);
        if let Some(session) = self.open.get_mut(client) {
            change(session);
        }
        self.add_to_indexes(client);
    }

    fn add_to_indexes(&mut self, client: ClientId) {
        let Some(session) = self.get(client).copied() else {
            return;
        };
        let is_asked = session.state == SessionState::Authenticating;
        if (is_asked || session.state == SessionState::Connecting)
            && session.controlled_entity.is_none()
        {
            self.unauthenticated.insert((is_asked, client));
        }
        if let Some(address) = session.unproven_address() {
            *self.by_address.entry(network(address)).or_default() += 1;
        }
        if session.requires_ready
            && session.controlled_entity.is_some()
            && matches!(session.state, SessionState::Loading | SessionState::InWorld)
        {
            self.loading_clients.insert(client);
        }
        let due = self.deadline_of(&session);
        if due != NEVER {
            self.deadlines.insert((due, client));
        }
        if let Some(session) = self.open.get_mut(client) {
            session.deadline_tick = due;
        }
    }

    pub(super) fn remove_from_indexes(&mut self, client: ClientId) {
        let Some(session) = self.get(client).copied() else {
            return;
        };
        self.unauthenticated.remove(&(false, client));
        self.unauthenticated.remove(&(true, client));
        self.loading_clients.remove(&client);
        self.deadlines.remove(&(session.deadline_tick, client));
        if let Some(address) = session.unproven_address()
            && let Some(count) = self.by_address.get_mut(&network(address))
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&network(address));
            }
        }
    }

    /// The tick of a session's deadline.
    fn deadline_of(&self, session: &Session) -> u64 {
        let rules = &self.settings;
        let after = |ticks: u64| session.since_tick.saturating_add(ticks);
        match session.state {
            // The game has given an object to this client, so it is trusted without a login.
            SessionState::Connecting if session.controlled_entity.is_some() => NEVER,
            SessionState::Connecting => after(rules.login_timeout_ticks),
            SessionState::Authenticating => after(rules.authentication_ticks),
            SessionState::Loading => after(rules.loading_ticks),
            SessionState::AwaitingReconnect => after(rules.reconnect_grace_ticks),
            SessionState::InWorld if rules.idle_ticks > 0 => session
                .last_message_tick
                .max(session.since_tick)
                .saturating_add(rules.idle_ticks),
            _ => NEVER,
        }
    }
}

/// The unit that counts as one address: for IPv6 the network of 64 bits, which is usually one household; IPv4 is the same in
/// either form.
fn network(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip @ IpAddr::V4(_) => ip,
    }
}
