//! The rows of matches, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use throng_core::ids::PlayerId;

use super::scenes::SceneRows;
use super::{ClusterRows, NodeRow, OwnedPlayerRow, is_late};
use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{
    ClusterTicket, MATCH_KEPT_MS, MATCHER_ROLE, MatchEntry, MatchId, MatchReply, MatchRequest,
    MatchState, NewMatch, PlayerTravel, ROLE_LEASE_MS, RefusedMatch, TicketChange, TicketHome,
    TicketId, TravelGoal,
};

#[derive(Clone, Copy, Debug, Default)]
struct RoleRow {
    owner: Option<NodeRun>,
    epoch: u64,
    expires_ms: u64,
    /// The last revision of a ticket. Used only for the role of the matcher.
    revision: u64,
}

#[derive(Clone, Debug)]
struct TicketRow {
    ticket: ClusterTicket,
    waiting_since_ms: u64,
    /// Whether it was cancelled. The row is removed when the matcher has read that.
    is_gone: bool,
    in_match: Option<MatchId>,
    /// The number of its last change; `None` until the matcher reads the change.
    revision: Option<u64>,
}

/// A player that is in a ticket, or travels home.
#[derive(Clone, Debug)]
struct MemberRow {
    ticket: Option<TicketId>,
    home: TicketHome,
    in_match: Option<MatchId>,
    is_travelling: bool,
}

#[derive(Clone, Debug)]
struct MatchRow {
    new: NewMatch,
    state: MatchState,
    over_ms: u64,
    result: Vec<u8>,
}

/// The rows of roles, tickets and matches.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchRows {
    roles: BTreeMap<String, RoleRow>,
    tickets: BTreeMap<TicketId, TicketRow>,
    /// Tickets without a revision that are in no match, ordered by `waiting_since_ms`.
    unread: BTreeSet<(u64, TicketId)>,
    /// Tickets with a revision that are in no match.
    by_revision: BTreeMap<u64, TicketId>,
    /// The revisions of cancelled tickets.
    gone: BTreeSet<u64>,
    members: BTreeMap<PlayerId, MemberRow>,
    travelling: BTreeSet<PlayerId>,
    matches: BTreeMap<MatchId, MatchRow>,
    open: BTreeSet<MatchId>,
    over: BTreeSet<(u64, MatchId)>,
    /// The run and the number of the last ticket of each node.
    last_tickets: BTreeMap<ClusterNodeId, (u64, u64)>,
}

/// The other rows.
struct OtherRows<'a> {
    players: &'a BTreeMap<PlayerId, OwnedPlayerRow>,
    nodes: &'a BTreeMap<ClusterNodeId, NodeRow>,
    scenes: &'a SceneRows,
    now_ms: u64,
}

impl OtherRows<'_> {
    fn is_alive(&self, run: NodeRun) -> bool {
        self.newest_alive(run.node) == Some(run)
    }

    /// The newest run of a node, if it is alive.
    fn newest_alive(&self, node: ClusterNodeId) -> Option<NodeRun> {
        let row = self.nodes.get(&node)?;
        let is_alive = !row.is_dead && !is_late(row, self.now_ms);
        is_alive.then_some(NodeRun { node, run: row.run })
    }

    /// Whether a run will never be alive again. A late run may be alive again.
    fn is_dead(&self, run: NodeRun) -> bool {
        let row = self.nodes.get(&run.node);
        !row.is_some_and(|row| row.run == run.run && !row.is_dead)
    }

    /// The node to which a player goes home: the one that runs its scene now, or else the one of its ticket. `None` if it is dead.
    fn home(&self, home: &TicketHome) -> Option<NodeRun> {
        let owner = self.scenes.owner(&home.scene);
        let owner = owner.filter(|owner| self.is_alive(*owner));
        owner.or_else(|| self.newest_alive(home.node))
    }

    fn has_adopted(&self, run: NodeRun, player: PlayerId) -> bool {
        let row = self.players.get(&player);
        row.is_some_and(|row| row.owner == Some(run) && row.is_adopted)
    }

    fn check_alive(&self, run: NodeRun) -> Result<(), RefusedMatch> {
        let alive = self.is_alive(run).then_some(());
        alive.ok_or(RefusedMatch::RunEnded)
    }
}

impl ClusterRows {
    pub(super) fn execute_match(&mut self, request: MatchRequest, now_ms: u64) -> MatchReply {
        let others = OtherRows {
            players: &self.players,
            nodes: &self.nodes,
            scenes: &self.scenes,
            now_ms,
        };
        self.matches.execute(request, &others)
    }

    /// The state of a match, and its node.
    #[must_use]
    pub fn match_state(&self, id: MatchId) -> Option<(MatchState, NodeRun)> {
        let row = self.matches.matches.get(&id)?;
        Some((row.state, row.new.node))
    }

    /// The tickets that wait or are in a match, in ascending order. Each with the time since which it waits in milliseconds, and its match.
    pub fn tickets(&self) -> impl Iterator<Item = (&ClusterTicket, u64, Option<MatchId>)> {
        let tickets = self.matches.tickets.values();
        let present = tickets.filter(|row| !row.is_gone);
        present.map(|row| (&row.ticket, row.waiting_since_ms, row.in_match))
    }

    /// The players that are in tickets or travel home. Each with its ticket, its match, and whether it travels.
    pub fn match_players(
        &self,
    ) -> impl Iterator<Item = (PlayerId, Option<TicketId>, Option<MatchId>, bool)> {
        self.matches.members.iter().map(|(player, member)| {
            let (ticket, in_match) = (member.ticket, member.in_match);
            (*player, ticket, in_match, member.is_travelling)
        })
    }
}

impl MatchRows {
    fn execute(&mut self, request: MatchRequest, others: &OtherRows<'_>) -> MatchReply {
        let result = match request {
            MatchRequest::ReadRole { role } => return self.read_role(&role, others),
            MatchRequest::TakeRole { run, role, epoch } => self.take_role(run, role, epoch, others),
            MatchRequest::RenewRole { run, role, epoch } => {
                self.renew_role(run, &role, epoch, others)
            }
            MatchRequest::AddTicket { ticket } => self.add_ticket(ticket, others),
            MatchRequest::CancelTicket { run, ticket } => self.cancel_ticket(run, ticket, others),
            MatchRequest::ReadTickets {
                run,
                epoch,
                after,
                changes_max,
            } => return self.read_tickets((run, epoch), after, changes_max, others.now_ms),
            MatchRequest::FormMatch { run, new } => return self.form_match(run, new, others),
            MatchRequest::ReadMatches { run } => return self.read_matches(run),
            MatchRequest::MatchReady { run, id } => self.match_ready(run, id, others),
            MatchRequest::EndMatch { run, id, result } => self.end_match(run, id, result, others),
            MatchRequest::AbortMatch { run, id } => self.abort_match(run, id, others),
            MatchRequest::AbortLate { run, matches_max } => {
                self.abort_late(run, matches_max, others)
            }
            MatchRequest::ReadMatch { id } => return self.read_match(id),
            MatchRequest::ReadTravels {
                run,
                after,
                players_max,
            } => return self.read_travels((run, after), players_max, others),
            MatchRequest::EndTravels { run, arrived } => self.end_travels(run, &arrived, others),
            MatchRequest::Rejoin { run, players } => self.rejoin(run, &players, others),
        };
        result.map_or_else(MatchReply::Refused, |()| MatchReply::Done)
    }

    fn read_role(&self, role: &str, others: &OtherRows<'_>) -> MatchReply {
        let row = self.roles.get(role).copied().unwrap_or_default();
        let is_held = row.holder(others).is_some();
        MatchReply::Role(row.owner, row.epoch, is_held)
    }

    fn take_role(
        &mut self,
        run: NodeRun,
        role: String,
        epoch: u64,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        let mut row = self.roles.get(&role).copied().unwrap_or_default();
        if row.epoch != epoch {
            return Err(RefusedMatch::OtherEpoch);
        }
        if row.holder(others).is_some_and(|holder| holder != run) {
            return Err(RefusedMatch::RoleHeld);
        }
        (row.owner, row.epoch) = (Some(run), epoch + 1);
        row.expires_ms = others.now_ms + ROLE_LEASE_MS;
        self.roles.insert(role, row);
        Ok(())
    }

    fn renew_role(
        &mut self,
        run: NodeRun,
        role: &str,
        epoch: u64,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        let row = self.roles.get_mut(role);
        let row = row.filter(|row| row.owner == Some(run) && row.epoch == epoch);
        row.map(|row| row.expires_ms = others.now_ms + ROLE_LEASE_MS)
            .ok_or(RefusedMatch::OtherEpoch)
    }

    fn add_ticket(
        &mut self,
        ticket: ClusterTicket,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        let id = ticket.id;
        others.check_alive(id.run)?;
        if let Some(row) = self.tickets.get(&id) {
            let is_there = (!row.is_gone).then_some(());
            return is_there.ok_or(RefusedMatch::TicketGone);
        }
        self.use_number(id)?;
        let players: BTreeSet<PlayerId> =
            ticket.members.iter().map(|member| member.player).collect();
        let is_known = |player| self.members.contains_key(player);
        if players.len() < ticket.members.len() || players.iter().any(is_known) {
            return Err(RefusedMatch::PlayerQueued);
        }
        for member in &ticket.members {
            let row = MemberRow {
                ticket: Some(id),
                home: member.home.clone(),
                in_match: None,
                is_travelling: false,
            };
            self.members.insert(member.player, row);
        }
        let row = TicketRow {
            ticket,
            waiting_since_ms: others.now_ms,
            is_gone: false,
            in_match: None,
            revision: None,
        };
        self.tickets.insert(id, row);
        self.unread.insert((others.now_ms, id));
        Ok(())
    }

    /// Records the number of a ticket. A late request must not add a ticket after its node has sent a later one or cancelled it.
    fn use_number(&mut self, id: TicketId) -> Result<(), RefusedMatch> {
        let last = self.last_tickets.entry(id.run.node).or_default();
        if (id.run.run, id.nth) <= *last {
            return Err(RefusedMatch::TicketGone);
        }
        *last = (id.run.run, id.nth);
        Ok(())
    }

    fn cancel_ticket(
        &mut self,
        run: NodeRun,
        id: TicketId,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        if run == id.run {
            // An error only means that the ticket was already added or cancelled.
            let _ = self.use_number(id);
        }
        match self.tickets.get_mut(&id) {
            None => return Ok(()),
            Some(row) if row.is_gone => return Ok(()),
            Some(row) if row.in_match.is_some() => return Err(RefusedMatch::InMatch),
            Some(row) => row.is_gone = true,
        }
        self.mark_unread(id);
        self.leave_ticket(id);
        Ok(())
    }

    /// Marks a ticket as changed, so that the matcher reads it.
    fn mark_unread(&mut self, id: TicketId) {
        if let Some(row) = self.tickets.get_mut(&id) {
            if let Some(revision) = row.revision.take() {
                self.by_revision.remove(&revision);
            }
            self.unread.insert((row.waiting_since_ms, id));
        }
    }

    /// Frees the players of a ticket. Those that travel home continue.
    fn leave_ticket(&mut self, id: TicketId) {
        let row = self.tickets.get(&id);
        let members = row.into_iter().flat_map(|row| &row.ticket.members);
        for member in members {
            let row = self.members.get_mut(&member.player);
            let Some(row) = row.filter(|row| row.ticket == Some(id)) else {
                continue;
            };
            (row.ticket, row.in_match) = (None, None);
            if !row.is_travelling {
                self.members.remove(&member.player);
            }
        }
    }

    fn remove_ticket(&mut self, id: TicketId) {
        self.leave_ticket(id);
        if let Some(row) = self.tickets.remove(&id) {
            self.unread.remove(&(row.waiting_since_ms, id));
            if let Some(revision) = row.revision {
                self.by_revision.remove(&revision);
            }
        }
    }

    fn read_tickets(
        &mut self,
        (run, epoch): (NodeRun, u64),
        after: u64,
        changes_max: usize,
        now_ms: u64,
    ) -> MatchReply {
        let role = self.roles.get_mut(MATCHER_ROLE);
        let role = role.filter(|role| role.owner == Some(run) && role.epoch == epoch);
        let Some(role) = role else {
            return MatchReply::Refused(RefusedMatch::NotMatcher);
        };
        for _ in 0..changes_max {
            let Some((_, id)) = self.unread.pop_first() else {
                break;
            };
            role.revision += 1;
            self.by_revision.insert(role.revision, id);
            if let Some(row) = self.tickets.get_mut(&id) {
                row.revision = Some(role.revision);
                if row.is_gone {
                    self.gone.insert(role.revision);
                }
            }
        }
        let later = self.gone.split_off(&after.saturating_add(1));
        for known in std::mem::replace(&mut self.gone, later) {
            if let Some(id) = self.by_revision.remove(&known) {
                self.tickets.remove(&id);
            }
        }
        let mut revision = after;
        let mut changes = Vec::new();
        for (&nth, id) in self
            .by_revision
            .range(after.saturating_add(1)..)
            .take(changes_max)
        {
            let Some(row) = self.tickets.get(id) else {
                continue;
            };
            revision = nth;
            changes.push(if row.is_gone {
                TicketChange::Gone(*id)
            } else {
                TicketChange::Waits(row.ticket.clone(), row.waiting_since_ms)
            });
        }
        MatchReply::Tickets {
            changes,
            revision,
            now_ms,
        }
    }

    fn form_match(&mut self, run: NodeRun, new: NewMatch, others: &OtherRows<'_>) -> MatchReply {
        if self.matches.contains_key(&new.id) {
            return MatchReply::Done;
        }
        let role = self.roles.get(MATCHER_ROLE);
        if !role.is_some_and(|role| role.owner == Some(run) && role.epoch == new.id.epoch) {
            return MatchReply::Refused(RefusedMatch::NotMatcher);
        }
        if !others.is_alive(new.node) {
            return MatchReply::Refused(RefusedMatch::HostLate);
        }
        let waits = |id: &&TicketId| {
            let row = self.tickets.get(id);
            row.is_some_and(|row| !row.is_gone && row.in_match.is_none())
        };
        let tickets = new.sides.iter().flatten();
        let missing: Vec<TicketId> = tickets.clone().filter(|id| !waits(id)).copied().collect();
        if !missing.is_empty() {
            return MatchReply::Unavailable(missing);
        }
        for id in tickets {
            let Some(row) = self.tickets.get_mut(id) else {
                continue;
            };
            row.in_match = Some(new.id);
            self.unread.remove(&(row.waiting_since_ms, *id));
            if let Some(revision) = row.revision.take() {
                self.by_revision.remove(&revision);
            }
            for member in &row.ticket.members {
                if let Some(member) = self.members.get_mut(&member.player) {
                    member.in_match = Some(new.id);
                }
            }
        }
        self.open.insert(new.id);
        let row = MatchRow {
            state: MatchState::Formed,
            over_ms: 0,
            result: Vec::new(),
            new,
        };
        self.matches.insert(row.new.id, row);
        MatchReply::Done
    }

    fn read_matches(&self, run: NodeRun) -> MatchReply {
        let open = self.open.iter().filter_map(|id| self.matches.get(id));
        let formed = open.filter(|row| row.new.node == run && row.state == MatchState::Formed);
        let entries = formed.map(|row| MatchEntry {
            id: row.new.id,
            mode: row.new.mode.clone(),
            sides: row.new.sides.clone(),
            players: row
                .new
                .sides
                .iter()
                .map(|side| self.players_of(side))
                .collect(),
        });
        MatchReply::Matches(entries.collect())
    }

    fn players_of(&self, tickets: &[TicketId]) -> Vec<PlayerId> {
        let rows = tickets.iter().filter_map(|id| self.tickets.get(id));
        let members = rows.flat_map(|row| &row.ticket.members);
        members.map(|member| member.player).collect()
    }

    /// Returns a match that belongs to this run.
    fn own_match(
        &mut self,
        run: NodeRun,
        id: MatchId,
        others: &OtherRows<'_>,
    ) -> Result<&mut MatchRow, RefusedMatch> {
        others.check_alive(run)?;
        let row = self.matches.get_mut(&id).filter(|row| row.new.node == run);
        row.ok_or(RefusedMatch::NoMatch)
    }

    fn match_ready(
        &mut self,
        run: NodeRun,
        id: MatchId,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        let row = self.own_match(run, id, others)?;
        if row.state.is_over() {
            return Err(RefusedMatch::NoMatch);
        }
        if row.state == MatchState::Formed {
            row.state = MatchState::Ready;
            let tickets: Vec<TicketId> = row.new.sides.iter().flatten().copied().collect();
            for player in self.players_of(&tickets) {
                self.set_travelling(player);
            }
        }
        Ok(())
    }

    fn set_travelling(&mut self, player: PlayerId) {
        if let Some(member) = self.members.get_mut(&player) {
            member.is_travelling = true;
            self.travelling.insert(player);
        }
    }

    fn end_match(
        &mut self,
        run: NodeRun,
        id: MatchId,
        result: Vec<u8>,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        let row = self.own_match(run, id, others)?;
        match row.state {
            MatchState::Ended => return Ok(()),
            MatchState::Aborted => return Err(RefusedMatch::NoMatch),
            MatchState::Formed | MatchState::Ready => row.result = result,
        }
        self.finish(id, MatchState::Ended, others.now_ms);
        Ok(())
    }

    fn abort_match(
        &mut self,
        run: NodeRun,
        id: MatchId,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        match self.own_match(run, id, others)?.state {
            MatchState::Aborted => return Ok(()),
            MatchState::Ended => return Err(RefusedMatch::NoMatch),
            MatchState::Formed | MatchState::Ready => {}
        }
        self.finish(id, MatchState::Aborted, others.now_ms);
        Ok(())
    }

    /// Ends or aborts a match. If it was ready, its players travel home. The tickets wait again or are removed.
    fn finish(&mut self, id: MatchId, state: MatchState, now_ms: u64) {
        let Some(row) = self.matches.get_mut(&id) else {
            return;
        };
        let was_ready = row.state == MatchState::Ready;
        let waits_again = state == MatchState::Aborted && row.new.is_requeued;
        let tickets: Vec<TicketId> = row.new.sides.iter().flatten().copied().collect();
        (row.state, row.over_ms) = (state, now_ms);
        self.open.remove(&id);
        self.over.insert((now_ms, id));
        for player in self.players_of(&tickets) {
            if was_ready {
                self.set_travelling(player);
            }
            if let Some(member) = self.members.get_mut(&player) {
                member.in_match = None;
            }
        }
        for ticket in tickets {
            if waits_again {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.in_match = None;
                }
                self.mark_unread(ticket);
            } else {
                self.remove_ticket(ticket);
            }
        }
    }

    fn abort_late(
        &mut self,
        run: NodeRun,
        matches_max: usize,
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        let is_late = |id: &&MatchId| {
            let row = self.matches.get(id);
            row.is_some_and(|row| others.is_dead(row.new.node))
        };
        let late = self.open.iter().filter(is_late).take(matches_max).copied();
        for id in late.collect::<Vec<_>>() {
            self.finish(id, MatchState::Aborted, others.now_ms);
        }
        for _ in 0..matches_max {
            let oldest = self.over.first().copied();
            let oldest = oldest.filter(|(over_ms, _)| over_ms + MATCH_KEPT_MS <= others.now_ms);
            let Some((over_ms, id)) = oldest else {
                break;
            };
            self.over.remove(&(over_ms, id));
            self.matches.remove(&id);
        }
        Ok(())
    }

    fn read_match(&self, id: MatchId) -> MatchReply {
        let row = self.matches.get(&id);
        row.map_or(MatchReply::Refused(RefusedMatch::NoMatch), |row| {
            MatchReply::Match(row.new.node, row.state, row.result.clone())
        })
    }

    /// The travel of a player; `None` if the player does not travel, or this run has not adopted it.
    fn travel(
        &self,
        run: NodeRun,
        player: PlayerId,
        others: &OtherRows<'_>,
    ) -> Option<PlayerTravel> {
        let member = self.members.get(&player);
        let member = member.filter(|row| row.is_travelling && others.has_adopted(run, player))?;
        let played = member.in_match.and_then(|id| self.matches.get(&id));
        // A player whose match is not open yet goes home until then.
        let (goal, to) = match played.filter(|row| row.state == MatchState::Ready) {
            Some(row) => (
                TravelGoal::Match(row.new.id),
                Some(row.new.node).filter(|to| *to != run),
            ),
            None => {
                let home = member.home.clone();
                let to = others.home(&home);
                let to = to.filter(|to| to.node != run.node);
                (TravelGoal::Home(home), to)
            }
        };
        Some(PlayerTravel { player, goal, to })
    }

    fn read_travels(
        &self,
        (run, after): (NodeRun, Option<PlayerId>),
        players_max: usize,
        others: &OtherRows<'_>,
    ) -> MatchReply {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let travelling = self.travelling.range((first, Bound::Unbounded));
        let travels = travelling.filter_map(|player| self.travel(run, *player, others));
        MatchReply::Travels(travels.take(players_max).collect())
    }

    fn end_travels(
        &mut self,
        run: NodeRun,
        arrived: &[(PlayerId, Option<MatchId>)],
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        for (player, at) in arrived {
            let travel = self.travel(run, *player, others);
            if travel.is_none_or(|it| it.to.is_some() || it.goal.match_id() != *at) {
                continue;
            }
            self.travelling.remove(player);
            if let Some(member) = self.members.get_mut(player) {
                member.is_travelling = false;
                if member.ticket.is_none() {
                    self.members.remove(player);
                }
            }
        }
        Ok(())
    }

    fn rejoin(
        &mut self,
        run: NodeRun,
        players: &[PlayerId],
        others: &OtherRows<'_>,
    ) -> Result<(), RefusedMatch> {
        others.check_alive(run)?;
        for player in players {
            let in_match = self.members.get(player).and_then(|member| member.in_match);
            let row = in_match.and_then(|id| self.matches.get(&id));
            let is_elsewhere =
                row.is_some_and(|row| row.state == MatchState::Ready && row.new.node != run);
            if is_elsewhere && others.has_adopted(run, *player) {
                self.set_travelling(*player);
            }
        }
        Ok(())
    }
}

impl RoleRow {
    fn holder(&self, others: &OtherRows<'_>) -> Option<NodeRun> {
        let is_held = |owner: &NodeRun| others.is_alive(*owner) && others.now_ms < self.expires_ms;
        self.owner.filter(is_held)
    }
}

#[cfg(test)]
mod tests;
