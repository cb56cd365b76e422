//! Crowds in the tick.

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate, FixedUpdate};
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;

use super::activity::act;
use super::arrivals::{ArrivalsPlugin, arrive};
use super::attributes;
use super::authenticator::CrowdAuthenticator;
use super::behaviour::{Behaviour, BehaviourState, think};
use super::clients::{self, SyntheticClients};
use super::crowds::{CrowdId, CrowdMember, Crowds};
use super::line::CrowdNetworkConditions;
use super::lobby::queue_up;
use super::possession::clear_bodies;
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

/// Synthetic crowds. Adds [`MovementPlugin`] and [`SyncPlugin`], and all that they need, when they are missing.
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
                    (clients::churn, clients::send).chain().run_if(is_awake),
                    clients::model_lines,
                )
                    .chain(),
            )
            .add_systems(FixedPostUpdate, clients::receive)
            .configure_sets(FixedUpdate, CrowdSystems.after(InstanceSystems))
            .add_systems(
                FixedUpdate,
                (
                    (follow_members, clear_bodies, welcome, follow_routes).chain(),
                    (think, act).chain().run_if(is_awake).before(arrive),
                )
                    .chain()
                    .in_set(CrowdSystems)
                    .in_set(SimSystems::Think),
            )
            .add_systems(
                FixedUpdate,
                queue_up
                    .run_if(is_awake)
                    .after(arrive)
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

/// All that crowds do in `Think`; scripts run before it.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrowdSystems;

fn is_awake(crowds: Res<Crowds>) -> bool {
    !crowds.resting
}

/// Takes those who are gone off the lists.
fn follow_members(
    mut gone: MessageReader<ObjectDespawned>,
    mut crowds: ResMut<Crowds>,
    members: Query<&CrowdMember>,
) {
    let mut any = false;
    for message in gone.read() {
        any |= !members.contains(message.entity);
    }
    if any {
        for crowd in &mut crowds.all {
            crowd.members.retain(|&entity| members.contains(entity));
        }
    }
}

/// Gives every player that logged in a character: once its record is here, if players persist.
fn welcome(
    world: &mut World,
    mut logged_in: Local<MessageCursor<LoggedIn>>,
    mut loaded: Local<MessageCursor<PlayerLoaded>>,
) {
    let new = logged_in.read(world.resource::<Messages<LoggedIn>>());
    let mut new: Vec<(ClientId, PlayerId)> = new.map(|new| (new.client, new.player)).collect();
    let directory = world.get_resource::<PlayerStore>();
    if directory.is_some_and(PlayerStore::has_store) {
        let records = loaded.read(world.resource::<Messages<PlayerLoaded>>());
        new.clear();
        new.extend(records.map(|new| (new.client, new.record.player)));
    }
    for (client, player) in new {
        let Some(crowd) = world.resource::<SyntheticClients>().crowd_of(client) else {
            continue;
        };
        if let Err(error) = give_character(world, crowd, client, player) {
            tracing::warn!(player = player.0, %error, "synthetic player not spawned");
        }
    }
}

fn give_character(
    world: &mut World,
    crowd: CrowdId,
    client: ClientId,
    player: PlayerId,
) -> Result<(), WorldError> {
    let entity = spawn_member(world, crowd, player.0, player)?;
    control(world, client, entity);
    Ok(())
}
