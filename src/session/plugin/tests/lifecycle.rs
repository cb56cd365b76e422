//! Lost connections, tokens, the login queue, scenes to load, and the end of sessions.

use super::*;
use crate::session::SessionState;
use crate::wire::{ResumeToken, SessionNotice};
use crate::world::change_scene;

pub(super) fn settings(change: impl FnOnce(&mut SessionSettings)) -> (App, Entity) {
    let (mut app, scene) = app_with_characters();
    let mut settings = SessionSettings::default();
    change(&mut settings);
    app.insert_resource(settings);
    (app, scene)
}

pub(super) fn log_in(app: &mut App, player: u64) -> ClientId {
    let client = connect_as(app, player);
    send(app, client, ClientMessage::login(player));
    app.update();
    client
}

pub(super) fn state(app: &App, client: ClientId) -> Option<SessionState> {
    let sessions = app.world().resource::<Sessions>();
    sessions.get(client).map(|session| session.state)
}

/// The notices to a client in the last tick.
fn notices(app: &App, client: ClientId) -> Vec<SessionNotice> {
    let notices = written::<SessionNoticeRequest>(app).into_iter();
    notices
        .filter(|request| request.client == client)
        .map(|request| request.notice)
        .collect()
}

pub(super) fn token(app: &App, client: ClientId) -> ResumeToken {
    let mut welcomes = notices(app, client)
        .into_iter()
        .filter_map(|notice| match notice {
            SessionNotice::Welcome { token, .. } => Some(token),
            _ => None,
        });
    welcomes
        .next_back()
        .expect("it was welcomed in the last tick")
}

pub(super) fn drop_connection(app: &mut App, client: ClientId) {
    let transport = app.world().resource::<TransportHandle>().clone();
    transport.disconnect(client, DisconnectReason::Lost);
    app.update();
}

pub(super) fn controls(app: &App, client: ClientId) -> Option<Entity> {
    app.world()
        .resource::<Sessions>()
        .get(client)?
        .controlled_entity
}

/// A client whose transport has verified nothing about it.
pub(super) fn connect_as_is(app: &mut App) -> ClientId {
    connect_client(app.world_mut(), ConnectionInfo::unknown().without_loading()).unwrap()
}

#[test]
fn lost_connection_keeps_the_object_and_token_resumes_once() {
    let (mut app, _) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let old = token(&app, first);
    let entity = controls(&app, first).unwrap();
    let session = session_of(&app, first);
    drop_connection(&mut app, first);
    assert_eq!(state(&app, first), Some(SessionState::AwaitingReconnect));
    assert!(app.world().get::<AwaitingReconnect>(entity).is_some());
    assert_eq!(written::<ConnectionLost>(&app).len(), 1);
    assert!(written::<LoggedOut>(&app).is_empty());

    // A wrong token and another player's id are refused, and a refused token is no login.
    let resume = |player, token| ClientMessage::Resume {
        player,
        token,
        received: None,
    };
    let second = connect_as(&mut app, 7);
    send(&mut app, second, resume(7, ResumeToken([1; 16])));
    send(&mut app, second, resume(8, old));
    app.update();
    assert_eq!(state(&app, second), Some(SessionState::Connecting));
    send(&mut app, second, resume(7, old));
    app.update();
    let back = SessionResumed {
        client: second,
        previous_client: first,
        client_entity: session,
        player: PlayerId(7),
        entity: Some(entity),
    };
    assert_eq!(written::<SessionResumed>(&app), [back]);
    assert_eq!(state(&app, second), Some(SessionState::InWorld));
    assert_eq!(
        (state(&app, first), controls(&app, second)),
        (None, Some(entity))
    );
    assert!(app.world().get::<AwaitingReconnect>(entity).is_none());
    let by = app.world().get::<ControlledBy>(entity).unwrap();
    assert_eq!((by.0, session_of(&app, second)), (session, session));
    assert_eq!(controlling_client(app.world(), entity), Some(second));
    let new = token(&app, second);
    assert_ne!(new, old);

    // The token was used; the new one is valid, also while the old connection seems to be open.
    let third = connect_as(&mut app, 7);
    send(&mut app, third, resume(7, old));
    app.update();
    assert_eq!(state(&app, third), Some(SessionState::Connecting));
    send(&mut app, third, resume(7, new));
    app.update();
    assert_eq!(controls(&app, third), Some(entity));
    let closed = written::<SessionClosed>(&app);
    assert_eq!(
        (closed[0].client, closed[0].reason),
        (second, LogoutReason::Resumed)
    );
    let stats = app.world().resource::<SessionStats>();
    assert_eq!((stats.logins, stats.logouts, stats.resumed), (1, 0, 2));
}

#[test]
fn overdue_reconnect_logs_out_and_despawns() {
    let (mut app, _) = settings(|settings| settings.reconnect_grace_s = 1.0);
    let client = log_in(&mut app, 7);
    let entity = controls(&app, client).unwrap();
    drop_connection(&mut app, client);
    (0..63).for_each(|_| app.update());
    assert!(app.world().get_entity(entity).is_ok());
    app.update();
    assert!(app.world().get_entity(entity).is_err());
    assert_eq!(
        written::<LoggedOut>(&app)[0].reason,
        LogoutReason::Disconnected
    );
    assert!(app.world().resource::<Sessions>().is_empty());
}

#[test]
fn login_of_a_disconnected_player_keeps_its_object() {
    let (mut app, _) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let entity = controls(&app, first);
    drop_connection(&mut app, first);
    let second = log_in(&mut app, 7);
    assert_eq!(controls(&app, second), entity);
    assert!(written::<LoggedIn>(&app).is_empty() && written::<LoggedOut>(&app).is_empty());
}

#[test]
fn session_without_grace_ends_after_its_last_messages() {
    let (mut app, _) = settings(|settings| settings.reconnect_grace_s = 0.0);
    let first = log_in(&mut app, 7);
    drop_connection(&mut app, first);
    assert_eq!(
        written::<LoggedOut>(&app)[0].reason,
        LogoutReason::Disconnected
    );
    // A client that logs out does not count as lost.
    let second = log_in(&mut app, 8);
    send(&mut app, second, ClientMessage::Logout);
    drop_connection(&mut app, second);
    assert_eq!(
        written::<LoggedOut>(&app)[0].reason,
        LogoutReason::Requested
    );
}

#[test]
fn players_over_the_limit_are_queued_and_notified() {
    let (mut app, _) = settings(|settings| {
        settings.players_max = 1;
        settings.queue_max = 2;
    });
    let first = log_in(&mut app, 1);
    let others = [2, 3, 4].map(|player| {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
        client
    });
    app.update();
    let place = |app: &App, nth: usize| notices(app, others[nth]);
    assert_eq!(place(&app, 0), [SessionNotice::Queued { position: 1 }]);
    assert_eq!(place(&app, 1), [SessionNotice::Queued { position: 2 }]);
    assert_eq!(state(&app, others[2]), None, "the line is full");
    send(&mut app, first, ClientMessage::Logout);
    app.update();
    assert_eq!(state(&app, others[0]), Some(SessionState::InWorld));
    let mut moved_up = Vec::new();
    for _ in 0..64 {
        app.update();
        moved_up.extend(place(&app, 1));
    }
    assert_eq!(moved_up, [SessionNotice::Queued { position: 1 }]);
}

#[test]
fn queue_positions_are_updated_at_the_configured_interval() {
    let (mut app, _) = settings(|settings| {
        settings.players_max = 1;
        settings.queue_position_interval_s = 0.125;
    });
    let first = log_in(&mut app, 1);
    let queued = [2, 3].map(|player| log_in(&mut app, player));
    let tick = |app: &App| app.world().resource::<crate::sim::SimTick>().0;
    while tick(&app) % 8 != 1 {
        app.update();
    }
    send(&mut app, first, ClientMessage::Logout);
    let ticks = (0..24).filter_map(|_| {
        app.update();
        let received = notices(&app, queued[1]);
        (!received.is_empty()).then(|| (tick(&app) % 8, received))
    });
    let ticks: Vec<_> = ticks.collect();
    assert_eq!(ticks, [(0, vec![SessionNotice::Queued { position: 1 }])]);
}

#[test]
fn admissions_per_tick_are_limited() {
    let mut app = app();
    let admitted_per_tick_max = 3;
    app.insert_resource(SessionSettings {
        admitted_per_tick_max,
        ..SessionSettings::default()
    });
    for player in 0..8 {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
    }
    let counts = [(); 4].map(|()| {
        app.update();
        written::<LoggedIn>(&app).len()
    });
    assert_eq!(counts, [3, 3, 2, 0]);
}

#[test]
fn loading_client_receives_no_scene_data_until_ready() {
    let (mut app, scene) = app_with_characters();
    let client = connect_client(app.world_mut(), ConnectionInfo::player(7)).unwrap();
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let id = app
        .world()
        .get::<crate::world::SimScene>(scene)
        .unwrap()
        .id();
    let is_ready = |app: &App| {
        let session = app.world().resource::<Sessions>().get(client).unwrap();
        (session.state, session.is_ready_for(id))
    };
    assert_eq!(is_ready(&app), (SessionState::Loading, false));
    let asked = notices(&app, client);
    assert!(
        matches!(asked[..], [SessionNotice::Welcome { .. }, SessionNotice::Loading { scene, .. }] if scene == id.0)
    );
    // A `Ready` for another scene, and input before the client is ready, have no effect.
    send(&mut app, client, ClientMessage::Ready { scene: id.0 + 1 });
    send(&mut app, client, ClientMessage::Face { heading: 3 });
    app.update();
    assert_eq!(is_ready(&app), (SessionState::Loading, false));
    assert!(written::<MoveInput>(&app).is_empty());
    send(&mut app, client, ClientMessage::Ready { scene: id.0 });
    send(&mut app, client, ClientMessage::Ready { scene: id.0 });
    app.update();
    assert_eq!(is_ready(&app), (SessionState::InWorld, true));
    assert_eq!(app.world().resource::<SessionStats>().bad_messages, 3);
    // In another scene it has to load again.
    let next = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
    let entity = controls(&app, client).unwrap();
    change_scene(app.world_mut(), entity, next, Vec2::ONE).unwrap();
    app.update();
    assert_eq!(is_ready(&app), (SessionState::Loading, false));
}

#[test]
fn new_object_in_the_same_scene_requires_ready_again() {
    let (mut app, scene) = app_with_characters();
    let client = connect_client(app.world_mut(), ConnectionInfo::player(7)).unwrap();
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let asks = |app: &App| {
        let mut received = notices(app, client).into_iter();
        received.find_map(|notice| match notice {
            SessionNotice::Loading { scene, .. } => Some(scene),
            _ => None,
        })
    };
    let id = asks(&app).unwrap();
    let ready = ClientMessage::Ready { scene: id };
    send(&mut app, client, ready);
    app.update();
    // Its object is despawned, and the next one is spawned in the same scene.
    let entity = controls(&app, client).unwrap();
    app.world_mut().despawn(entity);
    app.update();
    assert_eq!(state(&app, client), Some(SessionState::Entering));
    let next = spawn_object(app.world_mut(), scene, KindId(0), Vec2::ONE, ()).unwrap();
    assert!(control(app.world_mut(), client, next));
    app.update();
    assert_eq!(
        (asks(&app), state(&app, client)),
        (Some(id), Some(SessionState::Loading))
    );
    send(&mut app, client, ready);
    send(&mut app, client, ClientMessage::Face { heading: 5 });
    app.update();
    assert_eq!(state(&app, client), Some(SessionState::InWorld));
    assert_eq!(written::<MoveInput>(&app).len(), 1);
}

#[test]
fn overlong_loading_or_idling_ends_the_session() {
    let (mut app, _) = settings(|settings| {
        settings.loading_timeout_s = 1.0;
        settings.idle_timeout_s = 2.0;
    });
    let slow = connect_client(app.world_mut(), ConnectionInfo::player(1)).unwrap();
    send(&mut app, slow, ClientMessage::login(1));
    let idle = log_in(&mut app, 2);
    let mut reasons = Vec::new();
    for tick in 0..200 {
        if tick == 60 {
            send(&mut app, idle, ClientMessage::Stop);
        }
        app.update();
        reasons.extend(
            written::<LoggedOut>(&app)
                .iter()
                .map(|out| (tick, out.client, out.reason)),
        );
    }
    let expected = [
        (63, slow, LogoutReason::TimedOut),
        (60 + 128, idle, LogoutReason::Idle),
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn drained_server_refuses_logins_and_closes_all_with_a_reason() {
    let (mut app, _) = settings(|settings| settings.admitted_per_tick_max = 1);
    let clients = [1, 2].map(|player| log_in(&mut app, player));
    let waiting = connect_as(&mut app, 3);
    app.world_mut().resource_mut::<Sessions>().drain();
    send(&mut app, waiting, ClientMessage::login(3));
    let mut ended = Vec::new();
    for _ in 0..4 {
        assert!(connect_client(app.world_mut(), ConnectionInfo::player(4)).is_err());
        app.update();
        ended.extend(
            written::<SessionClosed>(&app)
                .iter()
                .map(|it| (it.client, it.reason)),
        );
    }
    for client in [waiting, clients[0], clients[1]] {
        assert!(
            ended.contains(&(client, LogoutReason::Stopping)),
            "{client:?} of {ended:?}"
        );
    }
    assert!(app.world().resource::<Sessions>().is_empty());
    assert_eq!(objects(&mut app), 0);
    let ends = app.world().resource::<SessionStats>().ends;
    assert!(ends.server_stopping >= 3, "{ends:?}");
    // The drain can be undone.
    app.world_mut().resource_mut::<Sessions>().reopen();
    let back = log_in(&mut app, 1);
    assert_eq!(state(&app, back), Some(SessionState::InWorld));
}

#[test]
fn server_that_refuses_logins_keeps_its_players() {
    let (mut app, _) = settings(|settings| settings.admitted_per_tick_max = 1);
    let inside = log_in(&mut app, 1);
    let newcomers = [2, 3].map(|player| {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
        client
    });
    app.world_mut().resource_mut::<Sessions>().refuse_logins();
    let late = connect_as(&mut app, 4);
    send(&mut app, late, ClientMessage::login(4));
    let mut ended = Vec::new();
    for _ in 0..6 {
        app.update();
        ended.extend(
            written::<SessionClosed>(&app)
                .iter()
                .map(|it| (it.client, it.reason)),
        );
    }
    for client in [newcomers[0], newcomers[1], late] {
        let is_told = ended.contains(&(client, LogoutReason::Stopping));
        assert!(is_told, "{client:?} of {ended:?}");
    }
    assert_eq!(state(&app, inside), Some(SessionState::InWorld));
    // An admitted player may log in over another connection.
    let again = connect_as(&mut app, 1);
    send(&mut app, again, ClientMessage::login(1));
    (0..4).for_each(|_| app.update());
    let of = app.world().resource::<Sessions>().client_of(PlayerId(1));
    assert_eq!(of, Some(again));
    app.world_mut().resource_mut::<Sessions>().reopen();
    log_in(&mut app, 2);
}

#[test]
fn client_connected_by_an_observer_during_ingest_gets_a_session() {
    #[derive(Component)]
    struct Watched;
    let mut app = app();
    let client = connect(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let entity = object(&mut app);
    app.world_mut().entity_mut(entity).insert(Watched);
    assert!(control(app.world_mut(), client, entity));
    app.add_observer(|_: On<Remove<Watched>>, mut commands: Commands| {
        commands.queue(|world: &mut World| {
            connect_client(world, ConnectionInfo::player(8).without_loading()).unwrap();
        });
    });
    send(&mut app, client, ClientMessage::Logout);
    app.update();
    assert!(app.world().get_entity(entity).is_err());
    assert_eq!(app.world().resource::<Sessions>().len(), 1);
}

#[test]
fn command_disconnects_a_client_and_ignores_an_ended_one() {
    let (mut app, _) = settings(|_| {});
    let client = log_in(&mut app, 1);
    let entity = controls(&app, client);
    assert!(entity.is_some());
    let client_entity = session_of(&app, client);
    let mut commands = app.world_mut().commands();
    commands
        .disconnect_client(client, LogoutReason::Kicked)
        .disconnect_client(client, LogoutReason::Idle);
    app.world_mut().flush();
    let reason = LogoutReason::Kicked;
    let player = PlayerId(1);
    let expected = LoggedOut {
        client,
        client_entity,
        player,
        entity,
        reason,
    };
    assert_eq!(written::<LoggedOut>(&app), [expected]);
    assert_eq!((state(&app, client), objects(&mut app)), (None, 0));
}

#[test]
fn login_that_finds_the_inbox_full_is_closed_with_a_reason() {
    let mut app = app();
    app.insert_resource(InboxSettings {
        unauthenticated_backlog_max: 1,
        ..InboxSettings::default()
    });
    app.update();
    let [first, second] = [7, 8].map(|player| connect_as(&mut app, player));
    send(&mut app, first, ClientMessage::login(7));
    let transport = app.world().resource::<TransportHandle>().clone();
    let refused = transport.receive(second, &ClientMessage::login(8).to_bytes());
    assert_eq!(refused, Err(ReceiveError::QueueFull(1)));
    app.update();
    let closed = written::<SessionClosed>(&app);
    let closed: Vec<_> = closed.iter().map(|it| (it.client, it.reason)).collect();
    assert_eq!(closed, [(second, LogoutReason::Full)]);
    let stats = app.world().resource::<SessionStats>();
    assert_eq!((stats.logins, stats.refused, stats.ends.full), (1, 1, 1));
}
