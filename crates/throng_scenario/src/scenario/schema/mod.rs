//! The types of a scenario file, field by field.
//!
//! Nothing here computes: a value that parses may still be invalid, which `validate` checks.
//!
//! | file | holds |
//! |---|---|
//! | `area` | areas of a scene, where crowds spawn or go |
//! | `attribute` | custom attributes of a scenario |
//! | `optional_brackets` | variants that may be written without brackets |
//! | `crowd` | crowds, and how they behave |
//! | `expect` | expectations, and their text in reports |
//! | `queue` | queues: a mode of matchmaking and its parties |
//! | `parameter` | named numbers and texts of a file |
//! | `script` | cues and their actions |
//! | `selector` | which objects a cue acts on, beyond a tag |
//! | here | the scenario as a whole, its scenes and its settings |

mod area;
mod attribute;
mod crowd;
mod expect;
mod optional_brackets;
mod parameter;
mod queue;
mod script;
mod selector;

pub use area::ScenarioArea;
pub use attribute::{AudienceName, ScenarioAttribute};
pub use crowd::{BehaviourSpec, CueSpec, ScenarioCrowd};
pub use expect::{Expectation, TickLimit};
pub use parameter::ParameterValue;
pub use queue::ScenarioMatchMode;
pub use script::{Action, Class, Cue, ScenarioAnnouncementScope};
pub use selector::{ObjectCondition, SelectionOrder};

pub(super) use script::ObjectSelector;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::crowd::CrowdNetworkConditions;
use throng::aoi::AoiSettings;
pub use throng::aoi::ViewLinkMode;
use throng::inbox::InboxSettings;
use throng::map::{MapRecipe, TownRecipe};
use throng::matchmaking::MatchmakingSettings;
use throng::nav::NavSettings;
use throng::outbox::OutboxSettings;
use throng::session::SessionSettings;
use throng::sim::{OverloadSettings, TICK_HZ_DEFAULT};
use throng::sync::SyncSettings;
use throng::world::ObjectKind;

/// A whole scenario: its start, its script and its expectations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The name for reports; the only required field.
    pub name: String,
    /// The source of all randomness of the run.
    pub seed: u64,
    /// Ticks per simulated second.
    pub tick_hz: f64,
    /// Ticks from one heartbeat to the next.
    pub heartbeat_ticks: u32,
    /// The length of the run, simulated seconds.
    pub duration_s: f64,
    /// Other scenarios that this one includes: files in the same folder, or names of built-in scenarios. Their lists (kinds,
    /// scenes, crowds, script and so on) come first, in this order, followed by those of this file. Other fields that this file
    /// leaves out are taken from the last included scenario that has them.
    pub include: Vec<String>,
    /// Numbers, texts and flags that this file uses by their names, in lower case and without quotes: with
    /// `parameters: {"players": 5000}` a crowd may have `count: players`. `--set players=7000` gives another value, as does
    /// a file that includes this one and has a parameter of the same name.
    pub parameters: BTreeMap<String, ParameterValue>,
    /// Settings of the systems, for the whole run.
    pub settings: ScenarioSettings,
    /// Kinds of objects in addition to the built-in ones. One with the name of a built-in kind replaces it.
    pub kinds: Vec<ObjectKind>,
    /// Attributes of objects in addition to the built-in ones.
    pub attributes: Vec<ScenarioAttribute>,
    /// Scenes that are open from the start. The first one is for crowds that name no scene.
    pub scenes: Vec<ScenarioScene>,
    /// Crowds that are spawned at the start, in this order.
    #[serde(alias = "cast")]
    pub crowds: Vec<ScenarioCrowd>,
    /// Modes of matchmaking, with the parties that queue.
    pub queues: Vec<ScenarioMatchMode>,
    /// The network conditions of some of the clients.
    #[serde(alias = "line")]
    pub network: CrowdNetworkConditions,
    /// What happens at which time. Cues of the same tick run in this order.
    pub script: Vec<Cue>,
    /// What must hold during the run or at its end.
    pub expect: Vec<Expectation>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: String::new(),
            seed: 1,
            include: Vec::new(),
            parameters: BTreeMap::new(),
            tick_hz: TICK_HZ_DEFAULT,
            heartbeat_ticks: 10,
            duration_s: 60.0,
            settings: ScenarioSettings::default(),
            kinds: Vec::new(),
            attributes: Vec::new(),
            scenes: Vec::new(),
            crowds: Vec::new(),
            queues: Vec::new(),
            network: CrowdNetworkConditions::default(),
            script: Vec::new(),
            expect: Vec::new(),
        }
    }
}

impl Scenario {
    /// The number of scenes that a crowd is in: the copies of its scene, whether that is open from the start or opened by a cue.
    pub(in crate::scenario) fn copies_of(&self, crowd: &ScenarioCrowd) -> u32 {
        let opened = self.script.iter().filter_map(|cue| match cue.action() {
            Action::OpenScene(scene) => Some(scene),
            _ => None,
        });
        let home = crowd.scene.as_deref();
        let mut scenes = self.scenes.iter().chain(opened);
        let scene = scenes.find(|scene| home.is_none_or(|name| name == scene.name));
        scene.map_or(1, |scene| scene.copies)
    }

    /// The tags of all crowds, including those that cues spawn, without duplicates.
    pub(in crate::scenario) fn tags(&self) -> impl Iterator<Item = &str> {
        let spawned = self.script.iter().filter_map(|cue| match cue.action() {
            Action::Spawn(crowd) => Some(crowd),
            _ => None,
        });
        let tags = self
            .crowds
            .iter()
            .chain(spawned)
            .map(|crowd| crowd.tag.as_str());
        let tags: BTreeSet<&str> = tags.filter(|tag| !tag.is_empty()).collect();
        tags.into_iter()
    }

    /// The numbers of scenes and of objects at the start, including copies.
    #[must_use]
    pub fn census(&self) -> (u64, u64) {
        let scenes = self.scenes.iter().map(|scene| u64::from(scene.copies));
        let crowds = self.crowds.iter();
        let objects = crowds.map(|crowd| u64::from(crowd.count) * u64::from(self.copies_of(crowd)));
        (scenes.sum(), objects.sum())
    }
}

/// How packets leave the server. Sender threads are not part of a scenario, since their speed would change the result.
///
/// ```
/// use throng_scenario::ScenarioOutboxSettings;
///
/// // Slow clients are logged out sooner than by default.
/// let packets: ScenarioOutboxSettings = ron::from_str("(spill_client_bytes_max: 65536)")?;
/// assert_eq!(packets.mtu_bytes, ScenarioOutboxSettings::default().mtu_bytes);
/// # Ok::<(), ron::error::SpannedError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Packets", default, deny_unknown_fields)]
pub struct ScenarioOutboxSettings {
    /// The longest packet, in bytes.
    pub mtu_bytes: usize,
    /// Bytes of reliable messages that may wait for one client. A client that would exceed this is logged out.
    pub spill_client_bytes_max: usize,
}

impl Default for ScenarioOutboxSettings {
    fn default() -> Self {
        let OutboxSettings {
            mtu_bytes,
            spill_client_bytes_max,
            ..
        } = OutboxSettings::default();
        Self {
            mtu_bytes,
            spill_client_bytes_max,
        }
    }
}

/// The settings of the systems that a scenario can change.
///
/// ```
/// use throng_scenario::ScenarioSettings;
///
/// // As in a scenario file: absent fields keep their defaults.
/// let settings: ScenarioSettings = ron::from_str("(session: (players_max: 500), nav: (expansions_per_tick_max: 20000))")?;
/// assert_eq!(settings.session.players_max, 500);
/// # Ok::<(), ron::error::SpannedError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Settings", default, deny_unknown_fields)]
pub struct ScenarioSettings {
    /// Views.
    pub view: AoiSettings,
    /// Path search.
    pub nav: NavSettings,
    /// The budget for inbound messages.
    pub inbox: InboxSettings,
    /// Replication.
    pub sync: SyncSettings,
    /// How packets leave the server.
    pub outbox: ScenarioOutboxSettings,
    /// Matchmaking, for all modes.
    pub matchmaking: MatchmakingSettings,
    /// What the server reduces when ticks take too long. A reproducible run needs the cost model, `measure: Work`. `Auto` means off
    /// in a scenario, also in real time.
    pub overload: OverloadSettings,
    /// Sessions: how clients are admitted, kept and logged out. Crowds log in as fast as the server admits them.
    pub session: SessionSettings,
}

/// An independent space with a map and an interest grid of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Scene", default, deny_unknown_fields)]
pub struct ScenarioScene {
    /// The name for crowds and cues; unique and required.
    pub name: String,
    /// The number of copies: matches, channels, instances of a dungeon. Crowds and cues that name it apply to every
    /// copy. The others are called `name 2`, `name 3` and so on in events.
    pub copies: u32,
    /// The source of its obstacles.
    pub map: MapSource,
    /// The side of a tile, metres.
    pub tile_m: f32,
    /// The side of a cell of the interest grid, metres.
    pub cell_m: f32,
    /// The distance beyond its cell at which an object changes the cell, metres; at most a quarter of `cell_m`, a tenth when absent.
    pub margin_m: Option<f32>,
    /// The largest number of players in a view.
    pub view_cap: u16,
    /// The largest number of NPCs in a view.
    pub npc_cap: u16,
    /// The largest number of things in a view.
    pub thing_cap: u16,
    /// Whether views are directed or mutual.
    #[serde(alias = "sight")]
    pub view_link_mode: ViewLinkMode,
    /// The largest number of objects.
    pub max_objects: u32,
}

impl Default for ScenarioScene {
    fn default() -> Self {
        Self {
            name: String::new(),
            copies: 1,
            map: MapSource::default(),
            tile_m: 0.5,
            cell_m: 50.0,
            margin_m: None,
            view_cap: 100,
            npc_cap: 50,
            thing_cap: 50,
            view_link_mode: ViewLinkMode::Directed,
            max_objects: 4096,
        }
    }
}

impl ScenarioScene {
    /// The distance beyond its cell at which an object changes the cell, metres.
    #[must_use]
    pub fn margin_m(&self) -> f32 {
        self.margin_m.unwrap_or(self.cell_m / 10.0)
    }
}

/// Where a scene's obstacle map comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum MapSource {
    /// A file in any supported format. A relative path is looked up in the folder of the scenario's file first, then in the working
    /// directory.
    File(PathBuf),
    /// Made from a recipe and the scenario's seed.
    Generate(MapRecipe),
}

impl Default for MapSource {
    /// The generated town.
    fn default() -> Self {
        Self::Generate(MapRecipe::Town(TownRecipe::default()))
    }
}
