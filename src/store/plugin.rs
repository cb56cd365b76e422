//! The plugin of persistent players.
//!
//! ```text
//! Ingest ─▶ [Logins] replies of the store, logins, logouts ─▶ PlayerLoaded · PlayerLoadFailed · LeaseLost · PlayersSaved ─▶ Think
//! Replicate: Mark ─▶ [MarkTransfers] AtomicSaveRequest: both players are saved now ─▶ Save ─ SaveRequest ─▶ Send
//! Send ─▶ [SubmitSaves] all saves of the tick: one transaction ─▶ Last
//! ```
//! | file | contents |
//! |---|---|
//! | `settings`, `messages`, `stats` | settings, messages and counters |
//! | `player_store` | the resource: the lease table, the store thread, the clock |
//! | `events` | lease events as messages for the game |
//! | `logins` | replies of the store, logins and logouts |
//! | `saves` | the saves of a tick |
//! | `lookups`, `remote_players` | lookups of players, on this server and on others |
//! | `reply_watch` | whether the store still replies |
//! | `close` | shutdown: saves all players and releases all leases |

mod close;
mod events;
mod logins;
mod lookups;
mod messages;
mod player_store;
mod remote_players;
mod reply_watch;
mod saves;
mod settings;
mod stats;
#[cfg(test)]
mod tests;

pub use close::close_player_store;
pub use messages::{
    AtomicSaveRequest, LeaseLost, PlayerLoadFailed, PlayerLoaded, PlayerLookup, PlayerLookupResult,
    PlayersSaved,
};
pub use player_store::PlayerStore;
pub use settings::{PlayerStoreSettings, StoreReplyMode};
pub use stats::PlayerStoreStats;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use crate::memory::MemoryAppExt;
use crate::session::SessionPlugin;
use crate::sim::SimSystems;
use crate::sync::{SyncPlugin, SyncSystems};

/// Persistent players: loads them at login, saves their changes, and leases each player to one server at a time.
///
/// It does nothing until [`PlayerStore::open`] is called with a store. From then on a game spawns a player on the message
/// [`PlayerLoaded`] instead of [`LoggedIn`](crate::session::LoggedIn), from the saved values in it. Attributes that are registered as
/// [persistent](crate::sync::AttributeSpec::persistent) are saved when they change. Two players who trade are saved together with an
/// [`AtomicSaveRequest`].
///
/// [`PlayerStoreSettings`] has the limits and the duration of a lease. A thread of its own talks to the store; no tick waits for it,
/// unless [`StoreReplyMode`] says so. Adds [`SessionPlugin`] and [`SyncPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlayerStorePlugin;

/// The steps of the player store in a tick.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlayerStoreSystems {
    /// Handles replies, logins and logouts: between `Ingest` and `Think`.
    Logins,
    /// Marks the players of transfers for this tick's save: between [`SyncSystems::Mark`] and [`SyncSystems::Save`].
    MarkTransfers,
    /// Submits the tick's saves: between `Send` and `Last`.
    SubmitSaves,
}

crate::sim::sim_plugin!(PlayerStorePlugin, (SessionPlugin, SyncPlugin));

impl PlayerStorePlugin {
    fn add_to(app: &mut App) {
        // It is exclusive between two sets, where other systems only read the time.
        let attend = logins::process_logins
            .in_set(PlayerStoreSystems::Logins)
            .ambiguous_with_all();
        let hasten = saves::mark_transfers.in_set(PlayerStoreSystems::MarkTransfers);
        // It only reads requests, and does not conflict with systems that write none.
        let hand_over = saves::submit_saves
            .in_set(PlayerStoreSystems::SubmitSaves)
            .ambiguous_with_all();
        app.add_counted_message::<PlayerLookup>("store")
            .add_counted_message::<PlayerLookupResult>("store");
        app.init_resource::<PlayerStore>()
            .init_resource::<PlayerStoreSettings>()
            .init_resource::<PlayerStoreStats>()
            .add_message::<PlayerLoadFailed>()
            .add_message::<LeaseLost>()
            .count_memory::<PlayerStore>("store")
            .add_counted_message::<PlayerLoaded>("store")
            .add_counted_message::<PlayersSaved>("store")
            .add_counted_message::<AtomicSaveRequest>("store")
            .configure_sets(
                FixedUpdate,
                (
                    PlayerStoreSystems::Logins
                        .after(SimSystems::Ingest)
                        .before(SimSystems::Think),
                    PlayerStoreSystems::MarkTransfers
                        .after(SyncSystems::Mark)
                        .before(SyncSystems::UpdateClients)
                        .in_set(SimSystems::Replicate),
                    PlayerStoreSystems::SubmitSaves
                        .after(SimSystems::Send)
                        .before(SimSystems::Last),
                ),
            )
            .add_systems(FixedUpdate, (attend, hasten, hand_over));
    }
}
