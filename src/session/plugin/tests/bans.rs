//! Banned players and addresses are refused, and their sessions end.

use std::net::SocketAddr;

use super::*;
use crate::session::{Ban, BanError, BanList, BanTarget, SessionState, ban};

fn ban_of(target: BanTarget, until_unix_s: Option<u64>) -> Ban {
    Ban {
        target,
        reason: "test".to_owned(),
        issued_by: "alice".to_owned(),
        issued_unix_s: 1,
        until_unix_s,
    }
}

fn connect_from(app: &mut App, player: u64, address: &str) -> ClientId {
    let address: SocketAddr = address.parse().unwrap();
    let connected = ConnectionInfo {
        address: Some(address),
        ..ConnectionInfo::player(player).without_loading()
    };
    connect_client(app.world_mut(), connected).unwrap_or(ClientId(u32::MAX))
}

fn is_open(app: &App, client: ClientId) -> bool {
    app.world().resource::<Sessions>().get(client).is_some()
}

fn banned(app: &App) -> Vec<ClientId> {
    let closed = written::<SessionClosed>(app);
    let banned = closed.iter().filter(|it| it.reason == LogoutReason::Banned);
    banned.map(|it| it.client).collect()
}

#[test]
fn ban_ends_the_players_session_and_refuses_its_logins() {
    let mut app = app();
    let clients = [7, 8].map(|player| {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
        client
    });
    app.update();
    let seven = BanTarget::Player(PlayerId(7));
    assert_eq!(ban(app.world_mut(), ban_of(seven, Some(100))), Ok(1));
    app.update();
    assert!(!is_open(&app, clients[0]) && is_open(&app, clients[1]));
    let again = connect_as(&mut app, 7);
    send(&mut app, again, ClientMessage::login(7));
    app.update();
    assert_eq!(banned(&app), [again]);
    assert!(written::<LoggedIn>(&app).is_empty());
    // It ends in its 100th second.
    let mut bans = app.world_mut().resource_mut::<BanList>();
    assert_eq!((bans.end_expired(99), bans.end_expired(100)), (0, 1));
    let again = connect_as(&mut app, 7);
    send(&mut app, again, ClientMessage::login(7));
    app.update();
    assert_eq!(written::<LoggedIn>(&app).len(), 1);
}

#[test]
fn banned_player_cannot_resume() {
    let mut app = app();
    let first = connect_as(&mut app, 7);
    send(&mut app, first, ClientMessage::login(7));
    app.update();
    let token = app.world().resource::<Sessions>().get(first).unwrap().token;
    let transport = app.world().resource::<TransportHandle>().clone();
    transport.disconnect(first, DisconnectReason::Lost);
    app.update();
    // The list alone, as after a restart with its file: the session awaits a reconnect.
    let mut bans = app.world_mut().resource_mut::<BanList>();
    let seven = BanTarget::Player(PlayerId(7));
    bans.add(ban_of(seven, None)).unwrap();
    let second = connect_as(&mut app, 7);
    let resume = ClientMessage::Resume {
        player: 7,
        token,
        received: None,
    };
    send(&mut app, second, resume);
    app.update();
    assert!(written::<SessionResumed>(&app).is_empty());
    // A ban by the function ends the waiting session, too.
    let ended = ban(app.world_mut(), ban_of(seven, None));
    assert_eq!(ended, Ok(1));
    assert!(!is_open(&app, first));
}

#[test]
fn ban_of_a_queued_player_ends_its_session() {
    let mut app = app();
    app.world_mut()
        .resource_mut::<SessionSettings>()
        .players_max = 1;
    let clients = [1, 2].map(|player| {
        let client = connect_as(&mut app, player);
        send(&mut app, client, ClientMessage::login(player));
        client
    });
    app.update();
    let sessions = app.world().resource::<Sessions>();
    let state = sessions.get(clients[1]).map(|session| session.state);
    assert_eq!(state, Some(SessionState::Queued));
    let two = BanTarget::Player(PlayerId(2));
    assert_eq!(ban(app.world_mut(), ban_of(two, None)), Ok(1));
    assert!(!is_open(&app, clients[1]));
    assert_eq!(app.world().resource::<Sessions>().queue_len(), 0);
}

#[test]
fn banned_network_is_refused_and_its_sessions_end() {
    let mut app = app();
    let inside = connect_from(&mut app, 1, "[2001:db8::1]:9");
    let outside = connect_from(&mut app, 2, "[2001:db9::1]:9");
    let network = BanTarget::Addresses("2001:db8::/32".parse().unwrap());
    assert_eq!(ban(app.world_mut(), ban_of(network, None)), Ok(1));
    assert!(!is_open(&app, inside) && is_open(&app, outside));
    let again = connect_from(&mut app, 1, "[2001:db8:ffff::7]:9");
    assert!(!is_open(&app, again));
    let mut bans = app.world_mut().resource_mut::<BanList>();
    assert!(bans.lift(network).is_some() && bans.lift(network).is_none());
    let again = connect_from(&mut app, 1, "[2001:db8:ffff::7]:9");
    assert!(is_open(&app, again));
}

#[test]
fn ban_with_a_long_reason_changes_nothing() {
    let mut app = app();
    let long = Ban {
        reason: "x".repeat(513),
        ..ban_of(BanTarget::Player(PlayerId(7)), None)
    };
    let refused = ban(app.world_mut(), long);
    assert_eq!(refused, Err(BanError::ReasonTooLong { bytes: 513 }));
    assert!(app.world().resource::<BanList>().is_empty());
}
