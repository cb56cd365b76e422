//! What is kept of a scene between updates, and what an update reads of it.
//!
//! | file | holds |
//! |---|---|
//! | `object` | what is stored of each object, and how a pair is ranked |
//! | `exceptions` | what is shown to a viewer, or hidden from it, whatever the rules say |
//! | `cells`, `rows` | slots and rows: who is in a cell to be seen, and to see, and whom |
//! | `bits`, `slot_word` | places as bits, and what is known of 64 slots |
//! | `ties` | what ties those in a cell to others, in columns |
//! | `slot_positions` | where those in slots are, so that many are compared at once |
//! | `far_index` | who is seen from afar, by cell |
//! | `shared` | all of it that cells read while they are worked side by side |

pub mod bits;
pub mod cells;
pub mod exceptions;
pub mod far_index;
pub mod object;
pub mod relations;
pub mod rows;
pub mod scene_state;
pub mod slot_positions;
pub mod slot_word;
