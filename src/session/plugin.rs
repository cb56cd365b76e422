//! Sessions in the tick: the inbox is drained, logins and logouts take effect, inputs are passed on.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::sessions::{LogoutReason, Sessions};
use crate::inbox::{Inbox, InboxPlugin, InboxSettings};
use crate::outbox::ClientBehind;
use crate::sim::{self, HashAppExt, SimSystems, SimTick};
use crate::wire::{ClientId, ClientMessage};
use crate::world::{MoveInput, Object, PlayerId, Unplaced, WorldPlugin, despawn_object};

/// Client life cycle. Adds [`WorldPlugin`] and [`InboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionPlugin;

impl Plugin for SessionPlugin {
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if !sim::begin::<Self, _>(app, (WorldPlugin, InboxPlugin)) {
            return;
        }
        #[cfg(feature = "reflect")]
        app.register_type::<SessionSettings>()
            .register_type::<SessionStats>();
        app.init_resource::<SessionSettings>()
            .init_resource::<Sessions>()
            .init_resource::<SessionStats>()
            .init_resource::<UncontrolledObjects>()
            .add_observer(control_when_placed)
            .add_message::<LoggedIn>()
            .add_message::<LoggedOut>()
            .add_message::<ClientBehind>()
            .add_systems(
                FixedUpdate,
                (drop_behind, drain_inbox)
                    .chain()
                    .in_set(SimSystems::Ingest),
            )
            .add_systems(FixedUpdate, despawn_uncontrolled.in_set(SimSystems::Last))
            .hash_part("sessions", |world, hasher| {
                for (client, session) in world.resource::<Sessions>().iter() {
                    hasher.write_u64(u64::from(client.0) << 16 | u64::from(session.inputs));
                    hasher.write_u64(session.player.map_or(u64::MAX, |player| player.0));
                    let object = session
                        .controls
                        .and_then(|entity| world.get::<Object>(entity));
                    hasher.write_u64(object.map_or(u64::MAX, Object::key));
                }
            });
    }

    fn finish(&self, app: &mut App) {
        sim::finish(app);
    }
}

/// How many sessions there may be.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionSettings {
    /// Sessions that may be open; further connections are refused.
    pub sessions_max: u32,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            sessions_max: 20_000,
        }
    }
}

/// Logins, logouts and refusals since the app began.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct SessionStats {
    /// Players that logged in.
    pub logins: u64,
    /// Players whose session ended.
    pub logouts: u64,
    /// Connections refused, and logins on a session that has a player already.
    pub refused: u64,
    /// The most sessions that were open at once.
    pub peak: usize,
    /// Messages that did not decode, or came from nobody.
    pub bad_messages: u64,
}

/// A player logged in; the game gives it an object and [`control`] of it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The session by which it plays.
    pub client: ClientId,
    /// The player that plays by it from now on.
    pub player: PlayerId,
}

/// A player's session ended, and its object was despawned.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOut {
    /// The session that was.
    pub client: ClientId,
    /// The player whose session it was.
    pub player: PlayerId,
    /// The object that it controlled, which is gone.
    pub entity: Option<Entity>,
    /// What ended it.
    pub reason: LogoutReason,
}

/// Which client controls this object. Spawned or inserted with an object it gives the client control of it, in place of the
/// object that it had; where there is no such session, or no object, it is taken off again. [`control`] does the same and says
/// whether. An object that is spawned with it for a client that has gone meanwhile goes with the tick, since nobody would ever
/// control it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = control_gained, on_discard = control_lost, clone_behavior = Ignore)]
pub struct ControlledBy(ClientId);

impl ControlledBy {
    /// By this client, from the command on with which it is inserted.
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

/// Gives a client control of an object, in place of the one it had. `false` when either does not exist.
pub fn control(world: &mut World, client: ClientId, entity: Entity) -> bool {
    let sessions = world.get_resource::<Sessions>();
    let is_open = sessions.is_some_and(|sessions| sessions.get(client).is_some());
    if !is_open || world.get::<Object>(entity).is_none() {
        return false;
    }
    world.entity_mut(entity).insert(ControlledBy(client));
    true
}

/// Ends a session; the object it controls is despawned, and [`LoggedOut`] tells of its player: matchmaking voids the ticket
/// that it waits with by that. Nothing happens when there is no such session.
pub fn disconnect(world: &mut World, client: ClientId, reason: LogoutReason) {
    let Some(session) = world
        .get_resource_mut::<Sessions>()
        .and_then(|mut sessions| sessions.close(client))
    else {
        return;
    };
    if let Some(mut inbox) = world.get_resource_mut::<Inbox>() {
        inbox.forget(client);
    }
    // It may be gone already, and then there is nothing left to do.
    let entity = session
        .controls
        .filter(|&entity| despawn_object(world, entity).is_ok());
    if let Some(player) = session.player {
        world.resource_mut::<SessionStats>().logouts += 1;
        world.write_message(LoggedOut {
            client,
            player,
            entity,
            reason,
        });
    }
}

fn control_gained(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let Some(&ControlledBy(client)) = world.get::<ControlledBy>(entity) else {
        return;
    };
    if world.get::<Unplaced>(entity).is_none() {
        take_control(&mut world, entity, client);
    }
}

/// Who was spawned with [`ControlledBy`] and has its place is controlled from now on.
fn control_when_placed(placed: On<Remove<Unplaced>>, mut world: DeferredWorld) {
    let entity = placed.entity;
    let Some(&ControlledBy(client)) = world.get::<ControlledBy>(entity) else {
        return;
    };
    if world.get::<Object>(entity).is_some()
        && !take_control(&mut world, entity, client)
        && let Some(mut uncontrolled) = world.get_resource_mut::<UncontrolledObjects>()
    {
        uncontrolled.0.push(entity);
    }
}

/// Objects that were spawned in this tick for clients that had gone.
#[derive(Resource, Debug, Default)]
struct UncontrolledObjects(Vec<Entity>);

fn despawn_uncontrolled(mut uncontrolled: ResMut<UncontrolledObjects>, mut commands: Commands) {
    for entity in uncontrolled.0.drain(..) {
        commands.entity(entity).try_despawn();
    }
}

/// Gives a client control of an object in place of the one that it had; `false` when there is no such session or object.
fn take_control(world: &mut DeferredWorld, entity: Entity, client: ClientId) -> bool {
    let is_object = world.get::<Object>(entity).is_some();
    let sessions = world.get_resource_mut::<Sessions>();
    let before = sessions.filter(|_| is_object).and_then(|mut sessions| {
        let before = sessions.get(client)?.controls;
        sessions.set_control(client, Some(entity));
        Some(before)
    });
    let loser = match before {
        Some(Some(before)) if before != entity => before,
        Some(_) => return true,
        None => {
            debug!(
                client = client.0,
                ?entity,
                "controlled by nobody: no such session, or no object"
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
            .is_some_and(|session| session.controls == Some(context.entity))
    {
        sessions.set_control(client, None);
    }
}

/// Ends the sessions of clients that the outbox gave up.
fn drop_behind(world: &mut World, mut cursor: Local<MessageCursor<ClientBehind>>) {
    let behind: Vec<ClientBehind> = cursor
        .read(world.resource::<Messages<ClientBehind>>())
        .copied()
        .collect();
    for ClientBehind { client } in behind {
        disconnect(world, client, LogoutReason::Behind);
    }
}

fn drain_inbox(world: &mut World) {
    let tick = *world.resource::<SimTick>();
    for _ in 0..world.resource::<InboxSettings>().messages_per_tick_max {
        let Some(inbound) = world.resource_mut::<Inbox>().take(tick) else {
            break;
        };
        let mut sessions = world.resource_mut::<Sessions>();
        if !sessions.settle(inbound.client, inbound.number) {
            world.resource_mut::<Inbox>().forget(inbound.client);
        }
        if let Err(reason) = handle(world, inbound.client, &inbound.bytes) {
            debug!(client = inbound.client.0, reason, "message refused");
            world.resource_mut::<SessionStats>().bad_messages += 1;
        }
    }
    while let Some((client, number)) = world.resource_mut::<Inbox>().take_refused() {
        if !world.resource_mut::<Sessions>().settle(client, number) {
            world.resource_mut::<Inbox>().forget(client);
        }
    }
    let open = world.resource::<Sessions>().len();
    let mut stats = world.resource_mut::<SessionStats>();
    stats.peak = stats.peak.max(open);
}

fn handle(world: &mut World, client: ClientId, bytes: &[u8]) -> Result<(), &'static str> {
    let message = ClientMessage::decode(bytes).map_err(|_| "does not decode")?;
    let session = *world
        .resource::<Sessions>()
        .get(client)
        .ok_or("no such session")?;
    match message {
        ClientMessage::Login { player } => log_in(world, client, PlayerId(player)),
        _ if session.player.is_none() => Err("not logged in"),
        ClientMessage::Logout => {
            disconnect(world, client, LogoutReason::Requested);
            Ok(())
        }
        ClientMessage::Move { to, heading } => {
            input(world, session.controls, Some(to.metres()), heading)
        }
        ClientMessage::Face { heading } => input(world, session.controls, None, heading),
    }
}

fn log_in(world: &mut World, client: ClientId, player: PlayerId) -> Result<(), &'static str> {
    let before = world.resource::<Sessions>().of(player);
    if world
        .resource::<Sessions>()
        .get(client)
        .is_some_and(|session| session.player.is_some())
    {
        world.resource_mut::<SessionStats>().refused += 1;
        return Err("logged in already");
    }
    if let Some(before) = before {
        disconnect(world, before, LogoutReason::Replaced);
    }
    world.resource_mut::<Sessions>().log_in(client, player);
    world.resource_mut::<SessionStats>().logins += 1;
    world.write_message(LoggedIn { client, player });
    Ok(())
}

fn input(
    world: &mut World,
    controls: Option<Entity>,
    to: Option<glam::Vec2>,
    heading: u8,
) -> Result<(), &'static str> {
    // Between login and spawn a client has nothing to move; that is nobody's mistake.
    if let Some(entity) = controls {
        world.write_message(MoveInput {
            entity,
            to,
            heading,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::*;
    use crate::inbox::offer;
    use crate::world::{KindId, Player, Players, Position, SceneSpec, open_scene, spawn_object};

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, SessionPlugin));
        sim::clock::one_tick_an_update(&mut app);
        app
    }

    fn connect(app: &mut App) -> ClientId {
        super::super::connect(app.world_mut(), true).unwrap()
    }

    fn send(app: &mut App, client: ClientId, message: ClientMessage) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        send_bytes(app, client, &bytes);
    }

    fn send_bytes(app: &mut App, client: ClientId, bytes: &[u8]) {
        offer(app.world_mut(), client, bytes).unwrap();
    }

    fn object(app: &mut App) -> Entity {
        let scene = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
        spawn_object(app.world_mut(), scene, KindId(0), Vec2::ONE, ()).unwrap()
    }

    fn written<M: Message + Copy>(app: &App) -> Vec<M> {
        app.world()
            .resource::<Messages<M>>()
            .iter_current_update_messages()
            .copied()
            .collect()
    }

    #[test]
    fn a_login_through_the_inbox_is_announced_and_moves_reach_the_own_object() {
        let mut app = app();
        let client = connect(&mut app);
        send(&mut app, client, ClientMessage::Login { player: 7 });
        app.update();
        assert_eq!(
            written::<LoggedIn>(&app),
            [LoggedIn {
                client,
                player: PlayerId(7)
            }]
        );
        let entity = object(&mut app);
        assert!(control(app.world_mut(), client, entity));
        send(
            &mut app,
            client,
            ClientMessage::move_to(Vec2::new(2.0, 3.0), 9),
        );
        app.update();
        let expected = MoveInput {
            entity,
            to: Some(Vec2::new(2.0, 3.0)),
            heading: 9,
        };
        assert_eq!(written::<MoveInput>(&app), [expected]);
    }

    /// A game as most are: whoever logs in gets an object.
    fn welcomed() -> (App, Entity) {
        let mut app = app();
        let spec = SceneSpec {
            max_objects: 2,
            ..SceneSpec::default()
        };
        let scene = open_scene(app.world_mut(), spec, ()).unwrap();
        let welcome = move |mut new: MessageReader<LoggedIn>, mut commands: Commands| {
            for &LoggedIn { client, player } in new.read() {
                let place = (Object::in_scene(scene), Position(Vec2::ONE));
                commands.spawn((Player, player, ControlledBy::new(client), place));
            }
        };
        app.add_systems(FixedUpdate, welcome.in_set(SimSystems::Think));
        (app, scene)
    }

    fn objects(app: &mut App) -> usize {
        let mut objects = app.world_mut().query::<&Object>();
        objects.iter(app.world()).count()
    }

    #[test]
    fn an_object_for_a_client_that_has_gone_meanwhile_goes_with_the_tick() {
        let (mut app, _) = welcomed();
        for player in 0..5 {
            let client = connect(&mut app);
            send(&mut app, client, ClientMessage::Login { player });
            send(&mut app, client, ClientMessage::Logout);
            app.update();
            assert_eq!(written::<LoggedIn>(&app).len(), 1);
            assert_eq!(objects(&mut app), 0, "player {player}");
        }
        let client = connect(&mut app);
        send(&mut app, client, ClientMessage::Login { player: 9 });
        app.update();
        let session = app.world().resource::<Sessions>().get(client);
        let controls = session.and_then(|session| session.controls);
        assert_eq!((objects(&mut app), controls.is_some()), (1, true));
    }

    #[test]
    fn who_finds_no_place_takes_neither_control_nor_name_from_who_has_one() {
        let (mut app, scene) = welcomed();
        let client = connect(&mut app);
        send(&mut app, client, ClientMessage::Login { player: 7 });
        app.update();
        let controls = |app: &App| {
            let sessions = app.world().resource::<Sessions>();
            sessions.get(client).and_then(|session| session.controls)
        };
        let first = controls(&app).unwrap();
        let outside = (Object::in_scene(scene), Position(Vec2::splat(-5.0)));
        let again = (Player, PlayerId(7), ControlledBy::new(client));
        let refused = app.world_mut().spawn((again, outside)).id();
        app.update();
        assert!(app.world().get_entity(refused).is_err());
        assert_eq!(controls(&app), Some(first));
        let players = app.world().resource::<Players>();
        assert_eq!(players.entity(PlayerId(7)), Some(first));
        assert!(app.world().get::<ControlledBy>(first).is_some());

        // One that finds a place takes both.
        let inside = (Object::in_scene(scene), Position(Vec2::ONE));
        let second = app.world_mut().spawn((again, inside)).id();
        app.update();
        assert_eq!(controls(&app), Some(second));
        let players = app.world().resource::<Players>();
        assert_eq!(players.entity(PlayerId(7)), Some(second));
        assert!(app.world().get::<ControlledBy>(first).is_none());
    }

    #[test]
    fn nothing_but_an_object_is_controlled() {
        let mut app = app();
        let client = connect(&mut app);
        let thing = app.world_mut().spawn(ControlledBy::new(client)).id();
        app.update();
        assert!(app.world().get::<ControlledBy>(thing).is_none());
        let session = app.world().resource::<Sessions>().get(client);
        assert_eq!(session.and_then(|session| session.controls), None);
    }

    #[test]
    fn a_second_login_of_a_player_ends_the_first_session_and_its_object() {
        let mut app = app();
        let (first, second) = (connect(&mut app), connect(&mut app));
        send(&mut app, first, ClientMessage::Login { player: 7 });
        app.update();
        let entity = object(&mut app);
        control(app.world_mut(), first, entity);
        send(&mut app, second, ClientMessage::Login { player: 7 });
        app.update();
        let gone = LoggedOut {
            client: first,
            player: PlayerId(7),
            entity: Some(entity),
            reason: LogoutReason::Replaced,
        };
        assert_eq!(written::<LoggedOut>(&app), [gone]);
        assert!(app.world().get_entity(entity).is_err());
        let sessions = app.world().resource::<Sessions>();
        assert_eq!(
            (sessions.len(), sessions.of(PlayerId(7))),
            (1, Some(second))
        );
    }

    #[test]
    fn a_client_that_the_outbox_gave_up_loses_its_session() {
        let mut app = app();
        let client = connect(&mut app);
        send(&mut app, client, ClientMessage::Login { player: 7 });
        app.update();
        app.world_mut().write_message(ClientBehind { client });
        app.update();
        assert!(app.world().resource::<Sessions>().is_empty());
        let gone = LoggedOut {
            client,
            player: PlayerId(7),
            entity: None,
            reason: LogoutReason::Behind,
        };
        assert_eq!(written::<LoggedOut>(&app), [gone]);
    }

    fn inputs(app: &App, client: ClientId) -> u16 {
        app.world().resource::<Sessions>().input(client)
    }

    #[test]
    fn the_number_told_is_that_of_the_newest_message_that_came_whatever_became_of_it() {
        let mut app = app();
        let client = connect(&mut app);
        send_bytes(&mut app, client, &[77]);
        send(&mut app, client, ClientMessage::Login { player: 7 });
        app.update();
        assert_eq!(inputs(&app, client), 2, "one did not decode");
        let settings = InboxSettings {
            client_backlog_max: 2,
            ..InboxSettings::default()
        };
        app.insert_resource(settings);
        let offer = |app: &mut App, bytes: &[u8]| offer(app.world_mut(), client, bytes).is_ok();
        assert!(offer(&mut app, &[4, 1]) && offer(&mut app, &[4, 2]));
        assert!(!offer(&mut app, &[4, 3]));
        app.update();
        assert_eq!(inputs(&app, client), 5, "the fifth was refused");
        assert!(!offer(&mut app, &[0; 40]));
        app.update();
        assert_eq!(
            inputs(&app, client),
            6,
            "the sixth was refused, and nothing waited"
        );
    }

    #[test]
    fn no_more_messages_are_handled_in_a_tick_than_may_be() {
        let mut app = app();
        let client = connect(&mut app);
        app.insert_resource(InboxSettings {
            messages_per_tick_max: 2,
            ..InboxSettings::default()
        });
        send(&mut app, client, ClientMessage::Login { player: 7 });
        (0..4).for_each(|heading| send(&mut app, client, ClientMessage::Face { heading }));
        for (handled, waiting) in [(2, 3), (4, 1), (5, 0), (5, 0)] {
            app.update();
            let inbox = app.world().resource::<Inbox>();
            assert_eq!(
                (inbox.counters().handled, inbox.backlog()),
                (handled, waiting)
            );
            assert_eq!(u64::from(inputs(&app, client)), handled);
        }
    }

    #[test]
    fn bad_bytes_and_moves_before_login_change_nothing() {
        let mut app = app();
        let client = connect(&mut app);
        send_bytes(&mut app, client, &[77, 1, 2]);
        send(&mut app, client, ClientMessage::Face { heading: 1 });
        send(&mut app, ClientId(999), ClientMessage::Login { player: 1 });
        app.update();
        assert_eq!(app.world().resource::<SessionStats>().bad_messages, 3);
        assert!(written::<MoveInput>(&app).is_empty() && written::<LoggedIn>(&app).is_empty());
    }

    #[test]
    fn a_despawned_object_leaves_its_client_without_one() {
        let mut app = app();
        let client = connect(&mut app);
        let entity = object(&mut app);
        control(app.world_mut(), client, entity);
        app.world_mut().despawn(entity);
        assert_eq!(
            app.world()
                .resource::<Sessions>()
                .get(client)
                .unwrap()
                .controls,
            None
        );
    }
}
