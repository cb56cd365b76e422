//! Replication in the tick.
//!
//! ```text
//! order, settings, stats ─ audience ─▶ attributes ─▶ replicate, sent_values, save_request ─▶ dirty ─▶ replicator
//!     ─▶ clients ─▶ views, remotes, collect, motions, gather, snapshots, lines, save ─▶ the plugin
//! ```
//! | file | what it holds |
//! |---|---|
//! | `order`, `settings`, `stats` | the sets of a tick's replication; what may be set; what is counted |
//! | `audience` | who learns an attribute |
//! | `attributes`, `replicate` | the table of attributes and what follows from it; how components come into it |
//! | `sent_values` | what clients hold of an object |
//! | `dirty` | what changed of each object since it was last collected |
//! | `replicator`, `clients` | what is kept from tick to tick; whose client each state is |
//! | `views`, `remotes` | what each client sees, and what it is told of unseen |
//! | `announce` | what the game announces |
//! | `collect`, `motions`, `gather`, `snapshots` | each message, written once for all who get it |
//! | `messages` | the bytes of those that carry attributes |
//! | `lines` | each client's list of messages |
//! | `save_request`, `save` | what a store is asked to keep, and when |
//! | `compare` | a client's mirror beside the server |

mod announce;
mod attributes;
mod audience;
mod clients;
mod collect;
mod compare;
mod dirty;
mod gather;
mod lines;
mod messages;
mod motions;
mod order;
mod remotes;
mod replicate;
mod replicator;
mod save;
mod save_request;
mod sent_values;
mod settings;
mod snapshots;
mod stats;
#[cfg(test)]
mod tests;
mod views;

pub use announce::{Announce, AnnounceScope, Announced};
pub use attributes::{AttributeSpec, Attributes, Cadence, RegisterError};
pub use audience::Audience;
pub use compare::compare_mirror;
pub use dirty::{DirtyMasks, MaskSlot};
pub use order::SyncSystems;
pub use replicate::{Replicate, ReplicateAppExt};
pub use save::SaveFailed;
pub use save_request::SaveRequest;
pub use settings::SyncSettings;
pub use stats::SyncStats;

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;

use self::replicator::Replicator;
use self::sent_values::SentValues;
use crate::aoi::AoiPlugin;
use crate::outbox::OutboxPlugin;
use crate::session::SessionPlugin;
use crate::sim::{self, HashAppExt, HeartbeatSystems, SimSystems};
use crate::world::{Object, Scene};

/// Attribute and motion replication. Adds [`AoiPlugin`], [`SessionPlugin`] and [`OutboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncPlugin;

impl Plugin for SyncPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(AoiPlugin);
        app.add_plugins(SessionPlugin);
        app.add_plugins(OutboxPlugin);
        app.register_required_components::<Object, MaskSlot>();
        app.register_required_components::<Object, SentValues>();
        app.register_required_components::<Scene, MaskSlot>();
        app.register_required_components::<Scene, SentValues>();
        app.add_message::<Announce>()
            .add_message::<Announced>()
            .init_resource::<Attributes>()
            .init_resource::<DirtyMasks>()
            .init_resource::<SyncSettings>()
            .init_resource::<SyncStats>()
            .init_resource::<Replicator>()
            .configure_sets(
                FixedUpdate,
                SyncSystems::Mark
                    .in_set(SimSystems::Heartbeat)
                    .after(HeartbeatSystems::Match)
                    .before(HeartbeatSystems::Collect),
            )
            .add_systems(
                FixedUpdate,
                (
                    (
                        views::begin_tick,
                        remotes::follow_standing,
                        views::follow_views,
                        collect::collect,
                    )
                        .chain()
                        .in_set(HeartbeatSystems::Collect),
                    (
                        motions::record_motions,
                        gather::gather,
                        snapshots::record_snapshots,
                        lines::write_lines,
                        gather::report,
                    )
                        .chain()
                        .in_set(SimSystems::Replicate),
                ),
            )
            .hash_part("dirty", |world, hasher| {
                world.resource::<DirtyMasks>().hash(hasher);
            })
            .hash_part("clients", |world, hasher| {
                for state in &world.resource::<Replicator>().clients {
                    hasher.write_u64(u64::from(state.client.0) << 8 | u64::from(state.epoch));
                    hasher.write_u64((state.links.len() as u64) << 32 | state.waiting.len() as u64);
                    hasher.write_u64(state.credit as u64);
                    hasher.write_u64(state.remotes.len() as u64);
                }
            });
        save::install(app);
    }
}
