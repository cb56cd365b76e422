//! The limits of the session model and its rules.

use crate::session::tick_settings::SessionTickSettings;

pub(super) const RULES: SessionTickSettings = SessionTickSettings {
    sessions_max: 7,
    players_max: 3,
    queue_max: 2,
    unauthenticated_per_address_max: 1_000,
    admitted_per_tick_max: 2,
    resumed_per_tick_max: 1,
    reserved_slots: [0, 0, 0, 1],
    login_grace_ticks: 2,
    login_timeout_ticks: 5,
    authentication_ticks: 4,
    loading_ticks: 6,
    reconnect_grace_ticks: 7,
    idle_ticks: 6,
    queue_position_ticks: 4,
};

/// Each of these rules must be used in the test.
pub(super) const REACHED: [&str; 18] = [
    "oldest makes room",
    "link-dead session is taken over",
    "player inside is replaced",
    "queued player keeps its class",
    "queued player returns to its place",
    "place in the queue expires",
    "queue is full",
    "admission waits",
    "former token counts",
    "return waits",
    "waiting client returns",
    "client waits in vain",
    "login times out",
    "authentication times out",
    "loading times out",
    "return times out",
    "player is idle since it entered",
    "player is idle since its last message",
];
