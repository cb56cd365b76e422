//! Transactions about matches, at their limits.

use super::*;
use crate::request::{
    Arrival, ClusterReply, ClusterRequest, SceneDeclaration, SceneRequest, TicketMember,
    TicketRating,
};

struct MatchTestRows(ClusterRows);

impl MatchTestRows {
    fn start(&mut self, name: &str) -> NodeRun {
        let name = name.to_owned();
        match self.0.execute(ClusterRequest::StartRun { name }, 0) {
            ClusterReply::Started(run) => run,
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, request: MatchRequest, now_ms: u64) -> MatchReply {
        match self.0.execute(ClusterRequest::Match(request), now_ms) {
            ClusterReply::Match(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn take_role(&mut self, run: NodeRun, epoch: u64, now_ms: u64) -> MatchReply {
        let role = MATCHER_ROLE.to_owned();
        self.send(MatchRequest::TakeRole { run, role, epoch }, now_ms)
    }

    fn heartbeat(&mut self, run: NodeRun, now_ms: u64) {
        let reply = self
            .0
            .execute(ClusterRequest::Heartbeat { run, load: 0 }, now_ms);
        assert_eq!(reply, ClusterReply::Done);
    }

    fn read(&mut self, run: NodeRun, epoch: u64, after: u64) -> (Vec<TicketChange>, u64) {
        let read = MatchRequest::ReadTickets {
            run,
            epoch,
            after,
            changes_max: 10,
        };
        match self.send(read, 100) {
            MatchReply::Tickets {
                changes, revision, ..
            } => (changes, revision),
            other => panic!("{other:?}"),
        }
    }
}

fn ticket(run: NodeRun, nth: u64, player: u64) -> ClusterTicket {
    let home = TicketHome {
        node: run.node,
        scene: "town".to_owned(),
    };
    ClusterTicket {
        id: TicketId { run, nth },
        mode: "duel".to_owned(),
        members: vec![TicketMember {
            player: PlayerId(player),
            home,
        }],
        rating: TicketRating::default(),
    }
}

fn rows() -> (MatchTestRows, [NodeRun; 2]) {
    let mut rows = MatchTestRows(ClusterRows::default());
    let runs = ["n0", "n1"].map(|name| rows.start(name));
    (rows, runs)
}

#[test]
fn role_is_free_when_it_expires_or_its_owner_is_dead() {
    let (mut rows, [one, other]) = rows();
    assert_eq!(rows.take_role(one, 0, 0), MatchReply::Done);
    let held = MatchReply::Refused(RefusedMatch::RoleHeld);
    assert_eq!(rows.take_role(other, 1, 1_000), held);
    for now_ms in [1_000, 2_000, 2_999] {
        rows.heartbeat(one, now_ms);
        rows.heartbeat(other, now_ms);
    }
    assert_eq!(rows.take_role(other, 1, 2_999), held);
    // Not renewed.
    assert_eq!(rows.take_role(other, 1, 3_000), MatchReply::Done);
    let late = MatchReply::Refused(RefusedMatch::OtherEpoch);
    assert_eq!(rows.take_role(one, 1, 3_000), late);
    // Renewed, but its node is dead after that.
    let role = MATCHER_ROLE.to_owned();
    let renew = MatchRequest::RenewRole {
        run: other,
        role,
        epoch: 2,
    };
    assert_eq!(rows.send(renew, 4_000), MatchReply::Done);
    rows.heartbeat(one, 4_400);
    assert_eq!(rows.take_role(one, 2, 4_499), held);
    assert_eq!(rows.take_role(one, 2, 4_500), MatchReply::Done);
}

#[test]
fn cancelled_ticket_cannot_be_added_later() {
    let (mut rows, [run, _]) = rows();
    let add = |nth, player| MatchRequest::AddTicket {
        ticket: ticket(run, nth, player),
    };
    let cancel = |nth| MatchRequest::CancelTicket {
        run,
        ticket: TicketId { run, nth },
    };
    let gone = MatchReply::Refused(RefusedMatch::TicketGone);
    // Cancelled before it arrives.
    assert_eq!(rows.send(cancel(1), 0), MatchReply::Done);
    assert_eq!(rows.send(add(1, 7), 0), gone);
    assert_eq!(rows.send(add(2, 7), 0), MatchReply::Done);
    assert_eq!(rows.send(add(2, 7), 0), MatchReply::Done);
    let queued = MatchReply::Refused(RefusedMatch::PlayerQueued);
    assert_eq!(rows.send(add(3, 7), 0), queued);
    assert_eq!(rows.send(cancel(2), 0), MatchReply::Done);
    // The ticket 3 was refused before, so a late copy of the request must not succeed now.
    assert_eq!(rows.send(add(3, 7), 0), gone);
    assert_eq!(rows.send(add(2, 7), 0), gone);
    assert_eq!(rows.send(add(4, 7), 0), MatchReply::Done);
}

#[test]
fn matcher_reads_changes_once_and_deletes_cancelled_tickets() {
    let (mut rows, [run, _]) = rows();
    assert_eq!(rows.take_role(run, 0, 0), MatchReply::Done);
    for nth in 1..=3 {
        let ticket = ticket(run, nth, nth);
        rows.send(MatchRequest::AddTicket { ticket }, 10 * nth);
    }
    let (changes, revision) = rows.read(run, 1, 0);
    assert_eq!((changes.len(), revision), (3, 3));
    assert_eq!(rows.read(run, 1, revision), (Vec::new(), 3));
    let id = TicketId { run, nth: 2 };
    rows.send(MatchRequest::CancelTicket { run, ticket: id }, 50);
    let gone = (vec![TicketChange::Gone(id)], 4);
    assert_eq!(rows.read(run, 1, 3), gone);
    // The reply was lost.
    assert_eq!(rows.read(run, 1, 3), gone);
    assert_eq!(rows.0.matches.tickets.len(), 3);
    assert_eq!(rows.read(run, 1, 4), (Vec::new(), 4));
    assert_eq!(rows.0.matches.tickets.len(), 2);
    // Another matcher reads those that wait.
    let (changes, _) = rows.read(run, 1, 0);
    let since = changes.iter().map(|change| match change {
        TicketChange::Waits(_, since_ms) => *since_ms,
        TicketChange::Gone(id) => panic!("{id:?}"),
    });
    assert_eq!(since.collect::<Vec<_>>(), [10, 30]);
}

#[test]
fn player_goes_home_to_the_node_that_runs_its_scene() {
    let (mut rows, [one, two]) = rows();
    let change = |rows: &mut MatchTestRows, request| {
        let reply = rows.0.execute(request, 0);
        assert_eq!(reply, ClusterReply::Done);
    };
    let home_of = |rows: &MatchTestRows, scene: &str| {
        let others = OtherRows {
            players: &rows.0.players,
            nodes: &rows.0.nodes,
            scenes: &rows.0.scenes,
            now_ms: 0,
        };
        let (node, scene) = (one.node, scene.to_owned());
        others.home(&TicketHome { node, scene })
    };
    let town = SceneDeclaration {
        name: "town".to_owned(),
        ..SceneDeclaration::default()
    };
    let (run, scenes) = (one, vec![town]);
    let declare = ClusterRequest::Scene(SceneRequest::Declare { run, scenes });
    change(&mut rows, declare);
    assert_eq!(home_of(&rows, "town"), Some(one), "without an owner");
    let (run, scene, epoch) = (two, "town".to_owned(), 0);
    let claim = ClusterRequest::Scene(SceneRequest::Claim { run, scene, epoch });
    change(&mut rows, claim);
    assert_eq!(home_of(&rows, "town"), Some(two), "it has moved");
    assert_eq!(home_of(&rows, "a house of the game"), Some(one));
    change(&mut rows, ClusterRequest::EndRun { run: two });
    assert_eq!(home_of(&rows, "town"), Some(one), "its new node is dead");
    change(&mut rows, ClusterRequest::EndRun { run: one });
    assert_eq!(home_of(&rows, "town"), None);
}

#[test]
fn player_whose_next_match_is_not_open_yet_goes_home() {
    let (mut rows, [one, two]) = rows();
    assert_eq!(rows.take_role(one, 0, 0), MatchReply::Done);
    let players = [PlayerId(7), PlayerId(8)];
    for (nth, player) in (1..).zip(players) {
        let (run, epoch) = (one, 0);
        rows.0
            .execute(ClusterRequest::LogIn { run, player, epoch }, 0);
        let arrivals = vec![Arrival { player, epoch: 1 }];
        rows.0.execute(ClusterRequest::Adopt { run, arrivals }, 0);
        let ticket = ticket(one, nth, player.0);
        let added = rows.send(MatchRequest::AddTicket { ticket }, 0);
        assert_eq!(added, MatchReply::Done);
    }
    let mut send = |request| assert_eq!(rows.send(request, 0), MatchReply::Done);
    let form = |nth, node| MatchRequest::FormMatch {
        run: one,
        new: NewMatch {
            id: MatchId { epoch: 1, nth },
            mode: "duel".to_owned(),
            sides: [1, 2].map(|nth| vec![TicketId { run: one, nth }]).to_vec(),
            node,
            is_requeued: true,
        },
    };
    let id = |nth| MatchId { epoch: 1, nth };
    let ready = |run, nth| MatchRequest::MatchReady { run, id: id(nth) };
    send(form(1, two));
    send(ready(two, 1));
    send(MatchRequest::AbortMatch {
        run: two,
        id: id(1),
    });
    send(form(2, one));
    let travels = |rows: &mut MatchTestRows| {
        let read = MatchRequest::ReadTravels {
            run: one,
            after: None,
            players_max: 9,
        };
        match rows.send(read, 0) {
            MatchReply::Travels(travels) => travels
                .into_iter()
                .map(|it| (it.player, it.goal.match_id(), it.to))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let end = |rows: &mut MatchTestRows, player, at| {
        let (run, arrived) = (one, vec![(player, at)]);
        let ended = rows.send(MatchRequest::EndTravels { run, arrived }, 0);
        assert_eq!(ended, MatchReply::Done);
    };
    let [seven, eight] = players;
    assert_eq!(
        travels(&mut rows),
        players.map(|player| (player, None, None))
    );
    end(&mut rows, seven, None);
    assert_eq!(travels(&mut rows), [(eight, None, None)]);
    assert_eq!(rows.send(ready(one, 2), 0), MatchReply::Done);
    // The arrival at home is reported late, and is none at the match.
    end(&mut rows, eight, None);
    end(&mut rows, seven, Some(id(1)));
    let in_match = Some(id(2));
    assert_eq!(
        travels(&mut rows),
        players.map(|player| (player, in_match, None))
    );
    end(&mut rows, eight, in_match);
    assert_eq!(travels(&mut rows), [(seven, in_match, None)]);
}
