//! Attributes of a scenario's own, beside the built-in ones.

use serde::{Deserialize, Serialize};

use throng::sync::{Audience, SendRate};
use throng::wire::Encoding;

/// A whole number that every object of a crowd has, beside the built-in `health`, `mana`, `level`, `power` and
/// `experience`. Cues change it, and clients learn it.
///
/// Its number in packets is 100 for the first of the list, 101 for the second, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Attribute", default, deny_unknown_fields)]
pub struct ScenarioAttribute {
    /// What cues call it; unique, without a default, and none of the built-in ones.
    pub name: String,
    /// How it is written in packets: `U8`, `U16`, `U32`, `Varint`, `Zigzag` (may be negative) or `F32`.
    pub encoding: Encoding,
    /// Who learns it: any of these.
    pub audience: Vec<AudienceName>,
    /// How soon a change is told: `Heartbeat`, `EveryTick` or `EveryNth(3)`.
    pub cadence: SendRate,
    /// The least and the greatest value; all that its encoding can write when absent.
    pub range: Option<(i64, i64)>,
    /// What a new object has, clamped to the range.
    pub start: i64,
}

impl Default for ScenarioAttribute {
    fn default() -> Self {
        Self {
            name: String::new(),
            encoding: Encoding::Varint,
            audience: vec![AudienceName::Viewers],
            cadence: SendRate::Heartbeat,
            range: None,
            start: 0,
        }
    }
}

impl ScenarioAttribute {
    /// All that an encoding can write, as far as attributes are whole numbers; `None` for one that writes bytes.
    #[must_use]
    pub const fn encoding_range(encoding: Encoding) -> Option<(i64, i64)> {
        match encoding {
            Encoding::U8 => Some((0, u8::MAX as i64)),
            Encoding::U16 => Some((0, u16::MAX as i64)),
            Encoding::U32 => Some((0, u32::MAX as i64)),
            Encoding::Varint => Some((0, i64::MAX)),
            Encoding::Zigzag => Some((i64::MIN, i64::MAX)),
            // Beyond, not every whole number can be told from the next.
            Encoding::F32 => Some((-(1 << 24), 1 << 24)),
            Encoding::Bytes { .. } => None,
        }
    }

    /// The least and the greatest value.
    #[must_use]
    pub const fn bounds(&self) -> (i64, i64) {
        match (self.range, Self::encoding_range(self.encoding)) {
            (Some((min, max)), _) if min <= max => (min, max),
            (_, Some(all)) => all,
            (_, None) => (0, 0),
        }
    }
}

/// Who learns an attribute, as [`Audience`] says it. The client that controls an object learns all
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AudienceName {
    /// The client that controls the object.
    Owner,
    /// Clients of its party, wherever they are.
    Party,
    /// Clients of its team that see it.
    Team,
    /// Clients of its guild that see it.
    Guild,
    /// Everybody who sees it.
    Viewers,
    /// Everybody whose own object is in its scene, in sight or not. Every object of a crowd has the attribute, so that each
    /// client is told of all of them: for scenes with few objects.
    Scene,
}

impl AudienceName {
    /// What it names.
    #[must_use]
    pub const fn to_audience(self) -> Audience {
        match self {
            Self::Owner => Audience::OWNER,
            Self::Party => Audience::PARTY,
            Self::Team => Audience::TEAM,
            Self::Guild => Audience::GUILD,
            Self::Viewers => Audience::VIEWERS,
            Self::Scene => Audience::SCENE,
        }
    }
}
