//! Control as a relationship between objects and the entities of sessions.

use super::lifecycle::{connect_as_is, controls, drop_connection, log_in, settings, token};
use super::*;
use crate::sim::logged_warnings;

/// Belongs to a session, whatever object it controls.
#[derive(Component, Debug, PartialEq)]
struct Language(&'static str);

fn controlled(app: &App, session: Entity) -> Option<Entity> {
    let controls = app.world().get::<Controls>(session);
    controls.map(Controls::entity)
}

fn client_of(app: &App, session: Entity) -> Option<ClientId> {
    let of = app.world().get::<SessionClient>(session);
    of.map(|of| of.client())
}

#[test]
fn session_entity_survives_a_resume() {
    let (mut app, _) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let session = session_of(&app, first);
    assert_eq!(client_of(&app, session), Some(first));
    assert_eq!(controlled(&app, session), controls(&app, first));
    let object = controls(&app, first);
    app.world_mut().entity_mut(session).insert(Language("es"));
    let old = token(&app, first);
    drop_connection(&mut app, first);
    let second = connect_as_is(&mut app);
    let unused = session_of(&app, second);
    assert_ne!(unused, session);
    let resume = ClientMessage::Resume {
        player: 7,
        token: old,
        received: None,
    };
    send(&mut app, second, resume);
    app.update();
    assert_eq!(client_of(&app, session), Some(second));
    assert_eq!([first, second].map(|of| session_of(&app, of)), [session; 2]);
    assert_eq!(controlled(&app, session), object);
    assert_eq!(app.world().get::<Language>(session), Some(&Language("es")));
    assert!(app.world().get_entity(unused).is_err());
}

#[test]
fn control_moves_between_objects_and_sessions() {
    let (mut app, scene) = settings(|_| ());
    let clients = [1, 2].map(|player| log_in(&mut app, player));
    let [one, other] = clients.map(|client| session_of(&app, client));
    let [a, b] = [one, other].map(|session| controlled(&app, session).unwrap());
    assert_ne!((a, one), (b, other));
    let of = |app: &App, object| app.world().get::<ControlledBy>(object).map(|by| by.0);
    // The first client takes over the object of the second.
    app.world_mut().entity_mut(b).insert(ControlledBy(one));
    assert_eq!((of(&app, a), of(&app, b)), (None, Some(one)));
    assert_eq!(
        (controlled(&app, one), controlled(&app, other)),
        (Some(b), None)
    );
    assert_eq!(
        clients.map(|client| controls(&app, client)),
        [Some(b), None]
    );
    // It takes it back, and the clients swap.
    app.world_mut().entity_mut(b).insert(ControlledBy(other));
    app.world_mut().entity_mut(a).insert(ControlledBy(one));
    let mut commands = app.world_mut().commands();
    commands.entity(a).insert(ControlledBy(other));
    commands.entity(b).insert(ControlledBy(one));
    app.world_mut().flush();
    assert_eq!((of(&app, a), of(&app, b)), (Some(other), Some(one)));
    assert_eq!(
        (controlled(&app, one), controlled(&app, other)),
        (Some(b), Some(a))
    );
    assert_eq!(
        clients.map(|client| controls(&app, client)),
        [Some(b), Some(a)]
    );
    // A clone is an object without a client; without the target there is no control.
    app.world_mut().despawn(a);
    app.update();
    let clone = app.world_mut().entity_mut(b).clone_and_spawn();
    assert!(app.world().get::<Object>(clone).is_some() && of(&app, clone).is_none());
    assert_eq!(controlled(&app, other), None);
    app.world_mut().entity_mut(one).remove::<Controls>();
    assert_eq!((of(&app, b), controls(&app, clients[0])), (None, None));
    assert_eq!(app.world().get::<InScene>(b), Some(&InScene(scene)));
}

#[test]
fn control_by_no_session_is_a_warning_once() {
    let (mut app, scene) = settings(|_| ());
    let client = log_in(&mut app, 7);
    let own = controls(&app, client).unwrap();
    let no_session = app.world_mut().spawn_empty().id();
    let mut spawned = Entity::PLACEHOLDER;
    let warnings = logged_warnings(|| {
        app.world_mut()
            .entity_mut(own)
            .insert(ControlledBy(no_session));
        let place = (InScene(scene), Position(Vec2::ONE));
        let body = (Player, PlayerId(8), ControlledBy(no_session), place);
        spawned = app.world_mut().spawn(body).id();
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("object not controlled"),
        "{warnings:?}"
    );
    assert!(
        warnings[0].contains("is not an open session"),
        "{warnings:?}"
    );
    let world = app.world();
    for object in [own, spawned] {
        assert!(
            world.get::<ControlledBy>(object).is_none() && world.get::<Object>(object).is_some()
        );
    }
    assert_eq!(controls(&app, client), None);
    app.update();
    let is_there = |entity| app.world().get_entity(entity).is_ok();
    assert_eq!((is_there(own), is_there(spawned)), (true, false));
    assert!(is_there(no_session) && controlled(&app, no_session).is_none());
}

#[test]
fn despawned_session_entity_ends_the_session() {
    let (mut app, _) = settings(|_| ());
    let client = log_in(&mut app, 7);
    let (session, object) = (session_of(&app, client), controls(&app, client).unwrap());
    app.world_mut().despawn(session);
    let gone = LoggedOut {
        client,
        client_entity: session,
        player: PlayerId(7),
        entity: Some(object),
        reason: LogoutReason::Kicked,
    };
    assert_eq!(written::<LoggedOut>(&app), [gone]);
    assert!(app.world().get_entity(object).is_err());
    assert!(app.world().resource::<Sessions>().is_empty());
    app.update();
}

#[test]
fn ended_session_keeps_its_entity_until_the_tick_ends() {
    let (mut app, _) = settings(|_| ());
    let client = log_in(&mut app, 7);
    let session = session_of(&app, client);
    app.world_mut().entity_mut(session).insert(Language("es"));
    disconnect(app.world_mut(), client, LogoutReason::Idle);
    assert_eq!(
        app.world().resource::<Sessions>().client_entity(client),
        None
    );
    assert_eq!(controlled(&app, session), None);
    let ended = written::<LoggedOut>(&app)[0].client_entity;
    assert_eq!(app.world().get::<Language>(ended), Some(&Language("es")));
    app.update();
    assert!(app.world().get_entity(session).is_err());
}
