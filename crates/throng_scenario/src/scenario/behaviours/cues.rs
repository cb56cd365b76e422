//! Custom cues of a game: in a scenario, `Game(Storm(damage: 5))`.

use bevy_ecs::world::World;
use rand_pcg::Pcg64Mcg;
use serde::de::DeserializeOwned;

use super::parameters::BehaviourSite;
use crate::scenario::text::ValidationError;

/// A custom action of a game that a scenario's script runs, with its parameters as scenarios write them: `At(t_s: 10, run:
/// Game(Storm(damage: 5)))`. Fields are read by serde, and unknown ones should be refused (`deny_unknown_fields`).
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
/// Register it with [`register_cue`](super::BehaviourAppExt::register_cue).
pub trait CueParameters: DeserializeOwned {
    /// The name in scenarios, in CamelCase.
    const NAME: &'static str;

    /// Checks the parameters during validation, with the whole map as one metre; accepts everything by default. The result must
    /// depend only on the arguments.
    ///
    /// # Errors
    /// A [`ValidationError`] at the wrong field, with the expected and the found value.
    fn check(&self, site: &BehaviourSite<'_>) -> Result<(), ValidationError> {
        let _ = site;
        Ok(())
    }

    /// Runs the cue, in [`SimSystems::Think`](throng::sim::SimSystems::Think) before the crowds. What it draws from `random`
    /// depends on the seed and on earlier draws of the script; it must use no clock and no other generator.
    ///
    /// # Errors
    /// Why it failed, as text: the report lists it among the script errors.
    fn run(self, world: &mut World, random: &mut Pcg64Mcg) -> Result<(), String>;
}
