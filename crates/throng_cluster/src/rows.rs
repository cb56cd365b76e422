//! The rows of a cluster, in memory, and the requests to them. Each request is one transaction: all of it happens, or nothing.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;

use crate::ids::{ClusterNodeId, ClusterRecord, NodeRun};

/// A node whose heartbeat is older than this, by the store's clock, is late: others may claim its players. In milliseconds. A node stops
/// to simulate as long after it *sent* its last successful heartbeat, so before anybody can claim.
pub const NODE_LATE_AFTER_MS: u64 = 1_500;

/// New values of a player whom the caller owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSave {
    /// The player.
    pub player: PlayerId,
    /// The epoch with which the caller owns it.
    pub epoch: u64,
    /// Its state.
    pub record: ClusterRecord,
}

/// A request of a node to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterRequest {
    /// The node runs. The first one of a run registers it.
    Heartbeat {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// Saves all these players, or none.
    Save {
        /// The run that sends the request.
        run: NodeRun,
        /// The players; those that exchanged something unsaved are together.
        saves: Vec<ClusterSave>,
    },
    /// Gives a player to another node, with its state, and saves others with it.
    HandOff {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: ClusterSave,
        /// The new owner.
        to: NodeRun,
        /// Players that exchanged something unsaved with the player.
        saves: Vec<ClusterSave>,
    },
    /// Raises the epoch of a player whom the caller owns, so that no earlier request about it can succeed any more.
    RaiseEpoch {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch with which the caller owns it.
        epoch: u64,
    },
    /// Reads who owns a player.
    ReadOwner {
        /// The player.
        player: PlayerId,
    },
    /// Reads the players that the caller owns and has not adopted.
    ReadArrivals {
        /// The run that sends the request.
        run: NodeRun,
    },
    /// Adopts a player: its new owner has it. Repeating it changes nothing.
    Adopt {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch of the arrival.
        epoch: u64,
    },
    /// Takes a player back from a late node that has not adopted it.
    TakeBack {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
        /// The epoch with which the late node owns it.
        epoch: u64,
    },
    /// Claims players of late nodes and of earlier runs, up to a maximum number. They become arrivals.
    ClaimLate {
        /// The run that sends the request.
        run: NodeRun,
        /// Maximum number of players.
        players_max: usize,
    },
    /// Claims a player that nobody owns: a login. The player becomes an arrival.
    LogIn {
        /// The run that sends the request.
        run: NodeRun,
        /// The player.
        player: PlayerId,
    },
}

/// A player that waits to be adopted by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The player.
    pub player: PlayerId,
    /// The epoch of the owner.
    pub epoch: u64,
}

/// Why the store has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedWrite {
    /// The caller does not own a player with that epoch.
    NotOwner,
    /// The target of a hand-off is late or gone.
    TargetLate,
    /// The store has a newer state of a player.
    OlderState,
    /// The run of the caller was declared dead, or the node has a newer one.
    RunEnded,
    /// The target of [`ClusterRequest::TakeBack`] is alive, or has adopted the player.
    NotLate,
}

/// The reply to a [`ClusterRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterReply {
    /// It is done.
    Done,
    /// Nothing was changed.
    Refused(RefusedWrite),
    /// The owner of a player, its epoch, and whether the owner has adopted it.
    Owner(Option<NodeRun>, u64, bool),
    /// Players that wait to be adopted.
    Arrivals(Vec<Arrival>),
    /// The state of an adopted player.
    Adopted(ClusterRecord),
    /// The store is away: nothing was done, and nothing will be.
    Away,
}

#[derive(Clone, Debug, Default)]
struct OwnedPlayerRow {
    owner: Option<NodeRun>,
    epoch: u64,
    is_adopted: bool,
    record: ClusterRecord,
}

#[derive(Clone, Copy, Debug)]
struct NodeRow {
    run: u32,
    heartbeat_ms: u64,
    is_dead: bool,
}

/// The rows of a cluster, in memory.
#[derive(Clone, Debug, Default)]
pub struct ClusterRows {
    players: BTreeMap<PlayerId, OwnedPlayerRow>,
    nodes: BTreeMap<ClusterNodeId, NodeRow>,
}

impl ClusterRows {
    /// Adds a player whom nobody owns.
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
            ClusterRequest::Heartbeat { run } => self.heartbeat(run, now_ms),
            ClusterRequest::Save { run, saves } => self.save(run, &saves),
            ClusterRequest::HandOff {
                run,
                player,
                to,
                saves,
            } => self.hand_off(run, player, to, saves, now_ms),
            ClusterRequest::RaiseEpoch { run, player, epoch } => {
                self.change_owned(run, player, epoch, |row| row.epoch += 1)
            }
            ClusterRequest::ReadOwner { player } => return self.read_owner(player),
            ClusterRequest::ReadArrivals { run } => return self.read_arrivals(run),
            ClusterRequest::Adopt { run, player, epoch } => return self.adopt(run, player, epoch),
            ClusterRequest::TakeBack { run, player, epoch } => {
                self.take_back(run, player, epoch, now_ms)
            }
            ClusterRequest::ClaimLate { run, players_max } => {
                self.claim_late(run, players_max, now_ms)
            }
            ClusterRequest::LogIn { run, player } => self.log_in(run, player, now_ms),
        };
        result.map_or_else(ClusterReply::Refused, |()| ClusterReply::Done)
    }

    fn heartbeat(&mut self, run: NodeRun, now_ms: u64) -> Result<(), RefusedWrite> {
        let row = NodeRow {
            run: run.run,
            heartbeat_ms: now_ms,
            is_dead: false,
        };
        let known = self.nodes.entry(run.node).or_insert(row);
        if run.run < known.run || (run.run == known.run && known.is_dead) {
            return Err(RefusedWrite::RunEnded);
        }
        *known = row;
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
        player: ClusterSave,
        to: NodeRun,
        mut saves: Vec<ClusterSave>,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(to, now_ms) {
            return Err(RefusedWrite::TargetLate);
        }
        let moved = player.player;
        saves.push(player);
        self.save(run, &saves)?;
        self.give(moved, to);
        Ok(())
    }

    /// Makes this run the owner, who has to adopt the player.
    fn give(&mut self, player: PlayerId, to: NodeRun) {
        let row = self.players.entry(player).or_default();
        row.owner = Some(to);
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

    fn read_owner(&self, player: PlayerId) -> ClusterReply {
        let row = self.players.get(&player);
        row.map_or(ClusterReply::Refused(RefusedWrite::NotOwner), |row| {
            ClusterReply::Owner(row.owner, row.epoch, row.is_adopted)
        })
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

    fn adopt(&mut self, run: NodeRun, player: PlayerId, epoch: u64) -> ClusterReply {
        let adopted = self.change_owned(run, player, epoch, |row| row.is_adopted = true);
        match (adopted, self.players.get(&player)) {
            (Ok(()), Some(row)) => ClusterReply::Adopted(row.record.clone()),
            _ => ClusterReply::Refused(RefusedWrite::NotOwner),
        }
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
        self.give(player, run);
        Ok(())
    }

    fn claim_late(
        &mut self,
        run: NodeRun,
        players_max: usize,
        now_ms: u64,
    ) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        for row in self.nodes.values_mut() {
            // Its heartbeats are refused from now on: it stays dead, whatever arrives late.
            row.is_dead |= is_late(row, now_ms);
        }
        let owned = self
            .players
            .iter()
            .filter_map(|(player, row)| Some((*player, row.owner?)));
        let late = owned.filter(|(_, owner)| !self.is_alive(*owner, now_ms));
        let late: Vec<_> = late.map(|(player, _)| player).take(players_max).collect();
        for player in late {
            self.give(player, run);
        }
        Ok(())
    }

    fn log_in(&mut self, run: NodeRun, player: PlayerId, now_ms: u64) -> Result<(), RefusedWrite> {
        if !self.is_alive(run, now_ms) {
            return Err(RefusedWrite::RunEnded);
        }
        let row = self.players.get(&player);
        row.filter(|row| row.owner.is_none())
            .ok_or(RefusedWrite::NotOwner)?;
        self.give(player, run);
        Ok(())
    }
}

const fn is_late(row: &NodeRow, now_ms: u64) -> bool {
    now_ms.saturating_sub(row.heartbeat_ms) > NODE_LATE_AFTER_MS
}

#[cfg(test)]
mod tests;
