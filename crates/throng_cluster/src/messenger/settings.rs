//! Limits and counters of messages to players.

/// Times and limits of a [`PlayerMessenger`](super::PlayerMessenger). Times are in milliseconds.
///
/// ```
/// use throng_cluster::MessengerSettings;
///
/// // Parties of at most 40 players, and lines of chat.
/// let settings = MessengerSettings { players_max: 40, bytes_max: 512, ..MessengerSettings::default() };
/// assert!(settings.hold_ms < 1_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessengerSettings {
    /// Maximum length of a message, in bytes; at most 64 KiB. Longer ones are dropped.
    pub bytes_max: usize,
    /// Maximum number of players per message; at most 4,096. Messages to more players are dropped.
    pub players_max: usize,
    /// Maximum number of messages in each of the queues for a read, for the bus, and for the tick. Further messages are dropped.
    pub waiting_max: usize,
    /// Maximum number of cached locations. At the limit, the oldest is evicted.
    pub locations_max: usize,
    /// Maximum number of players per read.
    pub players_per_read: usize,
    /// How long a message waits for a player that is about to arrive.
    pub hold_ms: u64,
    /// Maximum number of times that a message is sent after reads of the rows.
    pub sends_max: u8,
    /// The time after which a read has failed. Messages that have waited for this time are dropped.
    pub read_timeout_ms: u64,
}

impl Default for MessengerSettings {
    fn default() -> Self {
        Self {
            bytes_max: 4_096,
            players_max: 1_024,
            waiting_max: 1_024,
            locations_max: 10_000,
            players_per_read: 256,
            hold_ms: 500,
            sends_max: 2,
            read_timeout_ms: 1_000,
        }
    }
}

/// Counters of messages to players. Some count messages, others the players of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessengerStats {
    /// Messages given to the bus, without announcements.
    pub sent: u64,
    /// Announcements given to the bus.
    pub announced: u64,
    /// Deliveries over the bus to players of this node, one per message and player.
    pub delivered: u64,
    /// Messages returned to their senders because the players are not on this node.
    pub returned: u64,
    /// Reads of rows.
    pub reads: u64,
    /// Messages dropped because they are too long or have too many players.
    pub too_large: u64,
    /// Messages dropped because a queue was full.
    pub full: u64,
    /// Players whose message was dropped because they are unknown or logged out.
    pub offline: u64,
    /// Players whose message was dropped because their node is late or dead.
    pub dead: u64,
    /// Players whose message was dropped because they were not found in time.
    pub late: u64,
}
