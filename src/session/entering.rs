//! From a login to the world: authentication, the login queue, loading.

use bevy_ecs::prelude::*;

use super::authentication::AdmissionClass;
use super::reasons::LogoutReason;
use super::sessions::{SessionEffect, Sessions};
use super::state::SessionState;
use super::token::SessionKey;
use crate::wire::{ClientId, LoginRefusal, ResumeToken, SessionNotice};
use crate::world::{PlayerId, SceneId};

impl Sessions {
    /// Starts the login of a client: the hook has to be called. `false` if the client cannot log in now.
    pub(super) fn start_login(&mut self, client: ClientId) -> bool {
        let state = self.get(client).map(|session| session.state);
        let is_asked = state == Some(SessionState::Connecting);
        if is_asked && self.is_draining {
            self.end(client, LogoutReason::Stopping);
        } else if is_asked {
            self.set_state(client, SessionState::Authenticating);
        }
        is_asked
    }

    /// Applies the reply of the hook. `false` if no login is pending any more.
    pub(super) fn apply_login_decision(
        &mut self,
        client: ClientId,
        found: Result<(PlayerId, AdmissionClass), LoginRefusal>,
        key: &mut SessionKey,
    ) -> bool {
        let state = self.get(client).map(|session| session.state);
        if state != Some(SessionState::Authenticating) {
            return false;
        }
        let (player, class) = match found {
            Ok(found) => found,
            Err(refusal) => {
                let refused = SessionEffect::LoginRefused(client, refusal);
                self.effects.push(refused);
                self.end(client, LogoutReason::Refused);
                return true;
            }
        };
        let is_inside = self.client_of(player).is_some();
        if self.is_draining || self.refuses_logins && !is_inside {
            self.end(client, LogoutReason::Stopping);
            return true;
        }
        let mut place = class;
        let mut kept = self.queue.take_kept(player);
        let mut takes_over = None;
        if let Some(&before) = self.by_player.get(&player)
            && let Some(other) = self.get(before).copied()
        {
            let controls = self
                .get(client)
                .and_then(|session| session.controlled_entity);
            if other.state == SessionState::AwaitingReconnect && controls.is_none() {
                self.take_over(client, before, None, key);
                return true;
            }
            self.end(before, LogoutReason::Replaced);
            // A queued session keeps its position, and an admitted one keeps its slot: no player is added.
            place = class.max(other.class);
            kept = kept.or(other.queue_key);
            takes_over = other.player.map(|_| other.class);
        }
        if let Some(class) = takes_over {
            self.by_player.insert(player, client);
            self.update(client, |session| {
                (session.class, session.authenticated_as) = (class, Some(player));
            });
            self.admit_player(client, player, key);
            return true;
        }
        let is_full = kept.is_none() && self.queue.len_with_kept() >= self.settings.queue_max;
        // While no client is admitted, a free slot makes no room in the queue.
        let goes_on = self.settings.admitted_per_tick_max > 0
            && self.queue.has_room(
                class,
                self.settings.players_max,
                self.settings.reserved_slots,
            );
        if is_full && !goes_on {
            self.end(client, LogoutReason::Full);
            return true;
        }
        let line = self.queue.push(client, place, kept);
        self.by_player.insert(player, client);
        self.update(client, |session| {
            session.class = class;
            session.authenticated_as = Some(player);
            session.queue_key = Some(line);
            session.state = SessionState::Authenticated;
        });
        self.has_unnotified = true;
        self.admit(key);
        true
    }

    /// Admits a client that comes from another server process, before all queued clients. If its player still has a session here, that
    /// session continues with this client. Does nothing if the client was refused.
    pub(super) fn continue_session(
        &mut self,
        client: ClientId,
        player: PlayerId,
        key: &mut SessionKey,
    ) {
        let state = self.get(client).map(|session| session.state);
        if state != Some(SessionState::Connecting) {
            return;
        }
        if let Some(&before) = self.by_player.get(&player)
            && let Some(other) = self.get(before).copied()
        {
            if other.player.is_some() {
                self.take_over(client, before, None, key);
                // The new token may be lost with this connection.
                let until_tick = self.now + self.settings.reconnect_grace_ticks;
                return self.allow_resume(player, other.token, until_tick);
            }
            self.end(before, LogoutReason::Replaced);
        }
        self.queue.take_kept(player);
        self.by_player.insert(player, client);
        self.update(client, |session| session.authenticated_as = Some(player));
        let discards = SessionNotice::Resumed { keeps_state: false };
        self.effects.push(SessionEffect::Notice(client, discards));
        self.admit_player(client, player, key);
    }

    /// Admits clients from the head of the queue, as far as slots and the limit per tick allow.
    pub(super) fn admit(&mut self, key: &mut SessionKey) {
        while !self.refuses_logins
            && let Some((line, client)) = self
                .queue
                .next_admissible(self.settings.players_max, self.settings.reserved_slots)
        {
            let known = self
                .get(client)
                .and_then(|session| session.authenticated_as);
            let Some(player) = known else {
                debug_assert!(false, "a queued client has a session and a player");
                self.queue.remove(line);
                continue;
            };
            // A player that was admitted in this tick, left and returned does not count again.
            let is_again = self.admitted.contains(&player);
            if !is_again && self.admitted.len() >= self.settings.admitted_per_tick_max as usize {
                return;
            }
            self.queue.remove(line);
            self.admitted.insert(player);
            self.admit_player(client, player, key);
        }
    }

    /// Admits a player.
    fn admit_player(&mut self, client: ClientId, player: PlayerId, key: &mut SessionKey) {
        let class = self.get(client).map(|session| session.class);
        self.queue.enter(class.unwrap_or_default());
        let token = key.issue(client);
        let now = self.now;
        self.update(client, |session| {
            session.player = Some(player);
            session.queue_key = None;
            session.token = token;
            session.state = match session.controlled_entity {
                Some(_) if session.requires_ready => SessionState::Loading,
                Some(_) => SessionState::InWorld,
                None => SessionState::Entering,
            };
            session.since_tick = now;
        });
        self.send_welcome(client, player, token);
        if let Some(client_entity) = self.client_entity(client) {
            self.effects.push(SessionEffect::LoggedIn {
                client,
                client_entity,
                player,
            });
        }
    }

    pub(super) fn send_welcome(&mut self, client: ClientId, player: PlayerId, token: ResumeToken) {
        let player = player.0;
        let notice = SessionNotice::Welcome { player, token };
        self.effects.push(SessionEffect::Promoted(client));
        self.effects.push(SessionEffect::Notice(client, notice));
    }

    /// Sends queued clients their positions: new ones at once, all others at intervals.
    pub(super) fn notify_queue_positions(&mut self) {
        let all = self
            .now
            .is_multiple_of(self.settings.queue_position_ticks.max(1))
            && self.queue.len() > 0;
        if !all && !std::mem::take(&mut self.has_unnotified) {
            return;
        }
        self.has_unnotified = false;
        for (client, place) in self.queue.iter().zip(1..) {
            let Some(session) = self.open.get_mut(client) else {
                continue;
            };
            let is_new = session.state == SessionState::Authenticated;
            if is_new || (all && session.queue_position != place) {
                // Neither state has a deadline, so no list changes.
                (session.state, session.queue_position) = (SessionState::Queued, place);
                let notice = SessionNotice::Queued { position: place };
                self.effects.push(SessionEffect::Notice(client, notice));
            }
        }
    }

    /// Clients that control an object of a scene for which they must be ready, and were not asked to load it yet.
    pub(super) fn clients_to_load(
        &self,
        scene_of: impl Fn(Entity) -> Option<SceneId>,
        into: &mut Vec<(ClientId, SceneId)>,
    ) {
        into.extend(self.loading_clients.iter().filter_map(|&client| {
            let session = self.get(client)?;
            let scene = scene_of(session.controlled_entity?)?;
            let is_asked = session.loading.is_some_and(|(asked, _)| asked == scene);
            (!is_asked).then_some((client, scene))
        }));
    }

    /// Asks a client to load a scene.
    pub(super) fn start_loading(
        &mut self,
        client: ClientId,
        scene: SceneId,
        notice: SessionNotice,
    ) {
        let now = self.now;
        self.update(client, |session| {
            session.loading = Some((scene, false));
            session.state = SessionState::Loading;
            session.since_tick = now;
        });
        self.effects.push(SessionEffect::Notice(client, notice));
    }

    /// Marks a client as ready for a scene; `false` if it was not asked to load it.
    pub(super) fn mark_ready(&mut self, client: ClientId, scene: SceneId) -> bool {
        let session = self.get(client);
        let is_asked = session.is_some_and(|session| {
            session.state == SessionState::Loading && session.loading == Some((scene, false))
        });
        if is_asked {
            self.update(client, |session| session.loading = Some((scene, true)));
            self.set_state(client, SessionState::InWorld);
        }
        is_asked
    }
}
