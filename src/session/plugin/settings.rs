//! Settings and counters of sessions.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::session::authentication::AdmissionClass;
use crate::session::reasons::LogoutReason;
use crate::session::tick_settings::SessionTickSettings;

/// How many sessions there may be, and how long each part of their life may take. Times are counted in whole ticks.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionSettings {
    /// Sessions that may be open, those without a login included. Beyond it, who has not asked to log in for
    /// [`login_grace_s`](Self::login_grace_s) makes room; if nobody has, the new one is closed.
    pub sessions_max: u32,
    /// Players that may be inside; further ones stand in a line.
    pub players_max: u32,
    /// Players that may stand in the line; further ones are closed.
    pub queue_max: u32,
    /// Of `players_max`, the places that are kept for each class of [`AdmissionClass`], from `Anybody` on.
    #[serde(alias = "places_kept")]
    pub reserved_slots: [u32; AdmissionClass::COUNT],
    /// Connections that a tick opens sessions for, in their order; the rest waits for the next.
    #[serde(alias = "opened_per_tick_max")]
    pub sessions_opened_per_tick_max: u32,
    /// Players let in a tick; the rest waits in the line, and is told so. One costs some 20 µs of the tick: an object, views, and
    /// the first it is told of what it sees.
    pub admitted_per_tick_max: u32,
    /// Sessions that go on over another connection in a tick; the rest waits for the next.
    pub resumed_per_tick_max: u32,
    /// Logins of which the hook is asked and has not said anything; further ones are closed as full.
    #[serde(alias = "questions_max")]
    pub pending_logins_max: u32,
    /// Sessions without a login from one address; further ones are closed.
    #[serde(alias = "newcomers_per_address_max")]
    pub unauthenticated_per_address_max: u32,
    /// How long a client may take before it makes room for others where there is none, in seconds.
    pub login_grace_s: f32,
    /// How long a client may take to say who it is, in seconds.
    #[serde(alias = "login_s_max")]
    pub login_timeout_s: f32,
    /// How long the hook may take to say whether that is true, in seconds.
    #[serde(alias = "authentication_s_max")]
    pub authentication_timeout_s: f32,
    /// How long a client may take to be ready for a scene, in seconds.
    #[serde(alias = "loading_s_max")]
    pub loading_timeout_s: f32,
    /// How long an object stays whose player's connection is lost, in seconds; 0 ends the session with the connection.
    #[serde(alias = "keep_s")]
    pub reconnect_grace_s: f32,
    /// How long a client in the world may send nothing, in seconds; 0 is for ever.
    #[serde(alias = "idle_s_max")]
    pub idle_timeout_s: f32,
    /// How often those in the line are told of a new place, in seconds.
    #[serde(alias = "place_every_s")]
    pub queue_position_interval_s: f32,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            sessions_max: 20_000,
            players_max: 20_000,
            queue_max: 10_000,
            reserved_slots: [0; AdmissionClass::COUNT],
            sessions_opened_per_tick_max: 10_000,
            admitted_per_tick_max: 500,
            resumed_per_tick_max: 1_000,
            pending_logins_max: 10_000,
            unauthenticated_per_address_max: 256,
            login_grace_s: 1.0,
            login_timeout_s: 10.0,
            authentication_timeout_s: 10.0,
            loading_timeout_s: 60.0,
            reconnect_grace_s: 30.0,
            idle_timeout_s: 0.0,
            queue_position_interval_s: 1.0,
        }
    }
}

impl SessionSettings {
    /// The same in ticks; a time that is not 0 is one tick at least.
    pub(super) fn tick_settings(&self, tick_s: f64) -> SessionTickSettings {
        let ticks = |seconds: f32| {
            let ticks = (f64::from(seconds) / tick_s).round() as u64;
            ticks.max(u64::from(seconds > 0.0))
        };
        SessionTickSettings {
            sessions_max: self.sessions_max as usize,
            players_max: self.players_max,
            queue_max: self.queue_max as usize,
            unauthenticated_per_address_max: self.unauthenticated_per_address_max,
            admitted_per_tick_max: self.admitted_per_tick_max,
            resumed_per_tick_max: self.resumed_per_tick_max,
            reserved_slots: self.reserved_slots,
            login_grace_ticks: ticks(self.login_grace_s),
            login_timeout_ticks: ticks(self.login_timeout_s),
            authentication_ticks: ticks(self.authentication_timeout_s),
            loading_ticks: ticks(self.loading_timeout_s),
            reconnect_grace_ticks: ticks(self.reconnect_grace_s),
            idle_ticks: ticks(self.idle_timeout_s),
            queue_position_ticks: ticks(self.queue_position_interval_s).max(1),
        }
    }
}

/// Logins, logouts and refusals since the app began.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionStats {
    /// Players that logged in.
    pub logins: u64,
    /// Players whose session ended.
    pub logouts: u64,
    /// Connections and logins turned away: there was no room, the hook refused, the address is banned, or the session has a
    /// player already.
    pub refused: u64,
    /// Sessions that ended because a deadline was over.
    pub timed_out: u64,
    /// Players whose connection was lost.
    pub connections_lost: u64,
    /// Sessions that went on over another connection.
    pub resumed: u64,
    /// The most sessions that were open at once.
    pub peak: usize,
    /// Why sessions ended, and connections were turned away.
    pub ends: SessionEndCounts,
    /// Places in the line that clients were told, new ones of the same client included.
    pub queue_notices: u64,
    /// The most that stood in the line after a tick.
    pub queue_peak: usize,
    /// The most players that were let in within a tick, those not counted that had a place already.
    pub admitted_per_tick_peak: usize,
    /// Messages that did not decode, came at a time at which they mean nothing, or were about what is none of the sender's
    /// business.
    pub bad_messages: u64,
    /// Inputs that were no newer than one handled before, and were refused: they came late, or twice.
    pub late_inputs: u64,
}

/// Sessions that ended, those that never had a player included, by their [`LogoutReason`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct SessionEndCounts {
    /// The client said so.
    pub requested: u64,
    /// The connection ended, and nobody came back in time.
    pub disconnected: u64,
    /// The same player logged in elsewhere.
    pub replaced: u64,
    /// Too little was taken of what was sent.
    pub slow_consumer: u64,
    /// The game threw the client out.
    pub kicked: u64,
    /// Its address is banned.
    pub banned: u64,
    /// It did nothing for too long.
    pub idle: u64,
    /// It sent far more than it may.
    pub flooding: u64,
    /// It could not say who it is.
    pub authentication_failed: u64,
    /// It took too long to log in or to load.
    pub timed_out: u64,
    /// There was no room.
    pub full: u64,
    /// The server stops.
    pub server_stopping: u64,
    /// The session went on over another connection.
    pub resumed: u64,
    /// What is kept of the player could not be had.
    pub unavailable: u64,
}

impl SessionEndCounts {
    /// Counts an end.
    pub(super) const fn count(&mut self, reason: LogoutReason) {
        let ends = match reason {
            LogoutReason::Requested => &mut self.requested,
            LogoutReason::Disconnected => &mut self.disconnected,
            LogoutReason::Replaced => &mut self.replaced,
            LogoutReason::SlowConsumer => &mut self.slow_consumer,
            LogoutReason::Kicked => &mut self.kicked,
            LogoutReason::Banned => &mut self.banned,
            LogoutReason::Idle => &mut self.idle,
            LogoutReason::Flooding => &mut self.flooding,
            LogoutReason::Refused => &mut self.authentication_failed,
            LogoutReason::TimedOut => &mut self.timed_out,
            LogoutReason::Full => &mut self.full,
            LogoutReason::Stopping => &mut self.server_stopping,
            LogoutReason::Resumed => &mut self.resumed,
            LogoutReason::PlayerUnavailable => &mut self.unavailable,
        };
        *ends += 1;
    }
}
