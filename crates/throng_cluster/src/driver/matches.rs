//! The node's part in matches, and its outputs that wait for the tick.

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
        // The matcher adds the players of the matches that it has assigned to each node.
        let hosts = nodes
            .iter()
            .filter(|entry| entry.is_alive && !entry.is_draining);
        let hosts = hosts.map(|entry| HostLoad {
            run: entry.run,
            load: entry.load,
        });
        let hosts: Vec<HostLoad> = hosts.collect();
        let outputs = self.node.poll(now_ms, run, &hosts);
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
