//! Where walks over a map end: what Jump Point Search asks of a map, and who answers.
//!
//! | file | holds |
//! |---|---|
//! | `walk` | the question: how far a walk goes, straight or diagonally, and whether it may turn there |
//! | `successors` | a node's successors, from the answers |
//! | `bits` | answers by looking at 64 tiles at once |
//!
//! Sign planes answer too, in `prepared`, and in `reference` single tiles and tables of steps.

mod bits;
mod successors;
mod walk;

pub(super) use bits::{BitScanner, diagonal_turns_in_word, turns_in_word, upright_turns_in_word};
pub(super) use successors::for_each_successor;
pub(super) use walk::{JumpScanner, Reach, Stop};
