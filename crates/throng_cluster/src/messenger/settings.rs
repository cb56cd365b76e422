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
    /// Maximum number of messages in each queue: those that wait for a read, for the bus, and for the tick. Further ones are dropped.
    pub waiting_max: usize,
    /// Maximum number of cached locations; of more, the oldest is forgotten.
    pub locations_max: usize,
    /// Maximum number of players per read.
    pub players_per_read: usize,
    /// How long a message waits for a player that is about to arrive.
    pub hold_ms: u64,
    /// How often a message is sent after the row of its player was read.
    pub sends_max: u8,
    /// After which a read counts as failed. Messages that wait for so long are dropped.
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

/// Counters of messages to players. A message to several players counts once per player where it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessengerStats {
    /// Messages given to the bus, without announcements.
    pub sent: u64,
    /// Announcements given to the bus.
    pub announced: u64,
    /// Players that got a message on this node which came over the bus.
    pub delivered: u64,
    /// Messages returned to their senders, because players are not here.
    pub returned: u64,
    /// Reads of rows.
    pub reads: u64,
    /// Messages dropped because they are too long, or to too many players.
    pub too_large: u64,
    /// Messages dropped because a queue was full.
    pub full: u64,
    /// Players to whom a message was dropped because they are unknown or logged out.
    pub offline: u64,
    /// Players to whom a message was dropped because their node is dead.
    pub dead: u64,
    /// Players to whom a message was dropped because they could not be found in time.
    pub late: u64,
}
