//! Which client controls which object.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use tracing::debug;

use super::messages::AwaitingReconnect;
use crate::session::{SessionState, Sessions};
use crate::wire::ClientId;
use crate::world::{Object, is_spawn_pending};

/// The client that controls this object. Spawned with or inserted on an object, it gives the client control of it, in place of
/// its previous object. It is removed again if the session or the object does not exist. [`control`] does the same and returns
/// whether it succeeded. An object that is spawned with it for a client whose session has ended in the meantime is despawned in
/// the same tick, since no client would ever control it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = control_gained, on_discard = control_lost, clone_behavior = Ignore)]
pub struct ControlledBy(ClientId);

impl ControlledBy {
    /// Controlled by this client, from the insert command on.
    #[must_use]
    pub const fn new(client: ClientId) -> Self {
        Self(client)
    }

    /// The client that controls the object.
    #[must_use]
    pub const fn client(self) -> ClientId {
        self.0
    }
}

/// Gives a client control of an object, in place of its previous one. `false` when either does not exist. For a client that has
/// resumed over another connection, its former id can be used as well ([`Sessions::current_id`]).
pub fn control(world: &mut World, client: ClientId, entity: Entity) -> bool {
    let sessions = world.get_resource::<Sessions>();
    let client = sessions.map_or(client, |sessions| sessions.current_id(client));
    let is_open = sessions.is_some_and(|sessions| sessions.get(client).is_some());
    if !is_open || world.get::<Object>(entity).is_none() {
        return false;
    }
    world.entity_mut(entity).insert(ControlledBy(client));
    true
}

fn control_gained(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let Some(&ControlledBy(client)) = world.get::<ControlledBy>(entity) else {
        return;
    };
    if replace_client_id(&mut world, entity, client) {
        return;
    }
    if !is_spawn_pending(&world, entity) {
        assign_control(&mut world, entity, client);
    }
}

/// Replaces a former client id with the current one; the insert does the rest. Returns whether it did.
fn replace_client_id(world: &mut DeferredWorld, entity: Entity, client: ClientId) -> bool {
    let sessions = world.get_resource::<Sessions>();
    let now = sessions.map_or(client, |sessions| sessions.current_id(client));
    if now != client {
        let renamed = ControlledBy(now);
        world.commands().entity(entity).try_insert(renamed);
    }
    now != client
}

/// Gives the client control of an object that was spawned with [`ControlledBy`], once the spawn is complete.
pub(super) fn control_on_spawn(spawned: On<Add<Object>>, mut world: DeferredWorld) {
    let entity = spawned.entity;
    let Some(&ControlledBy(client)) = world.get::<ControlledBy>(entity) else {
        return;
    };
    if replace_client_id(&mut world, entity, client) {
        return;
    }
    if !assign_control(&mut world, entity, client)
        && let Some(mut uncontrolled) = world.get_resource_mut::<UncontrolledObjects>()
    {
        uncontrolled.0.push(entity);
    }
}

/// Objects that were spawned in this tick for clients whose session has ended.
#[derive(Resource, Debug, Default)]
pub(super) struct UncontrolledObjects(Vec<Entity>);

pub(super) fn despawn_uncontrolled(
    mut uncontrolled: ResMut<UncontrolledObjects>,
    mut commands: Commands,
) {
    for entity in uncontrolled.0.drain(..) {
        commands.entity(entity).try_despawn();
    }
}

/// Gives a client control of an object in place of its previous one; `false` when the session or the object does not exist.
fn assign_control(world: &mut DeferredWorld, entity: Entity, client: ClientId) -> bool {
    let is_object = world.get::<Object>(entity).is_some();
    let sessions = world.get_resource_mut::<Sessions>();
    let before = sessions.filter(|_| is_object).and_then(|mut sessions| {
        let before = sessions.get(client)?.controlled_entity;
        sessions.set_control(client, Some(entity));
        Some(before)
    });
    let session = world.get_resource::<Sessions>();
    let session = session.and_then(|sessions| sessions.get(client));
    if before.is_some()
        && session.is_some_and(|session| session.state == SessionState::AwaitingReconnect)
    {
        world
            .commands()
            .entity(entity)
            .try_insert(AwaitingReconnect);
    }
    let loser = match before {
        Some(Some(before)) if before != entity => before,
        Some(_) => return true,
        None => {
            debug!(
                client = client.0,
                ?entity,
                "control refused: no such session, or the entity is not an object"
            );
            entity
        }
    };
    world.commands().entity(loser).try_remove::<ControlledBy>();
    loser != entity
}

fn control_lost(mut world: DeferredWorld, context: HookContext) {
    let Some(&ControlledBy(client)) = world.get::<ControlledBy>(context.entity) else {
        return;
    };
    if let Some(mut sessions) = world.get_resource_mut::<Sessions>()
        && sessions
            .get(client)
            .is_some_and(|session| session.controlled_entity == Some(context.entity))
    {
        sessions.set_control(client, None);
    }
    if world.get::<AwaitingReconnect>(context.entity).is_some() {
        world
            .commands()
            .entity(context.entity)
            .try_remove::<AwaitingReconnect>();
    }
}
