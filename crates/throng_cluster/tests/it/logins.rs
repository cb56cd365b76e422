//! A login is neither lost nor refused by mistake, whatever happens to its request.

use throng_cluster::{
    ClusterNode, ClusterReply, ClusterRequest, ClusterRows, NodeOutput, NodeRun, NodeSettings,
    RefusedWrite,
};
use throng_core::ids::PlayerId;

const PLAYER: PlayerId = PlayerId(7);

/// What happens to the first requests to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    None,
    /// It is not executed, and there is no reply.
    Lost,
    /// It is executed, and there is no reply.
    ReplyLost,
    /// The store is away.
    Away,
}

fn start(rows: &mut ClusterRows, name: &str) -> NodeRun {
    let name = name.to_owned();
    match rows.execute(ClusterRequest::StartRun { name }, 0) {
        ClusterReply::Started(run) => run,
        other => panic!("{other:?}"),
    }
}

/// Runs a node for two seconds, and returns whether the player is live, and the refused logins.
fn play(rows: &mut ClusterRows, mishap: Mishap, times: u32) -> (bool, Vec<RefusedWrite>) {
    let run = start(rows, "n1");
    let mut node = ClusterNode::new(run, NodeSettings::default(), Vec::new());
    node.log_in(PLAYER);
    let mut left = times;
    for now_ms in (0..4_000).step_by(10) {
        for output in node.poll(now_ms) {
            let NodeOutput::Store(id, request) = output else {
                continue;
            };
            let is_login = matches!(request, ClusterRequest::LogIn { .. });
            let mishap = if is_login && left > 0 {
                left -= 1;
                mishap
            } else {
                Mishap::None
            };
            match mishap {
                Mishap::None => {
                    let reply = rows.execute(request, now_ms);
                    node.on_reply(now_ms, id, reply);
                }
                Mishap::Lost => {}
                Mishap::ReplyLost => _ = rows.execute(request, now_ms),
                Mishap::Away => {
                    node.on_reply(now_ms, id, ClusterReply::Away);
                }
            }
        }
    }
    let refused = node.take_refused_logins().into_iter();
    let refused = refused.map(|(player, refused)| {
        assert_eq!(player, PLAYER);
        refused
    });
    (node.is_live(PLAYER, 3_990), refused.collect())
}

#[test]
fn login_survives_lost_requests_and_lost_replies() {
    for mishap in [Mishap::None, Mishap::Lost, Mishap::ReplyLost, Mishap::Away] {
        for times in 1..4 {
            let live = play(&mut ClusterRows::default(), mishap, times);
            assert_eq!(live, (true, Vec::new()), "{mishap:?}, {times} times");
        }
    }
}

#[test]
fn login_of_a_player_elsewhere_is_refused_once() {
    for mishap in [Mishap::None, Mishap::Lost, Mishap::Away] {
        let mut rows = ClusterRows::default();
        let other = start(&mut rows, "n2");
        let log_in = ClusterRequest::LogIn {
            run: other,
            player: PLAYER,
            epoch: 0,
        };
        assert_eq!(rows.execute(log_in, 0), ClusterReply::Done);
        // The other node stays alive, as far as the first one can know.
        let refused = |rows: &mut ClusterRows| {
            let run = start(rows, "n1");
            let settings = NodeSettings {
                claim_interval_ms: 60_000,
                ..NodeSettings::default()
            };
            let mut node = ClusterNode::new(run, settings, Vec::new());
            node.log_in(PLAYER);
            let mut left = u32::from(mishap != Mishap::None);
            for now_ms in (0..1_400).step_by(10) {
                for output in node.poll(now_ms) {
                    let NodeOutput::Store(id, request) = output else {
                        continue;
                    };
                    if left > 0 && matches!(request, ClusterRequest::LogIn { .. }) {
                        left -= 1;
                        if mishap == Mishap::Away {
                            node.on_reply(now_ms, id, ClusterReply::Away);
                        }
                        continue;
                    }
                    let reply = rows.execute(request, now_ms);
                    node.on_reply(now_ms, id, reply);
                }
            }
            node.take_refused_logins()
        };
        let refused = refused(&mut rows);
        assert_eq!(refused, [(PLAYER, RefusedWrite::NotOwner)], "{mishap:?}");
    }
}

#[test]
fn login_survives_the_end_of_the_run() {
    let mut rows = ClusterRows::default();
    let run = start(&mut rows, "n1");
    let mut node = ClusterNode::new(run, NodeSettings::default(), Vec::new());
    node.log_in(PLAYER);
    let (mut is_sent, mut is_over) = (false, false);
    for now_ms in (0..4_000).step_by(10) {
        for output in node.poll(now_ms) {
            let NodeOutput::Store(id, request) = output else {
                continue;
            };
            match request {
                // The first request to log in gets no reply before the run ends.
                ClusterRequest::LogIn { .. } if !is_sent => is_sent = true,
                ClusterRequest::Heartbeat { .. } if is_sent && !is_over => {
                    is_over = true;
                    node.on_reply(now_ms, id, ClusterReply::Refused(RefusedWrite::RunEnded));
                }
                request => {
                    let reply = rows.execute(request, now_ms);
                    node.on_reply(now_ms, id, reply);
                }
            }
        }
    }
    assert!(is_over);
    assert_eq!(node.run().run, run.run + 1);
    assert!(node.is_live(PLAYER, 3_990));
}
