//! Rows on the Postgres server of a test.

use std::fmt::Debug;
use std::time::Duration;

use throng_cluster::{ClusterReply, ClusterRequest, ClusterRows, NodeRun, PostgresRows, QuietNode};
use throng_core::ids::PlayerId;
use throng_store::testing::TestSchema;

/// Timeout of requests, long enough for a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Players of random requests, also with ids that are negative as integers of Postgres.
pub const PLAYERS: [PlayerId; 12] = [
    PlayerId(0),
    PlayerId(1),
    PlayerId(2),
    PlayerId(3),
    PlayerId(4),
    PlayerId(5),
    PlayerId(6),
    PlayerId(7),
    PlayerId(8),
    PlayerId(1 << 40),
    PlayerId(1 << 63),
    PlayerId(u64::MAX),
];

/// Connects to the rows of a schema.
pub fn opened(schema: &TestSchema) -> PostgresRows {
    PostgresRows::new(&schema.source(), TIMEOUT)
}

/// Lets the requests to a schema wait for locked rows for longer than their timeout, and not only for a second, which other connections may
/// need on a busy machine. Requests that wait for each other still fail.
pub fn wait_for_locks(schema: &TestSchema) {
    schema.source().migrate().unwrap();
    let name = &schema.name;
    schema.operator().execute(&format!(
        "DO $$
        DECLARE
            _function REGPROCEDURE;
        BEGIN
            FOR _function IN SELECT oid::REGPROCEDURE FROM pg_proc WHERE pronamespace = '{name}'::REGNAMESPACE AND provolatile = 'v' LOOP
                EXECUTE format('ALTER FUNCTION %s SET lock_timeout = ''20min''', _function);
            END LOOP;
        END $$"
    ));
}

/// Starts a run of a node at a time of the store.
pub fn started(rows: &mut PostgresRows, name: &str, at_ms: u64) -> NodeRun {
    let name = name.to_owned();
    match rows.execute_at(&ClusterRequest::StartRun { name }, Some(at_ms)) {
        Ok(ClusterReply::Started(run)) => run,
        other => panic!("{other:?}"),
    }
}

/// Executes a request that must succeed.
pub fn done(rows: &mut PostgresRows, request: &ClusterRequest, at_ms: u64) {
    let reply = rows.execute_at(request, Some(at_ms));
    assert_eq!(reply, Ok(ClusterReply::Done), "{request:?}");
}

pub const fn heartbeat(run: NodeRun) -> ClusterRequest {
    ClusterRequest::Heartbeat { run, load: 0 }
}

/// How many requests a comparison executes: `THRONG_REQUESTS`, or this many.
pub fn requests_wanted(default: u64) -> u64 {
    let wanted = std::env::var("THRONG_REQUESTS").ok();
    wanted.map_or(default, |wanted| wanted.parse().unwrap())
}

/// The name of the variant of a request.
pub fn name_of(request: &impl Debug) -> String {
    let text = format!("{request:?}");
    text.split([' ', '{']).next().unwrap().to_owned()
}

/// Executes a request on the server and in memory at the same time of the store. Both give the same reply, which is returned.
pub fn execute_both(
    stored: &mut PostgresRows,
    model: &mut ClusterRows,
    request: &ClusterRequest,
    (seed, at_ms): (u64, u64),
) -> ClusterReply {
    let expected = model.execute(request.clone(), at_ms);
    let reply = stored.execute_at(request, Some(at_ms));
    assert_eq!(
        reply,
        Ok(expected.clone()),
        "seed {seed}, {at_ms} ms: {request:?}"
    );
    expected
}

/// The quiet nodes, as all of these runs see them.
pub fn quiet_nodes(rows: &ClusterRows, runs: &[NodeRun], now_ms: u64) -> Vec<QuietNode> {
    let claims = runs.iter().map(|&run| {
        let claim = ClusterRequest::ClaimLate {
            run,
            players_max: 0,
            unheard: Vec::new(),
        };
        rows.clone().execute(claim, now_ms)
    });
    let quiet = claims.flat_map(|reply| match reply {
        ClusterReply::Claimed { quiet, .. } => quiet,
        _ => Vec::new(),
    });
    quiet.collect()
}
