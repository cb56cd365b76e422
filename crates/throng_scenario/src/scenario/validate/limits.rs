//! Limits of a scenario, so that no file causes a giant allocation or an endless run.

/// Ticks per second.
pub const TICK_HZ_MAX: f64 = 1000.0;
/// Ticks from one heartbeat to the next.
pub const HEARTBEAT_TICKS_MAX: u32 = 10_000;
/// The longest run, and the latest time of a cue: seven days in seconds.
pub const DURATION_S_MAX: f64 = 7.0 * 24.0 * 3600.0;
/// Kinds of objects that a scenario adds.
pub const KINDS_MAX: usize = 1024;
/// Scenes of a scenario: open from the start, for matches, and opened by the script.
pub const SCENES_MAX: usize = 1024;
/// Cells of the interest grids of all scenes that are open at the same time.
pub const GRID_CELLS_MAX: u64 = 1 << 22;
/// Crowds of a scenario.
pub const CROWDS_MAX: usize = 4096;
/// Objects of a crowd, of all crowds, and of a scene.
pub const OBJECTS_MAX: u32 = 1 << 20;
/// Queues of a scenario; also the maximum number of modes in its settings, for which only embedders queue parties.
pub const QUEUES_MAX: usize = 64;
/// Cues of the script.
pub const CUES_MAX: usize = 100_000;
/// Expectations of a scenario.
pub const EXPECTATIONS_MAX: usize = 1024;
/// Points of a patrol.
pub const POINTS_MAX: usize = 1024;
/// Characters of a name, a tag or a mode.
pub const NAME_CHARS_MAX: usize = 100;
/// Maximum number of bytes pending for one client.
pub const SPILL_BYTES_MAX: usize = 64 << 20;
/// Bytes of an announcement.
pub const TEXT_BYTES_MAX: usize = 10_000;
/// The largest coordinate or length, metres.
pub const METRES_MAX: f32 = 1e6;
/// The smallest and the largest side of a tile, metres.
pub const TILE_M: (f32, f32) = (0.01, 100.0);
/// The smallest and the largest side of a grid cell, metres.
pub const CELL_M: (f32, f32) = (1.0, 10_000.0);
/// The maximum walking speed, metres per second.
pub const SPEED_M_S_MAX: f32 = 1000.0;
/// Messages or attribute changes of one object per second.
pub const OBJECT_RATE_MAX: f32 = 1000.0;
/// Logins, parties or cancellations per second, in total.
pub const CROWD_RATE_MAX: f32 = 1e6;
/// Players in a party.
pub const PARTY_SIZE_MAX: u8 = 5;
/// The minimum interval of a repeated cue, seconds.
pub const PERIOD_S_MIN: f64 = 0.001;
/// Mean and deviation of skill and power.
pub const RATING_MAX: u32 = 1_000_000;
/// Conditions of a cue's selection.
pub const ONLY_MAX: usize = 16;
/// The largest factor by which an attribute is multiplied.
pub const FACTOR_MAX: f64 = 1e6;
/// Files of a scenario, and the depth of includes.
pub const INCLUDES_MAX: usize = 16;
