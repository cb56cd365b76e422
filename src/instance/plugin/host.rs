//! The interface for games: scenes for matches, positions to move players to and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec2;

use super::messages::InstanceError;
use crate::instance::rules::InstanceRules;
use crate::matchmaking::Match;
use crate::sim::StateHasher;
use crate::world::{SceneId, SceneSpec, SimScene, WorldError, change_scene, open_scene};

/// The position of a player before it went to its match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerHome {
    /// The scene's id, which distinguishes a closed scene from later ones.
    pub scene_id: SceneId,
    /// The scene's entity.
    pub scene: Entity,
    /// Its position there, metres.
    pub position: Vec2,
}

impl PlayerHome {
    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.scene_id.0));
        hasher.write_f32(self.position.x);
        hasher.write_f32(self.position.y);
    }
}

/// Opens scenes for the matches of a mode, and moves their players.
///
/// It is called from an exclusive system; [`Instances`](crate::instance::Instances) is in the world. Its
/// results must depend on the world alone, so that a run can be repeated.
pub trait InstanceHost: Send + Sync + 'static {
    /// Opens the scene of a match, while `running` other instances have one, and returns its entity.
    ///
    /// # Errors
    /// [`InstanceError`], which is reported in [`InstanceRefused`](crate::instance::InstanceRefused).
    fn open(
        &self,
        world: &mut World,
        found: &Match,
        running: usize,
    ) -> Result<Entity, InstanceError>;

    /// Moves a player's object into the scene; by default to its middle. The object must be in the scene afterwards.
    ///
    /// # Errors
    /// [`WorldError`]; the player is then removed from the match, and stays where it was.
    fn admit(
        &self,
        world: &mut World,
        scene: Entity,
        _side: usize,
        player: Entity,
    ) -> Result<(), WorldError> {
        let size_m = world
            .get::<SimScene>(scene)
            .ok_or(WorldError::NoSuchScene { scene })?
            .size_m();
        change_scene(world, player, scene, size_m / 2.0)
    }

    /// Moves a player's object home; by default to its position before the match.
    ///
    /// # Errors
    /// [`WorldError`], for example when its old scene is closed or full; its object is then despawned, and the game may give
    /// the player another. The same applies to an object that is still in the match's scene afterwards.
    fn send_home(
        &self,
        world: &mut World,
        player: Entity,
        home: &PlayerHome,
    ) -> Result<(), WorldError> {
        change_scene(world, player, home.scene, home.position)
    }
}

/// Every match gets a new empty scene of this specification.
impl InstanceHost for SceneSpec {
    fn open(&self, world: &mut World, _: &Match, _: usize) -> Result<Entity, InstanceError> {
        Ok(open_scene(world, self.clone(), ())?)
    }
}

/// The modes whose matches run in instances, by name; all others are left to the embedder.
#[derive(Resource, Clone, Default)]
pub struct InstanceModes {
    modes: BTreeMap<String, (InstanceRules, Arc<dyn InstanceHost>)>,
}

impl InstanceModes {
    /// Sets the rules and the host of the matches of `mode`, from the next match on.
    pub fn host(&mut self, mode: &str, rules: InstanceRules, host: impl InstanceHost) {
        self.modes.insert(mode.to_owned(), (rules, Arc::new(host)));
    }

    /// Removes the host of `mode`; running matches continue to their end. Returns whether there was one.
    pub fn remove(&mut self, mode: &str) -> bool {
        self.modes.remove(mode).is_some()
    }

    /// Whether no mode has a host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.modes.is_empty()
    }

    /// The modes with a host.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.modes.keys().map(String::as_str)
    }

    /// The rules and the host of a mode.
    pub(super) fn get(&self, mode: &str) -> Option<(InstanceRules, Arc<dyn InstanceHost>)> {
        self.modes.get(mode).cloned()
    }
}
