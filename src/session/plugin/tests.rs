//! Sessions in an app.

mod authentication;
mod bans;
mod continued;
mod control;
mod lifecycle;
mod overload;
mod refused;
mod resume;
mod stalled;
mod user_data;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;

use super::connect as connect_client;
use super::*;
use crate::inbox::{ConnectionInfo, DisconnectReason, Inbox, InboxSettings, ReceiveError};
use crate::outbox::SlowConsumerDetected;
use crate::session::{LogoutReason, Sessions, TransportHandle};
use crate::sim::SimSystems;
use crate::wire::{ClientId, ClientMessage};
use crate::world::{
    InScene, KindId, MoveInput, Player, PlayerId, PlayerMotion, Players, Position, SceneSpec,
    open_scene, spawn_object,
};

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, SessionPlugin));
    crate::sim::clock::one_tick_per_update(&mut app);
    app
}

/// A client whose transport has verified the player that it will claim.
fn connect(app: &mut App) -> ClientId {
    connect_as(app, 7)
}

fn connect_as(app: &mut App, player: u64) -> ClientId {
    connect_client(
        app.world_mut(),
        ConnectionInfo::player(player).without_loading(),
    )
    .unwrap()
}

/// The entity of an open session.
fn session_of(app: &App, client: ClientId) -> Entity {
    let sessions = app.world().resource::<Sessions>();
    sessions.client_entity(client).unwrap()
}

fn send(app: &mut App, client: ClientId, message: ClientMessage) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    send_bytes(app, client, &bytes);
}

fn send_bytes(app: &mut App, client: ClientId, bytes: &[u8]) {
    let transport = app.world().resource::<TransportHandle>().clone();
    transport.receive(client, bytes).unwrap();
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
fn login_writes_a_message_and_moves_reach_the_object() {
    let mut app = app();
    let client = connect(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    assert_eq!(
        written::<LoggedIn>(&app),
        [LoggedIn {
            client,
            client_entity: session_of(&app, client),
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
        motion: PlayerMotion::To(Vec2::new(2.0, 3.0)),
        heading: 9,
    };
    assert_eq!(written::<MoveInput>(&app), [expected]);
}

/// A typical game: every player that logs in gets an object.
fn app_with_characters() -> (App, Entity) {
    let mut app = app();
    let spec = SceneSpec {
        max_objects: 2,
        ..SceneSpec::default()
    };
    let scene = open_scene(app.world_mut(), spec, ()).unwrap();
    let welcome = move |mut new: MessageReader<LoggedIn>, mut commands: Commands| {
        for login in new.read() {
            let place = (InScene(scene), Position(Vec2::ONE));
            commands.spawn((
                Player,
                login.player,
                ControlledBy(login.client_entity),
                place,
            ));
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
fn object_for_a_closed_client_is_despawned_in_the_same_tick() {
    let (mut app, _) = app_with_characters();
    for player in 0..5 {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
        send(&mut app, client, ClientMessage::Logout);
        app.update();
        assert_eq!(written::<LoggedIn>(&app).len(), 1);
        assert_eq!(objects(&mut app), 0, "player {player}");
    }
    let client = connect_as(&mut app, 9);
    send(&mut app, client, ClientMessage::login(9));
    app.update();
    let session = app.world().resource::<Sessions>().get(client);
    let controls = session.and_then(|session| session.controlled_entity);
    assert_eq!((objects(&mut app), controls.is_some()), (1, true));
}

#[test]
fn refused_spawn_takes_neither_control_nor_player_id() {
    let (mut app, scene) = app_with_characters();
    let client = connect(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let controls = |app: &App| {
        let sessions = app.world().resource::<Sessions>();
        sessions
            .get(client)
            .and_then(|session| session.controlled_entity)
    };
    let first = controls(&app).unwrap();
    let outside = (InScene(scene), Position(Vec2::splat(-5.0)));
    let session = session_of(&app, client);
    let again = (Player, PlayerId(7), ControlledBy(session));
    let refused = app.world_mut().spawn((again, outside)).id();
    app.update();
    assert!(app.world().get_entity(refused).is_err());
    assert_eq!(controls(&app), Some(first));
    let players = app.world().resource::<Players>();
    assert_eq!(players.entity(PlayerId(7)), Some(first));
    assert!(app.world().get::<ControlledBy>(first).is_some());

    // An object whose spawn succeeds takes both.
    let inside = (InScene(scene), Position(Vec2::ONE));
    let second = app.world_mut().spawn((again, inside)).id();
    app.update();
    assert_eq!(controls(&app), Some(second));
    let players = app.world().resource::<Players>();
    assert_eq!(players.entity(PlayerId(7)), Some(second));
    assert!(app.world().get::<ControlledBy>(first).is_none());
}

#[test]
fn control_is_limited_to_objects() {
    let mut app = app();
    let client = connect(&mut app);
    let session = session_of(&app, client);
    let thing = app.world_mut().spawn(ControlledBy(session)).id();
    app.update();
    assert!(app.world().get::<ControlledBy>(thing).is_none());
    let session = app.world().resource::<Sessions>().get(client);
    assert_eq!(session.and_then(|session| session.controlled_entity), None);
}

#[test]
fn second_login_ends_the_first_session_and_its_object() {
    let mut app = app();
    let (first, second) = (connect(&mut app), connect(&mut app));
    send(&mut app, first, ClientMessage::login(7));
    app.update();
    let entity = object(&mut app);
    control(app.world_mut(), first, entity);
    let ended = session_of(&app, first);
    send(&mut app, second, ClientMessage::login(7));
    app.update();
    let gone = LoggedOut {
        client: first,
        client_entity: ended,
        player: PlayerId(7),
        entity: Some(entity),
        reason: LogoutReason::Replaced,
    };
    assert_eq!(written::<LoggedOut>(&app), [gone]);
    assert!(app.world().get_entity(entity).is_err());
    let sessions = app.world().resource::<Sessions>();
    assert_eq!(
        (sessions.len(), sessions.client_of(PlayerId(7))),
        (1, Some(second))
    );
}

#[test]
fn slow_consumer_loses_its_session() {
    let mut app = app();
    let client = connect(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let session = session_of(&app, client);
    app.world_mut()
        .write_message(SlowConsumerDetected { client });
    app.update();
    assert!(app.world().resource::<Sessions>().is_empty());
    let gone = LoggedOut {
        client,
        client_entity: session,
        player: PlayerId(7),
        entity: None,
        reason: LogoutReason::SlowConsumer,
    };
    assert_eq!(written::<LoggedOut>(&app), [gone]);
}

fn inputs(app: &App, client: ClientId) -> u16 {
    app.world().resource::<Sessions>().last_input(client)
}

#[test]
fn acknowledged_number_counts_refused_messages() {
    let mut app = app();
    let client = connect(&mut app);
    send_bytes(&mut app, client, &[77]);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    assert_eq!(inputs(&app, client), 2, "one did not decode");
    let settings = InboxSettings {
        client_backlog_max: 2,
        ..InboxSettings::default()
    };
    app.insert_resource(settings);
    // The new limit applies from the next tick on.
    app.update();
    let transport = app.world().resource::<TransportHandle>().clone();
    let offer = |bytes: &[u8]| transport.receive(client, bytes).is_ok();
    assert!(offer(&[6, 1]) && offer(&[6, 2]) && !offer(&[6, 3]));
    app.update();
    assert_eq!(inputs(&app, client), 5, "the fifth was refused");
    assert!(!offer(&[0; 1_025]));
    app.update();
    assert_eq!(
        inputs(&app, client),
        6,
        "the sixth was refused, and nothing waited"
    );
}

#[test]
fn messages_per_tick_are_limited() {
    let mut app = app();
    let client = connect(&mut app);
    app.insert_resource(InboxSettings {
        messages_per_tick_max: 2,
        ..InboxSettings::default()
    });
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    (0..4).for_each(|heading| send(&mut app, client, ClientMessage::Face { heading }));
    for (handled, waiting) in [(3, 2), (5, 0), (5, 0)] {
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
    let transport = app.world().resource::<TransportHandle>().clone();
    let stranger = transport.receive(ClientId(999), &ClientMessage::login(1).to_bytes());
    assert_eq!(stranger, Err(ReceiveError::UnknownClient(ClientId(999))));
    app.update();
    assert_eq!(app.world().resource::<SessionStats>().bad_messages, 2);
    assert!(written::<MoveInput>(&app).is_empty() && written::<LoggedIn>(&app).is_empty());
}

#[test]
fn despawned_object_leaves_its_client_without_one() {
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
            .controlled_entity,
        None
    );
}
