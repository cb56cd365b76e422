//! Many players that move at once: one transaction for those with the same target, whatever happens to it.

use throng_cluster::{
    ClusterNode, ClusterReply, ClusterRequest, ClusterRows, NodeOutput, NodeRun, NodeSettings,
};
use throng_core::ids::PlayerId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    None,
    /// The store never gets the request.
    Lost,
    /// The store executes the request, but the reply is lost.
    ReplyLost,
    /// The store is away.
    Away,
}

/// Three nodes and their store. Everything happens in rounds of 10 ms.
struct Nodes {
    rows: ClusterRows,
    nodes: [ClusterNode; 3],
    now_ms: u64,
    /// What happens to the next hand-off.
    mishap: Mishap,
    /// The numbers of players of the hand-offs that were sent.
    hand_offs: Vec<usize>,
    /// The reads of owners that were sent.
    owner_reads: usize,
    /// The reads of arrivals and the adoptions that were sent.
    arrival_reads: usize,
    adoptions: Vec<usize>,
}

impl Nodes {
    fn new(handed_off_players_max: usize) -> Self {
        let mut rows = ClusterRows::default();
        let nodes = ["n1", "n2", "n3"].map(|name| {
            let name = name.to_owned();
            let reply = rows.execute(ClusterRequest::StartRun { name }, 0);
            let ClusterReply::Started(run) = reply else {
                panic!("{reply:?}")
            };
            let settings = NodeSettings {
                handed_off_players_max,
                ..NodeSettings::default()
            };
            ClusterNode::new(run, settings, Vec::new())
        });
        Self {
            rows,
            nodes,
            now_ms: 0,
            mishap: Mishap::None,
            hand_offs: Vec::new(),
            owner_reads: 0,
            arrival_reads: 0,
            adoptions: Vec::new(),
        }
    }

    fn play(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.now_ms += 10;
            for nth in 0..self.nodes.len() {
                let mut outputs = self.nodes[nth].poll(self.now_ms);
                while let Some(output) = outputs.pop() {
                    outputs.extend(self.dispatch(nth, output));
                }
            }
        }
    }

    fn dispatch(&mut self, nth: usize, output: NodeOutput) -> Vec<NodeOutput> {
        let (id, request) = match output {
            NodeOutput::Store(id, request) => (id, request),
            NodeOutput::Arrivals(node, arrivals) => {
                self.nodes[node.0 as usize].on_arrivals(self.now_ms, &arrivals);
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let mut mishap = Mishap::None;
        match &request {
            ClusterRequest::HandOff { players, .. } => {
                self.hand_offs.push(players.len());
                mishap = std::mem::replace(&mut self.mishap, Mishap::None);
            }
            ClusterRequest::ReadPlayers { .. } => self.owner_reads += 1,
            ClusterRequest::ReadArrivals { .. } => self.arrival_reads += 1,
            ClusterRequest::Adopt { arrivals, .. } => self.adoptions.push(arrivals.len()),
            _ => {}
        }
        let reply = match mishap {
            Mishap::Lost => return Vec::new(),
            Mishap::Away => ClusterReply::Away,
            Mishap::None | Mishap::ReplyLost => self.rows.execute(request, self.now_ms),
        };
        if mishap == Mishap::ReplyLost {
            return Vec::new();
        }
        self.nodes[nth].on_reply(self.now_ms, id, reply)
    }

    fn live(&self) -> [Vec<PlayerId>; 3] {
        [0, 1, 2].map(|nth: usize| self.nodes[nth].live_players(self.now_ms).collect())
    }

    /// Moves all players of the first node: the first `to_second` to the second node, the others to the third.
    fn move_all(&mut self, to_second: usize) {
        let [_, second, third] = [0, 1, 2].map(|nth: usize| self.nodes[nth].run());
        for (nth, player) in self.live()[0].iter().enumerate() {
            let to: NodeRun = if nth < to_second { second } else { third };
            assert!(self.nodes[0].begin_move(*player, to, self.now_ms));
        }
    }
}

fn players() -> Vec<PlayerId> {
    (0..100).map(PlayerId).collect()
}

/// All players are live on the first node.
fn started(handed_off_players_max: usize) -> Nodes {
    let mut nodes = Nodes::new(handed_off_players_max);
    for player in players() {
        nodes.nodes[0].log_in(player);
    }
    nodes.play(110);
    assert_eq!(nodes.live(), [players(), Vec::new(), Vec::new()]);
    assert_eq!(
        nodes.owner_reads, 1,
        "the rows of all logins are read at once"
    );
    nodes
}

#[test]
fn players_with_the_same_target_are_handed_off_together() {
    let of_25: &[usize] = &[25, 25, 10, 25, 15];
    for (players_max, expected) in [(64, &[60, 40][..]), (25, of_25), (0, &[1; 100])] {
        let mut nodes = started(players_max);
        nodes.move_all(60);
        nodes.play(110);
        assert_eq!(nodes.hand_offs, expected);
        let (second, third) = (players()[..60].to_vec(), players()[60..].to_vec());
        assert_eq!(nodes.live(), [Vec::new(), second, third]);
        assert_eq!(nodes.nodes[0].stats().handed_off, 100);
        assert_eq!(nodes.nodes[0].stats().runs_ended, 0);
    }
}

#[test]
fn hints_contain_the_arrivals_so_that_they_need_no_read() {
    let mut nodes = started(64);
    (nodes.arrival_reads, nodes.adoptions) = (0, Vec::new());
    nodes.move_all(60);
    nodes.play(5);
    let (second, third) = (players()[..60].to_vec(), players()[60..].to_vec());
    assert_eq!(nodes.live(), [Vec::new(), second, third]);
    assert_eq!(
        (nodes.arrival_reads, &nodes.adoptions[..]),
        (0, &[60, 40][..])
    );
}

#[test]
fn players_that_are_being_adopted_are_not_adopted_again() {
    let mut nodes = started(64);
    let (first, to) = (PlayerId(1), nodes.nodes[1].run());
    assert!(nodes.nodes[0].begin_move(first, to, nodes.now_ms));
    let sent = nodes.nodes[0].poll(nodes.now_ms);
    let hints = sent
        .into_iter()
        .flat_map(|output| nodes.dispatch(0, output));
    let hints: Vec<NodeOutput> = hints.collect();
    let [NodeOutput::Arrivals(node, arrivals)] = &hints[..] else {
        panic!("{hints:?}");
    };
    assert_eq!(*node, to.node);
    let adoptions = |node: &mut ClusterNode, now_ms| {
        let sent = node.poll(now_ms).into_iter();
        let sent = sent.filter_map(|output| match output {
            NodeOutput::Store(id, request @ ClusterRequest::Adopt { .. }) => Some((id, request)),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    let now_ms = nodes.now_ms;
    nodes.nodes[1].on_arrivals(now_ms, arrivals);
    let mut sent = adoptions(&mut nodes.nodes[1], now_ms);
    // The hint is repeated before the reply.
    nodes.nodes[1].on_arrivals(now_ms, arrivals);
    let (id, request) = sent.pop().unwrap();
    let reply = nodes.rows.execute(request, now_ms);
    let outputs = nodes.nodes[1].on_reply(now_ms, id, reply);
    assert_eq!(outputs, [NodeOutput::Adopted]);
    assert_eq!(adoptions(&mut nodes.nodes[1], now_ms), []);
    assert!(nodes.nodes[1].is_live(first, now_ms));
}

#[test]
fn no_player_is_lost_with_a_hand_off_of_many() {
    for mishap in [Mishap::Lost, Mishap::ReplyLost, Mishap::Away] {
        let mut nodes = started(64);
        nodes.mishap = mishap;
        nodes.move_all(60);
        nodes.play(400);
        let stays = matches!(mishap, Mishap::Lost | Mishap::Away);
        let (given, third) = (players()[..60].to_vec(), players()[60..].to_vec());
        let (first, second) = if stays {
            (given.clone(), Vec::new())
        } else {
            (Vec::new(), given.clone())
        };
        assert_eq!(nodes.live(), [first, second, third.clone()], "{mishap:?}");
        // Those that stayed can be moved again.
        nodes.move_all(60);
        nodes.play(110);
        assert_eq!(nodes.live(), [Vec::new(), given, third], "{mishap:?}");
        assert_eq!(nodes.nodes[0].stats().handed_off, 100, "{mishap:?}");
        assert_eq!(nodes.nodes[0].stats().runs_ended, 0, "{mishap:?}");
    }
}

#[test]
fn players_that_exchanged_something_are_saved_together() {
    let mut nodes = started(1);
    let [first, second, third] = [3, 5, 7].map(PlayerId);
    for pair in [[first, second], [second, third]] {
        let now_ms = nodes.now_ms;
        let node = &mut nodes.nodes[0];
        assert!(node.exchange(pair, now_ms, |both| {
            both.into_iter().for_each(|it| it.push(1))
        }));
    }
    let to = nodes.nodes[1].run();
    let now_ms = nodes.now_ms;
    for player in [first, third] {
        assert!(nodes.nodes[0].begin_move(player, to, now_ms));
    }
    nodes.play(1);
    // The first hand-off has saved all three, also the one that moves next and the one that stays.
    let saved = nodes.rows.records();
    let saved = saved.filter(|(_, record)| !record.bytes.is_empty());
    let saved: Vec<_> = saved.map(|(player, _)| player).collect();
    assert_eq!(
        (nodes.hand_offs.len(), saved),
        (1, vec![first, second, third])
    );
    nodes.play(10);
    assert_eq!(nodes.hand_offs, [1, 1]);
    assert_eq!(nodes.live()[1], [first, third]);
}
