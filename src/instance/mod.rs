//! Instances: each match gets its own scene. Players are moved there, play, and return to where they were.
//!
//! Add a mode with [`MatchModeAppExt::add_match_mode`], or register a host for a mode of the settings with [`InstanceModes::host`]. An [`InstanceHost`] opens the scene of a match; a
//! [`SceneSpec`](crate::world::SceneSpec) is the simplest one. Your game reads [`InstancePlayerEntered`] and
//! [`InstancePlayerReturned`] and implements what happens inside.
//!
//! ```text
//! MatchFormed ──▶ InstanceHost::open ──▶ InstanceOpened ──▶ players found by PlayerId and moved ──▶ InstancePlayerEntered
//! object gone ──▶ InstancePlayerLeft, the seat is reserved ──▶ player back in time: moved in again ──▶ InstancePlayerEntered
//!                                              └──▶ otherwise BackfillRequest ──▶ BackfillResult ──▶ InstancePartyJoined
//! time over, EndInstanceRequest or empty ──▶ players moved back ──▶ InstancePlayerReturned ──▶ scene closed ──▶ InstanceEnded
//! ```
//!
//! Invariants:
//! - A player has a seat in at most one instance.
//! - The object itself is moved, with its session and all its components.
//! - entered = returned + lost + inside.
//!
//! Not provided: objects for synthetic players, which are in the lineup without a seat; teams and behaviour.
//!
//! Cost: O(players) when an instance opens or ends, and a check of each seat per tick. Nothing if no mode has a host.

// | file | contents |
// | `rules` | duration of a match, time that a seat is reserved, and how often backfill is requested |
// | `lineup` | the players of each side, and what a side lacks after a player left |
// | `plugin` | the systems; in its folder the messages, the host and the running instances |

mod lineup;
mod plugin;
mod rules;

pub use lineup::{Lineup, Vacancy};
pub use plugin::{
    DepartureReason, EndInstanceRequest, EndReason, Instance, InstanceEnded, InstanceError,
    InstanceHost, InstanceId, InstanceModes, InstanceMoveFailed, InstanceOpened,
    InstancePartyJoined, InstancePlayerEntered, InstancePlayerLeft, InstancePlayerReturned,
    InstancePlugin, InstanceRefused, InstanceSettings, InstanceStats, InstanceSystems, Instances,
    LeaveInstanceRequest, Leaver, MatchModeAppExt, MemberLeft, PlayerAlreadyInInstance, PlayerHome,
    end_instance, leave_instance,
};
pub use rules::InstanceRules;
