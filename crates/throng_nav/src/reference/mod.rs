//! Reference searches for benchmarks: exact, and never used by default.
//!
//! | file | holds |
//! |---|---|
//! | `tiles` | scans tile by tile: Jump Point Search as first published |
//! | `table` | JPS+: for every tile and direction the length of the scan |

mod table;
mod tiles;

pub(super) use table::StepTable;
pub(super) use tiles::TileScanner;
