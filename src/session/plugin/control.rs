//! Which client controls which object: a relationship between the object and the entity of the client's session.

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::relationship::Relationship;
use bevy_ecs::world::DeferredWorld;
use throng_net::{TokenUserData, USER_DATA_BYTES};
use tracing::{debug, warn};

use super::messages::AwaitingReconnect;
use crate::session::{SessionState, Sessions};
use crate::wire::ClientId;
use crate::world::{Object, is_spawn_pending};

/// Marks the entity of an open session. [`LoggedIn`](super::LoggedIn) and [`Sessions::client_entity`] return that entity. It stays
/// the same when the session is resumed over another connection; this component then has the new client id. It is despawned at
/// the end of the tick in which the session ends. Despawning it earlier ends the session, as [`disconnect`](super::disconnect)
/// with the reason `Kicked` does.
///
/// Insert components of your own on the entity for data of a session, as opposed to data of an object.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::SessionClient;
///
/// /// Data of a session, beside it.
/// #[derive(Component)]
/// struct Language(String);
///
/// fn count(sessions: Query<&Language, With<SessionClient>>) -> usize {
///     sessions.iter().filter(|language| language.0 == "es").count()
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, clone_behavior = Ignore)]
pub struct SessionClient(ClientId);

impl SessionClient {
    pub(super) const fn new(client: ClientId) -> Self {
        Self(client)
    }

    /// The id of the client, of its current connection.
    #[must_use]
    pub const fn client(self) -> ClientId {
        self.0
    }
}

/// The user data of the connect token with which the client of a session connected last; on the session's entity, beside
/// [`SessionClient`], if the token has any. When the session is resumed over another connection, it is that of the new token.
///
/// It has 256 bytes ([`USER_DATA_BYTES`](crate::session::USER_DATA_BYTES)), which the issuer of the token wrote: the format is that of
/// the game, and unused bytes at the end are zero. The client can neither read nor change it.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// # use throng::session::SessionUserData;
/// #[derive(Component)]
/// struct Character(u8);
///
/// /// The issuer writes the number of the chosen character into the first byte.
/// fn choose_character(
///     mut logins: MessageReader<LoggedIn>,
///     data: Query<&SessionUserData>,
///     mut commands: Commands,
/// ) {
///     for login in logins.read() {
///         if let Ok(data) = data.get(login.client_entity) {
///             let character = Character(data.as_bytes()[0]);
///             commands.entity(login.client_entity).insert(character);
///         }
///     }
/// }
/// ```
#[derive(Component, Clone, Debug, PartialEq, Eq)]
#[component(immutable, clone_behavior = Ignore)]
pub struct SessionUserData(TokenUserData);

impl SessionUserData {
    pub(super) const fn new(data: TokenUserData) -> Self {
        Self(data)
    }

    /// All of its bytes, with the zeros at the end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; USER_DATA_BYTES] {
        self.0.as_bytes()
    }

    /// The data, to be passed to other threads without a copy.
    #[must_use]
    pub const fn data(&self) -> &TokenUserData {
        &self.0
    }
}

/// The session that controls this object, by the entity that has its [`SessionClient`]. Spawned with or inserted on an object,
/// it gives the client control of it, in place of its previous object.
///
/// It is removed again if the entity is not an open session, or this one is not an object; the first case is logged as a
/// warning. [`control`] takes a client id and returns whether it succeeded. A refused spawn takes over nothing. An object that is
/// spawned with it for a session that has ended in the meantime is despawned in the same tick, since no client would ever
/// control it.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// # #[derive(Resource)]
/// # struct Town(Entity);
/// fn welcome(mut logins: MessageReader<LoggedIn>, town: Res<Town>, mut commands: Commands) {
///     for login in logins.read() {
///         let control = ControlledBy(login.client_entity);
///         commands.spawn((Player, login.player, control, InScene(town.0), Position::default()));
///     }
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = control_gained, on_discard = control_lost, clone_behavior = Ignore)]
pub struct ControlledBy(#[entities] pub Entity);

/// Implemented by hand: the hooks of the derived relationship would take the previous object from the client before the spawn of
/// the next one is accepted.
impl Relationship for ControlledBy {
    type RelationshipTarget = Controls;

    fn get(&self) -> Entity {
        self.0
    }

    fn from(entity: Entity) -> Self {
        Self(entity)
    }

    fn set_risky(&mut self, entity: Entity) {
        self.0 = entity;
    }
}

/// The object that a session controls; on the session's entity while it controls one. Removing it takes the control away.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::{Controls, SessionClient};
///
/// fn print_objects(sessions: Query<(&SessionClient, &Controls)>, positions: Query<&Position>) {
///     for (session, controls) in &sessions {
///         if let Ok(at) = positions.get(controls.entity()) {
///             println!("client {} is at {}", session.client().0, at.0);
///         }
///     }
/// }
/// ```
#[derive(Component, Debug, PartialEq, Eq)]
#[relationship_target(relationship = ControlledBy)]
pub struct Controls(Entity);

impl Controls {
    /// The controlled object.
    #[must_use]
    pub const fn entity(&self) -> Entity {
        self.0
    }
}

/// Marks an object that stays when the session that controls it ends: the object only loses its [`ControlledBy`]. Without this component,
/// it is despawned.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::OutlivesSession;
///
/// /// A hero stays in the town while its player is away.
/// fn keep_heroes(new: Query<Entity, Added<ControlledBy>>, mut commands: Commands) {
///     new.iter().for_each(|hero| _ = commands.entity(hero).insert(OutlivesSession));
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlivesSession;

/// Gives a client control of an object, in place of its previous one. `false` when either does not exist. For a client that has
/// resumed over another connection, its former id can be used as well ([`Sessions::current_id`]).
pub fn control(world: &mut World, client: ClientId, entity: Entity) -> bool {
    let sessions = world.get_resource::<Sessions>();
    let session = sessions.and_then(|sessions| sessions.client_entity(client));
    let Some(session) = session.filter(|_| world.get::<Object>(entity).is_some()) else {
        return false;
    };
    world.entity_mut(entity).insert(ControlledBy(session));
    true
}

/// The client that controls an object. O(1).
#[must_use]
pub fn controlling_client(world: &World, entity: Entity) -> Option<ClientId> {
    let ControlledBy(session) = *world.get::<ControlledBy>(entity)?;
    world.get::<SessionClient>(session).map(|of| of.client())
}

/// The client of an open session, by the entity of the session.
pub(super) fn client_of(world: &DeferredWorld, session: Entity) -> Option<ClientId> {
    let of = world.get::<SessionClient>(session)?;
    let sessions = world.get_resource::<Sessions>()?;
    let client = sessions.current_id(of.client());
    let open = sessions.get(client)?;
    (open.client_entity == session).then_some(client)
}

fn control_gained(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    // A pending spawn gives control when it is complete.
    if let Some(&ControlledBy(session)) = world.get::<ControlledBy>(entity)
        && !is_spawn_pending(&world, entity)
    {
        assign_control(&mut world, entity, session);
    }
}

/// Gives the client control of an object that was spawned with [`ControlledBy`], once the spawn is complete.
pub(super) fn control_on_spawn(spawned: On<Add<Object>>, mut world: DeferredWorld) {
    let entity = spawned.entity;
    if let Some(&ControlledBy(session)) = world.get::<ControlledBy>(entity)
        && !assign_control(&mut world, entity, session)
        && let Some(mut ended) = world.get_resource_mut::<EndedSessions>()
    {
        ended.entities.push(entity);
    }
}

/// What is despawned at the end of the tick.
#[derive(Resource, Debug, Default)]
pub(super) struct EndedSessions {
    /// The entities of sessions that ended, and objects that were spawned for them in this tick.
    pub entities: Vec<Entity>,
    /// Whether an object whose control was refused was reported.
    has_warned: bool,
}

pub(super) fn despawn_ended(mut ended: ResMut<EndedSessions>, mut commands: Commands) {
    for entity in ended.entities.drain(..) {
        commands.entity(entity).try_despawn();
    }
}

/// Gives a client control of an object in place of its previous one; `false` when the session or the object does not exist.
fn assign_control(world: &mut DeferredWorld, entity: Entity, session: Entity) -> bool {
    let Some(client) = client_of(world, session) else {
        let cause =
            "the entity of `ControlledBy` is not an open session; use `LoggedIn::client_entity`";
        return refuse_control(world, entity, session, cause);
    };
    if world.get::<Object>(entity).is_none() {
        let cause = "the entity is not an object of a scene; add `InScene(…)` and a `Position`";
        return refuse_control(world, entity, session, cause);
    }
    let Some(mut sessions) = world.get_resource_mut::<Sessions>() else {
        return false;
    };
    let open = sessions.get(client).copied();
    sessions.set_control(client, Some(entity));
    let before = open.and_then(|open| open.controlled_entity);
    let is_away = open.is_some_and(|open| open.state == SessionState::AwaitingReconnect);
    let mut commands = world.commands();
    if is_away {
        commands.entity(entity).try_insert(AwaitingReconnect);
    }
    if let Some(before) = before.filter(|&before| before != entity) {
        commands.entity(before).try_remove::<ControlledBy>();
    }
    commands.queue(move |world: &mut World| update_target(world, session));
    true
}

/// Removes an invalid [`ControlledBy`]. Logs a warning for the first one, because its client sees nothing.
fn refuse_control(
    world: &mut DeferredWorld,
    entity: Entity,
    session: Entity,
    cause: &'static str,
) -> bool {
    let ended = world.get_resource_mut::<EndedSessions>();
    if ended.is_some_and(|mut ended| !std::mem::replace(&mut ended.has_warned, true)) {
        warn!(%entity, %session, cause, "object not controlled (first case; further ones are logged at debug level)");
    } else {
        debug!(%entity, %session, cause, "object not controlled");
    }
    world.commands().entity(entity).try_remove::<ControlledBy>();
    false
}

/// Sets [`Controls`] of a session to the object that it controls.
fn update_target(world: &mut World, session: Entity) {
    let client = client_of(&DeferredWorld::from(&mut *world), session);
    let controlled = client.and_then(|client| {
        let open = world.resource::<Sessions>().get(client)?;
        open.controlled_entity
    });
    let Ok(mut found) = world.get_entity_mut(session) else {
        return;
    };
    match controlled {
        None => {
            if let Some(mut controls) = found.get_mut::<Controls>() {
                // The removal must not take the object from its next client.
                controls.0 = Entity::PLACEHOLDER;
            }
            found.remove::<Controls>();
        }
        Some(entity) => match found.get_mut::<Controls>() {
            Some(mut controls) => controls.0 = entity,
            None => {
                found.insert(Controls(entity));
            }
        },
    }
}

fn control_lost(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let Some(&ControlledBy(session)) = world.get::<ControlledBy>(entity) else {
        return;
    };
    if let Some(client) = client_of(&world, session)
        && let Some(mut sessions) = world.get_resource_mut::<Sessions>()
        && sessions
            .get(client)
            .is_some_and(|open| open.controlled_entity == Some(entity))
    {
        sessions.set_control(client, None);
        world
            .commands()
            .queue(move |world: &mut World| update_target(world, session));
    }
    if world.get::<AwaitingReconnect>(entity).is_some() {
        world
            .commands()
            .entity(entity)
            .try_remove::<AwaitingReconnect>();
    }
}
