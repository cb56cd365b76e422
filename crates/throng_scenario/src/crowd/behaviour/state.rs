//! The state of an individual.

use bevy_ecs::prelude::*;
use glam::Vec2;

use throng::sim::StateHasher;
use throng::world::StateHashed;

/// The state of an individual's behaviour.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub(in crate::crowd) struct BehaviourState {
    /// Its home, in metres.
    pub home: Vec2,
    /// The tick of its next decision.
    pub next_decision_tick: u64,
    /// Number of goals so far.
    pub goal_count: u32,
    /// Whether it rests between two goals.
    pub is_resting: bool,
}

impl StateHashed for BehaviourState {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(self.home.x);
        hasher.write_f32(self.home.y);
        hasher.write_u64(self.next_decision_tick << 1 | u64::from(self.is_resting));
        hasher.write_u64(u64::from(self.goal_count));
    }
}
