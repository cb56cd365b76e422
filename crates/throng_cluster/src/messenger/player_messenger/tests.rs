use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const NODES: u32 = 3;

fn run_of(node: u32) -> NodeRun {
    NodeRun {
        node: ClusterNodeId(node),
        run: 1 << 32,
    }
}

fn entry(node: u32, is_alive: bool) -> NodeEntry {
    NodeEntry {
        name: format!("n{node}"),
        run: run_of(node),
        is_alive,
        is_steady: is_alive,
        load: 0,
        is_draining: false,
    }
}

/// Nodes with a perfect bus, and rows.
struct World {
    nodes: Vec<PlayerMessenger>,
    entries: Vec<NodeEntry>,
    /// The owner by the row, and whether it has adopted the player.
    rows: BTreeMap<PlayerId, (u32, bool)>,
    /// What arrived: node, player, number of the message.
    heard: Vec<(u32, PlayerId, u8)>,
    is_store_away: bool,
    now_ms: u64,
}

impl World {
    fn new(settings: MessengerSettings) -> Self {
        let nodes = (0..NODES).map(|node| PlayerMessenger::new(ClusterNodeId(node), settings));
        Self {
            nodes: nodes.collect(),
            entries: (0..NODES).map(|node| entry(node, true)).collect(),
            rows: BTreeMap::new(),
            heard: Vec::new(),
            is_store_away: false,
            now_ms: 0,
        }
    }

    /// Sends to players that are not on the sender, as the tick does; the others hear it at once.
    fn send(&mut self, from: u32, players: &[u64], number: u8) {
        let players = players.iter().map(|player| PlayerId(*player));
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            players.partition(|player| self.rows.get(player) == Some(&(from, true)));
        self.heard
            .extend(here.into_iter().map(|player| (from, player, number)));
        let node = &mut self.nodes[from as usize];
        node.send(elsewhere, 1, &[number], self.now_ms, &self.entries);
    }

    /// One round of 10 ms: replies and messages of this round are handled in it.
    fn step(&mut self) {
        self.now_ms += 10;
        for node in 0..NODES {
            for output in self.nodes[node as usize].poll(self.now_ms) {
                match output {
                    MessengerOutput::Read(number, players) => {
                        let found = players.iter().filter_map(|player| {
                            let (owner, _) = self.rows.get(player)?;
                            Some(PlayerEntry {
                                player: *player,
                                owner: Some(run_of(*owner)),
                                epoch: 1,
                                is_adopted: true,
                                record: None,
                            })
                        });
                        let found: Vec<_> = found.collect();
                        let found = (!self.is_store_away).then_some(&found[..]);
                        let node = &mut self.nodes[node as usize];
                        node.on_read(number, found, self.now_ms, &self.entries);
                    }
                    MessengerOutput::Bus(to, bytes) => {
                        for other in (0..NODES).filter(|other| *other != node) {
                            let own = BusPeer::Node(ClusterNodeId(other));
                            let is_alive = self.entries[other as usize].is_alive;
                            if is_alive && (to == own || to == BusPeer::All) {
                                let from = BusPeer::Node(ClusterNodeId(node));
                                let other = &mut self.nodes[other as usize];
                                assert!(other.receive(from, &bytes, self.now_ms));
                            }
                        }
                    }
                }
            }
        }
        for node in 0..NODES {
            let rows = &self.rows;
            let is_here = |player| rows.get(&player) == Some(&(node, true));
            for event in self.nodes[node as usize].deliver(self.now_ms, is_here) {
                if let MessengerEvent::ToPlayers { players, bytes, .. } = event {
                    let each = players.into_iter().map(|player| (node, player, bytes[0]));
                    self.heard.extend(each);
                }
            }
        }
    }

    fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| self.step());
    }

    fn take_heard(&mut self) -> Vec<(u32, u64, u8)> {
        let heard = std::mem::take(&mut self.heard);
        heard
            .into_iter()
            .map(|(node, player, number)| (node, player.0, number))
            .collect()
    }
}

#[test]
fn players_elsewhere_hear_a_message_once_and_in_order() {
    let mut world = World::new(MessengerSettings::default());
    for (player, node) in [(1, 0), (2, 1), (3, 2), (4, 2)] {
        world.rows.insert(PlayerId(player), (node, true));
    }
    world.send(0, &[4, 1, 2, 3], 1);
    // The rows are not known yet, and a second message must not overtake.
    world.send(0, &[2, 4], 2);
    world.steps(3);
    let expected = [
        (0, 1, 1),
        (1, 2, 1),
        (1, 2, 2),
        (2, 3, 1),
        (2, 4, 1),
        (2, 4, 2),
    ];
    assert_eq!(world.take_heard(), expected);
    let stats = world.nodes[0].stats();
    assert_eq!((stats.reads, stats.sent), (1, 4));
    // Now they are known: one message per node, and no read.
    world.send(0, &[2, 3, 4, 4], 3);
    world.steps(1);
    assert_eq!(world.take_heard(), [(1, 2, 3), (2, 3, 3), (2, 4, 3)]);
    let stats = world.nodes[0].stats();
    assert_eq!((stats.reads, stats.sent), (1, 6));
    // Also if the node learns meanwhile where the player is.
    world.nodes[0].locations.forget(PlayerId(2));
    world.send(0, &[2], 4);
    world.nodes[0].note_location(PlayerId(2), run_of(1));
    world.send(0, &[2], 5);
    world.steps(2);
    assert_eq!(world.take_heard(), [(1, 2, 4), (1, 2, 5)]);
}

#[test]
fn message_follows_a_player_that_has_moved_or_is_moving() {
    let mut world = World::new(MessengerSettings::default());
    world.rows.insert(PlayerId(2), (1, true));
    world.send(0, &[2], 1);
    world.steps(2);
    assert_eq!(world.take_heard(), [(1, 2, 1)]);
    // It has moved: the former node returns the message.
    world.rows.insert(PlayerId(2), (2, true));
    world.send(0, &[2], 2);
    world.steps(4);
    assert_eq!(world.take_heard(), [(2, 2, 2)]);
    assert_eq!(world.nodes[1].stats().returned, 1);
    assert_eq!(world.nodes[0].locations().get(PlayerId(2)), Some(run_of(2)));
    // It is on its way: the message waits for it there. Also on the way to the sender itself.
    for target in [1, 0] {
        world.rows.insert(PlayerId(2), (target, false));
        world.send(0, &[2], 3);
        world.steps(20);
        assert_eq!(world.take_heard(), []);
        world.rows.insert(PlayerId(2), (target, true));
        world.steps(1);
        assert_eq!(world.take_heard(), [(target, 2, 3)]);
    }
}

#[test]
fn message_that_waits_for_a_player_follows_it_to_the_next_node() {
    for sender in [0, 1] {
        let mut world = World::new(MessengerSettings::default());
        // Both leave the second node, and do not take messages any more.
        for player in [2, 3] {
            world.rows.insert(PlayerId(player), (1, false));
        }
        world.send(sender, &[2, 3], 1);
        world.steps(4);
        assert_eq!(world.take_heard(), []);
        world.rows.insert(PlayerId(2), (2, true));
        world.nodes[1].note_departure(PlayerId(2), run_of(2));
        // Much less than `hold_ms`.
        world.steps(4);
        assert_eq!(world.take_heard(), [(2, 2, 1)]);
        // The other one stays after all.
        world.rows.insert(PlayerId(3), (1, true));
        world.steps(1);
        assert_eq!(world.take_heard(), [(1, 3, 1)]);
    }
}

#[test]
fn message_to_a_player_that_never_arrives_is_dropped() {
    let settings = MessengerSettings::default();
    for sender in [0, 1] {
        let mut world = World::new(settings);
        world.rows.insert(PlayerId(2), (1, false));
        world.send(sender, &[2], 1);
        world.steps(200);
        assert_eq!(world.take_heard(), []);
        let stats = world.nodes[sender as usize].stats();
        assert_eq!(
            (stats.late, stats.reads),
            (1, u64::from(settings.sends_max))
        );
        assert!(
            world
                .nodes
                .iter()
                .all(|node| node.arrived.is_empty() && node.waiting.is_empty())
        );
    }
}

#[test]
fn unknown_players_and_dead_nodes_are_counted_and_harm_nobody() {
    let mut world = World::new(MessengerSettings::default());
    world.rows.insert(PlayerId(2), (1, true));
    world.rows.insert(PlayerId(3), (2, true));
    world.send(0, &[2, 3, 99], 1);
    world.steps(2);
    assert_eq!(world.take_heard(), [(1, 2, 1), (2, 3, 1)]);
    assert_eq!(world.nodes[0].stats().offline, 1);
    // What is cached about a dead node is not used, and its rows neither.
    world.entries[1].is_alive = false;
    world.send(0, &[2, 3], 2);
    world.steps(2);
    assert_eq!(world.take_heard(), [(2, 3, 2)]);
    assert_eq!(world.nodes[0].stats().dead, 1);
    // Its player was claimed by another node.
    world.rows.insert(PlayerId(2), (2, true));
    world.send(0, &[2], 3);
    world.steps(2);
    assert_eq!(world.take_heard(), [(2, 2, 3)]);
    // A run that is newer than the list of nodes is no dead one.
    let newer = NodeRun {
        node: ClusterNodeId(1),
        run: (1 << 32) + 1,
    };
    assert!(!is_dead(newer, &world.entries));
    assert!(is_dead(run_of(1), &world.entries));
}

#[test]
fn limits_hold_and_what_is_beyond_them_is_counted() {
    let settings = MessengerSettings {
        bytes_max: 10,
        players_max: 3,
        waiting_max: 4,
        players_per_read: 2,
        ..MessengerSettings::default()
    };
    let mut world = World::new(settings);
    for player in 1..=8 {
        world.rows.insert(PlayerId(player), (1, true));
    }
    let node = &mut world.nodes[0];
    let all = |count: u64| (1..=count).map(PlayerId).collect::<Vec<_>>();
    node.send(all(4), 1, b"x", 0, &world.entries);
    node.send(all(1), 1, &[0; 11], 0, &world.entries);
    node.announce(1, &[0; 11]);
    assert_eq!((node.stats().too_large, node.waiting.len()), (3, 0));
    // Five messages; the queue takes four. Each read is about two players.
    for number in 1..=5 {
        world.send(0, &[u64::from(number)], number);
    }
    assert_eq!(world.nodes[0].stats().full, 1);
    world.steps(3);
    assert_eq!(
        world.take_heard(),
        [(1, 1, 1), (1, 2, 2), (1, 3, 3), (1, 4, 4)]
    );
    assert_eq!(world.nodes[0].stats().reads, 2);
    // The bus and the tick have queues of the same length.
    for number in 1..=6 {
        world.send(0, &[1], number);
        world.nodes[2].announce(1, &[number]);
    }
    assert_eq!(
        (world.nodes[0].stats().full, world.nodes[2].stats().full),
        (3, 2)
    );
    let from = BusPeer::Node(ClusterNodeId(0));
    let bytes = CarriedMessage::ToAll(1, b"x".as_slice().into()).to_bytes();
    for _ in 0..6 {
        assert!(world.nodes[1].receive(from, &bytes, 0));
    }
    assert_eq!(
        (world.nodes[1].arrived.len(), world.nodes[1].stats().full),
        (4, 2)
    );
    // A gateway sends none of these.
    let gateway = BusPeer::Gateway(crate::ids::GatewayId(0));
    assert!(!world.nodes[1].receive(gateway, &bytes, 0));
}

#[test]
fn store_that_is_away_delays_messages_until_they_are_late() {
    let mut world = World::new(MessengerSettings::default());
    world.rows.insert(PlayerId(2), (1, true));
    world.is_store_away = true;
    world.send(0, &[2], 1);
    world.steps(50);
    world.is_store_away = false;
    world.steps(10);
    assert_eq!(world.take_heard(), [(1, 2, 1)]);
    assert!(world.nodes[0].stats().reads < 20);
    world.nodes[0].locations.forget(PlayerId(2));
    world.is_store_away = true;
    world.send(0, &[2], 2);
    world.steps(200);
    world.is_store_away = false;
    world.steps(20);
    assert_eq!(world.take_heard(), []);
    assert_eq!(world.nodes[0].stats().late, 1);
    assert!(world.nodes[0].awaited.is_empty());
}

#[test]
fn each_player_of_a_model_hears_each_message_once() {
    for seed in 0..20 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let settings = MessengerSettings {
            // Locations are forgotten, too.
            locations_max: 4,
            players_per_read: 3,
            ..MessengerSettings::default()
        };
        let mut world = World::new(settings);
        for player in 0..8 {
            world
                .rows
                .insert(PlayerId(player), (rng.random_range(0..NODES), true));
        }
        let mut expected = Vec::new();
        for number in 0..200 {
            // At most one move during a message, shorter than it is held.
            let moving = PlayerId(rng.random_range(0..8));
            world
                .rows
                .insert(moving, (rng.random_range(0..NODES), false));
            let players: Vec<u64> = (0..8).filter(|_| rng.random_bool(0.4)).collect();
            world.send(rng.random_range(0..NODES), &players, number);
            expected.extend(players.into_iter().map(|player| (player, number)));
            world.steps(rng.random_range(0..20));
            world.rows.entry(moving).and_modify(|row| row.1 = true);
            world.steps(rng.random_range(6..12));
        }
        let mut heard: Vec<_> = world
            .take_heard()
            .into_iter()
            .map(|(_, player, number)| (player, number))
            .collect();
        heard.sort_unstable_by_key(|(player, number)| (*number, *player));
        expected.sort_unstable_by_key(|(player, number)| (*number, *player));
        assert_eq!(heard, expected, "seed {seed}");
    }
}
