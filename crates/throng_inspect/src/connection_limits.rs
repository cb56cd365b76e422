//! Limits on open connections: in all and per peer, with a reserve for probes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of open connections per peer.
pub const CONNECTIONS_PER_PEER_MAX: usize = 48;

/// Connections beyond the limits, for probes only; a new one closes the oldest.
pub(super) const RESERVED_CONNECTIONS: usize = 16;

/// Open connections, in all and per peer.
#[derive(Debug)]
pub(super) struct PeerConnectionLimits {
    open_max: usize,
    per_peer_max: usize,
    open: usize,
    by_peer: HashMap<IpAddr, usize>,
}

impl PeerConnectionLimits {
    /// Whether no connection is open.
    pub fn new(all_max: usize, of_peer_max: usize) -> Self {
        Self {
            open_max: all_max,
            per_peer_max: of_peer_max,
            open: 0,
            by_peer: HashMap::new(),
        }
    }

    /// Adds a connection; `false` if a limit is reached.
    pub fn try_acquire(&mut self, peer: IpAddr) -> bool {
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or(0);
        if self.open >= self.open_max || of_peer >= self.per_peer_max {
            return false;
        }
        self.open += 1;
        self.by_peer.insert(peer, of_peer + 1);
        true
    }

    /// Removes a connection.
    pub fn release(&mut self, peer: IpAddr) {
        self.open = self.open.saturating_sub(1);
        if let Some(of_peer) = self.by_peer.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

/// The slot of a connection; released when it is dropped.
pub(super) struct ConnectionPermit {
    limits: Arc<Mutex<PeerConnectionLimits>>,
    peer: IpAddr,
}

impl ConnectionPermit {
    pub fn acquire(limits: &Arc<Mutex<PeerConnectionLimits>>, peer: IpAddr) -> Option<Self> {
        let peer = peer.to_canonical();
        let mut all = limits.lock().unwrap_or_else(PoisonError::into_inner);
        // Only an acquired slot is released.
        all.try_acquire(peer).then(|| Self {
            limits: limits.clone(),
            peer,
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let limits = self.limits.lock();
        let mut limits = limits.unwrap_or_else(PoisonError::into_inner);
        limits.release(self.peer);
    }
}

/// The connection of the reserve that a new one closes: the oldest of the peer that has most of them, so that a flood of one peer does
/// not close the probes of another. `None` if there are none. O(n²).
pub(super) fn reserved_to_close(peers: &[IpAddr]) -> Option<usize> {
    let count = |peer: &IpAddr| peers.iter().filter(|other| *other == peer).count();
    let most = peers.iter().map(count).max()?;
    peers.iter().position(|peer| count(peer) == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_a_peer_closes_its_own_connections() {
        let [prober, flooder, other] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(reserved_to_close(&[]), None);
        assert_eq!(reserved_to_close(&[prober, other]), Some(0));
        assert_eq!(
            reserved_to_close(&[prober, flooder, other, flooder]),
            Some(1)
        );
        // A probe stays while a peer opens any number of connections.
        let mut open = vec![prober];
        for _ in 0..1_000 {
            if open.len() >= RESERVED_CONNECTIONS {
                open.remove(reserved_to_close(&open).unwrap());
            }
            open.push(flooder);
        }
        assert_eq!(open[0], prober);
    }

    #[test]
    fn one_peer_cannot_use_all_connections() {
        let mut places = PeerConnectionLimits::new(4, 3);
        let [hog, other, third] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(
            [hog; 4].map(|peer| places.try_acquire(peer)),
            [true, true, true, false]
        );
        assert!(places.try_acquire(other));
        assert!(!places.try_acquire(third), "four are open");
        places.release(hog);
        assert!(places.try_acquire(third));
        assert!(!places.try_acquire(hog), "four are open");
        for peer in [hog, hog, other, third] {
            places.release(peer);
        }
        assert_eq!((places.open, places.by_peer.len()), (0, 0));
    }
}
