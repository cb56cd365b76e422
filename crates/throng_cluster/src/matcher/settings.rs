//! Modes, times, limits and counters of matches on a node.

use throng_matchmaking::MatchModeSettings;

use crate::ids::NodeRun;

/// A mode for which the players of a cluster queue. All nodes need the same modes.
///
/// ```
/// use throng_cluster::ClusterModeSettings;
/// use throng_matchmaking::MatchModeSettings;
///
/// // If a node dies, its duels have no result. Their players wait again, and their waiting time continues.
/// let duel = ClusterModeSettings { is_requeued: true, ..ClusterModeSettings::new(MatchModeSettings::groups("duel", 1)) };
/// assert_eq!(duel.mode.name(), "duel");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterModeSettings {
    /// How matches are made. Players cannot accept or decline matches yet: the accept timeout must be 0.
    pub mode: MatchModeSettings,
    /// Whether the tickets of an aborted match wait again. Otherwise they are removed. The players go home in both cases.
    pub is_requeued: bool,
}

impl ClusterModeSettings {
    /// A mode whose tickets are removed when a match is aborted.
    #[must_use]
    pub const fn new(mode: MatchModeSettings) -> Self {
        Self {
            mode,
            is_requeued: false,
        }
    }
}

/// Times and limits of matches on a node. Times are in milliseconds.
///
/// ```
/// use throng_cluster::MatcherSettings;
///
/// // Matches are found four times a second.
/// let settings = MatcherSettings { read_interval_ms: 250, ..MatcherSettings::default() };
/// assert!(settings.renew_interval_ms + 2 * settings.request_timeout_ms < throng_cluster::ROLE_LEASE_MS);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatcherSettings {
    /// Time without a reply after which the outcome of a request counts as unknown.
    pub request_timeout_ms: u64,
    /// Time after which a request is repeated that the store did not execute.
    pub retry_interval_ms: u64,
    /// Time between two reads of the role of the matcher, while another node has it.
    pub role_interval_ms: u64,
    /// Time between two renewals of the role. Two of them may be lost within [`ROLE_LEASE_MS`](crate::ROLE_LEASE_MS).
    pub renew_interval_ms: u64,
    /// Time between two reads of matches to open and of travelling players. The matcher also reads tickets, and then searches for matches.
    pub read_interval_ms: u64,
    /// Time between two requests of the matcher to abort the matches of dead nodes.
    pub abort_interval_ms: u64,
    /// Maximum number of tickets per read. If a read returns this many, the next one follows at once.
    pub read_tickets_max: usize,
    /// Maximum number of travelling players per read.
    pub read_travels_max: usize,
    /// Maximum number of matches per request that aborts matches of dead nodes.
    pub aborted_matches_max: usize,
    /// Maximum number of tickets and cancellations of players that wait to be written; further ones are refused.
    pub ticket_writes_max: usize,
    /// While this many matches wait to be written, no others are formed.
    pub forming_matches_max: usize,
    /// Load that each player of a new match adds to its node.
    pub load_per_player: u32,
    /// Time for which that load is added. After it, the load that the node reports contains the match.
    pub load_settle_ms: u64,
}

impl Default for MatcherSettings {
    fn default() -> Self {
        Self {
            request_timeout_ms: 450,
            retry_interval_ms: 50,
            role_interval_ms: 250,
            renew_interval_ms: 1_000,
            read_interval_ms: 250,
            abort_interval_ms: 250,
            read_tickets_max: 1_000,
            read_travels_max: 256,
            aborted_matches_max: 256,
            ticket_writes_max: 4_096,
            forming_matches_max: 1_000,
            load_per_player: 1,
            load_settle_ms: 2_000,
        }
    }
}

/// A node that can get matches: it is alive and does not drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Its newest run.
    pub run: NodeRun,
    /// Its load, in units of the game; all nodes use the same.
    pub load: u32,
}

/// Counters of matches on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherStats {
    /// Number of times the node became the matcher.
    pub roles_taken: u64,
    /// Matches that it formed as the matcher.
    pub formed: u64,
    /// Matches that were not formed because a ticket was cancelled or taken.
    pub unavailable: u64,
    /// Matches whose node was late, and that were assigned to another node or to none.
    pub host_late: u64,
    /// Tickets that it cancelled as the matcher, because they waited too long or do not fit the modes.
    pub rejected: u64,
    /// Requests that were repeated: no reply arrived in time, the store did not execute them, or the node was late.
    pub unknown_outcomes: u64,
    /// Matches that this node got to open.
    pub opened: u64,
    /// Hand-offs of players to a match or home, repeated ones included.
    pub moves: u64,
}
