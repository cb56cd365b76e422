//! Times, limits and counters of attributes of party members.

/// Times and limits of a [`PartyExchange`](super::PartyExchange). Times are in milliseconds.
///
/// ```
/// use throng_cluster::PartyValueSettings;
///
/// // A lost message is noticed within half a second.
/// let settings = PartyValueSettings { status_interval_ms: 500, ..PartyValueSettings::default() };
/// assert!(settings.expire_ms > 3 * settings.status_interval_ms);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartyValueSettings {
    /// The time between two statuses of the same party to the same node.
    pub status_interval_ms: u64,
    /// The time after which a member is forgotten whose node sends nothing about it, and after which a node counts as not interested that
    /// sends no status.
    pub expire_ms: u64,
    /// The time between two requests for the values of a member.
    pub request_interval_ms: u64,
    /// Maximum number of members per tick whose values are sent in full. Others wait for the next tick.
    pub full_per_tick_max: usize,
    /// Maximum number of bytes to other nodes that wait for the bus. Messages beyond it are dropped, and requested later.
    pub outgoing_bytes_max: usize,
    /// Maximum number of messages of other nodes that wait for the tick. Further ones are dropped.
    pub waiting_max: usize,
}

impl Default for PartyValueSettings {
    fn default() -> Self {
        Self {
            status_interval_ms: 1_000,
            expire_ms: 5_000,
            request_interval_ms: 250,
            full_per_tick_max: 256,
            outgoing_bytes_max: 1 << 20,
            waiting_max: 1_024,
        }
    }
}

/// Counters of attributes of party members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartyValueStats {
    /// Messages given to the bus.
    pub sent: u64,
    /// Statuses of members, each to one node.
    pub statuses: u64,
    /// Members sent in full, each to one node.
    pub full: u64,
    /// Changes of members, each to one node.
    pub changes: u64,
    /// Messages of other nodes.
    pub received: u64,
    /// Requests for the values of a member, because a message was missing.
    pub requests: u64,
    /// Changes that did not follow the values known here.
    pub gaps: u64,
    /// Members forgotten because their nodes sent nothing about them.
    pub expired: u64,
    /// Statuses and values of players that are in no party of this node, or are here.
    pub unwanted: u64,
    /// Messages with another version of the format.
    pub other_versions: u64,
    /// Messages that are invalid.
    pub malformed: u64,
    /// Messages dropped because a limit was reached: of other nodes, or to them.
    pub dropped: u64,
}
