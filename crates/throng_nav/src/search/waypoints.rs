//! Turning points of a path.

use glam::IVec2;

/// Appends a point, which replaces the last one if the path continues straight through it, or if both are equal.
pub(super) fn push_turn(waypoints: &mut Vec<IVec2>, point: IVec2) {
    match waypoints[..] {
        [.., last] if last == point => {}
        [.., before, last] if (last - before).signum() == (point - last).signum() => {
            waypoints.pop();
            waypoints.push(point);
        }
        _ => waypoints.push(point),
    }
}
