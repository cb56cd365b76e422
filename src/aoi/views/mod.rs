//! The views of a scene, and the update that keeps them exact.
//!
//! | file | holds |
//! |---|---|
//! | `scene_views` | the views of a scene: objects come, go and change |
//! | `query` | what can be asked of them, and what of them is state |
//! | `events` | what an update tells and counts |
//! | `exceptions` | what is shown to a viewer, or hidden from it, whatever the rules say |
//! | `object` | what is stored of each object, and how a pair is ranked |
//! | `shard` | a share of the viewers, with all that only they change |
//! | `scratch` | what an update works with |
//! | `update` | the View step, from what changed to links |
//! | `enter` | those who can see each other from now on find each other |
//! | `mutual` | pairs that both ends must accept |
//! | `rerank` | bands of distance follow those who walk |
//! | `refill`, `refill_queue` | viewers with something to gain look around, the first in the queue first |
//! | `check` | the brute-force check of all that is promised |
//! | `model` | the same as a model over random scripts, for tests |

mod check;
mod enter;
mod events;
mod exceptions;
#[cfg(test)]
mod model;
mod mutual;
mod object;
mod query;
mod refill;
mod refill_queue;
mod rerank;
mod scene_views;
mod scratch;
mod shard;
mod update;

pub use check::ViewFault;
pub use events::{LeaveReason, ViewCounters, ViewEvent};
pub use exceptions::ViewException;
pub use object::Sight;
pub use scene_views::{InsertError, Profile, RERANK_TICKS, Removal, SceneViews, ViewCaps};
