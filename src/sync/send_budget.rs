//! The byte budget of a client.

/// The send limits of a client: its byte budget, and the parameters of motion tiers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendBudget {
    /// Bytes per client and tick.
    pub bytes_per_tick: u32,
    /// The maximum credit of a client in bytes.
    pub bytes_max: u32,
    /// The maximum number of objects that become known to a client in a tick.
    pub enters_per_tick_max: u32,
    /// The distance up to which an object's motion is sent every tick, in metres.
    pub full_rate_distance_m: f32,
    /// How often the time between two motions of an object doubles beyond its distance tier; never for the client's own object.
    pub update_doublings: u8,
}
