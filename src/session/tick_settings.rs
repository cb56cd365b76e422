//! The limits of sessions, in ticks.

use super::authentication::AdmissionClass;

/// The limits of sessions, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionTickSettings {
    pub sessions_max: usize,
    pub players_max: u32,
    pub queue_max: usize,
    pub unauthenticated_per_address_max: u32,
    pub admitted_per_tick_max: u32,
    pub resumed_per_tick_max: u32,
    pub reserved_slots: [u32; AdmissionClass::COUNT],
    /// Ticks without a login after which a session may be closed to make room for another.
    pub login_grace_ticks: u64,
    pub login_timeout_ticks: u64,
    pub authentication_ticks: u64,
    pub loading_ticks: u64,
    pub reconnect_grace_ticks: u64,
    /// 0 for no limit.
    pub idle_ticks: u64,
    /// Ticks between two updates of queue positions.
    pub queue_position_ticks: u64,
}
