//! Clients that come from another server process, or are taken over by one, on the same connection.

use super::lifecycle::{controls, drop_connection, log_in, settings, state, token};
use super::*;
use crate::inbox::ContinuedConnection;
use crate::session::{Ban, BanTarget, SessionState};
use crate::wire::{ClientInput, ResumeToken, SessionNotice};

fn continuing(last_message: u16, last_input: Option<u16>) -> ConnectionInfo {
    let continued = ContinuedConnection {
        last_message,
        last_input,
    };
    ConnectionInfo::player(7)
        .without_loading()
        .continuing(continued)
}

/// A client that continues, after the tick in which it has arrived.
fn arrive(app: &mut App, connected: ConnectionInfo) -> ClientId {
    let transport = app.world().resource::<TransportHandle>().clone();
    let client = transport.connect(connected).unwrap();
    app.update();
    client
}

fn last_input(app: &App, client: ClientId) -> u16 {
    app.world().resource::<Sessions>().last_input(client)
}

fn input(seq: u16) -> ClientMessage<'static> {
    ClientMessage::Input(ClientInput {
        seq,
        ..ClientInput::default()
    })
}

#[test]
fn continuing_client_plays_without_a_login() {
    let (mut app, _) = settings(|settings| settings.players_max = 1);
    // The server is full, and another client is queued.
    log_in(&mut app, 8);
    let queued = log_in(&mut app, 9);
    assert_eq!(state(&app, queued), Some(SessionState::Queued));
    let client = arrive(&mut app, continuing(3, None));
    let login = LoggedIn {
        client,
        client_entity: session_of(&app, client),
        player: PlayerId(7),
    };
    assert_eq!(written::<LoggedIn>(&app), [login]);
    let notices = written::<SessionNoticeRequest>(&app).into_iter();
    let notices: Vec<SessionNotice> = notices
        .filter(|notice| notice.client == client)
        .map(|notice| notice.notice)
        .collect();
    let [discards, SessionNotice::Welcome { player: 7, .. }] = notices[..] else {
        panic!("{notices:?}");
    };
    assert_eq!(discards, SessionNotice::Resumed { keeps_state: false });
    assert_eq!(state(&app, client), Some(SessionState::InWorld));
    assert_eq!(state(&app, queued), Some(SessionState::Queued));
}

#[test]
fn message_numbers_of_a_continuing_client_continue() {
    let (mut app, _) = settings(|_| ());
    let client = arrive(&mut app, continuing(u16::MAX, None));
    assert_eq!(last_input(&app, client), u16::MAX);
    app.update();
    for expected in [0, 1] {
        send(&mut app, client, ClientMessage::Ping { number: 1 });
        app.update();
        assert_eq!(last_input(&app, client), expected);
    }
}

#[test]
fn inputs_for_the_former_process_are_not_handled_again() {
    let (mut app, _) = settings(|_| ());
    let client = arrive(&mut app, continuing(900, Some(40)));
    let seqs = |app: &App| -> Vec<u16> {
        let inputs = written::<PlayerInput>(app).into_iter();
        inputs.map(|input| input.input.seq).collect()
    };
    assert_eq!(last_input(&app, client), 40);
    for seq in [39, 40, 41] {
        send(&mut app, client, input(seq));
    }
    app.update();
    assert_eq!(seqs(&app), [41]);
    assert_eq!(last_input(&app, client), 41);
}

#[test]
fn messages_sent_before_the_tick_of_the_arrival_are_handled() {
    let (mut app, _) = settings(|_| ());
    let transport = app.world().resource::<TransportHandle>().clone();
    let client = transport.connect(continuing(900, Some(40))).unwrap();
    // More than a client can send before its login.
    for seq in 41..61 {
        send(&mut app, client, input(seq));
    }
    // It controls its object from the second tick on.
    app.update();
    assert_eq!(written::<PlayerInput>(&app), []);
    app.update();
    assert_eq!(last_input(&app, client), 60);
    assert_eq!(written::<PlayerInput>(&app).len(), 20);
}

#[test]
fn messages_without_an_object_are_handled_after_32_ticks() {
    let mut app = app();
    let client = arrive(&mut app, continuing(3, None));
    send(&mut app, client, ClientMessage::Logout);
    for _ in 0..31 {
        app.update();
        assert_eq!(state(&app, client), Some(SessionState::Entering));
    }
    app.update();
    assert_eq!(state(&app, client), None);
    // If it moves to another process again, its session ends at once.
    let client = arrive(&mut app, continuing(3, None));
    send(&mut app, client, ClientMessage::Ping { number: 1 });
    let transport = app.world().resource::<TransportHandle>().clone();
    transport.disconnect(client, DisconnectReason::Moved);
    app.update();
    assert_eq!(state(&app, client), None);
}

#[test]
fn session_of_a_moved_client_ends_at_once() {
    let (mut app, _) = settings(|_| ());
    let [stays, goes] = [7, 8].map(|player| log_in(&mut app, player));
    let [kept, lost] = [stays, goes].map(|client| controls(&app, client).unwrap());
    app.world_mut().entity_mut(kept).insert(OutlivesSession);
    let transport = app.world().resource::<TransportHandle>().clone();
    for client in [stays, goes] {
        transport.disconnect(client, DisconnectReason::Moved);
    }
    app.update();
    let logouts = written::<LoggedOut>(&app);
    let logouts: Vec<_> = logouts.iter().map(|of| (of.client, of.reason)).collect();
    let moved = [stays, goes].map(|client| (client, LogoutReason::Moved));
    assert_eq!(logouts, moved);
    assert_eq!([stays, goes].map(|client| state(&app, client)), [None; 2]);
    // An object that outlives its session waits for another client.
    assert!(app.world().get_entity(lost).is_err());
    assert!(app.world().get::<Object>(kept).is_some());
    assert_eq!(app.world().get::<ControlledBy>(kept), None);
    let again = connect_as(&mut app, 7);
    assert!(control(app.world_mut(), again, kept));
}

#[test]
fn object_that_outlives_a_lost_session_awaits_no_reconnect() {
    let (mut app, _) = settings(|settings| settings.reconnect_grace_s = 0.2);
    let client = log_in(&mut app, 7);
    let object = controls(&app, client).unwrap();
    app.world_mut().entity_mut(object).insert(OutlivesSession);
    drop_connection(&mut app, client);
    assert!(app.world().get::<AwaitingReconnect>(object).is_some());
    while state(&app, client).is_some() {
        app.update();
    }
    assert!(app.world().get::<AwaitingReconnect>(object).is_none());
    assert!(app.world().get::<Object>(object).is_some());
}

#[test]
fn continuing_client_takes_over_the_session_of_its_player() {
    let (mut app, _) = settings(|_| ());
    let before = log_in(&mut app, 7);
    let (session, object) = (session_of(&app, before), controls(&app, before));
    let client = arrive(&mut app, continuing(5, None));
    assert_eq!(state(&app, before), None);
    assert_eq!(state(&app, client), Some(SessionState::InWorld));
    assert_eq!(
        (session_of(&app, client), controls(&app, client)),
        (session, object)
    );
    assert_eq!(written::<SessionResumed>(&app).len(), 1);
    assert_eq!(written::<LoggedOut>(&app), []);
}

#[test]
fn banned_player_does_not_continue() {
    let (mut app, _) = settings(|_| ());
    let mut bans = app.world_mut().resource_mut::<crate::session::BanList>();
    let ban = Ban {
        target: BanTarget::Player(PlayerId(7)),
        reason: String::new(),
        issued_by: String::new(),
        issued_unix_s: 0,
        until_unix_s: None,
    };
    bans.add(ban).unwrap();
    let client = arrive(&mut app, continuing(5, None));
    assert_eq!(state(&app, client), None);
    assert_eq!(written::<LoggedIn>(&app), []);
}

const FORMER: ResumeToken = ResumeToken([5; 16]);

/// A client that resumes the session of player 7 in another process with its token, after the next tick.
fn resume_former(app: &mut App, connected: ConnectionInfo, token: ResumeToken) -> ClientId {
    let transport = app.world().resource::<TransportHandle>().clone();
    let client = transport.connect(connected.without_loading()).unwrap();
    let resume = ClientMessage::Resume {
        player: 7,
        token,
        received: Some(1_000),
    };
    send(app, client, resume);
    app.update();
    client
}

fn allow(app: &mut App, token: ResumeToken, ticks: u64) {
    let until_tick = app.world().resource::<crate::sim::SimTick>().0 + ticks;
    let mut sessions = app.world_mut().resource_mut::<Sessions>();
    sessions.allow_resume(PlayerId(7), token, until_tick);
}

fn allow_former(app: &mut App, ticks: u64) {
    allow(app, FORMER, ticks);
}

/// The tokens for the next process.
fn resume_tokens(app: &App) -> Vec<ResumeToken> {
    let sessions = app.world().resource::<Sessions>();
    sessions.resume_tokens(PlayerId(7))
}

#[test]
fn newest_four_tokens_of_former_processes_are_passed_on() {
    let (mut app, _) = settings(|_| ());
    let tokens: Vec<_> = (1..=5).map(|byte| ResumeToken([byte; 16])).collect();
    for &token in &tokens {
        allow(&mut app, token, 1_000);
        // As a repeated message does.
        allow(&mut app, token, 1_000);
    }
    assert_eq!(resume_tokens(&app), tokens[1..]);
    let refused = resume_former(&mut app, ConnectionInfo::player(7), tokens[0]);
    assert_eq!(state(&app, refused), Some(SessionState::Connecting));
    let client = resume_former(&mut app, ConnectionInfo::player(7), tokens[1]);
    assert_eq!(state(&app, client), Some(SessionState::InWorld));
    let own = token(&app, client);
    assert_eq!(resume_tokens(&app), [&tokens[2..], &[own]].concat());
    // Each has its own end.
    allow(&mut app, tokens[4], 0);
    assert_eq!(resume_tokens(&app), [&tokens[1..4], &[own]].concat());
}

#[test]
fn token_that_resumed_is_passed_on_until_the_client_sends_more() {
    let (mut app, _) = settings(|_| ());
    let before = log_in(&mut app, 7);
    let former = token(&app, before);
    drop_connection(&mut app, before);
    let client = resume_former(&mut app, ConnectionInfo::player(7), former);
    let newest = token(&app, client);
    assert_eq!(resume_tokens(&app), [former, newest]);
    send(&mut app, client, ClientMessage::Ping { number: 1 });
    app.update();
    assert_eq!(resume_tokens(&app), [newest]);
}

#[test]
fn tokens_of_a_player_that_moves_on_and_returns_are_accepted() {
    let (mut app, _) = settings(|_| ());
    let client = arrive(&mut app, continuing(5, None));
    let lost = token(&app, client);
    // The player returns before this process knows that its client has left.
    allow(&mut app, lost, 1_000);
    let transport = app.world().resource::<TransportHandle>().clone();
    transport.disconnect(client, DisconnectReason::Moved);
    app.update();
    let again = resume_former(&mut app, ConnectionInfo::player(7), lost);
    assert_eq!(state(&app, again), Some(SessionState::InWorld));
}

#[test]
fn token_of_a_continued_session_resumes_if_the_next_one_is_lost() {
    let (mut app, _) = settings(|_| ());
    let before = arrive(&mut app, continuing(5, None));
    let known = token(&app, before);
    let client = arrive(&mut app, continuing(5, None));
    let lost = token(&app, client);
    assert_ne!(lost, known);
    assert_eq!(resume_tokens(&app), [known, lost]);
    drop_connection(&mut app, client);
    let again = resume_former(&mut app, ConnectionInfo::player(7), known);
    assert_eq!(state(&app, again), Some(SessionState::InWorld));
}

#[test]
fn former_token_resumes_until_a_newer_one_is_used() {
    let (mut app, _) = settings(|_| ());
    allow_former(&mut app, 1_000);
    let verified = || ConnectionInfo::player(7).resuming_only(true);
    assert_eq!(resume_tokens(&app), [FORMER]);
    let first = resume_former(&mut app, verified(), FORMER);
    assert_eq!(state(&app, first), Some(SessionState::InWorld));
    assert_eq!(written::<LoggedIn>(&app).len(), 1);
    assert_eq!(resume_tokens(&app), [FORMER, token(&app, first)]);
    // Its new token was lost with the connection.
    let second = resume_former(&mut app, verified(), FORMER);
    assert_eq!(state(&app, second), Some(SessionState::InWorld));
    assert_eq!(state(&app, first), None);
    let newest = token(&app, second);
    let third = resume_former(&mut app, verified(), newest);
    assert_eq!(state(&app, third), Some(SessionState::InWorld));
    let late = resume_former(&mut app, verified(), FORMER);
    assert_eq!(state(&app, late), Some(SessionState::Connecting));
    assert_eq!(state(&app, third), Some(SessionState::InWorld));
}

#[test]
fn former_token_is_refused_to_others_and_later() {
    let (mut app, _) = settings(|_| ());
    let refused = |app: &mut App, connected, token| {
        let client = resume_former(app, connected, token);
        assert_eq!(state(app, client), Some(SessionState::Connecting));
    };
    let verified = || ConnectionInfo::player(7);
    refused(&mut app, verified(), FORMER);
    allow_former(&mut app, 6);
    refused(&mut app, ConnectionInfo::unknown(), FORMER);
    refused(&mut app, ConnectionInfo::player(8), FORMER);
    refused(&mut app, verified(), ResumeToken([0; 16]));
    for _ in 0..6 {
        app.update();
    }
    refused(&mut app, verified(), FORMER);
    // It ends with the session of the player.
    allow_former(&mut app, 1_000);
    let client = resume_former(&mut app, verified(), FORMER);
    assert_eq!(state(&app, client), Some(SessionState::InWorld));
    disconnect(app.world_mut(), client, LogoutReason::Kicked);
    app.update();
    refused(&mut app, verified(), FORMER);
}
