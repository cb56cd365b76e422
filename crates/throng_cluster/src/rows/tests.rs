//! Single transactions, at their limits.

use super::*;

const PLAYER: PlayerId = PlayerId(7);
const OTHER: PlayerId = PlayerId(8);

fn run(node: u32, nth: u64) -> NodeRun {
    NodeRun {
        node: ClusterNodeId(node - 1),
        run: nth * RUNS_PER_PROCESS,
    }
}

fn record(revision: u64) -> ClusterRecord {
    ClusterRecord {
        revision,
        bytes: vec![revision as u8],
    }
}

fn save(player: PlayerId, epoch: u64, revision: u64) -> ClusterSave {
    ClusterSave {
        player,
        epoch,
        record: record(revision),
    }
}

fn heartbeat(run: NodeRun) -> ClusterRequest {
    ClusterRequest::Heartbeat { run, load: 0 }
}

/// Two nodes that have just sent a heartbeat at 0 ms; the first one has adopted both players, with the epoch 1.
fn two_nodes() -> ClusterRows {
    let mut rows = ClusterRows::default();
    for node in [1, 2] {
        let name = format!("n{node}");
        let started = rows.execute(ClusterRequest::StartRun { name }, 0);
        assert_eq!(started, ClusterReply::Started(run(node, 1)));
    }
    for player in [PLAYER, OTHER] {
        rows.insert_player(player, b"");
        let run = run(1, 1);
        let log_in = ClusterRequest::LogIn {
            run,
            player,
            epoch: 0,
        };
        rows.execute(log_in, 0);
        let epoch = 1;
        let arrivals = vec![Arrival { player, epoch }];
        let adopted = rows.execute(ClusterRequest::Adopt { run, arrivals }, 0);
        assert!(matches!(adopted, ClusterReply::Adopted(adopted) if adopted.len() == 1));
    }
    rows
}

fn hand_off(rows: &mut ClusterRows, saves: Vec<ClusterSave>, now_ms: u64) -> ClusterReply {
    let request = ClusterRequest::HandOff {
        run: run(1, 1),
        players: vec![save(PLAYER, 1, 5)],
        to: run(2, 1),
        saves,
    };
    rows.execute(request, now_ms)
}

#[test]
fn hand_off_changes_owner_and_saves_both_or_nothing() {
    let mut rows = two_nodes();
    let wrong = hand_off(&mut rows, vec![save(OTHER, 2, 3)], 10);
    assert_eq!(wrong, ClusterReply::Refused(RefusedWrite::NotOwner));
    assert_eq!(rows.owner(PLAYER), Some((Some(run(1, 1)), 1)));
    assert!(rows.records().all(|(_, record)| record.revision == 1));
    let done = hand_off(&mut rows, vec![save(OTHER, 1, 3)], 10);
    assert_eq!(done, ClusterReply::Done);
    assert_eq!(rows.owner(PLAYER), Some((Some(run(2, 1)), 2)));
    let revisions: Vec<u64> = rows.records().map(|(_, record)| record.revision).collect();
    assert_eq!(revisions, [5, 3]);
    // The same transaction, executed once more, finds another epoch.
    let again = hand_off(&mut rows, vec![save(OTHER, 1, 3)], 20);
    assert_eq!(again, ClusterReply::Refused(RefusedWrite::NotOwner));
}

#[test]
fn hand_off_of_several_players_gives_all_of_them_or_none() {
    let give = |rows: &mut ClusterRows, of_other| {
        let request = ClusterRequest::HandOff {
            run: run(1, 1),
            players: vec![save(PLAYER, 1, 5), save(OTHER, of_other, 3)],
            to: run(2, 1),
            saves: Vec::new(),
        };
        rows.execute(request, 10)
    };
    let owners = |rows: &ClusterRows| [PLAYER, OTHER].map(|player| rows.owner(player).unwrap());
    let mut rows = two_nodes();
    let wrong = give(&mut rows, 2);
    assert_eq!(wrong, ClusterReply::Refused(RefusedWrite::NotOwner));
    assert_eq!(owners(&rows), [(Some(run(1, 1)), 1); 2]);
    assert_eq!(give(&mut rows, 1), ClusterReply::Done);
    assert_eq!(owners(&rows), [(Some(run(2, 1)), 2); 2]);
}

/// The first node has sent one heartbeat, at 0. The second has sent all of them, and may declare others dead from 3,001 ms on.
fn two_steady_nodes() -> ClusterRows {
    let mut rows = two_nodes();
    for now_ms in [1_000, 2_000, 3_000] {
        rows.execute(heartbeat(run(2, 1)), now_ms);
    }
    rows
}

#[test]
fn node_is_late_after_1500_ms_and_not_before() {
    for (at_ms, expected) in [
        (1_500, ClusterReply::Done),
        (1_501, ClusterReply::Refused(RefusedWrite::TargetLate)),
    ] {
        assert_eq!(hand_off(&mut two_nodes(), Vec::new(), at_ms), expected);
    }
    for (at_ms, epoch) in [(3_500, 1), (3_501, 2)] {
        let mut rows = two_steady_nodes();
        rows.execute(heartbeat(run(1, 1)), 2_000);
        let claim = ClusterRequest::ClaimLate {
            run: run(2, 1),
            players_max: 1,
            unheard: Vec::new(),
        };
        rows.execute(claim, at_ms);
        assert_eq!(rows.owner(PLAYER).map(|(_, epoch)| epoch), Some(epoch));
        assert_eq!(
            rows.owner(OTHER).map(|(_, epoch)| epoch),
            Some(1),
            "one at most"
        );
    }
}

#[test]
fn run_that_was_declared_dead_stays_dead() {
    let mut rows = two_steady_nodes();
    let claim = ClusterRequest::ClaimLate {
        run: run(2, 1),
        players_max: 10,
        unheard: Vec::new(),
    };
    rows.execute(claim, 3_001);
    let late = rows.execute(heartbeat(run(1, 1)), 3_002);
    assert_eq!(late, ClusterReply::Refused(RefusedWrite::RunEnded));
    let next = rows.execute(heartbeat(run(1, 2)), 3_003);
    assert_eq!(next, ClusterReply::Done);
    let former = rows.execute(heartbeat(run(1, 1)), 3_004);
    assert_eq!(former, ClusterReply::Refused(RefusedWrite::NewerRun));
}

#[test]
fn nodes_come_back_after_an_outage_before_any_is_declared_dead() {
    let mut rows = two_nodes();
    let claim = || ClusterRequest::ClaimLate {
        run: run(2, 1),
        players_max: 10,
        unheard: Vec::new(),
    };
    for now_ms in [60_000, 61_000, 62_000, 63_000] {
        assert_eq!(
            rows.execute(heartbeat(run(2, 1)), now_ms),
            ClusterReply::Done
        );
        rows.execute(claim(), now_ms);
        assert_eq!(rows.owner(PLAYER), Some((Some(run(1, 1)), 1)));
    }
    let mut others = rows.clone();
    assert_eq!(
        rows.execute(heartbeat(run(1, 1)), 63_000),
        ClusterReply::Done
    );
    rows.execute(claim(), 63_001);
    assert_eq!(rows.owner(PLAYER), Some((Some(run(1, 1)), 1)));
    // One that has not come back by then is dead.
    others.execute(claim(), 63_001);
    assert_eq!(others.owner(PLAYER), Some((Some(run(2, 1)), 2)));
}

#[test]
fn node_in_time_after_a_short_outage_declares_no_other_dead() {
    let mut rows = two_nodes();
    for now_ms in (300..=9_900).step_by(300) {
        rows.execute(heartbeat(run(1, 1)), now_ms - 200);
        rows.execute(heartbeat(run(2, 1)), now_ms);
    }
    // The store is away for less than 1.5 s, and the first node is late.
    for now_ms in (11_300..=14_300).step_by(300) {
        rows.execute(heartbeat(run(2, 1)), now_ms);
        assert_eq!(claim_unheard(&mut rows, &[], now_ms).0, 0, "{now_ms}");
    }
    let mut dead = rows.clone();
    let returned = rows.execute(heartbeat(run(1, 1)), 14_301);
    assert_eq!(returned, ClusterReply::Done);
    assert_eq!(claim_unheard(&mut rows, &[], 14_301).0, 0);
    assert_eq!(claim_unheard(&mut dead, &[], 14_301).0, 2);
}

/// Claims for the second node. Returns the number of claimed players, and the quiet nodes.
fn claim_unheard(
    rows: &mut ClusterRows,
    unheard: &[QuietNode],
    now_ms: u64,
) -> (usize, Vec<QuietNode>) {
    let request = ClusterRequest::ClaimLate {
        run: run(2, 1),
        players_max: 10,
        unheard: unheard.to_vec(),
    };
    match rows.execute(request, now_ms) {
        ClusterReply::Claimed { arrivals, quiet } => (arrivals.len(), quiet),
        other => panic!("{other:?}"),
    }
}

fn quiet(run: NodeRun, heartbeat_ms: u64) -> QuietNode {
    QuietNode { run, heartbeat_ms }
}

#[test]
fn unheard_node_is_dead_after_600_ms_and_not_before() {
    let (own, other) = (run(2, 1), run(1, 1));
    let mut rows = two_nodes();
    for run in [own, other] {
        rows.execute(heartbeat(run), 1_000);
    }
    let last = quiet(other, 1_000);
    assert_eq!(claim_unheard(&mut rows, &[], 1_400), (0, vec![]));
    // The own node is never quiet, and no other is declared dead without the bus.
    for now_ms in [1_401, 1_601] {
        assert_eq!(claim_unheard(&mut rows, &[], now_ms), (0, vec![last]));
    }
    assert_eq!(claim_unheard(&mut rows, &[last], 1_600).0, 0);
    // Neither a node that has sent a heartbeat since then, nor another run of it, nor the caller itself.
    let others = [
        quiet(other, 999),
        quiet(run(1, 0), 1_000),
        quiet(own, 1_000),
    ];
    assert_eq!(claim_unheard(&mut rows, &others, 1_601), (0, vec![last]));
    assert_eq!(claim_unheard(&mut rows, &[last], 1_601), (2, vec![]));
}

#[test]
fn steady_node_declares_unheard_ones_dead_after_a_second() {
    let (own, other) = (run(2, 1), run(1, 1));
    let mut rows = two_nodes();
    rows.execute(heartbeat(own), 60_000);
    for (now_ms, claimed) in [(61_000, 0), (61_001, 2)] {
        let (found, _) = claim_unheard(&mut rows, &[quiet(other, 0)], now_ms);
        assert_eq!(found, claimed, "{now_ms}");
        rows.execute(heartbeat(own), now_ms);
    }
}

#[test]
fn second_process_of_a_name_waits_for_the_first() {
    let start = |rows: &mut ClusterRows, now_ms| {
        let name = "n1".to_owned();
        rows.execute(ClusterRequest::StartRun { name }, now_ms)
    };
    let mut rows = two_nodes();
    let early = start(&mut rows, 1_500);
    assert_eq!(early, ClusterReply::Refused(RefusedWrite::NodeRuns));
    assert_eq!(start(&mut rows, 1_501), ClusterReply::Started(run(1, 2)));
    // The former process, which has counted its runs meanwhile, can neither come back nor end the newer run.
    for (nth, refused) in [(0, RefusedWrite::NewerRun), (9, RefusedWrite::NewerRun)] {
        let mut former = run(1, 1);
        former.run += nth;
        let late = rows.execute(heartbeat(former), 1_502);
        assert_eq!(late, ClusterReply::Refused(refused));
        let ended = rows.execute(ClusterRequest::EndRun { run: former }, 1_502);
        assert_eq!(ended, ClusterReply::Refused(RefusedWrite::RunEnded));
    }
    let ended = rows.execute(ClusterRequest::EndRun { run: run(1, 2) }, 1_503);
    assert_eq!(ended, ClusterReply::Done);
    assert_eq!(start(&mut rows, 1_504), ClusterReply::Started(run(1, 3)));
}

#[test]
fn released_player_is_saved_and_can_log_in_elsewhere() {
    let mut rows = two_nodes();
    let request = ClusterRequest::Release {
        run: run(1, 1),
        player: save(PLAYER, 1, 5),
        saves: vec![save(OTHER, 1, 3)],
    };
    let released = rows.execute(request.clone(), 10);
    assert_eq!(released, ClusterReply::Done);
    assert_eq!(rows.owner(PLAYER), Some((None, 2)));
    let revisions: Vec<u64> = rows.records().map(|(_, record)| record.revision).collect();
    assert_eq!(revisions, [5, 3]);
    let again = rows.execute(request, 11);
    assert_eq!(again, ClusterReply::Refused(RefusedWrite::NotOwner));
    let log_in = |rows: &mut ClusterRows, epoch| {
        let request = ClusterRequest::LogIn {
            run: run(2, 1),
            player: PLAYER,
            epoch,
        };
        rows.execute(request, 12)
    };
    // A late request from before does not bring it back.
    let late = log_in(&mut rows, 0);
    assert_eq!(late, ClusterReply::Refused(RefusedWrite::NotOwner));
    assert_eq!(log_in(&mut rows, 2), ClusterReply::Done);
    assert_eq!(rows.owner(PLAYER), Some((Some(run(2, 1)), 3)));
}

#[test]
fn older_state_is_refused_with_all_of_its_group() {
    let mut rows = two_nodes();
    let write = |rows: &mut ClusterRows, saves| {
        let run = run(1, 1);
        rows.execute(ClusterRequest::Save { run, saves }, 10)
    };
    assert_eq!(
        write(&mut rows, vec![save(PLAYER, 1, 4)]),
        ClusterReply::Done
    );
    let older = write(&mut rows, vec![save(OTHER, 1, 2), save(PLAYER, 1, 3)]);
    assert_eq!(older, ClusterReply::Refused(RefusedWrite::OlderState));
    let revisions: Vec<u64> = rows.records().map(|(_, record)| record.revision).collect();
    assert_eq!(revisions, [4, 1]);
    let same = write(&mut rows, vec![save(OTHER, 1, 2), save(PLAYER, 1, 4)]);
    assert_eq!(same, ClusterReply::Done);
}

#[test]
fn only_a_late_node_that_has_not_adopted_loses_a_player_again() {
    let take_back = |rows: &mut ClusterRows, now_ms| {
        rows.execute(heartbeat(run(1, 1)), now_ms);
        let request = ClusterRequest::TakeBack {
            run: run(1, 1),
            player: PLAYER,
            epoch: 2,
        };
        rows.execute(request, now_ms)
    };
    let mut rows = two_nodes();
    hand_off(&mut rows, Vec::new(), 10);
    let early = take_back(&mut rows, 1_500);
    assert_eq!(early, ClusterReply::Refused(RefusedWrite::NotLate));
    assert_eq!(take_back(&mut rows, 1_501), ClusterReply::Done);
    assert_eq!(rows.owner(PLAYER), Some((Some(run(1, 1)), 3)));
    let mut rows = two_nodes();
    hand_off(&mut rows, Vec::new(), 10);
    let arrivals = [(OTHER, 2), (PLAYER, 1), (PLAYER, 2)];
    let arrivals = arrivals.map(|(player, epoch)| Arrival { player, epoch });
    let adopt = ClusterRequest::Adopt {
        run: run(2, 1),
        arrivals: arrivals.to_vec(),
    };
    // Of these, it owns one only.
    let adopted = rows.execute(adopt, 20);
    assert_eq!(
        adopted,
        ClusterReply::Adopted(vec![(arrivals[2], record(5))])
    );
    let adopted = take_back(&mut rows, 1_501);
    assert_eq!(adopted, ClusterReply::Refused(RefusedWrite::NotLate));
}
