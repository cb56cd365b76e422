//! Nodes with players and matches, a store and a bus with faults, in simulated time. After every step the invariants are checked.

mod instances;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::AddAssign;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    Arrival, ClusterModeSettings, ClusterNode, ClusterNodeId, ClusterReply, ClusterRequest,
    ClusterRows, HostLoad, MATCHER_ROLE, MatchEntry, MatchId, MatchNode, MatchOutput, MatchReply,
    MatchRequest, MatchState, MatcherSettings, NodeOutput, NodeRun, NodeSettings, RUNS_PER_PROCESS,
    RequestId, TicketHome, TicketId, TicketMember, TicketRating, TravelGoal,
};
use throng_core::ids::PlayerId;
use throng_matchmaking::{GroupModeSettings, MatchModeSettings};

use crate::match_simulation::ledger::Ledger;
use crate::simulation::faults::FaultRates;

pub const PLAYERS: u64 = 40;
pub const NODES: usize = 4;
const STEP_MS: u64 = 10;

/// Numbers of events in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchFigures {
    pub formed: u64,
    pub ended: u64,
    pub aborted: u64,
    /// Tickets that were matched again after an aborted match.
    pub requeued: u64,
    pub cancelled: u64,
    pub home: u64,
    pub roles_taken: u64,
}

impl AddAssign for MatchFigures {
    fn add_assign(&mut self, other: Self) {
        self.formed += other.formed;
        self.ended += other.ended;
        self.aborted += other.aborted;
        self.requeued += other.requeued;
        self.cancelled += other.cancelled;
        self.home += other.home;
        self.roles_taken += other.roles_taken;
    }
}

/// A process of a node.
pub struct MatchProcess {
    /// `None` while it is dead.
    pub node: Option<(ClusterNode, MatchNode)>,
    generation: u32,
    last_run: u64,
    restart_ms: u64,
    store_back_ms: u64,
    bus_back_ms: u64,
    clock: (u64, u64),
    /// For each match on the node: when it opens, or ends if it is open (`true`).
    instances: BTreeMap<MatchId, (u64, bool)>,
    hosts: Vec<HostLoad>,
    /// The players that were on the node in the last step, each with the number of its arrival.
    present: BTreeSet<(PlayerId, u64)>,
}

impl MatchProcess {
    pub const fn clock_ms(&self, now_ms: u64) -> u64 {
        self.clock.0 + now_ms * self.clock.1 / 1_000
    }
}

enum Due {
    Execute(usize, u32, RequestId, ClusterRequest),
    Reply(usize, u32, RequestId, ClusterReply),
    Wake(ClusterNodeId),
    Arrivals(ClusterNodeId, Vec<Arrival>),
}

pub struct MatchCluster {
    pub now_ms: u64,
    /// Whether players queue and cancel at random.
    pub plays: bool,
    pub rows: ClusterRows,
    pub processes: Vec<MatchProcess>,
    seed: u64,
    rng: Pcg64Mcg,
    rates: FaultRates,
    /// Whether some matches are aborted by their nodes.
    pub matches_fail: bool,
    ledger: Ledger,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    due: BTreeMap<u64, Due>,
    last_event: u64,
    store_back_ms: u64,
    /// The home of each player in its last ticket.
    homes: BTreeMap<PlayerId, ClusterNodeId>,
    home: u64,
    roles_taken: u64,
}

/// The modes: `duel` and `arena` match any players, and `arena` is not requeued after a failure. In `slow`, players of different skill have
/// to wait.
pub fn modes() -> Vec<ClusterModeSettings> {
    let mode = |name: &str, group_size, skill_window_start, is_requeued| ClusterModeSettings {
        mode: MatchModeSettings::Groups(GroupModeSettings {
            name: name.to_owned(),
            group_size,
            skill_window_start,
            skill_window_widen_per_s: 100,
            ..GroupModeSettings::default()
        }),
        is_requeued,
    };
    vec![
        mode("duel", 1, 10_000, true),
        mode("arena", 2, 10_000, false),
        mode("slow", 1, 0, true),
    ]
}

impl MatchCluster {
    pub fn new(seed: u64, rates: FaultRates) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut rows = ClusterRows::default();
        for player in 0..PLAYERS {
            rows.insert_player(PlayerId(player), &[]);
        }
        for nth in 0..NODES {
            let name = format!("n{nth}");
            rows.execute(ClusterRequest::StartRun { name }, 0);
        }
        let processes = (0..NODES).map(|_| MatchProcess {
            node: None,
            generation: 0,
            last_run: 0,
            restart_ms: 0,
            store_back_ms: 0,
            bus_back_ms: 0,
            clock: (rng.random_range(0..100_000), rng.random_range(950..=1_050)),
            instances: BTreeMap::new(),
            hosts: Vec::new(),
            present: BTreeSet::new(),
        });
        let processes = processes.collect();
        let mut cluster = Self {
            now_ms: 0,
            plays: false,
            rows,
            processes,
            seed,
            rng,
            rates,
            matches_fail: true,
            ledger: Ledger::default(),
            events: BinaryHeap::new(),
            due: BTreeMap::new(),
            last_event: 0,
            store_back_ms: 0,
            homes: BTreeMap::new(),
            home: 0,
            roles_taken: 0,
        };
        for nth in 0..NODES {
            cluster.start(nth);
        }
        cluster
    }

    /// Starts the process of a node.
    pub fn start(&mut self, nth: usize) {
        let process = &mut self.processes[nth];
        process.generation += 1;
        process.last_run += RUNS_PER_PROCESS;
        let run = NodeRun {
            node: ClusterNodeId(nth as u32),
            run: process.last_run,
        };
        let settings = NodeSettings {
            save_interval_ms: 500,
            ..NodeSettings::default()
        };
        let node = ClusterNode::new(run, settings, Vec::new());
        // Small limits, so that they are reached.
        let settings = MatcherSettings {
            read_tickets_max: 5,
            read_travels_max: 6,
            ..MatcherSettings::default()
        };
        let matches = MatchNode::new(&modes(), settings).unwrap();
        process.node = Some((node, matches));
    }

    /// Ends the process of a node. It does not start again before this time.
    pub fn kill(&mut self, nth: usize, restart_ms: u64) {
        let process = &mut self.processes[nth];
        if let Some((_, matches)) = process.node.take() {
            self.roles_taken += matches.stats().roles_taken;
            process.restart_ms = restart_ms;
        }
        process.instances.clear();
        process.present.clear();
        process.hosts.clear();
    }

    /// Disconnects a node from the store until a time.
    pub fn cut(&mut self, nth: usize, until_ms: u64) {
        self.processes[nth].store_back_ms = until_ms;
    }

    fn happens(&mut self, rate: f64) -> bool {
        rate > 0.0 && self.rng.random_bool(rate)
    }

    fn push(&mut self, after_ms: u64, due: Due) {
        self.last_event += 1;
        self.events
            .push(Reverse((self.now_ms + after_ms, self.last_event)));
        self.due.insert(self.last_event, due);
    }

    pub fn step(&mut self) {
        self.now_ms += STEP_MS;
        self.break_things();
        if self.now_ms.is_multiple_of(500) {
            self.log_in();
        }
        while let Some(&Reverse((at_ms, number))) = self.events.peek()
            && at_ms <= self.now_ms
        {
            self.events.pop();
            if let Some(due) = self.due.remove(&number) {
                self.handle(due);
            }
        }
        for nth in 0..NODES {
            self.play_on(nth);
            self.poll(nth);
        }
        self.check();
    }

    fn poll(&mut self, nth: usize) {
        let process = &mut self.processes[nth];
        let now_ms = process.clock_ms(self.now_ms);
        let Some((node, matches)) = &mut process.node else {
            return;
        };
        let outputs = node.poll(now_ms);
        let run = node.is_valid(now_ms).then(|| node.run());
        let of_matches = matches.poll(now_ms, run, &process.hosts);
        for output in outputs {
            self.dispatch(nth, output);
        }
        for output in of_matches {
            self.dispatch_match(nth, output);
        }
    }

    /// Clients of players without an owner log in repeatedly, mostly on the same node.
    fn log_in(&mut self) {
        for player in (0..PLAYERS).map(PlayerId) {
            let usual = player.0 as usize % NODES;
            let elsewhere = self.rng.random_range(0..NODES);
            let nth = if self.rng.random_bool(0.8) {
                usual
            } else {
                elsewhere
            };
            let owner = self.rows.owner(player);
            let is_owned = owner.is_some_and(|(owner, _)| owner.is_some());
            if let Some((node, _)) = self.processes[nth].node.as_mut().filter(|_| !is_owned) {
                node.log_in(player);
            }
        }
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
                self.kill(nth, self.now_ms + down_ms);
            }
            if self.happens(self.rates.cut_from_store) {
                self.processes[nth].store_back_ms = self.now_ms + self.rng.random_range(100..3_000);
            }
            if self.happens(self.rates.cut_from_bus) {
                self.processes[nth].bus_back_ms = self.now_ms + self.rng.random_range(100..3_000);
            }
            if (self.now_ms / STEP_MS + nth as u64).is_multiple_of(50) {
                self.list_hosts(nth);
            }
        }
    }

    /// The list of nodes that a driver reads twice a second.
    fn list_hosts(&mut self, nth: usize) {
        let ClusterReply::Nodes(nodes) = self.rows.execute(ClusterRequest::ReadNodes, self.now_ms)
        else {
            panic!("a list of nodes");
        };
        let hosts = nodes.into_iter().filter(|entry| entry.is_alive);
        let hosts = hosts.map(|entry| HostLoad {
            run: entry.run,
            load: self.processes[entry.run.node.0 as usize].instances.len() as u32,
        });
        self.processes[nth].hosts = hosts.collect();
    }

    /// Adds a ticket of players on a node, whose home is that node.
    pub fn queue(
        &mut self,
        nth: usize,
        mode: &str,
        players: &[PlayerId],
        skill: i32,
    ) -> Option<TicketId> {
        let members = players.iter().map(|player| TicketMember {
            player: *player,
            home: TicketHome {
                node: ClusterNodeId(nth as u32),
                scene: "town".to_owned(),
            },
        });
        let rating = TicketRating {
            skill,
            ..TicketRating::default()
        };
        let (_, matches) = self.processes[nth].node.as_mut()?;
        matches.add_ticket(mode, members.collect(), rating).ok()
    }

    /// Players and matches of a node act at random.
    fn play_on(&mut self, nth: usize) {
        let now_ms = self.processes[nth].clock_ms(self.now_ms);
        let leaves = self.happens(self.rates.log_out / 4.0);
        let choice = self.rng.random_range(0..usize::MAX);
        let process = &mut self.processes[nth];
        let Some((node, matches)) = &mut process.node else {
            return;
        };
        let stays = node.stays(now_ms).map(|stay| (stay.player, stay.arrival));
        let stays: BTreeSet<(PlayerId, u64)> = stays.collect();
        for (player, _) in stays.difference(&process.present) {
            matches.rejoin(*player);
        }
        let live: Vec<PlayerId> = node.live_players(now_ms).collect();
        if leaves && !live.is_empty() {
            node.log_out(live[choice % live.len()]);
        }
        process.present = stays;
        self.play_matches(nth);
        if self.plays && !live.is_empty() {
            self.play_queue(nth, &live);
        }
    }

    fn play_queue(&mut self, nth: usize, live: &[PlayerId]) {
        if self.rng.random_bool(0.1) {
            let queued: BTreeSet<PlayerId> =
                self.rows.match_players().map(|found| found.0).collect();
            let mut free: Vec<PlayerId> = live.to_vec();
            // Sometimes a player that is already queued tries again.
            let tries_again = self.rng.random_bool(0.05);
            free.retain(|player| tries_again || !queued.contains(player));
            let arena = self.rng.random_bool(0.5);
            let size = if arena {
                self.rng.random_range(1..3)
            } else {
                1
            };
            if free.len() >= size {
                let first = self.rng.random_range(0..=free.len() - size);
                let mode = if arena { "arena" } else { "duel" };
                self.queue(nth, mode, &free[first..first + size], 0);
            }
        }
        if self.rng.random_bool(0.01) {
            let waiting = self
                .rows
                .tickets()
                .filter(|(.., in_match)| in_match.is_none());
            let waiting: Vec<TicketId> = waiting.map(|(ticket, ..)| ticket.id).collect();
            if !waiting.is_empty() {
                let id = waiting[self.rng.random_range(0..waiting.len())];
                if let Some((_, matches)) = &mut self.processes[nth].node {
                    let _ = matches.cancel_ticket(id);
                }
            }
        }
    }

    fn dispatch(&mut self, nth: usize, output: NodeOutput) {
        match output {
            NodeOutput::Store(id, request) => self.send_request(nth, id, request),
            NodeOutput::Arrivals(node, arrivals) => {
                self.send_hint(nth, || Due::Arrivals(node, arrivals.clone()));
            }
            NodeOutput::Adopted => {
                let now_ms = self.processes[nth].clock_ms(self.now_ms);
                if let Some((_, matches)) = &mut self.processes[nth].node {
                    matches.on_adopted(now_ms);
                }
            }
            NodeOutput::NodeDeath => self.on_node_death(nth),
            _ => {}
        }
    }

    fn dispatch_match(&mut self, nth: usize, output: MatchOutput) {
        match output {
            MatchOutput::Store(id, request) => {
                self.send_request(nth, id, ClusterRequest::Match(request));
            }
            MatchOutput::Wake(node) => self.send_hint(nth, || Due::Wake(node)),
            MatchOutput::Open(MatchEntry { id, players, .. }) => {
                assert!(players.iter().all(|side| !side.is_empty()), "{id:?}");
                let at_ms = self.now_ms + self.rng.random_range(0..300);
                let former = self.processes[nth].instances.insert(id, (at_ms, false));
                assert_eq!(former, None, "{id:?} is opened twice");
            }
            MatchOutput::Close(id) => _ = self.processes[nth].instances.remove(&id),
            MatchOutput::Move(travel) => {
                let process = &mut self.processes[nth];
                let now_ms = process.clock_ms(self.now_ms);
                if let (Some((node, _)), Some(to)) = (&mut process.node, travel.to) {
                    node.begin_move(travel.player, to, now_ms);
                }
            }
            MatchOutput::Arrived(_, TravelGoal::Home(_)) => self.home += 1,
            MatchOutput::Arrived(..) | MatchOutput::NoTravel(_) | MatchOutput::Ticket(..) => {}
        }
    }

    fn send_request(&mut self, nth: usize, id: RequestId, request: ClusterRequest) {
        let is_cut = self.now_ms < self.processes[nth].store_back_ms;
        if is_cut || self.happens(self.rates.request_lost) {
            return;
        }
        let after_ms = if self.happens(self.rates.request_late) {
            self.rng.random_range(100..3_000)
        } else {
            self.rng.random_range(1..15)
        };
        let generation = self.processes[nth].generation;
        self.push(after_ms, Due::Execute(nth, generation, id, request));
    }

    fn send_hint(&mut self, nth: usize, due: impl Fn() -> Due) {
        if self.now_ms < self.processes[nth].bus_back_ms {
            return;
        }
        let copies = 1 + u32::from(self.happens(self.rates.message_repeated));
        for _ in 0..copies {
            if !self.happens(self.rates.message_lost) {
                let after_ms = if self.happens(self.rates.message_late) {
                    self.rng.random_range(20..2_000)
                } else {
                    self.rng.random_range(1..10)
                };
                self.push(after_ms, due());
            }
        }
    }

    fn execute(&mut self, request: ClusterRequest) -> ClusterReply {
        if self.now_ms < self.store_back_ms {
            return ClusterReply::Away;
        }
        let of_match = match &request {
            ClusterRequest::Match(request) => Some(request.clone()),
            _ => None,
        };
        let travelling = self.travelling();
        let reply = self.rows.execute(request, self.now_ms);
        if let Some(MatchRequest::EndTravels { run, .. }) = &of_match {
            self.check_arrivals(*run, &travelling);
        }
        if let (Some(request), ClusterReply::Match(reply)) = (of_match, &reply) {
            self.ledger.on_executed(&request, reply, self.now_ms);
            if let (MatchRequest::AddTicket { ticket }, MatchReply::Done) = (&request, reply) {
                let homes = ticket.members.iter();
                let homes = homes.map(|member| (member.player, member.home.node));
                self.homes.extend(homes);
            }
        }
        reply
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Execute(nth, generation, id, request) => {
                let reply = self.execute(request);
                let is_cut = self.now_ms < self.processes[nth].store_back_ms;
                if !is_cut && !self.happens(self.rates.reply_lost) {
                    let after_ms = self.rng.random_range(1..15);
                    self.push(after_ms, Due::Reply(nth, generation, id, reply));
                }
            }
            Due::Reply(nth, generation, id, reply) => self.on_reply(nth, generation, id, reply),
            Due::Arrivals(node, arrivals) => {
                let process = &mut self.processes[node.0 as usize];
                let now_ms = process.clock_ms(self.now_ms);
                if let Some((node, _)) = &mut process.node {
                    node.on_arrivals(now_ms, &arrivals);
                }
            }
            Due::Wake(node) => {
                let process = &mut self.processes[node.0 as usize];
                let now_ms = process.clock_ms(self.now_ms);
                if let Some((node, matches)) = &mut process.node {
                    node.on_wake(now_ms);
                    matches.on_wake(now_ms);
                }
            }
        }
    }

    /// The travelling players, with their matches.
    fn travelling(&self) -> BTreeMap<PlayerId, Option<MatchId>> {
        let players = self.rows.match_players();
        let travelling = players.filter(|(.., is_travelling)| *is_travelling);
        travelling
            .map(|(player, _, in_match, _)| (player, in_match))
            .collect()
    }

    /// Checks that players that no longer travel are at the node of their match or at home, or that their home is dead.
    fn check_arrivals(&mut self, run: NodeRun, before: &BTreeMap<PlayerId, Option<MatchId>>) {
        let after = self.travelling();
        let arrived = before
            .iter()
            .filter(|(player, _)| !after.contains_key(player));
        for (player, in_match) in arrived {
            let (owner, _) = self.rows.owner(*player).unwrap();
            assert_eq!(owner, Some(run), "{}: {player:?}", self.place());
            // A match that is not open yet is no goal.
            let played = in_match.map(|id| self.rows.match_state(id).unwrap());
            let played = played.filter(|(state, _)| *state == MatchState::Ready);
            let goal = played.map_or(self.homes[player], |(_, host)| host.node);
            let ClusterReply::Nodes(nodes) =
                self.rows.execute(ClusterRequest::ReadNodes, self.now_ms)
            else {
                panic!("a list of nodes");
            };
            let is_alive = nodes
                .iter()
                .any(|entry| entry.run.node == goal && entry.is_alive);
            let is_there = goal == run.node || played.is_none() && !is_alive;
            assert!(
                is_there,
                "{}: {player:?} is on {run:?}, and goes to {goal:?}",
                self.place()
            );
        }
    }

    fn on_reply(&mut self, nth: usize, generation: u32, id: RequestId, reply: ClusterReply) {
        let process = &mut self.processes[nth];
        let now_ms = process.clock_ms(self.now_ms);
        let is_own = process.generation == generation;
        let Some((node, matches)) = process.node.as_mut().filter(|_| is_own) else {
            return;
        };
        let outputs = matches.on_reply(now_ms, id, reply.clone());
        let node_outputs = node.on_reply(now_ms, id, reply);
        for output in outputs {
            self.dispatch_match(nth, output);
        }
        for output in node_outputs {
            self.dispatch(nth, output);
        }
    }

    /// Ends all faults, also those of matches, and stops players from queueing.
    pub fn heal(&mut self) {
        self.rates = FaultRates::NONE;
        (self.plays, self.matches_fail) = (false, false);
        self.store_back_ms = 0;
        for nth in 0..NODES {
            let process = &mut self.processes[nth];
            (process.store_back_ms, process.bus_back_ms) = (0, 0);
            if process.node.is_none() {
                self.start(nth);
            }
        }
    }

    pub fn place(&self) -> String {
        format!("seed {}, {} ms", self.seed, self.now_ms)
    }

    fn check(&mut self) {
        let place = self.place();
        self.ledger.check(&self.rows, &place);
        for player in (0..PLAYERS).map(PlayerId) {
            let homes = self.homes(player);
            assert!(homes.len() <= 1, "{place}: {player:?} is live on {homes:?}");
        }
        let role = MATCHER_ROLE.to_owned();
        let read = ClusterRequest::Match(MatchRequest::ReadRole { role });
        let ClusterReply::Match(MatchReply::Role(_, epoch, _)) =
            self.rows.execute(read, self.now_ms)
        else {
            panic!("{place}: the role is not read");
        };
        let matchers = self.processes.iter().filter(|process| {
            let matches = process.node.as_ref().map(|(_, matches)| matches);
            matches.is_some_and(|matches| matches.matcher_epoch() == Some(epoch))
        });
        assert!(matchers.count() <= 1, "{place}: two matchers of one epoch");
    }

    /// The nodes that simulate a player now.
    pub fn homes(&self, player: PlayerId) -> Vec<usize> {
        let is_home = |process: &MatchProcess| {
            let now_ms = process.clock_ms(self.now_ms);
            let node = process.node.as_ref().map(|(node, _)| node);
            node.is_some_and(|node| node.is_live(player, now_ms))
        };
        let homes = self.processes.iter().enumerate();
        homes
            .filter(|(_, process)| is_home(process))
            .map(|(nth, _)| nth)
            .collect()
    }

    /// Checks that no tickets wait that could be matched.
    pub fn check_queue(&self) {
        for (mode, players_max) in [("duel", 1), ("arena", 3)] {
            let waiting = self
                .rows
                .tickets()
                .filter(|(_, _, in_match)| in_match.is_none());
            let waiting = waiting.filter(|(ticket, ..)| ticket.mode == mode);
            let waiting: usize = waiting.map(|(ticket, ..)| ticket.members.len()).sum();
            assert!(
                waiting <= players_max,
                "{}: {waiting} players wait for {mode} 5 s after the faults",
                self.place()
            );
        }
    }

    /// Checks that all matches are over, and their players are at home.
    pub fn check_homes(&self) {
        let place = self.place();
        for (player, ticket, in_match, is_travelling) in self.rows.match_players() {
            let row = self.rows.owner(player);
            assert!(!is_travelling, "{place}: {player:?} is on its way, {row:?}");
            assert!(ticket.is_some(), "{place}: {player:?} has no ticket");
            assert_eq!(in_match, None, "{place}: {player:?} plays");
        }
        for player in (0..PLAYERS).map(PlayerId) {
            let homes = self.homes(player);
            assert_eq!(homes.len(), 1, "{place}: {player:?}");
        }
    }

    pub fn state(&self, id: MatchId) -> Option<MatchState> {
        self.rows.match_state(id).map(|(state, _)| state)
    }

    pub fn figures(&self) -> MatchFigures {
        let [formed, ended, aborted] = self.ledger.counts(&self.rows);
        let running = self.processes.iter().filter_map(|it| it.node.as_ref());
        let running = running.map(|(_, matches)| matches.stats().roles_taken);
        MatchFigures {
            formed,
            ended,
            aborted,
            requeued: self.ledger.requeued,
            cancelled: self.ledger.cancelled,
            home: self.home,
            roles_taken: self.roles_taken + running.sum::<u64>(),
        }
    }

    pub fn trace(&self) -> Vec<(TicketId, Vec<MatchId>)> {
        self.ledger.trace()
    }
}
