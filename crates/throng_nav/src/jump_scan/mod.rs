//! Scans over a map for Jump Point Search, and the successors that follow from them.
//!
//! | file | holds |
//! |---|---|
//! | `walk` | the scanner trait: how far a straight or diagonal scan goes, and whether a path may turn there |
//! | `successors` | a node's successors, from the scans |
//! | `bits` | a scanner that reads 64 tiles at once |
//!
//! Other scanners: sign planes in `prepared`, and single tiles and step tables in `reference`.

mod bits;
mod successors;
mod walk;

pub(super) use bits::{BitScanner, diagonal_turns_in_word, turns_in_word, upright_turns_in_word};
pub(super) use successors::for_each_successor;
pub(super) use walk::{JumpScanner, Reach, Stop};
