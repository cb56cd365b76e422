//! The rows of groups on a Postgres server do the same as those in memory, and changes at the same time are executed one after the other.
//!
//! The server is that of `THRONG_POSTGRES`; without it nothing is tested: `.ci/with_postgres cargo test -p throng_cluster` starts one.
//! Every test has its own schema there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::thread;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_cluster::{
    ClusterNodeId, ClusterReply, ClusterRequest, ClusterRows, GroupChange, GroupId, GroupKind,
    GroupReply, GroupRequest, NodeRun, PlayerGroup, PostgresRows, RefusedGroup,
};
use throng_core::ids::PlayerId;
use throng_store::testing::{TestSchema, postgres_url};

use crate::servers::rows::{
    PLAYERS, done, execute_both, heartbeat, opened, requests_wanted, started, wait_for_locks,
};

fn execute(rows: &mut PostgresRows, request: GroupRequest) -> GroupReply {
    match rows.execute_at(&ClusterRequest::Group(request), Some(0)) {
        Ok(ClusterReply::Group(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

/// Draws requests that often make sense, and often do not.
struct GroupRequestSource {
    rng: Pcg64Mcg,
    runs: Vec<NodeRun>,
    /// The last changes, to repeat them.
    sent: Vec<GroupRequest>,
    revision: u64,
}

impl GroupRequestSource {
    fn run(&mut self) -> NodeRun {
        let unknown = NodeRun {
            node: ClusterNodeId(9),
            run: 1,
        };
        let newest = &self.runs[self.runs.len().saturating_sub(3)..];
        let run = newest.choose(&mut self.rng).copied();
        run.filter(|_| self.rng.random_bool(0.97))
            .unwrap_or(unknown)
    }

    fn next(&mut self, rows: &ClusterRows) -> ClusterRequest {
        let (run, player) = (self.run(), *PLAYERS.choose(&mut self.rng).unwrap());
        match self.rng.random_range(0..30) {
            0 => ClusterRequest::StartRun {
                name: format!("n{}", self.rng.random_range(0..3)),
            },
            1 if self.rng.random_bool(0.1) => ClusterRequest::EndRun { run },
            1..7 => heartbeat(run),
            7..10 => ClusterRequest::LogIn {
                run,
                player,
                epoch: rows.owner(player).map_or(0, |(_, epoch)| epoch),
            },
            10 => ClusterRequest::ClaimLate {
                run,
                players_max: 3,
                unheard: Vec::new(),
            },
            _ => ClusterRequest::Group(self.next_group(rows, run, player)),
        }
    }

    fn next_group(&mut self, rows: &ClusterRows, run: NodeRun, player: PlayerId) -> GroupRequest {
        match self.rng.random_range(0..10) {
            0 => {
                let wanted: BTreeSet<PlayerId> = (0..4)
                    .map(|_| *PLAYERS.choose(&mut self.rng).unwrap())
                    .collect();
                let players = wanted.into_iter().collect();
                return GroupRequest::Read { players };
            }
            1 | 2 => {
                let after = self.rng.random_bool(0.95).then_some(self.revision);
                let changes_max = self.rng.random_range(0..9);
                let owner = rows.owner(player).and_then(|(owner, _)| owner);
                let run = owner.unwrap_or(run);
                return GroupRequest::ReadChanged {
                    run,
                    after,
                    changes_max,
                };
            }
            3 if !self.sent.is_empty() => {
                let newest = &self.sent[self.sent.len().saturating_sub(4)..];
                return newest.choose(&mut self.rng).unwrap().clone();
            }
            _ => {}
        }
        // Mostly parties, so that some of them are full.
        let kind = GroupKind::ALL[usize::from(self.rng.random_bool(0.2))];
        let groups = rows.groups();
        let known: Vec<GroupId> = groups.into_keys().filter(|id| id.kind == kind).collect();
        let known = known.choose(&mut self.rng).copied();
        let id = self.rng.random_range(0..20);
        let change = match self.rng.random_range(0..12) {
            0..2 => GroupChange::Create(kind),
            2..8 => GroupChange::Join(
                known
                    .filter(|_| self.rng.random_bool(0.95))
                    .unwrap_or(GroupId { kind, id }),
            ),
            _ => GroupChange::Leave(kind),
        };
        let revision = rows.group_of(player, kind).revision;
        let request = GroupRequest::Change {
            run,
            player,
            change,
            revision: revision.saturating_sub(u64::from(self.rng.random_bool(0.05))),
        };
        self.sent.push(request.clone());
        request
    }
}

/// `THRONG_REQUESTS=100000` compares more of them.
#[test]
fn postgres_and_memory_give_the_same_replies_about_groups() {
    let Some(url) = postgres_url() else { return };
    let wanted = requests_wanted(6_000);
    let mut kinds = BTreeMap::new();
    for seed in 0..wanted.div_ceil(2_000) {
        let schema = TestSchema::new(&url);
        let (mut stored, mut model) = (opened(&schema), ClusterRows::default());
        let mut source = GroupRequestSource {
            rng: Pcg64Mcg::seed_from_u64(seed),
            runs: Vec::new(),
            sent: Vec::new(),
            revision: 0,
        };
        let mut now_ms = 1_000_000;
        for _ in 0..2_000 {
            now_ms += source.rng.random_range(0..60);
            let request = source.next(&model);
            let reply = execute_both(&mut stored, &mut model, &request, (seed, now_ms));
            if let ClusterReply::Started(run) = reply {
                source.runs.push(run);
            }
            let ClusterReply::Group(reply) = reply else {
                continue;
            };
            if let GroupReply::ChangedPlayers { revision, .. } = reply {
                // Sometimes, changes are read again.
                source.revision = revision.saturating_sub(source.rng.random_range(0..4));
            }
            *kinds.entry(kind_of(&reply)).or_insert(0_u64) += 1;
        }
        let players = PLAYERS.to_vec();
        let all = ClusterRequest::Group(GroupRequest::Read { players });
        execute_both(&mut stored, &mut model, &all, (seed, now_ms));
    }
    let found: Vec<&str> = kinds.keys().map(String::as_str).collect();
    let expected = [
        "Changed",
        "ChangedPlayers",
        "ChangedPlayers, none",
        "Full",
        "Groups",
        "InGroup",
        "NoGroup",
        "OtherRevision",
        "RunEnded",
    ];
    assert_eq!(found, expected, "{kinds:?}");
}

fn kind_of(reply: &GroupReply) -> String {
    match reply {
        GroupReply::Changed(..) => "Changed".to_owned(),
        GroupReply::Refused(refused) => format!("{refused:?}"),
        GroupReply::Groups { .. } => "Groups".to_owned(),
        GroupReply::ChangedPlayers { players, .. } if players.is_empty() => {
            "ChangedPlayers, none".to_owned()
        }
        GroupReply::ChangedPlayers { .. } => "ChangedPlayers".to_owned(),
    }
}

/// Eight players who join one party at the same time, each with a connection of its own.
#[test]
fn party_that_many_players_join_together_has_five_members() {
    let Some(url) = postgres_url() else { return };
    let schema = TestSchema::new(&url);
    let mut rows = opened(&schema);
    let run = started(&mut rows, "n0", 0);
    let change = |player: u64, change: GroupChange| GroupRequest::Change {
        run,
        player: PlayerId(player),
        change,
        revision: 0,
    };
    let created = execute(&mut rows, change(0, GroupChange::Create(GroupKind::Party)));
    let GroupReply::Changed(PlayerGroup { group, .. }, _) = created else {
        panic!("{created:?}")
    };
    wait_for_locks(&schema);
    let (party, barrier) = (group.unwrap(), Barrier::new(8));
    let replies: Vec<GroupReply> = thread::scope(|scope| {
        let works: Vec<_> = (1..=8)
            .map(|player| {
                let (schema, barrier) = (&schema, &barrier);
                scope.spawn(move || {
                    let mut rows = opened(schema);
                    rows.connect().unwrap();
                    barrier.wait();
                    execute(&mut rows, change(player, GroupChange::Join(party)))
                })
            })
            .collect();
        works.into_iter().map(|work| work.join().unwrap()).collect()
    });
    let full = GroupReply::Refused(RefusedGroup::Full);
    let refused = replies.iter().filter(|reply| **reply == full).count();
    assert_eq!(refused, 4, "{replies:?}");
    // Each change has a revision of its own.
    let revisions = replies.iter().filter_map(|reply| match reply {
        GroupReply::Changed(entry, _) => Some(entry.revision),
        _ => None,
    });
    let revisions: BTreeSet<u64> = revisions.collect();
    assert_eq!(revisions, (2..=5).collect());
    done(&mut rows, &heartbeat(run), 10);
}
