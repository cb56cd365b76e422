//! Settings of the directory.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use throng_store::{CacheSettings, LedgerSettings, PeerSettings};

/// When answers of the store are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreAnswers {
    /// In the first tick that finds them there. No tick waits. For real time.
    #[default]
    WhenReady,
    /// In the tick after the one that asked, which waits for them before it begins: so what happens does not depend on how
    /// fast the store is. For deterministic runs; a store that fails is not waited for. Leases last by the time of the
    /// simulation then, which may run far ahead of the clock: a run that is killed may keep its players from servers of other
    /// names for longer than [`lease_ms`](LedgerSettings::lease_ms).
    NextTick,
}

/// How players are kept. Read when the store is opened, in the first tick that has one.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DirectorySettings {
    /// The server's name, by which it holds leases. Of the processes of one name the newest has the players; so a server that
    /// crashed has them back at once, and two that run at the same time need two names.
    pub server: String,
    /// When answers of the store are taken.
    pub answers: StoreAnswers,
    /// Limits and times.
    pub ledger: LedgerSettings,
    /// What is remembered of players elsewhere.
    pub cache: CacheSettings,
    /// Limits of what goes between servers.
    pub peers: PeerSettings,
}

impl Default for DirectorySettings {
    fn default() -> Self {
        Self {
            server: "throng".to_owned(),
            answers: StoreAnswers::default(),
            ledger: LedgerSettings::default(),
            cache: CacheSettings::default(),
            peers: PeerSettings::default(),
        }
    }
}
