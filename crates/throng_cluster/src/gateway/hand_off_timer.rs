//! How long the hand-off of a client's player takes.

/// Measures the hand-offs of a player whose client stays connected: from the freeze at the former node to the first packet of the scene at the new
/// one. Times are those of the gateway, in milliseconds. The former node sends how long the player has been frozen, so the clocks of
/// the two need not agree.
#[derive(Debug, Default)]
pub(super) struct HandOffTimer {
    /// The highest epoch of the player.
    epoch: u64,
    frozen_ms: Option<u64>,
    /// When the first packet of a scene at its node arrived.
    scene_ms: Option<u64>,
    /// The hand-off with this epoch was not measured yet.
    is_open: bool,
}

impl HandOffTimer {
    /// Whether it waits for the first packet of a scene.
    pub const fn waits_for_scene(&self) -> bool {
        self.is_open && self.scene_ms.is_none()
    }

    /// The client leaves its node.
    pub const fn leave_node(&mut self) {
        self.scene_ms = None;
    }

    /// A route of the player has arrived, with the time of its freeze if it is from the former node. Returns the time of the hand-off when it has
    /// both ends.
    pub fn on_route(&mut self, epoch: u64, frozen_ms: Option<u64>) -> Option<u64> {
        if epoch > self.epoch {
            (self.epoch, self.frozen_ms, self.is_open) = (epoch, None, true);
        }
        if epoch == self.epoch && self.is_open {
            self.frozen_ms = self.frozen_ms.or(frozen_ms);
        }
        self.measure()
    }

    /// A first packet of a scene has arrived from the client's node.
    pub fn on_scene(&mut self, now_ms: u64) -> Option<u64> {
        self.scene_ms.get_or_insert(now_ms);
        self.measure()
    }

    fn measure(&mut self) -> Option<u64> {
        let (from, to) = (self.frozen_ms?, self.scene_ms?);
        (self.frozen_ms, self.is_open) = (None, false);
        Some(to.saturating_sub(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_off_is_measured_once_whichever_end_is_known_first() {
        let mut timer = HandOffTimer::default();
        assert!(!timer.waits_for_scene());
        assert_eq!(timer.on_route(1, None), None);
        assert!(timer.waits_for_scene());
        assert_eq!(timer.on_scene(100), None);
        // To the second node: the route of the former one is first.
        timer.leave_node();
        assert_eq!(timer.on_route(2, Some(200)), None);
        assert_eq!(timer.on_route(2, None), None);
        assert_eq!(timer.on_scene(260), Some(60));
        assert_eq!(timer.on_route(2, Some(200)), None, "the route is repeated");
        // To the third one: the route of the former one is last.
        timer.leave_node();
        assert_eq!(timer.on_route(3, None), None);
        assert_eq!(timer.on_scene(400), None);
        assert_eq!(timer.on_route(3, Some(370)), Some(30));
        assert!(!timer.waits_for_scene());
        // Of a hand-off whose client did not come to a scene, nothing is left.
        timer.leave_node();
        assert_eq!(timer.on_route(4, Some(500)), None);
        timer.leave_node();
        assert_eq!(timer.on_route(5, None), None);
        assert_eq!(timer.on_scene(900), None);
        assert_eq!(timer.on_route(4, Some(500)), None);
    }
}
