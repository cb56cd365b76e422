//! Instances: what becomes of a match. A scene of its own opens, its players go there, play, and come home.
//!
//! ```text
//! MatchFormed ──▶ InstanceHost::open ──▶ InstanceOpened ──▶ players found by PlayerId, moved ──▶ PlayerEntered
//! object gone ──▶ PlayerLeft, the seat is held ──▶ back in time: moved in again ──▶ PlayerEntered
//!                                             └──▶ else BackfillRequest ──▶ MatchFilled ──▶ PartyJoined
//! time over, EndRequest, empty ──▶ players moved home ──▶ PlayerReturned ──▶ scene closed ──▶ InstanceEnded
//! ```
//! | file | holds |
//! |---|---|
//! | `rules` | how long a match is played and a seat is held, and how often others are asked to join |
//! | `lineup` | who plays on which side, and what a side lacks when somebody leaves |
//! | `plugin` | the systems; in its folder the messages, the host, and what is running |
//!
//! An embedder says with [`InstanceModes::host`] which modes are played in instances, and supplies an
//! [`InstanceHost`], which opens the scenes; a [`SceneSpec`](crate::world::SceneSpec) is one. What players do there is
//! the game's: it reads [`PlayerEntered`] and [`PlayerReturned`].
//!
//! Invariants: a player has a seat in one instance at most; who is moved is the object that stood at home, with its
//! session and all that is on it; entered = returned + lost + inside.
//!
//! Deliberately absent: bodies for synthetic players, which are in the lineup and have no seat; teams and behaviour.
//!
//! Cost: O(players) where an instance opens or ends, and a look at each seat every tick; nothing where no mode is
//! hosted.

mod lineup;
mod plugin;
mod rules;

pub use lineup::{Lineup, Vacancy};
pub use plugin::{
    DepartureReason, EndReason, EndRequest, Instance, InstanceEnded, InstanceError, InstanceFault,
    InstanceHost, InstanceId, InstanceModes, InstanceOpened, InstancePlugin, InstanceRefused,
    InstanceSettings, InstanceStats, InstanceSystems, Instances, LeaveRequest, Leaver, MemberLeft,
    PartyJoined, PlayerEntered, PlayerHome, PlayerLeft, PlayerReturned, PlayerSeatedElsewhere,
    end_instance, leave_instance,
};
pub use rules::InstanceRules;
