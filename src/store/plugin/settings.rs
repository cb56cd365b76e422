//! Settings of the directory.

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use throng_store::{CacheSettings, LeaseTableSettings, PeerSettings};

/// When answers of the store are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreReplyMode {
    /// In the first tick that finds them there. No tick waits. For real time.
    #[default]
    WhenReady,
    /// In the tick after the one that asked, which waits for them before it begins: so what happens does not depend on how
    /// fast the store is. For deterministic runs; a store that fails is not waited for. The server then counts its leases in
    /// the time of the simulation: one that is slower than the clock may lose them to other servers.
    NextTick,
}

/// How players are kept. Read when the store is opened, in the first tick that has one.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "DirectorySettings", deny_unknown_fields, default)]
pub struct PlayerStoreSettings {
    /// The server's name, by which it holds leases. Two servers that run at the same time need two names: the second one refuses
    /// logins and waits until the first one stops, or crashed [`lease_ms`](LeaseTableSettings::lease_ms) ago. A server that stopped
    /// in order is followed at once.
    pub server: String,
    /// Whether the name and all its players are taken from a server that is alive.
    pub take_over: bool,
    /// When answers of the store are taken.
    #[serde(alias = "answers")]
    pub reply_mode: StoreReplyMode,
    /// Limits and times.
    #[serde(alias = "ledger")]
    pub leases: LeaseTableSettings,
    /// What is remembered of players elsewhere.
    pub cache: CacheSettings,
    /// Limits of what goes between servers.
    pub peers: PeerSettings,
}

impl PlayerStoreSettings {
    /// Takes the server's name and all its players from a server that is alive: that one logs them out and gets no others.
    #[must_use]
    pub const fn take_over(mut self) -> Self {
        self.take_over = true;
        self
    }
}

impl Default for PlayerStoreSettings {
    fn default() -> Self {
        Self {
            server: "throng".to_owned(),
            take_over: false,
            reply_mode: StoreReplyMode::default(),
            leases: LeaseTableSettings::default(),
            cache: CacheSettings::default(),
            peers: PeerSettings::default(),
        }
    }
}
