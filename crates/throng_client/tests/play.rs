//! Clients of a real server, over local sockets.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::net::{ListenSettings, SecretKey, TokenClaims, listen, stop_listening};
use throng::prelude::*;
use throng::session::SessionStats;
use throng::sim::clock::unix_ms;
use throng_client::{
    Client, ClientDisconnected, ClientError, ClientEvent, ClientPlugin, ClientSettings,
    ClientStartError, ConnectionError, ControlState, ControlledObject, DisconnectedClient,
    GameClient, RenderPosition, VisibleObject,
};

const KEY: SecretKey = SecretKey([9; 32]);
const SPEED: f32 = 3.0;
/// Short ticks make the tests fast.
const TICK_HZ: f64 = 100.0;
/// Many more ticks than any test needs.
const TICKS_MAX: u32 = 10_000;
const TILE_M: f32 = 0.5;

/// A server with one scene, in which every player who logs in starts at (10, 10).
struct Town {
    server: Server,
    scene: Entity,
    address: std::net::SocketAddr,
    /// The clients' clock, which advances with the ticks: on a busy machine neither end is too fast for the other.
    now: Instant,
}

impl Drop for Town {
    fn drop(&mut self) {
        stop_listening(self.server.world_mut());
    }
}

fn tiles() -> Arc<TileMap> {
    let row = |y: usize| -> String {
        let wall = |x: usize| if x == 30 && y != 5 { '@' } else { '.' };
        (0..80).map(wall).collect()
    };
    let rows: Vec<String> = (0..80).map(row).collect();
    Arc::new(TileMap::from_ascii(&rows.join("\n")).unwrap())
}

impl Town {
    fn open() -> Self {
        let mut server = Server::builder().tick_hz(TICK_HZ).build();
        let map = SceneMap::new(tiles(), TILE_M);
        let spec = SceneSpec {
            size_m: map.size_m(),
            ..SceneSpec::default()
        };
        let world = server.world_mut();
        let scene = open_scene(world, spec, map).unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let address = listen(world, local, KEY, ListenSettings::default(), None).unwrap();
        Self {
            server,
            scene,
            address,
            now: Instant::now(),
        }
    }

    fn token(&self, player: u64, key: &SecretKey) -> Vec<u8> {
        self.token_with_timeout(player, key, 60)
    }

    fn token_with_timeout(&self, player: u64, key: &SecretKey, timeout_s: i32) -> Vec<u8> {
        let claims = TokenClaims {
            timeout_s,
            ..TokenClaims::new(player, vec![self.address], unix_ms() / 1_000)
        };
        let token = throng::net::ConnectToken::issue(&claims, key).unwrap();
        token.to_bytes()
    }

    fn client(&self, player: u64) -> Client {
        Client::connect(&self.token(player, &KEY), ClientSettings::default()).unwrap()
    }

    /// Runs a tick of the server.
    fn tick(&mut self) {
        self.server.step(1);
        self.now += Duration::from_secs_f64(1.0 / TICK_HZ);
        // Gives the transport threads time.
        sleep(Duration::from_millis(2));
    }

    /// Runs ticks of the server and frames of a client until the client ends.
    fn run_to_end(&mut self, client: &mut Client) -> ClientError {
        for _ in 0..TICKS_MAX {
            self.tick();
            if let Err(end) = client.update(self.now) {
                return end;
            }
        }
        panic!("the client did not end in {TICKS_MAX} ticks")
    }

    /// Runs a tick of the server and a frame of each client.
    fn step(&mut self, clients: &mut [&mut Client]) {
        self.tick();
        let world = self.server.world_mut();
        let new: Vec<LoggedIn> = world.resource_mut::<Messages<LoggedIn>>().drain().collect();
        for login in new {
            let place = (InScene(self.scene), Position(Vec2::splat(10.0)));
            let own = (
                Player,
                login.player,
                ControlledBy(login.client_entity),
                MaxSpeed(SPEED),
            );
            world.spawn((own, place));
        }
        for client in clients {
            client.update(self.now).unwrap();
        }
    }

    /// Runs ticks until a condition holds.
    fn run_until(
        &mut self,
        clients: &mut [&mut Client],
        holds: impl Fn(&mut Self, &[&mut Client]) -> bool,
    ) {
        for _ in 0..TICKS_MAX {
            if holds(self, clients) {
                return;
            }
            self.step(clients);
        }
        panic!("it does not hold after {TICKS_MAX} ticks");
    }

    /// Runs ticks, frames of other clients and updates of an app until a condition on the app holds; `what` describes it in the message.
    fn run_app_until(
        &mut self,
        app: &mut bevy_app::App,
        clients: &mut [&mut Client],
        what: &str,
        mut holds: impl FnMut(&bevy_app::App) -> bool,
    ) {
        for _ in 0..TICKS_MAX {
            if holds(app) {
                return;
            }
            self.step(clients);
            app.update();
        }
        panic!("after {TICKS_MAX} ticks: {what}");
    }

    /// The server's position of a player's object.
    fn place(&mut self, player: u64) -> Vec2 {
        let world = self.server.world_mut();
        let mut all = world.query::<(&PlayerId, &Position)>();
        let found = all.iter(world).find(|(id, _)| id.0 == player);
        found.expect("it is there").1.0
    }
}

fn events(client: &mut Client) -> Vec<ClientEvent> {
    std::iter::from_fn(|| client.next_event()).collect()
}

fn own(client: &Client) -> Option<u32> {
    client.mirror().controlled_object().map(|(id, _)| id)
}

#[test]
fn two_players_predict_their_walk_without_corrections() {
    let mut town = Town::open();
    let (mut first, mut second) = (town.client(7), town.client(8));
    let both = |_: &mut Town, clients: &[&mut Client]| {
        clients.iter().all(|client| client.ids().len() == 2)
    };
    town.run_until(&mut [&mut first, &mut second], both);
    let received = events(&mut first);
    let at = |is: fn(&ClientEvent) -> bool| {
        received
            .iter()
            .position(is)
            .expect("the event was received")
    };
    let order = [
        at(|event| *event == ClientEvent::Welcomed { player: 7 }),
        at(|event| matches!(event, ClientEvent::Loading { .. })),
        at(
            |event| matches!(event, ClientEvent::SceneEntered { size_m, .. } if *size_m == Vec2::splat(40.0)),
        ),
    ];
    assert!(order.is_sorted(), "{received:?}");
    at(|event| matches!(event, ClientEvent::ControlChanged { .. }));
    let other = own(&second).expect("it controls one");
    assert!(
        received
            .iter()
            .any(|event| matches!(event, ClientEvent::Entered { id, .. } if *id == other))
    );

    first.set_ground(tiles(), TILE_M);
    first.set_controls(ControlState::towards(0));
    let walker = own(&first).expect("it controls one");
    town.run_until(&mut [&mut first, &mut second], |town, clients| {
        let ahead = clients[0].own_position(town.now).expect("it has a place");
        let shown = clients[1].position(walker, town.now).expect("in sight");
        let place = town.place(7);
        assert_eq!(ahead.y, 10.0);
        ahead.x > 11.0 && place.distance(ahead) < 0.5 && place.distance(shown) < 0.3
    });
    // It walks to the wall, and stands exactly where the server has it.
    let wall_m = 15.0;
    town.run_until(&mut [&mut first, &mut second], |town, clients| {
        let at = clients[0].own_position(town.now);
        at.is_some_and(|at| at.x > wall_m - 0.1)
    });
    first.set_controls(ControlState::stand(0));
    town.run_until(&mut [&mut first, &mut second], |town, clients| {
        let at = |client: &Client| client.position(walker, town.now).expect("in sight");
        let (rest, seen) = (at(clients[0]), at(clients[1]));
        rest.x < wall_m && rest == town.place(7) && seen.distance(rest) < 0.05
    });
    let received = events(&mut first);
    let corrected = |event: &ClientEvent| matches!(event, ClientEvent::Corrected(_));
    assert!(!received.iter().any(corrected), "{received:?}");
    assert!(first.is_connected() && first.round_trip_s().is_some());
    // Packets whose acknowledgement is late count as lost.
    assert!(first.loss() < 0.5, "{}", first.loss());
    assert!(first.session().server_tick(0.0).is_some());
    assert_eq!(first.session().missed_events(), 0);
}

#[test]
fn client_without_a_map_is_corrected_at_walls() {
    let mut town = Town::open();
    let mut client = town.client(7);
    town.run_until(&mut [&mut client], |_, clients| own(clients[0]).is_some());
    client.set_controls(ControlState::towards(0));
    let corrected = |event: &ClientEvent| matches!(event, ClientEvent::Corrected(_));
    let is_corrected = (0..TICKS_MAX).any(|_| {
        town.step(&mut [&mut client]);
        events(&mut client).iter().any(corrected)
    });
    assert!(is_corrected);
    assert!(town.place(7).x < 15.0);
    client.set_controls(ControlState::stand(0));
    town.run_until(&mut [&mut client], |town, clients| {
        let rest = clients[0].own_position(town.now).expect("it has a place");
        rest.distance(town.place(7)) < 0.01
    });
}

#[test]
fn session_continues_over_a_new_connection_and_port() {
    let mut town = Town::open();
    // For two seconds after a connection its token belongs to the address: a client that resumes at once waits for that long.
    let token = |town: &Town, player| town.token_with_timeout(player, &KEY, 30);
    let [mut client, mut other] = [7, 8]
        .map(|player| Client::connect(&token(&town, player), ClientSettings::default()).unwrap());
    let both = |_: &mut Town, clients: &[&mut Client]| {
        clients.iter().all(|client| client.ids().len() == 2)
    };
    town.run_until(&mut [&mut client, &mut other], both);
    let before = own(&client);
    client.rebind().unwrap();
    for _ in 0..40 {
        town.step(&mut [&mut client, &mut other]);
    }
    assert_eq!(own(&client), before);
    client.reconnect(&token(&town, 7)).unwrap();
    run_until_resumed(&mut town, &mut client, &mut other);
    assert_eq!((own(&client), client.ids().len()), (before, 2));
    // With the token that it used before, twice.
    for _ in 0..2 {
        client.resume().unwrap();
        run_until_resumed(&mut town, &mut client, &mut other);
        assert_eq!((own(&client), client.ids().len()), (before, 2));
    }
}

/// Runs until the session of the first client continues over another connection.
fn run_until_resumed(town: &mut Town, client: &mut Client, other: &mut Client) {
    events(client);
    for _ in 0..TICKS_MAX {
        town.step(&mut [&mut *client, &mut *other]);
        let is_resumed = |event: &ClientEvent| matches!(event, ClientEvent::Resumed { .. });
        if events(client).iter().any(is_resumed) {
            return;
        }
    }
    panic!("the session is not resumed after {TICKS_MAX} ticks");
}

#[test]
fn invalid_token_and_wrong_key_are_reported() {
    let mut town = Town::open();
    let none = Client::connect(b"no token", ClientSettings::default());
    assert!(matches!(none, Err(ClientStartError::Token(_))), "{none:?}");
    let token = town.token_with_timeout(7, &SecretKey([1; 32]), 2);
    let mut client = Client::connect(&token, ClientSettings::default()).unwrap();
    let end = town.run_to_end(&mut client);
    assert!(
        matches!(end, ClientError::Ended(ConnectionError::Failed(_))),
        "{end}"
    );
    assert!(
        end.to_string()
            .starts_with("no answer from any of the token's servers (1)"),
        "{end}"
    );
    assert_eq!(client.update(town.now), Err(end));
    // It may try again.
    client.resume().unwrap();
    assert_eq!(client.update(town.now), Ok(()));
}

/// The error of a client whose server has stopped.
const fn stopped() -> ClientError {
    ClientError::Ended(ConnectionError::Closed {
        reason: Some(throng_client::CloseReason::Stopping),
    })
}

#[test]
fn login_for_another_player_than_the_token_is_refused_by_name() {
    let mut town = Town::open();
    let settings = ClientSettings {
        player: Some(7),
        ..ClientSettings::default()
    };
    let mut client = Client::connect(&town.token(8, &KEY), settings).unwrap();
    let end = town.run_to_end(&mut client);
    let text = "login refused: this token is for player 8, the login names player 7";
    assert_eq!(end.to_string(), text);
    let stats = town.server.world().resource::<SessionStats>();
    assert_eq!((stats.login_refusals.wrong_player, stats.refused), (1, 1));
}

#[test]
fn leaving_player_vanishes_and_server_stop_is_reported() {
    let mut town = Town::open();
    let (mut client, mut other) = (town.client(7), town.client(8));
    let both = |_: &mut Town, clients: &[&mut Client]| {
        clients.iter().all(|client| client.ids().len() == 2)
    };
    town.run_until(&mut [&mut client, &mut other], both);
    let gone = own(&other).expect("it controls one");
    other.leave();
    let alone = |_: &mut Town, clients: &[&mut Client]| clients[0].ids().len() == 1;
    town.run_until(&mut [&mut client], alone);
    let left = |event: &ClientEvent| matches!(event, ClientEvent::Left { id, .. } if *id == gone);
    assert!(events(&mut client).iter().any(left));
    town.server.world_mut().resource_mut::<Sessions>().drain();
    let end = town.run_to_end(&mut client);
    assert_eq!(end, stopped());
    let reason = Some(throng_client::CloseReason::Stopping);
    assert!(events(&mut client).contains(&ClientEvent::Closed {
        reason,
        refusal: None
    }));
}

#[test]
fn bevy_client_has_an_entity_for_each_visible_object() {
    let mut town = Town::open();
    let mut other = town.client(8);
    let mut app = bevy_app::App::new();
    app.add_plugins(ClientPlugin)
        .insert_resource(GameClient(town.client(7)));
    let mut sight = app
        .world_mut()
        .query::<(&VisibleObject, &RenderPosition, Has<ControlledObject>)>();
    town.run_app_until(&mut app, &mut [&mut other], "two objects", |app| {
        sight.iter(app.world()).len() == 2
    });
    let own: Vec<u32> = sight
        .iter(app.world())
        .filter_map(|(object, _, is_own)| is_own.then_some(object.id))
        .collect();
    let client = app.world().resource::<GameClient>();
    assert_eq!(
        own,
        Vec::from_iter(client.0.mirror().controlled_object().map(|(id, _)| id))
    );
    let shown: Vec<Vec2> = sight.iter(app.world()).map(|(_, at, _)| at.0).collect();
    assert_eq!(shown, [Vec2::splat(10.0); 2]);
    other.leave();
    town.run_app_until(&mut app, &mut [], "one object", |app| {
        sight.iter(app.world()).len() == 1
    });
    // Its object dies, and nobody sees another player.
    let mut third = town.client(9);
    town.run_app_until(&mut app, &mut [&mut third], "another player", |app| {
        sight.iter(app.world()).len() == 2
    });
    let world = town.server.world_mut();
    let mut all = world.query::<(Entity, &PlayerId)>();
    let own = all
        .iter(world)
        .find(|(_, id)| id.0 == 7)
        .map(|(own, _)| own);
    world.despawn(own.expect("it is there"));
    town.run_app_until(&mut app, &mut [&mut third], "no object", |app| {
        sight.iter(app.world()).len() == 0
    });
    // The server stops and notifies the game.
    town.server.world_mut().resource_mut::<Sessions>().drain();
    town.run_app_until(&mut app, &mut [], "the end of the client", |app| {
        !app.world().contains_resource::<GameClient>()
    });
    assert_eq!(sight.iter(app.world()).len(), 0);
    assert!(app.world().contains_resource::<DisconnectedClient>());
    let ended = app.world().resource::<Messages<ClientDisconnected>>();
    let ends: Vec<ClientError> = ended
        .iter_current_update_messages()
        .map(|end| end.0)
        .collect();
    assert_eq!(ends, [stopped()]);
}

#[test]
fn bevy_entities_vanish_without_a_client_and_return_with_it() {
    let mut town = Town::open();
    let mut other = town.client(8);
    let mut app = bevy_app::App::new();
    app.add_plugins(ClientPlugin)
        .insert_resource(GameClient(town.client(7)));
    let mut sight = app.world_mut().query::<&VisibleObject>();
    let mut until_there_are = |town: &mut Town, app: &mut bevy_app::App, count: usize| {
        town.run_app_until(app, &mut [&mut other], "another number of objects", |app| {
            sight.iter(app.world()).len() == count
        });
    };
    until_there_are(&mut town, &mut app, 2);
    #[expect(clippy::disallowed_methods, reason = "a game takes its client out")]
    let GameClient(mut client) = app.world_mut().remove_resource().expect("it has one");
    app.update();
    until_there_are(&mut town, &mut app, 0);
    client.reconnect(&town.token(7, &KEY)).unwrap();
    app.insert_resource(GameClient(client));
    until_there_are(&mut town, &mut app, 2);
    #[expect(clippy::disallowed_methods, reason = "a game takes its client out")]
    let GameClient(client) = app.world_mut().remove_resource().expect("it has one");
    client.leave();
    app.update();
    until_there_are(&mut town, &mut app, 0);
}

#[test]
fn observers_of_visible_objects_can_access_the_client() {
    use bevy_ecs::prelude::*;
    #[derive(Resource, Default)]
    struct Seen(u32, u32);
    let mut town = Town::open();
    let mut other = town.client(8);
    let mut app = bevy_app::App::new();
    app.add_plugins(ClientPlugin)
        .init_resource::<Seen>()
        .insert_resource(GameClient(town.client(7)))
        .add_observer(
            |_: On<Add<VisibleObject>>, client: Res<GameClient>, mut seen: ResMut<Seen>| {
                seen.0 += u32::from(!client.0.ids().is_empty());
            },
        )
        .add_observer(
            |_: On<Remove<VisibleObject>>, _: Res<GameClient>, mut seen: ResMut<Seen>| seen.1 += 1,
        );
    let seen = |app: &bevy_app::App| {
        let seen = app.world().resource::<Seen>();
        (seen.0, seen.1)
    };
    town.run_app_until(&mut app, &mut [&mut other], "two objects", |app| {
        seen(app).0 >= 2
    });
    other.leave();
    town.run_app_until(&mut app, &mut [], "one object less", |app| seen(app).1 >= 1);
}
