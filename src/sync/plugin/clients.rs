//! The clients of replication: new ones, closed ones, and the object that each controls.
//!
//! Sessions are many and large, so they are read once per tick, and twice if clients connected or left. What replication needs of a session
//! is copied to a short *session view*.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use crate::aoi::SceneInterest;
use crate::memory::{MemoryUse, clear_and_shrink};
use crate::session::{Session, SessionResumed, SessionState, Sessions};
use crate::sim::Workers;
use crate::sync::client::ClientState;
use crate::sync::resume_buffer::ResumeBufferLimits;
use crate::sync::scene_messages::SceneMessages;
use crate::sync::sent_log::SentLog;
use crate::wire::ClientId;
use crate::world::{Object, SceneId};

/// The data of a client's session in this tick.
#[derive(Clone, Copy, Debug)]
pub(in crate::sync) struct SessionView {
    client: ClientId,
    /// The object that it controls, if the client is ready to receive it.
    pub controlled: Option<Object>,
    /// The number of its last input that was handled or refused.
    pub last_input: u16,
    /// Whether the client chose that number.
    pub has_input_numbers: bool,
    /// Whether its connection is lost.
    is_disconnected: bool,
}

impl SessionView {
    #[inline]
    fn of(client: ClientId, session: &Session, objects: &Query<&Object>) -> Self {
        let own = session
            .controlled_entity
            .and_then(|entity| objects.get(entity).ok())
            .filter(|own| session.has_loaded(own.scene()));
        Self {
            client,
            controlled: own.copied(),
            last_input: session.last_input,
            has_input_numbers: session.has_input_numbers(),
            is_disconnected: session.state == SessionState::AwaitingReconnect,
        }
    }

    /// Its client, and whether it is disconnected.
    const fn connection(&self) -> (ClientId, bool) {
        (self.client, self.is_disconnected)
    }
}

/// Fewer sessions are not worth another thread.
const SESSIONS_MIN: usize = if cfg!(test) { 2 } else { 512 };

/// More than one, so that a slow thread does not delay all.
const RANGES_PER_THREAD: usize = 4;

/// Consecutive sessions.
#[derive(Debug, Default, MemoryUse)]
pub(in crate::sync) struct SessionRange {
    /// The first of them, unless the range starts with the first session.
    from: Option<ClientId>,
    /// The first one after them, unless the range ends with the last session.
    until: Option<ClientId>,
    /// Whether clients and connections are the same as in the last tick.
    is_same: bool,
    /// The new views, if they are not.
    changed: Vec<SessionView>,
}

/// Reads each session and creates a state for each of them: one session view per client, both ascending.
pub(super) fn update_clients(
    (clients, seats): (&mut Vec<ClientState>, &mut Vec<SessionView>),
    ranges: &mut Vec<SessionRange>,
    (sessions, workers): (&Sessions, Workers),
    objects: &Query<&Object>,
    gone: &mut Vec<ClientState>,
    sent: (&SentLog, ResumeBufferLimits),
) {
    let is_same = refresh_sessions(seats, ranges, workers, |from, until| {
        let receiving = sessions
            .range(from, until)
            .filter(|(_, session)| session.receives);
        receiving.map(|(client, session)| SessionView::of(client, session, objects))
    });
    // States are large, and usually clients and connections are the same.
    if !is_same {
        update_states(clients, seats, gone, sent);
    }
}

/// Reads the sessions that `now` returns from one client up to another, ascending; returns whether clients and connections
/// are the same.
fn refresh_sessions<I: Iterator<Item = SessionView>>(
    seats: &mut Vec<SessionView>,
    ranges: &mut Vec<SessionRange>,
    workers: Workers,
    now: impl Fn(Option<ClientId>, Option<ClientId>) -> I + Sync,
) -> bool {
    let cuts = split_ranges(seats, workers.count() * RANGES_PER_THREAD, ranges);
    let (mut work, mut rest) = (Vec::with_capacity(ranges.len()), &mut seats[..]);
    for (range, pair) in ranges.iter_mut().zip(cuts.windows(2)) {
        let (seats, behind) = std::mem::take(&mut rest).split_at_mut(pair[1] - pair[0]);
        work.push((range, seats));
        rest = behind;
    }
    workers.for_each_in_turn(&mut work, |(range, seats)| {
        range.is_same = refresh_range(seats, now(range.from, range.until));
        if !range.is_same {
            range.changed.extend(now(range.from, range.until));
        }
    });
    let is_same = ranges.iter().all(|range| range.is_same);
    // From the last range on, so that those before keep their indices.
    for (range, pair) in ranges.iter_mut().zip(cuts.windows(2)).rev() {
        if !range.is_same {
            seats.splice(pair[0]..pair[1], range.changed.iter().copied());
            clear_and_shrink(&mut range.changed);
        }
    }
    is_same
}

/// Updates views from the current sessions; `false` when they are not of the same clients and connections.
fn refresh_range(seats: &mut [SessionView], mut now: impl Iterator<Item = SessionView>) -> bool {
    let are_same = seats.iter_mut().all(|seat| {
        now.next().is_some_and(|now| {
            let is_same = now.connection() == seat.connection();
            *seat = now;
            is_same
        })
    });
    are_same && now.next().is_none()
}

/// Divides all possible sessions into ranges with about as many sessions of the last tick each, and returns their
/// bounds.
fn split_ranges(
    before: &[SessionView],
    ranges_max: usize,
    ranges: &mut Vec<SessionRange>,
) -> Vec<usize> {
    let count = ranges_max.min(before.len() / SESSIONS_MIN).max(1);
    ranges.resize_with(count, SessionRange::default);
    let cuts: Vec<usize> = (0..=count).map(|nth| nth * before.len() / count).collect();
    let first = |nth: usize| before.get(cuts[nth]).map(|seat| seat.client);
    for (nth, range) in ranges.iter_mut().enumerate() {
        range.from = first(nth).filter(|_| nth > 0);
        range.until = first(nth + 1);
    }
    cuts
}

/// The session views in chunks of adjacent clients whose objects are in one scene, or that control none.
pub(super) fn chunks_by_scene(seats: &[SessionView]) -> impl Iterator<Item = &[SessionView]> {
    let scene = |seat: &SessionView| seat.controlled.map(|own| own.scene());
    seats.chunk_by(move |one, next| scene(one) == scene(next))
}

/// Removes the state of clients that are gone and creates that of new ones.
fn update_states(
    clients: &mut Vec<ClientState>,
    seats: &[SessionView],
    gone: &mut Vec<ClientState>,
    (log, limits): (&SentLog, ResumeBufferLimits),
) {
    let mut open = seats.iter().peekable();
    let mut new = Vec::new();
    clients.retain_mut(|state| {
        while let Some(seat) = open.next_if(|seat| seat.client < state.client) {
            new.push(ClientState::new(seat.client));
        }
        let seat = open.next_if(|seat| seat.client == state.client);
        match seat {
            // A disconnected client's missed messages are stored.
            Some(seat) => state.set_disconnected(seat.is_disconnected, log, limits),
            None => gone.push(std::mem::replace(state, ClientState::new(state.client))),
        }
        seat.is_some()
    });
    let is_sorted = new.is_empty();
    clients.append(&mut new);
    // Ids grow, so a new client usually comes after all known ones.
    clients.extend(open.map(|seat| ClientState::new(seat.client)));
    if !is_sorted {
        clients.sort_unstable_by_key(|state| state.client);
    }
}

/// Resumes clients that reconnected with the state of their last connection. `interest` is the views of a scene.
pub(super) fn apply_resumes<'a>(
    resumed: impl Iterator<Item = SessionResumed>,
    sessions: &Sessions,
    (clients, gone): (&mut [ClientState], &mut [ClientState]),
    records: &BTreeMap<SceneId, SceneMessages>,
    interest: impl Fn(SceneId) -> Option<&'a SceneInterest>,
    tick: u64,
    sent: (&SentLog, ResumeBufferLimits),
) {
    for SessionResumed {
        client,
        previous_client: before,
        ..
    } in resumed
    {
        let at = clients.binary_search_by_key(&client, |state| state.client);
        let before = gone.binary_search_by_key(&before, |state| state.client);
        if let (Ok(at), Ok(before)) = (at, before) {
            let received = sessions
                .get(client)
                .and_then(|session| session.received_bytes);
            let scene = gone[before].controlled.map(|(scene, ..)| SceneId(scene));
            let records = scene.and_then(|scene| records.get(&scene));
            let interest = scene.and_then(&interest);
            let is_marked = |id| interest.is_some_and(|of| of.is_marked_to_keep(id));
            let state = &mut clients[at];
            gone[before].resume(state, records, received, tick, sent, is_marked);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn seat(client: u32) -> SessionView {
        SessionView {
            client: ClientId(client),
            controlled: None,
            last_input: 0,
            has_input_numbers: false,
            is_disconnected: false,
        }
    }

    #[test]
    fn session_views_are_equal_if_clients_and_connections_are() {
        let before: Vec<SessionView> = (0..5).map(seat).collect();
        let renewed = |change: &dyn Fn(&mut Vec<SessionView>)| {
            let (mut seats, mut now) = (before.clone(), before.clone());
            change(&mut now);
            let is_same = refresh_range(&mut seats, now.into_iter());
            is_same.then_some(seats)
        };
        let same = renewed(&|now| now[3].last_input = 9);
        assert_eq!(same.map(|seats| seats[3].last_input), Some(9));
        assert!(renewed(&|now| now[3].is_disconnected = true).is_none());
        assert!(renewed(&|now| now[4].client.0 = 7).is_none());
        assert!(renewed(&|now| now.push(seat(5))).is_none());
        assert!(renewed(&|now| now.truncate(4)).is_none());
    }

    #[test]
    fn sessions_are_in_exactly_one_range() {
        let mut ranges = Vec::new();
        for (before, hands, count) in [
            (0, 2, 1),
            (SESSIONS_MIN - 1, 4, 1),
            (3 * SESSIONS_MIN, 2, 2),
            (3 * SESSIONS_MIN + 1, 8, 3),
        ] {
            let seats: Vec<SessionView> =
                (0..before as u32).map(|nth| seat(10 + 3 * nth)).collect();
            let cuts = split_ranges(&seats, hands, &mut ranges);
            assert_eq!((ranges.len(), cuts.len()), (count, count + 1));
            assert_eq!((ranges[0].from, ranges[count - 1].until), (None, None));
            for (one, next) in ranges.iter().zip(&ranges[1..]) {
                assert!(one.until.is_some() && one.until == next.from);
            }
            let held = |range: &SessionRange| {
                let of = |seat: &&SessionView| {
                    range.from.is_none_or(|from| from <= seat.client)
                        && range.until.is_none_or(|until| seat.client < until)
                };
                seats.iter().filter(of).count()
            };
            for (range, pair) in ranges.iter().zip(cuts.windows(2)) {
                assert_eq!(held(range), pair[1] - pair[0]);
                assert!(held(range).abs_diff(before / count) <= 1);
            }
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn session_views_match_the_sessions_for_any_range_count(
            ticks in prop::collection::vec(prop::collection::btree_map(0..40_u32, 0..3_u8, 0..24), 1..8),
            workers in 1..4_usize,
        ) {
            let (mut seats, mut ranges, mut before) = (Vec::new(), Vec::new(), Vec::new());
            for open in ticks {
                let now: Vec<SessionView> = open
                    .into_iter()
                    .map(|(client, what)| SessionView { last_input: u16::from(what), is_disconnected: what == 0, ..seat(client) })
                    .collect();
                let of_range = |from: Option<ClientId>, until: Option<ClientId>| {
                    let is_in = move |seat: &SessionView| {
                        from.is_none_or(|from| from <= seat.client) && until.is_none_or(|until| seat.client < until)
                    };
                    now.iter().copied().filter(is_in)
                };
                let is_same = refresh_sessions(&mut seats, &mut ranges, Workers::with_pool(workers), of_range);
                let links: Vec<_> = now.iter().map(SessionView::connection).collect();
                prop_assert_eq!(is_same, links == before);
                let said = |seats: &[SessionView]| -> Vec<_> {
                    seats.iter().map(|seat| (seat.connection(), seat.last_input)).collect()
                };
                prop_assert_eq!(said(&seats), said(&now));
                before = links;
            }
        }

        #[test]
        fn client_states_match_session_views_in_order(
            ticks in prop::collection::vec(prop::collection::btree_set(0..20_u32, 0..12), 1..10),
        ) {
            let (mut clients, mut before) = (Vec::new(), BTreeSet::new());
            for open in ticks {
                let seats: Vec<SessionView> = open.iter().copied().map(seat).collect();
                let mut gone = Vec::new();
                let limits = ResumeBufferLimits { bytes_max: 0, ticks: 0 };
                let sent = (&SentLog::default(), limits);
                update_states(&mut clients, &seats, &mut gone, sent);
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
