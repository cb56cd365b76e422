//! The behaviours that scenarios may name.

use std::collections::BTreeMap;

use bevy_app::App;
use bevy_ecs::prelude::*;

use super::built_in::{
    ChaseParameters, CommuteParameters, FleeParameters, GatherParameters, IdleParameters,
    PatrolParameters, WanderParameters,
};
use super::parameters::{BehaviourParameters, BehaviourSite, unknown};
use crate::crowd::{Behave, Behaviour};
use crate::scenario::schema::BehaviourSpec;
use crate::scenario::text::{Problem, parameters};

/// The behaviours that scenarios may name; the built-in ones from the start.
#[derive(Resource, Clone, Debug)]
pub struct Behaviours(BTreeMap<&'static str, ReadBehaviour>);

type ReadBehaviour = fn(&str, &BehaviourSite<'_>) -> Result<Behaviour, Problem>;

impl Default for Behaviours {
    fn default() -> Self {
        let mut behaviours = Self(BTreeMap::new());
        behaviours.register::<IdleParameters>();
        behaviours.register::<WanderParameters>();
        behaviours.register::<PatrolParameters>();
        behaviours.register::<ChaseParameters>();
        behaviours.register::<FleeParameters>();
        behaviours.register::<CommuteParameters>();
        behaviours.register::<GatherParameters>();
        behaviours
    }
}

impl Behaviours {
    /// Lets scenarios name a behaviour, by its [`Behave::NAME`]. One that was registered under the same name before, a
    /// built-in one say, is replaced.
    pub fn register<T: BehaviourParameters>(&mut self) {
        self.0.insert(T::Behaviour::NAME, read::<T>);
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// What a scenario wrote, as a behaviour.
    ///
    /// # Errors
    /// A [`Problem`] at the name that is unknown (with the closest one that is known), or at the parameter that is wrong.
    pub(in crate::scenario) fn resolve(
        &self,
        spec: &BehaviourSpec,
        site: &BehaviourSite<'_>,
    ) -> Result<Behaviour, Problem> {
        let name = parameters::name(spec.text()).ok_or_else(|| {
            let message = "expected a behaviour, such as `Wander(radius_m: 5)`";
            Problem::new(site.place.clone(), message)
        })?;
        let Some(read) = self.0.get(name) else {
            let known: Vec<&str> = self.names().collect();
            return Err(unknown(site.place.clone(), "behaviour", name, &known));
        };
        read(spec.text(), site)
    }
}

fn read<T: BehaviourParameters>(
    text: &str,
    site: &BehaviourSite<'_>,
) -> Result<Behaviour, Problem> {
    let written: T = parameters::read(text, &site.place)?;
    written.resolve(site).map(Behaviour::from)
}

/// Registers behaviours with an app.
pub trait BehaviourAppExt {
    /// Lets scenarios that are played in this app name a behaviour, by its [`Behave::NAME`]; see [`Behaviours::register`].
    fn register_behaviour<T: BehaviourParameters>(&mut self) -> &mut Self;
}

impl BehaviourAppExt for App {
    fn register_behaviour<T: BehaviourParameters>(&mut self) -> &mut Self {
        self.init_resource::<Behaviours>();
        let mut behaviours = self.world_mut().resource_mut::<Behaviours>();
        behaviours.register::<T>();
        self
    }
}
