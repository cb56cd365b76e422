//! A mode of matchmaking and its parties: players of a crowd, and synthetic parties, which exist as tickets only.

use serde::{Deserialize, Serialize};

use super::ScenarioScene;
use throng::matchmaking::ROLE_COUNT;
use throng::matchmaking::{GroupModeSettings, MatchModeSettings};

/// A mode of matchmaking and its synthetic parties.
///
/// Synthetic parties have no objects until their match begins. With `crowd_tag`, the players of crowds with that tag queue too:
/// they are moved from their scene to the scene of the match and back. The same settings apply to both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Queue", default, deny_unknown_fields)]
pub struct ScenarioMatchMode {
    /// The name of the mode for cues and reports; unique.
    pub mode: String,
    /// How matches are made. Its `name` is `mode` and can be left out.
    #[serde(alias = "rules")]
    pub settings: MatchModeSettings,
    /// Parties that queue in the first tick.
    pub parties: u32,
    /// Parties per second, at most a million, with a resolution of a millionth. Negative values and NaN count as 0.
    pub parties_per_s: f32,
    /// The relative frequency of parties of 1, 2, 3, 4 and 5 players; only single players when all are 0.
    pub size_weights: [u32; 5],
    /// The mean skill of a player.
    pub skill_mean: i32,
    /// The standard deviation of skill.
    pub skill_deviation: u32,
    /// The mean power of a player.
    pub power_per_player: u32,
    /// The standard deviation of power.
    pub power_deviation: u32,
    /// The lowest and the highest level of a party, uniformly distributed.
    pub levels: (u16, u16),
    /// The share of parties that avoid up to eight of the players that arrived before them, 0 to 1.
    pub avoid_share: f32,
    /// The relative frequency of no role and of each of the four roles; no roles when all are 0.
    pub role_weights: [u32; 1 + ROLE_COUNT],
    /// The number of regions, at most 32. A party accepts one region or two neighbouring ones. 0 means no regions.
    pub regions: u8,
    /// The tag of the crowds whose players queue here with their parties, when all members are in their home scene.
    #[serde(alias = "crowd")]
    pub crowd_tag: Option<String>,
    /// Cancellations per second in the whole queue, the longest-waiting parties first; limits as in `parties_per_s`.
    pub cancels_per_s: f32,
    /// The scene that is opened for each match; none when absent.
    #[serde(alias = "battle_scene")]
    pub match_scene: Option<ScenarioScene>,
    /// The duration of a match and its scene, seconds.
    #[serde(alias = "battle_s")]
    pub match_duration_s: f32,
    /// Synthetic parties per second that leave their match, in the whole queue. They are backfilled, like players that log out.
    pub leaves_per_s: f32,
    /// The share of synthetic parties that queue again after their match, 0 to 1.
    #[serde(alias = "return_share")]
    pub requeue_share: f32,
    /// The pause between a match and the next queueing, seconds.
    #[serde(alias = "rest_s")]
    pub requeue_delay_s: f32,
}

impl Default for ScenarioMatchMode {
    fn default() -> Self {
        Self {
            mode: "arena".to_owned(),
            settings: MatchModeSettings::Groups(GroupModeSettings::default()),
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
            crowd_tag: None,
            cancels_per_s: 0.0,
            match_scene: None,
            match_duration_s: 20.0,
            leaves_per_s: 0.0,
            requeue_share: 0.0,
            requeue_delay_s: 5.0,
        }
    }
}

impl ScenarioMatchMode {
    /// The settings of the mode, under its name.
    #[must_use]
    pub fn mode_settings(&self) -> MatchModeSettings {
        let mut rules = self.settings.clone();
        rules.set_name(&self.mode);
        rules
    }
}
