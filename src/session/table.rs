//! Open sessions by client id.
//!
//! Every client message looks up its session, and replication visits all sessions in every tick. A hash map gives the index of a session,
//! and a tree gives a deterministic order. Sessions are stored in one array and do not move.
//!
//! Cost: one lookup per message, O(log sessions) to open or close, and about 35 bytes per session in addition to the session itself. Slots
//! of closed sessions are used again. If only a quarter of the slots is in use, the array is compacted in order: O(sessions), at most once
//! for twice as many closed sessions.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use foldhash::fast::FixedState;
use slab::Slab;

use super::state::Session;
use crate::memory::MemoryUse;
use crate::wire::ClientId;

/// Capacity grows by this many sessions, or by an eighth of the current number if that is more.
const GROW_MIN: usize = 16;

/// The capacity never shrinks below this.
const CAPACITY_MIN: usize = if cfg!(test) { 8 } else { 1_024 };

/// Open sessions.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    sessions: Slab<Session>,
    /// The slot of each session. Never iterated.
    slots: HashMap<ClientId, u32, FixedState>,
    /// The same, ascending.
    in_order: BTreeMap<ClientId, u32>,
}

impl SessionTable {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    #[inline]
    pub fn get(&self, client: ClientId) -> Option<&Session> {
        self.sessions.get(*self.slots.get(&client)? as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, client: ClientId) -> Option<&mut Session> {
        self.sessions.get_mut(*self.slots.get(&client)? as usize)
    }

    /// Opens the session of a client that has none.
    pub fn insert(&mut self, client: ClientId, session: Session) {
        debug_assert!(self.get(client).is_none(), "numbers are given once");
        if self.sessions.len() == self.sessions.capacity() {
            // Doubling would leave as much unused as used.
            let more = self.sessions.len() / 8;
            self.sessions.reserve_exact(more.max(GROW_MIN));
        }
        let place = self.sessions.insert(session) as u32;
        self.slots.insert(client, place);
        self.in_order.insert(client, place);
    }

    /// Removes a session.
    pub fn remove(&mut self, client: ClientId) -> Option<Session> {
        let place = self.slots.remove(&client)?;
        self.in_order.remove(&client);
        let session = self.sessions.try_remove(place as usize);
        if self.sessions.capacity() > CAPACITY_MIN.max(4 * self.len()) {
            self.compact();
        }
        session
    }

    /// Releases unused capacity. Sessions are stored in the order of ids, so that an iteration reads memory in order.
    fn compact(&mut self) {
        let room = self.len() + self.len() / 8;
        let mut sessions = Slab::with_capacity(room.max(CAPACITY_MIN));
        for (client, place) in &mut self.in_order {
            let session = self.sessions.try_remove(*place as usize);
            debug_assert!(session.is_some(), "every number has a session");
            if let Some(session) = session {
                *place = sessions.insert(session) as u32;
                self.slots.insert(*client, *place);
            }
        }
        self.sessions = sessions;
        self.slots.shrink_to_fit();
    }

    /// The sessions from one id to another, ascending.
    pub fn range(
        &self,
        range: (Bound<ClientId>, Bound<ClientId>),
    ) -> impl Iterator<Item = (ClientId, &Session)> {
        let places = self.in_order.range(range);
        places.filter_map(|(&client, &place)| Some((client, self.sessions.get(place as usize)?)))
    }

    /// All sessions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &Session)> {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    /// The ids above one, ascending.
    pub fn ids_after(&self, client: Bound<ClientId>) -> impl Iterator<Item = ClientId> {
        let range = self.in_order.range((client, Bound::Unbounded));
        range.map(|(&client, _)| client)
    }
}

impl MemoryUse for SessionTable {
    fn heap_bytes(&self) -> usize {
        self.sessions.capacity() * size_of::<Session>()
            + self.slots.heap_bytes()
            + self.in_order.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use bevy_ecs::entity::Entity;
    use proptest::prelude::*;

    use super::*;
    use crate::inbox::ConnectionInfo;
    use crate::session::sessions::Sessions;
    use crate::session::tick_settings::SessionTickSettings;

    /// The session of a client that connects, with a message received then.
    fn session(heard: u64) -> Session {
        let mut sessions = Sessions::default();
        let rules = SessionTickSettings {
            sessions_max: 1,
            ..SessionTickSettings::default()
        };
        sessions.begin_tick(heard, rules);
        let opened = (ClientId(1), Entity::PLACEHOLDER);
        sessions.open(opened, ConnectionInfo::unknown(), false);
        *sessions.get(ClientId(1)).expect("there is room for one")
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn session_table_matches_a_tree_map(
            changes in prop::collection::vec((0..30_u32, any::<bool>()), 0..200),
            from in 0..30_u32,
            until in 0..30_u32,
        ) {
            let (mut table, mut tree) = (SessionTable::default(), BTreeMap::new());
            for (heard, (number, comes)) in (0..).zip(changes) {
                let client = ClientId(number);
                if comes && !tree.contains_key(&client) {
                    table.insert(client, session(heard));
                    tree.insert(client, session(heard));
                } else if !comes {
                    let removed = table.remove(client);
                    let room = table.sessions.capacity();
                    prop_assert!(removed.is_none() || room <= CAPACITY_MIN.max(4 * table.len()));
                    prop_assert_eq!(removed, tree.remove(&client));
                } else if let (Some(one), Some(other)) = (table.get_mut(client), tree.get_mut(&client)) {
                    (one.last_message_tick, other.last_message_tick) = (heard, heard);
                }
                prop_assert_eq!((table.len(), table.is_empty()), (tree.len(), tree.is_empty()));
            }
            for client in (0..30).map(ClientId) {
                prop_assert_eq!(table.get(client), tree.get(&client));
            }
            prop_assert!(table.iter().eq(tree.iter().map(|(&client, session)| (client, session))));
            let above = Bound::Excluded(ClientId(from));
            let rest = tree.range((above, Bound::Unbounded)).map(|(&client, _)| client);
            prop_assert!(table.ids_after(above).eq(rest));
            let range = (Bound::Included(ClientId(from.min(until))), Bound::Excluded(ClientId(until)));
            let part = tree.range(range).map(|(&client, session)| (client, session));
            prop_assert!(table.range(range).eq(part));
        }
    }
}
