//! Whether quiet nodes are still connected to the bus.
//!
//! A node probes another one whose heartbeat is overdue. If the bus has no subscription of that node, it says so at once. When it has said so
//! for 220 ms without a pause, the node counts as unheard, and may be declared dead. A process that is killed loses its connection at once; one
//! that is only slow keeps it.
//!
//! Replies to probes may be late. So the time of the first one counts when it arrives, and the time of the last one when the probe was sent: the
//! node was not connected in between. [`NodeValidity`](super::validity) says why it has paused then.

use std::collections::BTreeMap;

use crate::ids::ClusterNodeId;
use crate::request::QuietNode;

/// For how long the bus must have said that a node is not connected. With [`NODE_QUIET_AFTER_MS`](crate::NODE_QUIET_AFTER_MS), it is longer than
/// [`NODE_UNHEARD_AFTER_MS`](crate::NODE_UNHEARD_AFTER_MS): only then has a node without the bus paused.
pub(super) const UNREACHABLE_MS: u64 = 220;

/// The longest time between a probe and the reply to the next one. If it is longer, the node may have been connected in between.
pub(super) const PROBES_APART_MAX_MS: u64 = 350;

/// The time between two probes of a node.
const PROBE_INTERVAL_MS: u64 = 40;

#[derive(Clone, Copy, Debug)]
struct ProbedNode {
    quiet: QuietNode,
    next_probe_ms: u64,
    /// When the first reply arrived, and when the last probe with a reply was sent, of those without a pause between them.
    unreachable: Option<(u64, u64)>,
}

impl ProbedNode {
    fn is_unheard(&self) -> bool {
        self.unreachable
            .is_some_and(|(since_ms, until_ms)| until_ms >= since_ms + UNREACHABLE_MS)
    }
}

/// The nodes whose heartbeats are overdue.
#[derive(Clone, Debug)]
pub(super) struct QuietNodes(BTreeMap<ClusterNodeId, ProbedNode>);

impl QuietNodes {
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets the quiet nodes. What is known about a node counts until it sends a heartbeat. Returns whether a former one is not among them: it is
    /// dead, or it has sent a heartbeat.
    pub fn set(&mut self, quiet: &[QuietNode]) -> bool {
        let known = std::mem::take(&mut self.0);
        let entries = quiet.iter().map(|&quiet| {
            let node = quiet.run.node;
            let known = known.get(&node).filter(|known| known.quiet == quiet);
            let new = ProbedNode {
                quiet,
                next_probe_ms: 0,
                unreachable: None,
            };
            (node, known.copied().unwrap_or(new))
        });
        self.0 = entries.collect();
        known.values().any(|known| !quiet.contains(&known.quiet))
    }

    /// The nodes to probe now.
    pub fn take_due(&mut self, now_ms: u64) -> impl Iterator<Item = ClusterNodeId> {
        let nodes = self.0.iter_mut();
        nodes.filter_map(move |(node, probed)| {
            let is_due = now_ms >= probed.next_probe_ms;
            if is_due {
                probed.next_probe_ms = now_ms + PROBE_INTERVAL_MS;
            }
            is_due.then_some(*node)
        })
    }

    /// Handles the reply to a probe: the node is not connected. Returns whether the node has become unheard.
    pub fn on_unreachable(&mut self, node: ClusterNodeId, sent_ms: u64, now_ms: u64) -> bool {
        let Some(probed) = self.0.get_mut(&node) else {
            return false;
        };
        let was_unheard = probed.is_unheard();
        let before = probed.unreachable;
        let goes_on = before.filter(|(_, until_ms)| now_ms < until_ms + PROBES_APART_MAX_MS);
        probed.unreachable = Some(match goes_on {
            Some((since_ms, until_ms)) => (since_ms, until_ms.max(sent_ms)),
            None => (now_ms, sent_ms),
        });
        probed.is_unheard() && !was_unheard
    }

    /// The quiet nodes that are not connected to the bus.
    pub fn unheard(&self) -> Vec<QuietNode> {
        let unheard = self.0.values().filter(|probed| probed.is_unheard());
        unheard.map(|probed| probed.quiet).collect()
    }

    /// The run has ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeRun;

    const NODE: ClusterNodeId = ClusterNodeId(3);

    const fn quiet_since(heartbeat_ms: u64) -> QuietNode {
        let run = NodeRun { node: NODE, run: 1 };
        QuietNode { run, heartbeat_ms }
    }

    /// When the node becomes unheard if probes at these times are replied to after a delay.
    fn unheard_at(probes: impl IntoIterator<Item = u64>, delay_ms: u64) -> Option<u64> {
        let mut nodes = QuietNodes::new();
        nodes.set(&[quiet_since(7)]);
        let mut probes = probes.into_iter();
        probes.find(|&sent_ms| nodes.on_unreachable(NODE, sent_ms, sent_ms + delay_ms))
    }

    #[test]
    fn node_is_unheard_after_220_ms_without_a_pause() {
        let probes = || (1_000..3_000).step_by(20);
        assert_eq!(unheard_at(probes(), 0), Some(1_220));
        assert_eq!(unheard_at(probes(), 10), Some(1_240));
        // Between a probe and the reply to the next one, the node may have been connected.
        assert_eq!(unheard_at(probes(), 330), None);
        assert_eq!(unheard_at([1_000, 1_200, 1_550, 1_750], 0), None);
        assert_eq!(unheard_at([1_000, 1_200, 1_549], 0), Some(1_549));
    }

    #[test]
    fn nodes_are_probed_until_they_send_a_heartbeat() {
        let mut nodes = QuietNodes::new();
        let due = |nodes: &mut QuietNodes, now_ms| nodes.take_due(now_ms).count();
        assert_eq!(due(&mut nodes, 0), 0);
        assert!(!nodes.set(&[quiet_since(7)]));
        let probes = [100, 139, 140].map(|now_ms| due(&mut nodes, now_ms));
        assert_eq!(probes, [1, 0, 1]);
        for sent_ms in (200..=500).step_by(50) {
            nodes.on_unreachable(NODE, sent_ms, sent_ms);
        }
        assert!(!nodes.set(&[quiet_since(7)]));
        assert_eq!(nodes.unheard(), [quiet_since(7)]);
        assert!(nodes.set(&[quiet_since(8)]));
        assert_eq!(nodes.unheard(), []);
        assert!(nodes.set(&[]));
        assert_eq!(due(&mut nodes, 900), 0);
        assert!(!nodes.on_unreachable(NODE, 900, 900));
    }
}
