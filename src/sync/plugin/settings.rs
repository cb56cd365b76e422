//! Settings of replication.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::sim::Overload;
use crate::sync::resume_buffer::ResumeBufferLimits;
use crate::sync::send_budget::SendBudget;

/// How closely clients follow what moves, how much each is told in a tick, and how often values are stored.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SyncSettings {
    /// How far from its place clients may believe an object to be, in metres, beside the 1.6 cm of the wire.
    pub motion_tolerance_m: f32,
    /// Up to this distance in metres a client is told of an object's motion in every tick; from there on every second, from
    /// twice as far every fourth, and from four times as far every eighth.
    #[serde(alias = "near_m")]
    pub full_rate_distance_m: f32,
    /// Objects that a client comes to see in a tick, at most, and as many again that it is told of unseen; at least 1.
    #[serde(alias = "enters_per_tick")]
    pub enters_per_tick_max: u32,
    /// Bytes of announcements encoded in a tick, for all clients together, at most 256 MiB; what is beyond is told nobody, and
    /// counted.
    pub announce_bytes_per_tick: u32,
    /// Bytes of messages a client and second, at most; what it must know to stay right may overdraw it. Also how much it can
    /// save up.
    pub bytes_per_client_s: u32,
    /// Bytes of reliable messages that are kept for a client, in case its connection is lost. If announcements to one that is away
    /// are more, its session ends as behind; if all else is, it comes back by fresh snapshots. What those who are there were told
    /// of late is kept for all of them together, so many bytes times their number; what is beyond goes before its time, oldest first.
    #[serde(alias = "kept_bytes_max")]
    pub resume_buffer_bytes_max: u32,
    /// For how long reliable messages to a connected client are kept, in seconds: within that they have arrived, or its transport
    /// reports that the connection is lost. More than twice the timeout of a connect token, or a client whose connection is lost
    /// after a long silence cannot resume its session without a fresh snapshot.
    pub in_flight_s_max: f32,
    /// After how many ticks what changed of an object is stored; 0 counts as 1.
    pub save_every_ticks: u32,
    /// Objects that are gone and that the store could not take, kept for another try, at most.
    #[serde(alias = "orphans_max")]
    pub deferred_saves_max: u32,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            motion_tolerance_m: 0.05,
            full_rate_distance_m: 20.0,
            enters_per_tick_max: 16,
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
