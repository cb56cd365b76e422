//! Settings and counters of sessions.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::session::authentication::AdmissionClass;
use crate::session::reasons::LogoutReason;
use crate::session::tick_settings::SessionTickSettings;
use crate::wire::LoginRefusal;

/// Limits of sessions, and timeouts of their states. Times are rounded to whole ticks.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::session::SessionSettings;
///
/// // 2,000 players; the others queue. Who loses the connection has a minute to return.
/// app.insert_resource(SessionSettings { players_max: 2_000, reconnect_grace_s: 60.0, ..SessionSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionSettings {
    /// The maximum number of sessions, including those without a login. At the limit, a session that has not sent a login for
    /// [`login_grace_s`](Self::login_grace_s) is closed to make room; if there is none, the new one is closed.
    pub sessions_max: u32,
    /// The maximum number of admitted players; further ones wait in the login queue.
    pub players_max: u32,
    /// The maximum length of the login queue; further players are closed.
    pub queue_max: u32,
    /// The slots of `players_max` that are reserved for each [`AdmissionClass`], from `Standard` on.
    #[serde(alias = "places_kept")]
    pub reserved_slots: [u32; AdmissionClass::COUNT],
    /// Connections for which a tick opens sessions, in order; the rest waits for the next tick.
    #[serde(alias = "opened_per_tick_max")]
    pub sessions_opened_per_tick_max: u32,
    /// Players that are admitted per tick; the rest waits in the login queue and receives its position. An admission costs about 20
    /// µs of the tick: an object, views, and the first snapshot of what it sees.
    pub admitted_per_tick_max: u32,
    /// Sessions that are resumed per tick; the rest waits for the next.
    pub resumed_per_tick_max: u32,
    /// Logins whose authentication is pending; further ones are closed as full.
    #[serde(alias = "questions_max")]
    pub pending_logins_max: u32,
    /// Sessions without a login from one address; further ones are closed. Clients with a verified player, from a connect token, do not count.
    #[serde(alias = "newcomers_per_address_max")]
    pub unauthenticated_per_address_max: u32,
    /// How long a client may take to log in before it is closed when the server has no room, in seconds.
    pub login_grace_s: f32,
    /// How long a client may take to log in, in seconds.
    #[serde(alias = "login_s_max")]
    pub login_timeout_s: f32,
    /// How long the hook may take to reply, in seconds.
    #[serde(alias = "authentication_s_max")]
    pub authentication_timeout_s: f32,
    /// How long a client may take to become ready for a scene, in seconds: long enough to load it from a slow disk.
    #[serde(alias = "loading_s_max")]
    pub loading_timeout_s: f32,
    /// How long the object of a player stays after its connection was lost, in seconds; 0 ends the session with the connection. A player
    /// that waits in the login queue keeps its place for as long.
    #[serde(alias = "keep_s")]
    pub reconnect_grace_s: f32,
    /// How long a client in the world may send nothing, in seconds; 0 for no limit.
    #[serde(alias = "idle_s_max")]
    pub idle_timeout_s: f32,
    /// Interval at which queued clients receive a changed position, in seconds.
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
    /// Converts the settings to ticks; a time that is not 0 is at least one tick.
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

/// Logins, logouts and refusals since the app started.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionStats {
    /// Players that logged in.
    pub logins: u64,
    /// Players whose session ended.
    pub logouts: u64,
    /// Refused connections and logins: no room, refused by the hook, banned address, or the session already has a player.
    pub refused: u64,
    /// Logins that the hook refused, by cause; they also count as refused.
    pub login_refusals: LoginRefusalCounts,
    /// Sessions that ended because of a timeout.
    pub timed_out: u64,
    /// Players whose connection was lost.
    pub connections_lost: u64,
    /// Sessions that were resumed over another connection.
    pub resumed: u64,
    /// The maximum number of open sessions.
    pub peak: usize,
    /// Ended sessions and refused connections, by reason.
    pub ends: SessionEndCounts,
    /// Queue positions that were sent to clients, updates included.
    pub queue_notices: u64,
    /// The maximum length of the login queue after a tick.
    pub queue_peak: usize,
    /// The maximum number of players admitted in one tick, without those that had a slot already.
    pub admitted_per_tick_peak: usize,
    /// Messages that did not decode, were not valid in the state of the session, or named an object that the sender may not name.
    pub bad_messages: u64,
    /// Inputs that were refused because they were not newer than one handled before: late or duplicate.
    pub late_inputs: u64,
}

/// Refused logins by cause: [`LoginRefusal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct LoginRefusalCounts {
    /// The game's login rule did not accept the player.
    pub by_game: u64,
    /// The transport had verified no player.
    pub unverified: u64,
    /// The login named another player than the token.
    pub wrong_player: u64,
}

impl LoginRefusalCounts {
    /// Counts a refusal.
    pub(super) const fn count(&mut self, refusal: LoginRefusal) {
        let count = match refusal {
            LoginRefusal::Unverified => &mut self.unverified,
            LoginRefusal::WrongPlayer { .. } => &mut self.wrong_player,
            _ => &mut self.by_game,
        };
        *count += 1;
    }
}

/// Ended sessions, including those without a player, by their [`LogoutReason`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect))]
pub struct SessionEndCounts {
    /// The client logged out.
    pub requested: u64,
    /// The connection was lost, and the session was not resumed in time.
    pub disconnected: u64,
    /// The same player logged in elsewhere.
    pub replaced: u64,
    /// The client reads too slowly.
    pub slow_consumer: u64,
    /// The game kicked the client.
    pub kicked: u64,
    /// Its address is banned.
    pub banned: u64,
    /// It was idle for too long.
    pub idle: u64,
    /// It exceeded its message quota.
    pub flooding: u64,
    /// Its authentication failed.
    pub authentication_failed: u64,
    /// It took too long to log in or to load.
    pub timed_out: u64,
    /// There was no room.
    pub full: u64,
    /// The server is stopping.
    pub server_stopping: u64,
    /// The session was resumed over another connection.
    pub resumed: u64,
    /// The stored player could not be loaded.
    pub unavailable: u64,
    /// Another server had taken the player over.
    pub taken: u64,
    /// The player was handed to another node of a cluster.
    pub moved: u64,
}

impl SessionEndCounts {
    /// Number of ends for a reason.
    #[must_use]
    pub fn of(&self, reason: LogoutReason) -> u64 {
        let mut counts = *self;
        *counts.count_mut(reason)
    }

    /// Counts an end.
    pub(super) const fn count(&mut self, reason: LogoutReason) {
        *self.count_mut(reason) += 1;
    }

    const fn count_mut(&mut self, reason: LogoutReason) -> &mut u64 {
        match reason {
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
            LogoutReason::PlayerTaken => &mut self.taken,
            LogoutReason::Moved => &mut self.moved,
        }
    }
}
