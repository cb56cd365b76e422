//! The plugin of persistent players.
//!
//! ```text
//! Ingest ─▶ [attend] replies of the store, logins, logouts ─▶ PlayerLoaded · PlayerRefused · LeaseLost · PlayersSaved ─▶ Think
//! Replicate: Mark ─▶ [hasten] Transfer: both players are saved now ─▶ Save ─ SaveRequest ─▶ Send ─▶ [hand_over] one transaction
//! ```
//! | file | contents |
//! |---|---|
//! | `settings`, `messages`, `stats` | settings, messages and counters |
//! | `directory` | the resource: the ledger, the store thread, the clock |
//! | `events` | ledger events as messages for the game |
//! | `attend` | replies of the store, logins and logouts |
//! | `hand_over` | the saves of a tick |
//! | `look_up`, `elsewhere` | lookups of players, on this server and on others |
//! | `close` | shutdown: saves all players and releases all leases |

mod attend;
mod close;
mod directory;
mod elsewhere;
mod events;
mod hand_over;
mod look_up;
mod messages;
mod settings;
mod stats;
#[cfg(test)]
mod tests;

pub use close::close_directory;
pub use directory::Directory;
pub use messages::{
    LeaseLost, LookUpAnswer, LookUpRequest, PlayerLoaded, PlayerRefused, PlayersSaved, Transfer,
};
pub use settings::{DirectorySettings, StoreAnswers};
pub use stats::DirectoryStats;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use crate::memory::MemoryAppExt;
use crate::session::SessionPlugin;
use crate::sim::SimSystems;
use crate::sync::{SyncPlugin, SyncSystems};

/// Loads players that log in, saves what changes of them, and holds their leases. Adds [`SessionPlugin`] and [`SyncPlugin`]
/// when they are missing. Does nothing before [`Directory::open`] was given a store; then a game spawns a player on
/// [`PlayerLoaded`] in place of [`LoggedIn`](crate::session::LoggedIn).
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryPlugin;

/// What the directory does in a tick.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectorySystems {
    /// Answers are taken, logins and logouts seen to: between `Ingest` and `Think`.
    Attend,
    /// Who dealt with each other is marked to be saved: between [`SyncSystems::Mark`] and [`SyncSystems::Save`].
    Hasten,
    /// The tick's saves are handed over: between `Send` and `Last`.
    HandOver,
}

crate::sim::sim_plugin!(DirectoryPlugin, (SessionPlugin, SyncPlugin));

impl DirectoryPlugin {
    fn add_to(app: &mut App) {
        // It has the world between two sets, where others only take the time.
        let attend = attend::attend
            .in_set(DirectorySystems::Attend)
            .ambiguous_with_all();
        let hasten = hand_over::hasten.in_set(DirectorySystems::Hasten);
        // It reads requests alone, and whoever has none of its own is no concern of those beside it.
        let hand_over = hand_over::hand_over
            .in_set(DirectorySystems::HandOver)
            .ambiguous_with_all();
        app.add_counted_message::<LookUpRequest>("directory")
            .add_counted_message::<LookUpAnswer>("directory");
        app.init_resource::<Directory>()
            .init_resource::<DirectorySettings>()
            .init_resource::<DirectoryStats>()
            .add_message::<PlayerRefused>()
            .add_message::<LeaseLost>()
            .count_memory::<Directory>("directory")
            .add_counted_message::<PlayerLoaded>("directory")
            .add_counted_message::<PlayersSaved>("directory")
            .add_counted_message::<Transfer>("directory")
            .configure_sets(
                FixedUpdate,
                (
                    DirectorySystems::Attend
                        .after(SimSystems::Ingest)
                        .before(SimSystems::Think),
                    DirectorySystems::Hasten
                        .after(SyncSystems::Mark)
                        .before(SyncSystems::Follow)
                        .in_set(SimSystems::Replicate),
                    DirectorySystems::HandOver
                        .after(SimSystems::Send)
                        .before(SimSystems::Last),
                ),
            )
            .add_systems(FixedUpdate, (attend, hasten, hand_over));
    }
}
