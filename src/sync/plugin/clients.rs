//! The clients that replication has to do with: who is new, who is gone, and what each controls.
//!
//! Sessions are many and large, so they are looked at once a tick; what replication needs of them is a short *seat* each.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use crate::session::{Resumed, Session, SessionState, Sessions};
use crate::sync::client::ClientState;
use crate::sync::records::SceneRecords;
use crate::wire::ClientId;
use crate::world::{Object, SceneId};

/// What a client's session says of it in this tick.
#[derive(Clone, Copy, Debug)]
pub(in crate::sync) struct ClientSeat {
    client: ClientId,
    /// What it controls and is ready to be told of.
    pub own: Option<Object>,
    /// The number of its last input that was handled or refused.
    pub input: u16,
    /// Whether that is a number of the client's own.
    pub is_numbered: bool,
    /// Whether its connection is lost.
    is_away: bool,
}

impl ClientSeat {
    fn of(client: ClientId, session: &Session, objects: &Query<&Object>) -> Self {
        let own = session
            .controls
            .and_then(|entity| objects.get(entity).ok())
            .filter(|own| session.has_loaded(own.scene()));
        Self {
            client,
            own: own.copied(),
            input: session.inputs,
            is_numbered: session.numbers_inputs(),
            is_away: session.state == SessionState::LinkDead,
        }
    }
}

/// Takes down what each session says, and has a state for each of them: a seat a client, both ascending.
pub(super) fn follow_sessions(
    (clients, seats): (&mut Vec<ClientState>, &mut Vec<ClientSeat>),
    sessions: &Sessions,
    objects: &Query<&Object>,
    gone: &mut Vec<ClientState>,
) {
    let receiving = sessions.iter().filter(|(_, session)| session.receives);
    seats.clear();
    seats.extend(receiving.map(|(client, session)| ClientSeat::of(client, session, objects)));
    follow_seats(clients, seats, gone);
}

/// Drops the state of clients that are gone and makes that of new ones.
fn follow_seats(clients: &mut Vec<ClientState>, seats: &[ClientSeat], gone: &mut Vec<ClientState>) {
    let mut open = seats.iter().peekable();
    let mut new = Vec::new();
    clients.retain_mut(|state| {
        while let Some(seat) = open.next_if(|seat| seat.client < state.client) {
            new.push(ClientState::new(seat.client));
        }
        let seat = open.next_if(|seat| seat.client == state.client);
        match seat {
            // Of one that is away it is kept what it misses.
            Some(seat) => state.set_away(seat.is_away),
            None => gone.push(std::mem::replace(state, ClientState::new(state.client))),
        }
        seat.is_some()
    });
    let is_sorted = new.is_empty();
    clients.append(&mut new);
    // Numbers grow, so whoever is new mostly comes behind all that are known.
    clients.extend(open.map(|seat| ClientState::new(seat.client)));
    if !is_sorted {
        clients.sort_unstable_by_key(|state| state.client);
    }
}

/// Who came back over another connection goes on with what the one before knew.
pub(super) fn follow_resumed(
    resumed: impl Iterator<Item = Resumed>,
    sessions: &Sessions,
    (clients, gone): (&mut [ClientState], &mut [ClientState]),
    records: &BTreeMap<SceneId, SceneRecords>,
    tick: u64,
) {
    for Resumed { client, before, .. } in resumed {
        let at = clients.binary_search_by_key(&client, |state| state.client);
        let before = gone.binary_search_by_key(&before, |state| state.client);
        if let (Ok(at), Ok(before)) = (at, before) {
            let received = sessions.get(client).and_then(|session| session.received);
            let scene = gone[before].own.map(|(scene, ..)| SceneId(scene));
            let records = scene.and_then(|scene| records.get(&scene));
            gone[before].resume(&mut clients[at], records, received, tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn there_is_a_state_for_each_seat_in_the_same_order(
            ticks in prop::collection::vec(prop::collection::btree_set(0..20_u32, 0..12), 1..10),
        ) {
            let (mut clients, mut before) = (Vec::new(), BTreeSet::new());
            for open in ticks {
                let seat = |&client: &u32| ClientSeat {
                    client: ClientId(client),
                    own: None,
                    input: 0,
                    is_numbered: false,
                    is_away: false,
                };
                let seats: Vec<ClientSeat> = open.iter().map(seat).collect();
                let mut gone = Vec::new();
                follow_seats(&mut clients, &seats, &mut gone);
                let numbers = |states: &[ClientState]| -> Vec<u32> {
                    states.iter().map(|state| state.client.0).collect()
                };
                prop_assert_eq!(numbers(&clients), open.iter().copied().collect::<Vec<_>>());
                let left: Vec<u32> = before.difference(&open).copied().collect();
                prop_assert_eq!(numbers(&gone), left);
                before = open;
            }
        }
    }
}
