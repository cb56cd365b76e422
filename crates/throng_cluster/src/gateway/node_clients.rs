//! Which client of a gateway has which number at its node.

use std::collections::BTreeMap;

use throng_protocol::wire::ClientId;

use crate::bus::BusPeer;
use crate::link::LinkClient;

/// The clients at nodes. All functions are O(log clients).
#[derive(Debug, Default)]
pub(super) struct NodeClients {
    clients: BTreeMap<LinkClient, (ClientId, BusPeer)>,
    /// Never with a count of 0.
    counts: BTreeMap<BusPeer, usize>,
}

impl NodeClients {
    /// A client is at a node with a new number.
    pub fn insert(&mut self, number: LinkClient, client: ClientId, node: BusPeer) {
        let former = self.clients.insert(number, (client, node));
        debug_assert!(former.is_none(), "numbers are used once");
        *self.counts.entry(node).or_default() += 1;
    }

    /// A client is not at its node any more.
    pub fn remove(&mut self, number: LinkClient) {
        if let Some((_, node)) = self.clients.remove(&number)
            && let Some(count) = self.counts.get_mut(&node)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&node);
            }
        }
    }

    /// The client with this number.
    pub fn get(&self, number: LinkClient) -> Option<ClientId> {
        self.clients.get(&number).map(|(client, _)| *client)
    }

    /// Whether no client is at any node.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.counts.is_empty()
    }

    /// The number of clients at a node.
    pub fn count(&self, node: BusPeer) -> usize {
        self.counts.get(&node).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::ids::ClusterNodeId;

    #[test]
    fn counts_are_those_of_the_clients() {
        let mut clients = NodeClients::default();
        let node = |number: u32| BusPeer::Node(ClusterNodeId(number % 3));
        for number in 0..10 {
            clients.insert(LinkClient(number), ClientId(100 + number), node(number));
        }
        assert_eq!(
            [0, 1, 2, 3].map(node).map(|node| clients.count(node)),
            [4, 3, 3, 4]
        );
        assert_eq!(clients.get(LinkClient(7)), Some(ClientId(107)));
        for number in [0, 3, 6, 9, 9, 4] {
            clients.remove(LinkClient(number));
        }
        assert_eq!(
            [0, 1, 2].map(node).map(|node| clients.count(node)),
            [0, 2, 3]
        );
        assert_eq!(clients.get(LinkClient(9)), None);
    }
}
