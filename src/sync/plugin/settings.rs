//! Settings of replication.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::sim::Overload;
use crate::sync::resume_buffer::ResumeBufferLimits;
use crate::sync::send_budget::SendBudget;

/// The accuracy of motion, the bandwidth per client, and the save interval.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::sync::SyncSettings;
///
/// // Clients have a fast connection.
/// app.insert_resource(SyncSettings { bytes_per_client_s: 16_000, ..SyncSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SyncSettings {
    /// The largest position error of clients, in metres, plus the 1.6 cm of the encoding. The default, 5 cm, is about three steps of the
    /// encoding: a smaller one sends more motions, and most of the difference is lost in the encoding.
    pub motion_tolerance_m: f32,
    /// Up to this distance in metres a client receives an object's motion in every tick; beyond it every second, from
    /// twice as far every fourth, and from four times as far every eighth. A larger distance costs bandwidth in crowds; with a smaller one,
    /// near objects visibly turn late.
    #[serde(alias = "near_m")]
    pub full_rate_distance_m: f32,
    /// The maximum number of objects that a client starts to see per tick, and as many again that it receives unseen; at least 1.
    /// With the default, 200 objects around a new player arrive in 13 ticks; without a limit all of them would be in one burst.
    #[serde(alias = "enters_per_tick")]
    pub enters_per_tick_max: u32,
    /// The maximum number of objects that a client keeps out of its view, by [`Viewable::keep`](crate::aoi::Viewable::keep). Beyond it those
    /// that are out of view for the longest time are despawned at the client, and counted. Each costs as much time per tick as an object in
    /// view, and 12 bytes.
    pub kept_objects_max: u32,
    /// The maximum number of announced bytes per tick, for all clients together, at most 256 MiB; further announcements are dropped
    /// and counted.
    pub announce_bytes_per_tick: u32,
    /// The maximum number of message bytes per client and second: by default 400 bytes in each of 20 ticks, so that an update and its
    /// headers fit into one packet; messages that keep the client correct may overdraw it. Also the
    /// maximum credit. With less, objects in a crowd enter the view of a client later and move less smoothly.
    pub bytes_per_client_s: u32,
    /// Bytes of reliable messages that are stored per client, in case its connection is lost. If announcements to a disconnected
    /// client exceed it, its session ends as a slow consumer; if other messages do, the client resumes with fresh snapshots. Recent
    /// messages to connected clients are stored for all of them together, with this limit times their number; beyond it the oldest
    /// are dropped early.
    #[serde(alias = "kept_bytes_max")]
    pub resume_buffer_bytes_max: u32,
    /// For how long reliable messages to a connected client are stored, in seconds: within that time they have arrived, or its transport
    /// reports that the connection is lost. Set it to more than twice the timeout of a connect token; otherwise a client whose connection
    /// is lost after a long silence cannot resume its session without a fresh snapshot.
    pub in_flight_s_max: f32,
    /// After how many ticks the changes of an object are saved; 0 counts as 1. A crash loses at most the changes of that time: by default
    /// 10 s at 20 Hz.
    pub save_every_ticks: u32,
    /// The maximum number of despawned objects that the store could not save and that are kept for another try.
    #[serde(alias = "orphans_max")]
    pub deferred_saves_max: u32,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            motion_tolerance_m: 0.05,
            full_rate_distance_m: 20.0,
            enters_per_tick_max: 16,
            kept_objects_max: 256,
            announce_bytes_per_tick: 16 << 20,
            bytes_per_client_s: 8_000,
            resume_buffer_bytes_max: 16_384,
            in_flight_s_max: 25.0,
            save_every_ticks: 200,
            deferred_saves_max: 100_000,
        }
    }
}

impl SyncSettings {
    pub(super) fn resume_limits(&self, tick_s: f32) -> ResumeBufferLimits {
        ResumeBufferLimits {
            bytes_max: self.resume_buffer_bytes_max as usize,
            ticks: (self.in_flight_s_max / tick_s).ceil() as u64,
        }
    }

    pub(super) fn send_budget(&self, tick_s: f32, overload: &Overload) -> SendBudget {
        SendBudget {
            bytes_per_tick: (self.bytes_per_client_s as f32 * tick_s) as u32,
            bytes_max: self.bytes_per_client_s,
            enters_per_tick_max: overload.deferrable_budget_u32(self.enters_per_tick_max.max(1)),
            full_rate_distance_m: self.full_rate_distance_m,
            update_doublings: overload.update_doublings(),
        }
    }
}
