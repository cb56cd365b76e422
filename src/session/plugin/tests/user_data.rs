//! The user data of connect tokens reaches the hook and the entity of the session.

use std::sync::{Arc, Mutex};

use throng_net::{TokenUserData, USER_DATA_BYTES};

use super::*;
use crate::session::{
    Authentication, Authenticator, LoginRequest, LoginResponder, ResumeAttempt, SessionState,
};
use crate::sim::state_hash;
use crate::wire::{ResumeToken, SessionNotice};

/// Data that begins with this byte.
fn data(first: u8) -> Option<TokenUserData> {
    let mut bytes = [0; USER_DATA_BYTES];
    bytes[0] = first;
    TokenUserData::new(&bytes)
}

fn connect_with(app: &mut App, first: u8) -> ClientId {
    let connected = ConnectionInfo::player(7)
        .without_loading()
        .with_user_data(data(first));
    connect_client(app.world_mut(), connected).unwrap()
}

/// The first byte of the data on the entity of a session.
fn data_of(app: &App, client: ClientId) -> Option<u8> {
    let data = app
        .world()
        .get::<SessionUserData>(session_of(app, client))?;
    Some(data.as_bytes()[0])
}

/// Accepts all, and records the first byte of their data.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<Option<u8>>>>);

impl Recording {
    fn add(&self, data: Option<&TokenUserData>) {
        let first = data.map(|data| data.as_bytes()[0]);
        self.0.lock().unwrap().push(first);
    }
}

impl Authenticator for Recording {
    fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder) {
        self.add(login.user_data);
        answer.accept(login.player);
    }

    fn may_resume(&mut self, resume: &ResumeAttempt<'_>) -> bool {
        self.add(resume.user_data);
        true
    }
}

#[test]
fn user_data_reaches_the_hook_and_follows_the_newest_token() {
    let mut app = app();
    let recording = Recording::default();
    app.insert_resource(Authentication::new(recording.clone()));
    let mut client = connect_with(&mut app, 5);
    assert_eq!(data_of(&app, client), Some(5));
    send(&mut app, client, ClientMessage::login(7));
    app.update();
    let entity = session_of(&app, client);
    for next in [6, 0, 8] {
        let token = welcome_token(&app, client);
        let transport = app.world().resource::<TransportHandle>().clone();
        transport.disconnect(client, DisconnectReason::Lost);
        app.update();
        let resumed = connect_with(&mut app, next);
        let resume = ClientMessage::Resume {
            player: 7,
            token,
            received: None,
        };
        send(&mut app, resumed, resume);
        app.update();
        let sessions = app.world().resource::<Sessions>();
        let state = sessions.get(resumed).map(|session| session.state);
        assert_eq!(state, Some(SessionState::Entering));
        // The session keeps its entity, and gets the data of the new token: none, if that has none.
        assert_eq!(session_of(&app, resumed), entity);
        assert_eq!(data_of(&app, resumed), data(next).map(|_| next));
        client = resumed;
    }
    let seen = recording.0.lock().unwrap().clone();
    assert_eq!(seen, [Some(5), Some(6), None, Some(8)]);
}

/// The resume token in the last welcome message.
fn welcome_token(app: &App, client: ClientId) -> ResumeToken {
    let notices = written::<SessionNoticeRequest>(app);
    let tokens = notices.iter().filter_map(|request| match request.notice {
        SessionNotice::Welcome { token, .. } if request.client == client => Some(token),
        _ => None,
    });
    tokens.last().expect("a welcome message")
}

#[test]
fn user_data_is_in_the_state_hash() {
    for is_open in [false, true] {
        let hashes = [1, 2].map(|first| {
            let mut app = app();
            if is_open {
                connect_with(&mut app, first);
            } else {
                let transport = app.world().resource::<TransportHandle>().clone();
                let connected = ConnectionInfo::player(7).with_user_data(data(first));
                transport.connect(connected).unwrap();
            }
            state_hash(app.world_mut())
        });
        assert_ne!(hashes[0], hashes[1], "{is_open}");
    }
}
