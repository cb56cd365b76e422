//! Messages between servers that share a store.
//!
//! ```text
//! server A: loads a record ─▶ Subscribe ─▶ all others; the player's server subscribes A for a limited time
//! server B: saves its player ─▶ Saved ─▶ the subscribers;    its player goes offline ─▶ Saved ─▶ all others
//! ```
//!
//! Messages may be lost: then other servers show older values, by at most [`ttl_ms`](super::CacheSettings::ttl_ms). Duplicates, delayed and
//! reordered messages change nothing, because of two records the one with the higher revision stays.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::PlayerId;

use super::record::PlayerRecord;

/// A message from one server to another: plain data for any transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerMessage {
    /// Players of the sender, as the store has them.
    Saved(Vec<Arc<PlayerRecord>>),
    /// The sender has read the stored records of these players, and shows them for a time.
    Subscribe {
        /// Name of the sender.
        by: Arc<str>,
        /// The players, with their revisions; 0 for a player that was never saved.
        players: Vec<(PlayerId, u64)>,
        /// Duration of the subscription, in milliseconds from the arrival of this message.
        for_ms: u64,
    },
}

/// The connection to the other servers of a store. Messages may be lost, duplicated or reordered; receivers tolerate that. So an
/// implementation drops what it cannot send, and never waits.
pub trait Peers: Send + Sync + fmt::Debug {
    /// Sends a message to the server with this name, if it is there.
    fn send(&mut self, server: &str, message: PeerMessage);

    /// Sends a message to all other servers.
    fn broadcast(&mut self, message: PeerMessage);

    /// The next message for this server, if there is one.
    fn receive(&mut self) -> Option<PeerMessage>;
}

/// Maximum number of messages that wait for a server; the oldest is dropped.
const MAILBOX_MAX: usize = 4_096;

/// Probability of each fault of a [`PeerHub`], as a share of all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerFaults {
    /// The message never arrives.
    pub dropped: f64,
    /// The message arrives twice.
    pub duplicated: f64,
    /// The message overtakes some of the waiting ones.
    pub reordered: f64,
    /// The message, and those after it, arrive at a later tick.
    pub delayed: f64,
}

/// Connects servers of one process: each [`join`](Self::join) returns the [`Peers`] of one server. Clones are the same hub. Servers that
/// run in turn receive the same messages in every run.
#[derive(Clone, Debug)]
pub struct PeerHub(Arc<Mutex<Mailboxes>>);

#[derive(Debug)]
struct Mailboxes {
    by_server: BTreeMap<String, VecDeque<PeerMessage>>,
    faults: PeerFaults,
    random: Pcg64Mcg,
}

impl Default for PeerHub {
    fn default() -> Self {
        Self::new(0, PeerFaults::default())
    }
}

impl PeerHub {
    /// An empty hub, with faults by seed.
    #[must_use]
    pub fn new(seed: u64, faults: PeerFaults) -> Self {
        Self(Arc::new(Mutex::new(Mailboxes {
            by_server: BTreeMap::new(),
            faults,
            random: Pcg64Mcg::seed_from_u64(seed),
        })))
    }

    /// Changes the probabilities of faults.
    pub fn set_faults(&self, faults: PeerFaults) {
        self.mailboxes().faults = faults;
    }

    /// Adds the server with this name. The name is that of its leases
    /// ([`StoreBackend::register_server`](crate::StoreBackend::register_server)).
    #[must_use]
    pub fn join(&self, server: &str) -> LocalPeers {
        let mailbox = VecDeque::new();
        let mut mailboxes = self.mailboxes();
        mailboxes.by_server.insert(server.to_owned(), mailbox);
        LocalPeers {
            hub: self.clone(),
            server: server.to_owned(),
        }
    }

    fn mailboxes(&self) -> MutexGuard<'_, Mailboxes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailboxes {
    fn deliver(&mut self, server: &str, message: &PeerMessage) {
        let Some(mailbox) = self.by_server.get_mut(server) else {
            return;
        };
        let mut strikes = |share| self.random.random_bool(share);
        let faults = self.faults;
        let (is_dropped, is_doubled) = (strikes(faults.dropped), strikes(faults.duplicated));
        for _ in usize::from(is_dropped)..1 + usize::from(is_doubled) {
            let overtakes = self.random.random_bool(faults.reordered);
            let first = if overtakes { 0 } else { mailbox.len() };
            let place = self.random.random_range(first..=mailbox.len());
            mailbox.insert(place, message.clone());
            if mailbox.len() > MAILBOX_MAX {
                mailbox.pop_front();
            }
        }
    }
}

/// The [`Peers`] of one server of a [`PeerHub`]. Dropping it leaves the hub.
#[derive(Debug)]
pub struct LocalPeers {
    hub: PeerHub,
    server: String,
}

impl Peers for LocalPeers {
    fn send(&mut self, server: &str, message: PeerMessage) {
        self.hub.mailboxes().deliver(server, &message);
    }

    fn broadcast(&mut self, message: PeerMessage) {
        let mut mailboxes = self.hub.mailboxes();
        let servers: Vec<String> = mailboxes.by_server.keys().cloned().collect();
        let others = servers.iter().filter(|server| **server != self.server);
        others.for_each(|server| mailboxes.deliver(server, &message));
    }

    fn receive(&mut self) -> Option<PeerMessage> {
        let mut mailboxes = self.hub.mailboxes();
        let late = mailboxes.faults.delayed;
        if mailboxes.random.random_bool(late) {
            return None;
        }
        mailboxes.by_server.get_mut(&self.server)?.pop_front()
    }
}

impl Drop for LocalPeers {
    fn drop(&mut self) {
        self.hub.mailboxes().by_server.remove(&self.server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(player: u64) -> PeerMessage {
        PeerMessage::Subscribe {
            by: "a".into(),
            players: vec![(PlayerId(player), 0)],
            for_ms: 1,
        }
    }

    fn all(peers: &mut LocalPeers) -> Vec<PeerMessage> {
        std::iter::from_fn(|| peers.receive()).collect()
    }

    #[test]
    fn broadcasts_arrive_in_order_and_full_mailbox_drops_oldest() {
        let hub = PeerHub::default();
        let [mut a, mut b, mut c] = ["a", "b", "c"].map(|server| hub.join(server));
        a.broadcast(held(1));
        a.send("b", held(2));
        a.send("nobody", held(3));
        assert_eq!(all(&mut b), [held(1), held(2)]);
        assert_eq!((all(&mut a), all(&mut c)), (vec![], vec![held(1)]));
        (0..=MAILBOX_MAX as u64).for_each(|player| a.send("b", held(player)));
        let kept = all(&mut b);
        assert_eq!((kept.len(), &kept[0]), (MAILBOX_MAX, &held(1)));
    }

    #[test]
    fn faults_occur_at_their_configured_rate() {
        let hub = PeerHub::new(
            3,
            PeerFaults {
                dropped: 0.25,
                duplicated: 0.25,
                reordered: 0.5,
                delayed: 0.0,
            },
        );
        let (mut a, mut b) = (hub.join("a"), hub.join("b"));
        (0..1_000).for_each(|player| a.broadcast(held(player)));
        let came = all(&mut b);
        assert!((900..1_100).contains(&came.len()), "{}", came.len());
        let is_next = |pair: &&[PeerMessage]| format!("{:?}", pair[0]) > format!("{:?}", pair[1]);
        assert!(came.windows(2).filter(is_next).count() > 100);
    }
}
