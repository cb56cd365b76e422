//! All links of a peer.

use std::collections::{BTreeMap, VecDeque};

use super::peer_link::{ClientBehind, LinkSettings, LinkStats, PeerLink};
use super::piece::{self, LinkClient};
use crate::bus::BusPeer;

/// An event of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The link to a peer is established. It has no clients yet.
    Linked {
        /// The peer.
        peer: BusPeer,
    },
    /// A peer sends or acknowledges nothing any more, or has restarted. All clients of the link are lost.
    Lost {
        /// The peer.
        peer: BusPeer,
    },
    /// A message from or for a client.
    Message {
        /// The peer that has sent it.
        peer: BusPeer,
        /// The client.
        client: LinkClient,
        /// The time from its arrival at the peer until the peer sent it, in milliseconds: at most 1,000, and 0 for an unreliable message. The
        /// clocks of the peers may differ.
        waited_ms: u16,
        /// Its contents.
        bytes: Vec<u8>,
    },
}

/// The links of this run of a peer. It has neither clock nor socket: the owner passes what [`MessageBus`](crate::MessageBus) receives to
/// [`receive`](Self::receive), and sends what [`poll`](Self::poll) returns.
#[derive(Debug)]
pub struct LinkSet {
    last_id: u64,
    settings: LinkSettings,
    links: BTreeMap<BusPeer, PeerLink>,
    /// The time of the next greeting of each link that is not established.
    greeted: BTreeMap<BusPeer, u64>,
    events: VecDeque<LinkEvent>,
    stats: LinkStats,
}

impl LinkSet {
    /// The links of a peer. `own_run` is the run of its [`MessageBus`](crate::MessageBus).
    #[must_use]
    pub const fn new(own_run: u64, settings: LinkSettings) -> Self {
        Self {
            last_id: own_run,
            settings,
            links: BTreeMap::new(),
            greeted: BTreeMap::new(),
            events: VecDeque::new(),
            stats: LinkStats {
                pieces_sent: 0,
                bytes_sent: 0,
                resent: 0,
                received: 0,
                not_in_order: 0,
                refused: 0,
            },
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Greets a peer until it replies; then [`LinkEvent::Linked`] follows. One of the two ends has to call it.
    pub fn greet(&mut self, peer: BusPeer) {
        if !self.links.contains_key(&peer) {
            self.add(peer, 0);
        }
    }

    /// Begins a new link, and drops the former one.
    fn add(&mut self, peer: BusPeer, peer_id: u64) {
        self.last_id += 1;
        let link = PeerLink::new(self.last_id, peer_id, self.settings);
        self.links.insert(peer, link);
        self.greeted.insert(peer, 0);
    }

    /// Whether a peer is linked. O(log peers).
    #[must_use]
    pub fn is_linked(&self, peer: BusPeer) -> bool {
        self.established(peer).is_some()
    }

    /// Sets the time at which the next messages to a peer are queued. Otherwise it is that of the last [`poll`](Self::poll) or
    /// [`receive`](Self::receive) of the peer.
    pub fn set_now_ms(&mut self, peer: BusPeer, now_ms: u64) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.now_ms = link.now_ms.max(now_ms);
        }
    }

    /// The last measured time from sending a reliable message to a peer until its acknowledgement, in milliseconds.
    #[must_use]
    pub fn round_trip_ms(&self, peer: BusPeer) -> Option<u64> {
        self.established(peer)?.round_trip_ms
    }

    fn established(&self, peer: BusPeer) -> Option<&PeerLink> {
        self.links.get(&peer).filter(|link| link.is_established)
    }

    fn established_mut(&mut self, peer: BusPeer) -> Option<&mut PeerLink> {
        self.links.get_mut(&peer).filter(|link| link.is_established)
    }

    /// Queues a reliable message for a client of a peer. The message must not be empty. Without a link to the peer, nothing happens: its clients
    /// are lost. O(log clients + bytes).
    ///
    /// # Errors
    /// [`ClientBehind`]: close the client, and [forget](Self::forget) it.
    pub fn push(
        &mut self,
        peer: BusPeer,
        client: LinkClient,
        bytes: &[u8],
    ) -> Result<(), ClientBehind> {
        debug_assert!(
            !bytes.is_empty(),
            "an empty message stands for a client that is gone"
        );
        match self.established_mut(peer) {
            Some(link) if !bytes.is_empty() => link.push(client, bytes),
            _ => Ok(()),
        }
    }

    /// Queues the last reliable message for a client, such as the end of its connection, without a limit. Call it once per client.
    pub fn push_last(&mut self, peer: BusPeer, client: LinkClient, bytes: &[u8]) {
        debug_assert!(
            !bytes.is_empty(),
            "an empty message stands for a client that is gone"
        );
        if let Some(link) = self.established_mut(peer).filter(|_| !bytes.is_empty()) {
            link.push_last(client, bytes);
        }
    }

    /// Queues an unreliable message for the next piece. O(log peers + bytes).
    pub fn push_unreliable(&mut self, peer: BusPeer, client: LinkClient, bytes: &[u8]) {
        if let Some(link) = self.established_mut(peer) {
            link.push_unreliable(client, bytes);
        }
    }

    /// Drops the queued messages of a client. O(messages queued for the peer).
    pub fn forget(&mut self, peer: BusPeer, client: LinkClient) {
        if let Some(link) = self.established_mut(peer) {
            link.forget(client);
        }
    }

    /// Passes the pieces that are due to `send`, which may lose them. Call it after each tick, and while messages arrive.
    pub fn poll(&mut self, now_ms: u64, mut send: impl FnMut(BusPeer, Vec<u8>)) {
        let silent = self.links.iter().filter(|(_, link)| link.is_silent(now_ms));
        let silent: Vec<BusPeer> = silent.map(|(peer, _)| *peer).collect();
        for peer in silent {
            self.links.remove(&peer);
            self.events.push_back(LinkEvent::Lost { peer });
        }
        for (&peer, next_ms) in &mut self.greeted {
            if now_ms >= *next_ms {
                *next_ms = now_ms + self.settings.resend_after_ms;
                if let Some(link) = self.links.get(&peer) {
                    send(peer, link.greeting());
                }
            }
        }
        let established = self.links.iter_mut();
        for (&peer, link) in established.filter(|(_, link)| link.is_established) {
            link.poll(now_ms, &mut self.stats, |piece| send(peer, piece));
        }
    }

    /// Handles a message of the bus. `false` if it is not a piece.
    pub fn receive(&mut self, now_ms: u64, peer: BusPeer, bytes: &[u8]) -> bool {
        if bytes.first() != Some(&piece::PIECE_KIND) {
            return false;
        }
        let Some((header, entries)) = piece::read(bytes) else {
            self.stats.refused += 1;
            return true;
        };
        if !self.follow(peer, header.from) {
            self.stats.refused += 1;
            return true;
        }
        let Some(link) = self.links.get_mut(&peer) else {
            return true;
        };
        if header.to != link.own_id {
            // The other end does not know this link yet: send it the id.
            if link.is_established {
                link.replies_now = true;
            } else {
                self.greeted.insert(peer, 0);
            }
            return true;
        }
        if !link.is_established {
            link.is_established = true;
            // The other end may wait for a reply to its own greeting.
            link.replies_now = true;
            self.greeted.remove(&peer);
            self.events.push_back(LinkEvent::Linked { peer });
        }
        match link.receive(now_ms, (header, entries), &mut self.stats) {
            Some(messages) => {
                let events = messages.into_iter().map(|message| LinkEvent::Message {
                    peer,
                    client: message.client,
                    waited_ms: message.waited_ms,
                    bytes: message.bytes,
                });
                self.events.extend(events);
            }
            None => self.stats.refused += 1,
        }
        true
    }

    /// Follows the id of the link at the other end: a higher one than before begins a new link. `false` if the id is an old one.
    fn follow(&mut self, peer: BusPeer, from: u64) -> bool {
        match self.links.get_mut(&peer) {
            Some(link) if link.peer_id == from => {}
            Some(link) if from < link.peer_id => return false,
            Some(link) if link.is_established => {
                // The other end has begun a new link: what it did not acknowledge is lost.
                self.events.push_back(LinkEvent::Lost { peer });
                self.add(peer, from);
            }
            Some(link) => link.peer_id = from,
            None => self.add(peer, from),
        }
        true
    }

    /// The next event, if there is one.
    pub fn next_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }
}
