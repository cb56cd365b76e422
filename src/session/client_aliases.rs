//! Client ids that a session had before it was resumed over another connection.
//!
//! A game may reply to a login with the id of a connection that was replaced in the meantime; the reply still reaches the
//! session. Invariant: a session has at most [`ALIASES_MAX`] former ids, the newest ones.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::memory::MemoryUse;
use crate::wire::ClientId;

/// The maximum number of former ids by which a session is found.
pub(super) const ALIASES_MAX: usize = 4;

/// The current client of each former id.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(super) struct ClientIdAliases {
    current: BTreeMap<ClientId, ClientId>,
    /// The former ids of each session, oldest first.
    #[memory(each_value)]
    former: BTreeMap<ClientId, SmallVec<[ClientId; ALIASES_MAX]>>,
}

impl ClientIdAliases {
    /// The session of `before` has the id `client` from now on. O(log sessions).
    pub fn add_alias(&mut self, before: ClientId, client: ClientId) {
        let mut former = self.former.remove(&before).unwrap_or_default();
        if former.len() == ALIASES_MAX {
            self.current.remove(&former.remove(0));
        }
        former.push(before);
        for &number in &former {
            self.current.insert(number, client);
        }
        self.former.insert(client, former);
    }

    /// Removes the former ids of an ended session.
    pub fn remove(&mut self, client: ClientId) {
        for number in self.former.remove(&client).unwrap_or_default() {
            self.current.remove(&number);
        }
    }

    /// The current id of a client: the id itself, unless its session was resumed.
    pub fn resolve(&self, client: ClientId) -> ClientId {
        self.current.get(&client).copied().unwrap_or(client)
    }

    /// Passes the state as words, for a hash.
    pub fn hash_state(&self, word: &mut impl FnMut(u64)) {
        for (former, client) in &self.current {
            word(u64::from(former.0) << 32 | u64::from(client.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_found_by_its_aliases_until_it_ends() {
        let mut former = ClientIdAliases::default();
        for number in 1..=6 {
            former.add_alias(ClientId(number), ClientId(number + 1));
        }
        let found: Vec<u32> = (1..=8).map(|of| former.resolve(ClientId(of)).0).collect();
        assert_eq!(found, [1, 2, 7, 7, 7, 7, 7, 8]);
        former.remove(ClientId(7));
        assert_eq!(former.resolve(ClientId(6)), ClientId(6));
        assert!(former.current.is_empty() && former.former.is_empty());
    }
}
