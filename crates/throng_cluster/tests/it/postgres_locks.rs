//! Transactions about matches lock players in the order of their ids. Otherwise, two of them can wait for each other until the server notices it
//! after a second.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.

use std::thread;

use throng_cluster::NodeRun;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{opened, started};

/// All requests are at this time of the store, so no node is ever late.
const AT_MS: u64 = 1;

/// A node; a match of a dead run with the player 9, and a later one with the player 3; a ticket of the players 19 and 13.
fn open_matches(schema: &TestSchema) -> NodeRun {
    let run = started(&mut opened(schema), "n1", AT_MS);
    schema.operator().execute(
        "INSERT INTO cluster_match
            SELECT 1, nth, 'duel', 1, '{}', '{}', '{}', '{}', 8, 1, TRUE, 1 FROM unnest('{1, 2}'::BIGINT[]) AS nth;
        INSERT INTO cluster_match_player (player, place, home_node, home_scene, match_epoch, match_nth)
            SELECT player, 0, 0, 'town', 1, nth FROM unnest('{9, 3}'::BIGINT[], '{1, 2}'::BIGINT[]) AS new (player, nth);
        INSERT INTO cluster_ticket (node, run, nth, mode, power, skill, level, leader_strength, regions, roles, avoid, waiting_since_ms)
            VALUES (8, 1, 1, 'duel', 0, 0, 0, 0, 0, '', '{}', 0);
        INSERT INTO cluster_match_player (player, ticket_node, ticket_run, ticket_nth, place, home_node, home_scene)
            SELECT player, 8, 1, 1, 0, 0, 'town' FROM unnest('{19, 13}'::BIGINT[]) AS new (player);",
    );
    run
}

/// Another transaction has locked the first player. While the call waits for it, the second one must be free.
fn assert_locks_first(schema: &TestSchema, [first, second]: [i64; 2], call: &str) {
    let locked = |player| {
        format!(
            "SELECT player FROM cluster_match_player WHERE player = {player} FOR UPDATE SKIP LOCKED"
        )
    };
    let (holder, watcher) = (schema.operator(), schema.operator());
    holder.execute("BEGIN");
    assert_eq!(holder.query::<i64>(&locked(first)), [first]);
    let pid: i32 = holder.query("SELECT pg_backend_pid()")[0];
    let waiting =
        format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
    thread::scope(|scope| {
        let called = scope.spawn(|| schema.operator().query::<i32>(&format!("SELECT {call}")));
        while watcher.query::<i64>(&waiting) == [0] && !called.is_finished() {
            thread::yield_now();
        }
        let waits = !called.is_finished();
        let free = watcher.query::<i64>(&locked(second));
        // Before any assertion: otherwise the call would wait forever.
        holder.execute("COMMIT");
        assert_eq!(called.join().unwrap(), [0], "{call}");
        assert!(waits, "{call} does not lock {first}");
        assert_eq!(free, [second], "{call} locks {second} before {first}");
    });
}

#[test]
fn an_abort_of_several_matches_locks_their_players_in_order() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let NodeRun { node, run } = open_matches(&schema);
    let call = format!("cluster_abort_late({}, {run}, 64, 1000, {AT_MS})", node.0);
    assert_locks_first(&schema, [3, 9], &call);
}

#[test]
fn a_cancelled_ticket_locks_its_players_in_order() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let NodeRun { node, run } = open_matches(&schema);
    let call = format!("cluster_cancel_ticket({}, {run}, 8, 1, 1, {AT_MS})", node.0);
    assert_locks_first(&schema, [13, 19], &call);
}
