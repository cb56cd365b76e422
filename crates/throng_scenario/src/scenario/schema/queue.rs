//! Queues: a mode of matchmaking and who waits in it: players of a crowd, and parties that exist in tickets only.

use serde::{Deserialize, Serialize};

use super::ScenarioScene;
use throng::matchmaking::ROLE_COUNT;
use throng::matchmaking::{GroupModeSettings, MatchModeSettings};

/// A mode in which parties wait for battles, and the parties that come by themselves.
///
/// Parties that come by themselves have no objects until they fight. Those of `crowd` are the crowd's own players,
/// who stand in its scene, go to the battle's and come back. Both are drawn by the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Queue", default, deny_unknown_fields)]
pub struct ScenarioMatchMode {
    /// The mode's name, by which cues and reports know it; unique.
    pub mode: String,
    /// How battles are made. Its `name` need not be given: it is `mode`.
    pub rules: MatchModeSettings,
    /// Parties that queue in the first tick.
    pub parties: u32,
    /// Parties that come a second, at most a million; to the millionth. Less than 0 and no number count as 0.
    pub parties_per_s: f32,
    /// How often parties of 1, 2, 3, 4 and 5 players come, relative to each other; single players only when all are 0.
    pub size_weights: [u32; 5],
    /// The mean skill of a player.
    pub skill_mean: i32,
    /// The standard deviation of skill.
    pub skill_deviation: u32,
    /// The mean power of a player.
    pub power_per_player: u32,
    /// The standard deviation of power.
    pub power_deviation: u32,
    /// The lowest and the highest level of a party, each level as often.
    pub levels: (u16, u16),
    /// The share of parties that would avoid up to eight of the players who came with them, 0 to 1.
    pub avoid_share: f32,
    /// How often a player plays no role, and each of the four, relative to each other; none when all are 0.
    pub role_weights: [u32; 1 + ROLE_COUNT],
    /// Regions that there are, at most 32; a party plays in one of them or in two that are next to each other. 0 when
    /// all play anywhere.
    pub regions: u8,
    /// The tag of the crowds whose players queue here with their parties, whenever these are together at home.
    pub crowd: Option<String>,
    /// Waiting parties that give up a second, over the whole queue, the longest-waiting first; limits as in `parties_per_s`.
    pub cancels_per_s: f32,
    /// The scene that is opened for each match; none when absent.
    pub battle_scene: Option<ScenarioScene>,
    /// How long a battle lasts, and that scene stays open, seconds.
    pub battle_s: f32,
    /// Parties without a crowd that leave their battle a second, over the whole queue; others are asked to join in
    /// their place, as in that of a player who logs out.
    pub leaves_per_s: f32,
    /// The share of matched parties without a crowd that queue again after the battle, 0 to 1.
    pub return_share: f32,
    /// How long parties rest after a battle before they queue again, seconds.
    pub rest_s: f32,
}

impl Default for ScenarioMatchMode {
    fn default() -> Self {
        Self {
            mode: "arena".to_owned(),
            rules: MatchModeSettings::Groups(GroupModeSettings::default()),
            parties: 0,
            parties_per_s: 0.0,
            size_weights: [60, 20, 8, 4, 8],
            skill_mean: 1500,
            skill_deviation: 300,
            power_per_player: 1000,
            power_deviation: 200,
            levels: (1, 1),
            avoid_share: 0.0,
            role_weights: [1, 0, 0, 0, 0],
            regions: 0,
            crowd: None,
            cancels_per_s: 0.0,
            battle_scene: None,
            battle_s: 20.0,
            leaves_per_s: 0.0,
            return_share: 0.0,
            rest_s: 5.0,
        }
    }
}

impl ScenarioMatchMode {
    /// The rules under this queue's own name.
    #[must_use]
    pub fn mode_settings(&self) -> MatchModeSettings {
        let mut rules = self.rules.clone();
        rules.set_name(&self.mode);
        rules
    }
}
