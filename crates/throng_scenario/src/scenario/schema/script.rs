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
        /// How many times it happens at most; any number when absent.
        times: Option<u32>,
        /// What is done each time.
        run: Action,
    },
    /// Little by little: the count of an action is spread evenly over a time. For actions that have one: `Spawn`,
    /// `Despawn`, `Login`, `Logout`, `Queue`, `Cancel`.
    Ramp {
        /// When it begins, seconds.
        #[serde(default)]
        from_s: f64,
        /// When all of it is done, seconds.
        until_s: f64,
        /// The time from one step to the next, seconds.
        #[serde(default = "ramp_step_s")]
        every_s: f64,
        /// What is done; its `count` (`parties` of `Queue` and `Cancel`) is that of all steps together.
        run: Action,
    },
    /// When an attribute of any object with a tag has come below a value, or has risen to one: looked at in every tick.
    /// It happens again only after it was not so in between.
    When {
        /// The tag of the objects that are looked at.
        tag: String,
        /// The attribute's name.
        attribute: String,
        /// It happens when an object has less than this.
        below: Option<i64>,
        /// It happens when an object has this or more. Either this or `below` is given.
        at_least: Option<i64>,
        /// From when on it is looked at, seconds.
        #[serde(default)]
        from_s: f64,
        /// Until when, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// How many times it happens at most.
        #[serde(default = "once")]
        times: u32,
        /// What is done in that tick.
        run: Action,
    },
    /// When the number of living objects with a tag has come down to a number, or has risen to one: looked at in every
    /// tick. It happens again only after it was not so in between.
    WhenCount {
        /// The tag of the objects that are counted.
        tag: String,
        /// It happens when so many or fewer are left, once there were more: nobody is there before the first has come.
        at_most: Option<u32>,
        /// It happens when there are so many or more. Either this or `at_most` is given.
        at_least: Option<u32>,
        /// From when on they are counted, seconds.
        #[serde(default)]
        from_s: f64,
        /// Until when, seconds; the end of the run when absent.
        until_s: Option<f64>,
        /// How many times it happens at most.
        #[serde(default = "once")]
        times: u32,
        /// What is done in that tick.
        run: Action,
    },
}

impl Cue {
    /// What the cue does, whether once or again and again.
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

    /// The same, to be changed.
    pub(in crate::scenario) const fn action_mut(&mut self) -> &mut Action {
        match self {
            Self::At { run, .. }
            | Self::Every { run, .. }
            | Self::Ramp { run, .. }
            | Self::When { run, .. }
            | Self::WhenCount { run, .. } => run,
        }
    }

    /// The scene that the cue opens.
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

/// Something that a script does. `tag`, `only`, `pick` and `count` say to whom, in this order: of those who bear the tag
/// the ones of whom all of `only` holds, the first or random ones of them, at most so many. That there are fewer is a
/// fault, told with the cue's line, unless there are conditions in `only`. A `scene` that is absent is
/// the first one; of a scene with copies it is every copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Action {
    /// A crowd appears.
    Spawn(ScenarioCrowd),
    /// Objects are despawned; players keep their session, and have no object from then on.
    Despawn {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// Objects are set elsewhere in their scene.
    Teleport {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The area where they appear, on free tiles.
        to: ScenarioArea,
    },
    /// Objects change team.
    SetTeam {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The new team; none when absent.
        team: Option<u32>,
    },
    /// An attribute is set.
    SetAttribute {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// Its new value, within the attribute's range.
        value: i64,
    },
    /// An attribute is raised or lowered: damage, healing, a price. The result is clamped to the attribute's range.
    AddAttribute {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// What is added; less than 0 takes away.
        by: i64,
    },
    /// An attribute is multiplied: a tenth more, half of what is left. The result is rounded to the nearest whole number,
    /// halves away from 0, and clamped to the attribute's range.
    ScaleAttribute {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The attribute's name.
        attribute: String,
        /// The factor.
        by: f64,
    },
    /// Objects vanish from all views, or come back: stealth. They stay where they are, and their own clients keep them.
    Hide {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// Whether nobody else sees them from now on.
        #[serde(default = "yes")]
        hidden: bool,
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
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// Who is told.
        scope: ScenarioAnnouncementScope,
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
        /// How many of them, over all crowds with the tag, those that came first; all when absent. Fewer are a fault.
        count: Option<u32>,
    },
    /// Players of a crowd leave.
    Logout {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them, over all crowds with the tag, those that came first; all when absent. Fewer are a fault.
        count: Option<u32>,
    },
    /// Players' lines are lost, and what is under way on them. Each comes back from another address: those with a mirror by
    /// the token that they were told, the others by a login. Whom the server has given up by then, after
    /// [`reconnect_grace_s`](throng::session::SessionSettings::reconnect_grace_s), logs in anew. Players are those who are there and whose line is up.
    #[serde(alias = "LoseLink")]
    Disconnect {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// How long their lines are down, seconds.
        #[serde(default = "link_lost_s")]
        for_s: f64,
    },
    /// Players log in once more, from another address: their first session ends, and they are told why.
    LoginAgain {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// Players are thrown out, and told so; they come back a little later.
    Kick {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// The addresses of players are banned: they are thrown out, told so, and turned away from then on.
    Ban {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
    },
    /// The server lets nobody in any more, and ends all sessions, so many a tick as it lets in otherwise: each player is told.
    Drain,
    /// A server that was drained lets clients in again.
    Reopen,
    /// Players control other objects without connecting anew: a vehicle, a pet, an NPC. Their own objects stand by.
    Possess {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The tag of what they control from now on: the first of it that is no player and that nobody controls.
        of: String,
    },
    /// Players watch others: their objects go, and their views go wherever those of the others do, in the order of both.
    Spectate {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The tag of those whom they watch.
        follow: String,
    },
    /// Players who possess something or watch have objects of their own again, without connecting anew.
    Release {
        /// The tag of the crowds that it is about.
        tag: String,
        /// How many of them, over all crowds with the tag, those that came first; all when absent. Fewer are a fault.
        count: Option<u32>,
    },
    /// The clients' lines become better or worse.
    SetLine(CrowdNetworkConditions),
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
        /// How many of them; all when absent. Fewer are a fault, unless `only` says of whom.
        count: Option<u32>,
        /// Which of them, when there are more: those that came first, or random ones.
        #[serde(default)]
        pick: SelectionOrder,
        /// What must hold of each of them; nothing when absent.
        #[serde(default)]
        only: Vec<ObjectCondition>,
        /// The name of the scene that they go to; of one with copies the newest.
        to: String,
        /// Where in it.
        #[serde(default)]
        at: ScenarioArea,
    },
    /// Something of the game's own, registered in Rust, with its parameters: `Game(Storm(damage: 5))`. See
    /// [`CueParameters`](crate::scenario::CueParameters).
    Game(CueSpec),
}

/// Who is told of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Scope")]
pub enum ScenarioAnnouncementScope {
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

const fn link_lost_s() -> f64 {
    5.0
}

const fn ttl_ticks() -> u32 {
    20
}

const fn yes() -> bool {
    true
}

/// To whom an action is done.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct ObjectSelector<'a> {
    /// Whether they are the players who are there, and not all that bear the tag.
    pub is_clients_only: bool,
    pub tag: &'a str,
    pub count: Option<u32>,
    pub pick: SelectionOrder,
    pub only: &'a [ObjectCondition],
}

impl Action {
    /// How many objects this action is about; `None` for all, and for one that is about no objects.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        match self {
            Self::Login { count, .. }
            | Self::Logout { count, .. }
            | Self::Release { count, .. } => *count,
            _ => self.selector().and_then(|who| who.count),
        }
    }

    /// The tag of the crowd that this action is about; `None` for those that spawn one or are about something else.
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

    /// Whether this action is about players, and not about all objects.
    pub(in crate::scenario) const fn is_about_players(&self) -> bool {
        matches!(
            self,
            Self::Login { .. } | Self::Logout { .. } | Self::Release { .. }
        ) || self.selects_clients()
    }

    /// Whether this action chooses among the players who are there.
    const fn selects_clients(&self) -> bool {
        matches!(
            self,
            Self::Disconnect { .. }
                | Self::LoginAgain { .. }
                | Self::Kick { .. }
                | Self::Ban { .. }
                | Self::Possess { .. }
                | Self::Spectate { .. }
        )
    }

    /// To whom this action is done, for those that choose among objects.
    pub(in crate::scenario) fn selector(&self) -> Option<ObjectSelector<'_>> {
        macro_rules! who_of {
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
        who_of!(
            Despawn Teleport SetTeam SetAttribute AddAttribute ScaleAttribute Hide Announce ChangeScene
            Disconnect LoginAgain Kick Ban Possess Spectate
        )
    }

    /// The number that a [`Cue::Ramp`] spreads; `None` for actions without one, or that leave it out.
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

    /// The same action with another such number.
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
