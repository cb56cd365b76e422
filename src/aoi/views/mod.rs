//! The views of a scene, and the update that keeps them exact.
//!
//! | file | holds |
//! |---|---|
//! | `scene_views` | the views of a scene: objects come, go and change |
//! | `query` | what can be asked of them, and what of them is state |
//! | `events` | what an update tells and counts |
//! | `exceptions` | what is shown to a viewer, or hidden from it, whatever the rules say |
//! | `object` | what is stored of each object, and how a pair is ranked |
//! | `bits`, `slot_word` | places as bits, and what is known of 64 slots |
//! | `cells`, `rows` | slots and rows: who is in a cell to be seen, and to see, and whom |
//! | `ties` | what ties those in a cell to others, in columns |
//! | `shared` | what all cells read while they are worked side by side |
//! | `part` | links that end at once, outside an update |
//! | `update` | the View step, from what changed to links |
//! | `pass`, `departures` | the pass over one cell: who leaves |
//! | `meet` | those who go before strangers are let in |
//! | `tied` | of them those with a tie, where a class has more of them than places |
//! | `victims` | who has to leave a full list for them |
//! | `fill` | strangers take the places that are free |
//! | `rerank`, `band_words` | bands of distance follow those who walk |
//! | `slot_positions` | where those in slots are, so that many are compared at once |
//! | `far`, `far_index` | who is seen from afar, outside caps |
//! | `mutual`, `proposal` | pairs that both ends must accept |
//! | `rerank_pairs` | bands of distance where sight is mutual |
//! | `room` | cells are made, grow, and give back what nobody needs |
//! | `refill_queue` | who waits for a look |
//! | `check` | the brute-force check of all that is promised |
//! | `model` | the same as a model over random scripts, for tests |

mod band_words;
mod bits;
mod cells;
mod check;
mod departures;
mod events;
mod exceptions;
mod far;
mod far_index;
mod fill;
mod meet;
#[cfg(test)]
mod model;
mod mutual;
mod object;
mod part;
mod pass;
mod proposal;
mod query;
mod refill_queue;
mod rerank;
mod rerank_pairs;
mod room;
mod rows;
mod scene_views;
mod shared;
mod slot_positions;
mod slot_word;
mod tied;
mod ties;
mod update;
mod victims;

pub use check::ViewFault;
pub use events::{LeaveReason, ViewCounters, ViewEvent};
pub use exceptions::ViewException;
pub use object::{IDS_MAX, LISTS, Sight, UNCAPPED};
pub use scene_views::{InsertError, Profile, RERANK_TICKS, Removal, SceneViews, ViewCaps};
