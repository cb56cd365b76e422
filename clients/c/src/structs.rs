//! What C fills in, and what it is given.

use std::time::{Duration, Instant};

use throng_client::{Client, ClientEvent, CloseReason};

use crate::status::{CallError, CallResult};

/// A player's program at one server.
#[derive(Debug)]
pub struct ThrongClient {
    pub(crate) client: Client,
    /// When the caller's clock was at 0, by ours.
    started: Instant,
    /// When it was updated last.
    pub(crate) now: Instant,
    /// What the last event announced.
    announced: Vec<u8>,
    /// A call began and did not end: it panicked.
    is_poisoned: bool,
}

/// Threads may hand it on.
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

    /// Does something with it, unless something panicked before.
    pub(crate) fn run(&mut self, act: impl FnOnce(&mut Self) -> CallResult) -> CallResult {
        self.check_poisoned()?;
        self.is_poisoned = true;
        let done = act(self);
        self.is_poisoned = false;
        done
    }

    /// It, unless something panicked in it.
    pub(crate) fn check_poisoned(&self) -> Result<&Self, CallError> {
        if self.is_poisoned {
            return Err(CallError::panicked("an earlier call did not end"));
        }
        Ok(self)
    }

    /// It is this late by the caller's clock, in seconds.
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

    /// An object in sight.
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

    /// How it is doing.
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

    /// The oldest event that C was not told of.
    pub(crate) fn next_event(&mut self) -> Option<ThrongEvent> {
        loop {
            let event = self.client.next_event()?;
            if let Some(told) = self.convert_event(event) {
                return Some(told);
            }
        }
    }

    /// An event as C has it; none of a kind that this version does not know.
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
            ClientEvent::Closed { reason } => {
                of(Kind::Closed).number(reason.map_or(0, CloseReason::number))
            }
            _ => return None,
        })
    }
}

/// How a client is. throng_settings fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThrongClientSettings {
    /// Who it says it is.
    pub player: u64,
    /// What proves it, as the game defines it: credential_length bytes, at most 512. Null with none, where the token says who it is.
    pub credential: *const u8,
    /// How long the credential is, in bytes.
    pub credential_length: usize,
    /// How fast its own object walks, in metres a second, as the server has it.
    pub speed_m_s: f32,
    /// In what time what is shown goes over to what is known, down to a third, in seconds. 0 shows what is known.
    pub smoothing_s: f32,
    /// Not 0: it is told of a scene only after throng_ready.
    pub requires_ready: u8,
}

/// An object in sight.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongObject {
    /// Its number in the scene.
    pub id: u32,
    /// How often that number was given out before.
    pub generation: u32,
    /// Where it is shown at the last throng_update, in metres to the right.
    pub x: f32,
    /// The same, in metres down.
    pub y: f32,
    /// The number of its kind.
    pub kind: u16,
    /// Where it looks, in 256ths of a turn: 0 is +x, 64 is +y.
    pub heading: u8,
    /// The storey that it is on, as the game counts them.
    pub floor: u8,
    /// 1 where the player controls it, and it is shown ahead of the server.
    pub is_own: u8,
}

/// How a client is doing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongClientState {
    /// The latest tick of the server that it heard of.
    pub tick: u64,
    /// What the server's tick is by now, with its fraction; 0 before that is known.
    pub server_tick: f64,
    /// The smoothed round trip of a packet, the server's tick included, in seconds; 0 before the first.
    pub round_trip_s: f64,
    /// Events that were pushed out, since nobody asked for them.
    pub missed_events: u64,
    /// The share of this client's packets that do not arrive, estimated: 0 to 1.
    pub loss: f32,
    /// The length of a tick, in seconds; 0 before that is known.
    pub tick_s: f32,
    /// The scene that the player is in, if is_in_scene.
    pub scene: u32,
    /// The scene's width, in metres.
    pub width_m: f32,
    /// The scene's height, in metres.
    pub height_m: f32,
    /// The number of the own object, if has_own.
    pub own_id: u32,
    /// How often that number was given out before.
    pub own_generation: u32,
    /// The number of the last input that the server had handled; inputs are counted modulo 65,536.
    pub last_input: u16,
    /// How fast simulated time passes, in percent of real time.
    pub time_percent: u8,
    /// 1 where there is a connection: not yet where it is 0 and throng_update goes well.
    pub is_connected: u8,
    /// 1 where the player is in a scene.
    pub is_in_scene: u8,
    /// 1 where the player controls an object.
    pub has_own: u8,
}

/// What happened.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongEventKind {
    /// The server is full, or lets nobody in for now; number: how many go in before this client and with it.
    Queued = 1,
    /// The player is logged in, or back; player: who it is.
    Welcomed = 2,
    /// The session goes on over this connection; number: 1 where what was known before still holds, 0 where all is told anew.
    Resumed = 3,
    /// The session that was to go on is over, and the player logs in anew.
    ResumeFailed = 4,
    /// The player is to be in this scene, of x by y metres, and is told of it after throng_ready; at once without waits_for_ready.
    Loading = 5,
    /// The player is in this scene, of x by y metres; all that was in sight before is not any more, without an event of its own.
    SceneEntered = 6,
    /// The player controls nothing any more, and nothing is in sight.
    SceneLeft = 7,
    /// The player controls this object.
    ControlChanged = 8,
    /// An object came into sight; number: its kind's.
    Entered = 9,
    /// An object is out of sight.
    Left = 10,
    /// An attribute of an object in sight has another value, or is gone; number: the attribute's.
    AttributeChanged = 11,
    /// Something happens once: length bytes as the game defines them; number: 1 where it is about an object.
    Announced = 12,
    /// The server has the own object elsewhere than it was walked, by x and y metres; number: after which input.
    Corrected = 13,
    /// Simulated time passes at another pace; number: in percent of real time.
    TimeRate = 14,
    /// The server ended the session, and the connection's end follows; number: why. 1 ended, 2 replaced, 3 behind, 4 stopping,
    /// 5 kicked, 6 banned, 7 idle, 8 flooding, 9 refused, 10 late, 11 full, 12 resumed, 13 unavailable; 0 is a reason that is not known.
    Closed = 15,
}

/// Something that happened. What its kind says nothing of is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrongEvent {
    /// Who it is about.
    pub player: u64,
    /// What is announced; it lies there until the next throng_next_event.
    pub bytes: *const u8,
    /// How much of it there is, in bytes.
    pub length: usize,
    /// What happened.
    pub kind: ThrongEventKind,
    /// The object's number in the scene.
    pub id: u32,
    /// How often that number was given out before.
    pub generation: u32,
    /// The scene's number.
    pub scene: u32,
    /// What its kind says.
    pub number: u32,
    /// In metres to the right.
    pub x: f32,
    /// In metres down.
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
