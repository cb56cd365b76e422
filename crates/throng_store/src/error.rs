//! What can go wrong between a game and what it keeps.

use thiserror::Error;
use throng_core::ids::PlayerId;

/// What a store failed of. Each asks something else of an operator.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// Somebody else holds it, longer than is waited for.
    #[error("locked by another program")]
    Locked,
    /// It may be read and not written.
    #[error("read-only")]
    ReadOnly,
    /// There is no room left.
    #[error("disk full")]
    DiskFull,
    /// What it holds cannot be right.
    #[error("corrupted")]
    Corrupt,
    /// It is something else than a store of players.
    #[error("not a player store; choose another file or an empty database")]
    NotAPlayerStore,
    /// A later version of the program wrote it.
    #[error("schema version {found} is newer than {known}, the newest that this program supports")]
    NewerSchema {
        /// The number of its schema.
        found: i64,
        /// The newest one that is known here.
        known: i64,
    },
    /// An attribute means something else in it than in the game.
    #[error("an attribute has another name or encoding in the store")]
    AttributeMismatch,
    /// It does not take a value, whoever's it is; what else it was to save it takes.
    #[error("value rejected")]
    ValueRejected,
    /// Another process has the server's name, and is alive.
    #[error("server name in use")]
    NameInUse,
    /// It cannot be reached, or broke off in the middle.
    #[error("unreachable")]
    Unreachable,
}

impl StoreErrorKind {
    /// Whether it lies in what is kept of one player, and the store has nothing against all others.
    #[must_use]
    pub const fn affects_one_player(self) -> bool {
        matches!(self, Self::AttributeMismatch | Self::ValueRejected)
    }
}

/// A store could not do what it was asked for. What was asked is then done wholly or not at all, and which of them is open;
/// saves are numbered for that, and done again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("store {store}: {kind}: {cause}")]
pub struct StoreError {
    /// Its file or address.
    pub store: String,
    /// What it failed of.
    pub kind: StoreErrorKind,
    /// What the store itself says.
    pub cause: String,
}

/// Why a player's record cannot be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlayerStoreError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The player is live on another server, or was on one that ended without a word: then its lease runs out by itself.
    #[error("player {} is live on server `{server}`; its lease expires in {left_ms} ms", player.0)]
    Leased {
        /// Whose record was asked for.
        player: PlayerId,
        /// Where it is live.
        server: String,
        /// After how many milliseconds it can be had at the latest, if that server does not renew.
        left_ms: u64,
    },
    /// The store took longer than [`load_timeout_ms`](super::LeaseTableSettings::load_timeout_ms), or a look longer than its own.
    #[error("player {}: store request timed out after {load_timeout_ms} ms", player.0)]
    TimedOut {
        /// Whose record was asked for.
        player: PlayerId,
        /// How long was waited.
        load_timeout_ms: u64,
    },
    /// The store is behind by so many players that nobody else is let in.
    #[error("player {} not loaded: save backlog full ({unsaved} of {max} players)", player.0)]
    SaveBacklogFull {
        /// Whose record was asked for.
        player: PlayerId,
        /// How many wait.
        unsaved: usize,
        /// How many may.
        max: usize,
    },
    /// There are as many players as there may be.
    #[error("player {} not loaded: player limit reached ({held} of {max})", player.0)]
    PlayerLimitReached {
        /// Whose record was asked for.
        player: PlayerId,
        /// How many are here, on their way in, or not yet saved on their way out.
        held: usize,
        /// How many may be.
        max: usize,
    },
    /// Too many look-ups wait for the store.
    #[error("player {}: too many pending lookups ({waiting} of {max})", player.0)]
    TooManyLookups {
        /// Whose record was asked for.
        player: PlayerId,
        /// How many wait.
        waiting: usize,
        /// How many may.
        max: usize,
    },
    /// The store gave fewer answers than it was asked for.
    #[error("player {}: the store stopped before it replied", player.0)]
    MissingReply {
        /// Whose record was asked for.
        player: PlayerId,
    },
    /// There is one already; it has to be closed before another is used.
    #[error("a store is already open")]
    AlreadyOpen,
    /// No store was opened.
    #[error("no store is open")]
    NotOpen,
}
