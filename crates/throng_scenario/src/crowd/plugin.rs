//! The plugin of crowds and its systems.

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, FixedUpdate};
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;

use super::arrivals::{ArrivalsPlugin, queue_synthetic_parties};
use super::attribute_changes::change_attributes;
use super::attributes;
use super::authenticator::CrowdAuthenticator;
use super::behaviour::{Behaviour, BehaviourState, think};
use super::clients::{self, SyntheticClients};
use super::crowds::{CrowdId, CrowdMember, Crowds};
use super::network_conditions::CrowdNetworkConditions;
use super::party_queueing::queue_crowd_parties;
use super::possession::despawn_orphaned_characters;
use super::routes::follow_routes;
use super::spawn::spawn_member;
use throng::instance::InstanceSystems;
use throng::memory::MemoryAppExt;
use throng::movement::MovementPlugin;
use throng::session::{LoggedIn, control};
use throng::sim::{HashAppExt, SimSystems};
use throng::store::{PlayerLoaded, PlayerStore};
use throng::sync::SyncPlugin;
use throng::wire::ClientId;
use throng::world::{ObjectDespawned, ObjectHashAppExt, PlayerId, WorldError};

/// Synthetic crowds. Adds [`MovementPlugin`] and [`SyncPlugin`], and their dependencies, when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrowdPlugin;

throng::sim::sim_plugin!(CrowdPlugin, (MovementPlugin, SyncPlugin, ArrivalsPlugin));

impl CrowdPlugin {
    fn add_to(app: &mut App) {
        attributes::register(app);
        app.init_resource::<Crowds>()
            .init_resource::<SyntheticClients>()
            .init_resource::<CrowdNetworkConditions>()
            .init_resource::<CrowdAuthenticator>()
            .count_memory::<SyntheticClients>("crowd")
            .count_memory::<Crowds>("crowd")
            .add_systems(
                FixedPreUpdate,
                (
                    clients::log_players_in_and_out,
                    clients::send_client_messages.run_if(crowds_are_active),
                    clients::limit_client_bandwidth,
                )
                    .chain(),
            )
            .add_systems(FixedPostUpdate, clients::receive_client_packets)
            .configure_sets(FixedUpdate, CrowdSystems.after(InstanceSystems))
            .add_systems(
                FixedUpdate,
                (
                    (
                        remove_despawned_members,
                        despawn_orphaned_characters,
                        spawn_characters,
                        follow_routes,
                    )
                        .chain(),
                    (think, change_attributes)
                        .chain()
                        .run_if(crowds_are_active)
                        .before(queue_synthetic_parties),
                )
                    .chain()
                    .in_set(CrowdSystems)
                    .in_set(SimSystems::Think),
            )
            .add_systems(
                FixedUpdate,
                queue_crowd_parties
                    .run_if(crowds_are_active)
                    .after(queue_synthetic_parties)
                    .in_set(CrowdSystems)
                    .in_set(SimSystems::Think),
            )
            .hash_component::<Behaviour>("behaviour")
            .hash_component::<BehaviourState>("mind")
            .hash_part("crowds", |world, hasher| {
                world.resource::<Crowds>().hash(world, hasher);
                world.resource::<SyntheticClients>().hash(hasher);
                world.resource::<CrowdNetworkConditions>().hash(hasher);
                world.resource::<CrowdAuthenticator>().hash(hasher);
            });
    }
}

/// All systems of crowds in `Think`; scripts run before them.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrowdSystems;

fn crowds_are_active(crowds: Res<Crowds>) -> bool {
    !crowds.is_halted()
}

/// Removes despawned members from the lists.
fn remove_despawned_members(
    mut despawned: MessageReader<ObjectDespawned>,
    mut crowds: ResMut<Crowds>,
    members: Query<&CrowdMember>,
) {
    let mut any = false;
    for message in despawned.read() {
        any |= !members.contains(message.entity);
    }
    if any {
        for crowd in &mut crowds.crowds {
            crowd.members.retain(|&entity| members.contains(entity));
        }
    }
}

/// Spawns the character of each player that logged in; with a player store, when its record is loaded.
fn spawn_characters(
    world: &mut World,
    mut logged_in: Local<MessageCursor<LoggedIn>>,
    mut loaded: Local<MessageCursor<PlayerLoaded>>,
) {
    let new = logged_in.read(world.resource::<Messages<LoggedIn>>());
    let mut new: Vec<(ClientId, PlayerId)> = new.map(|new| (new.client, new.player)).collect();
    let store = world.get_resource::<PlayerStore>();
    if store.is_some_and(PlayerStore::has_store) {
        let records = loaded.read(world.resource::<Messages<PlayerLoaded>>());
        new.clear();
        new.extend(records.map(|new| (new.client, new.record.player)));
    }
    for (client, player) in new {
        let Some(crowd) = world.resource::<SyntheticClients>().crowd_of(client) else {
            continue;
        };
        if let Err(error) = spawn_character(world, crowd, client, player) {
            tracing::warn!(player = player.0, %error, "synthetic player not spawned");
        }
    }
}

fn spawn_character(
    world: &mut World,
    crowd: CrowdId,
    client: ClientId,
    player: PlayerId,
) -> Result<(), WorldError> {
    let entity = spawn_member(world, crowd, player.0, player)?;
    control(world, client, entity);
    Ok(())
}
