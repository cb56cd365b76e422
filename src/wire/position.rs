//! Positions, as either direction has them.

use glam::Vec2;

use super::codec::{Reader, WireError, write_varint};

/// Position units a metre.
const UNITS_A_METRE: f32 = 64.0;

/// A position in units of 1/64 m (1.6 cm): up to 67,108 km, more than any scene has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PositionQuantum {
    /// To the right, in 1/64 m.
    pub x: u32,
    /// Down, in 1/64 m.
    pub y: u32,
}

impl PositionQuantum {
    /// The point that it stands for, in metres: a 64th of its numbers. Exact up to 262 km; beyond, the nearest `f32`.
    #[must_use]
    pub fn metres(self) -> Vec2 {
        Vec2::new(self.x as f32, self.y as f32) / UNITS_A_METRE
    }
}

/// The quantum nearest to a position in metres, of two that are as near the higher; what is negative or not a number becomes
/// 0, and what is too large the largest there is.
#[must_use]
pub fn quantise(position: Vec2) -> PositionQuantum {
    let units = (position * UNITS_A_METRE).round();
    PositionQuantum {
        x: units.x as u32,
        y: units.y as u32,
    }
}

pub(super) fn read_position(reader: &mut Reader) -> Result<PositionQuantum, WireError> {
    Ok(PositionQuantum {
        x: reader.varint_u32()?,
        y: reader.varint_u32()?,
    })
}

pub(super) fn write_position(bytes: &mut Vec<u8>, position: PositionQuantum) {
    write_varint(bytes, u64::from(position.x));
    write_varint(bytes, u64::from(position.y));
}
