//! Compares the list of sessions with a simple model.

mod rules;
mod steps;

use std::cell::RefCell;
use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use rules::{REACHED, RULES};
use steps::{LifeStep, steps};

use crate::inbox::ConnectionInfo;
use crate::session::resume::ResumeResult;
use crate::session::sessions::{ResumeRequest, SessionEffect};
use crate::session::{AdmissionClass, LogoutReason, SessionKey, SessionState, Sessions};
use crate::wire::{ClientId, ResumeToken, SessionNotice};
use crate::world::{PlayerId, SceneId};

use SessionState::{
    Authenticated, Authenticating, AwaitingReconnect, Connecting, Entering, InWorld, Loading,
    Queued,
};

/// All player ids are below: more than can be admitted and queued together.
const PLAYERS: u64 = 8;

#[derive(Clone, Debug)]
struct Expected {
    client: u32,
    /// The client whose connection opened the session.
    opened_by: u32,
    state: SessionState,
    /// The player that the hook returned.
    known: Option<u64>,
    /// Whether that player is admitted.
    is_in: bool,
    class: AdmissionClass,
    loads: bool,
    controls: bool,
    loading: Option<(u32, bool)>,
    since: u64,
    heard: u64,
    token: Option<ResumeToken>,
    /// The token by which it was resumed, until it sends a message.
    former: Option<ResumeToken>,
}

/// The entity of the session that a client's connection opens.
fn client_entity(client: u32) -> Entity {
    Entity::from_raw_u32(1_000_000 + client).unwrap()
}

#[derive(Clone, Debug, Default)]
struct LifeModel {
    sessions: Vec<Expected>,
    /// Class in the queue, arrival number, client.
    line: Vec<(AdmissionClass, u64, u32)>,
    /// Places of players whose connection was lost in the queue: player, class, arrival number, tick of the loss.
    kept: Vec<(u64, AdmissionClass, u64, u64)>,
    came: u64,
    now: u64,
    admitted: Vec<u64>,
    resumed: u32,
    /// Pending resumes: client, player, token.
    returning: Vec<(u32, u64, ResumeToken)>,
    /// How often each rule for rare cases was used.
    reached: BTreeMap<&'static str, u32>,
}

impl LifeModel {
    fn cover(&mut self, rule: &'static str) {
        *self.reached.entry(rule).or_default() += 1;
    }

    fn get(&mut self, client: u32) -> Option<&mut Expected> {
        self.sessions.iter_mut().find(|of| of.client == client)
    }

    fn end(&mut self, client: u32) {
        self.sessions.retain(|of| of.client != client);
        self.line.retain(|of| of.2 != client);
    }

    fn has_room(&self, class: AdmissionClass) -> bool {
        let inside = |class: AdmissionClass| {
            let of = self
                .sessions
                .iter()
                .filter(|of| of.is_in && of.class == class);
            of.count()
        };
        let all = self.sessions.iter().filter(|of| of.is_in).count();
        let owed = usize::from(class < AdmissionClass::Staff && inside(AdmissionClass::Staff) == 0);
        all + owed < 3
    }

    fn connect(&mut self, client: u32, loads: bool) {
        if self.sessions.len() >= RULES.sessions_max {
            let first = |state| {
                let silent = |of: &&Expected| of.state == state && !of.controls;
                self.sessions.iter().find(silent).cloned()
            };
            let firsts = [first(Connecting), first(Authenticating)]
                .into_iter()
                .flatten();
            let is_old = |of: &Expected| self.now - of.since >= RULES.login_grace_ticks;
            match firsts.into_iter().find(is_old) {
                Some(of) => {
                    self.cover("oldest makes room");
                    self.end(of.client);
                }
                None => return,
            }
        }
        self.sessions.push(Expected {
            client,
            opened_by: client,
            state: Connecting,
            known: None,
            is_in: false,
            class: AdmissionClass::Standard,
            loads,
            controls: false,
            loading: None,
            since: self.now,
            heard: self.now,
            token: None,
            former: None,
        });
    }

    fn answer(&mut self, client: u32, found: Option<(u64, AdmissionClass)>) {
        if self.get(client).is_none_or(|of| of.state != Authenticating) {
            return;
        }
        let Some((player, class)) = found else {
            return self.end(client);
        };
        let mut place = class;
        let is_of_player = |of: &(u64, AdmissionClass, u64, u64)| of.0 == player;
        let kept = self.kept.iter().position(is_of_player);
        let mut kept = kept.map(|at| self.kept.remove(at)).map(|of| (of.1, of.2));
        if let Some(other) = self
            .sessions
            .iter()
            .find(|of| of.known == Some(player))
            .cloned()
        {
            let is_free = self.get(client).is_some_and(|of| !of.controls);
            if other.state == AwaitingReconnect && is_free {
                self.cover("link-dead session is taken over");
                return self.take_over(client, other.client, None);
            }
            let in_line = self.line.iter().find(|of| of.2 == other.client);
            kept = in_line.map(|of| (of.0, of.1)).or(kept);
            self.end(other.client);
            place = class.max(other.class);
            if other.is_in {
                self.cover("player inside is replaced");
                let now = self.now;
                let of = self.get(client).unwrap();
                (of.class, of.known, of.is_in, of.since) = (other.class, Some(player), true, now);
                of.state = inside(of);
                return;
            }
        }
        let is_full = self.line.len() + self.kept.len() >= RULES.queue_max;
        if kept.is_none() && is_full && !self.has_room(class) {
            self.cover("queue is full");
            return self.end(client);
        }
        // It makes a difference only before other queued clients.
        if place > class
            && self
                .line
                .iter()
                .any(|other| other.0 >= class && other.0 < place)
        {
            self.cover("queued player keeps its class");
        }
        let arrival = match kept {
            Some((class, nth)) => {
                place = place.max(class);
                if self.line.iter().any(|of| of.0 == place && of.1 > nth) {
                    self.cover("queued player returns to its place");
                }
                nth
            }
            None => {
                self.came += 1;
                self.came
            }
        };
        self.line.push((place, arrival, client));
        self.line
            .sort_by_key(|&(class, nth, _)| (std::cmp::Reverse(class), nth));
        let of = self.get(client).unwrap();
        (of.class, of.known, of.state) = (class, Some(player), Authenticated);
        self.admit();
    }

    fn admit(&mut self) {
        while let Some(&(place, _, client)) = self.line.first()
            && self.has_room(place)
        {
            let player = self.get(client).unwrap().known.unwrap();
            if !self.admitted.contains(&player) {
                if self.admitted.len() >= RULES.admitted_per_tick_max as usize {
                    self.cover("admission waits");
                    return;
                }
                self.admitted.push(player);
            }
            self.line.remove(0);
            let now = self.now;
            let of = self.get(client).unwrap();
            (of.is_in, of.since) = (true, now);
            of.state = inside(of);
        }
    }

    /// The session that a token belongs to.
    fn has_token(&self, player: u64, token: ResumeToken) -> Option<u32> {
        let mut inside = self.sessions.iter().filter(|of| of.is_in);
        let of = inside.find(|of| of.known == Some(player))?;
        let is_former = of.state == AwaitingReconnect && of.former == Some(token);
        (of.token == Some(token) || is_former).then_some(of.client)
    }

    fn resume(&mut self, client: u32, player: u64, token: ResumeToken) {
        let Some(before) = self.has_token(player, token) else {
            return;
        };
        if self.get(before).is_some_and(|of| of.token != Some(token)) {
            self.cover("former token counts");
        }
        let now = self.now;
        if self.resumed >= RULES.resumed_per_tick_max {
            self.cover("return waits");
            let of = self.get(client).unwrap();
            (of.state, of.since) = (Authenticating, now);
            self.returning.push((client, player, token));
        } else {
            self.take_over(client, before, Some(token));
        }
    }

    fn resume_waiting(&mut self) {
        while self.resumed < RULES.resumed_per_tick_max && !self.returning.is_empty() {
            let (client, player, token) = self.returning.remove(0);
            if self.get(client).is_none_or(|of| of.state != Authenticating) {
                continue;
            }
            if let Some(before) = self.has_token(player, token) {
                self.cover("waiting client returns");
                self.take_over(client, before, Some(token));
            } else {
                self.cover("client waits in vain");
                let now = self.now;
                let of = self.get(client).unwrap();
                (of.state, of.since) = (Connecting, now);
            }
        }
    }

    fn take_over(&mut self, client: u32, before: u32, token: Option<ResumeToken>) {
        self.resumed += 1;
        let old = self.get(before).cloned().unwrap();
        self.sessions.retain(|of| of.client != before);
        let now = self.now;
        let of = self.get(client).unwrap();
        (of.known, of.is_in, of.class) = (old.known, true, old.class);
        of.opened_by = old.opened_by;
        (of.controls, of.since) = (old.controls, now);
        of.former = token;
        of.state = inside(of);
    }

    fn tick(&mut self) {
        (self.now, self.resumed) = (self.now + 1, 0);
        self.admitted.clear();
        let before = self.kept.len();
        let now = self.now;
        self.kept
            .retain(|of| now - of.3 < RULES.reconnect_grace_ticks);
        if self.kept.len() < before {
            self.cover("place in the queue expires");
        }
        self.resume_waiting();
        let late = |of: &Expected| {
            let since = self.now - of.since;
            match of.state {
                Connecting => !of.controls && since >= RULES.login_timeout_ticks,
                Authenticating => since >= RULES.authentication_ticks,
                Loading => since >= RULES.loading_ticks,
                AwaitingReconnect => since >= RULES.reconnect_grace_ticks,
                InWorld => self.now - of.heard.max(of.since) >= RULES.idle_ticks,
                _ => false,
            }
        };
        let late: Vec<Expected> = self
            .sessions
            .iter()
            .filter(|of| late(of))
            .cloned()
            .collect();
        for of in late {
            self.cover(match of.state {
                Connecting => "login times out",
                Authenticating => "authentication times out",
                Loading => "loading times out",
                AwaitingReconnect => "return times out",
                _ if of.since > of.heard => "player is idle since it entered",
                _ => "player is idle since its last message",
            });
            self.end(of.client);
        }
        self.admit();
        for place in 0..self.line.len() {
            let client = self.line[place].2;
            self.get(client).unwrap().state = Queued;
        }
    }
}

fn inside(of: &Expected) -> SessionState {
    match (of.controls, of.loads) {
        (false, _) => Entering,
        (true, true) => Loading,
        (true, false) => InWorld,
    }
}

const fn admission_class(nth: usize) -> AdmissionClass {
    match nth {
        0 => AdmissionClass::Standard,
        1 => AdmissionClass::Party,
        2 => AdmissionClass::Preferred,
        _ => AdmissionClass::Staff,
    }
}

/// Model and implementation side by side, and the effects.
struct LifeRun {
    sessions: Sessions,
    model: LifeModel,
    key: SessionKey,
    made: u32,
    scene: u32,
    effects: Vec<SessionEffect>,
    logins: usize,
    logouts: usize,
}

impl LifeRun {
    fn new() -> Self {
        let mut run = Self {
            sessions: Sessions::default(),
            model: LifeModel::default(),
            key: SessionKey::seeded(1),
            made: 0,
            scene: 1,
            effects: Vec::new(),
            logins: 0,
            logouts: 0,
        };
        run.sessions.begin_tick(0, RULES);
        run
    }

    /// The client of a step: mostly one that it applies to, otherwise any id that was or will be assigned.
    fn nth(&self, nth: usize, concerns: impl Fn(&Expected) -> bool) -> u32 {
        let concerned = self.model.sessions.iter().filter(|of| concerns(of));
        let concerned: Vec<u32> = concerned.map(|of| of.client).collect();
        match concerned.len() {
            count if count > 0 && !nth.is_multiple_of(8) => concerned[nth / 8 % count],
            _ => self.made.saturating_sub(6) + nth as u32 / 8,
        }
    }

    /// The player of a step: one with such a session, or any.
    fn nth_player(&self, nth: u64, concerns: impl Fn(&Expected) -> bool) -> u64 {
        let concerned = self.model.sessions.iter().filter(|of| concerns(of));
        let mut known = concerned.filter_map(|of| of.known);
        known.nth(nth as usize - 1).unwrap_or(nth)
    }

    fn step(&mut self, step: LifeStep) {
        match step {
            LifeStep::Connect(loads) => self.connect(loads),
            LifeStep::Login(nth) => self.log_in(self.nth(nth, |of| of.state == Connecting)),
            LifeStep::Answer(nth, found) => {
                let client = self.nth(nth, |of| of.state == Authenticating);
                // From `PLAYERS` on it is mostly a queued player.
                let found = found.map(|(player, class)| match player.checked_sub(PLAYERS - 1) {
                    Some(nth) if nth > 0 => (self.nth_player(nth, |of| !of.is_in), class),
                    _ => (player, class),
                });
                self.answer(client, found);
            }
            LifeStep::Resume(nth, player, token) => {
                let client = self.nth(nth, |of| of.state == Connecting && !of.controls);
                self.resume(client, self.nth_player(player, |of| of.is_in), token);
            }
            LifeStep::Control(nth, on) => self.control(self.nth(nth, |of| of.is_in), on),
            LifeStep::Load(scene) => self.load(scene),
            LifeStep::Ready(nth, scene) => {
                self.ready(self.nth(nth, |of| of.state == Loading), scene)
            }
            LifeStep::Hear(nth) => {
                let client = self.nth(nth, |_| true);
                self.sessions.acknowledge(ClientId(client), 1);
                let now = self.model.now;
                let of = self.model.get(client);
                of.into_iter()
                    .for_each(|of| (of.heard, of.former) = (now, None));
            }
            LifeStep::Lose(nth) => self.drop_connection(self.nth(nth, |of| of.known.is_some())),
            LifeStep::End(nth) => {
                let client = self.nth(nth, |of| of.is_in);
                self.sessions.end(ClientId(client), LogoutReason::Kicked);
                self.model.end(client);
            }
            LifeStep::Tick => {
                self.model.tick();
                self.sessions.begin_tick(self.model.now, RULES);
                self.sessions.resume_pending(&mut self.key);
                self.sessions.end_expired();
                self.sessions.admit(&mut self.key);
                self.sessions.notify_queue_positions();
            }
        }
    }

    /// A client connects.
    fn connect(&mut self, loads: bool) {
        self.made += 1;
        let loaded = ConnectionInfo {
            requires_ready: loads,
            ..ConnectionInfo::unknown()
        };
        let opened = (ClientId(self.made), client_entity(self.made));
        self.sessions.open(opened, loaded, false);
        self.model.connect(self.made, loads);
    }

    /// A client logs in.
    fn log_in(&mut self, client: u32) {
        let is_asked = self.sessions.start_login(ClientId(client));
        let now = self.model.now;
        let of = self.model.get(client).filter(|of| of.state == Connecting);
        assert_eq!(is_asked, of.is_some());
        if let Some(of) = of {
            (of.state, of.since) = (Authenticating, now);
        }
    }

    /// The hook replies.
    fn answer(&mut self, client: u32, found: Option<(u64, usize)>) {
        let found = found.map(|(player, class)| (player, admission_class(class)));
        let verdict = found.map(|(player, class)| (PlayerId(player), class));
        self.sessions.apply_login_decision(
            ClientId(client),
            verdict.ok_or(crate::wire::LoginRefusal::ByGame),
            &mut self.key,
        );
        self.model.answer(client, found);
    }

    /// A client sends a token, valid or not.
    fn resume(&mut self, client: u32, player: u64, token: u8) {
        let mut known = self.model.sessions.iter();
        let known = known.find(|of| of.is_in && of.known == Some(player));
        let token = known.and_then(|of| match token {
            0 => None,
            1 => of.former,
            _ => of.token,
        });
        let token = token.unwrap_or_default();
        let ticket = ResumeRequest {
            player: PlayerId(player),
            token,
            received_bytes: None,
        };
        let answer = self
            .sessions
            .resume(ClientId(client), ticket, &mut self.key);
        let is_new = |of: &mut Expected| of.state == Connecting && !of.controls;
        let is_new = self.model.get(client).is_some_and(is_new);
        let is_known = self.model.has_token(player, token).is_some();
        let has_room = self.model.resumed < RULES.resumed_per_tick_max;
        let expected = match (is_new, is_known, has_room) {
            (false, ..) => ResumeResult::InvalidState,
            (true, false, _) => ResumeResult::Refused,
            (true, true, false) => ResumeResult::Pending,
            (true, true, true) => ResumeResult::Resumed,
        };
        assert_eq!(answer, expected);
        if is_new {
            self.model.resume(client, player, token);
        }
    }

    /// The game gives a client an object, or takes it away.
    fn control(&mut self, client: u32, on: bool) {
        let entity = on.then(|| Entity::from_raw_u32(client).unwrap());
        self.sessions.set_control(ClientId(client), entity);
        let now = self.model.now;
        if let Some(of) = self.model.get(client) {
            of.controls = on;
            of.loading = of.loading.filter(|_| on);
            let before = of.state;
            of.state = match before {
                Entering if on => inside(of),
                Loading | InWorld if !on => Entering,
                state => state,
            };
            if of.state != before || before == Connecting {
                of.since = now;
            }
        }
    }

    /// All controlled objects are in this scene.
    fn load(&mut self, scene: u32) {
        self.scene = scene;
        let mut asked = Vec::new();
        self.sessions
            .clients_to_load(|_| Some(SceneId(scene)), &mut asked);
        let size = Default::default();
        for (client, _) in asked {
            let notice = SessionNotice::Loading { scene, size };
            self.sessions.start_loading(client, SceneId(scene), notice);
        }
        let now = self.model.now;
        for of in &mut self.model.sessions {
            let is_there = of.loads && of.controls && matches!(of.state, Loading | InWorld);
            if is_there && of.loading.is_none_or(|loading| loading.0 != scene) {
                (of.loading, of.state, of.since) = (Some((scene, false)), Loading, now);
            }
        }
    }

    /// A client reports that it is ready.
    fn ready(&mut self, client: u32, scene: u32) {
        let is_ready = self.sessions.mark_ready(ClientId(client), SceneId(scene));
        let now = self.model.now;
        let of = self.model.get(client);
        let of = of.filter(|of| of.state == Loading && of.loading == Some((scene, false)));
        assert_eq!(is_ready, of.is_some());
        if let Some(of) = of {
            (of.loading, of.state, of.since) = (Some((scene, true)), InWorld, now);
        }
    }

    /// A connection is lost.
    fn drop_connection(&mut self, client: u32) {
        self.sessions.on_disconnect(ClientId(client));
        let now = self.model.now;
        match self.model.get(client) {
            Some(of) if of.is_in => {
                if of.state != AwaitingReconnect {
                    (of.state, of.since) = (AwaitingReconnect, now);
                }
            }
            of => {
                let known = of.and_then(|of| of.known);
                let line = self.model.line.iter().find(|of| of.2 == client).copied();
                self.model.end(client);
                if let (Some(player), Some((class, nth, _))) = (known, line) {
                    self.model.kept.retain(|of| of.0 != player);
                    self.model.kept.push((player, class, nth, now));
                }
            }
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        self.sessions.drain_effects(&mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                SessionEffect::LoggedIn { .. } => self.logins += 1,
                SessionEffect::Ended(_, session, reason) => {
                    let is_out = session.player.is_some() && reason != LogoutReason::Resumed;
                    self.logouts += usize::from(is_out);
                }
                SessionEffect::Notice(client, SessionNotice::Welcome { token, .. }) => {
                    let of = self.model.get(client.0);
                    of.into_iter().for_each(|of| of.token = Some(token));
                }
                _ => {}
            }
        }
        let found: Vec<_> = self
            .sessions
            .iter()
            .map(|(client, of)| {
                let is_ready = of.is_ready_for(SceneId(self.scene));
                (
                    client.0,
                    of.state,
                    of.player.map(|of| of.0),
                    (of.controlled_entity.is_some(), of.client_entity),
                    is_ready,
                )
            })
            .collect();
        let mut expected: Vec<_> = self.model.sessions.clone();
        expected.sort_by_key(|of| of.client);
        let expected: Vec<_> = expected
            .iter()
            .map(|of| {
                let ready = !of.loads || of.loading == Some((self.scene, true));
                let player = of.known.filter(|_| of.is_in);
                (
                    of.client,
                    of.state,
                    player,
                    (of.controls, client_entity(of.opened_by)),
                    ready && of.state != AwaitingReconnect,
                )
            })
            .collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(self.sessions.queue_len(), self.model.line.len());
        for number in (1..=self.made).map(ClientId) {
            let now = self.sessions.current_id(number);
            prop_assert!(
                now == number || self.sessions.get(now).is_some(),
                "{:?}",
                number
            );
        }
        let inside = found.iter().filter(|of| of.2.is_some()).count();
        prop_assert!(inside <= RULES.players_max as usize && found.len() <= RULES.sessions_max);
        prop_assert_eq!(self.logins, self.logouts + inside);
        for player in 1..PLAYERS {
            let of = found
                .iter()
                .filter(|of| of.2 == Some(player))
                .map(|of| ClientId(of.0));
            let of: Vec<ClientId> = of.collect();
            prop_assert!(of.len() <= 1);
            prop_assert_eq!(
                self.sessions.client_of(PlayerId(player)),
                of.first().copied()
            );
        }
        Ok(())
    }
}

#[test]
fn sessions_match_the_model_for_any_steps() {
    let reached = RefCell::new(BTreeMap::new());
    let judged = TestRunner::new(draws!(1_000)).run(&steps(), |script| {
        let mut run = LifeRun::new();
        for step in script {
            run.step(step);
            run.check()?;
        }
        let mut reached = reached.borrow_mut();
        for (rule, times) in run.model.reached {
            *reached.entry(rule).or_insert(0) += times;
        }
        Ok(())
    });
    judged.unwrap_or_else(|fault| panic!("{fault}"));
    let reached = reached.into_inner();
    for rule in REACHED {
        let times = reached.get(rule).copied().unwrap_or_default();
        assert!(times >= 10, "{rule} decided {times} times: {reached:?}");
    }
}
