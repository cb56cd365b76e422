//! Limits of open connections: in all and per peer, and a reserve for probes.

use std::collections::HashMap;
use std::net::IpAddr;

/// The most open connections of one peer.
pub const CONNECTIONS_OF_PEER_MAX: usize = 48;

/// Connections beyond the limits, for probes only; a new one closes the oldest.
pub(super) const RESERVE: usize = 16;

/// Open connections, in all and per peer.
#[derive(Debug)]
pub(super) struct PeerPlaces {
    all_max: usize,
    of_peer_max: usize,
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

impl PeerPlaces {
    /// No connection is open.
    pub fn new(all_max: usize, of_peer_max: usize) -> Self {
        Self {
            all_max,
            of_peer_max,
            all: 0,
            by_peer: HashMap::new(),
        }
    }

    /// Adds a connection; `false` if a limit is reached.
    pub fn take(&mut self, peer: IpAddr) -> bool {
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or(0);
        if self.all >= self.all_max || of_peer >= self.of_peer_max {
            return false;
        }
        self.all += 1;
        self.by_peer.insert(peer, of_peer + 1);
        true
    }

    /// Removes a connection.
    pub fn give_back(&mut self, peer: IpAddr) {
        self.all = self.all.saturating_sub(1);
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
    fn one_peer_does_not_take_all_places() {
        let mut places = PeerPlaces::new(4, 3);
        let [hog, other, third] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(
            [hog; 4].map(|peer| places.take(peer)),
            [true, true, true, false]
        );
        assert!(places.take(other));
        assert!(!places.take(third), "four are open");
        places.give_back(hog);
        assert!(places.take(third));
        assert!(!places.take(hog), "four are open");
        for peer in [hog, hog, other, third] {
            places.give_back(peer);
        }
        assert_eq!((places.all, places.by_peer.len()), (0, 0));
    }
}
