//! Nodes, gateways, a store and a bus with faults, in simulated time. After every step the invariants are checked.

mod scenes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    Arrival, ClusterNode, ClusterNodeId, ClusterReply, ClusterRequest, ClusterRows, GatewayId,
    NodeOutput, NodeRun, NodeSettings, PlayerRoute, PlayerRoutes, RUNS_PER_PROCESS, RequestId,
};
use throng_core::ids::PlayerId;

pub use self::scenes::SCENES;
use self::scenes::SceneOwners;
use crate::simulation::faults::FaultRates;

pub const PLAYERS: u64 = 30;
pub const NODES: usize = 4;
const GATEWAYS: u32 = 2;
const STEP_MS: u64 = 10;
/// Items of each player at the start.
const ITEMS: u64 = 10;

/// A process of a node.
struct Process {
    /// `None` while it is dead.
    node: Option<ClusterNode>,
    /// Counts the processes of the node, so that replies to earlier ones do not reach it.
    generation: u32,
    last_run: u64,
    restart_ms: u64,
    store_back_ms: u64,
    bus_back_ms: u64,
    is_on_bus: bool,
    /// The offset of its clock from the true time, and the clock's rate in thousandths of the true rate.
    clock: (u64, u64),
    handed_off: u64,
}

impl Process {
    const fn clock_ms(&self, now_ms: u64) -> u64 {
        self.clock.0 + now_ms * self.clock.1 / 1_000
    }
}

/// What happens at a time.
enum Due {
    Execute(usize, u32, RequestId, ClusterRequest),
    Reply(usize, u32, RequestId, ClusterReply),
    Arrivals(ClusterNodeId, Vec<Arrival>),
    Route(usize, GatewayId, PlayerRoute),
    Acknowledge(usize, GatewayId, PlayerId, u64),
    Echo(usize, u32, u64),
    Probe(usize, u32, ClusterNodeId, u64),
    Unreachable(usize, u32, ClusterNodeId, u64),
}

struct Event {
    at_ms: u64,
    number: u64,
    due: Due,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

pub struct SimulatedCluster {
    pub now_ms: u64,
    seed: u64,
    rng: Pcg64Mcg,
    rates: FaultRates,
    rows: ClusterRows,
    processes: Vec<Process>,
    gateways: Vec<PlayerRoutes>,
    events: BinaryHeap<Reverse<Event>>,
    last_event: u64,
    store_back_ms: u64,
    scene_owners_before: SceneOwners,
}

impl SimulatedCluster {
    pub fn new(seed: u64, rates: FaultRates) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut rows = ClusterRows::default();
        for player in 0..PLAYERS {
            rows.insert_player(PlayerId(player), &ITEMS.to_le_bytes());
        }
        for nth in 0..NODES {
            let name = format!("n{nth}");
            rows.execute(ClusterRequest::StartRun { name }, 0);
        }
        let processes = (0..NODES).map(|_| Process {
            node: None,
            generation: 0,
            last_run: 0,
            restart_ms: 0,
            store_back_ms: 0,
            bus_back_ms: 0,
            is_on_bus: false,
            clock: (rng.random_range(0..100_000), rng.random_range(950..=1_050)),
            handed_off: 0,
        });
        let processes = processes.collect();
        let mut cluster = Self {
            now_ms: 0,
            seed,
            rng,
            rates,
            rows,
            processes,
            gateways: vec![PlayerRoutes::default(); GATEWAYS as usize],
            events: BinaryHeap::new(),
            last_event: 0,
            store_back_ms: 0,
            scene_owners_before: Vec::new(),
        };
        for nth in 0..NODES {
            cluster.start(nth);
        }
        cluster
    }

    /// Clients of players without an owner log in repeatedly.
    fn log_in(&mut self) {
        for player in (0..PLAYERS).map(PlayerId) {
            let nth = self.rng.random_range(0..NODES);
            let is_owned = self
                .rows
                .owner(player)
                .is_some_and(|(owner, _)| owner.is_some());
            if let Some(node) = self.processes[nth].node.as_mut().filter(|_| !is_owned) {
                node.log_in(player);
            }
        }
    }

    /// Starts the process of a node.
    fn start(&mut self, nth: usize) {
        let process = &mut self.processes[nth];
        process.generation += 1;
        // As the store does when a real process starts.
        process.last_run += RUNS_PER_PROCESS;
        let run = NodeRun {
            node: ClusterNodeId(nth as u32),
            run: process.last_run,
        };
        let settings = NodeSettings {
            save_interval_ms: 500,
            scene_settle_ms: 300,
            scene_return_after_ms: 500,
            scene_balance_after_ms: 3_000,
            ..NodeSettings::default()
        };
        let gateways = (0..GATEWAYS).map(GatewayId).collect();
        let mut node = ClusterNode::new(run, settings, gateways);
        node.declare_scenes(scenes::declarations());
        process.node = Some(node);
    }

    fn happens(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.rng.random_bool(rate)
    }

    fn push(&mut self, after_ms: u64, due: Due) {
        self.last_event += 1;
        self.events.push(Reverse(Event {
            at_ms: self.now_ms + after_ms,
            number: self.last_event,
            due,
        }));
    }

    pub fn step(&mut self) {
        self.now_ms += STEP_MS;
        self.break_things();
        self.connect_to_bus();
        self.change_nodes();
        if self.now_ms.is_multiple_of(500) {
            self.log_in();
        }
        while self
            .events
            .peek()
            .is_some_and(|next| next.0.at_ms <= self.now_ms)
        {
            let Some(Reverse(event)) = self.events.pop() else {
                break;
            };
            self.handle(event.due);
        }
        for nth in 0..NODES {
            self.play_on(nth);
            let now_ms = self.processes[nth].clock_ms(self.now_ms);
            let outputs = self.processes[nth]
                .node
                .as_mut()
                .map(|node| node.poll(now_ms));
            for output in outputs.into_iter().flatten() {
                self.dispatch(nth, output);
            }
        }
        self.check();
        self.check_scenes();
    }

    fn break_things(&mut self) {
        if self.happens(self.rates.store_away) {
            self.store_back_ms = self.now_ms + self.rng.random_range(100..4_000);
        }
        for nth in 0..NODES {
            if self.processes[nth].node.is_none() && self.now_ms >= self.processes[nth].restart_ms {
                self.start(nth);
            }
            if self.happens(self.rates.kill) {
                let down_ms = self.rng.random_range(100..4_000);
                self.kill(nth, down_ms);
            }
            if self.happens(self.rates.cut_from_store) {
                self.processes[nth].store_back_ms = self.now_ms + self.rng.random_range(100..3_000);
            }
            if self.happens(self.rates.cut_from_bus) {
                self.processes[nth].bus_back_ms = self.now_ms + self.rng.random_range(100..3_000);
            }
        }
    }

    /// Processes connect to the bus, or lose their connections.
    fn connect_to_bus(&mut self) {
        for process in &mut self.processes {
            let was_on_bus = process.is_on_bus;
            process.is_on_bus = process.node.is_some() && self.now_ms >= process.bus_back_ms;
            let now_ms = process.clock_ms(self.now_ms);
            if let Some(node) = &mut process.node
                && process.is_on_bus
                && !was_on_bus
            {
                node.on_bus_connected(now_ms);
            }
        }
    }

    /// Kills a process. It starts again after this time.
    pub fn kill(&mut self, nth: usize, down_ms: u64) {
        let process = &mut self.processes[nth];
        if let Some(node) = process.node.take() {
            process.handed_off += node.stats().handed_off;
            process.restart_ms = self.now_ms + down_ms;
        }
    }

    /// What players do on a node: they change, exchange items, and go elsewhere.
    fn play_on(&mut self, nth: usize) {
        let now_ms = self.processes[nth].clock_ms(self.now_ms);
        let to = self.rng.random_range(0..NODES);
        let target = self.processes[to].node.as_ref().map(ClusterNode::run);
        let choice = [0; 3].map(|_: u32| self.rng.random_range(0..usize::MAX));
        let rates = [0.2, 0.15, self.rates.log_out];
        let [exchanges, moves, leaves] = rates.map(|rate| self.rng.random_bool(rate));
        let Some(node) = &mut self.processes[nth].node else {
            return;
        };
        let live: Vec<PlayerId> = node.live_players(now_ms).collect();
        if live.is_empty() {
            return;
        }
        let [one, other, moved] = choice.map(|choice| live[choice % live.len()]);
        if exchanges {
            node.exchange([one, other], now_ms, |[from, to]| {
                let items = [&*from, &*to].map(|bytes| items_of(bytes));
                if items[0] > 0 {
                    *from = (items[0] - 1).to_le_bytes().to_vec();
                    *to = (items[1] + 1).to_le_bytes().to_vec();
                }
            });
        }
        if let Some(target) = target.filter(|_| moves) {
            node.begin_move(moved, target, now_ms);
        }
        if leaves {
            node.log_out(other);
        }
    }

    fn dispatch(&mut self, nth: usize, output: NodeOutput) {
        let generation = self.processes[nth].generation;
        let is_cut = |back_ms: u64| self.now_ms < back_ms;
        let cut_from_store = is_cut(self.processes[nth].store_back_ms);
        let cut_from_bus = is_cut(self.processes[nth].bus_back_ms);
        match output {
            NodeOutput::Store(id, request) => {
                if cut_from_store || self.happens(self.rates.request_lost) {
                    return;
                }
                let after_ms = if self.happens(self.rates.request_late) {
                    self.rng.random_range(100..3_000)
                } else {
                    self.rng.random_range(1..15)
                };
                self.push(after_ms, Due::Execute(nth, generation, id, request));
            }
            NodeOutput::Arrivals(node, arrivals) if !cut_from_bus => {
                self.send(|| Due::Arrivals(node, arrivals.clone()));
            }
            NodeOutput::Route { gateway, route, .. } if !cut_from_bus => {
                self.send(|| Due::Route(nth, gateway, route));
            }
            NodeOutput::Echo(number) if !cut_from_bus => {
                self.send(|| Due::Echo(nth, generation, number));
            }
            NodeOutput::Probe(node, number) if !cut_from_bus => {
                self.send(|| Due::Probe(nth, generation, node, number));
            }
            _ => {}
        }
    }

    /// Sends a message over the bus.
    fn send(&mut self, due: impl Fn() -> Due) {
        let copies = 1 + u32::from(self.happens(self.rates.message_repeated));
        for _ in 0..copies {
            if self.happens(self.rates.message_lost) {
                continue;
            }
            let after_ms = if self.happens(self.rates.message_late) {
                self.rng.random_range(20..2_000)
            } else {
                self.rng.random_range(1..10)
            };
            self.push(after_ms, due());
        }
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Execute(nth, generation, id, request) => {
                let reply = if self.now_ms < self.store_back_ms {
                    ClusterReply::Away
                } else {
                    self.rows.execute(request, self.now_ms)
                };
                let is_cut = self.now_ms < self.processes[nth].store_back_ms;
                if !is_cut && !self.happens(self.rates.reply_lost) {
                    let after_ms = self.rng.random_range(1..15);
                    self.push(after_ms, Due::Reply(nth, generation, id, reply));
                }
            }
            Due::Reply(nth, generation, id, reply) => {
                let process = &mut self.processes[nth];
                let now_ms = process.clock_ms(self.now_ms);
                let node = process
                    .node
                    .as_mut()
                    .filter(|_| process.generation == generation);
                let outputs = node.map(|node| node.on_reply(now_ms, id, reply));
                for output in outputs.into_iter().flatten() {
                    self.dispatch(nth, output);
                }
            }
            Due::Echo(nth, generation, number) => {
                self.with_node(nth, generation, |node, now_ms| node.on_echo(now_ms, number));
            }
            Due::Probe(nth, generation, target, number) => {
                if !self.processes[target.0 as usize].is_on_bus {
                    self.send(|| Due::Unreachable(nth, generation, target, number));
                }
            }
            Due::Unreachable(nth, generation, target, number) => {
                self.with_node(nth, generation, |node, now_ms| {
                    node.on_unreachable(now_ms, target, number);
                });
            }
            Due::Arrivals(node, arrivals) => {
                let process = &mut self.processes[node.0 as usize];
                let now_ms = process.clock_ms(self.now_ms);
                if let Some(node) = &mut process.node {
                    node.on_arrivals(now_ms, &arrivals);
                }
            }
            Due::Route(nth, gateway, route) => {
                let epoch = self.gateways[gateway.0 as usize].on_route(route);
                self.send(|| Due::Acknowledge(nth, gateway, route.player, epoch));
            }
            Due::Acknowledge(nth, gateway, player, epoch) => {
                if let Some(node) = &mut self.processes[nth].node {
                    node.on_route_acknowledged(gateway, player, epoch);
                }
            }
        }
    }

    /// Calls a node, unless its process has ended since.
    fn with_node(&mut self, nth: usize, generation: u32, call: impl FnOnce(&mut ClusterNode, u64)) {
        let process = &mut self.processes[nth];
        let now_ms = process.clock_ms(self.now_ms);
        let is_same = process.generation == generation;
        if let Some(node) = process.node.as_mut().filter(|_| is_same) {
            call(node, now_ms);
        }
    }

    /// Makes the store unreachable for all nodes from now on.
    pub const fn lose_store(&mut self) {
        self.store_back_ms = u64::MAX;
    }

    /// The node and the state of each player that is live.
    pub fn live_states(&self) -> Vec<(PlayerId, (usize, Vec<u8>))> {
        let players = (0..PLAYERS).map(PlayerId);
        let live = players.flat_map(|player| {
            let homes = self.homes(player).into_iter();
            homes.map(move |home| (player, home))
        });
        let states = live.filter_map(|(player, home)| {
            let node = self.processes[home].node.as_ref()?;
            Some((player, (home, node.record(player)?.bytes.clone())))
        });
        states.collect()
    }

    /// Number of runs that have ended in the processes that are alive now.
    pub fn runs_ended(&self) -> u64 {
        let nodes = self.processes.iter().filter_map(|one| one.node.as_ref());
        nodes.map(|node| node.stats().runs_ended).sum()
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        self.rates = FaultRates::NONE;
        self.store_back_ms = 0;
        for nth in 0..NODES {
            let process = &mut self.processes[nth];
            (process.store_back_ms, process.bus_back_ms) = (0, 0);
            if process.node.is_none() {
                self.start(nth);
            }
        }
        self.drain_one();
    }

    /// The nodes that simulate a player now.
    fn homes(&self, player: PlayerId) -> Vec<usize> {
        let is_home = |process: &Process| {
            let now_ms = process.clock_ms(self.now_ms);
            process
                .node
                .as_ref()
                .is_some_and(|node| node.is_live(player, now_ms))
        };
        let homes = self.processes.iter().enumerate();
        homes
            .filter(|(_, process)| is_home(process))
            .map(|(nth, _)| nth)
            .collect()
    }

    /// Checks that no player is simulated twice, and that the store has all items.
    fn check(&self) {
        for player in (0..PLAYERS).map(PlayerId) {
            let homes = self.homes(player);
            assert!(
                homes.len() <= 1,
                "seed {}, {} ms: player {} is live on the nodes {homes:?}, row {:?}",
                self.seed,
                self.now_ms,
                player.0,
                self.rows.owner(player)
            );
        }
        let items: u64 = self
            .rows
            .records()
            .map(|(_, record)| items_of(&record.bytes))
            .sum();
        assert_eq!(
            items,
            PLAYERS * ITEMS,
            "seed {}, {} ms",
            self.seed,
            self.now_ms
        );
    }

    /// All players are in the world, the gateways know where, and nothing is lost or doubled.
    pub fn check_recovery(&mut self) {
        self.check_recovery_of_scenes();
        // Players whose hand-off is in progress arrive within a second; no other hand-off begins meanwhile.
        let mut found = Vec::new();
        for player in (0..PLAYERS).map(PlayerId) {
            found.push((player, self.homes(player)));
        }
        let until_ms = self.now_ms + 1_000;
        while self.now_ms < until_ms && found.iter().any(|(_, homes)| homes.is_empty()) {
            self.step();
            for (player, homes) in &mut found {
                if homes.is_empty() {
                    *homes = self.homes(*player);
                }
            }
        }
        for (player, homes) in &found {
            assert_eq!(
                homes.len(),
                1,
                "seed {}: player {} is nowhere 5 s after the faults, row {:?}",
                self.seed,
                player.0,
                self.rows.owner(*player)
            );
        }
        for player in (0..PLAYERS).map(PlayerId) {
            let [home] = self.homes(player)[..] else {
                continue;
            };
            let (owner, epoch) = self.rows.owner(player).unwrap();
            if owner.unwrap().node == ClusterNodeId(home as u32) {
                for gateway in &self.gateways {
                    let route = gateway.get(player).unwrap();
                    assert!(
                        route.epoch + 1 >= epoch,
                        "seed {}: {route:?}, the owner has the epoch {epoch}",
                        self.seed
                    );
                }
            }
        }
    }

    pub fn handed_off(&self) -> u64 {
        let processes = self.processes.iter();
        processes
            .map(|process| {
                let running = process
                    .node
                    .as_ref()
                    .map_or(0, |node| node.stats().handed_off);
                process.handed_off + running
            })
            .sum()
    }

    /// The owners and epochs of all players.
    pub fn owners(&self) -> Vec<Option<(Option<NodeRun>, u64)>> {
        (0..PLAYERS)
            .map(|player| self.rows.owner(PlayerId(player)))
            .collect()
    }
}

pub fn items_of(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
