//! What a run was like, tick by tick, kept within bounds: what a page draws and a table of ticks holds.
//!
//! ```text
//! after each tick:  counters ──▶ `TickSample`   ──┬─▶ a line of CSV
//!                                                 ├─▶ buckets of time, merged two by two when they are full
//!                                                 ├─▶ the times of all ticks, by size
//!                                                 └─▶ the slowest ticks, with all that happened in them
//!                   positions ──▶ where the crowd stood, and the tracks of some
//! ```
//! | file | holds |
//! |---|---|
//! | `buckets.rs` | a series of any length in a fixed number of buckets |
//! | `scenes.rs` | where the crowd of a scene stood, and the tracks of some of it |
//! | `recorder.rs` | all of it together, beside a run |
//! | `sample.rs` | the figures of a tick |
//! | `times.rs` | times by size, from which quantiles are told |
//!
//! Invariants: it reads the world between ticks and writes nothing into it, so that no hash depends on it; a run that is not
//! recorded has no recorder, and pays one comparison a tick; what is kept does not grow with the ticks or the objects.
//!
//! Cost: a few hundred nanoseconds a tick, and every half second of simulated time a look at each object's position; between
//! ticks, in no tick's time.

mod buckets;
mod recorder;
mod sample;
mod scenes;
mod times;

pub use recorder::{CueRecord, RunRecord, SlowestTick};
pub(super) use recorder::{CueText, Recorder};
pub use sample::{ColumnKind, SAMPLE_COLUMNS, SampleColumn};
pub use scenes::SceneRecord;
pub use times::TimeBin;
