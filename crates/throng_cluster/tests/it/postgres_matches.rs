//! The rows of matches on a Postgres server do the same as those in memory.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! Every test has its own schema there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::thread;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    Arrival, ClusterNodeId, ClusterReply, ClusterRequest, ClusterRows, ClusterTicket, MATCHER_ROLE,
    MatchId, MatchReply, MatchRequest, MatchState, NewMatch, NodeRun, PostgresRows, RefusedMatch,
    SceneDeclaration, SceneEntry, SceneRequest, TicketChange, TicketHome, TicketId, TicketMember,
    TicketRating,
};
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{
    PLAYERS, execute_both, name_of, opened, requests_wanted, started, wait_for_locks,
};

fn request(rows: &mut PostgresRows, request: MatchRequest, at_ms: u64) -> MatchReply {
    match rows.execute_at(&ClusterRequest::Match(request), Some(at_ms)) {
        Ok(ClusterReply::Match(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn ticket(id: TicketId, players: &[PlayerId], home: ClusterNodeId) -> ClusterTicket {
    let member = |player: &PlayerId| TicketMember {
        player: *player,
        home: TicketHome {
            node: home,
            scene: format!("scene {}", player.0 % 3),
        },
    };
    ClusterTicket {
        id,
        mode: ["duel", "arena"][id.nth as usize % 2].to_owned(),
        members: players.iter().map(member).collect(),
        rating: TicketRating {
            power: u32::MAX - id.nth as u32,
            skill: -5,
            level: u16::MAX,
            leader_strength: u32::MAX,
            regions: 1 << 31,
            roles: [1, 0, 2, id.nth as u8],
            avoid: vec![PlayerId(u64::MAX - 5)],
        },
    }
}

/// Draws requests that often make sense, and often do not.
struct MatchRequestSource {
    rng: Pcg64Mcg,
    runs: Vec<NodeRun>,
    /// The last ticket of each run.
    last_nth: BTreeMap<NodeRun, u64>,
    role_epoch: u64,
    revision: u64,
    last_match: u64,
}

impl MatchRequestSource {
    fn run(&mut self) -> NodeRun {
        let unknown = NodeRun {
            node: ClusterNodeId(9),
            run: 1,
        };
        let oldest = self.runs.len().saturating_sub(3);
        let first = if self.rng.random_bool(0.05) {
            0
        } else {
            oldest
        };
        if self.runs.is_empty() || self.rng.random_bool(0.02) {
            return unknown;
        }
        self.runs[self.rng.random_range(first..self.runs.len())]
    }

    /// The owner of a player, or any run.
    fn owner(&mut self, rows: &ClusterRows, player: PlayerId) -> NodeRun {
        let owner = rows.owner(player).and_then(|(owner, _)| owner);
        match owner.filter(|_| self.rng.random_bool(0.9)) {
            Some(owner) => owner,
            None => self.run(),
        }
    }

    fn players(&mut self, count: usize) -> Vec<PlayerId> {
        let mut players = PLAYERS.to_vec();
        (0..count)
            .map(|_| players.swap_remove(self.rng.random_range(0..players.len())))
            .collect()
    }

    /// A ticket that exists, or sometimes one that does not.
    fn ticket(&mut self, rows: &ClusterRows) -> TicketId {
        let known: Vec<TicketId> = rows.tickets().map(|(ticket, ..)| ticket.id).collect();
        let run = self.run();
        if known.is_empty() || self.rng.random_bool(0.15) {
            let last = self.last_nth.get(&run).copied().unwrap_or(0);
            let nth = self.rng.random_range(0..last + 2);
            return TicketId { run, nth };
        }
        known[self.rng.random_range(0..known.len())]
    }

    fn epoch(&mut self) -> u64 {
        self.role_epoch
            .saturating_sub(u64::from(self.rng.random_bool(0.05)))
    }

    /// The matcher, or any run.
    fn matcher(&mut self, rows: &mut ClusterRows, now_ms: u64) -> NodeRun {
        let role = MATCHER_ROLE.to_owned();
        let read = ClusterRequest::Match(MatchRequest::ReadRole { role });
        match rows.execute(read, now_ms) {
            ClusterReply::Match(MatchReply::Role(Some(owner), epoch, _))
                if self.rng.random_bool(0.95) =>
            {
                self.role_epoch = epoch;
                owner
            }
            _ => self.run(),
        }
    }

    /// A match that was formed, and its run, or any run.
    fn known_match(&mut self, rows: &ClusterRows) -> (MatchId, NodeRun) {
        let played = rows.tickets().filter_map(|(.., in_match)| in_match);
        let played: Vec<MatchId> = played.collect();
        if !played.is_empty() && self.rng.random_bool(0.7) {
            let id = played[self.rng.random_range(0..played.len())];
            let host = rows.match_state(id).map(|(_, host)| host);
            return (id, host.unwrap_or_else(|| self.run()));
        }
        let epoch = self.epoch();
        let oldest = self.last_match.saturating_sub(6);
        let nth = self.rng.random_range(oldest..self.last_match + 2);
        let id = MatchId { epoch, nth };
        let host = rows.match_state(id).map(|(_, host)| host);
        match host.filter(|_| self.rng.random_bool(0.9)) {
            Some(host) => (id, host),
            None => (id, self.run()),
        }
    }

    fn next(&mut self, rows: &mut ClusterRows, now_ms: u64) -> ClusterRequest {
        let player = self.players(1)[0];
        match self.rng.random_range(0..40) {
            0 => ClusterRequest::StartRun {
                name: format!("n{}", self.rng.random_range(0..3)),
            },
            1 if self.rng.random_bool(0.1) => ClusterRequest::EndRun { run: self.run() },
            1..12 => ClusterRequest::Heartbeat {
                run: self.run(),
                load: 0,
            },
            12..15 => {
                let epoch = rows.owner(player).map_or(0, |(_, epoch)| epoch);
                match rows.owner(player).and_then(|(owner, _)| owner) {
                    None => ClusterRequest::LogIn {
                        run: self.run(),
                        player,
                        epoch,
                    },
                    Some(run) => ClusterRequest::Adopt {
                        run,
                        arrivals: vec![Arrival { player, epoch }],
                    },
                }
            }
            15 if self.rng.random_bool(0.7) => ClusterRequest::Scene(self.next_scene(rows, now_ms)),
            15 => ClusterRequest::ClaimLate {
                run: self.run(),
                players_max: 3,
                unheard: Vec::new(),
            },
            _ => ClusterRequest::Match(self.next_match(rows, now_ms)),
        }
    }

    /// Two of the scenes of homes exist, and move from node to node.
    fn next_scene(&mut self, rows: &ClusterRows, now_ms: u64) -> SceneRequest {
        let scene = format!("scene {}", self.rng.random_range(0..2));
        let table = rows.scene_table(now_ms);
        let run = self.run();
        match table.scene(&scene) {
            None => SceneRequest::Declare {
                run,
                scenes: vec![SceneDeclaration {
                    name: scene,
                    ..SceneDeclaration::default()
                }],
            },
            Some(SceneEntry { owner, epoch, .. }) => match *owner {
                Some(owner) if self.rng.random_bool(0.5) => SceneRequest::GiveUp {
                    run: owner,
                    scene,
                    epoch: *epoch,
                },
                _ => SceneRequest::Claim {
                    run,
                    scene,
                    epoch: *epoch,
                },
            },
        }
    }

    fn next_match(&mut self, rows: &mut ClusterRows, now_ms: u64) -> MatchRequest {
        let role = MATCHER_ROLE.to_owned();
        match self.rng.random_range(0..22) {
            0 => MatchRequest::ReadRole { role },
            1 => MatchRequest::TakeRole {
                run: self.run(),
                role,
                epoch: self.epoch(),
            },
            2 => MatchRequest::RenewRole {
                run: self.matcher(rows, now_ms),
                role,
                epoch: self.epoch(),
            },
            3..8 => self.add_ticket(),
            8 => MatchRequest::CancelTicket {
                run: self.run(),
                ticket: self.ticket(rows),
            },
            9..11 => MatchRequest::ReadTickets {
                run: self.matcher(rows, now_ms),
                epoch: self.epoch(),
                after: if self.rng.random_bool(0.1) {
                    0
                } else {
                    self.revision
                },
                changes_max: self.rng.random_range(0..4),
            },
            11..14 => self.form_match(rows, now_ms),
            14 => MatchRequest::ReadMatches { run: self.run() },
            15 => {
                let (id, run) = self.known_match(rows);
                MatchRequest::MatchReady { run, id }
            }
            16 => {
                let (id, run) = self.known_match(rows);
                let result = vec![self.rng.random_range(0..9); 3];
                match self.rng.random_range(0..3) {
                    0 => MatchRequest::AbortMatch { run, id },
                    _ => MatchRequest::EndMatch { run, id, result },
                }
            }
            17 => MatchRequest::AbortLate {
                run: self.run(),
                matches_max: self.rng.random_range(0..3),
            },
            18 => MatchRequest::ReadMatch {
                id: self.known_match(rows).0,
            },
            _ => self.travels(rows),
        }
    }

    fn travels(&mut self, rows: &ClusterRows) -> MatchRequest {
        let count = self.rng.random_range(1..PLAYERS.len());
        let players = self.players(count);
        let run = self.owner(rows, players[0]);
        match self.rng.random_range(0..3) {
            0 => MatchRequest::ReadTravels {
                run,
                after: self
                    .rng
                    .random_bool(0.5)
                    .then_some(players[players.len() - 1]),
                players_max: self.rng.random_range(0..9),
            },
            1 => {
                let played: BTreeMap<PlayerId, MatchId> = rows
                    .match_players()
                    .filter_map(|(player, _, in_match, _)| Some((player, in_match?)))
                    .collect();
                let mut arrived = Vec::new();
                for player in players {
                    let known = played.get(&player).copied();
                    let known = known.filter(|_| self.rng.random_bool(0.8));
                    let is_other = self.rng.random_bool(0.05);
                    let other = is_other.then(|| self.known_match(rows).0);
                    arrived.push((player, other.or(known)));
                }
                MatchRequest::EndTravels { run, arrived }
            }
            _ => MatchRequest::Rejoin { run, players },
        }
    }

    fn add_ticket(&mut self) -> MatchRequest {
        let run = self.run();
        let last = self.last_nth.entry(run).or_default();
        *last += u64::from(self.rng.random_bool(0.9));
        let back = u64::from(self.rng.random_bool(0.05));
        let nth = last.saturating_sub(back);
        let count = self.rng.random_range(1..4);
        let mut players = self.players(count);
        if self.rng.random_bool(0.03) {
            players.push(players[0]);
        }
        let home = ClusterNodeId(self.rng.random_range(0..4));
        MatchRequest::AddTicket {
            ticket: ticket(TicketId { run, nth }, &players, home),
        }
    }

    fn form_match(&mut self, rows: &mut ClusterRows, now_ms: u64) -> MatchRequest {
        let wanted = self.rng.random_range(1..5);
        let waiting = rows.tickets().filter(|(.., in_match)| in_match.is_none());
        let mut tickets: BTreeSet<TicketId> =
            waiting.map(|(ticket, ..)| ticket.id).take(wanted).collect();
        if tickets.is_empty() || self.rng.random_bool(0.1) {
            tickets.insert(self.ticket(rows));
        }
        let mut sides = vec![Vec::new(); 3];
        for ticket in tickets {
            sides[self.rng.random_range(0..3)].push(ticket);
        }
        let run = self.matcher(rows, now_ms);
        self.last_match += u64::from(self.rng.random_bool(0.9));
        let id = MatchId {
            epoch: self.epoch(),
            nth: self.last_match,
        };
        let new = NewMatch {
            id,
            mode: "duel".to_owned(),
            sides,
            node: self.run(),
            is_requeued: self.rng.random_bool(0.5),
        };
        MatchRequest::FormMatch { run, new }
    }
}

/// `THRONG_REQUESTS=100000` compares more of them.
#[test]
fn postgres_and_memory_give_the_same_match_replies() {
    let Some(url) = postgres_url() else { return };
    let wanted = requests_wanted(6_000);
    let mut kinds = BTreeMap::new();
    for seed in 0..wanted.div_ceil(2_000) {
        let schema = TestSchema::new(&url);
        let (mut stored, mut model) = (opened(&schema), ClusterRows::default());
        let mut source = MatchRequestSource {
            rng: Pcg64Mcg::seed_from_u64(seed),
            runs: Vec::new(),
            last_nth: BTreeMap::new(),
            role_epoch: 0,
            revision: 0,
            last_match: 0,
        };
        let mut now_ms = 1_000_000;
        for _ in 0..2_000 {
            now_ms += source.rng.random_range(0..80);
            if source.rng.random_bool(0.001) {
                now_ms += 3_600_000;
            }
            let request = source.next(&mut model, now_ms);
            let expected = execute_both(&mut stored, &mut model, &request, (seed, now_ms));
            match &expected {
                ClusterReply::Started(run) => source.runs.push(*run),
                ClusterReply::Match(MatchReply::Tickets { revision, .. }) => {
                    source.revision = *revision;
                }
                _ => {}
            }
            if let (ClusterRequest::Match(request), ClusterReply::Match(reply)) =
                (request, expected)
            {
                count(&mut kinds, &request, &reply);
            }
        }
        compare_rows(&schema, &model, seed);
    }
    // Every kind of request was executed, and every refusal occurred.
    let succeeded = kinds.keys().filter(|(_, result)| *result == "done");
    assert_eq!(succeeded.count(), 16, "{kinds:?}");
    let results: BTreeSet<&String> = kinds.keys().map(|(_, result)| result).collect();
    assert_eq!(results.len(), 11, "{kinds:?}");
}

/// Counts the kinds of requests with their results. An empty list does not count as done.
fn count(kinds: &mut BTreeMap<(String, String), u64>, request: &MatchRequest, reply: &MatchReply) {
    let name = name_of(request);
    let result = match reply {
        MatchReply::Refused(refused) => format!("{refused:?}"),
        MatchReply::Unavailable(_) => "Unavailable".to_owned(),
        MatchReply::Matches(matches) if matches.is_empty() => return,
        MatchReply::Travels(travels) if travels.is_empty() => return,
        MatchReply::Tickets { changes, .. } if changes.is_empty() => return,
        _ => "done".to_owned(),
    };
    *kinds.entry((name, result)).or_insert(0) += 1;
}

fn compare_rows(schema: &TestSchema, model: &ClusterRows, seed: u64) {
    let operator = schema.operator();
    let tickets = operator.query::<String>(
        "SELECT format('%s %s %s %s %s', node, run, nth, waiting_since_ms, match_epoch) FROM cluster_ticket WHERE NOT is_gone
            ORDER BY node, run, nth",
    );
    let expected = model.tickets().map(|(ticket, since_ms, in_match)| {
        let (run, nth) = (ticket.id.run, ticket.id.nth);
        let epoch = in_match.map_or_else(String::new, |id| id.epoch.to_string());
        format!("{} {} {nth} {since_ms} {epoch}", run.node.0, run.run)
    });
    assert_eq!(tickets, expected.collect::<Vec<_>>(), "seed {seed}");
    let players = operator.query::<String>(
        "SELECT format('%s %s %s %s', player, ticket_nth, match_nth, is_travelling) FROM cluster_match_player
            ORDER BY player < 0, player",
    );
    let expected = model
        .match_players()
        .map(|(player, ticket, in_match, is_travelling)| {
            let ticket = ticket.map_or_else(String::new, |id| id.nth.to_string());
            let in_match = in_match.map_or_else(String::new, |id| id.nth.to_string());
            let flag = if is_travelling { "t" } else { "f" };
            format!("{} {ticket} {in_match} {flag}", player.0 as i64)
        });
    assert_eq!(players, expected.collect::<Vec<_>>(), "seed {seed}");
}

#[test]
fn ticket_is_claimed_once_and_cancelled_or_matched() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0", 0);
    let role = MATCHER_ROLE.to_owned();
    let take = MatchRequest::TakeRole {
        run,
        role,
        epoch: 0,
    };
    assert_eq!(request(&mut rows, take, 0), MatchReply::Done);
    wait_for_locks(&schema);
    let (mut formed, mut cancelled) = (0, 0);
    for nth in 1..=40 {
        let ids = [2 * nth - 1, 2 * nth].map(|nth| TicketId { run, nth });
        for id in ids {
            let players = [PlayerId(id.nth)];
            let ticket = ticket(id, &players, run.node);
            let added = request(&mut rows, MatchRequest::AddTicket { ticket }, 10);
            assert_eq!(added, MatchReply::Done);
        }
        // Both tickets to a match, by two connections with different ids; the second ticket is cancelled at the same time.
        let barrier = Barrier::new(3);
        let [one, other, cancel] = thread::scope(|scope| {
            let mut works = Vec::new();
            for part in 0..3 {
                let (schema, barrier) = (&schema, &barrier);
                works.push(scope.spawn(move || {
                    let mut rows = opened(schema);
                    rows.connect().unwrap();
                    let new = NewMatch {
                        id: MatchId {
                            epoch: 1,
                            nth: 2 * nth + part,
                        },
                        mode: "duel".to_owned(),
                        sides: vec![
                            vec![ids[part as usize % 2]],
                            vec![ids[(part as usize + 1) % 2]],
                        ],
                        node: run,
                        is_requeued: false,
                    };
                    let sent = match part {
                        2 => MatchRequest::CancelTicket {
                            run,
                            ticket: ids[1],
                        },
                        _ => MatchRequest::FormMatch { run, new },
                    };
                    barrier.wait();
                    request(&mut rows, sent, 20)
                }));
            }
            let replies: Vec<MatchReply> =
                works.into_iter().map(|work| work.join().unwrap()).collect();
            replies.try_into().unwrap()
        });
        let matched = [&one, &other]
            .iter()
            .filter(|reply| ***reply == MatchReply::Done)
            .count();
        let is_cancelled = cancel == MatchReply::Done;
        assert_eq!(
            matched + usize::from(is_cancelled),
            1,
            "{one:?}, {other:?}, {cancel:?}"
        );
        if !is_cancelled {
            assert_eq!(cancel, MatchReply::Refused(RefusedMatch::InMatch));
        }
        formed += matched;
        cancelled += usize::from(is_cancelled);
    }
    assert_eq!(formed + cancelled, 40);
}

#[test]
fn tickets_added_while_they_are_read_are_not_missed() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let runs: Vec<NodeRun> = (0..3)
        .map(|nth| started(&mut rows, &format!("n{nth}"), 0))
        .collect();
    let role = MATCHER_ROLE.to_owned();
    let take = MatchRequest::TakeRole {
        run: runs[0],
        role,
        epoch: 0,
    };
    assert_eq!(request(&mut rows, take, 0), MatchReply::Done);
    wait_for_locks(&schema);
    let found = thread::scope(|scope| {
        let mut works = Vec::new();
        for &run in &runs {
            let schema = &schema;
            works.push(scope.spawn(move || {
                let mut rows = opened(schema);
                for nth in 1..=50 {
                    let player = PlayerId(u64::from(run.node.0) * 1_000 + nth);
                    let ticket = ticket(TicketId { run, nth }, &[player], run.node);
                    let added = request(&mut rows, MatchRequest::AddTicket { ticket }, 10);
                    assert_eq!(added, MatchReply::Done);
                }
            }));
        }
        let (mut found, mut after) = (BTreeSet::new(), 0);
        while found.len() < 150 {
            let read = MatchRequest::ReadTickets {
                run: runs[0],
                epoch: 1,
                after,
                changes_max: 20,
            };
            // Once all are added, one more read has the last ones.
            let is_done = works.iter().all(thread::ScopedJoinHandle::is_finished);
            let MatchReply::Tickets {
                changes, revision, ..
            } = request(&mut rows, read, 20)
            else {
                panic!("the role is held");
            };
            assert!(!is_done || !changes.is_empty(), "{} found", found.len());
            for change in changes {
                let TicketChange::Waits(ticket, _) = change else {
                    panic!("none is cancelled");
                };
                assert!(found.insert(ticket.id));
            }
            after = revision;
        }
        found
    });
    assert_eq!(found.len(), 150);
}

#[test]
fn state_of_a_match_survives_the_connection() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0", 0);
    let role = MATCHER_ROLE.to_owned();
    let take = MatchRequest::TakeRole {
        run,
        role,
        epoch: 0,
    };
    assert_eq!(request(&mut rows, take, 0), MatchReply::Done);
    let id = MatchId { epoch: 1, nth: 1 };
    let new = NewMatch {
        id,
        mode: "solo".to_owned(),
        sides: vec![Vec::new(), Vec::new()],
        node: run,
        is_requeued: false,
    };
    let form = MatchRequest::FormMatch { run, new };
    assert_eq!(request(&mut rows, form, 0), MatchReply::Done);
    let result = vec![1, 2, 3];
    let end = MatchRequest::EndMatch {
        run,
        id,
        result: result.clone(),
    };
    assert_eq!(request(&mut rows, end, 0), MatchReply::Done);
    let read = request(&mut opened(&schema), MatchRequest::ReadMatch { id }, 0);
    assert_eq!(read, MatchReply::Match(run, MatchState::Ended, result));
}
