//! The rows of matches on a Postgres server.

use throng_core::ids::PlayerId;
use throng_store::PostgresSession;
use tokio_postgres::Row;

use super::{column, first, foreign, parameters, run_at};
use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{
    ClusterTicket, MATCH_KEPT_MS, MatchEntry, MatchId, MatchReply, MatchRequest, MatchState,
    NewMatch, PlayerTravel, ROLE_LEASE_MS, RefusedMatch, TicketChange, TicketHome, TicketId,
    TicketMember, TicketRating, TravelGoal,
};
use crate::store::ClusterStoreError;

/// Executes a request about matches.
pub(super) fn execute(
    session: &mut PostgresSession,
    request: &MatchRequest,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    match request {
        MatchRequest::ReadRole { role } => read_role(session, role, at_ms),
        MatchRequest::AddTicket { ticket } => add_ticket(session, ticket, at_ms),
        MatchRequest::ReadTickets {
            run,
            epoch,
            after,
            changes_max,
        } => read_tickets(session, (*run, *epoch), *after, *changes_max, at_ms),
        MatchRequest::FormMatch { run, new } => form_match(session, *run, new, at_ms),
        MatchRequest::ReadMatches { run } => read_matches(session, *run),
        MatchRequest::ReadMatch { id } => read_match(session, *id),
        MatchRequest::ReadTravels {
            run,
            after,
            players_max,
        } => read_travels(session, (*run, *after), *players_max, at_ms),
        other => execute_small(session, other, at_ms),
    }
}

/// Executes a request whose reply is only a result code.
fn execute_small(
    session: &mut PostgresSession,
    request: &MatchRequest,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let rows = match request {
        MatchRequest::TakeRole { run, role, epoch } => {
            let ((node, run), epoch) = (parameters(*run), *epoch as i64);
            session.query(
                "SELECT cluster_take_role($1, $2, $3, $4, $5, $6)",
                &[&node, &run, role, &epoch, &(ROLE_LEASE_MS as i64), &at_ms],
            )?
        }
        MatchRequest::RenewRole { run, role, epoch } => {
            let ((node, run), epoch) = (parameters(*run), *epoch as i64);
            session.query(
                "SELECT cluster_renew_role($1, $2, $3, $4, $5, $6)",
                &[&node, &run, role, &epoch, &(ROLE_LEASE_MS as i64), &at_ms],
            )?
        }
        MatchRequest::CancelTicket { run, ticket } => {
            let ((node, run), of) = (parameters(*run), parameters(ticket.run));
            session.query(
                "SELECT cluster_cancel_ticket($1, $2, $3, $4, $5, $6)",
                &[&node, &run, &of.0, &of.1, &(ticket.nth as i64), &at_ms],
            )?
        }
        MatchRequest::MatchReady { run, id } => {
            let ((node, run), (epoch, nth)) = (parameters(*run), match_parameters(*id));
            session.query(
                "SELECT cluster_match_ready($1, $2, $3, $4, $5)",
                &[&node, &run, &epoch, &nth, &at_ms],
            )?
        }
        MatchRequest::EndMatch { run, id, result } => {
            close_match(session, (*run, *id), (2, result), at_ms)?
        }
        MatchRequest::AbortMatch { run, id } => {
            close_match(session, (*run, *id), (3, &Vec::new()), at_ms)?
        }
        MatchRequest::AbortLate { run, matches_max } => {
            let ((node, run), matches_max) = (parameters(*run), *matches_max as i64);
            session.query(
                "SELECT cluster_abort_late($1, $2, $3, $4, $5)",
                &[&node, &run, &matches_max, &(MATCH_KEPT_MS as i64), &at_ms],
            )?
        }
        MatchRequest::EndTravels { run, arrived } => {
            let ((node, run), columns) = (parameters(*run), arrival_columns(arrived));
            session.query(
                "SELECT cluster_end_travels($1, $2, $3, $4, $5, $6)",
                &[&node, &run, &columns.0, &columns.1, &columns.2, &at_ms],
            )?
        }
        MatchRequest::Rejoin { run, players } => {
            let ((node, run), players) = (parameters(*run), player_columns(players));
            session.query(
                "SELECT cluster_rejoin($1, $2, $3, $4)",
                &[&node, &run, &players, &at_ms],
            )?
        }
        _ => {
            let cause = format!("the reply to {request:?} is not a result code");
            return Err(ClusterStoreError::NotExecuted(cause));
        }
    };
    reply_of(column(first(&rows)?, 0)?)
}

fn close_match(
    session: &mut PostgresSession,
    (run, id): (NodeRun, MatchId),
    (state, result): (i32, &Vec<u8>),
    at_ms: Option<i64>,
) -> Result<Vec<Row>, ClusterStoreError> {
    let ((node, run), (epoch, nth)) = (parameters(run), match_parameters(id));
    let rows = session.query(
        "SELECT cluster_close_match($1, $2, $3, $4, $5, $6, $7)",
        &[&node, &run, &epoch, &nth, &state, result, &at_ms],
    )?;
    Ok(rows)
}

const fn match_parameters(id: MatchId) -> (i64, i64) {
    (id.epoch as i64, id.nth as i64)
}

fn player_columns(players: &[PlayerId]) -> Vec<i64> {
    players.iter().map(|player| player.0 as i64).collect()
}

/// Players and the matches at which they have arrived, as parameters: one array per column.
fn arrival_columns(
    arrived: &[(PlayerId, Option<MatchId>)],
) -> (Vec<i64>, Vec<Option<i64>>, Vec<Option<i64>>) {
    let players = arrived.iter().map(|(player, _)| player.0 as i64);
    let ids = arrived.iter().map(|(_, id)| id.map(match_parameters));
    let (epochs, nths) = ids.map(Option::unzip).unzip();
    (players.collect(), epochs, nths)
}

/// The tickets of a match, as parameters: one array per column.
#[derive(Debug, Default)]
struct TicketColumns {
    sides: Vec<i32>,
    nodes: Vec<i32>,
    runs: Vec<i64>,
    nths: Vec<i64>,
}

impl TicketColumns {
    fn new(sides: &[Vec<TicketId>]) -> Self {
        let mut columns = Self::default();
        for (side, tickets) in sides.iter().enumerate() {
            for ticket in tickets {
                let (node, run) = parameters(ticket.run);
                columns.sides.push(side as i32);
                columns.nodes.push(node);
                columns.runs.push(run);
                columns.nths.push(ticket.nth as i64);
            }
        }
        columns
    }
}

fn read_role(
    session: &mut PostgresSession,
    role: &str,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let rows = session.query(
        "SELECT node, run, epoch, cluster_role_is_held(cluster_role, $2) FROM cluster_role WHERE name = $1",
        &[&role, &at_ms],
    )?;
    let Some(row) = rows.first() else {
        return Ok(MatchReply::Role(None, 0, false));
    };
    let node: Option<i32> = column(row, 0)?;
    let owner = node.map(|_| run_at(row, 0)).transpose()?;
    let epoch: i64 = column(row, 2)?;
    Ok(MatchReply::Role(owner, epoch as u64, column(row, 3)?))
}

fn add_ticket(
    session: &mut PostgresSession,
    ticket: &ClusterTicket,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let (node, run) = parameters(ticket.id.run);
    let rating = &ticket.rating;
    let members = ticket.members.iter();
    let players = members.clone().map(|member| member.player.0 as i64);
    let home_nodes = members.clone().map(|member| member.home.node.0 as i32);
    let home_scenes = members.map(|member| member.home.scene.clone());
    let rows = session.query(
        "SELECT cluster_add_ticket($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        &[
            &node,
            &run,
            &(ticket.id.nth as i64),
            &ticket.mode,
            &i64::from(rating.power),
            &rating.skill,
            &i32::from(rating.level),
            &i64::from(rating.leader_strength),
            &i64::from(rating.regions),
            &&rating.roles[..],
            &player_columns(&rating.avoid),
            &Vec::from_iter(players),
            &Vec::from_iter(home_nodes),
            &Vec::from_iter(home_scenes),
            &at_ms,
        ],
    )?;
    reply_of(column(first(&rows)?, 0)?)
}

fn read_tickets(
    session: &mut PostgresSession,
    (run, epoch): (NodeRun, u64),
    after: u64,
    changes_max: usize,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let rows = session.query(
        "SELECT _code, _now_ms, _revision, (_ticket).is_gone, (_ticket).node, (_ticket).run, (_ticket).nth, (_ticket).mode,
            (_ticket).power, (_ticket).skill, (_ticket).level, (_ticket).leader_strength, (_ticket).regions, (_ticket).roles,
            (_ticket).avoid, (_ticket).waiting_since_ms, _players, _home_nodes, _home_scenes
            FROM cluster_read_tickets($1, $2, $3, $4, $5, $6)",
        &[&node, &run, &(epoch as i64), &(after as i64), &(changes_max as i64), &at_ms],
    )?;
    let head = first(&rows)?;
    match column(head, 0)? {
        0 => {}
        code => return reply_of(code),
    }
    let now_ms: i64 = column(head, 1)?;
    let (mut changes, mut revision) = (Vec::new(), after);
    for row in &rows[1..] {
        let nth: i64 = column(row, 2)?;
        revision = nth as u64;
        let id = ticket_at(row, 4)?;
        changes.push(if column(row, 3)? {
            TicketChange::Gone(id)
        } else {
            let since_ms: i64 = column(row, 15)?;
            TicketChange::Waits(waiting_ticket(row, id)?, since_ms as u64)
        });
    }
    Ok(MatchReply::Tickets {
        changes,
        revision,
        now_ms: now_ms as u64,
    })
}

/// The ticket in a row of `cluster_read_tickets`.
fn waiting_ticket(row: &Row, id: TicketId) -> Result<ClusterTicket, ClusterStoreError> {
    let (power, level, leader_strength): (i64, i32, i64) =
        (column(row, 8)?, column(row, 10)?, column(row, 11)?);
    let (regions, roles, avoid): (i64, Vec<u8>, Vec<i64>) =
        (column(row, 12)?, column(row, 13)?, column(row, 14)?);
    let players: Option<Vec<i64>> = column(row, 16)?;
    let home_nodes: Option<Vec<i32>> = column(row, 17)?;
    let home_scenes: Option<Vec<String>> = column(row, 18)?;
    let homes = home_nodes.into_iter().flatten();
    let homes = homes.zip(home_scenes.into_iter().flatten());
    let members = players.into_iter().flatten().zip(homes);
    let members = members.map(|(player, (node, scene))| TicketMember {
        player: PlayerId(player as u64),
        home: TicketHome {
            node: ClusterNodeId(node as u32),
            scene,
        },
    });
    Ok(ClusterTicket {
        id,
        mode: column(row, 7)?,
        members: members.collect(),
        rating: TicketRating {
            power: power as u32,
            skill: column(row, 9)?,
            level: level as u16,
            leader_strength: leader_strength as u32,
            regions: regions as u32,
            roles: roles
                .try_into()
                .map_err(|_| foreign(&"a wrong number of roles"))?,
            avoid: avoid
                .into_iter()
                .map(|player| PlayerId(player as u64))
                .collect(),
        },
    })
}

fn form_match(
    session: &mut PostgresSession,
    run: NodeRun,
    new: &NewMatch,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let ((node, run), (epoch, nth)) = (parameters(run), match_parameters(new.id));
    let (host_node, host_run) = parameters(new.node);
    let tickets = TicketColumns::new(&new.sides);
    let rows = session.query(
        "SELECT _code, _missing FROM cluster_form_match($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        &[
            &node,
            &run,
            &epoch,
            &nth,
            &new.mode,
            &(new.sides.len() as i32),
            &tickets.sides,
            &tickets.nodes,
            &tickets.runs,
            &tickets.nths,
            &host_node,
            &host_run,
            &new.is_requeued,
            &at_ms,
        ],
    )?;
    let row = first(&rows)?;
    let missing: Option<Vec<i64>> = column(row, 1)?;
    let all: Vec<TicketId> = new.sides.iter().flatten().copied().collect();
    match (column(row, 0)?, missing) {
        (10, Some(places)) => {
            let missing = places
                .iter()
                .map(|place| all.get(*place as usize - 1).copied());
            let missing: Option<Vec<TicketId>> = missing.collect();
            let missing = missing.ok_or_else(|| foreign(&"a ticket that was not requested"))?;
            Ok(MatchReply::Unavailable(missing))
        }
        (code, _) => reply_of(code),
    }
}

fn read_matches(
    session: &mut PostgresSession,
    run: NodeRun,
) -> Result<MatchReply, ClusterStoreError> {
    let (node, run) = parameters(run);
    let rows = session.query(
        "SELECT (_match).epoch, (_match).nth, (_match).mode, (_match).sides, (_match).ticket_sides, (_match).ticket_nodes,
            (_match).ticket_runs, (_match).ticket_nths, _players, _player_sides FROM cluster_formed_matches($1, $2)",
        &[&node, &run],
    )?;
    let entries: Result<_, ClusterStoreError> = rows.iter().map(match_at).collect();
    Ok(MatchReply::Matches(entries?))
}

/// The match in a row of `cluster_formed_matches`.
fn match_at(row: &Row) -> Result<MatchEntry, ClusterStoreError> {
    let sides_max: i32 = column(row, 3)?;
    let mut sides = vec![Vec::new(); sides_max as usize];
    let mut players = vec![Vec::new(); sides_max as usize];
    let of_tickets: Vec<i32> = column(row, 4)?;
    let (nodes, runs, nths): (Vec<i32>, Vec<i64>, Vec<i64>) =
        (column(row, 5)?, column(row, 6)?, column(row, 7)?);
    let tickets = nodes.into_iter().zip(runs).zip(nths);
    for (side, ((node, run), nth)) in of_tickets.into_iter().zip(tickets) {
        let side = sides.get_mut(side as usize);
        let run = NodeRun {
            node: ClusterNodeId(node as u32),
            run: run as u64,
        };
        let id = TicketId {
            run,
            nth: nth as u64,
        };
        side.ok_or_else(|| foreign(&"an unknown side"))?.push(id);
    }
    let found: Option<Vec<i64>> = column(row, 8)?;
    let of_players: Option<Vec<i32>> = column(row, 9)?;
    let found = found.into_iter().flatten();
    for (player, side) in found.zip(of_players.into_iter().flatten()) {
        let side = players.get_mut(side as usize);
        side.ok_or_else(|| foreign(&"an unknown side"))?
            .push(PlayerId(player as u64));
    }
    Ok(MatchEntry {
        id: match_id_at(row, 0)?,
        mode: column(row, 2)?,
        sides,
        players,
    })
}

fn read_match(session: &mut PostgresSession, id: MatchId) -> Result<MatchReply, ClusterStoreError> {
    let (epoch, nth) = match_parameters(id);
    let rows = session.query(
        "SELECT node, run, state, result FROM cluster_match WHERE epoch = $1 AND nth = $2",
        &[&epoch, &nth],
    )?;
    let Some(row) = rows.first() else {
        return Ok(MatchReply::Refused(RefusedMatch::NoMatch));
    };
    let state: i32 = column(row, 2)?;
    let state = match state {
        0 => MatchState::Formed,
        1 => MatchState::Ready,
        2 => MatchState::Ended,
        3 => MatchState::Aborted,
        _ => return Err(foreign(&format!("state {state}"))),
    };
    Ok(MatchReply::Match(run_at(row, 0)?, state, column(row, 3)?))
}

fn read_travels(
    session: &mut PostgresSession,
    (run, after): (NodeRun, Option<PlayerId>),
    players_max: usize,
    at_ms: Option<i64>,
) -> Result<MatchReply, ClusterStoreError> {
    let ((node, run), after) = (parameters(run), after.map(|player| player.0 as i64));
    let rows = session.query(
        "SELECT _player, _match_epoch, _match_nth, _home_node, _home_scene, _to_node, _to_run FROM cluster_travels($1, $2, $3)
            WHERE $5::BIGINT IS NULL OR (_player < 0, _player) > ($5 < 0, $5) ORDER BY _player < 0, _player LIMIT $4",
        &[&node, &run, &at_ms, &(players_max as i64), &after],
    )?;
    let travels = rows.iter().map(|row| {
        let player: i64 = column(row, 0)?;
        let epoch: Option<i64> = column(row, 1)?;
        let goal = match epoch {
            Some(_) => TravelGoal::Match(match_id_at(row, 1)?),
            None => {
                let node: i32 = column(row, 3)?;
                TravelGoal::Home(TicketHome {
                    node: ClusterNodeId(node as u32),
                    scene: column(row, 4)?,
                })
            }
        };
        let to: Option<i32> = column(row, 5)?;
        Ok(PlayerTravel {
            player: PlayerId(player as u64),
            goal,
            to: to.map(|_| run_at(row, 5)).transpose()?,
        })
    });
    let travels: Result<_, ClusterStoreError> = travels.collect();
    Ok(MatchReply::Travels(travels?))
}

/// The ticket in a column and the next two.
fn ticket_at(row: &Row, nth: usize) -> Result<TicketId, ClusterStoreError> {
    let number: i64 = column(row, nth + 2)?;
    Ok(TicketId {
        run: run_at(row, nth)?,
        nth: number as u64,
    })
}

/// The match in a column and the next one.
fn match_id_at(row: &Row, nth: usize) -> Result<MatchId, ClusterStoreError> {
    let (epoch, number): (i64, i64) = (column(row, nth)?, column(row, nth + 1)?);
    Ok(MatchId {
        epoch: epoch as u64,
        nth: number as u64,
    })
}

/// Converts the result code of a function in `cluster_matches.sql`.
fn reply_of(code: i32) -> Result<MatchReply, ClusterStoreError> {
    Ok(MatchReply::Refused(match code {
        0 => return Ok(MatchReply::Done),
        1 => RefusedMatch::RunEnded,
        2 => RefusedMatch::OtherEpoch,
        3 => RefusedMatch::RoleHeld,
        4 => RefusedMatch::NotMatcher,
        5 => RefusedMatch::TicketGone,
        6 => RefusedMatch::PlayerQueued,
        7 => RefusedMatch::InMatch,
        8 => RefusedMatch::HostLate,
        9 => RefusedMatch::NoMatch,
        _ => return Err(foreign(&format!("result {code}"))),
    }))
}
