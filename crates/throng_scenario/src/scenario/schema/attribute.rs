//! Custom attributes of a scenario, in addition to the built-in ones.

use serde::{Deserialize, Serialize};

use throng::sync::{Audience, SendRate};
use throng::wire::Encoding;

/// A whole number that every object of a crowd has, in addition to the built-in `health`, `mana`, `level`, `power` and
/// `experience`. Cues change it, and clients receive it.
///
/// The id in packets is 100 for the first of the list, 101 for the second, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "Attribute", default, deny_unknown_fields)]
pub struct ScenarioAttribute {
    /// The name for cues; unique, required, and not that of a built-in attribute.
    pub name: String,
    /// The encoding in packets: `U8`, `U16`, `U32`, `Varint`, `Zigzag` (may be negative) or `F32`.
    pub encoding: Encoding,
    /// The receivers: any of these.
    pub audience: Vec<AudienceName>,
    /// How often changes are sent: `Heartbeat`, `EveryTick` or `EveryNth(3)`.
    pub cadence: SendRate,
    /// The minimum and the maximum; all values of the encoding when absent.
    pub range: Option<(i64, i64)>,
    /// The value of a new object, clamped to the range.
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
    /// The range of integers that an encoding can represent; `None` for an encoding of bytes.
    #[must_use]
    pub const fn encoding_range(encoding: Encoding) -> Option<(i64, i64)> {
        match encoding {
            Encoding::U8 => Some((0, u8::MAX as i64)),
            Encoding::U16 => Some((0, u16::MAX as i64)),
            Encoding::U32 => Some((0, u32::MAX as i64)),
            Encoding::Varint => Some((0, i64::MAX)),
            Encoding::Zigzag => Some((i64::MIN, i64::MAX)),
            // An `f32` does not represent all integers beyond this range exactly.
            Encoding::F32 => Some((-(1 << 24), 1 << 24)),
            Encoding::Bytes { .. } => None,
        }
    }

    /// The minimum and the maximum value.
    #[must_use]
    pub const fn bounds(&self) -> (i64, i64) {
        match (self.range, Self::encoding_range(self.encoding)) {
            (Some((min, max)), _) if min <= max => (min, max),
            (_, Some(all)) => all,
            (_, None) => (0, 0),
        }
    }
}

/// The receivers of an attribute, as in [`Audience`]. The client that controls an object receives all of its attributes.
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
    /// All clients that see it.
    Viewers,
    /// All clients whose own object is in its scene, visible or not. Every object of a crowd has the attribute, so each client
    /// receives it for all of them; use it in scenes with few objects.
    Scene,
}

impl AudienceName {
    /// The audience with this name.
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
