//! Modes, times, limits and counters of matches on a node.

use throng_matchmaking::MatchModeSettings;

use crate::ids::NodeRun;

/// A mode in which the players of a cluster queue. All nodes need the same modes.
///
/// ```
/// use throng_cluster::ClusterModeSettings;
/// use throng_matchmaking::MatchModeSettings;
///
/// // When a node dies, its duels are void and their players wait again, with the time that they have waited before.
/// let duel = ClusterModeSettings { is_requeued: true, ..ClusterModeSettings::new(MatchModeSettings::groups("duel", 1)) };
/// assert_eq!(duel.mode.name(), "duel");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterModeSettings {
    /// How matches are made. Players cannot be asked to accept a match yet: the time for it must be 0.
    pub mode: MatchModeSettings,
    /// Whether the tickets of a match that has no result wait again. Otherwise they are removed. The players go home in both cases.
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
    /// After which the outcome of a request is unknown.
    pub request_timeout_ms: u64,
    /// After which a request is repeated that the store did not execute.
    pub retry_interval_ms: u64,
    /// Between two reads of the role of the matcher, while another node has it.
    pub role_interval_ms: u64,
    /// Between two renewals of the role. Two may be lost within [`ROLE_LEASE_MS`](crate::ROLE_LEASE_MS).
    pub renew_interval_ms: u64,
    /// Between two reads of tickets (the matcher, which then looks for matches), of matches to open, and of players on their way.
    pub read_interval_ms: u64,
    /// Between two searches of the matcher for matches whose node has died.
    pub abort_interval_ms: u64,
    /// Maximum number of tickets per read. After a read of this many, the next one follows at once.
    pub read_tickets_max: usize,
    /// Maximum number of players on their way per read.
    pub read_travels_max: usize,
    /// Maximum number of matches that are aborted at once.
    pub aborted_matches_max: usize,
    /// Maximum number of tickets and cancellations that wait to be written; further ones are refused.
    pub ticket_writes_max: usize,
    /// While this many matches wait to be written, no others are made.
    pub forming_matches_max: usize,
    /// How much a player of a match adds to the load of its node.
    pub load_per_player: u32,
    /// For how long that counts: then the node reports it itself.
    pub load_settle_ms: u64,
}

impl Default for MatcherSettings {
    fn default() -> Self {
        Self {
            request_timeout_ms: 450,
            retry_interval_ms: 50,
            role_interval_ms: 500,
            renew_interval_ms: 1_000,
            read_interval_ms: 250,
            abort_interval_ms: 250,
            read_tickets_max: 1_000,
            read_travels_max: 256,
            aborted_matches_max: 64,
            ticket_writes_max: 4_096,
            forming_matches_max: 1_000,
            load_per_player: 1,
            load_settle_ms: 2_000,
        }
    }
}

/// A node that may get matches: it is alive and takes new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLoad {
    /// Its newest run.
    pub run: NodeRun,
    /// Its load, in any unit that all nodes share.
    pub load: u32,
}

/// Counters of matches on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherStats {
    /// How often it became the matcher.
    pub roles_taken: u64,
    /// Matches formed as the matcher.
    pub formed: u64,
    /// Matches that were not formed because a ticket was cancelled or taken.
    pub unavailable: u64,
    /// Matches whose node was late; they were given to another one.
    pub host_late: u64,
    /// Tickets that were cancelled by the matcher: they waited too long, or do not fit the modes.
    pub rejected: u64,
    /// Requests without a reply in time.
    pub unknown_outcomes: u64,
    /// Matches that this node had to open.
    pub opened: u64,
    /// Players sent to a match or home.
    pub moves: u64,
}
