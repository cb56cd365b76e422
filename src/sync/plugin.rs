//! The replication plugin.
//!
//! ```text
//! order, settings, stats ─ audience ─▶ attributes ─▶ replicate, sent_values, save_request ─▶ dirty ─▶ replicator
//!     ─▶ clients ─▶ views, unseen, foreign_members, collect, motions, announcements, snapshots, client_updates, save ─▶ the plugin
//! ```
//! | file | contents |
//! |---|---|
//! | `order`, `settings`, `stats` | the sets of replication in a tick; settings; counters |
//! | `audience`, `audiences` | the relation of a client to an object; custom audiences |
//! | `attributes`, `replicate` | the table of attributes; registration of components |
//! | `sent_values` | the values of an object that clients have |
//! | `dirty` | changes of each object since it was last collected |
//! | `replicator`, `clients` | state between ticks; which client each state belongs to |
//! | `views`, `unseen` | what each client sees, and which unseen objects it receives |
//! | `foreign_members` | members of parties that are not in this world |
//! | `announce` | announcements of the game |
//! | `collect`, `motions`, `announcements`, `snapshots` | messages, each encoded once for all receivers |
//! | `messages` | encoding of messages with attributes |
//! | `client_updates` | the update of each client |
//! | `save_request`, `save` | requests to save objects |
//! | `compare`, `pending` | compares a client's mirror with the server; whether clients still have to be sent anything |

mod announce;
mod announcements;
mod attributes;
mod audience;
mod audiences;
mod client_updates;
mod clients;
mod collect;
mod compare;
mod dirty;
mod foreign_members;
mod messages;
mod motions;
mod order;
mod pending;
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
mod unseen;
mod views;

pub use announce::{AnnouncementRequest, AnnouncementScope, AnnouncementSent};
pub use attributes::{AttributeSpec, Attributes, RegisterError, SendRate};
pub use audience::Audience;
pub use audiences::{AudienceAppExt, AudienceError};
pub use compare::{compare_mirror, compare_mirror_exactly};
pub use dirty::{DirtyMasks, MaskSlot};
pub use foreign_members::{FOREIGN_SCENE, ForeignMembers, party_values};
pub use order::SyncSystems;
pub use pending::{PendingReplication, pending_replication};
pub use replicate::{Replicate, ReplicateAppExt};
pub use save::{SaveFailed, full_save_request, save_all};
pub use save_request::SaveRequest;
pub use settings::SyncSettings;
pub use stats::SyncStats;
/// Implements [`Replicate`] for a component.
pub use throng_derive::Replicate;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use self::audiences::Audiences;
use self::collect::CollectBuffers;
use self::replicator::Replicator;
use self::sent_values::SentValues;
use crate::aoi::AoiPlugin;
use crate::memory::MemoryAppExt;
use crate::outbox::OutboxPlugin;
use crate::session::SessionPlugin;
use crate::sim::{CounterDelta, HashAppExt, SimSystems, WorkAppExt};
use crate::world::{Object, SimScene};

/// Replication: sends each client the objects in its view, their motion and their attributes.
///
/// Register a component with [`ReplicateAppExt::replicate`]; from then on clients receive its changes, in the tick in which a system
/// makes them. Its [`Audience`] decides which clients these are. A message that is not a state, such as a chat line, is an
/// [`AnnouncementRequest`]. Motion needs no registration.
///
/// The systems are the sets of [`SyncSystems`], in [`SimSystems::Replicate`]: changes that are made before them are sent in the same
/// tick. [`SyncSettings`] has the byte budget of a client, [`SyncStats`] the counters. Cost: a few nanoseconds for each client and object
/// in its view. Adds [`AoiPlugin`], [`SessionPlugin`] and [`OutboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncPlugin;

crate::sim::sim_plugin!(SyncPlugin, (AoiPlugin, SessionPlugin, OutboxPlugin));

impl SyncPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<SyncSettings>();
        app.register_required_components::<Object, MaskSlot>();
        app.register_required_components::<Object, SentValues>();
        app.register_required_components::<SimScene, MaskSlot>();
        app.register_required_components::<SimScene, SentValues>();
        app.init_resource::<Attributes>()
            .init_resource::<Audiences>()
            .init_resource::<DirtyMasks>()
            .init_resource::<SyncSettings>()
            .init_resource::<SyncStats>()
            .init_resource::<Replicator>()
            .init_resource::<CollectBuffers>()
            .init_resource::<ForeignMembers>()
            .count_memory::<Replicator>("sync")
            .count_memory::<DirtyMasks>("sync")
            .count_memory::<CollectBuffers>("sync")
            .count_memory::<ForeignMembers>("sync")
            .count_component_memory::<SentValues>("sync")
            .add_counted_message::<AnnouncementRequest>("sync")
            .add_counted_message::<AnnouncementSent>("sync")
            .configure_sets(
                FixedUpdate,
                (
                    SyncSystems::Mark,
                    SyncSystems::UpdateClients,
                    SyncSystems::Collect,
                    SyncSystems::Save,
                    SyncSystems::Encode,
                    SyncSystems::Assemble,
                )
                    .chain()
                    .in_set(SimSystems::Replicate),
            )
            .add_systems(
                FixedUpdate,
                (
                    (
                        views::begin_tick,
                        foreign_members::update_foreign_members,
                        unseen::update_affiliations,
                        views::update_client_views,
                    )
                        .chain()
                        .in_set(SyncSystems::UpdateClients),
                    collect::collect.in_set(SyncSystems::Collect),
                    (
                        motions::encode_motions,
                        announcements::encode_announcements,
                        snapshots::encode_snapshots,
                    )
                        .chain()
                        .in_set(SyncSystems::Encode),
                    (
                        client_updates::write_client_updates,
                        announcements::report_announcements,
                    )
                        .chain()
                        .in_set(SyncSystems::Assemble),
                ),
            )
            .add_cost_estimator({
                let (mut messages, mut bytes) = (CounterDelta::default(), CounterDelta::default());
                move |world, costs| {
                    let SyncStats { sent, links, .. } = *world.resource::<SyncStats>();
                    let sent = sent.total();
                    links * u64::from(costs.known_object_ns)
                        + messages.update(sent.messages) * u64::from(costs.sent_message_ns)
                        + bytes.update(sent.bytes) * u64::from(costs.sent_byte_ns)
                }
            })
            .hash_part("dirty", |world, hasher| {
                world.resource::<DirtyMasks>().hash(hasher);
            })
            .hash_part("clients", |world, hasher| {
                world.resource::<Replicator>().hash(hasher);
            });
        save::install(app);
    }
}
