//! Requests about matches, and the replies: the role of the matcher, tickets, matches, and players on their way to a match or home.
//!
//! Each request may be repeated when its outcome is unknown: it then replies as before, or says why it does not count any more.

use throng_core::ids::PlayerId;

use crate::ids::{ClusterNodeId, NodeRun};

/// The role of the node that forms matches.
pub const MATCHER_ROLE: &str = "matcher";

/// For how long a role is held without a renewal, by the store's clock, in milliseconds. The role of a dead node is free at once.
pub const ROLE_LEASE_MS: u64 = 3_000;

/// For how long a match that is over can be read, by the store's clock, in milliseconds.
pub const MATCH_KEPT_MS: u64 = 3_600_000;

/// A ticket. A run counts its tickets from 1, and adds them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketId {
    /// The run that has added it.
    pub run: NodeRun,
    /// Its number there.
    pub nth: u64,
}

/// A match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatchId {
    /// The epoch of the matcher that has formed it.
    pub epoch: u64,
    /// Its number there.
    pub nth: u64,
}

/// Where a player goes when a match is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketHome {
    /// The node. If it is dead then, the player stays where it is.
    pub node: ClusterNodeId,
    /// The scene there; the game gives it its meaning.
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

/// What counts for a match, as in [`Ticket`](throng_matchmaking::Ticket).
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
    /// Players that it does not want to meet.
    pub avoid: Vec<PlayerId>,
}

/// A party that wants to play a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTicket {
    /// Its id.
    pub id: TicketId,
    /// The name of the mode.
    pub mode: String,
    /// The players, the leader first. A player is in one ticket at most.
    pub members: Vec<TicketMember>,
    /// What counts for a match.
    pub rating: TicketRating,
}

/// A change of the tickets that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketChange {
    /// A ticket waits, since this time of the store in milliseconds. After an aborted match, it is the same time as before.
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
    /// The node on which it is played.
    pub node: NodeRun,
    /// Whether its tickets wait again if its node dies. Otherwise they are removed. Its players go home in both cases.
    pub is_requeued: bool,
}

/// A match that its node has to open.
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
    /// Its players play, or are on the way.
    Ready,
    /// It has a result.
    Ended,
    /// It has none: its node has died, or could not open it.
    Aborted,
}

impl MatchState {
    /// Whether it ended, or was aborted.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Aborted)
    }
}

/// Where a player has to be because of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TravelGoal {
    /// At the node of its match.
    Match(MatchId),
    /// At home: the match is over.
    Home(TicketHome),
}

/// A player that is on its way to a match or home, and whom the caller owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerTravel {
    /// The player.
    pub player: PlayerId,
    /// Where it goes.
    pub goal: TravelGoal,
    /// The node that it goes to; `None` if it has arrived, or its home is dead and it stays where it is.
    pub to: Option<NodeRun>,
}

/// A request about matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchRequest {
    /// Reads who has a role.
    ReadRole {
        /// The name of the role.
        role: String,
    },
    /// Takes a role that nobody holds, or that the caller holds. The epoch becomes one higher.
    TakeRole {
        /// The run that sends the request.
        run: NodeRun,
        /// The name of the role.
        role: String,
        /// The epoch that the caller has read; 0 of a role that nobody has had.
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
    /// Adds a ticket. Repeating it changes nothing; once it was cancelled, it cannot be added again.
    AddTicket {
        /// The ticket. The run that sends the request is that of its id.
        ticket: ClusterTicket,
    },
    /// Removes a ticket that waits, or makes sure that it is never added.
    CancelTicket {
        /// The run that sends the request: that of the ticket, or another one.
        run: NodeRun,
        /// The ticket.
        ticket: TicketId,
    },
    /// Reads how tickets have changed since an earlier call, and forgets the cancelled ones of that call. Only for the matcher.
    ReadTickets {
        /// The run that sends the request.
        run: NodeRun,
        /// The epoch with which it is the matcher.
        epoch: u64,
        /// The revision in the previous reply; 0 reads all tickets that wait.
        after: u64,
        /// Maximum number of changes. As many as this: there may be more.
        changes_max: usize,
    },
    /// Forms a match: its tickets belong to it from now on. Only for the matcher. Repeating it changes nothing.
    FormMatch {
        /// The run that sends the request.
        run: NodeRun,
        /// The match.
        new: NewMatch,
    },
    /// Reads the matches that the caller has to open, the oldest first.
    ReadMatches {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// The caller has opened a match: its players may come.
    MatchReady {
        /// The run that sends the request, on which the match is played.
        run: NodeRun,
        /// The match.
        id: MatchId,
    },
    /// A match is over: its players go home, and its tickets are removed. Repeating it changes nothing.
    EndMatch {
        /// The run that sends the request, on which the match was played.
        run: NodeRun,
        /// The match.
        id: MatchId,
        /// The result, as the game encodes it.
        result: Vec<u8>,
    },
    /// A match cannot be opened or played on: as if its node had died.
    AbortMatch {
        /// The run that sends the request, on which the match is played.
        run: NodeRun,
        /// The match.
        id: MatchId,
    },
    /// Aborts matches of dead nodes, the oldest first, and forgets those that have been over for [`MATCH_KEPT_MS`].
    AbortLate {
        /// The run that sends the request.
        run: NodeRun,
        /// Maximum number of matches to abort, and to forget.
        matches_max: usize,
    },
    /// Reads a match.
    ReadMatch {
        /// The match.
        id: MatchId,
    },
    /// Reads the players that the caller has adopted and that are on their way to a match or home, in ascending order.
    ReadTravels {
        /// The run that sends the request.
        run: NodeRun,
        /// Maximum number of players.
        players_max: usize,
    },
    /// These players, whom the caller has adopted, have arrived. Those that have not are left out.
    EndTravels {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once.
        players: Vec<PlayerId>,
    },
    /// Sends these players, whom the caller has adopted, to the match that they are in, if it is played elsewhere: they have logged in
    /// again during the match.
    Rejoin {
        /// The run that sends the request.
        run: NodeRun,
        /// The players, each once.
        players: Vec<PlayerId>,
    },
}

/// Why the store has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedMatch {
    /// The run of the caller was declared dead, is late, or is unknown.
    RunEnded,
    /// The role has another epoch.
    OtherEpoch,
    /// Another run holds the role.
    RoleHeld,
    /// The caller is not the matcher, or not with that epoch.
    NotMatcher,
    /// The ticket was added and is gone, or a later one was added or cancelled before.
    TicketGone,
    /// A player is in another ticket, or on its way home from a match.
    PlayerQueued,
    /// The ticket is in a match already.
    InMatch,
    /// The node on which the match should be played is late or gone.
    HostLate,
    /// The match is unknown, is played on another run, or is over.
    NoMatch,
}

/// The reply to a [`MatchRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchReply {
    /// It is done.
    Done,
    /// Nothing was changed.
    Refused(RefusedMatch),
    /// Who had a role last, its epoch, and whether that run still holds it.
    Role(Option<NodeRun>, u64, bool),
    /// How tickets have changed.
    Tickets {
        /// The changes, the oldest first.
        changes: Vec<TicketChange>,
        /// The revision of the last one, or that of the request.
        revision: u64,
        /// The time of the store, in milliseconds.
        now_ms: u64,
    },
    /// A match was not formed, because these of its tickets do not wait (any more).
    Unavailable(Vec<TicketId>),
    /// The matches to open.
    Matches(Vec<MatchEntry>),
    /// A match: its node, its state, and the result if it has ended.
    Match(NodeRun, MatchState, Vec<u8>),
    /// Players on their way.
    Travels(Vec<PlayerTravel>),
}
