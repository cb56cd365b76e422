//! The script: what happens at which time.

use serde::{Deserialize, Serialize};

use super::{
    BehaviourSpec, CueSpec, ObjectCondition, ScenarioArea, ScenarioCrowd, ScenarioScene,
    SelectionOrder,
};
use crate::crowd::CrowdNetworkConditions;
use throng::map::TileRect;

/// When something happens. A time means the first tick at or after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Cue {
    /// Something happens once.
    At {
        /// The time, seconds. At 0 it happens when all crowds have spawned and logged in, at the latest after 5 s.
        t_s: f64,
        /// What is done in that tick.
        run: Action,
    },
    /// Something happens repeatedly.
    Every {
        /// The interval, seconds.
        t_s: f64,
        /// The time of the first, seconds; `t_s` when absent or 0.
        #[serde(default)]
        from_s: f64,
        /// The end of the period, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// The largest number of times; unlimited when absent.
        times: Option<u32>,
        /// What is done each time.
        run: Action,
    },
    /// The count of an action is spread evenly over a period. For the actions `Spawn`, `Despawn`, `Login`, `Logout`, `Queue` and
    /// `Cancel`.
    Ramp {
        /// The start of the period, seconds.
        #[serde(default)]
        from_s: f64,
        /// The end of the period, seconds.
        until_s: f64,
        /// The interval between steps, seconds.
        #[serde(default = "ramp_step_s")]
        every_s: f64,
        /// What is done. Its `count` (`parties` of `Queue` and `Cancel`) is the sum over all steps.
        run: Action,
    },
    /// Something happens when an attribute of any object with a tag falls below a value or reaches one. It is checked in every tick, and
    /// happens again only after the condition was false in between.
    When {
        /// The tag of the objects that are checked.
        tag: String,
        /// The attribute's name.
        attribute: String,
        /// The condition: an object has less than this.
        below: Option<i64>,
        /// The condition: an object has this or more. Give either this or `below`.
        at_least: Option<i64>,
        /// The start of the checks, seconds.
        #[serde(default)]
        from_s: f64,
        /// The end of the checks, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// The largest number of times.
        #[serde(default = "once")]
        times: u32,
        /// What is done in that tick.
        run: Action,
    },
    /// Something happens when the number of living objects with a tag falls to a number or reaches one. It is checked in every tick, and
    /// happens again only after the condition was false in between.
    WhenCount {
        /// The tag of the objects that are counted.
        tag: String,
        /// The condition: at most this many objects are left, after there were more.
        at_most: Option<u32>,
        /// The condition: there are at least this many objects. Give either this or `at_most`.
        at_least: Option<u32>,
        /// The start of the checks, seconds.
        #[serde(default)]
        from_s: f64,
        /// The end of the checks, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// The largest number of times.
        #[serde(default = "once")]
        times: u32,
        /// What is done in that tick.
        run: Action,
    },
}

impl Cue {
    /// The action of the cue.
    #[must_use]
    pub fn action(&self) -> &Action {
        match self {
            Self::At { run, .. }
            | Self::Every { run, .. }
            | Self::Ramp { run, .. }
            | Self::When { run, .. }
            | Self::WhenCount { run, .. } => run,
        }
    }

    /// The action of the cue, for changes.
    pub(in crate::scenario) const fn action_mut(&mut self) -> &mut Action {
        match self {
            Self::At { run, .. }
            | Self::Every { run, .. }
            | Self::Ramp { run, .. }
            | Self::When { run, .. }
            | Self::WhenCount { run, .. } => run,
        }
    }

    /// The scene that the cue opens, if any.
    pub(in crate::scenario) const fn opened_scene_mut(&mut self) -> Option<&mut ScenarioScene> {
        match self.action_mut() {
            Action::OpenScene(scene) => Some(scene),
            _ => None,
        }
    }
}

const fn once() -> u32 {
    1
}

const fn ramp_step_s() -> f64 {
    1.0
}

/// An action of a script.
///
/// `tag`, `only`, `pick` and `count` select its objects, in this order: the objects with the tag that meet all conditions of `only`; of
/// these the first or random ones; at most `count`. If there are fewer than `count`, the cue fails with a script error that
/// contains its location, unless `only` has conditions. An absent `scene` is the first scene; a scene with copies means every copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Action {
    /// A crowd is spawned.
    Spawn(ScenarioCrowd),
    /// Objects are despawned. Players keep their session without an object.
    Despawn {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// Objects are moved within their scene without walking.
    Teleport {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The area where they appear, on free tiles.
        to: ScenarioArea,
    },
    /// Objects change team.
    SetTeam {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The new team; none when absent.
        team: Option<u32>,
    },
    /// An attribute is set.
    SetAttribute {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// Its new value, within the attribute's range.
        value: i64,
    },
    /// An attribute is raised or lowered: damage, healing, a price. The result is clamped to the attribute's range.
    AddAttribute {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// The value that is added; may be negative.
        by: i64,
    },
    /// An attribute is multiplied: a tenth more, half of what is left. The result is rounded to the nearest whole number,
    /// halves away from 0, and clamped to the attribute's range.
    ScaleAttribute {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// The factor.
        by: f64,
    },
    /// Objects are hidden from all views, or shown again: stealth. They keep their position, and their own clients still see them.
    Hide {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// Whether they are hidden.
        #[serde(default = "yes")]
        hidden: bool,
    },
    /// An attribute of a scene is set. It is sent to all clients in the scene.
    SetSceneAttribute {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// The attribute's name.
        attribute: String,
        /// Its new value.
        value: i64,
    },
    /// Each object sends an announcement: a cast, a shout, a chat message.
    Announce {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The receivers.
        scope: ScenarioAnnouncementScope,
        /// Whether it may be lost.
        #[serde(default)]
        class: Class,
        /// Maximum number of ticks that it waits for a receiver that does not have the object's snapshot yet.
        #[serde(default = "ttl_ticks")]
        ttl_ticks: u32,
        /// The text.
        #[serde(default)]
        text: String,
    },
    /// A crowd gets another behaviour.
    SetBehaviour {
        /// The tag of the crowds.
        tag: String,
        /// The new behaviour.
        behaviour: BehaviourSpec,
    },
    /// A crowd walks to an area: short for `SetBehaviour` with `Gather`.
    Gather {
        /// The tag of the crowds.
        tag: String,
        /// The area to which they walk.
        at: ScenarioArea,
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
    /// Tiles are set from a drawing.
    Paint {
        /// The name of the scene; the first one when absent.
        scene: Option<String>,
        /// The top left tile.
        at_tile: (u32, u32),
        /// One text per row: `.` free, `@` or `#` blocked.
        rows: Vec<String>,
    },
    /// Parties without objects queue for a match, in addition to those that the queue creates itself.
    Queue {
        /// The mode.
        mode: String,
        /// The number of parties.
        parties: u32,
        /// Players per party; drawn by the weights of the queue when absent.
        size: Option<u8>,
    },
    /// The parties that have waited longest leave the queue.
    Cancel {
        /// The mode.
        mode: String,
        /// The number of parties.
        parties: u32,
    },
    /// Players of a crowd that are logged out log in again.
    Login {
        /// The tag of the crowds.
        tag: String,
        /// The number of players over all crowds with the tag, the first ones; all when absent. If there are fewer, the cue fails.
        count: Option<u32>,
    },
    /// Players of a crowd log out.
    Logout {
        /// The tag of the crowds.
        tag: String,
        /// The number of players over all crowds with the tag, the first ones; all when absent. If there are fewer, the cue fails.
        count: Option<u32>,
    },
    /// Players lose their connection and all packets in flight. Each reconnects from another address: players with a mirror by their
    /// resume token, others by a login. After [`reconnect_grace_s`](throng::session::SessionSettings::reconnect_grace_s) the session is gone,
    /// and they log in again. Only players that are logged in and connected are selected.
    #[serde(alias = "LoseLink")]
    Disconnect {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// How long they are disconnected, seconds.
        #[serde(default = "disconnect_s")]
        for_s: f64,
    },
    /// Players log in a second time, from another address. The first session ends, and its client gets the close reason.
    #[serde(alias = "LoginAgain")]
    DuplicateLogin {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// Players are kicked: their clients get that close reason, and they log in again a little later.
    Kick {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// The addresses of players are banned: their clients get that close reason, and later connections are refused.
    Ban {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// The server refuses logins and ends all sessions, as many per tick as it would admit. Each client gets the close reason.
    Drain,
    /// A drained server accepts logins again.
    Reopen,
    /// Players control other objects over the same connection: a vehicle, a pet, an NPC. Their own objects stay.
    Possess {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The tag of the objects that they control: the first ones that are not players and not controlled.
        of: String,
    },
    /// Players spectate others: their objects are despawned, and each gets a view that follows one of the others, in order.
    Spectate {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The tag of the players that they spectate.
        follow: String,
    },
    /// Players that possess an object or spectate get objects of their own again, over the same connection.
    Release {
        /// The tag of the crowds.
        tag: String,
        /// The number of players over all crowds with the tag, the first ones; all when absent. If there are fewer, the cue fails.
        count: Option<u32>,
    },
    /// The network conditions of the clients change.
    #[serde(alias = "SetLine")]
    SetNetwork(CrowdNetworkConditions),
    /// A scene opens.
    OpenScene(ScenarioScene),
    /// A scene closes, and its objects are despawned.
    CloseScene {
        /// The name of the scene.
        scene: String,
    },
    /// Objects change the scene.
    ChangeScene {
        /// The tag of the crowds.
        tag: String,
        /// The number of objects; all when absent. If fewer match, the cue fails, unless `only` has conditions.
        count: Option<u32>,
        /// Which objects are selected if more match: the first ones or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// The conditions that each object must meet; none when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The name of the new scene; the newest copy of a scene with copies.
        to: String,
        /// Their area in it.
        #[serde(default)]
        at: ScenarioArea,
    },
    /// A custom action, registered in Rust, with its parameters: `Game(Storm(damage: 5))`. See
    /// [`CueParameters`](crate::scenario::CueParameters).
    Game(CueSpec),
}

/// The receivers of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Scope")]
pub enum ScenarioAnnouncementScope {
    /// All clients that see the object, and the client that controls it.
    Viewers,
    /// All clients whose own object is within this distance, metres.
    Radius(f32),
    /// Its party, wherever the members are.
    Party,
    /// All clients in its scene.
    Scene,
    /// The client that controls it.
    Client,
}

/// Whether an announcement may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// It arrives, in order.
    #[default]
    Reliable,
    /// It may be lost and is not repeated.
    Unreliable,
}

const fn disconnect_s() -> f64 {
    5.0
}

const fn ttl_ticks() -> u32 {
    20
}

const fn yes() -> bool {
    true
}

/// The objects of an action.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct ObjectSelector<'a> {
    /// Whether only logged-in players are selected, instead of all objects with the tag.
    pub is_clients_only: bool,
    pub tag: &'a str,
    pub count: Option<u32>,
    pub pick: SelectionOrder,
    pub only: &'a [ObjectCondition],
}

impl Action {
    /// The number of objects that this action selects; `None` for all, and for actions without objects.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        match self {
            Self::Login { count, .. }
            | Self::Logout { count, .. }
            | Self::Release { count, .. } => *count,
            _ => self.selector().and_then(|who| who.count),
        }
    }

    /// The tag of the objects or players that this action acts on; `None` for other actions.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::SetBehaviour { tag, .. }
            | Self::Gather { tag, .. }
            | Self::Login { tag, .. }
            | Self::Logout { tag, .. }
            | Self::Release { tag, .. } => Some(tag),
            _ => self.selector().map(|who| who.tag),
        }
    }

    /// Whether this action acts on players only.
    pub(in crate::scenario) const fn is_about_players(&self) -> bool {
        matches!(
            self,
            Self::Login { .. } | Self::Logout { .. } | Self::Release { .. }
        ) || self.selects_clients()
    }

    /// Whether this action selects among players that are online.
    const fn selects_clients(&self) -> bool {
        matches!(
            self,
            Self::Disconnect { .. }
                | Self::DuplicateLogin { .. }
                | Self::Kick { .. }
                | Self::Ban { .. }
                | Self::Possess { .. }
                | Self::Spectate { .. }
        )
    }

    /// The objects that this action selects; `None` for actions without a selection.
    pub(in crate::scenario) fn selector(&self) -> Option<ObjectSelector<'_>> {
        macro_rules! selector_of {
            ($($variant:ident)*) => {
                match self {
                    $(Self::$variant { tag, count, pick, only, .. } => Some(ObjectSelector {
                        is_clients_only: self.selects_clients(),
                        tag,
                        count: *count,
                        pick: *pick,
                        only,
                    }),)*
                    _ => None,
                }
            };
        }
        selector_of!(
            Despawn Teleport SetTeam SetAttribute AddAttribute ScaleAttribute Hide Announce ChangeScene
            Disconnect DuplicateLogin Kick Ban Possess Spectate
        )
    }

    /// The number that a [`Cue::Ramp`] spreads; `None` if the action has none.
    pub(in crate::scenario) const fn ramp_count(&self) -> Option<u32> {
        match self {
            Self::Spawn(crowd) => Some(crowd.count),
            Self::Despawn { count, .. }
            | Self::Login { count, .. }
            | Self::Logout { count, .. } => *count,
            Self::Queue { parties, .. } | Self::Cancel { parties, .. } => Some(*parties),
            _ => None,
        }
    }

    /// The same action, with another number to spread.
    pub(in crate::scenario) fn with_ramp_count(&self, number: u32) -> Self {
        let mut action = self.clone();
        match &mut action {
            Self::Spawn(crowd) => crowd.count = number,
            Self::Despawn { count, .. }
            | Self::Login { count, .. }
            | Self::Logout { count, .. } => *count = Some(number),
            Self::Queue { parties, .. } | Self::Cancel { parties, .. } => *parties = number,
            _ => {}
        }
        action
    }
}
