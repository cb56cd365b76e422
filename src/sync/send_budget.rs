//! The byte budget of a client.

/// How much a client may be told: its byte budget, and what the tiers of motions are measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendBudget {
    /// Bytes a client and tick.
    pub bytes_per_tick: u32,
    /// The most bytes that a client can save up.
    pub bytes_max: u32,
    /// Objects that become known to a client in a tick, at most.
    pub enters_per_tick_max: u32,
    /// Up to where an object is told of every tick, in metres.
    pub full_rate_distance_m: f32,
    /// How often the time between two motions of an object doubles beyond what its distance says; never for its own.
    pub update_doublings: u8,
}
