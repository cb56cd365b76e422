//! Settings of the player store.

use std::time::Duration;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use throng_store::{CacheSettings, LeaseTableSettings, PeerSettings};

/// When replies of the store are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreReplyMode {
    /// In the first tick after they arrive. No tick waits. For real time.
    #[default]
    WhenReady,
    /// In the tick after the request, which waits for them before it begins, so the result does not depend on the speed of the
    /// store. For deterministic runs; a failing store is not awaited. The server then counts its leases in simulated time: a server
    /// that runs slower than the clock may lose them to other servers.
    NextTick,
}

/// How players are stored. Read when the store is opened, in the first tick that has one.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::store::PlayerStoreSettings;
///
/// // Each server that runs at the same time needs a name of its own.
/// app.insert_resource(PlayerStoreSettings { server: "town-1".to_owned(), ..PlayerStoreSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "DirectorySettings", deny_unknown_fields, default)]
pub struct PlayerStoreSettings {
    /// The server's name, which owns its leases. Two servers that run at the same time need two names: the second one refuses
    /// logins and waits until the first one stops, or until [`lease_ms`](LeaseTableSettings::lease_ms) after it crashed. If the
    /// first server shuts down in order, the second one continues at once.
    pub server: String,
    /// Whether to take over the name and all its players from a server that still runs.
    pub take_over: bool,
    /// When replies of the store are taken.
    #[serde(alias = "answers")]
    pub reply_mode: StoreReplyMode,
    /// Limits and times of leases and saves.
    #[serde(alias = "ledger")]
    pub leases: LeaseTableSettings,
    /// Settings of the cache of players on other servers.
    pub cache: CacheSettings,
    /// Limits of messages between servers.
    pub peers: PeerSettings,
}

impl PlayerStoreSettings {
    /// Takes over the server's name and all its players from a server that still runs: that one logs them out and accepts no
    /// others.
    #[must_use]
    pub const fn take_over(mut self) -> Self {
        self.take_over = true;
        self
    }

    /// Lets players play on for this time after the end of their leases while the store is away:
    /// [`unsaved_play_ms`](LeaseTableSettings::unsaved_play_ms).
    #[must_use]
    pub fn unsaved_play(mut self, time: Duration) -> Self {
        self.leases.unsaved_play_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
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
