//! Resumed sessions: ids and tokens, limits, and markers on the object.

use super::lifecycle::{connect_as_is, controls, drop_connection, log_in, settings, state, token};
use super::*;
use crate::session::{
    Authentication, Authenticator, LoginRequest, LoginResponder, ResumeAttempt, SessionState,
};
use crate::sim::state_hash;
use crate::wire::{ResumeToken, SessionNotice};

fn resume(app: &mut App, player: u64, token: ResumeToken) -> ClientId {
    let client = connect_as_is(app);
    let resume = ClientMessage::Resume {
        player,
        token,
        received: None,
    };
    send(app, client, resume);
    app.update();
    client
}

fn was_refused(app: &App, client: ClientId) -> bool {
    let notices = written::<SessionNoticeRequest>(app);
    let notice = SessionNotice::ResumeRefused;
    notices.contains(&SessionNoticeRequest { client, notice })
}

#[test]
fn object_for_a_former_client_id_goes_to_the_resumed_client() {
    let mut app = app();
    let first = connect(&mut app);
    send(&mut app, first, ClientMessage::login(7));
    app.update();
    let of_first = token(&app, first);
    let session = session_of(&app, first);
    drop_connection(&mut app, first);
    assert_eq!(state(&app, first), Some(SessionState::AwaitingReconnect));
    let second = resume(&mut app, 7, of_first);
    assert_eq!(state(&app, second), Some(SessionState::Entering));
    // The game replies to the login, which was sent under the former id.
    let entity = object(&mut app);
    assert!(control(app.world_mut(), first, entity));
    assert_eq!(controls(&app, second), Some(entity));
    assert_eq!(controlling_client(app.world(), entity), Some(second));
    // Also if the entity of the session is spawned with the object.
    assert_eq!(session_of(&app, first), session);
    let scene = app.world().get::<Object>(entity).unwrap().scene_entity();
    let place = (InScene(scene), Position(Vec2::ONE));
    let own = (Player, PlayerId(7), ControlledBy(session));
    let next = app.world_mut().spawn((own, place)).id();
    app.update();
    assert_eq!(controls(&app, second), Some(next));
    assert_eq!(controlling_client(app.world(), next), Some(second));
    // The former ids end with the session.
    disconnect(app.world_mut(), second, LogoutReason::Kicked);
    let late = object(&mut app);
    assert!(!control(app.world_mut(), first, late));
}

#[test]
fn reconnect_marker_is_only_on_the_controlled_object() {
    let (mut app, scene) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let of_first = token(&app, first);
    let entity = controls(&app, first).unwrap();
    drop_connection(&mut app, first);
    let is_marked = |app: &App, entity| app.world().get::<AwaitingReconnect>(entity).is_some();
    assert!(is_marked(&app, entity));
    // The game gives it another object in the meantime.
    let other = spawn_object(app.world_mut(), scene, KindId(0), Vec2::ONE, ()).unwrap();
    assert!(control(app.world_mut(), first, other));
    app.update();
    assert_eq!(
        (is_marked(&app, entity), is_marked(&app, other)),
        (false, true)
    );
    let second = resume(&mut app, 7, of_first);
    assert_eq!(controls(&app, second), Some(other));
    assert_eq!(
        (is_marked(&app, entity), is_marked(&app, other)),
        (false, false)
    );
}

#[test]
fn previous_token_is_valid_until_the_new_one_is_confirmed() {
    let (mut app, _) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let old = token(&app, first);
    drop_connection(&mut app, first);
    let second = resume(&mut app, 7, old);
    let new = token(&app, second);
    // While the connection is open, a used token is refused, and the client is notified.
    let third = resume(&mut app, 7, old);
    assert_eq!(state(&app, third), Some(SessionState::Connecting));
    assert!(was_refused(&app, third));
    // The welcome message was lost.
    drop_connection(&mut app, second);
    let fourth = resume(&mut app, 7, old);
    assert_eq!(state(&app, fourth), Some(SessionState::InWorld));
    assert!(
        was_refused_after(&mut app, 7, new),
        "the former id is unknown"
    );
    // Here it was received, since the client sends a message.
    send(&mut app, fourth, ClientMessage::Stop);
    app.update();
    drop_connection(&mut app, fourth);
    assert!(was_refused_after(&mut app, 7, old));
}

fn was_refused_after(app: &mut App, player: u64, token: ResumeToken) -> bool {
    let client = resume(app, player, token);
    was_refused(app, client)
}

#[test]
fn resumes_per_tick_are_limited() {
    let (mut app, _) = settings(|settings| settings.resumed_per_tick_max = 2);
    let tokens: Vec<(u64, ResumeToken)> = (0..5)
        .map(|player| {
            let client = log_in(&mut app, player);
            let token = token(&app, client);
            drop_connection(&mut app, client);
            (player, token)
        })
        .collect();
    for (player, token) in tokens {
        let client = connect_as_is(&mut app);
        let resume = ClientMessage::Resume {
            player,
            token,
            received: None,
        };
        send(&mut app, client, resume);
    }
    let counts = [(); 4].map(|()| {
        app.update();
        written::<SessionResumed>(&app).len()
    });
    assert_eq!(counts, [2, 2, 1, 0]);
}

#[test]
fn repeated_login_takes_no_other_admission() {
    let mut app = app();
    let admitted_per_tick_max = 2;
    app.insert_resource(SessionSettings {
        admitted_per_tick_max,
        ..SessionSettings::default()
    });
    // A session that resumes itself three times, and one that ends in between.
    for leaves in [false, true, true, false] {
        let client = connect_as(&mut app, 1);
        send(&mut app, client, ClientMessage::login(1));
        if leaves {
            send(&mut app, client, ClientMessage::Logout);
        }
    }
    let honest = connect_as(&mut app, 2);
    send(&mut app, honest, ClientMessage::login(2));
    app.update();
    let logged_in = written::<LoggedIn>(&app);
    assert!(logged_in.iter().any(|new| new.client == honest));
    assert!(logged_in.len() > 2);
}

#[test]
fn pending_logins_are_limited() {
    struct Silent(Vec<LoginResponder>);
    impl Authenticator for Silent {
        fn authenticate(&mut self, _: &LoginRequest<'_>, answer: LoginResponder) {
            self.0.push(answer);
        }
    }
    let (mut app, _) = settings(|settings| settings.pending_logins_max = 3);
    app.insert_resource(Authentication::new(Silent(Vec::new())));
    for player in 0..5 {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
    }
    app.update();
    let closed = written::<SessionClosed>(&app);
    let reasons: Vec<LogoutReason> = closed.iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [LogoutReason::Full; 2]);
    assert_eq!(app.world().resource::<Sessions>().len(), 3);
}

/// Two apps that differ in one value have different hashes.
fn assert_hashed(what: &str, differ: impl Fn(&mut App, bool)) {
    let hashes = [false, true].map(|other| {
        let (mut app, _) = settings(|settings| settings.players_max = 1);
        differ(&mut app, other);
        state_hash(app.world_mut())
    });
    assert_ne!(hashes[0], hashes[1], "{what} is in no hash");
}

#[test]
fn session_state_is_in_the_state_hash() {
    let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    assert_hashed("an address", |app, other| {
        let connected = ConnectionInfo::player(7).with_address(address(1 + u16::from(other)));
        connect_client(app.world_mut(), connected).unwrap();
    });
    assert_hashed("a claim", |app, other| {
        connect_as(app, u64::from(other));
    });
    assert_hashed("a connection that no tick has seen", |app, other| {
        let transport = app.world().resource::<TransportHandle>().clone();
        let connected = ConnectionInfo::player(7);
        let address = address(1 + u16::from(other));
        transport.connect(connected.with_address(address)).unwrap();
    });
    assert_hashed("what it said", |app, other| {
        let transport = app.world().resource::<TransportHandle>().clone();
        let client = transport.connect(ConnectionInfo::player(7)).unwrap();
        let login = ClientMessage::login(u64::from(other)).to_bytes();
        transport.receive(client, &login).unwrap();
    });
    assert_hashed("that the server drains", |app, other| {
        if other {
            app.world_mut().resource_mut::<Sessions>().drain();
        }
    });
    assert_hashed("the line", |app, other| {
        let clients = [1, 2, 3].map(|player| connect_as(app, player));
        let order = if other { [0, 2, 1] } else { [0, 1, 2] };
        for nth in order {
            send(app, clients[nth], ClientMessage::login(nth as u64 + 1));
        }
        app.update();
    });
    assert_hashed("a former number", |app, other| {
        let client = log_in(app, 7);
        let of_first = token(app, client);
        drop_connection(app, client);
        if other {
            resume(app, 7, of_first);
        } else {
            let client = connect_as(app, 7);
            send(app, client, ClientMessage::login(7));
            app.update();
        }
    });
}

#[test]
fn resume_as_another_verified_player_is_refused() {
    let mut app = app();
    let first = connect_as(&mut app, 7);
    send(&mut app, first, ClientMessage::login(7));
    app.update();
    let of_first = token(&app, first);
    drop_connection(&mut app, first);
    let resume_as = |app: &mut App, client| {
        let resume = ClientMessage::Resume {
            player: 7,
            token: of_first,
            received: None,
        };
        send(app, client, resume);
        app.update();
    };
    // Its connect token is for player 9; it knows the resume token of player 7.
    let thief = connect_as(&mut app, 9);
    resume_as(&mut app, thief);
    assert!(was_refused(&app, thief));
    assert_eq!(state(&app, first), Some(SessionState::AwaitingReconnect));
    let owner = connect_as(&mut app, 7);
    resume_as(&mut app, owner);
    assert_eq!(state(&app, owner), Some(SessionState::Entering));
}

#[test]
fn hook_decides_who_may_resume() {
    struct Banning;
    impl Authenticator for Banning {
        fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder) {
            answer.accept(login.player);
        }

        fn may_resume(&mut self, resume: &ResumeAttempt<'_>) -> bool {
            resume.player != PlayerId(7)
        }
    }
    let mut app = app();
    app.insert_resource(Authentication::new(Banning));
    for (player, comes_back) in [(7, false), (8, true)] {
        let first = connect_as(&mut app, player);
        send(&mut app, first, ClientMessage::login(player));
        app.update();
        let of_first = token(&app, first);
        drop_connection(&mut app, first);
        let second = resume(&mut app, player, of_first);
        assert_eq!(was_refused(&app, second), !comes_back);
        assert_eq!(state(&app, first).is_none(), comes_back);
    }
}

#[test]
fn draining_server_resumes_no_session() {
    let (mut app, _) = settings(|_| ());
    let first = log_in(&mut app, 7);
    let token = token(&app, first);
    drop_connection(&mut app, first);
    let client = connect_as_is(&mut app);
    app.world_mut().resource_mut::<Sessions>().drain();
    let resume = ClientMessage::Resume {
        player: 7,
        token,
        received: None,
    };
    send(&mut app, client, resume);
    app.update();
    assert!(was_refused(&app, client));
    assert_eq!(written::<SessionResumed>(&app), []);
}

#[test]
fn received_bytes_count_with_the_token_of_their_connection() {
    for by_former in [true, false] {
        let (mut app, _) = settings(|_| ());
        let first = log_in(&mut app, 7);
        let old = token(&app, first);
        drop_connection(&mut app, first);
        let second = resume(&mut app, 7, old);
        let new = token(&app, second);
        drop_connection(&mut app, second);
        let third = connect_as_is(&mut app);
        let resume = ClientMessage::Resume {
            player: 7,
            token: if by_former { old } else { new },
            received: Some(500),
        };
        send(&mut app, third, resume);
        app.update();
        let session = app.world().resource::<Sessions>().get(third).unwrap();
        // With the former token, the client has received nothing over the second connection.
        let expected = if by_former { 0 } else { 500 };
        assert_eq!(session.received_bytes, Some(expected));
    }
}

#[test]
fn client_that_had_not_loaded_has_to_load_after_a_resume() {
    let (mut app, scene) = settings(|_| ());
    let id = app
        .world()
        .get::<crate::world::SimScene>(scene)
        .unwrap()
        .id();
    for is_ready in [false, true] {
        let client = connect_client(app.world_mut(), ConnectionInfo::player(7)).unwrap();
        send(&mut app, client, ClientMessage::login(7));
        app.update();
        let token = token(&app, client);
        if is_ready {
            send(&mut app, client, ClientMessage::Ready { scene: id.0 });
            app.update();
        }
        drop_connection(&mut app, client);
        let again = connect_client(app.world_mut(), ConnectionInfo::unknown()).unwrap();
        let resume = ClientMessage::Resume {
            player: 7,
            token,
            received: Some(0),
        };
        send(&mut app, again, resume);
        app.update();
        let expected = match is_ready {
            false => SessionState::Loading,
            true => SessionState::InWorld,
        };
        assert_eq!(state(&app, again), Some(expected));
        let asked = written::<SessionNoticeRequest>(&app).into_iter();
        let asked = asked.filter(|request| {
            matches!(request.notice, SessionNotice::Loading { .. }) && request.client == again
        });
        assert_eq!(asked.count(), usize::from(!is_ready));
        send(&mut app, again, ClientMessage::Logout);
        app.update();
    }
}
