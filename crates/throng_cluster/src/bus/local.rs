//! A bus in memory, for the nodes and gateways of one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::inbox::BusInbox;
use super::{BusFull, BusPeer, BusSignal, BusTransport};

/// Connects the peers of one process. Clones share the bus.
#[derive(Clone, Debug, Default)]
pub struct LocalBus(Arc<Mutex<LocalTransports>>);

#[derive(Debug, Default)]
struct LocalTransports {
    /// The number and the inbox of the newest transport of each peer.
    inboxes: BTreeMap<BusPeer, (u64, BusInbox)>,
    /// The inboxes of all transports, including those that were replaced.
    listeners: BTreeMap<u64, BusInbox>,
    joined: u64,
}

impl LocalBus {
    fn peers(&self) -> MutexGuard<'_, LocalTransports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a peer. An earlier transport of the same peer receives only what is sent to all.
    #[must_use]
    pub fn join(&self, own: BusPeer) -> LocalTransport {
        let inbox = BusInbox::default();
        inbox.push(BusSignal::Connected);
        let mut peers = self.peers();
        peers.joined += 1;
        let number = peers.joined;
        peers.inboxes.insert(own, (number, inbox.clone()));
        peers.listeners.insert(number, inbox.clone());
        LocalTransport {
            bus: self.clone(),
            own,
            number,
            inbox,
        }
    }
}

/// The transport of one peer of a [`LocalBus`].
#[derive(Debug)]
pub struct LocalTransport {
    bus: LocalBus,
    own: BusPeer,
    number: u64,
    inbox: BusInbox,
}

impl BusTransport for LocalTransport {
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
        let peers = self.bus.peers();
        let inboxes: Vec<BusInbox> = if to == BusPeer::All {
            let others = peers.listeners.iter();
            let others = others.filter(|(number, _)| **number != self.number);
            others.map(|(_, inbox)| inbox.clone()).collect()
        } else {
            let to = peers.inboxes.get(&to).into_iter();
            to.map(|(_, inbox)| inbox.clone()).collect()
        };
        drop(peers);
        for inbox in inboxes {
            inbox.push(BusSignal::Message(bytes.clone()));
        }
        Ok(())
    }

    fn probe(&mut self, to: BusPeer, number: u64) {
        if !self.bus.peers().inboxes.contains_key(&to) {
            self.inbox.push(BusSignal::Unreachable(to, number));
        }
    }

    fn receive(&mut self) -> Option<BusSignal> {
        self.inbox.pop()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.inbox.set_waker(waker);
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        let mut peers = self.bus.peers();
        peers.listeners.remove(&self.number);
        let newest = peers.inboxes.get(&self.own);
        if newest.is_some_and(|(number, _)| *number == self.number) {
            peers.inboxes.remove(&self.own);
        }
    }
}
