//! The cache of the locations of players.

use std::collections::BTreeMap;

use throng_core::ids::PlayerId;

use crate::ids::NodeRun;

/// A bounded cache of the runs that own players. An entry may be outdated at any time, so a user has to handle wrong ones.
///
/// Cost: O(log n).
#[derive(Clone, Debug)]
pub struct PlayerLocations {
    runs: BTreeMap<PlayerId, (NodeRun, u64)>,
    /// The players in the order in which they were noted.
    order: BTreeMap<u64, PlayerId>,
    last: u64,
    max: usize,
}

impl PlayerLocations {
    /// An empty cache for this many players.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            runs: BTreeMap::new(),
            order: BTreeMap::new(),
            last: 0,
            max,
        }
    }

    /// The noted location of a player; `None` if there is none.
    #[must_use]
    pub fn get(&self, player: PlayerId) -> Option<NodeRun> {
        self.runs.get(&player).map(|(run, _)| *run)
    }

    /// Notes the location of a player. At the limit, the entry that was noted first is evicted.
    pub fn note(&mut self, player: PlayerId, run: NodeRun) {
        self.forget(player);
        self.last += 1;
        self.runs.insert(player, (run, self.last));
        self.order.insert(self.last, player);
        if self.runs.len() > self.max
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.runs.remove(&oldest);
        }
    }

    /// Forgets a player.
    pub fn forget(&mut self, player: PlayerId) {
        if let Some((_, number)) = self.runs.remove(&player) {
            self.order.remove(&number);
        }
    }

    /// The number of players.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether no player is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::ids::ClusterNodeId;

    #[test]
    fn locations_match_a_list_of_the_newest_notes() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let mut locations = PlayerLocations::new(8);
        // The newest note is the last one.
        let mut model: Vec<(PlayerId, NodeRun)> = Vec::new();
        for step in 0..20_000 {
            let player = PlayerId(rng.random_range(0..14));
            if rng.random_bool(0.2) {
                locations.forget(player);
                model.retain(|(known, _)| *known != player);
            } else {
                let run = NodeRun {
                    node: ClusterNodeId(rng.random_range(0..3)),
                    run: step,
                };
                locations.note(player, run);
                model.retain(|(known, _)| *known != player);
                model.push((player, run));
                if model.len() > 8 {
                    model.remove(0);
                }
            }
            let expected = model.iter().find(|(known, _)| *known == player);
            assert_eq!(locations.get(player), expected.map(|(_, run)| *run));
            assert_eq!(locations.len(), model.len());
            assert!(
                model
                    .iter()
                    .all(|(player, run)| locations.get(*player) == Some(*run))
            );
            assert_eq!(locations.order.len(), model.len());
        }
    }
}
