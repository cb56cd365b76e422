//! Links between a node and two gateways, over a bus that loses, repeats and reorders messages, and whose ends restart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    BusEvent, BusFull, BusPeer, BusSignal, BusTransport, ClusterKey, ClusterNodeId, GatewayId,
    LinkClient, LinkEvent, LinkSet, LinkSettings, MessageBus,
};

const NODE: BusPeer = BusPeer::Node(ClusterNodeId(0));
const GATEWAYS: [BusPeer; 2] = [
    BusPeer::Gateway(GatewayId(0)),
    BusPeer::Gateway(GatewayId(1)),
];
const CLIENTS: u32 = 5;
const STEP_MS: u64 = 10;

/// Messages under way, with their arrival times.
#[derive(Default)]
struct Network {
    on_the_way: Vec<(u64, BusPeer, Vec<u8>)>,
    arrived: BTreeMap<BusPeer, VecDeque<Vec<u8>>>,
    now_ms: u64,
    /// Probabilities of a loss, a repetition and a delay of a message.
    faults: [f64; 3],
    rng: Option<Pcg64Mcg>,
    /// The server is away: everything is lost.
    is_away: bool,
}

struct NetworkEnd {
    own: BusPeer,
    network: Arc<Mutex<Network>>,
}

impl BusTransport for NetworkEnd {
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
        let mut network = self.network.lock().unwrap();
        let [lost, repeated, late] = network.faults;
        let mut rng = network.rng.take().unwrap();
        let copies = 1 + u32::from(rng.random_bool(repeated));
        for _ in 0..copies {
            if network.is_away || rng.random_bool(lost) {
                continue;
            }
            let delay_ms = if rng.random_bool(late) {
                rng.random_range(10..500)
            } else {
                rng.random_range(0..2)
            };
            let at_ms = network.now_ms + delay_ms;
            network.on_the_way.push((at_ms, to, bytes.clone()));
        }
        network.rng = Some(rng);
        Ok(())
    }

    fn probe(&mut self, _: BusPeer, _: u64) {}

    fn receive(&mut self) -> Option<BusSignal> {
        let mut network = self.network.lock().unwrap();
        let arrived = network.arrived.get_mut(&self.own)?.pop_front()?;
        Some(BusSignal::Message(arrived))
    }

    fn set_waker(&mut self, _: Waker) {}
}

/// What one direction of a client has had on the present link.
#[derive(Default)]
struct Stream {
    sent: u64,
    received: u64,
}

/// A process of a peer.
struct End {
    own: BusPeer,
    bus: MessageBus,
    links: LinkSet,
    /// Per peer and client.
    streams: BTreeMap<(BusPeer, LinkClient), Stream>,
    received: u64,
}

impl End {
    fn new(network: &Arc<Mutex<Network>>, own: BusPeer, run: u64, settings: LinkSettings) -> Self {
        let transport = Box::new(NetworkEnd {
            own,
            network: network.clone(),
        });
        Self {
            own,
            bus: MessageBus::new(transport, ClusterKey::new(&[7; 32]), own, run),
            links: LinkSet::new(run, settings),
            streams: BTreeMap::new(),
            received: 0,
        }
    }

    /// Receives, checks what arrives, and sends.
    fn step(&mut self, now_ms: u64, rng: &mut Pcg64Mcg, seed: u64) {
        while let Some(event) = self.bus.receive() {
            if let BusEvent::Message { from, bytes, .. } = event {
                assert!(self.links.receive(now_ms, from, &bytes));
            }
        }
        while let Some(event) = self.links.next_event() {
            match event {
                LinkEvent::Linked { peer } | LinkEvent::Lost { peer } => {
                    self.streams.retain(|(of, _), _| *of != peer);
                }
                LinkEvent::Message {
                    peer,
                    client,
                    bytes,
                    ..
                } if bytes.len() > 1 => {
                    let stream = self.streams.entry((peer, client)).or_default();
                    let number = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                    assert_eq!(
                        number, stream.received,
                        "seed {seed}, {now_ms} ms: {client:?} at {:?}",
                        self.own
                    );
                    stream.received += 1;
                    self.received += 1;
                }
                LinkEvent::Message { .. } => {}
            }
        }
        let peers: Vec<BusPeer> = if self.own == NODE {
            GATEWAYS.to_vec()
        } else {
            vec![NODE]
        };
        for peer in peers {
            self.links.greet(peer);
            for client in (0..CLIENTS).map(LinkClient) {
                if !self.links.is_linked(peer) || !rng.random_bool(0.5) {
                    continue;
                }
                let stream = self.streams.entry((peer, client)).or_default();
                let mut bytes = stream.sent.to_le_bytes().to_vec();
                bytes.resize(rng.random_range(8..400), 0);
                if self.links.push(peer, client, &bytes).is_ok() {
                    stream.sent += 1;
                }
                self.links.push_unreliable(peer, client, &[1]);
            }
        }
        self.send(now_ms);
    }

    fn send(&mut self, now_ms: u64) {
        let Self { bus, links, .. } = self;
        links.poll(now_ms, |peer, piece| {
            bus.send(peer, &piece).unwrap();
        });
    }
}

struct World {
    network: Arc<Mutex<Network>>,
    ends: Vec<End>,
    rng: Pcg64Mcg,
    seed: u64,
    now_ms: u64,
    last_run: u64,
    settings: LinkSettings,
}

impl World {
    fn new(seed: u64, faults: [f64; 3]) -> Self {
        let network = Network {
            faults,
            rng: Some(Pcg64Mcg::seed_from_u64(seed)),
            ..Network::default()
        };
        let settings = LinkSettings {
            piece_bytes: 1_000,
            silence_max_ms: 3_000,
            ..LinkSettings::default()
        };
        let network = Arc::new(Mutex::new(network));
        let peers = [NODE, GATEWAYS[0], GATEWAYS[1]];
        Self {
            ends: peers
                .map(|own| End::new(&network, own, 1 << 32, settings))
                .into(),
            network,
            rng: Pcg64Mcg::seed_from_u64(seed + 1_000_000),
            seed,
            now_ms: 0,
            last_run: 1 << 32,
            settings,
        }
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        let mut network = self.network.lock().unwrap();
        network.now_ms = self.now_ms;
        let now_ms = self.now_ms;
        let mut due = Vec::new();
        network.on_the_way.retain(|message| {
            let is_due = message.0 <= now_ms;
            if is_due {
                due.push(message.clone());
            }
            !is_due
        });
        due.sort_by_key(|message| message.0);
        for (_, to, bytes) in due {
            network.arrived.entry(to).or_default().push_back(bytes);
        }
        drop(network);
        for end in &mut self.ends {
            end.step(now_ms, &mut self.rng, self.seed);
        }
    }

    fn restart(&mut self, nth: usize) {
        self.last_run += 1 << 32;
        let own = self.ends[nth].own;
        self.ends[nth] = End::new(&self.network, own, self.last_run, self.settings);
    }

    /// All that was sent on the present links has arrived.
    fn check_complete(&self) {
        for end in &self.ends {
            for (&(peer, client), stream) in &end.streams {
                let other = self.ends.iter().find(|end| end.own == peer).unwrap();
                let received = other.streams.get(&(end.own, client));
                let received = received.map_or(0, |stream| stream.received);
                assert_eq!(
                    received, stream.sent,
                    "seed {}: {client:?} from {:?} to {peer:?}",
                    self.seed, end.own
                );
            }
        }
    }

    /// Without faults, and without new messages.
    fn drain(&mut self) {
        self.network.lock().unwrap().faults = [0.0; 3];
        self.network.lock().unwrap().is_away = false;
        for _ in 0..100 {
            self.step();
        }
        for _ in 0..300 {
            self.now_ms += STEP_MS;
            for end in &mut self.ends {
                let mut quiet = Pcg64Mcg::seed_from_u64(0);
                while let Some(event) = end.bus.receive() {
                    if let BusEvent::Message { from, bytes, .. } = event {
                        end.links.receive(self.now_ms, from, &bytes);
                    }
                }
                while let Some(event) = end.links.next_event() {
                    if let LinkEvent::Message {
                        peer,
                        client,
                        bytes,
                        ..
                    } = event
                        && bytes.len() > 1
                    {
                        end.streams.entry((peer, client)).or_default().received += 1;
                    }
                }
                let _ = quiet.random_bool(0.5);
                end.send(self.now_ms);
            }
            let mut network = self.network.lock().unwrap();
            network.now_ms = self.now_ms;
            for (_, to, bytes) in std::mem::take(&mut network.on_the_way) {
                network.arrived.entry(to).or_default().push_back(bytes);
            }
        }
    }
}

#[test]
fn reliable_messages_arrive_once_and_in_order_under_all_faults() {
    for seed in 0..4 {
        let mut world = World::new(seed, [0.1, 0.1, 0.1]);
        for _ in 0..1_000 {
            world.step();
        }
        world.drain();
        world.check_complete();
        let received: u64 = world.ends.iter().map(|end| end.received).sum();
        assert!(received > 4_500, "seed {seed}: {received}");
    }
}

#[test]
fn restarts_of_any_end_begin_new_links() {
    for seed in 20..24 {
        let mut world = World::new(seed, [0.05, 0.05, 0.05]);
        for nth in 0..1_500 {
            if nth % 150 == 149 {
                let end = world.rng.random_range(0..3);
                world.restart(end);
            }
            world.step();
        }
        world.drain();
        world.check_complete();
        for gateway in GATEWAYS {
            assert!(world.ends[0].links.is_linked(gateway), "seed {seed}");
        }
    }
}

#[test]
fn links_survive_a_short_outage_and_end_after_a_long_one() {
    let away = |steps| {
        let mut world = World::new(40, [0.0; 3]);
        (0..100).for_each(|_| world.step());
        let before = world.ends[0].streams.len();
        world.network.lock().unwrap().is_away = true;
        (0..steps).for_each(|_| world.step());
        let is_linked = world.ends[0].links.is_linked(GATEWAYS[0]);
        world.network.lock().unwrap().is_away = false;
        world.drain();
        world.check_complete();
        assert!(before > 0 && world.ends[0].links.is_linked(GATEWAYS[0]));
        (is_linked, world.ends[0].links.stats().resent > 0)
    };
    assert_eq!(away(250), (true, true));
    let (is_linked, _) = away(400);
    assert!(!is_linked);
}

#[test]
fn idle_link_to_a_dead_peer_is_noticed() {
    let mut world = World::new(50, [0.0; 3]);
    (0..50).for_each(|_| world.step());
    world.drain();
    assert!(world.ends[0].links.is_linked(GATEWAYS[0]));
    // Idle for long, and still linked.
    world.drain();
    assert!(world.ends[0].links.is_linked(GATEWAYS[0]));
    let _dead = world.ends.remove(1);
    for _ in 0..400 {
        world.now_ms += STEP_MS;
        world.network.lock().unwrap().now_ms = world.now_ms;
        let end = &mut world.ends[0];
        end.send(world.now_ms);
    }
    assert!(!world.ends[0].links.is_linked(GATEWAYS[0]));
    let event = std::iter::from_fn(|| world.ends[0].links.next_event())
        .find(|event| matches!(event, LinkEvent::Lost { .. }));
    assert!(event.is_some());
}

#[test]
fn client_that_is_behind_is_refused_and_others_are_not() {
    let network = Arc::new(Mutex::new(Network {
        rng: Some(Pcg64Mcg::seed_from_u64(1)),
        ..Network::default()
    }));
    let settings = LinkSettings {
        client_bytes_max: 1_000,
        link_bytes_max: 1_500,
        ..LinkSettings::default()
    };
    let mut node = End::new(&network, NODE, 1, settings);
    let mut gateway = End::new(&network, GATEWAYS[0], 1, settings);
    let exchange = |node: &mut End, gateway: &mut End, now_ms: u64| {
        for _ in 0..4 {
            for end in [&mut *node, &mut *gateway] {
                let mut network = network.lock().unwrap();
                for (_, to, bytes) in std::mem::take(&mut network.on_the_way) {
                    network.arrived.entry(to).or_default().push_back(bytes);
                }
                drop(network);
                while let Some(event) = end.bus.receive() {
                    if let BusEvent::Message { from, bytes, .. } = event {
                        end.links.receive(now_ms, from, &bytes);
                    }
                }
                end.send(now_ms);
            }
        }
    };
    node.links.greet(GATEWAYS[0]);
    exchange(&mut node, &mut gateway, 10);
    assert!(node.links.is_linked(GATEWAYS[0]));
    let (slow, other) = (LinkClient(1), LinkClient(2));
    let message = [7; 190];
    let push = |node: &mut End, client| node.links.push(GATEWAYS[0], client, &message);
    for _ in 0..5 {
        push(&mut node, slow).unwrap();
    }
    let behind = push(&mut node, slow).unwrap_err();
    assert_eq!((behind.client, behind.waiting), (slow, 1_000));
    push(&mut node, other).unwrap();
    push(&mut node, other).unwrap();
    // The link as a whole is full, until the slow client is gone.
    push(&mut node, other).unwrap_err();
    node.links.forget(GATEWAYS[0], slow);
    push(&mut node, other).unwrap();
    exchange(&mut node, &mut gateway, 20);
    let events = std::iter::from_fn(|| gateway.links.next_event());
    let received = events
        .filter(|event| matches!(event, LinkEvent::Message { client, .. } if *client == other));
    assert_eq!(received.count(), 3);
    // Everything is acknowledged, so there is room again.
    exchange(&mut node, &mut gateway, 40);
    for _ in 0..5 {
        push(&mut node, other).unwrap();
    }
}
