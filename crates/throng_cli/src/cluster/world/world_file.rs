//! The format of world files.

use glam::Vec2;
use serde::Deserialize;
use throng_core::hash::StateHasher;
use throng_core::ids::PlayerId;

/// A world of several scenes.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "World", deny_unknown_fields)]
pub(in crate::cluster) struct WorldFile {
    /// Ticks per second.
    #[serde(default = "tick_hz")]
    pub tick_hz: f64,
    /// The scene of new players, and their place in it, in metres.
    pub start: String,
    pub start_at_m: Vec2,
    /// Whether new players start in all scenes in turn, at that place, and not only in `start`.
    #[serde(default)]
    pub start_everywhere: bool,
    /// The gold of a new player.
    #[serde(default = "gold")]
    pub gold: u32,
    /// How fast players walk, in metres per second.
    #[serde(default = "speed_m_s")]
    pub speed_m_s: f32,
    pub scenes: Vec<WorldScene>,
    /// The matches that players can queue for.
    #[serde(default)]
    pub modes: Vec<WorldMode>,
}

/// A kind of match: two teams that meet in an instance.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Mode", deny_unknown_fields)]
pub(in crate::cluster) struct WorldMode {
    pub name: String,
    /// Players of each of the two teams.
    pub team_players: u8,
    /// How long a match lasts, in seconds.
    pub duration_s: f64,
    /// Width and height of the instance.
    pub size_m: Vec2,
}

/// A scene of a world.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Scene", deny_unknown_fields)]
pub(in crate::cluster) struct WorldScene {
    pub name: String,
    /// Width and height.
    pub size_m: Vec2,
    /// NPCs that walk about.
    #[serde(default)]
    pub npcs: u32,
    /// The node that runs it while that node is there.
    #[serde(default)]
    pub pinned_to: Option<String>,
    #[serde(default)]
    pub portals: Vec<WorldPortal>,
    #[serde(default)]
    pub boards: Vec<WorldBoard>,
}

/// A place at which players queue for a match.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Board", deny_unknown_fields)]
pub(in crate::cluster) struct WorldBoard {
    pub at_m: Vec2,
    pub radius_m: f32,
    /// The name of the mode.
    pub mode: String,
}

/// A place that leads to another scene.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Portal", deny_unknown_fields)]
pub(in crate::cluster) struct WorldPortal {
    pub at_m: Vec2,
    pub radius_m: f32,
    /// The other scene.
    pub to: String,
    /// The place there.
    pub arrive_at_m: Vec2,
}

const fn tick_hz() -> f64 {
    20.0
}

const fn gold() -> u32 {
    100
}

const fn speed_m_s() -> f32 {
    6.0
}

impl WorldFile {
    /// A scene by its name.
    pub fn scene(&self, name: &str) -> Option<&WorldScene> {
        self.scenes.iter().find(|scene| scene.name == name)
    }

    /// The scene of a new player.
    pub fn start_of(&self, player: PlayerId) -> &str {
        let turn = player.0 % self.scenes.len().max(1) as u64;
        let in_turn = self.scenes.get(turn as usize);
        let in_turn = in_turn.filter(|_| self.start_everywhere);
        in_turn.map_or(&self.start, |scene| &scene.name)
    }

    /// A mode by its name.
    pub fn mode(&self, name: &str) -> Option<&WorldMode> {
        self.modes.iter().find(|mode| mode.name == name)
    }

    /// A time in ticks, rounded up.
    pub fn ticks(&self, seconds: f64) -> u64 {
        (seconds * self.tick_hz).ceil() as u64
    }

    /// The number of a scene: its place in the file.
    pub fn number_of(&self, name: &str) -> Option<u16> {
        let at = self.scenes.iter().position(|scene| scene.name == name);
        at.and_then(|at| u16::try_from(at).ok())
    }

    /// What nodes that run this world together must agree on.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = StateHasher::default();
        hasher.write_bytes(format!("{self:?}").as_bytes());
        hasher.finish_u64()
    }
}
