//! The node's part in matches, and its outputs that wait for the tick.

use throng_core::ids::PlayerId;

use crate::ids::NodeRun;
use crate::matcher::{HostLoad, MatchNode, MatchOutput};
use crate::node::RequestId;
use crate::request::{ClusterReply, NodeEntry};

/// The number of waiting outputs from which on moves of players are dropped. They are repeated later.
const WAITING_OUTPUTS_MAX: usize = 4_096;

/// The node's part in matches, and its outputs that wait for the tick.
pub(super) struct DrivenMatches {
    pub node: MatchNode,
    pub outputs: Vec<MatchOutput>,
}

impl DrivenMatches {
    /// Does the work that is due. `run` is the run of the node while it may simulate. Returns the outputs for the driver.
    pub fn poll(
        &mut self,
        now_ms: u64,
        run: Option<NodeRun>,
        nodes: &[NodeEntry],
    ) -> Vec<MatchOutput> {
        let outputs = self.node.poll(now_ms, run, &hosts(nodes));
        self.keep(outputs)
    }

    /// Handles a reply; `None`: the outcome of the request is unknown. Returns the outputs for the driver.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: Option<ClusterReply>,
    ) -> Vec<MatchOutput> {
        let Some(reply) = reply else {
            self.node.on_lost_reply(id);
            return Vec::new();
        };
        let outputs = self.node.on_reply(now_ms, id, reply);
        self.keep(outputs)
    }

    /// Takes the outputs for the tick. Arrivals of these players stay: the tick has not spawned them yet, or they are frozen.
    pub fn take_outputs(&mut self, is_early: impl Fn(PlayerId) -> bool) -> Vec<MatchOutput> {
        let stays = |output: &MatchOutput| match output {
            MatchOutput::Arrived(player, _) => is_early(*player),
            _ => false,
        };
        let outputs = std::mem::take(&mut self.outputs);
        let (early, outputs) = outputs.into_iter().partition(stays);
        self.outputs = early;
        outputs
    }

    /// Keeps the outputs for the tick, and returns the rest.
    fn keep(&mut self, outputs: Vec<MatchOutput>) -> Vec<MatchOutput> {
        let mut to_send = Vec::new();
        for output in outputs {
            let is_full = self.outputs.len() >= WAITING_OUTPUTS_MAX;
            match output {
                MatchOutput::Store(..) | MatchOutput::Wake(_) => to_send.push(output),
                MatchOutput::Move(_) if is_full => {}
                other => self.outputs.push(other),
            }
        }
        to_send
    }
}

/// The nodes that can get matches. One that has just started would open them later than the others, so it gets none while there is another.
fn hosts(nodes: &[NodeEntry]) -> Vec<HostLoad> {
    let available = || nodes.iter().filter(|entry| entry.is_available());
    let is_any_steady = available().any(|entry| entry.is_steady);
    let hosts = available().filter(|entry| entry.is_steady || !is_any_steady);
    // The matcher adds the players of the matches that it has assigned to each node.
    hosts
        .map(|entry| HostLoad {
            run: entry.run,
            load: entry.load,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClusterNodeId;
    use crate::matcher::MatcherSettings;
    use crate::request::{MatchId, TravelGoal};

    #[test]
    fn arrivals_wait_for_their_players() {
        let node = MatchNode::new(&[], MatcherSettings::default()).unwrap();
        let goal = TravelGoal::Match(MatchId { epoch: 1, nth: 1 });
        let arrived = |player| MatchOutput::Arrived(PlayerId(player), goal.clone());
        let none = MatchOutput::NoTravel(PlayerId(3));
        let mut matches = DrivenMatches {
            node,
            outputs: vec![arrived(1), arrived(2), none.clone()],
        };
        // The player 1 is not spawned in this tick.
        let taken = matches.take_outputs(|player| player == PlayerId(1));
        assert_eq!(taken, [arrived(2), none]);
        assert_eq!(matches.take_outputs(|_| false), [arrived(1)]);
        assert_eq!(matches.take_outputs(|_| false), []);
    }

    #[test]
    fn new_node_gets_no_match_while_there_is_another() {
        let entry = |id, is_alive, is_steady, is_draining| NodeEntry {
            name: format!("n{id}"),
            run: NodeRun {
                node: ClusterNodeId(id),
                run: 1,
            },
            is_alive,
            is_steady,
            load: 0,
            is_draining,
        };
        let of = |nodes: &[NodeEntry]| {
            let hosts = hosts(nodes).into_iter();
            hosts.map(|host| host.run.node.0).collect::<Vec<_>>()
        };
        let started = [
            entry(1, true, false, false),
            entry(2, true, false, false),
            entry(3, true, true, true),
            entry(4, false, false, false),
        ];
        assert_eq!(of(&started), [1, 2]);
        let steady = [started[0].clone(), entry(5, true, true, false)];
        assert_eq!(of(&steady), [5]);
        assert_eq!(of(&[]), [0; 0]);
    }
}
