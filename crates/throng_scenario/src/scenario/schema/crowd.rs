//! Crowds: their objects, areas and behaviours.

use ron::value::RawValue;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ScenarioArea;
use throng::session::AdmissionClass;

/// Objects that are spawned together and behave alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Crowd", default, deny_unknown_fields)]
pub struct ScenarioCrowd {
    /// The name for cues; several crowds may share a tag.
    pub tag: String,
    /// The name of its kind of object.
    pub kind: String,
    /// The number of objects, in each copy of its scene.
    pub count: u32,
    /// The name of its scene; the first scene when absent. In a scene with copies, the crowd is in every copy.
    pub scene: Option<String>,
    /// Where it appears, on free tiles of the largest connected part of the map: outside of the area, with a warning, if the area has
    /// none.
    pub at: ScenarioArea,
    /// The team of its objects; none when absent.
    pub team: Option<u32>,
    /// The guild of its objects; none when absent.
    pub guild: Option<u32>,
    /// Players per party, 1–5; 0 for no parties.
    pub party_size: u8,
    /// What it does by itself. Objects walk to free tiles that they can reach: where a goal is cut off, to the reachable tile that is
    /// nearest to it. When a path is blocked on the way, they search another one, and choose another goal if there is none.
    pub behaviour: BehaviourSpec,
    /// Walking speed, metres per second.
    pub speed_m_s: f32,
    /// Whether clients keep its objects once they have received them, also out of view: for static things such as buildings.
    pub keep: bool,
    /// Attribute changes per second and object.
    pub attributes_per_s: f32,
    /// The share of its objects that are clients with a mirror, 0 to 1; only for kinds of class `Player`.
    #[serde(alias = "clients")]
    pub client_share: f32,
    /// Messages per second and player; only for kinds of class `Player`.
    pub messages_per_s: f32,
    /// Logouts per second of the whole crowd, each followed by a login; only for kinds of class `Player`.
    pub churn_per_s: f32,
    /// Whether its players send their moves as numbered inputs, and receive their exact position with each packet; only for kinds of class
    /// `Player`.
    #[serde(alias = "inputs")]
    pub sends_inputs: bool,
    /// The admission class of its players in the login queue: `Standard`, `Party`, `Preferred` or `Staff`. A player with a party member
    /// inside is in class `Party` automatically.
    #[serde(alias = "admission")]
    pub admission_class: AdmissionClass,
    /// The range at which its players see, metres, in place of the cells around them; only for kinds of class `Player`. The cells when
    /// absent.
    pub view_range_m: Option<f32>,
}

impl Default for ScenarioCrowd {
    fn default() -> Self {
        Self {
            tag: String::new(),
            kind: "npc".to_owned(),
            count: 1,
            scene: None,
            at: ScenarioArea::default(),
            team: None,
            guild: None,
            party_size: 0,
            behaviour: BehaviourSpec::default(),
            speed_m_s: 1.5,
            keep: false,
            attributes_per_s: 0.0,
            client_share: 0.0,
            messages_per_s: 10.0,
            churn_per_s: 0.0,
            sends_inputs: false,
            admission_class: AdmissionClass::Standard,
            view_range_m: None,
        }
    }
}

/// The behaviour of a crowd: the name of a registered behaviour with its parameters, as in `Wander(radius_m: 5)`, kept as
/// text. [`Behaviours`](crate::scenario::Behaviours) has the registered names and their parameters.
///
/// | built in | what the objects do |
/// |---|---|
/// | `Idle` | they stand still |
/// | `Wander(radius_m: 5)` | they walk to one free spot after another around the place where they appeared |
/// | `Patrol(points: [(1, 1), (9, 9)])` | they walk from point to point, and from the last to the first |
/// | `Chase(kind: "player", sight_m: 20)` | they run after the nearest object of a kind that they see |
/// | `Flee(kind: "wolf", sight_m: 20)` | they run from the nearest object of a kind that they see |
/// | `Commute(between: (Point(center_m: (1, 1)), Share((0.5, 0), (1, 1))))` | they walk from one area to the other and back |
/// | `Gather(at: Ring(center_m: (50, 50), radius_m: 5))` | they walk to an area and stay there |
///
/// ```
/// use throng_scenario::BehaviourSpec;
///
/// let wander: BehaviourSpec = ron::from_str("Wander(radius_m: 5)")?;
/// assert_eq!(wander.text(), "Wander(radius_m: 5)");
/// # Ok::<(), ron::error::SpannedError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BehaviourSpec(String);

/// A custom action of a game: its registered name with its parameters, as in `Storm(damage: 5)`, kept as text. See [`CueParameters`](crate::scenario::CueParameters).
///
/// ```
/// use throng_scenario::CueSpec;
///
/// let storm: CueSpec = ron::from_str("Storm(damage: 5)")?;
/// assert_eq!(storm.text(), "Storm(damage: 5)");
/// # Ok::<(), ron::error::SpannedError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CueSpec(String);

/// A type for `Name(…)` in a scenario, where the name decides the type of the parameters.
macro_rules! kept_as_written {
    ($spec:ident, $what:literal) => {
        impl $spec {
            /// Text as in a scenario. Whether it names a
            #[doc = concat!($what, " is checked with the scenario.")]
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text, starting with the name.
            #[must_use]
            pub fn text(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $spec {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Box::<RawValue>::deserialize(deserializer)?;
                Ok(Self::new(raw.get_ron()))
            }
        }

        impl Serialize for $spec {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let raw = RawValue::from_ron(&self.0).map_err(S::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    };
}

kept_as_written!(BehaviourSpec, "behaviour");
kept_as_written!(CueSpec, "cue");

impl Default for BehaviourSpec {
    /// They stand still.
    fn default() -> Self {
        Self::new("Idle")
    }
}
