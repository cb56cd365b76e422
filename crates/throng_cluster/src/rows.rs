//! The rows of a cluster, in memory: the reference for all stores.

mod groups;
mod matches;
mod reports;
mod scenes;

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;

use self::groups::GroupRows;
use self::matches::MatchRows;
use self::reports::ReportRows;
use self::scenes::SceneRows;
use crate::ids::{ClusterNodeId, ClusterRecord, NodeRun};
use crate::request::{
    Arrival, ClusterReply, ClusterRequest, ClusterSave, NODE_LATE_AFTER_MS, NODE_QUIET_AFTER_MS,
    NODE_STEADY_AFTER_MS, NODE_STEADY_GAP_MS, NODE_STEADY_UNHEARD_MS, NODE_UNHEARD_AFTER_MS,
    NodeEntry, PlayerEntry, QuietNode, RUNS_PER_PROCESS, RefusedWrite,
};

#[derive(Clone, Debug, Default)]
struct OwnedPlayerRow {
    owner: Option<NodeRun>,
    epoch: u64,
    is_adopted: bool,
    record: ClusterRecord,
}

#[derive(Clone, Debug)]
struct NodeRow {
    name: String,
    run: u64,
    heartbeat_ms: u64,
    /// The time since which its heartbeats are in time.
    steady_since_ms: u64,
    is_dead: bool,
    load: u32,
    is_draining: bool,
}

/// The rows of a cluster, in memory.
#[derive(Clone, Debug, Default)]
pub struct ClusterRows {
    players: BTreeMap<PlayerId, OwnedPlayerRow>,
    nodes: BTreeMap<ClusterNodeId, NodeRow>,
    scenes: SceneRows,
    matches: MatchRows,
    groups: GroupRows,
    reports: ReportRows,
}

impl ClusterRows {
    /// Adds a player without an owner.
    pub fn insert_player(&mut self, player: PlayerId, bytes: &[u8]) {
        let record = ClusterRecord {
            revision: 1,
            bytes: bytes.to_vec(),
        };
        let row = OwnedPlayerRow {
            record,
            ..OwnedPlayerRow::default()
        };
        self.players.insert(player, row);
    }

    /// The owner of a player and the epoch; `None` for an unknown player.
    #[must_use]
    pub fn owner(&self, player: PlayerId) -> Option<(Option<NodeRun>, u64)> {
        let row = self.players.get(&player)?;
        Some((row.owner, row.epoch))
    }

    /// The saved states of all players, in the order of their ids.
    pub fn records(&self) -> impl Iterator<Item = (PlayerId, &ClusterRecord)> {
        self.players
            .iter()
            .map(|(player, row)| (*player, &row.record))
    }

    /// Executes a request at a time of the store's clock, in milliseconds.
    pub fn execute(&mut self, request: ClusterRequest, now_ms: u64) -> ClusterReply {
        let result = match request {
            ClusterRequest::StartRun { name } => return self.start_run(&name, now_ms),
            ClusterRequest::EndRun { run } => self.end_run(run),
            ClusterRequest::ReadNodes => return ClusterReply::Nodes(self.nodes(now_ms)),
            ClusterRequest::Heartbeat { run, load } => self.heartbeat(run, load, now_ms),
            ClusterRequest::Save { run, saves } => self.save(run, &saves),
            ClusterRequest::HandOff {
                run,
                players,
                to,
                saves,
            } => self.hand_off(run, players, to, saves, now_ms),
            ClusterRequest::Release { run, player, saves } => self.release(run, player, saves),
            ClusterRequest::RaiseEpoch { run, player, epoch } => {
                self.change_owned(run, player, epoch, |row| row.epoch += 1)
            }
            ClusterRequest::ReadPlayers {
                players,
                with_records,
            } => return self.read_players(&players, with_records),
            ClusterRequest::ReadArrivals { run } => return self.read_arrivals(run),
            ClusterRequest::Adopt { run, arrivals } => return self.adopt(run, arrivals),
            ClusterRequest::TakeBack { run, player, epoch } => {
                self.take_back(run, player, epoch, now_ms)
            }
            ClusterRequest::ClaimLate {
                run,
                players_max,
                unheard,
            } => return self.claim_late(run, players_max, &unheard, now_ms),
            ClusterRequest::LogIn { run, player, epoch } => self.log_in(run, player, epoch, now_ms),
            ClusterRequest::Scene(request) => return self.execute_scene(request, now_ms),
            ClusterRequest::Match(request) => {
                return ClusterReply::Match(self.execute_match(request, now_ms));
            }
            ClusterRequest::Group(request) => {
                return ClusterReply::Group(self.execute_group(request, now_ms));
            }
            ClusterRequest::Report(request) => return self.execute_report(request, now_ms),
        };
        result.map_or_else(ClusterReply::Refused, |()| ClusterReply::Done)
    }

    fn start_run(&mut self, name: &str, now_ms: u64) -> ClusterReply {
        let known = self.nodes.iter().find(|(_, row)| row.name == name);
        let run = match known {
            None => NodeRun {
                node: ClusterNodeId(self.nodes.len() as u32),
                run: RUNS_PER_PROCESS,
            },
            Some((&node, row)) if row.is_dead || is_late(row, now_ms) => NodeRun {
                node,
                run: (row.run / RUNS_PER_PROCESS + 1) * RUNS_PER_PROCESS,
            },
            Some(_) => return ClusterReply::Refused(RefusedWrite::NodeRuns),
        };
        let row = NodeRow {
            name: name.to_owned(),
            run: run.run,
            heartbeat_ms: now_ms,
            steady_since_ms: now_ms,
            is_dead: false,
            load: 0,
            is_draining: false,
        };
        self.nodes.insert(run.node, row);
        ClusterReply::Started(run)
    }

    fn end_run(&mut self, run: NodeRun) -> Result<(), RefusedWrite> {
        let row = self.nodes.get_mut(&run.node);
        let row = row.filter(|row| row.run == run.run && !row.is_dead);
        row.map(|row| row.is_dead = true)
            .ok_or(RefusedWrite::RunEnded)
    }

    fn nodes(&self, now_ms: u64) -> Vec<NodeEntry> {
        let nodes = self.nodes.iter().map(|(&node, row)| {
            let is_alive = !row.is_dead && !is_late(row, now_ms);
            NodeEntry {
                name: row.name.clone(),
                run: NodeRun { node, run: row.run },
                is_alive,
                is_steady: is_alive && is_steady(row, NODE_STEADY_AFTER_MS, now_ms),
                load: row.load,
                is_draining: row.is_draining,
            }
        });
        nodes.collect()
    }

    fn heartbeat(&mut self, run: NodeRun, load: u32, now_ms: u64) -> Result<(), RefusedWrite> {
        let row = self.nodes.get_mut(&run.node);
        let row = row.ok_or(RefusedWrite::RunEnded)?;
        if run.run < row.run {
            return Err(RefusedWrite::NewerRun);
        }
        if run.run == row.run && row.is_dead {
            return Err(RefusedWrite::RunEnded);
        }
        if run.run != row.run || is_older(row, NODE_STEADY_GAP_MS, now_ms) {
            row.steady_since_ms = now_ms;
        }
        (row.run, row.heartbeat_ms, row.is_dead) = (run.run, now_ms, false);
        row.load = load;
        Ok(())
    }

    /// Whether a run is the newest of its node, and not late.
    fn is_alive(&self, run: NodeRun, now_ms: u64) -> bool {
        self.nodes
            .get(&run.node)
            .is_some_and(|row| row.run == run.run && !row.is_dead && !is_late(row, now_ms))
    }

    fn check_saves(&self, run: NodeRun, saves: &[ClusterSave]) -> Result<(), RefusedWrite> {
        for save in saves {
            let row = self
                .players
                .get(&save.player)
                .ok_or(RefusedWrite::NotOwner)?;
            if row.owner != Some(run) || row.epoch != save.epoch {
                return Err(RefusedWrite::NotOwner);
            }
            if save.record.revision < row.record.revision {
                return Err(RefusedWrite::OlderState);
            }
        }
        Ok(())
    }

    fn save(&mut self, run: NodeRun, saves: &[ClusterSave]) -> Result<(), RefusedWrite> {
        self.check_saves(run, saves)?;
        for save in saves {
            self.players.entry(save.player).or_default().record = save.record.clone();
        }
        Ok(())
    }

    fn hand_off(
        &mut self,
        run: NodeRun,
        players: Vec<ClusterSave>,
        to: NodeRun,
        mut saves: Vec<ClusterSave>,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(to, now_ms) {
            return Err(RefusedWrite::TargetLate);
        }
        let moved: Vec<PlayerId> = players.iter().map(|save| save.player).collect();
        saves.extend(players);
        self.save(run, &saves)?;
        for player in moved {
            self.give(player, Some(to));
        }
        Ok(())
    }

    fn release(
        &mut self,
        run: NodeRun,
        player: ClusterSave,
        mut saves: Vec<ClusterSave>,
    ) -> Result<(), RefusedWrite> {
        let released = player.player;
        saves.push(player);
        self.save(run, &saves)?;
        self.give(released, None);
        Ok(())
    }

    /// Changes the owner of a player. The new owner has to adopt it. `None`: no owner.
    fn give(&mut self, player: PlayerId, to: Option<NodeRun>) {
        let row = self.players.entry(player).or_default();
        row.owner = to;
        row.epoch += 1;
        row.is_adopted = false;
    }

    fn change_owned(
        &mut self,
        run: NodeRun,
        player: PlayerId,
        epoch: u64,
        change: impl FnOnce(&mut OwnedPlayerRow),
    ) -> Result<(), RefusedWrite> {
        let row = self.players.get_mut(&player);
        let row = row.filter(|row| row.owner == Some(run) && row.epoch == epoch);
        row.map(change).ok_or(RefusedWrite::NotOwner)
    }

    fn read_players(&self, players: &[PlayerId], with_records: bool) -> ClusterReply {
        let entries = players.iter().filter_map(|&player| {
            let row = self.players.get(&player)?;
            Some(PlayerEntry {
                player,
                owner: row.owner,
                epoch: row.epoch,
                is_adopted: row.is_adopted,
                record: with_records.then(|| row.record.clone()),
            })
        });
        ClusterReply::Players(entries.collect())
    }

    fn read_arrivals(&self, run: NodeRun) -> ClusterReply {
        let waiting = self.players.iter();
        let waiting = waiting.filter(|(_, row)| row.owner == Some(run) && !row.is_adopted);
        let arrivals = waiting.map(|(&player, row)| Arrival {
            player,
            epoch: row.epoch,
        });
        ClusterReply::Arrivals(arrivals.collect())
    }

    fn adopt(&mut self, run: NodeRun, arrivals: Vec<Arrival>) -> ClusterReply {
        let mut adopted = Vec::new();
        for arrival in arrivals {
            let Arrival { player, epoch } = arrival;
            let own = self.change_owned(run, player, epoch, |row| row.is_adopted = true);
            if let Some(row) = self.players.get(&player).filter(|_| own.is_ok()) {
                adopted.push((arrival, row.record.clone()));
            }
        }
        ClusterReply::Adopted(adopted)
    }

    fn take_back(
        &mut self,
        run: NodeRun,
        player: PlayerId,
        epoch: u64,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        let row = self.players.get(&player).ok_or(RefusedWrite::NotOwner)?;
        let owner = row.owner.filter(|_| row.epoch == epoch);
        let owner = owner.ok_or(RefusedWrite::NotOwner)?;
        if row.is_adopted || self.is_alive(owner, now_ms) {
            return Err(RefusedWrite::NotLate);
        }
        self.give(player, Some(run));
        Ok(())
    }

    /// Declares a node dead if it is late and the caller is steady. From then on, the heartbeats of that run are refused, also those that were
    /// sent before.
    fn declare_dead(&mut self, by: NodeRun, node: ClusterNodeId, now_ms: u64) {
        let own = self.nodes.get(&by.node);
        let may_declare = own.is_some_and(|own| is_steady(own, NODE_STEADY_AFTER_MS, now_ms));
        if let Some(row) = self.nodes.get_mut(&node).filter(|_| may_declare) {
            row.is_dead |= is_late(row, now_ms);
        }
    }

    /// Declares a node dead that is not connected to the bus, if it has sent no heartbeat since the caller noticed that.
    fn declare_unheard_dead(&mut self, by: NodeRun, unheard: QuietNode, now_ms: u64) {
        let own = self.nodes.get(&by.node);
        let may_declare = own.is_some_and(|own| is_steady(own, NODE_STEADY_UNHEARD_MS, now_ms));
        let QuietNode { run, heartbeat_ms } = unheard;
        let row = self.nodes.get_mut(&run.node);
        let row = row.filter(|row| row.run == run.run && row.heartbeat_ms == heartbeat_ms);
        if let Some(row) = row.filter(|_| may_declare && run.node != by.node) {
            row.is_dead |= is_older(row, NODE_UNHEARD_AFTER_MS, now_ms);
        }
    }

    /// The nodes except `own` that are quiet and not dead.
    fn quiet_nodes(&self, own: ClusterNodeId, now_ms: u64) -> Vec<QuietNode> {
        let others = self.nodes.iter().filter(|(node, _)| **node != own);
        let quiet =
            others.filter(|(_, row)| !row.is_dead && is_older(row, NODE_QUIET_AFTER_MS, now_ms));
        let quiet = quiet.map(|(&node, row)| QuietNode {
            run: NodeRun { node, run: row.run },
            heartbeat_ms: row.heartbeat_ms,
        });
        quiet.collect()
    }

    /// Whether a run was declared dead, or is not the newest of its node.
    fn is_dead(&self, run: NodeRun) -> bool {
        let row = self.nodes.get(&run.node);
        row.is_none_or(|row| row.run != run.run || row.is_dead)
    }

    fn claim_late(
        &mut self,
        run: NodeRun,
        players_max: usize,
        unheard: &[QuietNode],
        now_ms: u64,
    ) -> ClusterReply {
        if !self.is_alive(run, now_ms) {
            return ClusterReply::Refused(RefusedWrite::RunEnded);
        }
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.declare_dead(run, node, now_ms);
        }
        for &node in unheard {
            self.declare_unheard_dead(run, node, now_ms);
        }
        let owned = self
            .players
            .iter()
            .filter_map(|(player, row)| Some((*player, row.owner?)));
        let late = owned.filter(|(_, owner)| self.is_dead(*owner));
        let late: Vec<_> = late.map(|(player, _)| player).take(players_max).collect();
        let arrivals = late.into_iter().map(|player| {
            self.give(player, Some(run));
            let epoch = self.players.get(&player).map_or(0, |row| row.epoch);
            Arrival { player, epoch }
        });
        let arrivals = arrivals.collect();
        let quiet = self.quiet_nodes(run.node, now_ms);
        ClusterReply::Claimed { arrivals, quiet }
    }

    fn log_in(
        &mut self,
        run: NodeRun,
        player: PlayerId,
        epoch: u64,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        if epoch == 0 {
            self.players.entry(player).or_default();
        }
        let row = self.players.get(&player);
        let row = row.filter(|row| row.owner.is_none() && row.epoch == epoch);
        row.ok_or(RefusedWrite::NotOwner)?;
        self.give(player, Some(run));
        Ok(())
    }
}

const fn is_steady(row: &NodeRow, after_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(row.steady_since_ms) > after_ms
}

const fn is_late(row: &NodeRow, now_ms: u64) -> bool {
    is_older(row, NODE_LATE_AFTER_MS, now_ms)
}

/// Whether the last heartbeat of a node is older than a time.
const fn is_older(row: &NodeRow, age_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(row.heartbeat_ms) > age_ms
}

#[cfg(test)]
mod tests;
