//! Queues: a mode of matchmaking and the synthetic parties that wait in it.

use serde::{Deserialize, Serialize};

use super::Scene;
use crate::matchmaking::{ModeSettings, QueueMode};

/// A mode in which parties wait for battles, and the parties that come by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// The mode's name, by which cues and reports know it; unique.
    pub mode: String,
    /// How battles are made. Its `name` need not be given: it is `mode`.
    pub rules: QueueMode,
    /// Parties that queue in the first tick.
    pub parties: u32,
    /// Parties that come a second.
    pub parties_per_s: f32,
    /// How often parties of 1, 2, 3, 4 and 5 players come, relative to each other.
    pub size_weights: [u32; 5],
    /// The mean skill of a player.
    pub skill_mean: i32,
    /// The standard deviation of skill.
    pub skill_deviation: u32,
    /// The mean power of a player.
    pub power_per_player: u32,
    /// The standard deviation of power.
    pub power_deviation: u32,
    /// Waiting parties that give up a second, over the whole queue.
    pub cancels_per_s: f32,
    /// The scene that is opened for each match; none when absent.
    pub battle_scene: Option<Scene>,
    /// How long that scene stays open, seconds.
    pub battle_s: f32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            mode: "arena".to_owned(),
            rules: QueueMode::Groups(ModeSettings::default()),
            parties: 0,
            parties_per_s: 0.0,
            size_weights: [60, 20, 8, 4, 8],
            skill_mean: 1500,
            skill_deviation: 300,
            power_per_player: 1000,
            power_deviation: 200,
            cancels_per_s: 0.0,
            battle_scene: None,
            battle_s: 20.0,
        }
    }
}

impl Queue {
    /// The rules under this queue's own name.
    #[must_use]
    pub fn named_rules(&self) -> QueueMode {
        let mut rules = self.rules.clone();
        rules.set_name(&self.mode);
        rules
    }
}
