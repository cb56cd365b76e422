//! Nodes over a bus that loses messages, compared with what each node has to know.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::ids::NodeRun;

const TICK_MS: u64 = 50;
const PLAYERS: u64 = 12;
const PARTIES: u32 = 3;

type SimValues = BTreeMap<u16, Vec<u8>>;

/// The row and the state of a player.
#[derive(Clone, Debug, Default)]
struct SimPlayer {
    party: Option<PartyId>,
    owner: Option<ClusterNodeId>,
    epoch: u64,
    kind: u16,
    values: SimValues,
}

/// A move to another node: the former one has the player until the end.
#[derive(Clone, Copy, Debug)]
struct SimMove {
    player: PlayerId,
    from: ClusterNodeId,
    adopted_at: u64,
    released_at: u64,
}

struct SimNode {
    id: ClusterNodeId,
    exchange: PartyExchange,
    /// The players that it has, with their epochs and where they move to.
    present: BTreeMap<PlayerId, (u64, Option<ClusterNodeId>)>,
    /// Changes with each arrival and departure.
    version: u64,
    /// The revision of each known party.
    known: BTreeMap<PartyId, u64>,
    /// A read: the tick in which its result arrives, and its result.
    read: Option<(u64, BTreeMap<PartyId, (u64, Vec<GroupMember>)>)>,
    /// The first tick of the next read.
    read_at: Option<u64>,
    /// What its clients have.
    shown: BTreeMap<PlayerId, (PartyId, u16, SimValues)>,
    is_dead: bool,
}

struct Sim {
    rng: Pcg64Mcg,
    tick: u64,
    players: BTreeMap<PlayerId, SimPlayer>,
    revisions: BTreeMap<PartyId, u64>,
    nodes: Vec<SimNode>,
    moves: Vec<SimMove>,
    /// Claims of the players of dead nodes: tick and node.
    deaths: Vec<(u64, ClusterNodeId)>,
    /// By receiver and sender, in order.
    bus: BTreeMap<(ClusterNodeId, ClusterNodeId), VecDeque<(u64, Vec<u8>)>>,
    loss: f64,
}

fn node(nth: usize) -> ClusterNodeId {
    ClusterNodeId(nth as u32)
}

impl SimNode {
    fn new(id: ClusterNodeId) -> Self {
        Self {
            id,
            exchange: PartyExchange::new(id, PartyValueSettings::default()),
            present: BTreeMap::new(),
            version: 0,
            known: BTreeMap::new(),
            read: None,
            read_at: None,
            shown: BTreeMap::new(),
            is_dead: false,
        }
    }

    fn read_by(&mut self, tick: u64) {
        self.read_at = Some(self.read_at.map_or(tick, |at| at.min(tick)));
    }
}

impl Sim {
    fn new(seed: u64) -> Self {
        let players = (0..PLAYERS).map(|id| (PlayerId(id), SimPlayer::default()));
        Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
            tick: 0,
            players: players.collect(),
            revisions: BTreeMap::new(),
            nodes: (0..3).map(|nth| SimNode::new(node(nth))).collect(),
            moves: Vec::new(),
            deaths: Vec::new(),
            bus: BTreeMap::new(),
            loss: 0.2,
        }
    }

    fn random_node(&mut self) -> ClusterNodeId {
        loop {
            let nth = self.rng.random_range(0..self.nodes.len());
            if !self.nodes[nth].is_dead {
                return node(nth);
            }
        }
    }

    fn is_moving(&self, player: PlayerId) -> bool {
        self.moves.iter().any(|it| it.player == player)
    }

    fn arrive(&mut self, player: PlayerId, at: ClusterNodeId) {
        let it = self.players.get_mut(&player).unwrap();
        let delay = self.rng.random_range(0..6);
        let to = &mut self.nodes[at.0 as usize];
        to.present.insert(player, (it.epoch, None));
        to.version += 1;
        to.read_by(self.tick + delay);
    }

    fn log_in(&mut self, player: PlayerId) {
        let at = self.random_node();
        let it = self.players.get_mut(&player).unwrap();
        (it.owner, it.epoch) = (Some(at), it.epoch + 1);
        self.arrive(player, at);
    }

    fn depart(&mut self, player: PlayerId, from: ClusterNodeId) {
        let left = &mut self.nodes[from.0 as usize];
        left.present.remove(&player);
        left.version += 1;
        self.drop_parties(from);
    }

    /// A node knows only the parties of its players.
    fn drop_parties(&mut self, at: ClusterNodeId) {
        let at = &mut self.nodes[at.0 as usize];
        let players = at.present.keys();
        let parties: BTreeSet<PartyId> = players
            .filter_map(|player| self.players[player].party)
            .collect();
        let exchange = &mut at.exchange;
        at.known.retain(|party, _| {
            let stays = parties.contains(party);
            if !stays {
                exchange.set_party(*party, &[]);
            }
            stays
        });
    }

    fn set_party(&mut self, player: PlayerId, party: Option<PartyId>) {
        let it = self.players.get_mut(&player).unwrap();
        let before = std::mem::replace(&mut it.party, party);
        if before == party {
            return;
        }
        for party in before.into_iter().chain(party) {
            *self.revisions.entry(party).or_default() += 1;
        }
        for nth in 0..self.nodes.len() {
            let at = self.tick + self.rng.random_range(0..10);
            self.nodes[nth].read_by(at);
        }
    }

    /// Something happens to a player or a node.
    fn act(&mut self) {
        let player = PlayerId(self.rng.random_range(0..PLAYERS));
        let it = &self.players[&player];
        let (owner, party) = (it.owner, it.party);
        let is_free = !self.is_moving(player)
            && owner.is_none_or(|owner| self.nodes[owner.0 as usize].present.contains_key(&player));
        match self.rng.random_range(0..100) {
            0..4 if is_free && owner.is_some() => {
                self.players.get_mut(&player).unwrap().owner = None;
                self.depart(player, owner.unwrap());
            }
            4..24 if is_free && owner.is_none() => self.log_in(player),
            24..34 if is_free && owner.is_some() => self.begin_move(player),
            34..42 => {
                let members = self.players.values();
                let new = PartyId(self.rng.random_range(0..PARTIES));
                let count = members.filter(|it| it.party == Some(new)).count();
                self.set_party(player, (count < 5).then_some(new).or(party));
            }
            42..44 => self.set_party(player, None),
            44 if self.deaths.is_empty() => {
                let dead = self.random_node();
                self.deaths.push((self.tick + 40, dead));
                self.nodes[dead.0 as usize].is_dead = true;
            }
            45..48 => self.players.get_mut(&player).unwrap().kind = self.rng.random_range(0..3),
            _ => {
                let (id, value) = (self.rng.random_range(0..4), self.rng.random());
                let values = &mut self.players.get_mut(&player).unwrap().values;
                if self.rng.random_bool(0.2) {
                    values.remove(&id);
                } else {
                    values.insert(id, vec![value; usize::from(id)]);
                }
            }
        }
    }

    fn begin_move(&mut self, player: PlayerId) {
        let to = self.random_node();
        let it = self.players.get_mut(&player).unwrap();
        let from = it.owner.unwrap();
        if from == to || self.nodes[from.0 as usize].is_dead {
            return;
        }
        (it.owner, it.epoch) = (Some(to), it.epoch + 1);
        let leaving = &mut self.nodes[from.0 as usize];
        leaving.present.get_mut(&player).unwrap().1 = Some(to);
        let adopted_at = self.tick + self.rng.random_range(0..4);
        self.moves.push(SimMove {
            player,
            from,
            adopted_at,
            released_at: adopted_at + self.rng.random_range(0..4),
        });
    }

    fn continue_moves(&mut self) {
        for it in std::mem::take(&mut self.moves) {
            let owner = self.players[&it.player].owner.unwrap();
            let to = &self.nodes[owner.0 as usize];
            if to.is_dead {
                // Claimed with the other players of that node.
                self.moves.push(it);
                continue;
            }
            if self.tick >= it.adopted_at && !to.present.contains_key(&it.player) {
                self.arrive(it.player, owner);
            }
            if self.tick < it.released_at {
                self.moves.push(it);
            } else if it.from != owner {
                self.depart(it.player, it.from);
            }
        }
        let (due, waiting): (Vec<_>, Vec<_>) =
            self.deaths.iter().partition(|(at, _)| self.tick >= *at);
        self.deaths = waiting;
        for (_, dead) in due {
            self.nodes[dead.0 as usize] = SimNode::new(dead);
            self.bus
                .retain(|(to, from), _| *to != dead && *from != dead);
            let lost: Vec<PlayerId> = self
                .players
                .iter()
                .filter(|(_, it)| it.owner == Some(dead))
                .map(|(player, _)| *player)
                .collect();
            let (ended, going): (Vec<_>, Vec<_>) =
                self.moves.iter().partition(|it| it.from == dead);
            self.moves = going;
            for SimMove { player, .. } in ended {
                let owner = self.players[&player].owner.unwrap();
                if !self.nodes[owner.0 as usize].present.contains_key(&player) {
                    self.arrive(player, owner);
                }
            }
            for player in lost {
                self.log_in(player);
            }
        }
    }

    /// Reads the rows of the parties of a node's players.
    fn read_rows(&mut self, nth: usize) {
        let node = &mut self.nodes[nth];
        if let Some((_, rows)) = node.read.take_if(|(at, _)| self.tick >= *at) {
            for (party, (revision, members)) in rows {
                let players = node.present.keys();
                let mut own = players.filter(|player| self.players[player].party == Some(party));
                let known = node.known.get(&party);
                if own.next().is_some() && known.is_none_or(|known| *known < revision) {
                    node.known.insert(party, revision);
                    node.exchange.set_party(party, &members);
                }
            }
        }
        if node.read.is_none() && node.read_at.take_if(|at| self.tick >= *at).is_some() {
            let rows = self.revisions.iter().map(|(&party, &revision)| {
                let members = self.players.iter();
                let members = members.filter(|(_, it)| it.party == Some(party));
                let members = members.map(|(player, it)| GroupMember {
                    player: *player,
                    revision,
                    owner: it.owner.map(|node| NodeRun { node, run: 1 }),
                });
                (party, (revision, members.collect()))
            });
            node.read = Some((self.tick + self.rng.random_range(0..4), rows.collect()));
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        self.continue_moves();
        for nth in 0..self.nodes.len() {
            if self.nodes[nth].is_dead {
                continue;
            }
            self.read_rows(nth);
            self.drop_parties(node(nth));
            self.step_node(nth);
        }
    }

    fn step_node(&mut self, nth: usize) {
        let it = &mut self.nodes[nth];
        for ((_, from), queue) in self.bus.iter_mut().filter(|((to, _), _)| *to == it.id) {
            while let Some((_, bytes)) = queue.pop_front_if(|(at, _)| self.tick >= *at) {
                assert!(it.exchange.receive(BusPeer::Node(*from), &bytes));
            }
        }
        let present = it.present.clone();
        let is_here = |player: PlayerId| present.contains_key(&player);
        it.exchange.begin_tick(self.tick * TICK_MS, is_here);
        for player in it.exchange.take_changed() {
            match it.exchange.member(player) {
                Some((party, kind, values)) => {
                    let values = values.map(|(id, value)| (id, value.to_vec()));
                    it.shown.insert(player, (party, kind, values.collect()));
                }
                None => _ = it.shown.remove(&player),
            }
        }
        for (player, party) in it.exchange.shared_members(it.version, is_here).to_vec() {
            let (epoch, moves_to) = present[&player];
            let of = &self.players[&player];
            let here = MemberHere {
                player,
                party,
                epoch,
                kind: of.kind,
                moves_to,
            };
            let values = of.values.iter().map(|(id, value)| (*id, &value[..]));
            it.exchange.publish(here, values);
        }
        it.exchange.end_tick(|_| true);
        let own = it.id;
        for (to, bytes) in it.exchange.take_outgoing() {
            assert_ne!(to, own);
            if !self.rng.random_bool(self.loss) {
                let queue = self.bus.entry((to, own)).or_default();
                let last = queue.back().map_or(0, |(at, _)| *at);
                let at = self.tick + self.rng.random_range(1..4);
                queue.push_back((at.max(last), bytes));
            }
        }
    }

    /// What each node has to know when nothing changes any more.
    fn check(&self) {
        for it in &self.nodes {
            let here = it.present.keys();
            let parties: BTreeSet<PartyId> = here
                .filter_map(|player| self.players[player].party)
                .collect();
            let elsewhere = self.players.iter().filter(|(player, other)| {
                other.owner.is_some()
                    && !it.present.contains_key(player)
                    && other.party.is_some_and(|party| parties.contains(&party))
            });
            let expected: BTreeMap<_, _> = elsewhere
                .map(|(player, other)| {
                    let party = other.party.unwrap();
                    (*player, (party, other.kind, other.values.clone()))
                })
                .collect();
            assert_eq!(it.shown, expected, "node {:?}", it.id);
        }
    }

    fn total(&self, count: impl Fn(PartyValueStats) -> u64) -> u64 {
        let nodes = self.nodes.iter();
        nodes.map(|it| count(it.exchange.stats())).sum()
    }
}

#[test]
fn nodes_know_the_values_of_members_elsewhere_after_any_faults() {
    let (mut gaps, mut requests, mut expired) = (0, 0, 0);
    for seed in 0..60 {
        let mut sim = Sim::new(seed);
        for _ in 0..6 {
            sim.loss = 0.2;
            for _ in 0..200 {
                for _ in 0..sim.rng.random_range(0..4) {
                    sim.act();
                }
                sim.step();
            }
            sim.loss = 0.0;
            (0..200).for_each(|_| sim.step());
            sim.check();
            // At rest there are only statuses: each party and node once a second.
            let sent = |sim: &Sim| sim.total(|it| it.full + it.changes + it.requests);
            let (before, statuses) = (sent(&sim), sim.total(|it| it.statuses));
            (0..100).for_each(|_| sim.step());
            assert_eq!(sent(&sim), before, "seed {seed}");
            let statuses = sim.total(|it| it.statuses) - statuses;
            assert!(statuses <= 6 * PLAYERS * 2, "{statuses}");
        }
        gaps += sim.total(|it| it.gaps);
        requests += sim.total(|it| it.requests);
        expired += sim.total(|it| it.expired);
        assert_eq!(sim.total(|it| it.dropped + it.malformed), 0);
    }
    // Without them, the test would test little.
    assert!(
        gaps > 100 && requests > 100 && expired > 10,
        "{gaps} {requests} {expired}"
    );
}

/// Two nodes that know of each other's member of a party.
fn pair() -> [PartyExchange; 2] {
    let members: Vec<GroupMember> = (0..2)
        .map(|nth| GroupMember {
            player: PlayerId(nth),
            revision: 1,
            owner: Some(NodeRun {
                node: ClusterNodeId(nth as u32),
                run: 1,
            }),
        })
        .collect();
    [0, 1].map(|nth| {
        let mut exchange = PartyExchange::new(node(nth), PartyValueSettings::default());
        exchange.set_party(PartyId(3), &members);
        exchange
    })
}

/// A tick of both; `passes` is whether a message arrives.
fn tick(pair: &mut [PartyExchange; 2], now_ms: u64, value: u8, passes: bool) {
    for (nth, exchange) in pair.iter_mut().enumerate() {
        let own = PlayerId(nth as u64);
        exchange.begin_tick(now_ms, |player| player == own);
        let shared = exchange.shared_members(0, |player| player == own);
        assert_eq!(shared, [(own, PartyId(3))]);
        let here = MemberHere {
            player: own,
            party: PartyId(3),
            epoch: 1,
            kind: 0,
            moves_to: None,
        };
        exchange.publish(here, [(1, &[value][..])].into_iter());
        exchange.end_tick(|_| true);
    }
    let sent = [0, 1].map(|nth: usize| pair[nth].take_outgoing());
    for (nth, messages) in sent.into_iter().enumerate().filter(|_| passes) {
        for (_, bytes) in messages {
            assert!(pair[1 - nth].receive(BusPeer::Node(node(nth)), &bytes));
        }
    }
}

fn value_of(exchange: &PartyExchange, player: u64) -> Option<u8> {
    let (_, _, mut values) = exchange.member(PlayerId(player))?;
    values.next().map(|(_, value)| value[0])
}

#[test]
fn lost_last_change_is_repaired_within_two_seconds() {
    let mut pair = pair();
    (0..5).for_each(|nth| tick(&mut pair, nth * 50, 7, true));
    assert_eq!(value_of(&pair[0], 1), Some(7));
    let requests = |pair: &[PartyExchange; 2]| pair[0].stats().requests;
    assert_eq!(requests(&pair), 0, "nothing was lost");
    tick(&mut pair, 250, 8, true);
    tick(&mut pair, 300, 8, true);
    assert_eq!(value_of(&pair[0], 1), Some(8));
    // The last change is lost.
    tick(&mut pair, 350, 9, false);
    let mut now_ms = 400;
    while value_of(&pair[0], 1) != Some(9) {
        tick(&mut pair, now_ms, 9, true);
        now_ms += 50;
        assert!(now_ms < 2_400);
    }
    assert_eq!(requests(&pair), 1);
}

#[test]
fn silent_node_is_forgotten_and_gets_nothing() {
    let mut pair = pair();
    (0..5).for_each(|nth| tick(&mut pair, nth * 50, 7, true));
    let mut now_ms = 250;
    while value_of(&pair[0], 1).is_some() {
        tick(&mut pair, now_ms, 7, false);
        now_ms += 50;
        assert!(now_ms < 6_000);
    }
    assert!(now_ms > 5_000);
    let changes = pair[0].stats().changes;
    tick(&mut pair, now_ms, 8, false);
    assert_eq!(pair[0].stats().changes, changes);
    assert_eq!(pair[0].stats().expired, 1);
}

#[test]
fn member_that_logs_out_is_forgotten_at_once() {
    let mut pair = pair();
    (0..5).for_each(|nth| tick(&mut pair, nth * 50, 7, true));
    assert_eq!(value_of(&pair[0], 1), Some(7));
    let [one, other] = &mut pair;
    other.begin_tick(250, |_| false);
    other.end_tick(|_| true);
    for (_, bytes) in other.take_outgoing() {
        assert!(one.receive(BusPeer::Node(node(1)), &bytes));
    }
    one.begin_tick(250, |player| player == PlayerId(0));
    assert!(one.take_changed().contains(&PlayerId(1)));
    assert_eq!(value_of(one, 1), None);
}

#[test]
fn values_of_a_lower_epoch_are_ignored() {
    let [mut one, _] = pair();
    let mut receive = |from: usize, epoch: u64, value: u8| {
        let values = MemberValues {
            status: MemberStatus {
                party: PartyId(3),
                player: PlayerId(1),
                epoch,
                number: 1,
            },
            base: None,
            kind: 0,
            values: vec![(1, Some(vec![value]))],
        };
        let messages = PartyMessage::Values(vec![values]).to_messages();
        assert!(one.receive(BusPeer::Node(node(from)), &messages[0]));
        one.begin_tick(0, |player| player == PlayerId(0));
        value_of(&one, 1)
    };
    // The player has moved from node 1 to node 2, whose messages arrive first.
    assert_eq!(receive(2, 6, 60), Some(60));
    assert_eq!(receive(1, 5, 50), Some(60));
    assert_eq!(receive(1, 7, 70), Some(70));
    let gone = PartyMessage::Gone(vec![(PlayerId(1), 6)]).to_messages();
    assert!(one.receive(BusPeer::Node(node(2)), &gone[0]));
    one.begin_tick(0, |player| player == PlayerId(0));
    assert_eq!(value_of(&one, 1), Some(70));
}

#[test]
fn statuses_in_the_tick_of_a_change_are_no_gaps() {
    let mut pair = pair();
    (0..100).for_each(|nth| tick(&mut pair, nth * 50, nth as u8, true));
    assert_eq!(value_of(&pair[0], 1), Some(98));
    for exchange in &pair {
        let stats = exchange.stats();
        assert_eq!((stats.gaps, stats.requests), (0, 0));
        assert!(stats.changes > 90 && stats.statuses < 10);
    }
}

#[test]
fn limits_drop_messages_and_count_them() {
    let [mut one, _] = pair();
    let status = PartyMessage::Request(vec![PlayerId(0)])
        .to_messages()
        .remove(0);
    let max = PartyValueSettings::default().waiting_max;
    for _ in 0..max + 3 {
        assert!(one.receive(BusPeer::Node(node(1)), &status));
    }
    assert_eq!((one.arrived.len(), one.stats().dropped), (max, 3));
    let mut other = status.clone();
    other[1] += 1;
    assert!(one.receive(BusPeer::Node(node(1)), &other));
    assert!(one.receive(BusPeer::Node(node(1)), &status[..4]));
    assert!(!one.receive(BusPeer::Node(node(1)), &[9]));
    let stats = one.stats();
    assert_eq!((stats.other_versions, stats.malformed), (1, 1));
    one.settings.outgoing_bytes_max = 10;
    one.enqueue(node(1), vec![0; 8]);
    one.enqueue(node(1), vec![0; 8]);
    assert_eq!(one.stats().dropped, 4);
    assert_eq!(one.take_outgoing().len(), 1);
}

#[test]
fn members_elsewhere_can_be_taken_again() {
    let mut pair = pair();
    (0..5).for_each(|nth| tick(&mut pair, nth * 50, 7, true));
    assert_eq!(pair[0].take_changed(), [PlayerId(1)].into());
    assert_eq!(pair[0].take_changed(), BTreeSet::new());
    pair[0].set_all_changed();
    assert_eq!(pair[0].take_changed(), [PlayerId(1)].into());
}
