//! How many rows the functions of the database read. What they return is tested elsewhere.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.

use throng_cluster::ClusterRequest;
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{done, opened, started};

/// All requests are at this time of the store, so no node is ever late.
const AT_MS: u64 = 1;

/// The players of each of the two nodes.
const PLAYERS: u64 = 400;

/// Two nodes with their players. Returns the number of the first node and its run.
fn open_nodes(schema: &TestSchema) -> (u32, u64) {
    let mut rows = opened(schema);
    let runs = ["n1", "n2"].map(|name| started(&mut rows, name, AT_MS));
    for (nth, run) in (0..).zip(runs) {
        for player in 0..PLAYERS {
            let player = PlayerId(nth << 32 | player);
            let epoch = 0;
            let log_in = ClusterRequest::LogIn { run, player, epoch };
            done(&mut rows, &log_in, AT_MS);
        }
    }
    (runs[0].node.0, runs[0].run)
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
    let (node, run) = open_nodes(&schema);
    let claim =
        format!("cluster_claim_players({node}, {run}, 1000, '{{}}', '{{}}', '{{}}', {AT_MS})");
    let reads = reads_of(&schema, &claim);
    assert!((1..100).contains(&reads), "{reads} reads");
}

#[test]
fn adopted_players_are_found_by_their_keys() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let (node, run) = open_nodes(&schema);
    let players = "ARRAY(SELECT generate_series(0::BIGINT, 63))";
    let epochs = "ARRAY(SELECT 1::BIGINT FROM generate_series(0, 63))";
    let adopt = format!("cluster_adopt({node}, {run}, {players}, {epochs})");
    let reads = reads_of(&schema, &adopt);
    // A few for each of the 64 players, or all rows a few times; not all rows of the node for each of them.
    assert!((64..8_000).contains(&reads), "{reads} reads");
}
