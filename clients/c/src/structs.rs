//! The structs of the C interface.

use std::time::{Duration, Instant};

use throng_client::{Client, ClientEvent, CloseReason};

use crate::status::{CallError, CallResult};

/// The client of a player.
#[derive(Debug)]
pub struct ThrongClient {
    pub(crate) client: Client,
    /// The local time at 0 of the caller's clock.
    started: Instant,
    /// Time of the last update.
    pub(crate) now: Instant,
    /// Content of the last announcement.
    announced: Vec<u8>,
    /// Set while a call runs. If it is still set at the next call, the previous one has panicked.
    is_poisoned: bool,
}

/// A client can be moved between threads.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<ThrongClient>();
};

impl ThrongClient {
    pub(crate) fn new(client: Client) -> Self {
        let now = Instant::now();
        Self {
            client,
            started: now,
            now,
            announced: Vec::new(),
            is_poisoned: false,
        }
    }

    /// Runs a call, unless an earlier one has panicked.
    pub(crate) fn run(&mut self, act: impl FnOnce(&mut Self) -> CallResult) -> CallResult {
        self.check_poisoned()?;
        self.is_poisoned = true;
        let done = act(self);
        self.is_poisoned = false;
        done
    }

    /// The client, unless a call has panicked.
    pub(crate) fn check_poisoned(&self) -> Result<&Self, CallError> {
        if self.is_poisoned {
            return Err(CallError::panicked("an earlier call did not end"));
        }
        Ok(self)
    }

    /// Sets the time of the caller's clock, in seconds.
    pub(crate) fn set_now(&mut self, now_s: f64) -> Result<(), CallError> {
        let since = Duration::try_from_secs_f64(now_s).ok();
        let now = since.and_then(|since| self.started.checked_add(since));
        self.now = now.ok_or_else(|| {
            CallError::argument(format!(
                "now_s is {now_s}, expected seconds of a clock from 0 on"
            ))
        })?;
        Ok(())
    }

    /// An object in view.
    pub(crate) fn object(&self, id: u32) -> Option<ThrongObject> {
        let mirror = self.client.mirror();
        let known = mirror.object(id)?;
        let at = self.client.position(id, self.now);
        let at = at.or_else(|| mirror.position(id, mirror.tick()))?;
        Some(ThrongObject {
            id,
            generation: known.generation,
            x: at.x,
            y: at.y,
            kind: known.kind,
            heading: known.motion.heading,
            floor: known.motion.floor,
            is_own: mirror
                .controlled_object()
                .is_some_and(|(own, _)| own == id)
                .into(),
        })
    }

    /// The state of the client.
    pub(crate) fn state(&self) -> ThrongClientState {
        let (client, mirror) = (&self.client, self.client.mirror());
        let session = client.session();
        let (own_id, own_generation) = mirror.controlled_object().unwrap_or_default();
        let [width_m, height_m] = mirror.size_m().into();
        ThrongClientState {
            tick: mirror.tick(),
            server_tick: client.server_tick(self.now).unwrap_or_default(),
            round_trip_s: client.round_trip_s().unwrap_or_default(),
            missed_events: session.missed_events(),
            loss: client.loss(),
            tick_s: mirror.tick_s(),
            scene: mirror.scene().unwrap_or_default(),
            width_m,
            height_m,
            own_id,
            own_generation,
            last_input: mirror.handled_input(),
            time_percent: mirror.time_percent(),
            is_connected: client.is_connected().into(),
            is_in_scene: mirror.scene().is_some().into(),
            has_own: mirror.controlled_object().is_some().into(),
        }
    }

    /// The oldest event that was not returned yet.
    pub(crate) fn next_event(&mut self) -> Option<ThrongEvent> {
        loop {
            let event = self.client.next_event()?;
            if let Some(converted) = self.convert_event(event) {
                return Some(converted);
            }
        }
    }

    /// Converts an event for C; `None` for a kind that this version does not know.
    fn convert_event(&mut self, event: ClientEvent) -> Option<ThrongEvent> {
        use ThrongEventKind as Kind;
        let of = |kind| ThrongEvent::new(kind);
        Some(match event {
            ClientEvent::Queued { position: place } => of(Kind::Queued).number(place),
            ClientEvent::Welcomed { player } => ThrongEvent {
                player,
                ..of(Kind::Welcomed)
            },
            ClientEvent::Resumed { keeps_state: keeps } => of(Kind::Resumed).number(keeps),
            ClientEvent::ResumeFailed => of(Kind::ResumeFailed),
            ClientEvent::Loading { scene, size_m } => ThrongEvent {
                scene,
                ..of(Kind::Loading).with_position(size_m.into())
            },
            ClientEvent::SceneEntered { scene, size_m } => ThrongEvent {
                scene,
                ..of(Kind::SceneEntered).with_position(size_m.into())
            },
            ClientEvent::SceneLeft => of(Kind::SceneLeft),
            ClientEvent::ControlChanged { id, generation } => {
                of(Kind::ControlChanged).with_object((id, generation))
            }
            ClientEvent::Entered {
                id,
                generation,
                kind,
            } => of(Kind::Entered).with_object((id, generation)).number(kind),
            ClientEvent::Left { id, generation } => of(Kind::Left).with_object((id, generation)),
            ClientEvent::AttributeChanged {
                id,
                generation,
                attribute,
            } => of(Kind::AttributeChanged)
                .with_object((id, generation))
                .number(attribute),
            ClientEvent::Announced { about: from, bytes } => {
                self.announced = bytes;
                ThrongEvent {
                    bytes: self.announced.as_ptr(),
                    length: self.announced.len(),
                    ..of(Kind::Announced)
                        .with_object(from.unwrap_or_default())
                        .number(from.is_some())
                }
            }
            ClientEvent::Corrected(correction) => of(Kind::Corrected)
                .with_position(correction.jump_m.into())
                .number(correction.input),
            ClientEvent::TimeRate { percent } => of(Kind::TimeRate).number(percent),
            ClientEvent::Closed { reason, .. } => {
                of(Kind::Closed).number(reason.map_or(0, CloseReason::number))
            }
            _ => return None,
        })
    }
}

/// Settings of a client. throng_settings returns the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThrongClientSettings {
    /// The player that the token must be for; 0 accepts any player.
    pub player: u64,
    /// Proof of the identity, as the game defines it: credential_length bytes, at most 512. Null if it is empty, because the token contains
    /// the identity.
    pub credential: *const u8,
    /// Length of the credential, in bytes.
    pub credential_length: usize,
    /// Time in which the shown part of a position correction decreases to a third, in seconds. 0 shows corrections at once.
    pub smoothing_s: f32,
    /// Not 0: scenes are sent only after throng_ready.
    pub requires_ready: u8,
}

/// An object in view.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongObject {
    /// Object id in the scene.
    pub id: u32,
    /// Generation: how often that id was assigned before.
    pub generation: u32,
    /// Shown position at the last throng_update, in metres to the right.
    pub x: f32,
    /// The same, in metres down.
    pub y: f32,
    /// Number of its kind.
    pub kind: u16,
    /// Heading, in 256ths of a turn: 0 is +x, 64 is +y.
    pub heading: u8,
    /// Floor, as the game counts them.
    pub floor: u8,
    /// 1 if the player controls it; then its position is predicted ahead of the server.
    pub is_own: u8,
}

/// The state of a client.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongClientState {
    /// The latest tick received from the server.
    pub tick: u64,
    /// The server's current tick, with its fraction; 0 while unknown.
    pub server_tick: f64,
    /// Smoothed round trip time, including the server's tick, in seconds; 0 before the first measurement.
    pub round_trip_s: f64,
    /// Number of dropped events, because the game did not read them.
    pub missed_events: u64,
    /// Estimated share of this client's packets that are lost: 0 to 1.
    pub loss: f32,
    /// Length of a tick, in seconds; 0 while unknown.
    pub tick_s: f32,
    /// Scene of the player, if is_in_scene.
    pub scene: u32,
    /// The scene's width, in metres.
    pub width_m: f32,
    /// The scene's height, in metres.
    pub height_m: f32,
    /// Id of the controlled object, if has_own.
    pub own_id: u32,
    /// Generation: how often that id was assigned before.
    pub own_generation: u32,
    /// Number of the last input that the server has handled, modulo 65,536.
    pub last_input: u16,
    /// Rate of simulated time, in percent of real time.
    pub time_percent: u8,
    /// 1 if the connection is open; 0 while connecting, as long as throng_update succeeds.
    pub is_connected: u8,
    /// 1 if the player is in a scene.
    pub is_in_scene: u8,
    /// 1 if the player controls an object.
    pub has_own: u8,
}

/// Kind of an event.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongEventKind {
    /// The client waits in the login queue; number: its position, 1 is next.
    Queued = 1,
    /// The player is logged in, or the session is resumed; player: its id.
    Welcomed = 2,
    /// The session continues over this connection; number: 1 if the client keeps its state, 0 if everything is sent again.
    Resumed = 3,
    /// The session could not be resumed; the player logs in again.
    ResumeFailed = 4,
    /// The player enters this scene, of x by y metres, which is sent after throng_ready; at once without requires_ready.
    Loading = 5,
    /// The player is in this scene, of x by y metres. All objects of the previous scene are gone, without events of their own.
    SceneEntered = 6,
    /// The player controls no object any more, and no object is in view.
    SceneLeft = 7,
    /// The player controls this object.
    ControlChanged = 8,
    /// An object entered the view; number: its kind.
    Entered = 9,
    /// An object left the view.
    Left = 10,
    /// An attribute of an object in view was changed or removed; number: the attribute.
    AttributeChanged = 11,
    /// A one-time event of the game: length bytes as the game defines them; number: 1 if it is about an object.
    Announced = 12,
    /// The server's position of the controlled object differs from the predicted one by x and y metres; number: the input.
    Corrected = 13,
    /// The rate of simulated time has changed; number: percent of real time.
    TimeRate = 14,
    /// The server has ended the session, and the end of the connection follows; number: the reason. 1 ended, 2 replaced, 3 slow_consumer, 4
    /// stopping, 5 kicked, 6 banned, 7 idle, 8 flooding, 9 refused, 10 timed_out, 11 full, 12 resumed, 13 unavailable, 14 lost; 0 is an
    /// unknown reason. throng_close_reason has a sentence for each.
    Closed = 15,
}

/// An event. Fields that its kind does not use are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongEvent {
    /// Player id.
    pub player: u64,
    /// Content of an announcement; valid until the next throng_next_event.
    pub bytes: *const u8,
    /// Length of the content, in bytes.
    pub length: usize,
    /// Kind of the event.
    pub kind: ThrongEventKind,
    /// Object id in the scene.
    pub id: u32,
    /// Generation: how often that id was assigned before.
    pub generation: u32,
    /// Scene id.
    pub scene: u32,
    /// A number whose meaning depends on the kind.
    pub number: u32,
    /// Metres to the right.
    pub x: f32,
    /// Metres down.
    pub y: f32,
}

impl ThrongEvent {
    const fn new(kind: ThrongEventKind) -> Self {
        Self {
            player: 0,
            bytes: std::ptr::null(),
            length: 0,
            kind,
            id: 0,
            generation: 0,
            scene: 0,
            number: 0,
            x: 0.0,
            y: 0.0,
        }
    }

    const fn with_object(mut self, (id, generation): (u32, u32)) -> Self {
        (self.id, self.generation) = (id, generation);
        self
    }

    const fn with_position(mut self, [x, y]: [f32; 2]) -> Self {
        (self.x, self.y) = (x, y);
        self
    }

    fn number(mut self, number: impl Into<u32>) -> Self {
        self.number = number.into();
        self
    }
}
