//! Events of groups for the tick.

use thiserror::Error;
use throng_core::ids::PlayerId;

use crate::request::{GroupChange, GroupId, GroupKind, GroupMember, RefusedGroup};

/// Why the group of a player was not changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum GroupNotChanged {
    /// The node has not started, or its run has ended. The change may have been made: the groups are read again.
    #[error("the node has not started, or its run has ended")]
    NotRunning,
    /// Too many changes wait. Try again later.
    #[error("{0} changes of groups wait already")]
    Busy(usize),
    /// The player is not on this node, and in no group with a member on this node.
    #[error("the groups of the player are not known on this node")]
    UnknownPlayer,
    /// The store refused it.
    #[error("refused: {0:?}")]
    Refused(RefusedGroup),
}

/// What the tick has to know about groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A player of this node is in another group now, or has left this node. Then the group is `None`.
    Player {
        /// The player.
        player: PlayerId,
        /// The kind of the group.
        kind: GroupKind,
        /// Its group.
        group: Option<GroupId>,
    },
    /// The members of a group have changed. Without members, it has no member on this node any more.
    Members(GroupId, Vec<GroupMember>),
    /// The outcome of a change.
    Finished {
        /// The player.
        player: PlayerId,
        /// The change.
        change: GroupChange,
        /// The group of the player after it, or why it was not done.
        result: Result<Option<GroupId>, GroupNotChanged>,
    },
}
