//! Unauthenticated clients never become a player and harm no other client.

use std::sync::{Arc, Mutex};

use super::*;
use crate::inbox::ClientQuota;
use crate::session::{
    AdmissionClass, Authentication, Authenticator, LoginRefusalCounts, LoginRequest,
    LoginResponder, SessionState,
};
use crate::sim::logged_warnings;
use crate::wire::LoginRefusal;

fn unknown(app: &mut App) -> ClientId {
    connect_client(app.world_mut(), ConnectionInfo::unknown().without_loading()).unwrap()
}

fn state(app: &App, client: ClientId) -> Option<SessionState> {
    let sessions = app.world().resource::<Sessions>();
    sessions.get(client).map(|session| session.state)
}

fn stats(app: &App) -> SessionStats {
    *app.world().resource::<SessionStats>()
}

#[test]
fn unauthenticated_claim_is_refused_and_its_player_unaffected() {
    let mut app = app();
    let victim = connect(&mut app);
    send(&mut app, victim, ClientMessage::login(7));
    app.update();
    let entity = object(&mut app);
    control(app.world_mut(), victim, entity);
    let liar = unknown(&mut app);
    send(&mut app, liar, ClientMessage::login(7));
    // An authenticated client cannot become another player either.
    let other = connect_as(&mut app, 8);
    send(&mut app, other, ClientMessage::login(7));
    app.update();
    assert!(written::<LoggedOut>(&app).is_empty() && written::<LoggedIn>(&app).is_empty());
    assert!(app.world().get_entity(entity).is_ok());
    let closed = written::<SessionClosed>(&app);
    let closed: Vec<_> = closed.iter().map(|it| (it.client, it.reason)).collect();
    let reason = LogoutReason::Refused;
    assert_eq!(closed, [(liar, reason), (other, reason)]);
    assert_eq!(
        app.world().resource::<Sessions>().client_of(PlayerId(7)),
        Some(victim)
    );
    assert_eq!(stats(&app).refused, 2);
    let refusals: Vec<_> = written::<SessionClosed>(&app)
        .iter()
        .map(|closed| closed.refusal)
        .collect();
    let wrong = LoginRefusal::WrongPlayer { token: 8, login: 7 };
    assert_eq!(refusals, [Some(LoginRefusal::Unverified), Some(wrong)]);
    let counts = LoginRefusalCounts {
        by_game: 0,
        unverified: 1,
        wrong_player: 1,
    };
    assert_eq!(stats(&app).login_refusals, counts);
}

#[test]
fn login_without_a_player_is_that_of_the_token() {
    let mut app = app();
    let client = connect_as(&mut app, 8);
    send(&mut app, client, ClientMessage::login_by_token());
    let unproved = unknown(&mut app);
    send(&mut app, unproved, ClientMessage::login_by_token());
    app.update();
    let player = PlayerId(8);
    let logged_in = written::<LoggedIn>(&app);
    let logged_in: Vec<_> = logged_in.iter().map(|it| (it.client, it.player)).collect();
    assert_eq!(logged_in, [(client, player)]);
    let closed = written::<SessionClosed>(&app);
    let refusals: Vec<_> = closed.iter().map(|it| (it.client, it.refusal)).collect();
    assert_eq!(refusals, [(unproved, Some(LoginRefusal::Unverified))]);
}

#[test]
fn login_for_another_player_than_the_token_is_logged() {
    let mut app = app();
    let client = connect_as(&mut app, 8);
    send(&mut app, client, ClientMessage::login(7));
    let warnings = logged_warnings(|| app.update());
    let text = "login refused: this token is for player 8, the login names player 7";
    assert!(
        warnings.len() == 1 && warnings[0].starts_with(text),
        "{warnings:?}"
    );
}

/// Stores its logins, to be replied to later.
#[derive(Clone, Default)]
struct Later(Arc<Mutex<Vec<(Vec<u8>, LoginResponder)>>>);

impl Authenticator for Later {
    fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder) {
        let credential = login.credential.to_vec();
        self.0.lock().unwrap().push((credential, answer));
    }
}

#[test]
fn hook_may_reply_later_and_choose_the_player() {
    let mut app = app();
    let later = Later::default();
    app.insert_resource(Authentication::new(later.clone()));
    let clients = [(); 3].map(|()| unknown(&mut app));
    for (client, credential) in clients.into_iter().zip([b"yes", b"no ", b"gon"]) {
        let login = ClientMessage::Login {
            player: 7,
            credential,
        };
        send(&mut app, client, login);
    }
    (0..5).for_each(|_| app.update());
    assert!(
        clients
            .iter()
            .all(|&client| state(&app, client) == Some(SessionState::Authenticating))
    );
    disconnect(app.world_mut(), clients[2], LogoutReason::Kicked);
    let asked = std::mem::take(&mut *later.0.lock().unwrap());
    std::thread::spawn(|| {
        for (credential, answer) in asked {
            match &credential[..] {
                b"no " => answer.refuse(),
                _ => answer.accept_as(PlayerId(41), AdmissionClass::Staff),
            }
        }
    })
    .join()
    .unwrap();
    app.update();
    let expected = LoggedIn {
        client: clients[0],
        client_entity: session_of(&app, clients[0]),
        player: PlayerId(41),
    };
    assert_eq!(written::<LoggedIn>(&app), [expected]);
    assert_eq!(state(&app, clients[0]), Some(SessionState::Entering));
    assert_eq!(
        [state(&app, clients[1]), state(&app, clients[2])],
        [None, None]
    );
}

#[test]
fn authentication_timeout_ends_the_session_for_good() {
    let mut app = app();
    let later = Later::default();
    app.insert_resource(Authentication::new(later.clone()));
    let client = unknown(&mut app);
    send(&mut app, client, ClientMessage::login(7));
    // Ten seconds at the app's 64 ticks.
    (0..640).for_each(|_| app.update());
    assert_eq!(state(&app, client), Some(SessionState::Authenticating));
    app.update();
    assert_eq!(state(&app, client), None);
    for (_, answer) in later.0.lock().unwrap().drain(..) {
        answer.accept(PlayerId(7));
    }
    app.update();
    assert!(app.world().resource::<Sessions>().is_empty());
    assert_eq!((stats(&app).logins, stats(&app).timed_out), (0, 1));
}

#[test]
fn sessions_without_login_time_out_and_make_room() {
    let mut app = app();
    app.insert_resource(SessionSettings {
        sessions_max: 50,
        ..SessionSettings::default()
    });
    let silent: Vec<ClientId> = (0..50).map(|_| unknown(&mut app)).collect();
    let refused = connect_client(app.world_mut(), ConnectionInfo::player(1).without_loading());
    assert!(refused.is_err(), "they have just come");
    // A second later each of them makes room for one.
    (0..65).for_each(|_| app.update());
    for player in 1..=20 {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
    }
    app.update();
    assert_eq!(stats(&app).logins, 20);
    let left = silent
        .iter()
        .filter(|&&client| state(&app, client).is_some());
    assert_eq!(left.count(), 30);
    // In the end they time out; a client that plays does not.
    (0..640).for_each(|_| app.update());
    assert_eq!(app.world().resource::<Sessions>().len(), 20);
}

fn app_with_three_per_address() -> App {
    let mut app = app();
    app.insert_resource(SessionSettings {
        unauthenticated_per_address_max: 3,
        ..SessionSettings::default()
    });
    app
}

#[test]
fn one_address_cannot_take_all_sessions() {
    let mut app = app_with_three_per_address();
    let from = |host: u8, port: u16| {
        let address = std::net::SocketAddr::from(([10, 0, 0, host], port));
        ConnectionInfo::unknown()
            .without_loading()
            .with_address(address)
    };
    let opened = (1..9).filter(|&port| connect_client(app.world_mut(), from(1, port)).is_ok());
    assert_eq!(opened.count(), 3);
    assert!(connect_client(app.world_mut(), from(2, 1)).is_ok());
}

#[test]
fn clients_with_verified_players_may_share_an_address() {
    let mut app = app_with_three_per_address();
    let mut opens = |port: u16, player| {
        let address = std::net::SocketAddr::from(([10, 0, 0, 1], port));
        let mut connected = ConnectionInfo::unknown()
            .without_loading()
            .with_address(address);
        connected.claims.player = player;
        connect_client(app.world_mut(), connected).is_ok()
    };
    let verified = |port: u16| Some(PlayerId(port.into()));
    assert_eq!(
        (1..9).filter(|&port| opens(port, verified(port))).count(),
        8
    );
    // They take no room of others.
    assert_eq!((9..19).filter(|&port| opens(port, None)).count(), 3);
    assert!(opens(19, verified(19)));
}

#[test]
fn addresses_of_an_ipv6_network_count_as_one() {
    let mut app = app_with_three_per_address();
    let mut connects = |network: u16, host: u16| {
        let ip = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host);
        let from = ConnectionInfo::unknown().with_address((ip, 9).into());
        connect_client(app.world_mut(), from.without_loading()).is_ok()
    };
    assert_eq!((1..9).filter(|&host| connects(1, host)).count(), 3);
    assert!(connects(2, 1));
}

#[test]
fn unauthenticated_flood_delays_no_player_message() {
    let mut app = app();
    // Costs that allow a few hundred messages per tick.
    app.insert_resource(InboxSettings {
        messages_per_tick_max: 400,
        ..InboxSettings::default()
    });
    let honest = connect(&mut app);
    send(&mut app, honest, ClientMessage::login(7));
    app.update();
    let flooders: Vec<ClientId> = (0..3_200).map(|_| unknown(&mut app)).collect();
    let transport = app.world().resource::<TransportHandle>().clone();
    for tick in 0..120_u8 {
        for &flooder in &flooders {
            for _ in 0..64 {
                let _ = transport.receive(flooder, &[4, 1]);
            }
        }
        assert_eq!(transport.receive(honest, &[4, tick]), Ok(()));
        app.update();
        assert_eq!(
            inputs(&app, honest),
            u16::from(tick) + 2,
            "handled in the next tick"
        );
    }
}

#[test]
fn flooding_client_is_closed_and_others_are_not_delayed() {
    let mut app = app();
    app.insert_resource(InboxSettings {
        quota: ClientQuota {
            violations_max: 2_000,
            ..ClientQuota::default()
        },
        ..InboxSettings::default()
    });
    let clients: Vec<ClientId> = (0..100)
        .map(|player| connect_as(&mut app, player))
        .collect();
    for (player, &client) in (0..).zip(&clients) {
        send(&mut app, client, ClientMessage::login(player));
    }
    app.update();
    let transport = app.world().resource::<TransportHandle>().clone();
    let mut closed = Vec::new();
    for tick in 0..10 {
        for _ in 0..1_500 {
            let _ = transport.receive(clients[0], &[4, 1]);
        }
        for &client in &clients[1..] {
            assert_eq!(transport.receive(client, &[4, 1]), Ok(()));
        }
        app.update();
        let handled = |client: &ClientId| inputs(&app, *client) == tick + 2;
        assert!(clients[1..].iter().all(handled));
        closed.extend(
            written::<SessionClosed>(&app)
                .iter()
                .map(|it| (it.client, it.reason)),
        );
    }
    assert_eq!(closed, [(clients[0], LogoutReason::Flooding)]);
}
