//! What the searches that throng uses were improved on, kept to be measured beside: exact, and on no path by default.
//!
//! | file | holds |
//! |---|---|
//! | `tiles` | walks by looking at one tile after the other: Jump Point Search as it was first described |
//! | `table` | JPS+: for every tile and direction how far the walk goes |

mod table;
mod tiles;

pub(super) use table::StepTable;
pub(super) use tiles::TileScanner;
