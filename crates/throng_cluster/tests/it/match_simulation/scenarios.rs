//! Single failures at chosen times.

use std::collections::BTreeSet;

use throng_cluster::{MatchState, TicketId};
use throng_core::ids::PlayerId;

use crate::match_simulation::world::{MatchCluster, NODES};
use crate::simulation::faults::FaultRates;

fn steps(cluster: &mut MatchCluster, duration_ms: u64) {
    let until_ms = cluster.now_ms + duration_ms;
    while cluster.now_ms < until_ms {
        cluster.step();
    }
}

/// Steps until a condition holds, for at most ten seconds. Returns the time it took, in milliseconds.
fn wait(cluster: &mut MatchCluster, condition: impl Fn(&MatchCluster) -> bool) -> u64 {
    let since_ms = cluster.now_ms;
    while !condition(cluster) {
        assert!(cluster.now_ms < since_ms + 10_000, "{}", cluster.place());
        cluster.step();
    }
    cluster.now_ms - since_ms
}

/// The node that is the matcher.
fn matcher(cluster: &MatchCluster) -> Option<usize> {
    let processes = cluster.processes.iter();
    processes
        .enumerate()
        .find(|(_, process)| {
            let matches = process.node.as_ref().map(|(_, matches)| matches);
            matches.is_some_and(|matches| matches.matcher_epoch().is_some())
        })
        .map(|(nth, _)| nth)
}

/// A cluster in which the players 0 and 1 are in a duel. Returns their tickets, their home nodes, and the node of the duel.
fn duel(seed: u64) -> (MatchCluster, [TicketId; 2], [usize; 2], usize) {
    let mut cluster = MatchCluster::new(seed, FaultRates::NONE);
    cluster.matches_fail = false;
    steps(&mut cluster, 2_000);
    let players = [PlayerId(0), PlayerId(1)];
    let homes = players.map(|player| cluster.homes(player)[0]);
    let tickets = [0, 1].map(|nth| {
        let player = [players[nth]];
        cluster.queue(homes[nth], "duel", &player, 0).unwrap()
    });
    let all_at = |cluster: &MatchCluster| {
        let at = players.map(|player| cluster.homes(player));
        let same = at[0] == at[1] && !at[0].is_empty();
        let mut open = cluster.rows.tickets().filter_map(|(.., in_match)| in_match);
        same && open.all(|id| cluster.state(id) == Some(MatchState::Ready))
    };
    wait(&mut cluster, all_at);
    let host = cluster.homes(players[0])[0];
    (cluster, tickets, homes, host)
}

/// A duel on a node that is not the home of its players, whose homes are different.
fn duel_away() -> (MatchCluster, [TicketId; 2], [usize; 2], usize) {
    (0..100)
        .map(duel)
        .find(|(_, _, homes, host)| homes[0] != homes[1] && !homes.contains(host))
        .unwrap()
}

#[test]
fn players_of_a_match_whose_node_dies_go_home_and_play_again() {
    let (mut cluster, tickets, homes, host) = duel_away();
    cluster.kill(host, u64::MAX);
    let waits_or_plays = |cluster: &MatchCluster| {
        let known: BTreeSet<TicketId> = cluster
            .rows
            .tickets()
            .map(|(ticket, ..)| ticket.id)
            .collect();
        assert!(tickets.iter().all(|id| known.contains(id)));
        let mut tickets = cluster.rows.tickets();
        tickets.all(|(_, since_ms, in_match)| {
            assert!(since_ms < 3_000);
            // The second match is on another node.
            let second = in_match.and_then(|id| cluster.rows.match_state(id));
            second.is_some_and(|(state, run)| {
                state == MatchState::Ready && run.node.0 as usize != host
            })
        })
    };
    let taken_ms = wait(&mut cluster, waits_or_plays);
    assert!(taken_ms < 5_000, "{taken_ms}");
    // The second match ends, and both go home.
    wait(&mut cluster, |cluster| {
        let [one, other] = [0, 1].map(|player| cluster.homes(PlayerId(player)));
        cluster.rows.match_players().next().is_none() && one == [homes[0]] && other == [homes[1]]
    });
    let figures = cluster.figures();
    assert_eq!((figures.aborted, figures.ended), (1, 1), "{figures:?}");
}

#[test]
fn player_whose_home_is_dead_stays_on_another_node() {
    let (mut cluster, _, homes, _) = duel_away();
    cluster.kill(homes[0], u64::MAX);
    // The player stays at the node of the match. If it was sent home before that node was late, another node has claimed it.
    wait(&mut cluster, |cluster| {
        let [one, other] = [0, 1].map(|player| cluster.homes(PlayerId(player)));
        let is_elsewhere = one.len() == 1 && one != [homes[0]];
        cluster.rows.match_players().next().is_none() && is_elsewhere && other == [homes[1]]
    });
    assert_eq!(cluster.figures().home, 2);
}

#[test]
fn waiting_time_survives_the_death_of_each_matcher() {
    let mut cluster = MatchCluster::new(7, FaultRates::NONE);
    steps(&mut cluster, 2_000);
    let players = [PlayerId(0), PlayerId(1)];
    for (player, skill) in players.into_iter().zip([0, 1_200]) {
        let home = cluster.homes(player)[0];
        cluster.queue(home, "slow", &[player], skill).unwrap();
    }
    // They fit after twelve seconds, and every four seconds the matcher dies.
    let mut killed = 0;
    while cluster
        .rows
        .tickets()
        .all(|(.., in_match)| in_match.is_none())
    {
        steps(&mut cluster, 10);
        if cluster.now_ms.is_multiple_of(4_000)
            && let Some(nth) = matcher(&cluster)
        {
            let restart_ms = cluster.now_ms + 2_500;
            cluster.kill(nth, restart_ms);
            killed += 1;
        }
        assert!(cluster.now_ms < 20_000, "not matched in time");
    }
    assert!(killed >= 3 && cluster.now_ms >= 14_000, "{killed} killed");
    assert!(cluster.figures().roles_taken >= 3);
}

#[test]
fn node_that_is_the_matcher_again_reads_all_tickets() {
    let mut cluster = MatchCluster::new(8, FaultRates::NONE);
    // Only two nodes, so that the role comes back.
    cluster.kill(2, u64::MAX);
    cluster.kill(3, u64::MAX);
    steps(&mut cluster, 3_000);
    let players = [PlayerId(0), PlayerId(1)];
    for (player, skill) in players.into_iter().zip([0, 2_000]) {
        let home = cluster.homes(player)[0];
        cluster.queue(home, "slow", &[player], skill).unwrap();
    }
    // They fit after twenty seconds, and every four seconds the matcher is cut off from the store.
    let (mut matchers, since_ms) = (Vec::new(), cluster.now_ms);
    while cluster
        .rows
        .tickets()
        .all(|(.., in_match)| in_match.is_none())
    {
        steps(&mut cluster, 10);
        if cluster.now_ms.is_multiple_of(4_000)
            && let Some(nth) = matcher(&cluster)
        {
            let until_ms = cluster.now_ms + 2_500;
            cluster.cut(nth, until_ms);
            matchers.push(nth);
        }
        assert!(cluster.now_ms < since_ms + 25_000, "not matched in time");
    }
    assert!(matchers.contains(&0) && matchers.contains(&1) && matchers.len() > 3);
}

#[test]
fn matches_go_to_the_nodes_with_the_least_load() {
    let mut cluster = MatchCluster::new(3, FaultRates::NONE);
    // A match that is aborted is formed again, with other loads.
    cluster.matches_fail = false;
    steps(&mut cluster, 2_000);
    for player in (0..24).map(PlayerId) {
        let home = cluster.homes(player)[0];
        cluster.queue(home, "duel", &[player], 0).unwrap();
    }
    wait(&mut cluster, |cluster| {
        let mut tickets = cluster.rows.tickets();
        cluster.rows.tickets().count() == 24 && tickets.all(|(.., in_match)| in_match.is_some())
    });
    let mut counts = [0; NODES];
    let hosts: BTreeSet<_> = cluster.rows.tickets().filter_map(|(.., id)| id).collect();
    for id in hosts {
        counts[cluster.rows.match_state(id).unwrap().1.node.0 as usize] += 1;
    }
    assert_eq!(counts, [3; NODES]);
}
