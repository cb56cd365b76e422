//! From a login to the world: authentication, the login queue, loading.

use bevy_ecs::prelude::*;

use super::authentication::AdmissionClass;
use super::life::SessionState;
use super::reasons::LogoutReason;
use super::sessions::{SessionEffect, Sessions};
use super::token::SessionKey;
use crate::wire::{ClientId, ResumeToken, SessionNotice};
use crate::world::{PlayerId, SceneId};

impl Sessions {
    /// A client says who it is: the hook is to be asked. `false` where that is not for now.
    pub(super) fn begin_login(&mut self, client: ClientId) -> bool {
        let state = self.get(client).map(|session| session.state);
        let is_asked = state == Some(SessionState::Connecting);
        if is_asked && self.is_draining {
            self.end(client, LogoutReason::Stopping);
        } else if is_asked {
            self.enter(client, SessionState::Authenticating);
        }
        is_asked
    }

    /// The hook says who a client is, or that it is nobody. `false` where nobody waits for that any more.
    pub(super) fn answer(
        &mut self,
        client: ClientId,
        found: Option<(PlayerId, AdmissionClass)>,
        key: &mut SessionKey,
    ) -> bool {
        let state = self.get(client).map(|session| session.state);
        if state != Some(SessionState::Authenticating) {
            return false;
        }
        let Some((player, class)) = found else {
            self.end(client, LogoutReason::Refused);
            return true;
        };
        let is_inside = self.of(player).is_some();
        if self.is_draining || self.refuses_logins && !is_inside {
            self.end(client, LogoutReason::Stopping);
            return true;
        }
        let mut place = class;
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
            // Who waited for a place waits on in its class, and who had one has it: nobody is let in by that.
            place = class.max(other.class);
            takes_over = other.player.map(|_| other.class);
        }
        if let Some(class) = takes_over {
            self.by_player.insert(player, client);
            self.change(client, |session| {
                (session.class, session.is_player) = (class, Some(player));
            });
            self.let_in(client, player, key);
            return true;
        }
        let is_full = self.line.len() >= self.rules.queue_max;
        // Where nobody is let in for now, room inside makes none in the line.
        let goes_on = self.rules.admitted_per_tick_max > 0
            && self
                .line
                .has_room(class, self.rules.players_max, self.rules.kept);
        if is_full && !goes_on {
            self.end(client, LogoutReason::Full);
            return true;
        }
        let line = self.line.push(client, place);
        self.by_player.insert(player, client);
        self.change(client, |session| {
            session.class = class;
            session.is_player = Some(player);
            session.line = Some(line);
            session.state = SessionState::Authenticated;
        });
        self.has_unplaced = true;
        self.admit(key);
        true
    }

    /// Lets in who stands at the head of the line, as far as there is room and this tick allows.
    pub(super) fn admit(&mut self, key: &mut SessionKey) {
        while !self.refuses_logins
            && let Some((line, client)) = self.line.next(self.rules.players_max, self.rules.kept)
        {
            let known = self.get(client).and_then(|session| session.is_player);
            let Some(player) = known else {
                debug_assert!(
                    false,
                    "who stands in the line has a session, and is somebody"
                );
                self.line.remove(line);
                continue;
            };
            // Who was let in in this tick, went and came again takes nobody else's turn.
            let is_again = self.admitted.contains(&player);
            if !is_again && self.admitted.len() >= self.rules.admitted_per_tick_max as usize {
                return;
            }
            self.line.remove(line);
            self.admitted.insert(player);
            self.let_in(client, player, key);
        }
    }

    /// A player is inside.
    fn let_in(&mut self, client: ClientId, player: PlayerId, key: &mut SessionKey) {
        let class = self.get(client).map(|session| session.class);
        self.line.enter(class.unwrap_or_default());
        let token = key.make(client);
        let now = self.now;
        self.change(client, |session| {
            session.player = Some(player);
            session.line = None;
            session.token = token;
            session.state = match session.controlled_entity {
                Some(_) if session.loads => SessionState::Loading,
                Some(_) => SessionState::InWorld,
                None => SessionState::Entering,
            };
            session.since = now;
        });
        self.welcome(client, player, token);
        self.effects.push(SessionEffect::LoggedIn(client, player));
    }

    pub(super) fn welcome(&mut self, client: ClientId, player: PlayerId, token: ResumeToken) {
        let player = player.0;
        let notice = SessionNotice::Welcome { player, token };
        self.effects.push(SessionEffect::Promoted(client));
        self.effects.push(SessionEffect::Told(client, notice));
    }

    /// Tells those in the line where they stand: who joined it at once, all others now and then.
    pub(super) fn tell_places(&mut self) {
        let all = self.now.is_multiple_of(self.rules.place_ticks.max(1)) && self.line.len() > 0;
        if !all && !std::mem::take(&mut self.has_unplaced) {
            return;
        }
        self.has_unplaced = false;
        for (client, place) in self.line.iter().zip(1..) {
            let Some(session) = self.open.get_mut(client) else {
                continue;
            };
            let is_new = session.state == SessionState::Authenticated;
            if is_new || (all && session.place != place) {
                // Neither state has a deadline, so no list changes.
                (session.state, session.place) = (SessionState::Queued, place);
                let notice = SessionNotice::Queued { position: place };
                self.effects.push(SessionEffect::Told(client, notice));
            }
        }
    }

    /// Who controls an object of a scene for which it has to be ready, and was not asked to be.
    pub(super) fn to_load(
        &self,
        scene_of: impl Fn(Entity) -> Option<SceneId>,
        into: &mut Vec<(ClientId, SceneId)>,
    ) {
        into.extend(self.loaders.iter().filter_map(|&client| {
            let session = self.get(client)?;
            let scene = scene_of(session.controlled_entity?)?;
            let is_asked = session.loading.is_some_and(|(asked, _)| asked == scene);
            (!is_asked).then_some((client, scene))
        }));
    }

    /// A client is asked to be ready for a scene.
    pub(super) fn begin_loading(
        &mut self,
        client: ClientId,
        scene: SceneId,
        notice: SessionNotice,
    ) {
        let now = self.now;
        self.change(client, |session| {
            session.loading = Some((scene, false));
            session.state = SessionState::Loading;
            session.since = now;
        });
        self.effects.push(SessionEffect::Told(client, notice));
    }

    /// A client is ready for a scene; `false` where it was not asked to be.
    pub(super) fn ready(&mut self, client: ClientId, scene: SceneId) -> bool {
        let session = self.get(client);
        let is_asked = session.is_some_and(|session| {
            session.state == SessionState::Loading && session.loading == Some((scene, false))
        });
        if is_asked {
            self.change(client, |session| session.loading = Some((scene, true)));
            self.enter(client, SessionState::InWorld);
        }
        is_asked
    }
}
