//! An operator sees the nodes, scenes, hand-offs and matches of the rows on a Postgres server.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! Every test has its own schema there.

use throng_cluster::{
    Arrival, ClusterOverview, ClusterRecord, ClusterReply, ClusterRequest, ClusterSave,
    ClusterStore, ClusterTicket, GatewayClients, HandOffOverview, MatchCounts, MatchReply,
    MatchRequest, NodeReport, NodeRun, PostgresRows, ReportRequest, SceneDeclaration, ScenePlayers,
    SceneRequest, TicketHome, TicketId, TicketMember, TicketRating,
};
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::opened;

/// Executes a request at the server's time.
fn execute(rows: &mut PostgresRows, request: ClusterRequest) -> ClusterReply {
    let reply = rows.execute(&request).unwrap();
    assert!(!matches!(reply, ClusterReply::Refused(_)), "{request:?}");
    reply
}

fn started(rows: &mut PostgresRows, name: &str) -> NodeRun {
    let name = name.to_owned();
    match execute(rows, ClusterRequest::StartRun { name }) {
        ClusterReply::Started(run) => run,
        other => panic!("{other:?}"),
    }
}

/// Starts nodes whose heartbeats are not late however slow this test is.
fn started_for_an_hour<const N: usize>(
    (schema, rows): (&TestSchema, &mut PostgresRows),
    names: [&str; N],
) -> [NodeRun; N] {
    let runs = names.map(|name| started(rows, name));
    for run in runs {
        execute(rows, ClusterRequest::Heartbeat { run, load: 7 });
    }
    let statement = "UPDATE cluster_node SET heartbeat_ms = heartbeat_ms + 3600000";
    schema.operator().execute(statement);
    runs
}

fn log_in(rows: &mut PostgresRows, run: NodeRun, player: PlayerId) {
    let epoch = 0;
    execute(rows, ClusterRequest::LogIn { run, player, epoch });
}

fn adopt(rows: &mut PostgresRows, run: NodeRun, player: PlayerId, epoch: u64) {
    let arrivals = vec![Arrival { player, epoch }];
    execute(rows, ClusterRequest::Adopt { run, arrivals });
}

fn hand_off(rows: &mut PostgresRows, run: NodeRun, to: NodeRun, player: PlayerId) {
    let (epoch, bytes) = (1, vec![1]);
    let record = ClusterRecord { revision: 1, bytes };
    let request = ClusterRequest::HandOff {
        run,
        players: vec![ClusterSave {
            player,
            epoch,
            record,
        }],
        to,
        saves: Vec::new(),
    };
    execute(rows, request);
}

fn ticket(run: NodeRun, player: PlayerId) -> ClusterTicket {
    ClusterTicket {
        id: TicketId { run, nth: 1 },
        mode: "duel".to_owned(),
        members: vec![TicketMember {
            player,
            home: TicketHome {
                node: run.node,
                scene: "town".to_owned(),
            },
        }],
        rating: TicketRating {
            power: 1,
            skill: 0,
            level: 1,
            leader_strength: 1,
            regions: 1,
            roles: [0; 4],
            avoid: Vec::new(),
        },
    }
}

/// Three scenes; this node runs one of them.
fn add_scenes(rows: &mut PostgresRows, run: NodeRun) {
    for name in ["forest", "cave", "town"] {
        let scenes = vec![SceneDeclaration {
            name: name.to_owned(),
            specification: vec![0; 1000],
            pinned_to: (name == "town").then(|| "gone".to_owned()),
        }];
        let declare = SceneRequest::Declare { run, scenes };
        execute(rows, ClusterRequest::Scene(declare));
    }
    let claim = SceneRequest::Claim {
        run,
        scene: "forest".to_owned(),
        epoch: 0,
    };
    execute(rows, ClusterRequest::Scene(claim));
}

#[test]
fn overview_shows_nodes_scenes_hand_offs_and_tickets() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let [b, a, gone] = started_for_an_hour((&schema, &mut rows), ["b<b>", "a", "gone"]);
    execute(&mut rows, ClusterRequest::EndRun { run: gone });
    add_scenes(&mut rows, a);
    // Two stay, one logs in, and two are handed off; one of them is there.
    let ids = [
        PlayerId(1),
        PlayerId(2),
        PlayerId(3),
        PlayerId(1 << 63),
        PlayerId(5),
    ];
    for player in ids {
        log_in(&mut rows, a, player);
    }
    for player in [ids[0], ids[1], ids[3], ids[4]] {
        adopt(&mut rows, a, player, 1);
    }
    for player in [ids[3], ids[4]] {
        hand_off(&mut rows, a, b, player);
    }
    adopt(&mut rows, b, ids[4], 2);
    let add = MatchRequest::AddTicket {
        ticket: ticket(a, ids[0]),
    };
    let reply = execute(&mut rows, ClusterRequest::Match(add));
    assert_eq!(reply, ClusterReply::Match(MatchReply::Done));

    let overview = rows.read_cluster_overview(2).unwrap();
    let nodes = overview.nodes.iter();
    let nodes = nodes.map(|node| (&*node.name, node.players, node.scenes, node.load));
    assert_eq!(Vec::from_iter(nodes), [("a", 3, 1, 7), ("b<b>", 2, 0, 7)]);
    assert_eq!(overview.nodes_total, 3);
    let scenes = overview.scenes.iter();
    let scenes = scenes.map(|scene| (&*scene.name, scene.is_running, scene.pinned_to.as_deref()));
    // Those that wait for a node come first.
    let expected = [("cave", false, None), ("town", false, Some("gone"))];
    assert_eq!(Vec::from_iter(scenes), expected);
    assert_eq!(overview.scenes_total, 3);
    let [flying] = &*overview.hand_offs else {
        panic!("{:?}", overview.hand_offs);
    };
    let expected = HandOffOverview {
        player: ids[3],
        from: "a".to_owned(),
        to: "b<b>".to_owned(),
        is_target_alive: true,
        age_ms: flying.age_ms,
    };
    assert_eq!(*flying, expected);
    assert_eq!((overview.hand_offs_total, overview.logins), (1, 1));
    let waiting = MatchCounts {
        waiting_tickets: 1,
        ..MatchCounts::default()
    };
    assert_eq!(overview.matches, waiting);

    let all = rows.read_cluster_overview(100).unwrap();
    let last = all.nodes.last().unwrap();
    assert!(
        last.name == "gone" && last.is_dead && !last.is_alive,
        "{last:?}"
    );
    let running = all.scenes.last().unwrap();
    assert_eq!(
        (&*running.name, running.node.as_deref()),
        ("forest", Some("a"))
    );
    assert_eq!((running.is_running, running.epoch), (true, 1));
}

/// Ages count from the change of the owner, and end when the player is adopted.
#[test]
fn hand_off_to_a_dead_node_gets_older() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let [from, to] = started_for_an_hour((&schema, &mut rows), ["from", "to"]);
    for player in [PlayerId(1), PlayerId(2)] {
        log_in(&mut rows, from, player);
        adopt(&mut rows, from, player, 1);
        hand_off(&mut rows, from, to, player);
    }
    schema
        .operator()
        .execute("UPDATE cluster_player SET given_ms = given_ms - 7000 WHERE player = 2");
    execute(&mut rows, ClusterRequest::EndRun { run: to });
    let overview = rows.read_cluster_overview(1).unwrap();
    let [oldest] = &*overview.hand_offs else {
        panic!("{:?}", overview.hand_offs);
    };
    assert_eq!(oldest.player, PlayerId(2));
    assert!(
        oldest.age_ms >= 7_000 && !oldest.is_target_alive,
        "{oldest:?}"
    );
    assert_eq!(overview.hand_offs_total, 2);
}

#[test]
fn claimed_player_comes_from_the_dead_node() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let [from, to] = started_for_an_hour((&schema, &mut rows), ["from", "to"]);
    let player = PlayerId(1);
    log_in(&mut rows, from, player);
    adopt(&mut rows, from, player, 1);
    hand_off(&mut rows, from, to, player);
    execute(&mut rows, ClusterRequest::EndRun { run: to });
    let claim = ClusterRequest::ClaimLate {
        run: from,
        players_max: 10,
        unheard: Vec::new(),
    };
    execute(&mut rows, claim);
    let overview = rows.read_cluster_overview(10).unwrap();
    let [claimed] = &*overview.hand_offs else {
        panic!("{:?}", overview.hand_offs);
    };
    assert_eq!((&*claimed.from, &*claimed.to), ("to", "from"));
}

/// A node reports the players of scenes, and for gateways their clients and those that are routed to it. The reports do not become old however
/// slow this test is.
fn report(
    (schema, rows): (&TestSchema, &mut PostgresRows),
    run: NodeRun,
    scenes: &[(&str, u32)],
    gateways: &[(&str, u32, u32)],
) {
    let scenes = scenes.iter().map(|(scene, players)| ScenePlayers {
        scene: (*scene).to_owned(),
        players: *players,
    });
    let gateways = gateways
        .iter()
        .map(|(gateway, connected, routed)| GatewayClients {
            gateway: (*gateway).to_owned(),
            connected: *connected,
            routed: *routed,
        });
    let report = NodeReport {
        scenes: scenes.collect(),
        gateways: gateways.collect(),
    };
    let write = ReportRequest::Write { run, report };
    assert_eq!(
        execute(rows, ClusterRequest::Report(write)),
        ClusterReply::Done
    );
    let statement = "UPDATE cluster_report SET reported_ms = cluster_now_ms(NULL) + 3600000";
    schema.operator().execute(statement);
}

/// The players of each scene by name.
fn scene_players(overview: &ClusterOverview) -> Vec<(&str, Option<u32>)> {
    let scenes = overview.scenes.iter();
    let mut scenes = Vec::from_iter(scenes.map(|scene| (&*scene.name, scene.players)));
    scenes.sort_unstable();
    scenes
}

/// Each gateway with its clients, as one text.
fn gateways(overview: &ClusterOverview) -> Vec<String> {
    let gateways = overview.gateways.iter().map(|gateway| {
        let routes = gateway.routes.iter();
        let routes = routes.map(|route| format!(" {}:{}", route.node, route.clients));
        let routes: String = routes.collect();
        format!("{} {}{routes}", gateway.name, gateway.clients)
    });
    gateways.collect()
}

#[test]
fn overview_shows_gateways_and_the_players_of_scenes() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let [a, b] = started_for_an_hour((&schema, &mut rows), ["a", "b<b>"]);
    // The first one runs the forest.
    add_scenes(&mut rows, a);
    let none = rows.read_cluster_overview(9).unwrap();
    assert_eq!(none.gateways, []);
    let without = [("cave", None), ("forest", None), ("town", None)];
    assert_eq!(scene_players(&none), without);

    let of_a = [("g1", 9, 3), ("<g2>", 5, 0)];
    report((&schema, &mut rows), a, &[("forest", 70)], &of_a);
    // It runs neither of these scenes.
    let of_b = [("cave", 1), ("forest", 2)];
    report(
        (&schema, &mut rows),
        b,
        &of_b,
        &[("g1", 10, 6), ("g3", 0, 0)],
    );
    let overview = rows.read_cluster_overview(9).unwrap();
    let expected = [("cave", None), ("forest", Some(70)), ("town", None)];
    assert_eq!(scene_players(&overview), expected);
    assert_eq!(gateways(&overview), ["<g2> 5", "g1 10 b<b>:6 a:3", "g3 0"]);
    assert_eq!(overview.gateways_total, 3);
    let some = rows.read_cluster_overview(2).unwrap();
    assert_eq!(gateways(&some), ["<g2> 5", "g1 10 b<b>:6 a:3"]);
    assert_eq!(some.gateways_total, 3);

    // A new report replaces the former one.
    report((&schema, &mut rows), a, &[("forest", 71)], &[("g1", 10, 4)]);
    let overview = rows.read_cluster_overview(9).unwrap();
    assert_eq!(scene_players(&overview)[1], ("forest", Some(71)));
    assert_eq!(gateways(&overview), ["g1 10 b<b>:6 a:4", "g3 0"]);
}

#[test]
fn reports_of_dead_nodes_and_former_runs_are_not_shown() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let [a, b] = started_for_an_hour((&schema, &mut rows), ["a", "b"]);
    add_scenes(&mut rows, a);
    report((&schema, &mut rows), a, &[("forest", 70)], &[("g1", 9, 3)]);
    report((&schema, &mut rows), b, &[], &[("g1", 9, 6)]);
    let now = |rows: &mut PostgresRows| {
        let overview = rows.read_cluster_overview(9).unwrap();
        (scene_players(&overview)[1].1, gateways(&overview))
    };
    let text = |gateway: &str| vec![gateway.to_owned()];
    assert_eq!(now(&mut rows), (Some(70), text("g1 9 b:6 a:3")));

    let operator = schema.operator();
    // It is late, and comes back.
    let shift = "UPDATE cluster_node SET heartbeat_ms = heartbeat_ms + 7200000 * ";
    operator.execute(&format!("{shift} -1 WHERE name = 'a'"));
    assert_eq!(now(&mut rows), (None, text("g1 9 b:6")));
    operator.execute(&format!("{shift} 1 WHERE name = 'a'"));
    assert_eq!(now(&mut rows), (Some(70), text("g1 9 b:6 a:3")));
    // It is alive, and its reports do not arrive any more.
    operator.execute("UPDATE cluster_report SET reported_ms = reported_ms - 7200000");
    assert_eq!(now(&mut rows), (None, vec![]));
    operator.execute("UPDATE cluster_report SET reported_ms = reported_ms + 7200000");
    assert_eq!(now(&mut rows), (Some(70), text("g1 9 b:6 a:3")));

    execute(&mut rows, ClusterRequest::EndRun { run: a });
    assert_eq!(now(&mut rows), (None, text("g1 9 b:6")));
    // The next process of the node has reported nothing yet, and the former one must not report in its place.
    let next = started(&mut rows, "a");
    operator.execute(&format!("{shift} 1 WHERE name = 'a'"));
    assert_eq!(now(&mut rows), (None, text("g1 9 b:6")));
    let (run, late) = (a, NodeReport::default());
    let late = ClusterRequest::Report(ReportRequest::Write { run, report: late });
    assert!(matches!(rows.execute(&late), Ok(ClusterReply::Refused(_))));
    report(
        (&schema, &mut rows),
        next,
        &[("forest", 1)],
        &[("g4", 1, 1)],
    );
    let (players, shown) = now(&mut rows);
    // The row of the scene still has the former run.
    assert_eq!(
        (players, &*shown),
        (None, &["g1 9 b:6", "g4 1 a:1"].map(str::to_owned)[..])
    );
}

#[test]
fn player_overview_is_in_the_order_of_unsigned_ids() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    schema.source().migrate().unwrap();
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0");
    let players = [0, 7, 1 << 40, 1 << 63, u64::MAX].map(PlayerId);
    for player in players.into_iter().rev() {
        execute(
            &mut rows,
            ClusterRequest::LogIn {
                run,
                player,
                epoch: 0,
            },
        );
    }
    let overview = rows.read_player_overview().unwrap();
    let found = overview.iter().map(|entry| entry.player);
    assert_eq!(Vec::from_iter(found), players);
}
