//! Positions on the wire, in both directions.

use glam::Vec2;

use super::codec::{WireError, WireReader, write_varint};

/// Position units per metre.
const UNITS_PER_METRE: f32 = 64.0;

/// A position in units of 1/64 m (1.6 cm): up to 67,108 km, more than any scene needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuantizedPosition {
    /// To the right, in 1/64 m.
    pub x: u32,
    /// Down, in 1/64 m.
    pub y: u32,
}

impl QuantizedPosition {
    /// The position in metres: a 64th of its numbers. Exact up to 262 km; beyond, the nearest `f32`.
    #[must_use]
    pub fn metres(self) -> Vec2 {
        Vec2::new(self.x as f32, self.y as f32) / UNITS_PER_METRE
    }
}

/// The nearest quantum to a position in metres; the higher of two equally near ones. Negative values and NaN become 0, and values that are
/// too large become the maximum.
#[must_use]
pub fn quantise(position: Vec2) -> QuantizedPosition {
    let units = position * UNITS_PER_METRE;
    QuantizedPosition {
        x: rounded(units.x) as u32,
        y: rounded(units.y) as u32,
    }
}

/// Adds what makes a cast to an integer round to the nearest one, halves away from 0. Exact, because the sum has room after the digits of
/// any `f32` with a fraction. `f32::round` is a function call if the target's baseline has no such instruction.
pub(super) fn rounded(value: f32) -> f64 {
    let value = f64::from(value);
    value + 0.5_f64.copysign(value)
}

pub(super) fn read_position(reader: &mut WireReader) -> Result<QuantizedPosition, WireError> {
    Ok(QuantizedPosition {
        x: reader.varint_u32()?,
        y: reader.varint_u32()?,
    })
}

pub(super) fn write_position(bytes: &mut Vec<u8>, position: QuantizedPosition) {
    write_varint(bytes, u64::from(position.x));
    write_varint(bytes, u64::from(position.y));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rounding_matches_the_standard_library(
            anything in any::<f32>(),
            near in -70_000.0_f32..70_000.0,
            halves in -70_000_i32..70_000,
        ) {
            let half = halves as f32 / 2.0;
            for value in [anything, near, half, half.next_up(), half.next_down()] {
                prop_assert_eq!(rounded(value) as i64, value.round() as i64, "{}", value);
                prop_assert_eq!(rounded(value) as u32, value.round() as u32, "{}", value);
                prop_assert_eq!(rounded(value) as i16, value.round() as i16, "{}", value);
            }
        }
    }
}
