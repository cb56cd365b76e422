//! The script: what happens at which time.

use serde::{Deserialize, Serialize};

use super::{Area, BehaviourSpec, Crowd, ScenarioScene};
use crate::crowd::LineSpec;
use crate::map::TileRect;

/// When something happens. A time means the first tick at or after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Cue {
    /// Something happens once.
    At {
        /// The time, seconds.
        t_s: f64,
        /// What is done in that tick.
        run: Action,
    },
    /// Again and again.
    Every {
        /// The time from one to the next, seconds.
        t_s: f64,
        /// When the first happens, seconds; after `t_s` when it is absent or 0.
        #[serde(default)]
        from_s: f64,
        /// The last time at which it may happen, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// What is done each time.
        run: Action,
    },
}

impl Cue {
    /// What the cue does, whether once or again and again.
    #[must_use]
    pub fn action(&self) -> &Action {
        match self {
            Self::At { run, .. } | Self::Every { run, .. } => run,
        }
    }
}

/// Something that a script does. A `count` that is absent means all that bear the tag, over all its crowds; otherwise
/// those with the lowest ids, and that there are fewer of them is a fault, told with the cue's line. A `scene` that is absent is the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Action {
    /// A crowd appears.
    Spawn(Crowd),
    /// Objects are despawned; players keep their session, and have no object from then on.
    Despawn {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
    },
    /// Objects are set elsewhere in their scene.
    Teleport {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
        /// The area where they appear, on free tiles.
        to: Area,
    },
    /// Objects change team.
    SetTeam {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
        /// The new team; none when absent.
        team: Option<u32>,
    },
    /// An attribute is set.
    SetAttribute {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
        /// The attribute's name.
        attribute: String,
        /// Its new value.
        value: i64,
    },
    /// An attribute of a scene is set; all in it learn of it.
    SetSceneAttribute {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// The attribute's name.
        attribute: String,
        /// Its new value.
        value: i64,
    },
    /// Objects announce something, each by itself: a cast, a cry, a line of chat.
    Announce {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
        /// Who is told.
        scope: Scope,
        /// Whether it may be lost.
        #[serde(default)]
        class: Class,
        /// For how many ticks it is of use to who is to be told of the object first.
        #[serde(default = "ttl_ticks")]
        ttl_ticks: u32,
        /// What they say.
        #[serde(default)]
        text: String,
    },
    /// A crowd begins to do something else.
    SetBehaviour {
        /// The tag of the crowds that it is about.
        tag: String,
        /// What it does from now on.
        behaviour: BehaviourSpec,
    },
    /// A crowd walks to an area: short for `SetBehaviour` with `Gather`.
    Gather {
        /// The tag of the crowds that it is about.
        tag: String,
        /// The area to which they walk.
        at: Area,
    },
    /// Tiles become blocked.
    Block {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// Left, top, width, height.
        rect_tiles: TileRect,
    },
    /// Tiles become free.
    Free {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// Left, top, width, height.
        rect_tiles: TileRect,
    },
    /// Blocked tiles become free and free ones blocked.
    Toggle {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// Left, top, width, height.
        rect_tiles: TileRect,
    },
    /// Tiles become as drawn.
    Paint {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// The top left tile.
        at_tile: (u32, u32),
        /// A text a row: `.` free, `@` or `#` blocked.
        rows: Vec<String>,
    },
    /// Parties without objects queue for a battle, beside those that the queue brings itself.
    Queue {
        /// In which mode.
        mode: String,
        /// The number of parties.
        parties: u32,
        /// Players in each; by the queue's weights when absent.
        size: Option<u8>,
    },
    /// The parties that have waited longest give up.
    Cancel {
        /// In which mode.
        mode: String,
        /// The number of parties; those that have waited longest.
        parties: u32,
    },
    /// Players of a crowd that are out come in again.
    Login {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
    },
    /// Players of a crowd leave.
    Logout {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
    },
    /// The clients' lines become better or worse.
    SetLine(LineSpec),
    /// A scene opens.
    OpenScene(ScenarioScene),
    /// A scene closes, with all that is in it.
    CloseScene {
        /// The name of the scene that closes; all that is in it is despawned.
        scene: String,
    },
    /// Objects go to another scene.
    ChangeScene {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them at most, those that came first; all when absent.
        count: Option<u32>,
        /// The name of the scene that they go to.
        to: String,
        /// Where in it.
        #[serde(default)]
        at: Area,
    },
}

/// Who is told of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Scope {
    /// All who see the object, and the client that controls it.
    Viewers,
    /// All whose own object is so near, in metres.
    Radius(f32),
    /// Its party, wherever its members are; nobody when it has none.
    Party,
    /// All in its scene.
    Scene,
    /// The client that controls it.
    Client,
}

/// Whether an announcement may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// It may not.
    #[default]
    Reliable,
    /// It may be lost, and is never sent again.
    Unreliable,
}

const fn ttl_ticks() -> u32 {
    20
}

impl Action {
    /// How many objects this action is about; `None` for all, and for one that is about no objects.
    #[must_use]
    pub const fn count(&self) -> Option<u32> {
        match self {
            Self::Despawn { count, .. }
            | Self::Teleport { count, .. }
            | Self::SetTeam { count, .. }
            | Self::SetAttribute { count, .. }
            | Self::Announce { count, .. }
            | Self::Login { count, .. }
            | Self::Logout { count, .. }
            | Self::ChangeScene { count, .. } => *count,
            _ => None,
        }
    }

    /// The tag of the crowd that this action is about; `None` for those that spawn one or are about something else.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Despawn { tag, .. }
            | Self::Teleport { tag, .. }
            | Self::SetTeam { tag, .. }
            | Self::SetAttribute { tag, .. }
            | Self::Announce { tag, .. }
            | Self::SetBehaviour { tag, .. }
            | Self::Gather { tag, .. }
            | Self::Login { tag, .. }
            | Self::Logout { tag, .. }
            | Self::ChangeScene { tag, .. } => Some(tag),
            Self::Spawn(_)
            | Self::Block { .. }
            | Self::Free { .. }
            | Self::Toggle { .. }
            | Self::Paint { .. }
            | Self::Queue { .. }
            | Self::Cancel { .. }
            | Self::SetSceneAttribute { .. }
            | Self::SetLine(_)
            | Self::OpenScene(_)
            | Self::CloseScene { .. } => None,
        }
    }
}
