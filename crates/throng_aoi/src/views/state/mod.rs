//! The stored state of a scene between updates, and what an update reads of it.
//!
//! | file | holds |
//! |---|---|
//! | `object` | the stored data of each object, and the ranking of a pair |
//! | `exceptions` | targets that are shown to or hidden from one viewer, whatever the rules say |
//! | `cells`, `rows` | slots and rows: the targets and viewers of a cell, and the links |
//! | `bits`, `slot_word` | bit indices, and the masks of 64 slots |
//! | `relations` | the relations of the targets of a cell, in columns |
//! | `slot_positions` | the positions of slots, so that many are compared at once |
//! | `far_index` | the far targets, by cell |
//! | `scene_state` | all of it that cells read while they run in parallel |

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
