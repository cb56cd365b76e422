//! Client queues, limits and turns.

use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

const LIMITS: InboxLimits = InboxLimits {
    backlog_max: 10,
    client_backlog_max: 4,
    unauthenticated_client_backlog_max: 2,
    unauthenticated_backlog_max: 5,
    quota: ClientQuota {
        messages_per_s: 1_000_000,
        messages_max: 1_000_000,
        bytes_per_s: 1_000_000_000,
        bytes_max: 1_000_000_000,
        violations_max: 1_000_000,
    },
    tick_ns: 50_000_000,
};

/// A queue with this many players.
fn queue_with_players(limits: InboxLimits, players: u32) -> MessageQueue {
    let mut queue = MessageQueue::new(limits);
    for client in (1..=players).map(ClientId) {
        queue.open(client);
        queue.promote(client);
    }
    queue
}

/// A message class that is never dropped for a newer one.
const SAY: [u8; 1] = [2];
/// An input: a turn.
const TURN: [u8; 2] = [4, 1];

#[test]
fn one_client_cannot_fill_the_queue() {
    let mut queue = queue_with_players(LIMITS, 2);
    let sent = (0..8)
        .filter(|_| queue.push(ClientId(1), &SAY).is_ok())
        .count();
    assert_eq!(sent, 4);
    assert!(queue.push(ClientId(2), &SAY).is_ok());
    assert_eq!(queue.counters().refused, 4);
}

#[test]
fn a_long_message_is_refused() {
    let mut queue = queue_with_players(LIMITS, 1);
    let long = [0; CLIENT_MESSAGE_BYTES_MAX + 1];
    let refused = queue.push(ClientId(1), &long);
    assert_eq!(refused, Err(ReceiveError::TooLong(long.len())));
    assert!(queue.is_empty());
    assert_eq!(queue.push(ClientId(1), &long[1..]), Ok(()));
}

#[test]
fn messages_of_unknown_clients_are_refused() {
    let mut queue = queue_with_players(LIMITS, 1);
    for stranger in 2..5_000 {
        let refused = queue.push(ClientId(stranger), &SAY);
        assert_eq!(
            refused,
            Err(ReceiveError::UnknownClient(ClientId(stranger)))
        );
    }
    queue.close(ClientId(1));
    assert!(queue.push(ClientId(1), &SAY).is_err());
    assert_eq!((queue.len(), queue.clients()), (0, 0));
    assert!(queue.pop(9).is_none() && queue.iter().next().is_none());
    assert_eq!(queue.counters().unknown_client, 4_999);
}

#[test]
fn refused_messages_are_numbered_in_order_too() {
    let mut queue = queue_with_players(LIMITS, 1);
    let client = ClientId(1);
    let long = [0; CLIENT_MESSAGE_BYTES_MAX + 1];
    let mut offer = |bytes: &[u8]| queue.push(client, bytes).is_ok();
    assert!(offer(&SAY) && !offer(&long));
    assert!((0..3).all(|_| offer(&SAY)) && !offer(&SAY));
    let numbers = std::iter::from_fn(|| Some(queue.pop(1)?.number));
    // The second and the last were refused; the last counts with the one before it, since nothing else waits.
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 3, 4, 6]);
    assert!(queue.push(client, &long).is_err());
    let mut refused = Vec::new();
    queue.take_refused(&mut refused);
    queue.take_refused(&mut refused);
    assert_eq!(refused, [(client, 7)]);
}

#[test]
fn new_input_replaces_only_the_oldest_input() {
    let mut queue = queue_with_players(LIMITS, 1);
    let client = ClientId(1);
    for bytes in [&SAY[..], &[4, 1], &[4, 2], &SAY, &[4, 3], &[4, 4]] {
        assert_eq!(queue.push(client, bytes), Ok(()));
    }
    assert!(queue.push(client, &SAY).is_err());
    let taken: Vec<Vec<u8>> = std::iter::from_fn(|| Some(queue.pop(1)?.bytes.to_vec())).collect();
    assert_eq!(taken, [vec![2], vec![2], vec![4, 3], vec![4, 4]]);
    assert_eq!(queue.counters().stale, 2);
}

#[test]
fn clients_are_served_round_robin() {
    let limits = InboxLimits {
        backlog_max: 1_000,
        client_backlog_max: 100,
        ..LIMITS
    };
    let mut queue = queue_with_players(limits, 3);
    for _ in 0..100 {
        queue.push(ClientId(1), &SAY).unwrap();
    }
    for client in [2, 3, 2] {
        queue.push(ClientId(client), &SAY).unwrap();
    }
    let order: Vec<u32> = (0..6).map(|_| queue.pop(1).unwrap().client.0).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 1]);
}

#[test]
fn unauthenticated_clients_get_a_ninth_while_players_wait() {
    let limits = InboxLimits {
        backlog_max: 1_000,
        client_backlog_max: 100,
        unauthenticated_client_backlog_max: 50,
        unauthenticated_backlog_max: 100,
        ..LIMITS
    };
    let mut queue = queue_with_players(limits, 1);
    queue.open(ClientId(2));
    queue.acknowledge(ClientId(2));
    for _ in 0..40 {
        queue.push(ClientId(1), &SAY).unwrap();
        queue.push(ClientId(2), &SAY).unwrap();
    }
    let of_newcomer = (0..45).filter(|_| queue.pop(1).unwrap().client.0 == 2);
    assert_eq!(of_newcomer.count(), 5);
    assert_eq!((0..35).filter(|_| queue.pop(1).is_some()).count(), 35);
    assert!(queue.pop(1).is_none());
}

#[test]
fn unauthenticated_backlog_has_its_own_limit() {
    let mut queue = queue_with_players(LIMITS, 1);
    for client in 2..8 {
        queue.open(ClientId(client));
        queue.acknowledge(ClientId(client));
    }
    let accepted = (2..8)
        .flat_map(|client| [client; 4])
        .filter(|&client| queue.push(ClientId(client), &SAY).is_ok());
    assert_eq!(accepted.count(), 5, "two each, five in all");
    assert!(queue.push(ClientId(1), &SAY).is_ok());
    // A client that has logged in does not count as unauthenticated.
    queue.promote(ClientId(2));
    assert!(queue.push(ClientId(7), &SAY).is_ok());
    let order: Vec<u32> = std::iter::from_fn(|| Some(queue.pop(1)?.client.0)).collect();
    assert_eq!(order.len(), 7);
    assert_eq!(order.iter().filter(|&&client| client == 2).count(), 2);
}

#[test]
fn flooding_client_is_reported_once_and_then_refused() {
    let limits = InboxLimits {
        quota: ClientQuota {
            messages_per_s: 20,
            messages_max: 5,
            violations_max: 30,
            ..ClientQuota::default()
        },
        backlog_max: 1_000,
        client_backlog_max: 100,
        ..LIMITS
    };
    let mut queue = queue_with_players(limits, 2);
    let accepted = (0..200).filter(|_| queue.push(ClientId(1), &TURN).is_ok());
    assert_eq!(accepted.count(), 5);
    assert!(queue.push(ClientId(2), &TURN).is_ok());
    let mut flooding = Vec::new();
    queue.take_flooding(&mut flooding);
    assert_eq!(flooding, [ClientId(1)]);
    queue.begin_tick(1_000, limits);
    assert_eq!(
        queue.push(ClientId(1), &TURN),
        Err(ReceiveError::OverQuota(ClientId(1)))
    );
    queue.take_flooding(&mut flooding);
    assert_eq!(flooding.len(), 1);
}

#[test]
fn login_without_room_is_reported_once_and_ends_the_client() {
    let login = [1, 7];
    let mut queue = MessageQueue::new(LIMITS);
    (1..=7).map(ClientId).for_each(|client| queue.open(client));
    (1..=6)
        .map(ClientId)
        .for_each(|client| queue.acknowledge(client));
    let mut shut_out = Vec::new();
    for client in (1..=5).map(ClientId) {
        assert_eq!(queue.push(client, &login), Ok(()));
    }
    assert_eq!(
        queue.push(ClientId(6), &SAY),
        Err(ReceiveError::QueueFull(5))
    );
    queue.take_shut_out(&mut shut_out);
    assert_eq!(shut_out, [], "only a login has to be answered");
    for client in [6, 6, 7].map(ClientId) {
        assert_eq!(queue.push(client, &login), Err(ReceiveError::QueueFull(5)));
    }
    queue.take_shut_out(&mut shut_out);
    assert_eq!(
        shut_out,
        [ClientId(6)],
        "once, and only of known connections"
    );
    queue.acknowledge(ClientId(7));
    queue.take_shut_out(&mut shut_out);
    assert_eq!(shut_out, [ClientId(6), ClientId(7)]);
    while queue.pop(1).is_some() {}
    assert_eq!(
        queue.push(ClientId(6), &SAY),
        Err(ReceiveError::QueueFull(0))
    );
    assert_eq!(queue.counters().shut_out, 2);

    // With one login in its own queue, a client whose second one is refused gets the reply to the first.
    let own_max = InboxLimits {
        unauthenticated_client_backlog_max: 1,
        ..LIMITS
    };
    let mut queue = MessageQueue::new(own_max);
    queue.open(ClientId(1));
    queue.acknowledge(ClientId(1));
    assert_eq!(queue.push(ClientId(1), &login), Ok(()));
    assert!(queue.push(ClientId(1), &login).is_err());
    shut_out.clear();
    queue.take_shut_out(&mut shut_out);
    assert_eq!(shut_out, []);
}

#[test]
fn disconnect_is_reported_after_the_last_message() {
    let mut queue = queue_with_players(LIMITS, 2);
    queue.push(ClientId(1), &SAY).unwrap();
    let mut ended = Vec::new();
    queue.disconnect(ClientId(1), DisconnectReason::Closed);
    queue.disconnect(ClientId(2), DisconnectReason::Lost);
    queue.disconnect(ClientId(2), DisconnectReason::Closed);
    assert!(queue.push(ClientId(1), &SAY).is_err());
    queue.take_ended(&mut ended);
    assert_eq!(ended, [(ClientId(2), DisconnectReason::Lost)]);
    assert!(queue.pop(1).is_some());
    queue.take_ended(&mut ended);
    assert_eq!(ended.last(), Some(&(ClientId(1), DisconnectReason::Closed)));
}

/// One step of a script: the client and the operation.
fn steps() -> impl Strategy<Value = Vec<(u32, u8)>> {
    prop::collection::vec((1..7_u32, 0..12_u8), 0..300)
}

proptest! {
    #![proptest_config(draws!())]

    /// Compares with a model of one list per client: nothing is lost, duplicated or reordered within its client, no limit is exceeded, and
    /// no client waits for another's second message.
    #[test]
    fn accepted_messages_come_out_once_in_client_order(script in steps()) {
        let mut queue = MessageQueue::new(LIMITS);
        // By index: the client id, which is not reused, whether it is a player, and its waiting messages.
        let mut model: BTreeMap<u32, (u32, bool, VecDeque<u8>)> = BTreeMap::new();
        let (mut stamp, mut made) = (0_u8, 0);
        for (place, step) in script {
            let known = model.get(&place).map(|lane| lane.0);
            let id = ClientId(known.unwrap_or(u32::MAX));
            match step {
                0 | 1 if known.is_none() => {
                    made += 1;
                    queue.open(ClientId(made));
                    queue.acknowledge(ClientId(made));
                    model.insert(place, (made, false, VecDeque::new()));
                }
                1 => {
                    queue.promote(id);
                    if let Some(lane) = model.get_mut(&place) {
                        lane.1 = true;
                    }
                }
                2 => {
                    queue.close(id);
                    model.remove(&place);
                }
                3..7 => {
                    let taken = queue.pop(1);
                    let waiting: usize = model.values().map(|lane| lane.2.len()).sum();
                    prop_assert_eq!(taken.is_some(), waiting > 0);
                    if let Some(message) = taken {
                        let lane = model.values_mut().find(|lane| lane.0 == message.client.0);
                        prop_assert_eq!(lane.unwrap().2.pop_front(), Some(message.bytes[1]));
                    }
                }
                _ => {
                    stamp = stamp.wrapping_add(1);
                    let sum = |of_player: bool| {
                        let of = model.values().filter(|lane| lane.1 == of_player);
                        of.map(|lane| lane.2.len()).sum::<usize>()
                    };
                    let (players, newcomers) = (sum(true), sum(false));
                    let has_room = model.get(&place).is_some_and(|lane| {
                        let is_first = lane.1 && lane.2.is_empty();
                        let (max, all) = if lane.1 { (4, 0) } else { (2, newcomers) };
                        is_first || (lane.2.len() < max && all < 5 && players + newcomers < 10)
                    });
                    let accepted = queue.push(id, &[2, stamp]).is_ok();
                    prop_assert_eq!(accepted, has_room);
                    if let Some(lane) = model.get_mut(&place).filter(|_| accepted) {
                        lane.2.push_back(stamp);
                    }
                }
            }
            let waiting: usize = model.values().map(|lane| lane.2.len()).sum();
            prop_assert_eq!(queue.len(), waiting);
            prop_assert_eq!(queue.iter().count(), waiting);
            let counters = queue.counters();
            prop_assert_eq!(counters.received, counters.handled + counters.refused + queue.len() as u64);
        }
    }
}

#[test]
fn player_without_backlog_is_accepted_despite_others_backlog() {
    let mut queue = queue_with_players(LIMITS, 5);
    for client in [1, 2, 3].map(ClientId) {
        let sent = (0..4).filter(|_| queue.push(client, &SAY).is_ok());
        assert!(sent.count() >= 2);
    }
    assert_eq!(queue.len(), 10);
    for client in [4, 5].map(ClientId) {
        assert_eq!(queue.push(client, &SAY), Ok(()));
        assert_eq!(
            queue.push(client, &SAY),
            Err(ReceiveError::QueueFull(11 + client.0 as usize - 4))
        );
    }
}

#[test]
fn an_input_after_a_stale_last_one_is_not_lost() {
    for before in 0..4 {
        let limits = InboxLimits {
            client_backlog_max: before + 1,
            ..LIMITS
        };
        let mut queue = queue_with_players(limits, 1);
        let mut offer = |bytes: &[u8]| queue.push(ClientId(1), bytes).unwrap();
        (0..before).for_each(|_| offer(&SAY));
        // The second and the third replace the last one of the queue.
        (1..4).for_each(|turn| offer(&[4, turn]));
        let taken = std::iter::from_fn(|| Some(queue.pop(1)?.bytes.to_vec()));
        let mut expected = vec![SAY.to_vec(); before as usize];
        expected.push(vec![4, 3]);
        assert_eq!(taken.collect::<Vec<_>>(), expected);
        assert!(queue.is_empty());
    }
}

#[test]
fn floods_of_an_unknown_client_are_reported_once_it_is_known() {
    let mut limits = LIMITS;
    limits.quota.messages_max = 1;
    limits.quota.violations_max = 1;
    let mut queue = MessageQueue::new(limits);
    let [flooder, leaver] = [1, 2].map(ClientId);
    queue.open(flooder);
    queue.open(leaver);
    for _ in 0..9 {
        queue.push(flooder, &SAY).ok();
    }
    queue.disconnect(leaver, DisconnectReason::Closed);
    let (mut flooding, mut ended) = (Vec::new(), Vec::new());
    queue.take_flooding(&mut flooding);
    queue.take_ended(&mut ended);
    assert!(flooding.is_empty() && ended.is_empty());
    queue.acknowledge(flooder);
    queue.acknowledge(leaver);
    queue.take_flooding(&mut flooding);
    queue.take_ended(&mut ended);
    assert_eq!(flooding, [flooder]);
    assert_eq!(ended, [(leaver, DisconnectReason::Closed)]);
}
