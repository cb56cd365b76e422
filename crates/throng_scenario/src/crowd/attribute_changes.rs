//! Changes of character attributes by the game, without player input.

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use rand::RngExt;

use super::attributes::{
    ChangedAttribute, Experience, Health, Level, Mana, Power, change_attribute,
};
use super::crowds::Crowds;
use throng::sim::RandomStreams;

type AttributeQuery = (
    &'static mut Health,
    &'static mut Mana,
    &'static mut Level,
    &'static mut Power,
    &'static mut Experience,
);

/// Changes attributes of random members, at each crowd's rate.
pub(super) fn change_attributes(
    mut crowds: ResMut<Crowds>,
    mut streams: ResMut<RandomStreams>,
    time: Res<Time<Fixed>>,
    mut characters: Query<AttributeQuery>,
) {
    let random = streams.stream("activity");
    let dt = time.timestep().as_secs_f64();
    for crowd in &mut crowds.crowds {
        if crowd.members.is_empty() {
            continue;
        }
        crowd.pending_attribute_changes +=
            f64::from(crowd.spec.attributes_per_s) * crowd.members.len() as f64 * dt;
        while crowd.pending_attribute_changes >= 1.0 {
            crowd.pending_attribute_changes -= 1.0;
            let nth = random.random_range(0..crowd.members.len());
            let Ok((mut health, mut mana, mut level, mut power, mut experience)) =
                characters.get_mut(crowd.members[nth])
            else {
                continue;
            };
            // Mark only the attribute that changed.
            let changed = change_attribute(
                random,
                (
                    health.bypass_change_detection(),
                    mana.bypass_change_detection(),
                    level.bypass_change_detection(),
                    power.bypass_change_detection(),
                    experience.bypass_change_detection(),
                ),
            );
            match changed {
                ChangedAttribute::Health => health.set_changed(),
                ChangedAttribute::Mana => mana.set_changed(),
                ChangedAttribute::Level => level.set_changed(),
                ChangedAttribute::Power => power.set_changed(),
                ChangedAttribute::Experience => experience.set_changed(),
            }
        }
    }
}
