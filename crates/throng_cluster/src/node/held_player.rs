//! A player in the memory of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use throng_core::ids::PlayerId;

use crate::ids::{ClusterRecord, NodeRun};
use crate::request::ClusterSave;

/// The state of a player on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldState {
    /// The node simulates the player, unless it pauses.
    Live,
    /// The player is frozen and logs out.
    Leaving,
    /// The player is frozen. Its hand-off to this run is pending, or is sent next.
    Moving(NodeRun),
    /// The outcome of its hand-off or log-out is unknown. The next write raises its epoch.
    Uncertain,
    /// Its epoch could not be raised. The next read is that of its owner.
    Checking,
    /// Another node owns it with this epoch, and has not adopted it yet, as far as this node knows.
    Moved {
        epoch: u64,
        since_ms: u64,
        next_read_ms: u64,
    },
}

impl HeldState {
    /// The run to which the player moves.
    pub const fn target(self) -> Option<NodeRun> {
        match self {
            Self::Moving(to) => Some(to),
            _ => None,
        }
    }
}

/// A player in the memory of a node.
#[derive(Clone, Debug)]
pub(super) struct HeldPlayer {
    /// The epoch with which this node owns it.
    pub epoch: u64,
    /// The epoch with which it arrived.
    pub arrival: u64,
    pub record: ClusterRecord,
    /// The newest revision that the store has.
    pub saved_revision: u64,
    /// Players that exchanged something with it since then.
    pub joined: BTreeSet<PlayerId>,
    pub state: HeldState,
    /// When its last hand-off began; `None` if it logs out instead.
    pub frozen_since_ms: Option<u64>,
}

impl HeldPlayer {
    /// A player that was just adopted.
    pub fn adopted(epoch: u64, record: ClusterRecord) -> Self {
        Self {
            epoch,
            arrival: epoch,
            saved_revision: record.revision,
            record,
            joined: BTreeSet::new(),
            state: HeldState::Live,
            frozen_since_ms: None,
        }
    }

    pub const fn is_unsaved(&self) -> bool {
        self.record.revision > self.saved_revision
    }

    fn to_save(&self, player: PlayerId) -> ClusterSave {
        ClusterSave {
            player,
            epoch: self.epoch,
            record: self.record.clone(),
        }
    }
}

/// The players of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldPlayers(pub BTreeMap<PlayerId, HeldPlayer>);

impl HeldPlayers {
    pub fn get_live_mut(&mut self, player: PlayerId) -> Option<&mut HeldPlayer> {
        let held = self.0.get_mut(&player)?;
        (held.state == HeldState::Live).then_some(held)
    }

    /// A player that is held with this epoch.
    pub fn get_mut_at(&mut self, player: PlayerId, epoch: u64) -> Option<&mut HeldPlayer> {
        let held = self.0.get_mut(&player);
        held.filter(|held| held.epoch == epoch)
    }

    /// The players whose state fits, in ascending order.
    pub fn all(&self, fits: impl Fn(HeldState) -> bool) -> impl Iterator<Item = PlayerId> {
        let fitting = self.0.iter().filter(move |(_, held)| fits(held.state));
        fitting.map(|(player, _)| *player)
    }

    /// The player with the lowest id whose state fits.
    pub fn find(&self, fits: impl Fn(HeldState) -> bool) -> Option<PlayerId> {
        self.all(fits).next()
    }

    /// The saves of unsaved players with ids above `after`, and the last of them if there are more. Players that exchanged something are in the
    /// same list, so it may exceed `players_max` by one such group, and contain lower ids.
    pub fn unsaved(
        &self,
        after: Option<PlayerId>,
        players_max: usize,
    ) -> (Vec<ClusterSave>, Option<PlayerId>) {
        let (mut saves, mut found) = (Vec::new(), BTreeSet::new());
        let mut last = None;
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (&player, held) in self.0.range((first, Bound::Unbounded)) {
            if !held.is_unsaved() || found.contains(&player) {
                continue;
            }
            if saves.len() >= players_max.max(1) {
                return (saves, last);
            }
            let (own, others) = self.joined_saves(&[player]);
            let group = own.into_iter().chain(others);
            saves.extend(group.inspect(|save| _ = found.insert(save.player)));
            last = Some(player);
        }
        (saves, None)
    }

    /// The saves of players, and those of all other players that are connected with them by unsaved exchanges, directly or through others.
    pub fn joined_saves(&self, players: &[PlayerId]) -> (Vec<ClusterSave>, Vec<ClusterSave>) {
        let mut group: BTreeSet<PlayerId> = players.iter().copied().collect();
        let mut next = players.to_vec();
        while let Some(player) = next.pop() {
            let held = self.0.get(&player).into_iter();
            let joined = held.flat_map(|held| &held.joined).copied();
            next.extend(joined.filter(|other| group.insert(*other)));
        }
        for player in players {
            group.remove(player);
        }
        let save = |player: PlayerId| Some(self.0.get(&player)?.to_save(player));
        let own = players.iter().copied().filter_map(save).collect();
        (own, group.into_iter().filter_map(save).collect())
    }

    /// Marks revisions as saved. Players that have not changed since then are separated from the others.
    pub fn mark_saved(&mut self, saved: &[(PlayerId, u64)]) {
        for &(player, revision) in saved {
            let Some(held) = self.0.get_mut(&player) else {
                continue;
            };
            held.saved_revision = held.saved_revision.max(revision);
            if !held.is_unsaved() {
                self.separate(player);
            }
        }
    }

    /// Forgets the unsaved exchanges of a player.
    pub fn separate(&mut self, player: PlayerId) {
        let joined = self
            .0
            .get_mut(&player)
            .map(|held| std::mem::take(&mut held.joined));
        for other in joined.into_iter().flatten() {
            if let Some(other) = self.0.get_mut(&other) {
                other.joined.remove(&player);
            }
        }
    }

    /// Counts the time since the hand-off of a player from now on.
    pub fn restart_move(&mut self, player: PlayerId, now_ms: u64) {
        let held = self.0.get_mut(&player);
        if let Some(HeldState::Moved { since_ms, .. }) = held.map(|held| &mut held.state) {
            *since_ms = now_ms;
        }
    }

    /// Removes a player that was handed off with this epoch, unless it has come back since.
    pub fn remove_moved(&mut self, player: PlayerId, given: u64) {
        let state = self.0.get(&player).map(|held| held.state);
        if matches!(state, Some(HeldState::Moved { epoch, .. }) if epoch == given) {
            self.remove(player);
        }
    }

    /// Removes a player that another node owns.
    pub fn remove(&mut self, player: PlayerId) {
        self.separate(player);
        self.0.remove(&player);
    }
}
