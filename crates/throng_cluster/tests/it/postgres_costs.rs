//! How many rows the functions of the database read. What they return is tested elsewhere.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! The tables are like those with which former functions read too much. They have no statistics yet, as in the first minute of a cluster.

use throng_cluster::NodeRun;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{opened, started};

/// All requests are at this time of the store, so no node is ever late.
const AT_MS: u64 = 1;

/// Two nodes with this many players each, whose records have this many bytes. Returns the run of the first node, which has the players from 0 on.
fn open_nodes(schema: &TestSchema, players: u64, record_bytes: usize) -> NodeRun {
    let mut rows = opened(schema);
    let runs = ["n1", "n2"].map(|name| started(&mut rows, name, AT_MS));
    for (nth, NodeRun { node, run }) in (0..).zip(runs) {
        let (first, last) = (nth * players, (nth + 1) * players - 1);
        schema.operator().execute(&format!(
            "INSERT INTO cluster_player (player, node, run, epoch, record)
            SELECT player, {}, {run}, 1, decode(repeat('07', {record_bytes}), 'hex') FROM generate_series({first}, {last}) AS player",
            node.0
        ));
    }
    runs[0]
}

/// The rows and index entries that a call reads.
fn reads_of(schema: &TestSchema, call: &str) -> i64 {
    let statement = format!(
        "WITH called AS MATERIALIZED (SELECT count(*) FROM {call})
        SELECT (SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_scan, 0) + coalesce(idx_tup_fetch, 0))::BIGINT
            FROM pg_stat_xact_user_tables WHERE schemaname = current_schema()) FROM called"
    );
    schema.operator().query(&statement)[0]
}

#[test]
fn a_claim_reads_no_players_of_living_nodes() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let NodeRun { node, run } = open_nodes(&schema, 400, 0);
    let reads = reads_of(
        &schema,
        &format!(
            "cluster_claim_players({}, {run}, 1000, '{{}}', '{{}}', '{{}}', {AT_MS})",
            node.0
        ),
    );
    assert!((1..100).contains(&reads), "{reads} reads");
}

#[test]
fn adopted_players_are_found_by_their_keys() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let NodeRun { node, run } = open_nodes(&schema, 4_000, 120);
    let players = "ARRAY(SELECT generate_series(0::BIGINT, 63))";
    let epochs = "ARRAY(SELECT 1::BIGINT FROM generate_series(0, 63))";
    let adopt = format!("cluster_adopt({}, {run}, {players}, {epochs})", node.0);
    let reads = reads_of(&schema, &adopt);
    assert!((64..1_000).contains(&reads), "{reads} reads");
}
