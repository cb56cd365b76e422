//! Smooth display positions: a shown position moves to a corrected one without a jump.
//!
//! When an object turns out to be somewhere else than shown, the offset between the two is stored and decays: after the configured time a
//! third of it is left. An offset that is longer than any step is a teleport, and is shown at once.

use std::collections::HashMap;

use glam::Vec2;

/// A longer offset, in metres, is a teleport.
const SNAP_DISTANCE_M: f32 = 3.0;

/// The offset of a shown position from the known one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offset {
    offset_m: Vec2,
    since_s: f64,
}

/// Offsets of shown positions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Smoothing<K> {
    duration_s: f64,
    offsets: HashMap<K, Offset>,
}

impl<K: Copy + Eq + std::hash::Hash> Smoothing<K> {
    pub fn new(smooth_s: f32) -> Self {
        Self {
            duration_s: f64::from(smooth_s),
            offsets: HashMap::new(),
        }
    }

    /// The offset of a shown position from the known one, in metres.
    pub fn offset(&self, of: K, now_s: f64) -> Vec2 {
        self.offsets.get(&of).map_or(Vec2::ZERO, |offset| {
            let passed = (now_s - offset.since_s).max(0.0) / self.duration_s;
            offset.offset_m * (-passed).exp() as f32
        })
    }

    /// Adds an offset: the known position has just moved away from the shown one by this much.
    pub fn add_offset(&mut self, of: K, way_m: Vec2, now_s: f64) {
        let is_smooth =
            way_m.length_squared() < SNAP_DISTANCE_M * SNAP_DISTANCE_M && self.duration_s > 0.0;
        if is_smooth && way_m != Vec2::ZERO {
            let since_s = now_s;
            self.offsets.insert(
                of,
                Offset {
                    offset_m: way_m,
                    since_s,
                },
            );
        } else {
            self.offsets.remove(&of);
        }
    }

    pub fn remove(&mut self, of: K) {
        self.offsets.remove(&of);
    }

    pub fn clear(&mut self) {
        self.offsets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_position_is_smoothed_and_a_teleport_snaps() {
        let mut smoothing = Smoothing::new(0.1);
        assert_eq!(smoothing.offset(1, 0.0), Vec2::ZERO);
        smoothing.add_offset(1, Vec2::X, 5.0);
        assert_eq!(smoothing.offset(1, 5.0), Vec2::X);
        let later = smoothing.offset(1, 5.1).x;
        assert!((later - 0.3679).abs() < 1e-3, "{later}");
        assert!(smoothing.offset(1, 6.0).x < 1e-4);
        // A clock that runs backwards causes no odd positions.
        assert_eq!(smoothing.offset(1, 4.0), Vec2::X);
        smoothing.add_offset(1, Vec2::X * 10.0, 5.0);
        assert_eq!(smoothing.offset(1, 5.0), Vec2::ZERO);
        let mut at_once = Smoothing::new(0.0);
        at_once.add_offset(1, Vec2::X, 5.0);
        assert_eq!(at_once.offset(1, 5.0), Vec2::ZERO);
    }
}
