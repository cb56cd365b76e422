//! Limits on open connections: in all and per peer, with a reserve for probes.

use std::collections::HashMap;
use std::net::IpAddr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
