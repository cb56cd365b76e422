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
    inboxes: BTreeMap<BusPeer, BusInbox>,
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
        peers.inboxes.insert(own, inbox.clone());
        peers.listeners.insert(number, inbox.clone());
        LocalTransport {
            bus: self.clone(),
            number,
            inbox,
        }
    }
}

/// The transport of one peer of a [`LocalBus`].
#[derive(Debug)]
pub struct LocalTransport {
    bus: LocalBus,
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
            peers.inboxes.get(&to).cloned().into_iter().collect()
        };
        drop(peers);
        for inbox in inboxes {
            inbox.push(BusSignal::Message(bytes.clone()));
        }
        Ok(())
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
        self.bus.peers().listeners.remove(&self.number);
    }
}
