//! The registry of behaviours and cues for scenarios.

use std::collections::BTreeMap;

use bevy_app::App;
use bevy_ecs::prelude::*;
use rand_pcg::Pcg64Mcg;

use super::built_in::{
    ChaseParameters, CommuteParameters, FleeParameters, GatherParameters, IdleParameters,
    PatrolParameters, WanderParameters,
};
use super::cues::CueParameters;
use super::parameters::{BehaviourParameters, BehaviourSite, unknown_name};
use crate::crowd::{Behaviour, BehaviourRule};
use crate::scenario::schema::{BehaviourSpec, CueSpec};
use crate::scenario::text::{ValidationError, ValuePath, parameters};

/// The behaviours that scenarios may name, including the built-in ones, and the custom cues of a game.
#[derive(Resource, Clone, Debug)]
pub struct Behaviours {
    behaviours: BTreeMap<&'static str, BehaviourReader>,
    cues: BTreeMap<&'static str, GameCue>,
}

type BehaviourReader = fn(&str, &BehaviourSite<'_>) -> Result<Behaviour, ValidationError>;

/// The functions that check and run a cue of a game from its text.
#[derive(Clone, Copy, Debug)]
struct GameCue {
    check: fn(&str, &BehaviourSite<'_>) -> Result<(), ValidationError>,
    run: fn(&str, &mut World, &mut Pcg64Mcg) -> Result<(), String>,
}

impl Default for Behaviours {
    fn default() -> Self {
        let mut behaviours = Self {
            behaviours: BTreeMap::new(),
            cues: BTreeMap::new(),
        };
        for_each_built_in(&mut behaviours);
        behaviours
    }
}

/// An operation on the type of each built-in behaviour.
pub(in crate::scenario) trait BehaviourVisitor {
    /// Visits one behaviour.
    fn visit<T: BehaviourParameters>(&mut self);
}

/// Visits all built-in behaviours.
pub(in crate::scenario) fn for_each_built_in(visitor: &mut impl BehaviourVisitor) {
    visitor.visit::<IdleParameters>();
    visitor.visit::<WanderParameters>();
    visitor.visit::<PatrolParameters>();
    visitor.visit::<ChaseParameters>();
    visitor.visit::<FleeParameters>();
    visitor.visit::<CommuteParameters>();
    visitor.visit::<GatherParameters>();
}

impl BehaviourVisitor for Behaviours {
    fn visit<T: BehaviourParameters>(&mut self) {
        self.register::<T>();
    }
}

impl Behaviours {
    /// Registers a behaviour by its [`BehaviourRule::NAME`]. It replaces a behaviour of the same name, also a built-in one.
    pub fn register<T: BehaviourParameters>(&mut self) {
        self.behaviours
            .insert(T::Behaviour::NAME, read_behaviour::<T>);
    }

    /// Registers a cue by its [`CueParameters::NAME`]. It replaces a cue of the same name.
    pub fn register_cue<T: CueParameters>(&mut self) {
        let (check, run) = (check_cue_text::<T>, run_cue_text::<T>);
        self.cues.insert(T::NAME, GameCue { check, run });
    }

    /// The names of behaviours, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.behaviours.keys().copied()
    }

    /// Resolves a behaviour of a scenario.
    ///
    /// # Errors
    /// A [`ValidationError`] at the unknown name (with the closest known one), or at the wrong parameter.
    pub(in crate::scenario) fn resolve(
        &self,
        spec: &BehaviourSpec,
        site: &BehaviourSite<'_>,
    ) -> Result<Behaviour, ValidationError> {
        let name = parameters::name(spec.text()).ok_or_else(|| {
            let message = "expected a behaviour, such as `Wander(radius_m: 5)`";
            ValidationError::new(site.path.clone(), message)
        })?;
        let Some(read) = self.behaviours.get(name) else {
            let known: Vec<&str> = self.names().collect();
            return Err(unknown_name(site.path.clone(), "behaviour", name, &known));
        };
        read(spec.text(), site)
    }

    /// Validates a custom cue of a scenario.
    ///
    /// # Errors
    /// A [`ValidationError`] at the unknown name (with the closest known one), or at the wrong parameter.
    pub(in crate::scenario) fn check_cue(
        &self,
        cue: &CueSpec,
        site: &BehaviourSite<'_>,
    ) -> Result<(), ValidationError> {
        let name = parameters::name(cue.text()).ok_or_else(|| {
            let message = "expected a custom cue, such as `Storm(damage: 5)`";
            ValidationError::new(site.path.clone(), message)
        })?;
        let Some(known) = self.cues.get(name) else {
            let names: Vec<&str> = self.cues.keys().copied().collect();
            if names.is_empty() {
                let message = format!("unknown cue `{name}`: this program has no custom cues");
                let help = "register it with `register_cue` in the program of the game, and run the scenario there";
                return Err(ValidationError::new(site.path.clone(), message).with_help(help));
            }
            return Err(unknown_name(site.path.clone(), "cue", name, &names));
        };
        (known.check)(cue.text(), site)
    }

    /// Runs a custom cue of a scenario.
    ///
    /// # Errors
    /// Why it failed, as text.
    pub(in crate::scenario) fn run_cue(
        &self,
        cue: &CueSpec,
        world: &mut World,
        random: &mut Pcg64Mcg,
    ) -> Result<(), String> {
        let name = parameters::name(cue.text()).unwrap_or_default();
        let known = self.cues.get(name);
        let known = known.ok_or_else(|| format!("unknown cue `{name}`"))?;
        (known.run)(cue.text(), world, random)
    }
}

fn check_cue_text<T: CueParameters>(
    text: &str,
    site: &BehaviourSite<'_>,
) -> Result<(), ValidationError> {
    let written: T = parameters::read(text, &site.path)?;
    written.check(site)
}

fn run_cue_text<T: CueParameters>(
    text: &str,
    world: &mut World,
    random: &mut Pcg64Mcg,
) -> Result<(), String> {
    let written = parameters::read::<T>(text, &ValuePath::root());
    let written = written.map_err(|problem| problem.message)?;
    written.run(world, random)
}

fn read_behaviour<T: BehaviourParameters>(
    text: &str,
    site: &BehaviourSite<'_>,
) -> Result<Behaviour, ValidationError> {
    let written: T = parameters::read(text, &site.path)?;
    written.resolve(site).map(Behaviour::from)
}

/// Registers behaviours and cues with an app.
pub trait BehaviourAppExt {
    /// Registers a behaviour for the scenarios of this app, by its [`BehaviourRule::NAME`]; see [`Behaviours::register`].
    fn register_behaviour<T: BehaviourParameters>(&mut self) -> &mut Self;

    /// Registers a cue for the scenarios of this app, by its [`CueParameters::NAME`]; see [`Behaviours::register_cue`].
    fn register_cue<T: CueParameters>(&mut self) -> &mut Self;
}

impl BehaviourAppExt for App {
    fn register_behaviour<T: BehaviourParameters>(&mut self) -> &mut Self {
        self.init_resource::<Behaviours>();
        let mut behaviours = self.world_mut().resource_mut::<Behaviours>();
        behaviours.register::<T>();
        self
    }

    fn register_cue<T: CueParameters>(&mut self) -> &mut Self {
        self.init_resource::<Behaviours>();
        let mut behaviours = self.world_mut().resource_mut::<Behaviours>();
        behaviours.register_cue::<T>();
        self
    }
}
