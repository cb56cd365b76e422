//! Promise: the sealed user data of a connect token reaches the authenticator and the entity of the session, over every transport.

use std::sync::{Arc, Mutex};

use throng::net::{
    ConnectToken, EndpointSettings, ListenSettings, SecretKey, TokenClaims, UdpClient, WebListener,
    listen,
};
use throng::prelude::*;
use throng::session::{Authentication, SessionUserData, USER_DATA_BYTES};
use throng::sim::clock::unix_ms;
use throng::wire::ClientMessage;

use crate::browsers::WebClient;
use crate::web_test_server::{LOOPBACK, WebTestServer, request};

#[test]
fn user_data_of_a_token_reaches_hook_and_session() {
    let mut hall = WebTestServer::new(0, |_| ());
    let seen = Arc::<Mutex<Vec<(u64, Option<u8>)>>>::default();
    let of_hook = seen.clone();
    let world = hall.server.world_mut();
    world.insert_resource(Authentication::from_fn(move |login| {
        let first = login.user_data.map(|data| data.as_bytes()[0]);
        of_hook.lock().unwrap().push((login.player.0, first));
        login.claims.player
    }));
    let settings = ListenSettings::default();
    let sink = Box::new(world.resource::<WebListener>().sink());
    let udp = listen(world, LOOPBACK, SecretKey::INSECURE, settings, Some(sink)).unwrap();
    // Player 1 has no user data.
    let issue = |player: u8, server| {
        let mut claims = TokenClaims::new(player.into(), vec![server], unix_ms() / 1_000);
        if player > 1 {
            claims.user_data = [player; USER_DATA_BYTES];
        }
        ConnectToken::issue(&claims, &SecretKey::INSECURE).unwrap()
    };
    let login = ClientMessage::login_by_token().to_bytes();
    let mut by_udp = [1, 2].map(|player| {
        let client = UdpClient::connect(issue(player, udp), EndpointSettings::default());
        (client.unwrap(), false)
    });
    let mut by_web = WebClient::connect(hall.address, request(&issue(3, hall.address)));
    by_web.send(&login);
    hall.step_until("all are logged in", |hall| {
        for (client, has_sent) in &mut by_udp {
            let _ = client.update(|_| ());
            let _ = client.receive(|_| ());
            if !*has_sent && matches!(client.connection().is_open(), Ok(true)) {
                client.send(&login).unwrap();
                *has_sent = true;
            }
        }
        by_web.receive(|_| ());
        let sessions = hall.server.world().resource::<Sessions>();
        let players = sessions
            .iter()
            .filter(|(_, session)| session.player.is_some());
        players.count() == 3
    });
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [(1, None), (2, Some(2)), (3, Some(3))]);
    let world = hall.server.world();
    for (_, session) in world.resource::<Sessions>().iter() {
        let data = world.get::<SessionUserData>(session.client_entity);
        let player = session.player.unwrap().0;
        let expected = (player > 1).then_some([player as u8; USER_DATA_BYTES]);
        assert_eq!(data.map(|data| *data.as_bytes()), expected);
    }
}
