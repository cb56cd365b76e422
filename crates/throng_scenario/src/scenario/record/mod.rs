//! The record of a run, tick by tick, in bounded memory: the data of pages and of the tick table.
//!
//! ```text
//! after each tick:  counters ──▶ `TickSample`   ──┬─▶ a line of CSV
//!                                                 ├─▶ buckets of time, merged two by two when they are full
//!                                                 ├─▶ the times of all ticks, by size
//! └─▶ the slowest ticks, with all their figures positions ──▶ heat maps, and the tracks of some objects
//! ```
//! | file | holds |
//! |---|---|
//! | `buckets.rs` | a series of any length in a fixed number of buckets |
//! | `scenes.rs` | the heat map of a scene, and the tracks of some objects |
//! | `recorder.rs` | the recorder of a run |
//! | `sample.rs` | the figures of a tick |
//! | `times.rs` | the histogram of times, with quantiles |
//!
//! Invariants: it reads the world between ticks and writes nothing into it, so that no hash depends on it; a run without a record
//! has no recorder, and costs one comparison per tick; memory does not grow with the ticks or the objects.
//!
//! Cost: a few hundred nanoseconds per tick, and a read of each object's position every half second of simulated time; it runs
//! between ticks and is in no tick's time.

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
