//! Crowds: who takes part, where, and how it behaves.

use glam::Vec2;
use serde::{Deserialize, Serialize};

use super::Area;

/// Objects that are spawned together and behave alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Crowd {
    /// What cues call it; several crowds may share a tag.
    pub tag: String,
    /// The name of its kind of object.
    pub kind: String,
    /// The number of objects.
    pub count: u32,
    /// The scene's name; the first scene when absent.
    pub scene: Option<String>,
    /// Where it appears, on free tiles.
    pub at: Area,
    /// Its team.
    pub team: Option<u32>,
    /// Its guild.
    pub guild: Option<u32>,
    /// Players a party, 1–5; 0 for no parties.
    pub party_size: u8,
    /// What it does.
    pub behaviour: BehaviourSpec,
    /// Walking speed, metres a second.
    pub speed_m_s: f32,
    /// How often each object changes an attribute, a second.
    pub attributes_per_s: f32,
    /// The share of its objects that are clients with a mirror, 0 to 1; only for kinds of class `Player`.
    pub clients: f32,
    /// Messages that each player sends a second; only for kinds of class `Player`.
    pub messages_per_s: f32,
    /// Logouts a second over the whole crowd, each followed by a login; only for kinds of class `Player`.
    pub churn_per_s: f32,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            tag: String::new(),
            kind: "npc".to_owned(),
            count: 1,
            scene: None,
            at: Area::default(),
            team: None,
            guild: None,
            party_size: 0,
            behaviour: BehaviourSpec::Idle,
            speed_m_s: 1.5,
            attributes_per_s: 0.0,
            clients: 0.0,
            messages_per_s: 10.0,
            churn_per_s: 0.0,
        }
    }
}

/// What the objects of a crowd do by themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Behaviour", deny_unknown_fields)]
pub enum BehaviourSpec {
    /// They stand still.
    #[default]
    Idle,
    /// They walk to one free spot after another round the place where they appeared.
    Wander {
        /// How far from it they go, metres.
        radius_m: f32,
    },
    /// They walk from point to point, and from the last to the first.
    Patrol {
        /// The points, metres.
        points: Vec<Vec2>,
    },
    /// They run after the nearest object of a kind that they see.
    Chase {
        /// The name of the kind.
        kind: String,
        /// How far they look, metres.
        sight_m: f32,
    },
    /// They run from the nearest object of a kind that they see.
    Flee {
        /// The name of the kind.
        kind: String,
        /// How far they look, metres.
        sight_m: f32,
    },
    /// They walk from one area to the other and back.
    Commute {
        /// The two areas.
        between: (Area, Area),
    },
    /// They walk to an area and stay there.
    Gather {
        /// The area.
        at: Area,
    },
}
