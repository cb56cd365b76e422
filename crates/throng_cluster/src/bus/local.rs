//! A bus in memory, for the nodes and gateways of one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::inbox::BusInbox;
use super::{BusFull, BusPeer, BusSignal, BusTransport};

/// Connects the peers of one process. Clones are the same bus.
#[derive(Clone, Debug, Default)]
pub struct LocalBus(Arc<Mutex<BTreeMap<BusPeer, BusInbox>>>);

impl LocalBus {
    fn peers(&self) -> MutexGuard<'_, BTreeMap<BusPeer, BusInbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a peer. An earlier transport of the same peer receives nothing any more.
    #[must_use]
    pub fn join(&self, own: BusPeer) -> LocalTransport {
        let inbox = BusInbox::default();
        inbox.push(BusSignal::Connected);
        self.peers().insert(own, inbox.clone());
        LocalTransport {
            bus: self.clone(),
            inbox,
        }
    }
}

/// The transport of one peer of a [`LocalBus`].
#[derive(Debug)]
pub struct LocalTransport {
    bus: LocalBus,
    inbox: BusInbox,
}

impl BusTransport for LocalTransport {
    fn publish(&mut self, to: BusPeer, bytes: Vec<u8>) -> Result<(), BusFull> {
        let inbox = self.bus.peers().get(&to).cloned();
        if let Some(inbox) = inbox {
            inbox.push(BusSignal::Message(bytes));
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
