//! Limits and counters of groups.

/// Times and limits of a [`GroupDirectory`](super::GroupDirectory). Times are in milliseconds.
///
/// ```
/// use throng_cluster::GroupSettings;
///
/// // A change whose hint was lost is read within two seconds.
/// let settings = GroupSettings { read_interval_ms: 2_000, ..GroupSettings::default() };
/// assert!(settings.request_timeout_ms < settings.read_interval_ms);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Time without a reply after which the outcome of a request counts as unknown, and it is repeated.
    pub request_timeout_ms: u64,
    /// Time after which a request is repeated that the store did not execute.
    pub retry_interval_ms: u64,
    /// Time between two reads of changes.
    pub read_interval_ms: u64,
    /// Maximum number of changes per read. If a read returns this many, the next one follows at once.
    pub changes_per_read: u64,
    /// Maximum number of players per read of their groups.
    pub players_per_read: usize,
    /// Maximum number of changes of this node that wait to be written; further ones are refused.
    pub changes_max: usize,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            request_timeout_ms: 450,
            retry_interval_ms: 50,
            read_interval_ms: 500,
            changes_per_read: 1_000,
            players_per_read: 64,
            changes_max: 1_024,
        }
    }
}

/// Counters of the groups of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Changes that this node has written.
    pub changed: u64,
    /// Changes of this node that were refused.
    pub refused: u64,
    /// Requests that were repeated: no reply arrived in time, the store did not execute them, or the node was late.
    pub unknown_outcomes: u64,
    /// Hints of other nodes.
    pub hints: u64,
    /// Players whose changed groups were found by a read of changes, before or after a hint.
    pub found: u64,
    /// Reads of groups of players.
    pub reads: u64,
}
