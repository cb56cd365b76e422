//! The instances of matches on the simulated nodes.

use rand::RngExt;
use throng_cluster::MatchId;

use super::MatchCluster;

impl MatchCluster {
    /// Opens and ends the matches whose time has come. Some fail.
    pub(super) fn play_matches(&mut self, nth: usize) {
        let due = self.processes[nth].instances.iter();
        let due = due.filter(|(_, (at_ms, _))| self.now_ms >= *at_ms);
        let due: Vec<(MatchId, bool)> = due.map(|(id, (_, is_open))| (*id, *is_open)).collect();
        for (id, is_open) in due {
            // Opening fails more often: then a match is aborted while its matcher may not know that it was formed.
            let fails = self.rng.random_bool(if is_open { 0.02 } else { 0.1 }) && self.matches_fail;
            let ends_ms = self.now_ms + self.rng.random_range(500..4_000);
            let process = &mut self.processes[nth];
            let Some((_, matches)) = &mut process.node else {
                continue;
            };
            if fails {
                matches.abort_match(id);
            } else if is_open {
                matches.end_match(id, vec![1]);
            } else {
                matches.match_opened(id);
                process.instances.insert(id, (ends_ms, true));
                continue;
            }
            process.instances.remove(&id);
        }
    }

    pub(super) fn on_node_death(&mut self, nth: usize) {
        if let Some((_, matches)) = &mut self.processes[nth].node {
            matches.on_node_death();
        }
    }
}
