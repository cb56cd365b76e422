//! The peers that a peer knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::peer_presence::PeerPresence;
use crate::bus::{BUS_VERSION, BusPeer, BusRefusal};
use crate::ids::{ClusterNodeId, GatewayId};

/// The time between two messages of a peer, in milliseconds.
const INTERVAL_MS: u64 = 500;

/// The time after its last message when a peer counts as gone, in milliseconds.
const SILENCE_MAX_MS: u64 = 1_500;

/// Maximum number of other versions that are logged.
const LOGGED_VERSIONS_MAX: usize = 8;

/// A peer whose presence arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPeer {
    /// Its run: a higher one than before if it has restarted.
    pub run: u64,
    /// Its last presence.
    pub presence: PeerPresence,
    heard_ms: u64,
}

/// Another process with the same id has started after this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerClash {
    /// The name of the other process. If it differs from that of this one, both names have the same id.
    pub name: String,
}

/// A change of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerChange {
    /// A peer has appeared or restarted. It has received nothing yet.
    Appeared(BusPeer),
    /// A peer has stopped, or sends nothing any more.
    Gone(BusPeer),
}

/// The peers of a node or a gateway. It has neither clock nor socket: the owner broadcasts what [`poll`](Self::poll) returns, and passes what
/// arrives to [`receive`](Self::receive).
///
/// ```
/// use throng_cluster::{BusPeer, ClusterNodeId, GatewayId, PeerDirectory, PeerPresence};
///
/// let (node, gateway) = (BusPeer::Node(ClusterNodeId(3)), BusPeer::Gateway(GatewayId::of_name("g1")));
/// let presence = |name: &str| PeerPresence { name: name.to_owned(), ..PeerPresence::default() };
/// let mut of_node = PeerDirectory::new(node, 1, presence("n1"));
/// let mut of_gateway = PeerDirectory::new(gateway, 1, presence("g1"));
/// if let Some(bytes) = of_node.poll(0) {
///     of_gateway.receive(0, (node, 1), &bytes);
/// }
/// assert!(of_gateway.login_nodes().eq([ClusterNodeId(3)]));
/// // The node sends nothing more.
/// of_gateway.poll(2_000);
/// assert_eq!(of_gateway.login_nodes().count(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct PeerDirectory {
    own: BusPeer,
    run: u64,
    presence: PeerPresence,
    next_ms: u64,
    peers: BTreeMap<BusPeer, KnownPeer>,
    changes: VecDeque<PeerChange>,
    clash: Option<PeerClash>,
    logged_versions: BTreeSet<u16>,
    logged_protocols: BTreeSet<u64>,
}

impl PeerDirectory {
    /// The directory of a peer, which broadcasts this presence. `run` is that of its [`MessageBus`](crate::MessageBus).
    #[must_use]
    pub const fn new(own: BusPeer, run: u64, presence: PeerPresence) -> Self {
        Self {
            own,
            run,
            presence,
            next_ms: 0,
            peers: BTreeMap::new(),
            changes: VecDeque::new(),
            clash: None,
            logged_versions: BTreeSet::new(),
            logged_protocols: BTreeSet::new(),
        }
    }

    /// Sets the load, and whether this peer drains. A change of the latter is broadcast at once.
    pub const fn set_load(&mut self, load: u32, is_draining: bool) {
        self.presence.load = load;
        if self.presence.is_draining != is_draining {
            self.presence.is_draining = is_draining;
            self.next_ms = 0;
        }
    }

    /// Marks this peer as ending, and returns the last message to broadcast.
    #[must_use]
    pub fn end(&mut self) -> Vec<u8> {
        self.presence.is_ending = true;
        self.presence.to_bytes()
    }

    /// Removes silent peers. Returns the bytes to broadcast, if they are due. O(peers).
    pub fn poll(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        let changes = &mut self.changes;
        self.peers.retain(|peer, known| {
            let is_here = now_ms.saturating_sub(known.heard_ms) < SILENCE_MAX_MS;
            if !is_here {
                changes.push_back(PeerChange::Gone(*peer));
            }
            is_here
        });
        let is_due = now_ms >= self.next_ms && !self.presence.is_ending;
        is_due.then(|| {
            self.next_ms = now_ms + INTERVAL_MS;
            self.presence.to_bytes()
        })
    }

    /// Handles a message of a peer with this run. `false` if it is not a presence. O(log peers).
    pub fn receive(&mut self, now_ms: u64, (peer, run): (BusPeer, u64), bytes: &[u8]) -> bool {
        if !PeerPresence::is_presence(bytes) {
            return false;
        }
        let Some(presence) = PeerPresence::from_bytes(bytes) else {
            tracing::debug!(%peer, "presence not read: its bytes are invalid");
            return true;
        };
        if peer == self.own {
            if run > self.run && !presence.is_ending {
                let name = presence.name;
                self.clash = Some(PeerClash { name });
            }
            return true;
        }
        if presence.protocol_id != self.presence.protocol_id {
            self.log_protocol(peer, &presence);
            return true;
        }
        if presence.is_ending {
            if self.peers.remove(&peer).is_some() {
                self.changes.push_back(PeerChange::Gone(peer));
            }
            return true;
        }
        let heard_ms = now_ms;
        let is_new = self.peers.get(&peer).is_none_or(|known| known.run < run);
        let known = KnownPeer {
            run,
            presence,
            heard_ms,
        };
        self.peers.insert(peer, known);
        if is_new {
            self.changes.push_back(PeerChange::Appeared(peer));
        }
        true
    }

    fn log_protocol(&mut self, peer: BusPeer, presence: &PeerPresence) {
        let (found, expected) = (presence.protocol_id, self.presence.protocol_id);
        let has_room = self.logged_protocols.len() < LOGGED_VERSIONS_MAX;
        if has_room && self.logged_protocols.insert(found) {
            let name = &presence.name;
            tracing::warn!(
                %peer, name, found = format!("{found:#x}"), expected = format!("{expected:#x}"),
                "peer ignored: it has another protocol id; check the game and its version"
            );
        }
    }

    /// Logs a refused message. Each other version of the bus is logged once as a warning.
    pub fn on_refused(&mut self, refusal: BusRefusal) {
        let BusRefusal::Version { found } = refusal else {
            tracing::debug!(error = %refusal, "bus message refused");
            return;
        };
        let has_room = self.logged_versions.len() < LOGGED_VERSIONS_MAX;
        if has_room && self.logged_versions.insert(found) {
            tracing::warn!(
                found,
                expected = BUS_VERSION,
                "peer ignored: it has another version of the bus; update the older program"
            );
        }
    }

    /// The next change, if there is one.
    pub fn next_change(&mut self) -> Option<PeerChange> {
        self.changes.pop_front()
    }

    /// The known peers: nodes, then gateways, each by ascending id.
    pub fn peers(&self) -> impl Iterator<Item = (BusPeer, &KnownPeer)> {
        self.peers.iter().map(|(peer, known)| (*peer, known))
    }

    /// A known peer; `None` if no presence of it arrives.
    #[must_use]
    pub fn get(&self, peer: BusPeer) -> Option<&KnownPeer> {
        self.peers.get(&peer)
    }

    /// The nodes that take new players, by ascending id.
    pub fn login_nodes(&self) -> impl Iterator<Item = ClusterNodeId> {
        let open = self.peers.iter();
        let open = open.filter(|(_, known)| !known.presence.is_draining);
        open.filter_map(|(peer, _)| match peer {
            BusPeer::Node(node) => Some(*node),
            _ => None,
        })
    }

    /// The known gateways, by ascending id.
    pub fn gateways(&self) -> impl Iterator<Item = GatewayId> {
        self.peers.keys().filter_map(|peer| match peer {
            BusPeer::Gateway(gateway) => Some(*gateway),
            _ => None,
        })
    }

    /// The newer process with the id of this one, if there is one. This one then has to stop.
    #[must_use]
    pub const fn clash(&self) -> Option<&PeerClash> {
        self.clash.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: BusPeer = BusPeer::Gateway(GatewayId(1));
    const NODE: BusPeer = BusPeer::Node(ClusterNodeId(2));

    fn presence(name: &str) -> PeerPresence {
        PeerPresence {
            name: name.to_owned(),
            ..PeerPresence::default()
        }
    }

    fn changes(directory: &mut PeerDirectory) -> Vec<PeerChange> {
        std::iter::from_fn(|| directory.next_change()).collect()
    }

    #[test]
    fn presence_is_sent_twice_a_second_and_draining_at_once() {
        let mut directory = PeerDirectory::new(NODE, 1, presence("n"));
        let mut sent_ms = Vec::new();
        for now_ms in (0..1_200).step_by(10) {
            if now_ms == 700 {
                directory.set_load(3, true);
            }
            sent_ms.extend(directory.poll(now_ms).map(|bytes| {
                let sent = PeerPresence::from_bytes(&bytes).unwrap();
                (now_ms, sent.load, sent.is_draining)
            }));
        }
        assert_eq!(sent_ms, [(0, 0, false), (500, 0, false), (700, 3, true)]);
        let last = PeerPresence::from_bytes(&directory.end()).unwrap();
        assert!(last.is_ending);
        assert_eq!(directory.poll(9_000), None);
    }

    #[test]
    fn peer_appears_restarts_drains_falls_silent_and_ends() {
        let mut directory = PeerDirectory::new(GATEWAY, 1, presence("g"));
        let bytes = presence("n").to_bytes();
        assert!(directory.receive(0, (NODE, 5), &bytes));
        assert!(directory.receive(400, (NODE, 5), &bytes));
        assert_eq!(changes(&mut directory), [PeerChange::Appeared(NODE)]);
        assert!(directory.receive(500, (NODE, 6), &bytes));
        assert_eq!(changes(&mut directory), [PeerChange::Appeared(NODE)]);
        let draining = PeerPresence {
            is_draining: true,
            ..presence("n")
        };
        assert_eq!(directory.login_nodes().count(), 1);
        directory.receive(600, (NODE, 6), &draining.to_bytes());
        assert_eq!(directory.login_nodes().count(), 0);
        assert!(directory.get(NODE).is_some());
        directory.poll(2_099);
        assert_eq!(changes(&mut directory), []);
        directory.poll(2_100);
        assert_eq!(changes(&mut directory), [PeerChange::Gone(NODE)]);
        // It comes back, and ends in order.
        directory.receive(2_200, (NODE, 6), &bytes);
        let ending = PeerPresence {
            is_ending: true,
            ..presence("n")
        };
        directory.receive(2_300, (NODE, 6), &ending.to_bytes());
        let expected = [PeerChange::Appeared(NODE), PeerChange::Gone(NODE)];
        assert_eq!(changes(&mut directory), expected);
        assert_eq!(directory.peers().count(), 0);
        assert!(!directory.receive(2_400, (NODE, 6), &[0]));
    }

    #[test]
    fn other_protocol_is_ignored_and_newer_own_process_is_a_clash() {
        let mut directory = PeerDirectory::new(GATEWAY, 5, presence("g"));
        let other = PeerPresence {
            protocol_id: 9,
            ..presence("n")
        };
        directory.receive(0, (NODE, 5), &other.to_bytes());
        assert_eq!(directory.peers().count(), 0);
        for run in [4, 5] {
            directory.receive(0, (GATEWAY, run), &presence("other").to_bytes());
            assert_eq!(directory.clash(), None, "run {run}");
        }
        directory.receive(0, (GATEWAY, 6), &presence("other").to_bytes());
        let name = "other".to_owned();
        assert_eq!(directory.clash(), Some(&PeerClash { name }));
        assert_eq!(directory.peers().count(), 0);
    }
}
