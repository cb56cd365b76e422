//! Where walks over a map end: what Jump Point Search asks of a map, and who answers.
//!
//! | file | holds |
//! |---|---|
//! | `walk` | the question: how far a walk goes, straight or diagonally, and whether it may turn there |
//! | `successors` | a node's successors, from the answers |
//! | `tiles` | answers by looking at one tile after the other |
//! | `bits` | answers by looking at 64 tiles at once |
//!
//! Sign planes and step tables answer too, in `prepared`.

mod bits;
mod successors;
mod tiles;
mod walk;

pub(super) use bits::{TileBits, diagonal_turns_in_word, turns_in_word, upright_turns_in_word};
pub(super) use successors::for_each_successor;
pub(super) use tiles::Tiles;
pub(super) use walk::{Reach, Stop, Walks};
