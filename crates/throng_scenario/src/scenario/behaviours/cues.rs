//! Cues of a game's own: what a scenario writes as `Game(Storm(damage: 5))`.

use bevy_ecs::world::World;
use rand_pcg::Pcg64Mcg;
use serde::de::DeserializeOwned;

use super::parameters::BehaviourSite;
use crate::scenario::text::ValidationError;

/// Something that a game does when a scenario's script says so, with its parameters as scenarios write them:
/// `At(t_s: 10, run: Game(Storm(damage: 5)))`. Fields are read by serde, and should be refused when they are unknown
/// (`deny_unknown_fields`).
///
/// ```
/// use bevy_ecs::prelude::*;
/// use rand_pcg::Pcg64Mcg;
/// use serde::Deserialize;
/// use throng_scenario::crowd::{members, set_attribute_of};
/// use throng_scenario::{BehaviourSite, CueParameters, ValidationError};
///
/// /// Hurts everybody with a tag.
/// #[derive(Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Storm { tag: String, damage: i64 }
///
/// impl CueParameters for Storm {
///     const NAME: &'static str = "Storm";
///     fn check(&self, site: &BehaviourSite<'_>) -> Result<(), ValidationError> {
///         site.check_range("damage", self.damage, 0..=1000)
///     }
///     fn run(self, world: &mut World, _: &mut Pcg64Mcg) -> Result<(), String> {
///         let all = members(world, &self.tag, None);
///         set_attribute_of(world, &all, "health", |health| health - self.damage);
///         Ok(())
///     }
/// }
/// ```
/// It is registered with [`register_cue`](super::BehaviourAppExt::register_cue).
pub trait CueParameters: DeserializeOwned {
    /// What scenarios call it, in CamelCase.
    const NAME: &'static str;

    /// Checks the parameters when a scenario is checked, with the whole map as one metre; nothing by default. It must depend
    /// on nothing but its arguments.
    ///
    /// # Errors
    /// A [`ValidationError`] at the field that is wrong, with what was expected and what was found.
    fn check(&self, site: &BehaviourSite<'_>) -> Result<(), ValidationError> {
        let _ = site;
        Ok(())
    }

    /// Does it, in [`SimSystems::Think`](throng::sim::SimSystems::Think) before the crowds. What it draws from `random` depends
    /// on the seed and on what the script drew before; it must ask no clock and no other generator.
    ///
    /// # Errors
    /// What could not be done, in words: the report lists it among the faults of the script.
    fn run(self, world: &mut World, random: &mut Pcg64Mcg) -> Result<(), String>;
}
