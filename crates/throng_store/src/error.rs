//! Errors of player stores.

use thiserror::Error;
use throng_core::ids::PlayerId;

/// Kind of a store error. Each kind needs another action of the operator.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// Another program has locked the store for too long.
    #[error("locked by another program")]
    Locked,
    /// The store can be read, but not written.
    #[error("read-only")]
    ReadOnly,
    /// No space is left.
    #[error("disk full")]
    DiskFull,
    /// The data is invalid.
    #[error("corrupted")]
    Corrupt,
    /// The file or database is not a player store.
    #[error("not a player store; choose another file or an empty database")]
    NotAPlayerStore,
    /// A newer version of the program has written the store.
    #[error("schema version {found} is newer than {known}, the newest that this program supports")]
    NewerSchema {
        /// Schema version of the store.
        found: i64,
        /// Newest version that this program supports.
        known: i64,
    },
    /// The tables are missing, or those of an older version, and this program does not update them.
    #[error("schema version {found} is older than {known}, that of this program")]
    OlderSchema {
        /// Schema version of the store; 0 if there are no tables.
        found: i64,
        /// Schema version of this program.
        known: i64,
    },
    /// An attribute has another name or encoding in the store than in the game.
    #[error("an attribute has another name or encoding in the store")]
    AttributeMismatch,
    /// The store rejects a value; it accepts the others of the request.
    #[error("value rejected")]
    ValueRejected,
    /// Another process uses the server's name and is alive.
    #[error("server name in use")]
    NameInUse,
    /// The store cannot be reached, or the connection was lost.
    #[error("unreachable")]
    Unreachable,
}

impl StoreErrorKind {
    /// Whether the error concerns the record of one player only.
    #[must_use]
    pub const fn affects_one_player(self) -> bool {
        matches!(self, Self::AttributeMismatch | Self::ValueRejected)
    }
}

/// A store has failed to execute a request. The request was executed completely or not at all; which of the two is unknown. Saves are
/// numbered, so they can be repeated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("store {store}: {kind}: {cause}")]
pub struct StoreError {
    /// File or address of the store.
    pub store: String,
    /// Kind of the error.
    pub kind: StoreErrorKind,
    /// Message of the store itself.
    pub cause: String,
}

/// Why a player's record is not available.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlayerStoreError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The player is live on another server, or was on one that crashed: then its lease expires.
    #[error("player {} is live on server `{server}`; its lease expires in {left_ms} ms", player.0)]
    Leased {
        /// The requested player.
        player: PlayerId,
        /// The server on which it is live.
        server: String,
        /// Milliseconds until the player is available at the latest, if that server does not renew.
        left_ms: u64,
    },
    /// The store took longer than [`load_timeout_ms`](super::LeaseTableSettings::load_timeout_ms), or a lookup exceeded its own timeout.
    #[error("player {}: store request timed out after {load_timeout_ms} ms", player.0)]
    TimedOut {
        /// The requested player.
        player: PlayerId,
        /// The timeout, in milliseconds.
        load_timeout_ms: u64,
    },
    /// The save backlog is full, so no more players are loaded.
    #[error("player {} not loaded: save backlog full ({unsaved} of {max} players)", player.0)]
    SaveBacklogFull {
        /// The requested player.
        player: PlayerId,
        /// Number of unsaved players.
        unsaved: usize,
        /// The limit.
        max: usize,
    },
    /// The player limit is reached.
    #[error("player {} not loaded: player limit reached ({held} of {max})", player.0)]
    PlayerLimitReached {
        /// The requested player.
        player: PlayerId,
        /// Players that are here, being loaded, or gone and not saved yet.
        held: usize,
        /// The limit.
        max: usize,
    },
    /// Too many lookups wait for the store.
    #[error("player {}: too many pending lookups ({waiting} of {max})", player.0)]
    TooManyLookups {
        /// The requested player.
        player: PlayerId,
        /// Number of pending lookups.
        waiting: usize,
        /// The limit.
        max: usize,
    },
    /// The store returned fewer results than requested.
    #[error("player {}: the store stopped before it replied", player.0)]
    MissingReply {
        /// The requested player.
        player: PlayerId,
    },
    /// A store is open already; close it before opening another.
    #[error("a store is already open")]
    AlreadyOpen,
    /// No store is open.
    #[error("no store is open")]
    NotOpen,
}
