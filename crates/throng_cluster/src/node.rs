//! A node: its players, and how they arrive and leave.

mod gateways;
mod held_player;
mod placement;
mod quiet_nodes;
mod replies;
mod reports;
mod requests;
mod scenes;
mod validity;
mod writes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use throng_core::ids::PlayerId;

use self::gateways::QueuedRoute;
use self::held_player::{HeldPlayers, HeldState};
use self::quiet_nodes::QuietNodes;
use self::reports::ReportSource;
use self::requests::{PendingRequests, RequestKind, RequestWork};
use self::scenes::NodeScenes;
use self::validity::NodeValidity;
pub use self::validity::{NODE_VALID_ALONE_MS, NODE_VALID_MS};
use crate::ids::{ClusterNodeId, ClusterRecord, GatewayId, NodeRun};
use crate::request::{Arrival, ClusterRequest, RefusedWrite};
use crate::routes::PlayerRoute;

/// Maximum number of players whose owners are read at once.
const READ_PLAYERS_MAX: usize = 256;

/// Maximum number of waiting arrivals to which hints add others. Beyond it, the rows are read.
const HINTED_ARRIVALS_MAX: usize = 4_096;

/// A request of a node, to match its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// What a node sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput {
    /// To the store. The reply goes to [`ClusterNode::on_reply`]; it may be lost.
    Store(RequestId, ClusterRequest),
    /// To a node, over the bus: players wait to be adopted. It is a hint, and goes to [`ClusterNode::on_arrivals`].
    Arrivals(ClusterNodeId, Vec<Arrival>),
    /// To a node, over the bus: a scene is free and should run there. It is a hint, and goes to [`ClusterNode::on_free_scene`].
    FreeScene(ClusterNodeId),
    /// To a gateway, over the bus. Its acknowledgement goes to [`ClusterNode::on_route_acknowledged`].
    Route {
        /// The gateway.
        gateway: GatewayId,
        /// The node and the player.
        route: PlayerRoute,
        /// From the former node after a hand-off: how long the player has been frozen, in milliseconds.
        frozen_ms: Option<u32>,
    },
    /// To the driver: a node has died, or is back after a late heartbeat. Read the nodes soon.
    ReadNodes,
    /// To this node's part in matches: it has claimed players of dead nodes. Call [`MatchNode::on_node_death`](crate::MatchNode::on_node_death).
    NodeDeath,
    /// To this node's part in matches: it has adopted players. Call [`MatchNode::on_adopted`](crate::MatchNode::on_adopted).
    Adopted,
    /// To this node itself, over the bus. When it arrives, its number goes to [`ClusterNode::on_echo`].
    Echo(u64),
    /// A question to the bus: is this node connected? If it is not, the number goes to [`ClusterNode::on_unreachable`].
    Probe(ClusterNodeId, u64),
}

/// A player that a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerStay {
    /// The player.
    pub player: PlayerId,
    /// The epoch of its arrival. If it differs from the last one, the player has left and come back, and may have changed elsewhere.
    pub arrival: u64,
    /// Whether the game must not change it: the player moves to another node or logs out, or the node has paused.
    pub is_frozen: bool,
}

/// Times and limits of a node. Times are in milliseconds.
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
    /// The time between two heartbeats. Four fit into [`NODE_VALID_MS`], so three may be lost.
    pub heartbeat_interval_ms: u64,
    /// The time after which the outcome of a request is unknown. It is a third of [`NODE_VALID_MS`], so a lost heartbeat can be repeated in
    /// time.
    pub request_timeout_ms: u64,
    /// The time between two saves of all changed players. A failure of the node loses at most this time of play.
    pub save_interval_ms: u64,
    /// Maximum number of players per save, without those that exchanged something with the last of them. A save has to end within
    /// `request_timeout_ms`.
    pub saved_players_max: usize,
    /// Maximum number of players per hand-off, without those that exchanged something with them.
    pub handed_off_players_max: usize,
    /// The time between two reads while a reply is expected, and before any request is repeated because the store is away.
    pub busy_read_interval_ms: u64,
    /// The time between two reads of arrivals without a hint: a hint may be lost.
    pub idle_read_interval_ms: u64,
    /// The time after a hand-off when a player that was not adopted is taken back, if its new node is late, and between two attempts.
    pub take_back_after_ms: u64,
    /// The time between two claims of the players of dead nodes.
    pub claim_interval_ms: u64,
    /// Maximum number of players per claim, so that several nodes share the players of a dead one. After a claim of this many players, the next
    /// claim follows at once.
    pub claimed_players_max: usize,
    /// Maximum number of players per adoption.
    pub adopted_players_max: usize,
    /// The time after which a route that was not acknowledged is sent again.
    pub route_interval_ms: u64,
    /// The time between two reads of all nodes and scenes.
    pub scene_read_interval_ms: u64,
    /// How long a new run waits before it claims scenes if no other node runs any, so that nodes that start together share them.
    pub scene_settle_ms: u64,
    /// The load that a scene adds to the load that its node reports, so that scenes without players are shared, too. It should be equal on all
    /// nodes. Otherwise, several of them claim the same scene, and one gets it.
    pub scene_load: u32,
    /// How long the node that a scene is pinned to must have been available again before the owner gives the scene up to it.
    pub scene_return_after_ms: u64,
    /// How long a node must have had too much load before it gives up scenes to the node with the least. The players of these scenes stand still
    /// for the time of a hand-off. `u64::MAX`: load moves no scene.
    pub scene_balance_after_ms: u64,
    /// The time between two reports to operators ([`NodeReport`](crate::NodeReport)).
    pub report_interval_ms: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            heartbeat_interval_ms: 300,
            request_timeout_ms: 450,
            save_interval_ms: 10_000,
            saved_players_max: 256,
            handed_off_players_max: 64,
            busy_read_interval_ms: 50,
            idle_read_interval_ms: 1_000,
            take_back_after_ms: 1_000,
            claim_interval_ms: 100,
            claimed_players_max: 128,
            adopted_players_max: 128,
            route_interval_ms: 1_000,
            scene_read_interval_ms: 250,
            scene_settle_ms: 1_000,
            scene_load: 100,
            scene_return_after_ms: 5_000,
            scene_balance_after_ms: 10_000,
            report_interval_ms: 1_000,
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
    /// Players that logged out and were saved.
    pub released: u64,
    /// Players taken back from late nodes.
    pub taken_back: u64,
    /// Requests without a reply in time.
    pub unknown_outcomes: u64,
    /// How often it paused, because its heartbeat failed for too long.
    pub pauses: u64,
    /// Runs that ended because the store had declared them dead or refused one of their writes.
    pub runs_ended: u64,
}

/// A node. It has no clock: all times are those of its caller, in milliseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub struct ClusterNode {
    run: NodeRun,
    settings: NodeSettings,
    gateways: Vec<GatewayId>,
    players: HeldPlayers,
    /// Players that log in, with their epochs; without one, the row has to be read first.
    logins: BTreeMap<PlayerId, Option<u64>>,
    next_login_ms: u64,
    log_outs: BTreeSet<PlayerId>,
    refused_logins: Vec<(PlayerId, RefusedWrite)>,
    arrivals: VecDeque<Arrival>,
    /// Routes that a gateway has not acknowledged.
    routes: BTreeMap<(GatewayId, PlayerId), QueuedRoute>,
    requests: PendingRequests,
    scenes: NodeScenes,
    reports: ReportSource,
    quiet_nodes: QuietNodes,
    validity: NodeValidity,
    is_paused: bool,
    is_superseded: bool,
    next_heartbeat_ms: u64,
    next_save_ms: u64,
    /// The last player of the save before, until all players are saved.
    saved_up_to: Option<PlayerId>,
    /// The last write was a save, or took a player back. If hand-offs, log-outs or logins wait, one of them is next.
    others_write_first: bool,
    next_arrivals_ms: u64,
    next_claim_ms: u64,
    stats: NodeStats,
}

impl ClusterNode {
    /// A node without players. The run is that of [`ClusterReply::Started`](crate::ClusterReply::Started).
    #[must_use]
    pub const fn new(run: NodeRun, settings: NodeSettings, gateways: Vec<GatewayId>) -> Self {
        Self {
            run,
            settings,
            gateways,
            players: HeldPlayers(BTreeMap::new()),
            logins: BTreeMap::new(),
            next_login_ms: 0,
            log_outs: BTreeSet::new(),
            refused_logins: Vec::new(),
            arrivals: VecDeque::new(),
            routes: BTreeMap::new(),
            requests: PendingRequests::new(),
            scenes: NodeScenes::new(),
            reports: ReportSource::new(),
            quiet_nodes: QuietNodes::new(),
            validity: NodeValidity::new(),
            is_paused: false,
            is_superseded: false,
            next_heartbeat_ms: 0,
            next_save_ms: 0,
            saved_up_to: None,
            others_write_first: false,
            next_arrivals_ms: 0,
            next_claim_ms: 0,
            stats: NodeStats {
                handed_off: 0,
                adopted: 0,
                released: 0,
                taken_back: 0,
                unknown_outcomes: 0,
                pauses: 0,
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

    /// Whether it may simulate its players and scenes: a heartbeat succeeded in time. `false` while it pauses.
    #[must_use]
    pub const fn is_valid(&self, now_ms: u64) -> bool {
        self.validity.is_valid(now_ms)
    }

    /// Whether another process runs as this node. If so, this one has dropped all players and does nothing more.
    #[must_use]
    pub const fn is_superseded(&self) -> bool {
        self.is_superseded
    }

    /// The players that it holds, in ascending order. All of them are frozen while it is not [valid](Self::is_valid).
    pub fn stays(&self, now_ms: u64) -> impl Iterator<Item = PlayerStay> {
        let is_valid = self.is_valid(now_ms);
        let held = self.players.0.iter();
        let held = held.filter(|(_, held)| !matches!(held.state, HeldState::Moved { .. }));
        held.map(move |(&player, held)| PlayerStay {
            player,
            arrival: held.arrival,
            is_frozen: !is_valid || held.state != HeldState::Live,
        })
    }

    /// The run, and the epoch, with which a player that it holds has arrived; `None` for others.
    #[must_use]
    pub fn arrival(&self, player: PlayerId) -> Option<(u64, u64)> {
        let held = self.players.0.get(&player)?;
        Some((self.run.run, held.arrival))
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

    /// The record of a player that it holds, frozen or not; `None` for others.
    #[must_use]
    pub fn record(&self, player: PlayerId) -> Option<&ClusterRecord> {
        self.players.0.get(&player).map(|held| &held.record)
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

    /// Changes two players who exchange something. Both changes are saved together. `false`, and no change, if the node does not simulate
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

    /// Claims a player without an owner whose client has logged in here. While the store is away, the login waits. If it is refused,
    /// [`take_refused_logins`](Self::take_refused_logins) returns it.
    pub fn log_in(&mut self, player: PlayerId) {
        self.logins.entry(player).or_insert(None);
    }

    /// The logins that were refused since the last call. [`RefusedWrite::NotOwner`]: the player is on another node, or is still owned by a node
    /// that is late or dead, so another node may claim it soon.
    pub fn take_refused_logins(&mut self) -> Vec<(PlayerId, RefusedWrite)> {
        std::mem::take(&mut self.refused_logins)
    }

    /// Gives a player to another node, and freezes it. If the store is away or the target is late, it goes on here. `false` if this node does
    /// not simulate it.
    pub fn begin_move(&mut self, player: PlayerId, to: NodeRun, now_ms: u64) -> bool {
        if to.node == self.run.node || !self.is_valid(now_ms) {
            return false;
        }
        let held = self.players.get_live_mut(player);
        let Some(held) = held else {
            return false;
        };
        (held.state, held.frozen_since_ms) = (HeldState::Moving(to), Some(now_ms));
        true
    }

    /// Freezes a player whose client has logged out, saves it and gives it up. If it is being handed off, it is given up only if the hand-off
    /// fails. `false` if this node does not hold it.
    pub fn log_out(&mut self, player: PlayerId) -> bool {
        let Some(held) = self.players.0.get_mut(&player) else {
            return false;
        };
        if held.state == HeldState::Live {
            // A hand-off before that has failed.
            (held.state, held.frozen_since_ms) = (HeldState::Leaving, None);
        }
        self.log_outs.insert(player);
        true
    }

    /// Handles a hint of another node: these players wait to be adopted by this one. The rows decide.
    pub fn on_arrivals(&mut self, now_ms: u64, arrivals: &[Arrival]) {
        if self.arrivals.len() + arrivals.len() > HINTED_ARRIVALS_MAX {
            self.next_arrivals_ms = now_ms;
        } else {
            self.queue_arrivals(arrivals);
        }
    }

    /// Handles a wake-up of another node, or a message that may have been lost: players may wait to be adopted by this one.
    pub const fn on_wake(&mut self, now_ms: u64) {
        self.next_arrivals_ms = now_ms;
    }

    /// Handles a hint: a scene is free that this node may have to claim. The scenes are read soon.
    pub fn on_free_scene(&mut self) {
        self.scenes.read_soon(self.settings.busy_read_interval_ms);
    }

    /// Handles an echo of this node that has returned, by its number.
    pub fn on_echo(&mut self, now_ms: u64, number: u64) {
        self.validity.on_echo(number, now_ms);
    }

    /// Handles a new connection of this node to the bus.
    pub const fn on_bus_connected(&mut self, now_ms: u64) {
        self.validity.on_bus_connected(now_ms);
    }

    /// Handles the reply to a probe with this number: the bus has no connection to the node.
    pub fn on_unreachable(&mut self, now_ms: u64, node: ClusterNodeId, number: u64) {
        if self.quiet_nodes.on_unreachable(node, number, now_ms) {
            self.next_claim_ms = now_ms;
        }
    }

    /// Does the work that is due at this time. Call it at least once per tick.
    pub fn poll(&mut self, now_ms: u64) -> Vec<NodeOutput> {
        if self.is_superseded {
            return Vec::new();
        }
        let timeout_ms = self.settings.request_timeout_ms;
        for work in self.requests.take_overdue(now_ms, timeout_ms) {
            self.stats.unknown_outcomes += 1;
            self.on_unknown(work);
        }
        self.pause(now_ms);
        let mut outputs = Vec::new();
        if now_ms >= self.next_heartbeat_ms && self.requests.is_free(RequestKind::Heartbeat, now_ms)
        {
            self.next_heartbeat_ms = now_ms + self.settings.heartbeat_interval_ms;
            let heartbeat = ClusterRequest::Heartbeat {
                run: self.run,
                load: self.scenes.load,
            };
            self.send(RequestWork::Heartbeat, heartbeat, now_ms, &mut outputs);
        }
        if self.is_valid(now_ms) {
            self.write(now_ms, &mut outputs);
            self.read_owners(now_ms, &mut outputs);
            self.adopt_arrivals(now_ms, &mut outputs);
            self.claim(now_ms, &mut outputs);
            self.poll_scenes(now_ms, &mut outputs);
            self.send_routes(now_ms, &mut outputs);
            self.send_report(now_ms, &mut outputs);
            let quiet = self.quiet_nodes.take_due(now_ms);
            outputs.extend(quiet.map(|node| NodeOutput::Probe(node, now_ms)));
        }
        if self.validity.takes_echo(now_ms) {
            outputs.push(NodeOutput::Echo(now_ms));
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

    /// Counts a pause when it begins: no heartbeat has succeeded for [`NODE_VALID_MS`], or for [`NODE_VALID_ALONE_MS`] without the bus. Nothing
    /// is simulated until one succeeds. A heartbeat is refused if the run was declared dead meanwhile.
    fn pause(&mut self, now_ms: u64) {
        let is_paused = self.validity.has_begun() && !self.is_valid(now_ms);
        self.stats.pauses += u64::from(is_paused && !self.is_paused);
        self.is_paused = is_paused;
    }

    /// Ends the run and drops all players: others own them or may claim them. The first heartbeat of the next run registers it.
    fn end_run(&mut self) {
        self.run.run += 1;
        self.players.0.clear();
        self.log_outs.clear();
        self.logins.values_mut().for_each(|epoch| *epoch = None);
        // Its client still waits for it.
        let pending_login = self.requests.login();
        self.logins
            .extend(pending_login.map(|player| (player, None)));
        self.arrivals.clear();
        self.routes.clear();
        self.requests.clear();
        self.saved_up_to = None;
        self.scenes.end_run();
        self.quiet_nodes.clear();
        self.validity.end_run();
        self.next_heartbeat_ms = 0;
        self.stats.runs_ended += 1;
    }

    /// Reads the owners of players whose epoch could not be raised, that were handed off, or that log in.
    fn read_owners(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if !self.requests.is_free(RequestKind::Owner, now_ms) {
            return;
        }
        let held = self.players.all(|state| match state {
            HeldState::Checking => true,
            HeldState::Moved { next_read_ms, .. } => now_ms >= next_read_ms,
            _ => false,
        });
        let logins_due = now_ms >= self.next_login_ms;
        let logins = self.logins.iter().filter(|_| logins_due);
        let logins = logins.filter(|(_, epoch)| epoch.is_none());
        let read = held.chain(logins.map(|(player, _)| *player));
        let players: BTreeSet<PlayerId> = read.take(READ_PLAYERS_MAX).collect();
        if players.is_empty() {
            return;
        }
        let interval_ms = self.settings.busy_read_interval_ms;
        for player in &players {
            if let Some(held) = self.players.0.get_mut(player)
                && let HeldState::Moved { next_read_ms, .. } = &mut held.state
            {
                *next_read_ms = now_ms + interval_ms;
            }
        }
        let players: Vec<PlayerId> = players.into_iter().collect();
        let request = ClusterRequest::ReadPlayers {
            players: players.clone(),
            with_records: false,
        };
        self.send(RequestWork::ReadOwners(players), request, now_ms, outputs);
    }

    fn adopt_arrivals(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        let run = self.run;
        if now_ms >= self.next_arrivals_ms && self.requests.is_free(RequestKind::Arrivals, now_ms) {
            self.next_arrivals_ms = now_ms + self.settings.idle_read_interval_ms;
            let request = ClusterRequest::ReadArrivals { run };
            self.send(RequestWork::ReadArrivals, request, now_ms, outputs);
        }
        if self.requests.is_free(RequestKind::Adopt, now_ms) && !self.arrivals.is_empty() {
            let count = self
                .settings
                .adopted_players_max
                .clamp(1, self.arrivals.len());
            let arrivals: Vec<Arrival> = self.arrivals.drain(..count).collect();
            let work = RequestWork::Adopt(arrivals.clone());
            self.send(
                work,
                ClusterRequest::Adopt { run, arrivals },
                now_ms,
                outputs,
            );
        }
    }

    fn claim(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if self.is_draining() && self.scenes.has_other_node(self.run) {
            return;
        }
        if now_ms >= self.next_claim_ms && self.requests.is_free(RequestKind::Claim, now_ms) {
            self.next_claim_ms = now_ms + self.settings.claim_interval_ms;
            let request = ClusterRequest::ClaimLate {
                run: self.run,
                players_max: self.settings.claimed_players_max,
                unheard: self.quiet_nodes.unheard(),
            };
            self.send(RequestWork::ClaimLate, request, now_ms, outputs);
        }
    }
}
