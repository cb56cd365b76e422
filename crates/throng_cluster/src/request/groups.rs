//! Requests about groups of players, and the replies: parties and guilds, whose members are on any node.
//!
//! Each request may be repeated when its outcome is unknown. The reply to the repetition is the same, or the reason why it was refused.

use throng_core::ids::{GuildId, PartyId, PlayerId};

use crate::ids::NodeRun;

/// A kind of groups. A player is in at most one group of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// Players that play together. See [`PartyId`].
    Party,
    /// A permanent group of players. See [`GuildId`].
    Guild,
}

impl GroupKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Party, Self::Guild];

    /// The maximum number of members of a group of this kind.
    #[must_use]
    pub const fn members_max(self) -> usize {
        match self {
            Self::Party => 5,
            Self::Guild => 500,
        }
    }
}

/// A group of players, unique in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId {
    /// Its kind.
    pub kind: GroupKind,
    /// Its number: that of the [`PartyId`] or [`GuildId`]. Neither 0 nor `u32::MAX`. Used again only after four billion groups.
    pub id: u32,
}

impl From<PartyId> for GroupId {
    fn from(party: PartyId) -> Self {
        let kind = GroupKind::Party;
        Self { kind, id: party.0 }
    }
}

impl From<GuildId> for GroupId {
    fn from(guild: GuildId) -> Self {
        let kind = GroupKind::Guild;
        Self { kind, id: guild.0 }
    }
}

/// The group of a player, of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerGroup {
    /// The player.
    pub player: PlayerId,
    /// The kind.
    pub kind: GroupKind,
    /// Its group; `None` if it is in none.
    pub group: Option<GroupId>,
    /// The revision of the row: that of its last change; 0 if the player never was in a group of this kind.
    pub revision: u64,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The player.
    pub player: PlayerId,
    /// The revision of [`PlayerGroup`].
    pub revision: u64,
    /// The run that owned the player at the time of the read, which may have ended; `None`: it was logged out.
    pub owner: Option<NodeRun>,
}

/// What the store knows about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// Its id.
    pub id: GroupId,
    /// The revision of its last change.
    pub revision: u64,
    /// Its members, in the order in which they joined. The first one is the leader.
    pub members: Vec<GroupMember>,
}

/// A change of the group of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// The player founds a group of this kind, and is its first member.
    Create(GroupKind),
    /// The player joins this group.
    Join(GroupId),
    /// The player leaves its group of this kind. A group without members disappears.
    Leave(GroupKind),
}

impl GroupChange {
    /// The kind of the group.
    #[must_use]
    pub const fn kind(self) -> GroupKind {
        match self {
            Self::Create(kind) | Self::Leave(kind) => kind,
            Self::Join(group) => group.kind,
        }
    }
}

/// A request about groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRequest {
    /// Changes the group of a player. Repeating it changes nothing: each change gives the player's row a new revision.
    Change {
        /// The run that sends the request.
        run: NodeRun,
        /// The player, which may be on any node.
        player: PlayerId,
        /// The change.
        change: GroupChange,
        /// The revision of [`PlayerGroup`] that the caller has read; 0 if there was no row.
        revision: u64,
    },
    /// Reads the groups of players. Players that never were in a group are left out.
    Read {
        /// The players, ascending, each once.
        players: Vec<PlayerId>,
    },
    /// Reads which players of the caller are in a group that has changed, or have left one.
    ReadChanged {
        /// The run that sends the request.
        run: NodeRun,
        /// The revision in the previous reply; `None` reads only the newest revision.
        after: Option<u64>,
        /// Maximum number of changes. With this many, the revision in the reply is `after` plus this number, and there may be more.
        changes_max: u64,
    },
}

/// Why a request about groups was refused. The store has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedGroup {
    /// The run of the caller was declared dead or is unknown, or its heartbeat is late. A late run may repeat the request after its next
    /// heartbeat.
    RunEnded,
    /// The group of the player has changed meanwhile.
    OtherRevision,
    /// The player is in a group of this kind already.
    InGroup,
    /// The group does not exist, or has lost its last member.
    NoGroup,
    /// The group has the maximum number of members.
    Full,
}

/// The reply to a [`GroupRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupReply {
    /// The group of the player after a change, and the other members of the group that it has joined or left, ascending. They are missing if the
    /// request was a repetition.
    Changed(PlayerGroup, Vec<PlayerId>),
    /// Nothing was changed.
    Refused(RefusedGroup),
    /// The groups of players, and these groups with all members.
    Groups {
        /// One per player and kind, in this order.
        players: Vec<PlayerGroup>,
        /// By ascending id, each once.
        groups: Vec<GroupEntry>,
    },
    /// Players of the caller whose groups have changed.
    ChangedPlayers {
        /// The players, ascending, each once.
        players: Vec<PlayerId>,
        /// All changes up to this revision are included.
        revision: u64,
    },
}
