//! Requests about matches, and the replies: the role of the matcher, tickets, matches, and players that travel to a match or home.
//!
//! Each request may be repeated when its outcome is unknown. The reply to the repetition is the same, or the reason why it was refused.

use throng_core::ids::PlayerId;

use crate::ids::{ClusterNodeId, NodeRun};

/// The role of the node that forms matches.
pub const MATCHER_ROLE: &str = "matcher";

/// Time for which a role is held without a renewal, by the store's clock, in milliseconds. The role of a node with a late heartbeat is free
/// at once.
pub const ROLE_LEASE_MS: u64 = 3_000;

/// Time for which a match that is over can be read, by the store's clock, in milliseconds.
pub const MATCH_KEPT_MS: u64 = 3_600_000;

/// The id of a ticket. A run numbers its tickets from 1, and adds them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketId {
    /// The run that added it.
    pub run: NodeRun,
    /// Its number in this run.
    pub nth: u64,
}

/// The id of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatchId {
    /// The epoch of the matcher that formed it.
    pub epoch: u64,
    /// Its number in this epoch.
    pub nth: u64,
}

/// Where a player goes when a match is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketHome {
    /// The node, unless another one runs the scene then. If it is dead at that time, the player stays where it is.
    pub node: ClusterNodeId,
    /// The scene: the name of one of the cluster's, which the player follows to the node that runs it, or a name that only the game knows.
    pub scene: String,
}

/// A player of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketMember {
    /// The player.
    pub player: PlayerId,
    /// Where it goes after the match.
    pub home: TicketHome,
}

/// The values by which matches are made, as in [`Ticket`](throng_matchmaking::Ticket).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TicketRating {
    /// The sum of the members' power.
    pub power: u32,
    /// The skill of the party.
    pub skill: i32,
    /// The level of the party.
    pub level: u16,
    /// The strength of the leader, for rooms.
    pub leader_strength: u32,
    /// The regions where the party can play, one bit each; 0 means anywhere.
    pub regions: u32,
    /// The number of its players for each role.
    pub roles: [u8; throng_matchmaking::ROLE_COUNT],
    /// Players that the party avoids.
    pub avoid: Vec<PlayerId>,
}

/// A party that queues for a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTicket {
    /// Its id.
    pub id: TicketId,
    /// The name of the mode.
    pub mode: String,
    /// The players, the leader first. A player can be in only one ticket.
    pub members: Vec<TicketMember>,
    /// The values by which matches are made.
    pub rating: TicketRating,
}

/// A change of the waiting tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketChange {
    /// A ticket waits since this time of the store, in milliseconds. An aborted match does not change the time.
    Waits(ClusterTicket, u64),
    /// A ticket was cancelled.
    Gone(TicketId),
}

/// A match to form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMatch {
    /// Its id. The epoch is that of the matcher.
    pub id: MatchId,
    /// The name of the mode.
    pub mode: String,
    /// The tickets of each side.
    pub sides: Vec<Vec<TicketId>>,
    /// Its node.
    pub node: NodeRun,
    /// Whether its tickets wait again if it is aborted. Otherwise they are removed. Its players go home in both cases.
    pub is_requeued: bool,
}

/// A match that its node must open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchEntry {
    /// Its id.
    pub id: MatchId,
    /// The name of the mode.
    pub mode: String,
    /// The tickets of each side.
    pub sides: Vec<Vec<TicketId>>,
    /// The players of each side, in the order of the tickets.
    pub players: Vec<Vec<PlayerId>>,
}

/// The state of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchState {
    /// Its node has not opened it yet.
    Formed,
    /// Its node has opened it. Its players are there, or travel to it.
    Ready,
    /// It has a result.
    Ended,
    /// It has no result: its node died, or could not open or continue it.
    Aborted,
}

impl MatchState {
    /// Whether it ended, or was aborted.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Aborted)
    }
}

/// The place to which a player travels because of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TravelGoal {
    /// The node of its match.
    Match(MatchId),
    /// Its home, because the match is over. Also while its next match is not open yet.
    Home(TicketHome),
}

impl TravelGoal {
    /// The match; `None` of a home.
    #[must_use]
    pub const fn match_id(&self) -> Option<MatchId> {
        match self {
            Self::Match(id) => Some(*id),
            Self::Home(_) => None,
        }
    }
}

/// A player of the caller that travels to a match or home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerTravel {
    /// The player.
    pub player: PlayerId,
    /// Its goal.
    pub goal: TravelGoal,
    /// The node to which it must be handed off. `None` if the player has arrived, or stays where it is because its home is dead.
    pub to: Option<NodeRun>,
}

/// A request about matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchRequest {
    /// Reads the holder of a role.
    ReadRole {
        /// The name of the role.
        role: String,
    },
    /// Takes a role that is free, or that the caller holds. The epoch increases by one.
    TakeRole {
        /// The run that sends the request.
        run: NodeRun,
        /// The name of the role.
        role: String,
        /// The epoch that the caller has read; 0 if the role was never taken.
        epoch: u64,
    },
    /// Holds a role for another [`ROLE_LEASE_MS`].
    RenewRole {
        /// The run that sends the request.
        run: NodeRun,
        /// The name of the role.
        role: String,
        /// The epoch with which the caller holds it.
        epoch: u64,
    },
    /// Adds a ticket. Repeating it changes nothing. A cancelled ticket cannot be added again.
    AddTicket {
        /// The ticket. The run that sends the request is that of its id.
        ticket: ClusterTicket,
    },
    /// Removes a waiting ticket. If it does not exist yet, it can no longer be added.
    CancelTicket {
        /// The run that sends the request: that of the ticket, or another one.
        run: NodeRun,
        /// The ticket.
        ticket: TicketId,
    },
    /// Reads the changes of tickets since an earlier call, and deletes the cancelled tickets that the earlier call returned. Only for the
    /// matcher.
    ReadTickets {
        /// The run that sends the request.
        run: NodeRun,
        /// The epoch with which it is the matcher.
        epoch: u64,
        /// The revision in the previous reply; 0 reads all tickets that wait.
        after: u64,
        /// Maximum number of changes. If the reply has this many, there may be more.
        changes_max: usize,
    },
    /// Forms a match of waiting tickets, which then no longer wait. Only for the matcher. Repeating it changes nothing.
    FormMatch {
        /// The run that sends the request.
        run: NodeRun,
        /// The match.
        new: NewMatch,
    },
    /// Reads the matches that the caller must open, the oldest first.
    ReadMatches {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// Reports that the caller has opened a match. Its players travel to it from now on.
    MatchReady {
        /// The run that sends the request, on which the match is played.
        run: NodeRun,
        /// The match.
        id: MatchId,
    },
    /// Ends a match. Its players go home, and its tickets are removed. Repeating it changes nothing.
    EndMatch {
        /// The run that sends the request, on which the match was played.
        run: NodeRun,
        /// The match.
        id: MatchId,
        /// The result, as the game encodes it.
        result: Vec<u8>,
    },
    /// Aborts a match that cannot be opened or continued, as if its node had died.
    AbortMatch {
        /// The run that sends the request, on which the match is played.
        run: NodeRun,
        /// The match.
        id: MatchId,
    },
    /// Aborts matches of dead nodes, the oldest first, and deletes matches that have been over for [`MATCH_KEPT_MS`].
    AbortLate {
        /// The run that sends the request.
        run: NodeRun,
        /// Maximum number of matches to abort, and to delete.
        matches_max: usize,
    },
    /// Reads a match.
    ReadMatch {
        /// The match.
        id: MatchId,
    },
    /// Reads the travelling players that the caller has adopted, in ascending order.
    ReadTravels {
        /// The run that sends the request.
        run: NodeRun,
        /// Only players after this one. So players whose hand-off fails do not hide others behind the maximum.
        after: Option<PlayerId>,
        /// Maximum number of players.
        players_max: usize,
    },
    /// Ends the travels of these players, which the caller has adopted. Players that have not arrived, or have another goal now, are skipped.
    EndTravels {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once, with the match to which they travelled; `None`: home.
        arrived: Vec<(PlayerId, Option<MatchId>)>,
    },
    /// Lets these players, which the caller has adopted, travel to their match, if it is on another node. For players that log in again
    /// during the match.
    Rejoin {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once.
        players: Vec<PlayerId>,
    },
}

/// Why a request about matches was refused. The store has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedMatch {
    /// The run of the caller was declared dead or is unknown, or its heartbeat is late. A late run may repeat the request after its next
    /// heartbeat.
    RunEnded,
    /// The role has another epoch.
    OtherEpoch,
    /// Another run holds the role.
    RoleHeld,
    /// The caller does not hold the role of the matcher with that epoch.
    NotMatcher,
    /// The ticket was added and is gone, or a later ticket of the node was already added or cancelled.
    TicketGone,
    /// A player is in another ticket, or travels home from a match.
    PlayerQueued,
    /// The ticket is in a match already.
    InMatch,
    /// The node of the match is late or dead.
    HostLate,
    /// The match is unknown, belongs to another run, or is over.
    NoMatch,
}

/// The reply to a [`MatchRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchReply {
    /// It is done.
    Done,
    /// Nothing was changed.
    Refused(RefusedMatch),
    /// The last holder of a role, the epoch, and whether that run still holds it.
    Role(Option<NodeRun>, u64, bool),
    /// The changes of tickets.
    Tickets {
        /// The changes, the oldest first.
        changes: Vec<TicketChange>,
        /// The revision of the last one, or that of the request.
        revision: u64,
        /// The time of the store, in milliseconds.
        now_ms: u64,
    },
    /// A match was not formed, because these tickets do not wait.
    Unavailable(Vec<TicketId>),
    /// The matches to open.
    Matches(Vec<MatchEntry>),
    /// The node and the state of a match, and the result if it has ended.
    Match(NodeRun, MatchState, Vec<u8>),
    /// Travelling players.
    Travels(Vec<PlayerTravel>),
}
