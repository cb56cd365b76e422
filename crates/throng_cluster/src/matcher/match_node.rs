//! A node's part in matches: its requests, and the work for its driver.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use thiserror::Error;
use throng_core::ids::PlayerId;
use throng_matchmaking::{ModeError, TicketError};

use super::forming::Matcher;
use super::instances::{InstanceWrite, MatchInstances};
use super::pool::TicketPool;
use super::requests::{MatchKind, MatchWork, PendingMatchRequests};
use super::settings::{ClusterModeSettings, HostLoad, MatcherSettings, MatcherStats};
use crate::ids::{ClusterNodeId, NodeRun};
use crate::node::RequestId;
use crate::request::{
    ClusterTicket, MATCHER_ROLE, MatchEntry, MatchId, MatchRequest, PlayerTravel, RefusedMatch,
    TicketId, TicketMember, TicketRating, TravelGoal,
};

/// Work for the driver of a [`MatchNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchOutput {
    /// Send a request to the store. The reply goes to [`MatchNode::on_reply`]; it may be lost.
    Store(RequestId, MatchRequest),
    /// Wake a node over the bus: call its [`MatchNode::on_wake`]. It may be lost.
    Wake(ClusterNodeId),
    /// Open the instance of a match, then call [`MatchNode::match_opened`]; or [`MatchNode::abort_match`].
    Open(MatchEntry),
    /// Close the instance of a match: it was aborted, or the run of this node has ended. The players that are still here are sent home.
    Close(MatchId),
    /// Hand a player off to another node: [`ClusterNode::begin_move`](crate::ClusterNode::begin_move). Repeated until the player is there.
    Move(PlayerTravel),
    /// A player has arrived at its match or at home. If its home is dead, the player stays where it is, and counts as arrived. May be
    /// emitted more than once per travel.
    Arrived(PlayerId, TravelGoal),
    /// A player of [`rejoin`](MatchNode::rejoin) travels neither to a match nor home: it is in no match, or in one of this node.
    NoTravel(PlayerId),
    /// The outcome of a ticket that was to be added or cancelled.
    Ticket(TicketId, TicketOutcome),
}

/// The outcome of a ticket that was to be added or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketOutcome {
    /// It waits.
    Added,
    /// It was not added.
    Refused(RefusedMatch),
    /// It was cancelled.
    Cancelled,
    /// It was not cancelled, because it is in a match.
    InMatch,
}

/// Why a ticket was not accepted. Nothing was sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TicketNotAdded {
    /// It does not fit its mode.
    #[error(transparent)]
    Invalid(#[from] TicketError),
    /// The node was not polled with a run yet.
    #[error("ticket not added: this node has no run yet; try again later")]
    NotRunning,
    /// Too many tickets wait to be written.
    #[error(
        "ticket not added: {0} tickets wait to be written; the store may be away; try again later"
    )]
    Busy(usize),
}

/// A change of a ticket that waits to be written.
#[derive(Clone, Debug)]
pub(super) enum TicketWrite {
    Add(ClusterTicket),
    Cancel(TicketId),
    /// By the matcher.
    Reject(TicketId),
}

/// A node's part in matches. It has no clock: all times are those of its caller, in milliseconds of a monotonic clock.
///
/// ```
/// use throng_cluster::{
///     ClusterModeSettings, ClusterReply, ClusterRequest, ClusterRows, HostLoad, MatchNode, MatchOutput, MatcherSettings,
///     TicketHome, TicketMember, TicketRating,
/// };
/// use throng_core::ids::PlayerId;
/// use throng_matchmaking::MatchModeSettings;
///
/// let mut rows = ClusterRows::default();
/// let ClusterReply::Started(run) = rows.execute(ClusterRequest::StartRun { name: "n1".into() }, 0) else {
///     panic!("no other process has this name")
/// };
/// let modes = [ClusterModeSettings::new(MatchModeSettings::groups("duel", 1))];
/// let mut node = MatchNode::new(&modes, MatcherSettings::default())?;
/// let mut opened = Vec::new();
/// for now_ms in (0..1_000).step_by(10) {
///     // The store assigns the number of the run. A node adds tickets only after its first poll with a run.
///     let hosts = [HostLoad { run, load: 0 }];
///     for output in node.poll(now_ms, Some(run), &hosts) {
///         if let MatchOutput::Store(id, request) = output {
///             let reply = rows.execute(ClusterRequest::Match(request), now_ms);
///             opened.extend(node.on_reply(now_ms, id, reply));
///         }
///     }
///     if now_ms == 0 {
///         for player in [PlayerId(1), PlayerId(2)] {
///             let home = TicketHome { node: run.node, scene: "town".into() };
///             node.add_ticket("duel", vec![TicketMember { player, home }], TicketRating::default())?;
///         }
///     }
/// }
/// assert!(opened.iter().any(|output| matches!(output, MatchOutput::Open(entry) if entry.mode == "duel")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MatchNode {
    pub(super) settings: MatcherSettings,
    pub(super) matcher: Matcher,
    /// The newest run in which the node could simulate.
    pub(super) run: Option<NodeRun>,
    pub(super) last_nth: u64,
    pub(super) tickets: VecDeque<TicketWrite>,
    pub(super) instances: MatchInstances,
    /// Players whose arrival was reported to the driver and is not recorded in the store yet.
    pub(super) arrived: BTreeMap<PlayerId, TravelGoal>,
    /// The player after which the next list of travelling players begins; `None`: at the lowest id.
    pub(super) travels_after: Option<PlayerId>,
    pub(super) rejoins: BTreeSet<PlayerId>,
    /// Players that the store has rejoined. The next list shows where they go to.
    pub(super) rejoined: BTreeSet<PlayerId>,
    /// Those of them before the pending read was sent.
    pub(super) listed: BTreeSet<PlayerId>,
    pub(super) hosts: Vec<HostLoad>,
    /// A node has died, and its matches were not aborted yet.
    pub(super) has_death: bool,
    /// The epoch of the role, if it is free.
    pub(super) free_epoch: Option<u64>,
    pub(super) requests: PendingMatchRequests,
    pub(super) stats: MatcherStats,
}

impl MatchNode {
    /// A node without tickets and matches.
    ///
    /// # Errors
    /// [`ModeError`], if a mode is not valid, two have the same name, or one lets players accept their matches.
    pub fn new(
        modes: &[ClusterModeSettings],
        settings: MatcherSettings,
    ) -> Result<Self, ModeError> {
        Ok(Self {
            settings,
            matcher: Matcher::new(TicketPool::new(modes)?, modes),
            run: None,
            last_nth: 0,
            tickets: VecDeque::new(),
            instances: MatchInstances::default(),
            arrived: BTreeMap::new(),
            travels_after: None,
            rejoins: BTreeSet::new(),
            rejoined: BTreeSet::new(),
            listed: BTreeSet::new(),
            hosts: Vec::new(),
            has_death: false,
            free_epoch: None,
            requests: PendingMatchRequests::default(),
            stats: MatcherStats::NONE,
        })
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> MatcherStats {
        self.stats
    }

    /// The epoch with which it is the matcher, as far as it knows; `None` if it is not.
    #[must_use]
    pub const fn matcher_epoch(&self) -> Option<u64> {
        self.matcher.epoch()
    }

    /// The number of waiting tickets that it knows as the matcher. O(1).
    #[must_use]
    pub fn waiting_tickets(&self) -> usize {
        self.matcher.pool().waiting()
    }

    /// The matches that are open or must be opened on this node, in ascending order.
    pub fn open_matches(&self) -> impl Iterator<Item = MatchId> {
        self.instances.open()
    }

    /// Adds a ticket of these players, the leader first. The outcome follows as [`MatchOutput::Ticket`]. The players may be on other nodes.
    /// A player can be in only one ticket, until it is home again after the match.
    ///
    /// # Errors
    /// [`TicketNotAdded`].
    pub fn add_ticket(
        &mut self,
        mode: &str,
        members: Vec<TicketMember>,
        rating: TicketRating,
    ) -> Result<TicketId, TicketNotAdded> {
        let run = self.run.ok_or(TicketNotAdded::NotRunning)?;
        self.check_writes()?;
        let nth = self.last_nth + 1;
        let ticket = ClusterTicket {
            id: TicketId { run, nth },
            mode: mode.to_owned(),
            members,
            rating,
        };
        self.matcher.pool().check(&ticket)?;
        self.last_nth = nth;
        let id = ticket.id;
        self.tickets.push_back(TicketWrite::Add(ticket));
        Ok(id)
    }

    /// Cancels a ticket of any node. The outcome follows as [`MatchOutput::Ticket`], unless the run of this node ends before.
    ///
    /// # Errors
    /// [`TicketNotAdded::NotRunning`] and [`TicketNotAdded::Busy`].
    pub fn cancel_ticket(&mut self, id: TicketId) -> Result<(), TicketNotAdded> {
        self.run.ok_or(TicketNotAdded::NotRunning)?;
        self.check_writes()?;
        self.tickets.push_back(TicketWrite::Cancel(id));
        Ok(())
    }

    fn check_writes(&self) -> Result<(), TicketNotAdded> {
        let waiting = self.tickets.len();
        let is_full = waiting >= self.settings.ticket_writes_max;
        (!is_full)
            .then_some(())
            .ok_or(TicketNotAdded::Busy(waiting))
    }

    /// Reports that the instance of a match is open, so that its players are sent there. `false` if the match is not on this node, or is
    /// over.
    pub fn match_opened(&mut self, id: MatchId) -> bool {
        self.instances.write(id, InstanceWrite::Ready)
    }

    /// Ends a match with a result; its players go home. `false` if the match is not on this node, or is over.
    pub fn end_match(&mut self, id: MatchId, result: Vec<u8>) -> bool {
        self.instances.write(id, InstanceWrite::End(result))
    }

    /// Aborts a match that cannot be opened or continued. Its players go home. Its tickets wait again if
    /// [`ClusterModeSettings::is_requeued`], and are removed otherwise. `false` if the match is not on this node, or is over.
    pub fn abort_match(&mut self, id: MatchId) -> bool {
        self.instances.write(id, InstanceWrite::Abort)
    }

    /// Sends a player of this node to its match, if it is in one on another node. Otherwise, emits [`MatchOutput::NoTravel`]. Call it for
    /// players that arrive.
    pub fn rejoin(&mut self, player: PlayerId) {
        self.rejoins.insert(player);
    }

    /// Handles a [`MatchOutput::Wake`] of another node: the next [`poll`](Self::poll) reads matches and travelling players.
    pub const fn on_wake(&mut self, now_ms: u64) {
        self.requests.set_next(MatchKind::Matches, now_ms);
        self.requests.set_next(MatchKind::Travels, now_ms);
    }

    /// Handles the adoption of players ([`NodeOutput::Adopted`](crate::NodeOutput::Adopted)): some may have arrived for a match of this node.
    pub const fn on_adopted(&mut self, now_ms: u64) {
        self.requests.set_next(MatchKind::Travels, now_ms);
    }

    /// Handles the death of a node ([`NodeOutput::NodeDeath`](crate::NodeOutput::NodeDeath)): its matches are aborted at once, so that their
    /// players do not wait for the matcher, which may have died with it.
    pub const fn on_node_death(&mut self) {
        self.has_death = true;
    }

    /// Does the work that is due at this time. `run` is the run of the node; with `None`, because the node is paused, nothing happens.
    /// `hosts` are the nodes that can get matches. Call it at least once per tick.
    pub fn poll(
        &mut self,
        now_ms: u64,
        run: Option<NodeRun>,
        hosts: &[HostLoad],
    ) -> Vec<MatchOutput> {
        let mut outputs = Vec::new();
        let Some(run) = run else {
            return outputs;
        };
        if self.run != Some(run) {
            self.end_run(&mut outputs);
            self.run = Some(run);
        }
        hosts.clone_into(&mut self.hosts);
        let timeout_ms = self.settings.request_timeout_ms;
        for work in self.requests.take_overdue(now_ms, timeout_ms) {
            self.on_unknown(work);
        }
        self.hold_role(run, now_ms, &mut outputs);
        self.write(run, now_ms, &mut outputs);
        self.read(run, now_ms, &mut outputs);
        outputs
    }

    /// Discards the state of the previous run. Its tickets keep waiting in the store, and the matcher aborts its matches.
    fn end_run(&mut self, outputs: &mut Vec<MatchOutput>) {
        let closed = self.instances.clear().into_iter();
        outputs.extend(closed.map(MatchOutput::Close));
        for write in self.tickets.drain(..) {
            if let TicketWrite::Add(ticket) = write {
                let outcome = TicketOutcome::Refused(RefusedMatch::RunEnded);
                outputs.push(MatchOutput::Ticket(ticket.id, outcome));
            }
        }
        self.matcher.set_epoch(None);
        self.has_death = false;
        self.free_epoch = None;
        self.last_nth = 0;
        self.arrived.clear();
        self.travels_after = None;
        self.rejoins.clear();
        self.rejoined.clear();
        self.listed.clear();
        self.requests.clear();
    }

    fn send(
        &mut self,
        work: MatchWork,
        request: MatchRequest,
        now_ms: u64,
        outputs: &mut Vec<MatchOutput>,
    ) {
        let id = self.requests.send(work, now_ms);
        outputs.push(MatchOutput::Store(id, request));
    }

    fn hold_role(&mut self, run: NodeRun, now_ms: u64, outputs: &mut Vec<MatchOutput>) {
        if !self.requests.is_due(MatchKind::Role, now_ms) {
            return;
        }
        let role = MATCHER_ROLE.to_owned();
        if let Some(epoch) = self.matcher.epoch() {
            let request = MatchRequest::RenewRole { run, role, epoch };
            self.send(MatchWork::RenewRole, request, now_ms, outputs);
        } else if let Some(epoch) = self.free_epoch.take() {
            let request = MatchRequest::TakeRole { run, role, epoch };
            self.send(MatchWork::TakeRole(epoch + 1), request, now_ms, outputs);
        } else {
            let request = MatchRequest::ReadRole { role };
            self.send(MatchWork::ReadRole, request, now_ms, outputs);
        }
    }

    fn write(&mut self, run: NodeRun, now_ms: u64, outputs: &mut Vec<MatchOutput>) {
        if self.requests.is_due(MatchKind::Ticket, now_ms)
            && let Some(write) = self.tickets.front()
        {
            let request = match write {
                TicketWrite::Add(ticket) => MatchRequest::AddTicket {
                    ticket: ticket.clone(),
                },
                TicketWrite::Cancel(ticket) | TicketWrite::Reject(ticket) => {
                    let ticket = *ticket;
                    MatchRequest::CancelTicket { run, ticket }
                }
            };
            self.send(MatchWork::Ticket, request, now_ms, outputs);
        }
        if self.requests.is_due(MatchKind::Form, now_ms)
            && let Some(new) = self.matcher.next_match()
        {
            let new = new.clone();
            let request = MatchRequest::FormMatch { run, new };
            self.send(MatchWork::Form, request, now_ms, outputs);
        }
        let aborts = self.has_death || self.matcher.epoch().is_some();
        if aborts && self.requests.is_due(MatchKind::Abort, now_ms) {
            self.has_death = false;
            let matches_max = self.settings.aborted_matches_max;
            let next_ms = now_ms + self.settings.abort_interval_ms;
            self.requests.set_next(MatchKind::Abort, next_ms);
            let request = MatchRequest::AbortLate { run, matches_max };
            self.send(MatchWork::Abort, request, now_ms, outputs);
        }
        if self.requests.is_due(MatchKind::Instance, now_ms)
            && let Some(request) = self.instances.next_request(run)
        {
            self.send(MatchWork::Instance, request, now_ms, outputs);
        }
    }

    fn read(&mut self, run: NodeRun, now_ms: u64, outputs: &mut Vec<MatchOutput>) {
        let next_ms = now_ms + self.settings.read_interval_ms;
        if self.requests.is_due(MatchKind::Read, now_ms)
            && let Some(epoch) = self.matcher.epoch()
        {
            self.requests.set_next(MatchKind::Read, next_ms);
            let request = MatchRequest::ReadTickets {
                run,
                epoch,
                after: self.matcher.after,
                changes_max: self.settings.read_tickets_max.max(1),
            };
            self.send(MatchWork::Read, request, now_ms, outputs);
        }
        if self.requests.is_due(MatchKind::Matches, now_ms) {
            self.requests.set_next(MatchKind::Matches, next_ms);
            let request = MatchRequest::ReadMatches { run };
            self.send(MatchWork::Matches, request, now_ms, outputs);
        }
        if self.requests.is_due(MatchKind::Travels, now_ms) {
            self.requests.set_next(MatchKind::Travels, next_ms);
            self.listed = std::mem::take(&mut self.rejoined);
            let players_max = self.settings.read_travels_max.max(1);
            let after = self.travels_after;
            let request = MatchRequest::ReadTravels {
                run,
                after,
                players_max,
            };
            self.send(MatchWork::Travels(after), request, now_ms, outputs);
        }
        if self.requests.is_due(MatchKind::Arrive, now_ms) && !self.arrived.is_empty() {
            let arrived = self.arrived.iter();
            let arrived = arrived.map(|(player, goal)| (*player, goal.match_id()));
            let arrived = arrived.collect();
            let request = MatchRequest::EndTravels { run, arrived };
            self.requests.set_next(MatchKind::Arrive, next_ms);
            self.send(MatchWork::EndTravels, request, now_ms, outputs);
        }
        // A player that has just arrived rejoins when that is recorded. The others do not wait for it.
        let arrived = &self.arrived;
        let may_rejoin = |player: &PlayerId| !arrived.contains_key(player);
        if self.requests.is_due(MatchKind::Rejoin, now_ms) && self.rejoins.iter().any(may_rejoin) {
            let players: Vec<PlayerId> = self.rejoins.extract_if(.., |it| may_rejoin(it)).collect();
            let work = MatchWork::Rejoin(players.clone());
            let request = MatchRequest::Rejoin { run, players };
            self.send(work, request, now_ms, outputs);
        }
    }
}
