//! A session at the player's end: packets and times in, messages out. No sockets, no clock.

use std::collections::VecDeque;
use std::sync::Arc;

use glam::Vec2;
use throng_nav::map::TileMap;
use throng_protocol::mirror::{Mirror, MirrorError};
use throng_protocol::movement::{Ground, PlayerStep};
use throng_protocol::predictor::Predictor;
use throng_protocol::server_clock::ServerClock;
use throng_protocol::wire::{
    ClientInput, ClientMessage, CloseReason, InputMotion, LoginRefusal, ResumeToken, ServerMessage,
    SessionNotice,
};

use crate::event::{ClientEvent, EVENTS_MAX};
use crate::smoothing::Smoothing;

/// Settings of a client. All times in seconds.
///
/// ```
/// use throng_client::ClientSettings;
///
/// // A game that shows a loading screen, and calls `Client::ready` at its end.
/// let settings = ClientSettings { is_ready_at_once: false, ..ClientSettings::default() };
/// assert_eq!(settings.player, None); // the player of the token
/// ```
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The player that the token must be for: the server refuses a token of another player. `None`: whichever player the token is for.
    pub player: Option<u64>,
    /// Proof of the identity, as the game defines it; at most 512 bytes. Usually empty, because the token contains the identity.
    pub credential: Vec<u8>,
    /// Whether scenes may be sent at once; otherwise the game calls [`Client::ready`](crate::Client::ready) when it has loaded one.
    pub is_ready_at_once: bool,
    /// Time after which a third of a position correction is left to show. 0 shows corrections at once.
    pub smoothing_s: f32,
    /// Time between two *Pings* for the server's clock.
    pub ping_interval_s: f64,
}

impl Default for ClientSettings {
    /// The player of the token, without a credential and without loading.
    fn default() -> Self {
        Self {
            player: None,
            credential: Vec::new(),
            is_ready_at_once: true,
            smoothing_s: 0.1,
            ping_interval_s: 1.0,
        }
    }
}

/// The player's controls, until they change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlState {
    /// Motion.
    pub motion: InputMotion,
    /// Heading, in 256ths of a turn: 0 is +x, 64 is +y.
    pub heading: u8,
    /// Pressed buttons, one bit each, as the game defines them.
    pub buttons: u32,
}

impl ControlState {
    /// Stand still with this heading.
    #[must_use]
    pub const fn stand(heading: u8) -> Self {
        Self {
            motion: InputMotion::Stand,
            heading,
            buttons: 0,
        }
    }

    /// Walk in a direction, in 256ths of a turn, with that heading.
    #[must_use]
    pub const fn towards(direction: u8) -> Self {
        Self {
            motion: InputMotion::Towards(direction),
            heading: direction,
            buttons: 0,
        }
    }
}

/// The map under the controlled object.
#[derive(Clone, Debug)]
pub struct ClientMap {
    /// Blocked tiles.
    pub tiles: Arc<TileMap>,
    /// The side of a tile, in metres.
    pub tile_m: f32,
}

/// Inputs that are sent at once after a late frame.
const CATCH_UP_TICKS_MAX: u32 = 4;

/// A session: see the [crate documentation](crate).
#[derive(Clone, Debug)]
pub struct ClientSession {
    settings: ClientSettings,
    mirror: Mirror,
    predictor: Predictor,
    /// `None` before *Hello*, which contains the length of a tick.
    clock: Option<ServerClock>,
    ground: Option<ClientMap>,
    controls: ControlState,
    events: VecDeque<ClientEvent>,
    missed_events: u64,
    /// When the mirror's latest tick arrived.
    tick_received_s: f64,
    /// Offsets of the shown positions of other objects.
    smoothing: Smoothing<u32>,
    own_smoothing: Smoothing<()>,
    /// Position of the controlled object before its last input.
    previous_own_position: Option<Vec2>,
    next_input_s: f64,
    next_ping_s: f64,
    /// The player and the resume token of the session.
    token: Option<(u64, ResumeToken)>,
    refusal: Option<LoginRefusal>,
    has_logged_in: bool,
    /// Whether its connection was replaced, and the session does not continue over the new one yet.
    awaits_welcome: bool,
    /// Why the server has ended the session.
    close_reason: Option<CloseReason>,
    /// The scene for which *Ready* has to be sent.
    ready_scene: Option<u32>,
    /// Objects with a motion in the current packet, and where they were shown until then.
    moved: Vec<(u32, Vec2)>,
}

impl ClientSession {
    /// A session that has not started.
    #[must_use]
    pub fn new(settings: ClientSettings) -> Self {
        Self {
            smoothing: Smoothing::new(settings.smoothing_s),
            own_smoothing: Smoothing::new(settings.smoothing_s),
            settings,
            mirror: Mirror::default(),
            predictor: Predictor::default(),
            clock: None,
            ground: None,
            controls: ControlState::default(),
            events: VecDeque::new(),
            missed_events: 0,
            tick_received_s: 0.0,
            previous_own_position: None,
            next_input_s: 0.0,
            next_ping_s: 0.0,
            token: None,
            refusal: None,
            has_logged_in: false,
            awaits_welcome: false,
            close_reason: None,
            ready_scene: None,
            moved: Vec::new(),
        }
    }

    /// Handles a packet that arrived at this time, in seconds of a monotonic clock.
    ///
    /// # Errors
    /// [`MirrorError`]: client and server are incompatible, and the connection cannot be used any more.
    pub fn receive(&mut self, packet: &[u8], now_s: f64) -> Result<(), MirrorError> {
        let (tick, takeovers) = (self.mirror.tick(), self.mirror.takeovers());
        let since_s = (now_s - self.tick_received_s) as f32;
        let (events, missed) = (&mut self.events, &mut self.missed_events);
        let (shown, moved) = (&mut self.smoothing, &mut self.moved);
        moved.clear();
        let taken = self.mirror.receive_each(packet, |mirror, message| {
            if let ServerMessage::Motion { id, .. } = *message
                && let Some(at) = mirror.position_after(id, since_s)
            {
                moved.push((id, at + shown.offset(id, now_s)));
            }
            match *message {
                ServerMessage::Scene { .. } => shown.clear(),
                ServerMessage::Despawn { id, .. } => shown.remove(id),
                _ => {}
            }
            emit_event(message, |event| push_event(events, missed, event));
            // Without a controlled object it receives no other objects, and forgets them.
            if let ServerMessage::Despawn { id, generation } = *message
                && mirror.controlled_object() == Some((id, generation))
            {
                shown.clear();
                push_event(events, missed, ClientEvent::SceneLeft);
            }
        });
        let is_taken_over = self.mirror.takeovers() != takeovers;
        if self.mirror.tick() > tick || is_taken_over {
            self.tick_received_s = now_s;
        }
        let since_s = (now_s - self.tick_received_s) as f32;
        for (id, was) in self.moved.drain(..) {
            if let Some(is) = self.mirror.position_after(id, since_s) {
                self.smoothing.add_offset(id, was - is, now_s);
            }
        }
        if self.clock.is_none() && self.mirror.tick_s() > 0.0 {
            self.clock = Some(ServerClock::new(self.mirror.tick_s()));
            self.next_input_s = now_s;
        } else if is_taken_over {
            let real_tick_s = self.real_tick_s();
            if let Some(clock) = &mut self.clock {
                clock.set_tick_s(real_tick_s);
            }
            self.next_input_s = self.next_input_s.min(now_s + real_tick_s);
            self.next_ping_s = self.next_ping_s.min(now_s);
        }
        for notice in self.mirror.take_notices() {
            self.apply_notice(notice, now_s);
        }
        self.update_controlled_object(now_s);
        taken
    }

    /// Handles a message about the session.
    fn apply_notice(&mut self, notice: SessionNotice, now_s: f64) {
        let event = match notice {
            SessionNotice::Queued { position: place } => ClientEvent::Queued { position: place },
            SessionNotice::Welcome { player, token } => {
                self.token = Some((player, token));
                self.awaits_welcome = false;
                ClientEvent::Welcomed { player }
            }
            SessionNotice::Loading { scene, size } => {
                if self.settings.is_ready_at_once {
                    self.ready_scene = Some(scene);
                }
                let size_m = size.metres();
                ClientEvent::Loading { scene, size_m }
            }
            SessionNotice::Closed { reason, refusal } => {
                self.refusal = refusal;
                let reason = CloseReason::from_number(reason);
                self.close_reason = reason;
                ClientEvent::Closed { reason, refusal }
            }
            SessionNotice::ResumeRefused => {
                (self.token, self.has_logged_in) = (None, false);
                ClientEvent::ResumeFailed
            }
            SessionNotice::Resumed { keeps_state: keeps } => {
                if !keeps {
                    self.smoothing.clear();
                }
                ClientEvent::Resumed { keeps_state: keeps }
            }
            SessionNotice::TimeRate { percent } => {
                let real_tick_s = self.real_tick_s();
                if let Some(clock) = &mut self.clock {
                    clock.set_tick_s(real_tick_s);
                }
                ClientEvent::TimeRate { percent }
            }
            SessionNotice::Pong { number, tick } => {
                if let Some(clock) = &mut self.clock {
                    clock.finish_ping(number, tick, now_s);
                }
                return;
            }
        };
        push_event(&mut self.events, &mut self.missed_events, event);
    }

    /// Updates the prediction of the controlled object.
    fn update_controlled_object(&mut self, now_s: f64) {
        let shown = self.own_position(now_s);
        let step = player_step(self.ground.as_ref(), &self.mirror);
        let corrected = self.predictor.reconcile(&step, &self.mirror);
        let changed_speed = self.predictor.take_speed_jump();
        if corrected.is_some() || changed_speed.is_some() {
            self.previous_own_position = self.predictor.position();
            if let Some((was, is)) = shown.zip(self.previous_own_position) {
                self.own_smoothing.add_offset((), was - is, now_s);
            }
        }
        if let Some(correction) = corrected {
            let event = ClientEvent::Corrected(correction);
            push_event(&mut self.events, &mut self.missed_events, event);
        }
    }

    /// Sends pending messages: login, ready, one input per tick, pings. Call it once per frame. Over a new connection it sends nothing
    /// more before *Welcome*.
    pub fn update(&mut self, now_s: f64, mut say: impl FnMut(&ClientMessage)) {
        if !std::mem::replace(&mut self.has_logged_in, true) {
            say(&match self.token {
                Some((player, token)) => ClientMessage::Resume {
                    player,
                    token,
                    received: Some(self.mirror.received_bytes()),
                },
                None => ClientMessage::Login {
                    player: self.settings.player.unwrap_or_default(),
                    credential: &self.settings.credential,
                },
            });
        }
        // A further message would say that the new token has arrived. If that is lost, the server must still accept the former one.
        if self.awaits_welcome {
            return;
        }
        if let Some(scene) = self.ready_scene.take() {
            say(&ClientMessage::Ready { scene });
        }
        let tick_s = self.real_tick_s();
        let Some(clock) = &mut self.clock else {
            return;
        };
        if now_s >= self.next_ping_s {
            self.next_ping_s = now_s + self.settings.ping_interval_s;
            let number = clock.start_ping(now_s);
            say(&ClientMessage::Ping { number });
        }
        let tick = clock
            .tick_at(now_s)
            .map_or(self.mirror.tick(), |tick| tick as u64);
        if now_s > self.next_input_s + f64::from(CATCH_UP_TICKS_MAX) * tick_s {
            self.next_input_s = now_s;
        }
        while now_s >= self.next_input_s {
            self.next_input_s += tick_s;
            let before = self.predictor.position();
            let input = ClientInput {
                seq: 0,
                client_tick: tick as u16,
                motion: self.controls.motion,
                heading: self.controls.heading,
                buttons: self.controls.buttons,
            };
            let step = player_step(self.ground.as_ref(), &self.mirror);
            // While too many inputs are unacknowledged there is none, and the object stands still.
            self.previous_own_position = before;
            if let Some(input) = self.predictor.apply_input(&step, input) {
                say(&ClientMessage::Input(input));
            }
        }
    }

    /// Sets the controls from now on.
    pub const fn set_controls(&mut self, walk: ControlState) {
        self.controls = walk;
    }

    /// The scene is loaded and may be sent.
    pub const fn ready(&mut self, scene: u32) {
        self.ready_scene = Some(scene);
    }

    /// Why the server has refused the login, if it did.
    #[must_use]
    pub const fn refusal(&self) -> Option<LoginRefusal> {
        self.refusal
    }

    /// Sets the map of the current scene.
    pub fn set_ground(&mut self, ground: Option<ClientMap>) {
        self.ground = ground;
    }

    /// Another connection replaces the one before; the session is to be resumed over it.
    pub fn reconnect(&mut self) {
        self.mirror.reconnect();
        (self.has_logged_in, self.close_reason) = (false, None);
        self.awaits_welcome = self.token.is_some();
    }

    /// Why the server has ended the session; `None` while it has not, or if this version does not know the reason.
    #[must_use]
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// The oldest event that was not returned yet.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Number of dropped events, because the game did not read them.
    #[must_use]
    pub const fn missed_events(&self) -> u64 {
        self.missed_events
    }

    /// The state from the server.
    #[must_use]
    pub const fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Shown position of an object, in metres; of the controlled one, as predicted.
    #[must_use]
    pub fn position(&self, id: u32, now_s: f64) -> Option<Vec2> {
        if self
            .mirror
            .controlled_object()
            .is_some_and(|(own, _)| own == id)
        {
            return self.own_position(now_s);
        }
        let since_s = (now_s - self.tick_received_s).max(0.0) as f32;
        let known = self.mirror.position_after(id, since_s)?;
        Some(known + self.smoothing.offset(id, now_s))
    }

    /// Shown position of the controlled object, in metres: interpolated between its last two inputs by the elapsed part of the tick.
    #[must_use]
    pub fn own_position(&self, now_s: f64) -> Option<Vec2> {
        let to = self.predictor.position()?;
        let from = self.previous_own_position.unwrap_or(to);
        let tick_s = self.real_tick_s();
        let left = ((self.next_input_s - now_s) / tick_s.max(1e-6)).clamp(0.0, 1.0);
        // Not `lerp`, which moves an object at rest by rounding.
        let shown = to + (from - to) * left as f32;
        Some(shown + self.own_smoothing.offset((), now_s))
    }

    /// Length of a tick in real time, in seconds: longer if the server slows time down.
    fn real_tick_s(&self) -> f64 {
        f64::from(self.mirror.tick_s()) * 100.0 / f64::from(self.mirror.time_percent())
    }

    /// The server's current tick, with its fraction; `None` before the first *Pong*, and again after a change of the time rate.
    #[must_use]
    pub fn server_tick(&self, now_s: f64) -> Option<f64> {
        self.clock.as_ref()?.tick_at(now_s)
    }
}

/// Distance of the controlled object per tick, and its ground.
fn player_step<'a>(ground: Option<&'a ClientMap>, mirror: &Mirror) -> PlayerStep<'a> {
    PlayerStep {
        ground: ground.map(|ground| Ground {
            tiles: &ground.tiles,
            tile_m: ground.tile_m,
        }),
        size_m: mirror.size_m(),
        step_m: mirror.own_step_m(),
    }
}

/// Converts a message to events for the game.
fn emit_event(message: &ServerMessage, mut tell: impl FnMut(ClientEvent)) {
    match *message {
        ServerMessage::Scene { scene, size } => {
            let size_m = size.metres();
            tell(ClientEvent::SceneEntered { scene, size_m });
        }
        ServerMessage::ControlledObject { id, generation } => {
            tell(ClientEvent::ControlChanged { id, generation })
        }
        ServerMessage::Snapshot {
            id,
            generation,
            kind,
            ..
        } => tell(ClientEvent::Entered {
            id,
            generation,
            kind,
        }),
        ServerMessage::Despawn { id, generation } => tell(ClientEvent::Left { id, generation }),
        ServerMessage::Delta {
            id,
            generation,
            ref attributes,
        } => {
            for attribute in attributes {
                tell(ClientEvent::AttributeChanged {
                    id,
                    generation,
                    attribute: attribute.id,
                });
            }
        }
        ServerMessage::Announce { about: from, bytes } => tell(ClientEvent::Announced {
            about: from,
            bytes: bytes.to_vec(),
        }),
        _ => {}
    }
}

fn push_event(events: &mut VecDeque<ClientEvent>, missed: &mut u64, event: ClientEvent) {
    if events.len() == EVENTS_MAX {
        events.pop_front();
        *missed += 1;
    }
    events.push_back(event);
}

#[cfg(test)]
mod tests;
