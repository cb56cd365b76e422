//! The limits of sessions, in ticks.

use super::authentication::AdmissionClass;

/// The limits of sessions, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionRules {
    pub sessions_max: usize,
    pub players_max: u32,
    pub queue_max: usize,
    pub newcomers_per_address_max: u32,
    pub admitted_per_tick_max: u32,
    pub resumed_per_tick_max: u32,
    pub kept: [u32; AdmissionClass::COUNT],
    /// Ticks without a login after which a session makes room for another.
    pub grace_ticks: u64,
    pub login_ticks: u64,
    pub authentication_ticks: u64,
    pub loading_ticks: u64,
    pub keep_ticks: u64,
    /// 0 for no limit.
    pub idle_ticks: u64,
    /// Ticks between two looks at who moved up in the line.
    pub place_ticks: u64,
}
