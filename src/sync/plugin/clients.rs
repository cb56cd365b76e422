//! The clients that replication has to do with: who is new, who is gone, and what each controls.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::replicator::words;
use crate::aoi::SceneInterest;
use crate::session::{Resumed, Session, SessionState, Sessions};
use crate::sync::client::ClientState;
use crate::sync::records::SceneRecords;
use crate::world::{Object, Scene, SceneId};

/// Drops the state of clients that are gone and makes that of new ones. Both lists ascend.
pub(super) fn follow_sessions(
    clients: &mut Vec<ClientState>,
    sessions: &Sessions,
    gone: &mut Vec<ClientState>,
) {
    let receiving = || {
        sessions
            .iter()
            .filter(|(_, session)| session.receives)
            .map(|(client, _)| client)
    };
    let mut open = receiving().peekable();
    clients.retain_mut(|state| {
        while open.next_if(|&client| client < state.client).is_some() {}
        let stays = open.peek() == Some(&state.client);
        if !stays {
            gone.push(std::mem::replace(state, ClientState::new(state.client)));
        }
        stays
    });
    let last = clients.last().map(|state| state.client);
    // Numbers only grow, so whoever is new stands behind all that are known.
    let new = receiving().filter(|&client| last.is_none_or(|last| client > last));
    clients.extend(new.map(ClientState::new));
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

/// A client with what it needs of the world.
pub(super) struct ClientJob<'w> {
    pub state: &'w mut ClientState,
    pub own: Object,
    /// The number of its last input that was handled or refused.
    pub input: u16,
    /// Whether that is a number of the client's own.
    pub is_numbered: bool,
    pub records: &'w SceneRecords,
    pub scene: &'w Scene,
    pub interest: &'w SceneInterest,
}

impl ClientJob<'_> {
    /// Whether it controls another object than it knows, and so is to be told everything anew.
    pub fn begins(&self) -> bool {
        self.state.own != Some(words(self.own.reference()))
    }
}

/// The clients that control an object, with the scenes that it is in.
pub(super) fn jobs<'w>(
    clients: &'w mut [ClientState],
    records: &'w BTreeMap<SceneId, SceneRecords>,
    sessions: &Sessions,
    objects: &Query<&Object>,
    scenes: &'w Query<(&Scene, &SceneInterest)>,
) -> Vec<ClientJob<'w>> {
    let mut jobs = Vec::with_capacity(clients.len());
    let mut own_of = sessions.iter().peekable();
    for state in clients {
        while own_of
            .next_if(|&(client, _)| client < state.client)
            .is_some()
        {}
        let session = own_of.next_if(|&(client, _)| client == state.client);
        // Of one that is away it is kept what it misses.
        let is_away = |session: &Session| session.state == SessionState::LinkDead;
        state.set_away(session.is_some_and(|(_, session)| is_away(session)));
        let own = session.and_then(|(_, session)| {
            let own = objects.get(session.controls?).ok()?;
            session.has_loaded(own.scene()).then_some((session, own))
        });
        let around = own.and_then(|(session, own)| {
            let (scene, interest) = scenes.get(own.scene_entity()).ok()?;
            Some((session, *own, records.get(&own.scene())?, scene, interest))
        });
        match around {
            Some((session, own, records, scene, interest)) => jobs.push(ClientJob {
                state,
                own,
                input: session.inputs,
                is_numbered: session.numbers_inputs(),
                records,
                scene,
                interest,
            }),
            // Who controls nothing now is told so, misses what happens, and begins anew when that changes.
            None => state.end(),
        }
    }
    jobs
}
