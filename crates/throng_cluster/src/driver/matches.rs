//! Drives the node's part in matches.

use super::lanes::StoreLanes;
use super::node_driver::NodeDriver;
use super::node_thread::DriverState;
use crate::matcher::{HostLoad, MatchNode, MatchOutput};
use crate::node::{NodeOutput, RequestId};
use crate::request::{ClusterReply, ClusterRequest};

/// Maximum number of outputs that wait for the tick before moves of players are left out; these are repeated.
const WAITING_OUTPUTS_MAX: usize = 4_096;

/// The node's part in matches, and what waits for the tick.
pub(super) struct DrivenMatches {
    node: MatchNode,
    outputs: Vec<MatchOutput>,
}

impl DriverState {
    /// Another node says that something has changed for this one, or that was lost.
    pub fn on_wake(&mut self, now_ms: u64) {
        self.node.on_wake(now_ms);
        if let Some(matches) = &mut self.matches {
            matches.node.on_wake(now_ms);
        }
    }

    pub fn poll_matches(&mut self, now_ms: u64, lanes: &StoreLanes) {
        let Some(matches) = &mut self.matches else {
            return;
        };
        let run = self.node.is_valid(now_ms).then(|| self.node.run());
        // The matcher adds the players of the matches that it has given to each.
        let nodes = self.nodes.iter();
        let hosts = nodes.filter(|entry| entry.is_alive && !entry.is_draining);
        let hosts = hosts.map(|entry| HostLoad {
            run: entry.run,
            load: entry.load,
        });
        let hosts: Vec<HostLoad> = hosts.collect();
        let outputs = matches.node.poll(now_ms, run, &hosts);
        self.dispatch_matches(outputs, lanes);
    }

    /// `None`: the outcome of the request is unknown.
    pub fn on_match_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: Option<ClusterReply>,
        lanes: &StoreLanes,
    ) {
        let Some(matches) = &mut self.matches else {
            return;
        };
        match reply {
            Some(reply) => {
                let outputs = matches.node.on_reply(now_ms, id, reply);
                self.dispatch_matches(outputs, lanes);
            }
            None => matches.node.on_lost_reply(id),
        }
    }

    fn dispatch_matches(&mut self, outputs: Vec<MatchOutput>, lanes: &StoreLanes) {
        for output in outputs {
            match output {
                MatchOutput::Store(id, request) => {
                    self.stats.requests += 1;
                    lanes.send(Some(id), ClusterRequest::Match(request));
                }
                MatchOutput::Wake(node) => self.dispatch(NodeOutput::Wake(node), lanes),
                other => {
                    let Some(matches) = &mut self.matches else {
                        return;
                    };
                    let is_full = matches.outputs.len() >= WAITING_OUTPUTS_MAX;
                    if !is_full || !matches!(other, MatchOutput::Move(_)) {
                        matches.outputs.push(other);
                    }
                }
            }
        }
    }
}

impl NodeDriver {
    /// This node takes part in matches from now on: it can queue players, play matches, and be the matcher. Call it once, before players
    /// come.
    pub fn open_matches(&self, node: MatchNode) {
        let outputs = Vec::new();
        self.with_state(|state, _| state.matches = Some(DrivenMatches { node, outputs }));
    }

    /// Reads or changes the node's part in matches; `None` if it takes no part. The work is done under a lock, so it has to be short.
    pub fn with_matches<T>(&self, work: impl FnOnce(&mut MatchNode) -> T) -> Option<T> {
        self.with_state(|state, _| {
            let matches = state.matches.as_mut();
            matches.map(|matches| work(&mut matches.node))
        })
    }

    /// What the tick has to do since the last call. Requests to the store and wake-ups are not among it: the driver sends them.
    pub fn take_match_outputs(&self) -> Vec<MatchOutput> {
        self.with_state(|state, _| {
            let matches = state.matches.as_mut();
            matches.map_or_else(Vec::new, |matches| std::mem::take(&mut matches.outputs))
        })
    }
}
