//! A node: which players it holds, and how they come and go.

mod held_player;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_core::ids::PlayerId;

use self::held_player::{HeldPlayer, HeldPlayers, HeldState};
use self::requests::{PendingRequests, RequestKind, RequestWork};
use crate::ids::{ClusterNodeId, GatewayId, NodeRun};
use crate::routes::PlayerRoute;
use crate::rows::{Arrival, ClusterReply, ClusterRequest, RefusedWrite};

/// How long a node may simulate after it sent a heartbeat that succeeded, in milliseconds. It is shorter than
/// [`NODE_LATE_AFTER_MS`](crate::NODE_LATE_AFTER_MS) by a tenth, so that the node stops first although its clock runs up to a tenth slower
/// than the store's.
pub const NODE_VALID_MS: u64 = 1_350;

/// A request of a node, to match its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What a node sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput {
    /// To the store. The reply goes to [`ClusterNode::on_reply`]; it may be lost.
    Store(RequestId, ClusterRequest),
    /// To a node, over the bus: a player waits for it. Only a hint; goes to [`ClusterNode::on_wake`].
    Wake(ClusterNodeId),
    /// To a gateway, over the bus. Its acknowledgement goes to [`ClusterNode::on_route_acknowledged`].
    Route(GatewayId, PlayerRoute),
}

/// Times of a node, in milliseconds.
///
/// ```
/// use throng_cluster::NodeSettings;
///
/// // A failure of the node loses at most three seconds of play.
/// let settings = NodeSettings { save_interval_ms: 3_000, ..NodeSettings::default() };
/// assert!(settings.heartbeat_interval_ms < settings.request_timeout_ms);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Between two heartbeats. Four fit into [`NODE_VALID_MS`], so that three may be lost.
    pub heartbeat_interval_ms: u64,
    /// After which the outcome of a request is unknown. A third of [`NODE_VALID_MS`], so that a lost heartbeat can be
    /// repeated in time.
    pub request_timeout_ms: u64,
    /// Between two saves of all changed players. A failure of the node loses at most this time of play.
    pub save_interval_ms: u64,
    /// Between two reads while players are expected.
    pub busy_read_interval_ms: u64,
    /// Between two reads while none is: a wake-up may be lost.
    pub idle_read_interval_ms: u64,
    /// After which a player that was not adopted is taken back from a late node.
    pub take_back_after_ms: u64,
    /// Between two claims of the players of late nodes.
    pub claim_interval_ms: u64,
    /// Maximum number of players per claim, so that several nodes share them.
    pub claimed_players_max: usize,
    /// After which a route that was not acknowledged is sent again.
    pub route_interval_ms: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            heartbeat_interval_ms: 300,
            request_timeout_ms: 450,
            save_interval_ms: 10_000,
            busy_read_interval_ms: 50,
            idle_read_interval_ms: 1_000,
            take_back_after_ms: 1_000,
            claim_interval_ms: 500,
            claimed_players_max: 64,
            route_interval_ms: 1_000,
        }
    }
}

/// Counters of a node, over all its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Players given to other nodes.
    pub handed_off: u64,
    /// Players adopted.
    pub adopted: u64,
    /// Players taken back from late nodes.
    pub taken_back: u64,
    /// Requests without a reply in time.
    pub unknown_outcomes: u64,
    /// Runs that ended because the heartbeat failed for too long.
    pub runs_ended: u64,
}

/// A node. It has no clock: all times are those of its caller, in milliseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub struct ClusterNode {
    run: NodeRun,
    settings: NodeSettings,
    gateways: Vec<GatewayId>,
    players: HeldPlayers,
    logins: BTreeSet<PlayerId>,
    arrivals: VecDeque<Arrival>,
    /// Routes that a gateway has not acknowledged, and when they are sent next.
    routes: BTreeMap<(GatewayId, PlayerId), (PlayerRoute, u64)>,
    requests: PendingRequests,
    /// Until when it may simulate what it holds; 0 before the first heartbeat of the run.
    valid_until_ms: u64,
    next_heartbeat_ms: u64,
    next_save_ms: u64,
    next_arrivals_ms: u64,
    next_claim_ms: u64,
    stats: NodeStats,
}

impl ClusterNode {
    /// A node that holds nobody. The number of the run must be higher than that of its earlier runs.
    #[must_use]
    pub const fn new(run: NodeRun, settings: NodeSettings, gateways: Vec<GatewayId>) -> Self {
        Self {
            run,
            settings,
            gateways,
            players: HeldPlayers(BTreeMap::new()),
            logins: BTreeSet::new(),
            arrivals: VecDeque::new(),
            routes: BTreeMap::new(),
            requests: PendingRequests::new(),
            valid_until_ms: 0,
            next_heartbeat_ms: 0,
            next_save_ms: 0,
            next_arrivals_ms: 0,
            next_claim_ms: 0,
            stats: NodeStats {
                handed_off: 0,
                adopted: 0,
                taken_back: 0,
                unknown_outcomes: 0,
                runs_ended: 0,
            },
        }
    }

    /// Its current run.
    #[must_use]
    pub const fn run(&self) -> NodeRun {
        self.run
    }

    /// Its counters.
    #[must_use]
    pub const fn stats(&self) -> NodeStats {
        self.stats
    }

    /// Whether it may simulate what it holds: its heartbeat succeeded in time.
    #[must_use]
    pub const fn is_valid(&self, now_ms: u64) -> bool {
        now_ms < self.valid_until_ms
    }

    /// Whether it simulates a player now. Frozen players are not simulated.
    #[must_use]
    pub fn is_live(&self, player: PlayerId, now_ms: u64) -> bool {
        let held = self.players.0.get(&player);
        self.is_valid(now_ms) && held.is_some_and(|held| held.state == HeldState::Live)
    }

    /// The players that it simulates now, in ascending order.
    pub fn live_players(&self, now_ms: u64) -> impl Iterator<Item = PlayerId> {
        let held = self.players.0.iter().filter(move |_| self.is_valid(now_ms));
        held.filter(|(_, held)| held.state == HeldState::Live)
            .map(|(player, _)| *player)
    }

    /// The state of a player that it simulates; `None` for others.
    #[must_use]
    pub fn state(&self, player: PlayerId, now_ms: u64) -> Option<&[u8]> {
        let held = self.players.0.get(&player);
        let held = held.filter(|_| self.is_live(player, now_ms))?;
        Some(&held.record.bytes)
    }

    /// The state of a player that it simulates, to change it; `None` for others. Call it within the tick.
    pub fn edit(&mut self, player: PlayerId, now_ms: u64) -> Option<&mut Vec<u8>> {
        if !self.is_valid(now_ms) {
            return None;
        }
        let held = self.players.get_live_mut(player)?;
        held.record.revision += 1;
        Some(&mut held.record.bytes)
    }

    /// Changes two players that it simulates, who exchange something: both changes are saved together. `false` if it does not simulate
    /// both.
    pub fn exchange(
        &mut self,
        players: [PlayerId; 2],
        now_ms: u64,
        change: impl FnOnce([&mut Vec<u8>; 2]),
    ) -> bool {
        let [one, other] = players;
        if one == other || !players.iter().all(|player| self.is_live(*player, now_ms)) {
            return false;
        }
        let mut bytes = players.map(|player| {
            let held = self.players.0.get_mut(&player);
            held.map_or_else(Vec::new, |held| {
                held.record.revision += 1;
                std::mem::take(&mut held.record.bytes)
            })
        });
        let [of_one, of_other] = &mut bytes;
        change([of_one, of_other]);
        for (player, (bytes, with)) in players.into_iter().zip(bytes.into_iter().zip([other, one]))
        {
            if let Some(held) = self.players.0.get_mut(&player) {
                held.record.bytes = bytes;
                held.joined.insert(with);
            }
        }
        true
    }

    /// Gets a player that nobody owns: its client has logged in here.
    pub fn log_in(&mut self, player: PlayerId) {
        self.logins.insert(player);
    }

    /// Gives a player to another node. It is frozen from now on; if the store is away or the target late, it goes on here. `false` if this
    /// node does not simulate it.
    pub fn begin_move(&mut self, player: PlayerId, to: NodeRun, now_ms: u64) -> bool {
        if to.node == self.run.node || !self.is_valid(now_ms) {
            return false;
        }
        let held = self.players.get_live_mut(player);
        held.map(|held| held.state = HeldState::Moving(to))
            .is_some()
    }

    /// Another node says that players wait for this one.
    pub const fn on_wake(&mut self, now_ms: u64) {
        self.next_arrivals_ms = now_ms;
    }

    /// A gateway knows this epoch of a player.
    pub fn on_route_acknowledged(&mut self, gateway: GatewayId, player: PlayerId, epoch: u64) {
        let sent = self.routes.get(&(gateway, player));
        if sent.is_some_and(|(route, _)| epoch >= route.epoch) {
            self.routes.remove(&(gateway, player));
        }
    }

    /// Does the work that is due at this time. Call it at least once per tick.
    pub fn poll(&mut self, now_ms: u64) -> Vec<NodeOutput> {
        let timeout_ms = self.settings.request_timeout_ms;
        for work in self.requests.take_overdue(now_ms, timeout_ms) {
            self.stats.unknown_outcomes += 1;
            self.on_unknown(work);
        }
        if self.valid_until_ms > 0 && !self.is_valid(now_ms) {
            self.end_run();
        }
        let mut outputs = Vec::new();
        if now_ms >= self.next_heartbeat_ms && self.requests.is_free(RequestKind::Heartbeat) {
            self.next_heartbeat_ms = now_ms + self.settings.heartbeat_interval_ms;
            let heartbeat = ClusterRequest::Heartbeat { run: self.run };
            self.send(RequestWork::Heartbeat, heartbeat, now_ms, &mut outputs);
        }
        if self.is_valid(now_ms) {
            self.write(now_ms, &mut outputs);
            self.read_owners(now_ms, &mut outputs);
            self.adopt_arrivals(now_ms, &mut outputs);
            self.claim(now_ms, &mut outputs);
            self.send_routes(now_ms, &mut outputs);
        }
        outputs
    }

    fn send(
        &mut self,
        work: RequestWork,
        request: ClusterRequest,
        now_ms: u64,
        outputs: &mut Vec<NodeOutput>,
    ) {
        let id = self.requests.send(work, now_ms);
        outputs.push(NodeOutput::Store(id, request));
    }

    /// Drops all players: others may claim them now. The next run registers with its first heartbeat.
    fn end_run(&mut self) {
        self.run.run += 1;
        self.players.0.clear();
        self.arrivals.clear();
        self.routes.clear();
        self.requests.clear();
        self.valid_until_ms = 0;
        self.next_heartbeat_ms = 0;
        self.stats.runs_ended += 1;
    }

    /// The next change of players that it holds, one at a time: each contains the state at its start.
    fn write(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if !self.requests.is_free(RequestKind::Write) {
            return;
        }
        let run = self.run;
        let find = |fits: fn(HeldState) -> bool| self.players.find(fits);
        let epoch_of = |player| self.players.0.get(&player).map_or(0, |held| held.epoch);
        if let Some(player) = find(|state| state == HeldState::Uncertain) {
            let epoch = epoch_of(player);
            let request = ClusterRequest::RaiseEpoch { run, player, epoch };
            self.send(
                RequestWork::RaiseEpoch(player, epoch),
                request,
                now_ms,
                outputs,
            );
        } else if find(|state| state == HeldState::Checking).is_some() {
            // Nothing is written before its owner is known.
        } else if let Some((player, epoch)) = self.overdue_move(now_ms) {
            let request = ClusterRequest::TakeBack { run, player, epoch };
            self.send(
                RequestWork::TakeBack(player, epoch),
                request,
                now_ms,
                outputs,
            );
        } else if let Some(player) = find(|state| matches!(state, HeldState::Moving(_))) {
            self.write_hand_off(player, now_ms, outputs);
        } else if let Some(player) = self.logins.pop_first() {
            let request = ClusterRequest::LogIn { run, player };
            self.send(RequestWork::LogIn(player), request, now_ms, outputs);
        } else if now_ms >= self.next_save_ms {
            self.next_save_ms = now_ms + self.settings.save_interval_ms;
            let saves = self.players.unsaved();
            if !saves.is_empty() {
                let saved = saves.iter().map(|save| (save.player, save.record.revision));
                let work = RequestWork::Save(saved.collect());
                self.send(work, ClusterRequest::Save { run, saves }, now_ms, outputs);
            }
        }
    }

    /// A player that was handed off long ago, and its epoch there.
    fn overdue_move(&self, now_ms: u64) -> Option<(PlayerId, u64)> {
        let after_ms = self.settings.take_back_after_ms;
        self.players
            .0
            .iter()
            .find_map(|(player, held)| match held.state {
                HeldState::Moved {
                    epoch, since_ms, ..
                } if now_ms >= since_ms + after_ms => Some((*player, epoch)),
                _ => None,
            })
    }

    fn write_hand_off(&mut self, player: PlayerId, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let state = self.players.0.get(&player).map(|held| held.state);
        let (Some(HeldState::Moving(to)), Some((own, saves))) =
            (state, self.players.joined_saves(player))
        else {
            return;
        };
        let all = std::iter::once(&own).chain(&saves);
        let saved = all
            .map(|save| (save.player, save.record.revision))
            .collect();
        let epoch = own.epoch;
        let request = ClusterRequest::HandOff {
            run: self.run,
            player: own,
            to,
            saves,
        };
        self.send(
            RequestWork::HandOff {
                player,
                epoch,
                saved,
            },
            request,
            now_ms,
            outputs,
        );
    }

    /// Reads the owner of a player that is uncertain, or was handed off.
    fn read_owners(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if !self.requests.is_free(RequestKind::Owner) {
            return;
        }
        let checking = self.players.find(|state| state == HeldState::Checking);
        let moved = || {
            self.players.find(
                |state| matches!(state, HeldState::Moved { next_read_ms, .. } if now_ms >= next_read_ms),
            )
        };
        let Some(player) = checking.or_else(moved) else {
            return;
        };
        let interval_ms = self.settings.busy_read_interval_ms;
        if let Some(held) = self.players.0.get_mut(&player)
            && let HeldState::Moved { next_read_ms, .. } = &mut held.state
        {
            *next_read_ms = now_ms + interval_ms;
        }
        let request = ClusterRequest::ReadOwner { player };
        self.send(RequestWork::ReadOwner(player), request, now_ms, outputs);
    }

    fn adopt_arrivals(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let run = self.run;
        if now_ms >= self.next_arrivals_ms && self.requests.is_free(RequestKind::Arrivals) {
            self.next_arrivals_ms = now_ms + self.settings.idle_read_interval_ms;
            let request = ClusterRequest::ReadArrivals { run };
            self.send(RequestWork::ReadArrivals, request, now_ms, outputs);
        }
        if self.requests.is_free(RequestKind::Adopt)
            && let Some(arrival) = self.arrivals.pop_front()
        {
            let Arrival { player, epoch } = arrival;
            let request = ClusterRequest::Adopt { run, player, epoch };
            self.send(RequestWork::Adopt(arrival), request, now_ms, outputs);
        }
    }

    fn claim(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if now_ms >= self.next_claim_ms && self.requests.is_free(RequestKind::Claim) {
            self.next_claim_ms = now_ms + self.settings.claim_interval_ms;
            let request = ClusterRequest::ClaimLate {
                run: self.run,
                players_max: self.settings.claimed_players_max,
            };
            self.send(RequestWork::ClaimLate, request, now_ms, outputs);
        }
    }

    fn send_routes(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        for ((gateway, _), (route, next_ms)) in &mut self.routes {
            if now_ms >= *next_ms {
                *next_ms = now_ms + self.settings.route_interval_ms;
                outputs.push(NodeOutput::Route(*gateway, *route));
            }
        }
    }

    /// Tells all gateways that a player is here.
    fn route(&mut self, player: PlayerId, epoch: u64) {
        for &gateway in &self.gateways {
            let route = PlayerRoute {
                player,
                epoch,
                node: self.run.node,
            };
            self.routes.insert((gateway, player), (route, 0));
        }
    }

    /// The outcome of a request is not known: it may also be executed later.
    fn on_unknown(&mut self, work: RequestWork) {
        match work {
            RequestWork::HandOff { player, epoch, .. } | RequestWork::RaiseEpoch(player, epoch) => {
                self.set_state((player, epoch), HeldState::Uncertain);
            }
            // If it was adopted, it is in no list of arrivals any more.
            RequestWork::Adopt(arrival) => self.arrivals.push_front(arrival),
            RequestWork::LogIn(_) | RequestWork::ClaimLate | RequestWork::TakeBack(..) => {
                self.next_arrivals_ms = 0;
            }
            RequestWork::Save(_) => self.next_save_ms = 0,
            RequestWork::Heartbeat | RequestWork::ReadOwner(_) | RequestWork::ReadArrivals => {}
        }
    }

    /// Sets the state of a player that is held with this epoch. It may have left and come back since a request was sent.
    fn set_state(&mut self, (player, epoch): (PlayerId, u64), state: HeldState) {
        if let Some(held) = self.players.get_mut_at(player, epoch) {
            held.state = state;
        }
    }

    /// Handles the reply to a request. Returns the node to wake, if any, as an output.
    pub fn on_reply(
        &mut self,
        now_ms: u64,
        id: RequestId,
        reply: ClusterReply,
    ) -> Option<NodeOutput> {
        let (sent_ms, work) = self.requests.take(id)?;
        match work {
            RequestWork::Heartbeat => self.on_heartbeat(sent_ms, &reply),
            RequestWork::Save(saved) => match reply {
                ClusterReply::Done => self.players.mark_saved(&saved),
                ClusterReply::Refused(_) => self.end_run(),
                _ => self.next_save_ms = now_ms + self.settings.busy_read_interval_ms,
            },
            RequestWork::HandOff {
                player,
                epoch,
                saved,
            } => return self.on_hand_off(now_ms, (player, epoch), &saved, &reply),
            RequestWork::RaiseEpoch(player, epoch) => match reply {
                ClusterReply::Done => self.go_on((player, epoch), epoch + 1),
                ClusterReply::Refused(_) => self.set_state((player, epoch), HeldState::Checking),
                _ => {}
            },
            RequestWork::TakeBack(player, given) => {
                if reply == ClusterReply::Done {
                    self.stats.taken_back += 1;
                    self.players.remove_moved(player, given);
                    self.next_arrivals_ms = now_ms;
                }
            }
            RequestWork::LogIn(player) => match reply {
                ClusterReply::Done => self.next_arrivals_ms = now_ms,
                ClusterReply::Away => _ = self.logins.insert(player),
                _ => {}
            },
            RequestWork::ReadOwner(player) => self.on_owner(player, &reply),
            RequestWork::ReadArrivals => {
                if let ClusterReply::Arrivals(arrivals) = reply {
                    self.queue_arrivals(&arrivals);
                }
            }
            RequestWork::Adopt(arrival) => self.on_adopted(now_ms, arrival, reply),
            RequestWork::ClaimLate => {
                if reply == ClusterReply::Done {
                    self.next_arrivals_ms = now_ms;
                }
            }
        }
        None
    }

    fn on_heartbeat(&mut self, sent_ms: u64, reply: &ClusterReply) {
        match reply {
            ClusterReply::Done => {
                let until_ms = sent_ms + NODE_VALID_MS;
                self.valid_until_ms = self.valid_until_ms.max(until_ms);
            }
            ClusterReply::Refused(_) => self.end_run(),
            _ => {}
        }
    }

    fn on_hand_off(
        &mut self,
        now_ms: u64,
        (player, epoch): (PlayerId, u64),
        saved: &[(PlayerId, u64)],
        reply: &ClusterReply,
    ) -> Option<NodeOutput> {
        match reply {
            ClusterReply::Done => {
                self.players.mark_saved(saved);
                let held = self.players.get_mut_at(player, epoch)?;
                let HeldState::Moving(to) = held.state else {
                    return None;
                };
                held.state = HeldState::Moved {
                    epoch: epoch + 1,
                    since_ms: now_ms,
                    next_read_ms: now_ms + self.settings.busy_read_interval_ms,
                };
                self.stats.handed_off += 1;
                self.end_route(player);
                Some(NodeOutput::Wake(to.node))
            }
            ClusterReply::Refused(RefusedWrite::TargetLate) | ClusterReply::Away => {
                self.set_state((player, epoch), HeldState::Live);
                None
            }
            _ => {
                self.end_run();
                None
            }
        }
    }

    fn end_route(&mut self, player: PlayerId) {
        self.routes.retain(|(_, of), _| *of != player);
    }

    /// A player stays after all, with another epoch.
    fn go_on(&mut self, (player, epoch): (PlayerId, u64), new_epoch: u64) {
        if let Some(held) = self.players.get_mut_at(player, epoch) {
            held.epoch = new_epoch;
            held.state = HeldState::Live;
            self.route(player, new_epoch);
        }
    }

    fn on_owner(&mut self, player: PlayerId, reply: &ClusterReply) {
        let ClusterReply::Owner(owner, epoch, is_adopted) = *reply else {
            return;
        };
        let held = self.players.0.get(&player);
        // The reply to a read before the player was adopted has an older epoch.
        let Some(held) = held.filter(|held| epoch > held.epoch) else {
            return;
        };
        let is_own = owner == Some(self.run);
        match held.state {
            // An earlier request has raised the epoch. If it had left and come back, the epoch were higher.
            HeldState::Checking if is_own && epoch == held.epoch + 1 => {
                let held_epoch = held.epoch;
                self.go_on((player, held_epoch), epoch);
            }
            // Its hand-off was done. If it is back already, it has to be adopted again: it may have changed.
            HeldState::Checking => {
                self.stats.handed_off += 1;
                self.end_route(player);
                self.players.remove(player);
            }
            HeldState::Moved { epoch: given, .. } if is_own || epoch > given || is_adopted => {
                self.players.remove(player);
            }
            _ => {}
        }
    }

    fn queue_arrivals(&mut self, arrivals: &[Arrival]) {
        for &arrival in arrivals {
            let held = self.players.0.get(&arrival.player);
            let is_held = held.is_some_and(|held| held.epoch >= arrival.epoch);
            if !is_held && !self.arrivals.contains(&arrival) {
                self.arrivals.push_back(arrival);
            }
        }
    }

    fn on_adopted(&mut self, now_ms: u64, arrival: Arrival, reply: ClusterReply) {
        match reply {
            ClusterReply::Adopted(record) => {
                let Arrival { player, epoch } = arrival;
                let known = self.players.0.get(&player);
                if known.is_some_and(|held| held.epoch >= epoch) {
                    return;
                }
                self.players.remove(player);
                let held = HeldPlayer::adopted(epoch, record);
                self.players.0.insert(player, held);
                self.stats.adopted += 1;
                self.route(player, epoch);
            }
            ClusterReply::Away => {
                self.arrivals.push_back(arrival);
                self.next_arrivals_ms = now_ms + self.settings.busy_read_interval_ms;
            }
            _ => {}
        }
    }
}
