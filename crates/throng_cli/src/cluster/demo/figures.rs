//! What the clients of the demo saw, as lines.

use std::time::Duration;

use super::fleet::FleetState;
use super::walker::{DemoWalkerEvent, OUT_AFTER};
use crate::cluster::world::{PLACE_MATCH, WorldFile};
use crate::terminal::wrapped;

/// Figures of a run.
#[derive(Debug, Default)]
pub(super) struct DemoFigures {
    /// Clients that have been in the world.
    pub entered: usize,
    pub disconnects: usize,
    /// Changes to a scene of the same node.
    local_changes: usize,
    /// Changes to a scene of another node.
    hand_offs: usize,
    /// Their pauses. Hand-offs during a kill are left out.
    pauses: Vec<Duration>,
    /// How often a client entered a match.
    match_entries: usize,
    /// The process that was killed last, while its consequences are counted.
    kill: Option<KillFigures>,
    kills: Vec<KillFigures>,
}

/// What a kill caused.
#[derive(Debug, Default)]
struct KillFigures {
    name: String,
    /// Processes that were killed; more than one in a sum.
    kills: usize,
    disconnects: usize,
    outages: Vec<Duration>,
}

/// The smallest value that is at least as large as this share of the values; `None` without values.
fn percentile(values: &[Duration], share: f64) -> Option<Duration> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let nth = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(nth.saturating_sub(1)).copied()
}

fn shown(value: Option<Duration>) -> String {
    value.map_or("–".to_owned(), |value| {
        format!("{:.2} s", value.as_secs_f64())
    })
}

impl DemoFigures {
    /// Counts an event. `state` says which scenes are on the same node.
    pub fn count(&mut self, event: &DemoWalkerEvent, state: &FleetState, world: &WorldFile) {
        match event {
            DemoWalkerEvent::Entered => self.entered += 1,
            DemoWalkerEvent::Disconnected(cause) => {
                tracing::info!(cause, "client disconnected");
                self.disconnects += 1;
                if let Some(kill) = &mut self.kill {
                    kill.disconnects += 1;
                }
            }
            DemoWalkerEvent::ChangedScene { from, to, pause } => {
                let owner = |place: &u16| {
                    let scene = world.scenes.get(usize::from(*place));
                    scene.and_then(|scene| state.owner(&scene.name))
                };
                let is_match = [from, to].contains(&&PLACE_MATCH);
                let is_local = owner(from).is_some() && owner(from) == owner(to);
                match (is_match, is_local) {
                    (true, _) => self.match_entries += usize::from(*to == PLACE_MATCH),
                    (false, true) => self.local_changes += 1,
                    (false, false) => self.hand_offs += 1,
                }
                match &mut self.kill {
                    Some(kill) if *pause >= OUT_AFTER => kill.outages.push(*pause),
                    Some(_) => {}
                    None if !is_local && !is_match => self.pauses.push(*pause),
                    None => {}
                }
            }
            DemoWalkerEvent::Returned { pause } => {
                if let Some(kill) = &mut self.kill {
                    kill.outages.push(*pause);
                }
            }
        }
    }

    /// From now on, what happens is a consequence of this kill.
    pub fn begin_kill(&mut self, name: String) {
        self.kill = Some(KillFigures {
            name,
            kills: 1,
            ..KillFigures::default()
        });
    }

    /// The consequences of the kill are over. Returns its line.
    pub fn end_kill(&mut self) -> Option<String> {
        let kill = self.kill.take()?;
        let line = kill.line();
        self.kills.push(kill);
        Some(line)
    }

    /// The line of a second.
    pub fn second_line(&self, second: u64, state: &FleetState) -> String {
        let scenes = state.scene_counts();
        let mut line = format!("{second:>4} s ");
        for node in &state.nodes {
            let (name, players) = (&node.name, node.players);
            if node.is_alive {
                let scenes = scenes.get(&**name).copied().unwrap_or(0);
                line.push_str(&format!(" {name} {scenes}:{players} "));
            } else {
                line.push_str(&format!(" {name} gone "));
            }
        }
        let (hand_offs, disconnects) = (self.hand_offs, self.disconnects);
        line.push_str(&format!(
            " hand-offs {hand_offs}  disconnects {disconnects}"
        ));
        wrapped(&line, 8)
    }

    /// The lines at the end.
    pub fn summary(&self) -> Vec<String> {
        let pause = |share| shown(percentile(&self.pauses, share));
        let mut lines = vec![
            format!(
                "hand-offs    {} between nodes, {} scene changes within a node",
                self.hand_offs, self.local_changes
            ),
            format!(
                "pause        p50 {}, p99 {} of a hand-off, as clients see it",
                pause(0.5),
                pause(0.99)
            ),
            format!(
                "matches      {} times a client entered one",
                self.match_entries
            ),
            format!("disconnects  {}", self.disconnects),
        ];
        lines.extend(self.kills_by_kind().iter().map(KillFigures::line));
        lines
    }

    /// The kills of all nodes together, of all gateways, and of each server.
    fn kills_by_kind(&self) -> Vec<KillFigures> {
        let kind_of = |name: &str| match name.as_bytes() {
            [b'n', b'0'..=b'9', ..] => "nodes".to_owned(),
            [b'g', b'0'..=b'9', ..] => "gateways".to_owned(),
            _ => name.to_owned(),
        };
        let mut kinds: Vec<KillFigures> = Vec::new();
        for kill in &self.kills {
            let name = kind_of(&kill.name);
            let known = kinds.iter().position(|kind| kind.name == name);
            let at = known.unwrap_or_else(|| {
                kinds.push(KillFigures {
                    name,
                    ..KillFigures::default()
                });
                kinds.len() - 1
            });
            kinds[at].kills += kill.kills;
            kinds[at].disconnects += kill.disconnects;
            kinds[at].outages.extend(&kill.outages);
        }
        kinds
    }
}

impl KillFigures {
    fn line(&self) -> String {
        let Self {
            name,
            kills,
            disconnects,
            outages,
        } = self;
        let times = if *kills == 1 {
            String::new()
        } else {
            format!(" {kills}×")
        };
        let [half, most, longest] = [0.5, 0.99, 1.0].map(|share| shown(percentile(outages, share)));
        format!(
            "killed {name:<9}{times} {} times a client was out of the world, p50 {half}, p99 {most}, longest {longest}; {disconnects} disconnects",
            outages.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use throng_cluster::{ClusterNodeId, NodeEntry, NodeRun, SceneEntry, SceneTable};

    fn state() -> FleetState {
        let run = |id| NodeRun {
            node: ClusterNodeId(id),
            run: 1,
        };
        let node = |id| NodeEntry {
            name: format!("n{id}"),
            run: run(id),
            is_alive: true,
            is_steady: true,
            load: 0,
            is_draining: false,
        };
        let scene = |name: &str, owner| SceneEntry {
            name: name.to_owned(),
            specification: Vec::new(),
            pinned_to: None,
            owner: Some(run(owner)),
            epoch: 1,
        };
        let scenes = vec![scene("castle", 2), scene("forest", 1), scene("harbour", 1)];
        let table = SceneTable {
            nodes: vec![node(1), node(2)],
            scenes,
        };
        FleetState {
            nodes: Vec::new(),
            table,
        }
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        let values: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let at = |share| percentile(&values, share).unwrap().as_millis();
        assert_eq!([0.5, 0.99, 1.0].map(at), [50, 99, 100]);
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn changes_are_hand_offs_if_another_node_runs_the_scene() {
        let world = WorldFile::load("three_towns").unwrap();
        let number = |name| world.number_of(name).unwrap();
        let (harbour, forest, castle) = (number("harbour"), number("forest"), number("castle"));
        let mut figures = DemoFigures::default();
        let state = state();
        let change = |figures: &mut DemoFigures, from, to, ms| {
            let pause = Duration::from_millis(ms);
            figures.count(
                &DemoWalkerEvent::ChangedScene { from, to, pause },
                &state,
                &world,
            );
        };
        change(&mut figures, harbour, forest, 50);
        change(&mut figures, forest, castle, 80);
        figures.begin_kill("n1".to_owned());
        change(&mut figures, castle, forest, 2_000);
        change(&mut figures, forest, castle, 90);
        change(&mut figures, castle, PLACE_MATCH, 90);
        change(&mut figures, PLACE_MATCH, castle, 90);
        let line = figures.end_kill().unwrap();
        assert!(
            line.contains("1 times") && line.contains("longest 2.00 s"),
            "{line}"
        );
        let summary = figures.summary().join("\n");
        assert!(
            summary.contains("3 between nodes, 1 scene changes"),
            "{summary}"
        );
        assert!(summary.contains("p50 0.08 s, p99 0.08 s"), "{summary}");
        assert!(
            summary.contains("matches      1 times a client entered one"),
            "{summary}"
        );
        let nodes = line.replace("n1   ", "nodes");
        assert_eq!(figures.summary().last(), Some(&nodes));
    }

    #[test]
    fn kills_are_summed_up_by_kind() {
        let mut figures = DemoFigures::default();
        let state = state();
        let world = WorldFile::load("three_towns").unwrap();
        for (name, pause_ms) in [
            ("n1", 700),
            ("n2", 900),
            ("g1", 800),
            ("NATS", 600),
            ("n1", 1_100),
        ] {
            figures.begin_kill(name.to_owned());
            let pause = Duration::from_millis(pause_ms);
            figures.count(&DemoWalkerEvent::Returned { pause }, &state, &world);
            figures.end_kill();
        }
        let summary = figures.summary();
        let kills = &summary[summary.len() - 3..];
        assert!(
            kills[0].starts_with("killed nodes     3× 3 times"),
            "{kills:?}"
        );
        assert!(kills[0].contains("p50 0.90 s, p99 1.10 s"), "{kills:?}");
        assert!(
            kills[1].starts_with("killed gateways  1 times"),
            "{kills:?}"
        );
        assert!(kills[2].starts_with("killed NATS"), "{kills:?}");
    }

    #[test]
    fn second_line_fits_eighty_columns() {
        let mut state = state();
        let node = |nth: u32| throng_cluster::NodeOverview {
            name: format!("n{nth}"),
            run: NodeRun {
                node: ClusterNodeId(nth),
                run: 1,
            },
            is_alive: nth != 3,
            heartbeat_age_ms: 10,
            load: 0,
            is_draining: false,
            is_dead: false,
            scenes: 0,
            players: 10,
        };
        state.nodes = (1..=16).map(node).collect();
        let line = DemoFigures::default().second_line(7, &state);
        assert!(
            line.lines().all(|line| line.chars().count() <= 80),
            "{line}"
        );
        assert!(
            line.starts_with("   7 s  n1 2:10  n2 1:10  n3 gone"),
            "{line}"
        );
    }
}
