//! Players of nodes on shared rows in memory.

use std::thread;
use std::time::Duration;

use glam::Vec2;
use throng::sim::clock::Stopwatch;
use throng_cluster::{
    BusPeer, ClusterKey, ClusterPlayers, ClusterRecord, ClusterStore, DriverSettings,
    DriverStartError, LocalBus, MessageBus, NodeDriver, PlayerHooks, SharedRows,
};

use super::*;
use crate::cluster::world::players::WorldHooks;
use crate::cluster::world::{OpenScenes, TravellerRecord, WorldGamePlugin};

/// Ticks after which a condition counts as never met.
const TICKS_MAX: u32 = 30_000;

const WORLD: &str = r#"World(
    start: "town", start_at_m: (10, 10), gold: 5,
    scenes: [Scene(name: "town", size_m: (40, 40), boards: [Board(at_m: (10, 10), radius_m: 2, mode: "duel")])],
    modes: [Mode(name: "duel", team_players: 1, duration_s: 1, size_m: (20, 20))],
)"#;

struct WorldNodes {
    servers: Vec<Server>,
    rows: SharedRows,
    clock: Stopwatch,
    elapsed_ms: u64,
    now_ms: u64,
}

fn world() -> ClusterWorld {
    ClusterWorld(WorldFile::parse("w.ron", WORLD).unwrap().into())
}

fn start(name: &str, rows: &SharedRows, bus: &LocalBus) -> Server {
    let world = world();
    let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
    let driver = NodeDriver::start(&DriverSettings::new(name), open, |run| {
        let own = BusPeer::Node(run.node);
        let key = ClusterKey::new(&[7; 32]);
        let transport = Box::new(bus.join(own));
        Ok::<_, DriverStartError>(MessageBus::new(transport, key, own, run.run))
    });
    let driver = driver.unwrap();
    driver.declare_scenes(world.0.declarations());
    driver.open_matches(world.0.match_node().unwrap().unwrap());
    let mut server = Server::builder().plugins(WorldGamePlugin(world)).build();
    let app = server.world_mut();
    OpenScenes::open_waiting_room(app).unwrap();
    app.resource_mut::<ClusterPlayers>().open(driver);
    server
}

impl WorldNodes {
    fn new(count: usize) -> Self {
        let (rows, bus) = (SharedRows::default(), LocalBus::default());
        let names = (0..count).map(|nth| format!("n{nth}"));
        Self {
            servers: names.map(|name| start(&name, &rows, &bus)).collect(),
            rows,
            clock: Stopwatch::start(),
            elapsed_ms: 0,
            now_ms: 0,
        }
    }

    fn until(&mut self, what: &str, condition: impl Fn(&[Server]) -> bool) {
        for _ in 0..TICKS_MAX {
            // A test that a busy machine stops for seconds must not find its nodes late.
            let elapsed_ms = self.clock.elapsed().as_millis() as u64;
            let step_ms = elapsed_ms - self.elapsed_ms;
            self.elapsed_ms = elapsed_ms;
            self.now_ms += step_ms.min(20);
            self.rows.set_now_ms(self.now_ms);
            self.servers.iter_mut().for_each(|server| server.step(1));
            if condition(&self.servers) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("{what}");
    }
}

/// The place of a player, at any node.
fn place(servers: &[Server], player: u64) -> Option<(u16, Vec2)> {
    servers.iter().find_map(|server| {
        let world = server.world();
        let entity = world
            .resource::<ClusterPlayers>()
            .entity(PlayerId(player))?;
        let (place, at) = (world.get::<Place>(entity)?, world.get::<Position>(entity)?);
        Some((place.0, at.0))
    })
}

#[test]
fn players_at_boards_of_two_nodes_play_a_match_and_return() {
    let mut nodes = WorldNodes::new(2);
    for (server, player) in nodes.servers.iter().zip([7, 8]) {
        let players = server.world().resource::<ClusterPlayers>();
        players.log_in(PlayerId(player));
    }
    let in_match =
        |servers: &[Server], player| place(servers, player).is_some_and(|it| it.0 == PLACE_MATCH);
    nodes.until("both are in a match", |servers| {
        in_match(servers, 7) && in_match(servers, 8)
    });
    nodes.until("both are back at the board", |servers| {
        [7, 8].iter().all(|player| {
            let place = place(servers, *player);
            place.is_some_and(|(place, at_m)| place == 0 && at_m.distance(Vec2::splat(10.0)) < 2.0)
        })
    });
}

#[test]
fn player_that_hears_nothing_of_its_match_returns() {
    let mut nodes = WorldNodes::new(1);
    let home = TravellerRecord {
        gold: 5,
        scene: "town".to_owned(),
        at_m: Vec2::new(30.0, 25.0),
        in_match: Some(MatchId { epoch: 9, nth: 9 }),
    };
    nodes.until("the scene is open", |servers| {
        let open = servers[0].world().resource::<OpenScenes>();
        open.get("town").is_some()
    });
    let hooks = WorldHooks(world());
    let world = nodes.servers[0].world_mut();
    let record = ClusterRecord {
        revision: 3,
        bytes: home.to_bytes(),
    };
    let player = hooks.on_receive(world, PlayerId(7), &record);
    // The match is part of what is saved, until the player has returned.
    assert_eq!(hooks.on_collect(world, player), home.to_bytes());
    world.entity_mut(player).insert(ClusterPlayer(PlayerId(7)));
    nodes.until("it is back in its scene", |servers| {
        let world = servers[0].world();
        world.get::<Position>(player) == Some(&Position(home.at_m))
            && world.get::<Place>(player) == Some(&Place(0))
    });
    let returned = TravellerRecord {
        in_match: None,
        ..home
    };
    let world = nodes.servers[0].world();
    assert_eq!(hooks.on_collect(world, player), returned.to_bytes());
}

#[test]
fn player_whose_match_is_unknown_to_the_cluster_returns_at_once() {
    let mut nodes = WorldNodes::new(1);
    let players = nodes.servers[0].world().resource::<ClusterPlayers>();
    players.log_in(PlayerId(7));
    nodes.until("it plays", |servers| place(servers, 7).is_some());
    let world = nodes.servers[0].world_mut();
    let player = world.resource::<ClusterPlayers>().entity(PlayerId(7));
    let home = Destination {
        scene: "town".to_owned(),
        at_m: Vec2::new(30.0, 25.0),
    };
    let guest = MatchGuest {
        id: MatchId { epoch: 9, nth: 9 },
        home,
        until: u64::MAX,
    };
    world.entity_mut(player.unwrap()).insert(guest);
    world.write_message(NoMatchElsewhere(PlayerId(7)));
    nodes.until("it is back", |servers| {
        place(servers, 7).is_some_and(|(_, at_m)| at_m == Vec2::new(30.0, 25.0))
    });
}
