//! Several nodes with common rows. Hints and replies are lost, and requests are executed late.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::request::{Arrival, ClusterReply, ClusterRequest, ClusterSave, GroupKind, GroupMember};
use crate::rows::ClusterRows;

const NODES: usize = 3;
const PLAYERS: u64 = 12;
const STEP_MS: u64 = 10;

/// A node, and what its tick knows by its events.
struct TestNode {
    run: NodeRun,
    directory: GroupDirectory,
    present: BTreeSet<PlayerId>,
    groups_of: BTreeMap<(PlayerId, GroupKind), GroupId>,
    members: BTreeMap<GroupId, Vec<GroupMember>>,
    requested: usize,
    outcomes: Vec<Result<Option<GroupId>, GroupNotChanged>>,
}

struct GroupWorld {
    rows: ClusterRows,
    nodes: Vec<TestNode>,
    rng: Pcg64Mcg,
    has_faults: bool,
    /// Requests whose senders have no reply yet, and that are executed later.
    late: Vec<GroupRequest>,
    /// Replies that arrive at a later time: time, node, number.
    delayed: Vec<(u64, usize, u64, Option<GroupReply>)>,
    now_ms: u64,
}

impl GroupWorld {
    fn new(seed: u64) -> Self {
        let mut rows = ClusterRows::default();
        let settings = GroupSettings {
            // Few, so that reads have several pages.
            changes_per_read: 3,
            players_per_read: 2,
            ..GroupSettings::default()
        };
        let nodes = (0..NODES).map(|node| {
            let name = format!("n{node}");
            let ClusterReply::Started(run) = rows.execute(ClusterRequest::StartRun { name }, 0)
            else {
                panic!("it starts")
            };
            TestNode {
                run,
                directory: GroupDirectory::new(settings),
                present: BTreeSet::new(),
                groups_of: BTreeMap::new(),
                members: BTreeMap::new(),
                requested: 0,
                outcomes: Vec::new(),
            }
        });
        let nodes = nodes.collect();
        Self {
            rows,
            nodes,
            rng: Pcg64Mcg::seed_from_u64(seed),
            has_faults: false,
            late: Vec::new(),
            delayed: Vec::new(),
            now_ms: 0,
        }
    }

    fn execute(&mut self, request: ClusterRequest) -> ClusterReply {
        self.rows.execute(request, self.now_ms)
    }

    /// Makes a player arrive on a node, from wherever it is.
    fn place(&mut self, player: PlayerId, node: usize) {
        let to = self.nodes[node].run;
        let (owner, epoch) = self.rows.owner(player).unwrap_or_default();
        let request = match owner {
            Some(run) => ClusterRequest::HandOff {
                run,
                players: vec![ClusterSave {
                    player,
                    epoch,
                    record: crate::ids::ClusterRecord::default(),
                }],
                to,
                saves: Vec::new(),
            },
            None => ClusterRequest::LogIn {
                run: to,
                player,
                epoch,
            },
        };
        assert_eq!(self.execute(request), ClusterReply::Done);
        let arrivals = vec![Arrival {
            player,
            epoch: epoch + 1,
        }];
        self.execute(ClusterRequest::Adopt { run: to, arrivals });
        for other in &mut self.nodes {
            other.present.remove(&player);
        }
        self.nodes[node].present.insert(player);
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.has_faults && self.rng.random_bool(chance)
    }

    /// A change that may make sense, on a node with players.
    fn change_at_random(&mut self) {
        let at = self.rng.random_range(0..NODES);
        let player = PlayerId(self.rng.random_range(1..=PLAYERS));
        let kind = GroupKind::ALL[self.rng.random_range(0..2)];
        let groups = self.rows.groups();
        let known = groups.keys().filter(|group| group.kind == kind);
        let known: Vec<GroupId> = known.copied().collect();
        let change = match self.rng.random_range(0..6) {
            0 => GroupChange::Create(kind),
            1..4 if !known.is_empty() => {
                GroupChange::Join(known[self.rng.random_range(0..known.len())])
            }
            _ => GroupChange::Leave(kind),
        };
        self.nodes[at].requested += 1;
        let done = self.nodes[at].directory.change(player, change);
        assert!(done.is_ok(), "{done:?}");
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        while !self.late.is_empty() && self.rng.random_bool(0.1) {
            let nth = self.rng.random_range(0..self.late.len());
            let request = self.late.swap_remove(nth);
            self.execute(ClusterRequest::Group(request));
        }
        let now_ms = self.now_ms;
        let due = self
            .delayed
            .extract_if(.., |(due_ms, ..)| *due_ms <= now_ms);
        for (_, at, number, reply) in due.collect::<Vec<_>>() {
            self.reply(at, number, reply);
        }
        for at in 0..NODES {
            let run = self.nodes[at].run;
            self.execute(ClusterRequest::Heartbeat { run, load: 0 });
            let node = &mut self.nodes[at];
            let present = node.present.iter();
            let present = present.map(|player| (*player, (1, 1)));
            node.directory.set_players(present);
            node.follow();
            let outputs = node.directory.poll(self.now_ms, Some(run));
            self.dispatch(at, outputs);
        }
    }

    fn reply(&mut self, at: usize, number: u64, reply: Option<GroupReply>) {
        let directory = &mut self.nodes[at].directory;
        let outputs = directory.on_reply(self.now_ms, number, reply);
        self.dispatch(at, outputs);
    }

    fn dispatch(&mut self, at: usize, outputs: Vec<GroupOutput>) {
        for output in outputs {
            match output {
                GroupOutput::Hint(bytes) => {
                    for other in (0..NODES).filter(|other| *other != at) {
                        if !self.chance(0.4) {
                            assert!(self.nodes[other].directory.receive(&bytes));
                        }
                    }
                }
                GroupOutput::Store(_, request) if self.chance(0.05) => self.late.push(request),
                GroupOutput::Store(number, request) => {
                    let is_executed = !self.chance(0.05);
                    let reply = is_executed.then(|| self.execute(ClusterRequest::Group(request)));
                    if self.chance(0.05) {
                        // The reply is lost.
                        continue;
                    }
                    let reply = match reply {
                        Some(ClusterReply::Group(reply)) => Some(reply),
                        _ => None,
                    };
                    if self.chance(0.3) {
                        let due_ms = self.now_ms + self.rng.random_range(1..600);
                        self.delayed.push((due_ms, at, number, reply));
                        continue;
                    }
                    self.reply(at, number, reply);
                }
            }
        }
    }

    /// Whether all nodes know the groups of their players as they are in the rows.
    fn is_settled(&self) -> bool {
        let groups = self.rows.groups();
        self.nodes.iter().all(|node| {
            let keys = node.present.iter();
            let keys = keys.flat_map(|&player| GroupKind::ALL.map(|kind| (player, kind)));
            let groups_of: BTreeMap<_, _> = keys
                .filter_map(|(player, kind)| {
                    let group = self.rows.group_of(player, kind).group?;
                    Some(((player, kind), group))
                })
                .collect();
            let expected: BTreeMap<GroupId, Vec<PlayerId>> = groups_of
                .values()
                .map(|group| (*group, groups[group].clone()))
                .collect();
            let members = node.members.iter().map(|(group, members)| {
                let members = members.iter().map(|member| member.player);
                (*group, members.collect())
            });
            node.groups_of == groups_of && expected == members.collect()
        })
    }

    /// Runs until the nodes know all groups, at most for a time in milliseconds.
    fn settle(&mut self, within_ms: u64) {
        let until_ms = self.now_ms + within_ms;
        loop {
            self.step();
            if self.is_settled() {
                return;
            }
            assert!(self.now_ms < until_ms, "{:?}", self.rows.groups());
        }
    }

    /// Changes the group of a player on a node, and waits for the outcome.
    fn change(
        &mut self,
        at: usize,
        player: u64,
        change: GroupChange,
    ) -> Result<Option<GroupId>, GroupNotChanged> {
        self.nodes[at].requested += 1;
        let directory = &mut self.nodes[at].directory;
        directory.change(PlayerId(player), change)?;
        let before = self.nodes[at].outcomes.len();
        while self.nodes[at].outcomes.len() == before {
            self.step();
        }
        self.nodes[at].outcomes[before]
    }
}

impl TestNode {
    fn follow(&mut self) {
        for event in self.directory.take_events() {
            match event {
                GroupEvent::Player {
                    player,
                    kind,
                    group: Some(group),
                } => _ = self.groups_of.insert((player, kind), group),
                GroupEvent::Player { player, kind, .. } => {
                    self.groups_of.remove(&(player, kind));
                }
                GroupEvent::Members(group, members) if members.is_empty() => {
                    self.members.remove(&group);
                }
                GroupEvent::Members(group, members) => _ = self.members.insert(group, members),
                GroupEvent::Finished { result, .. } => self.outcomes.push(result),
            }
        }
    }
}

#[test]
fn nodes_know_the_rows_again_once_faults_stop() {
    for seed in 0..20 {
        let mut world = GroupWorld::new(seed);
        for player in 1..=PLAYERS {
            world.place(PlayerId(player), player as usize % NODES);
        }
        world.step();
        world.has_faults = true;
        for _ in 0..1_500 {
            if world.rng.random_bool(0.2) {
                world.change_at_random();
            }
            if world.rng.random_bool(0.05) {
                let player = PlayerId(world.rng.random_range(1..=PLAYERS));
                let node = world.rng.random_range(0..NODES);
                if !world.nodes[node].present.contains(&player) {
                    world.place(player, node);
                }
            }
            world.step();
        }
        world.has_faults = false;
        for request in std::mem::take(&mut world.late) {
            world.execute(ClusterRequest::Group(request));
        }
        // Requests without a reply are repeated after 450 ms, and changes are read twice a second, in pages.
        for _ in 0..200 {
            world.step();
        }
        world.settle(5_000);
        let (mut changed, mut unknown) = (0, 0);
        for node in &world.nodes {
            assert_eq!(node.outcomes.len(), node.requested, "seed {seed}");
            let stats = node.directory.stats();
            (changed, unknown) = (changed + stats.changed, unknown + stats.unknown_outcomes);
        }
        assert!(changed > 40 && unknown > 30, "{changed}, {unknown}");
    }
}

#[test]
fn change_is_known_on_other_nodes_with_the_next_step() {
    let mut world = GroupWorld::new(1);
    (1..=3).for_each(|player| world.place(PlayerId(player), player as usize - 1));
    world.settle(1_000);
    let party = world.change(0, 1, GroupChange::Create(GroupKind::Party));
    let party = party.unwrap().unwrap();
    world.change(1, 2, GroupChange::Join(party)).unwrap();
    world.settle(2 * STEP_MS);
    // The third node has no member, so it cannot remove one. The first one removes the second player.
    let leave = GroupChange::Leave(GroupKind::Party);
    let unknown = world.change(2, 2, leave);
    assert_eq!(unknown, Err(GroupNotChanged::UnknownPlayer));
    assert_eq!(world.change(0, 2, leave), Ok(None));
    world.settle(2 * STEP_MS);
    assert!(world.nodes[1].members.is_empty());
    assert_eq!(world.nodes[0].members[&party].len(), 1);
}

#[test]
fn lost_hint_only_delays() {
    let mut world = GroupWorld::new(1);
    (1..=2).for_each(|player| world.place(PlayerId(player), player as usize - 1));
    world.settle(1_000);
    let party = world.change(0, 1, GroupChange::Create(GroupKind::Party));
    let party = party.unwrap().unwrap();
    // Another process makes the change, and sends no hint.
    let change = GroupRequest::Change {
        run: world.nodes[2].run,
        player: PlayerId(2),
        change: GroupChange::Join(party),
        revision: 0,
    };
    world.execute(ClusterRequest::Group(change));
    assert!(!world.is_settled());
    world.settle(GroupSettings::default().read_interval_ms + 3 * STEP_MS);
    assert_eq!(world.nodes[1].directory.stats().hints, 1);
}

#[test]
fn new_run_drops_waiting_changes_and_reads_all_groups() {
    let mut world = GroupWorld::new(1);
    world.place(PlayerId(1), 0);
    world.step();
    let change = GroupChange::Create(GroupKind::Party);
    world.change(0, 1, change).unwrap();
    let node = &mut world.nodes[0];
    node.directory.change(PlayerId(1), change).unwrap();
    node.run.run += 1;
    world.step();
    world.step();
    let node = &mut world.nodes[0];
    node.follow();
    assert_eq!(node.outcomes[1], Err(GroupNotChanged::NotRunning));
    let mut paused = GroupDirectory::new(GroupSettings::default());
    assert_eq!(paused.poll(0, None), []);
    let refused = paused.change(PlayerId(1), change);
    assert_eq!(refused, Err(GroupNotChanged::NotRunning));
}

#[test]
fn changes_over_the_maximum_are_refused() {
    let mut world = GroupWorld::new(1);
    world.place(PlayerId(1), 0);
    world.step();
    let directory = &mut world.nodes[0].directory;
    let max = GroupSettings::default().changes_max;
    let change = GroupChange::Leave(GroupKind::Guild);
    for _ in 0..max {
        directory.change(PlayerId(1), change).unwrap();
    }
    let refused = directory.change(PlayerId(1), change);
    assert_eq!(refused, Err(GroupNotChanged::Busy(max)));
}

#[test]
fn players_are_read_after_the_first_revision_is_known() {
    let mut world = GroupWorld::new(1);
    world.place(PlayerId(1), 0);
    let TestNode { run, directory, .. } = &mut world.nodes[0];
    directory.set_players([(PlayerId(1), (1, 1))].into_iter());
    let outputs = directory.poll(0, Some(*run));
    let [GroupOutput::Store(number, first)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert!(matches!(
        first,
        GroupRequest::ReadChanged { after: None, .. }
    ));
    assert_eq!(directory.poll(10, Some(*run)), []);
    let reply = GroupReply::ChangedPlayers {
        players: Vec::new(),
        revision: 7,
    };
    directory.on_reply(20, *number, Some(reply));
    let outputs = directory.poll(20, Some(*run));
    let players = vec![PlayerId(1)];
    assert_eq!(
        outputs,
        [GroupOutput::Store(
            number + 1,
            GroupRequest::Read { players }
        )]
    );
}
