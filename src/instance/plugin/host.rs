//! The interface for games: scenes for matches, positions to move players to and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;

use super::messages::InstanceError;
use crate::instance::rules::InstanceRules;
use crate::matchmaking::{Match, MatchModeSettings, MatchmakingSettings};
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

/// Adds match modes whose matches run in scenes of their own.
pub trait MatchModeAppExt {
    /// Adds a match mode: its queue, the rules of its matches, and the host that opens a scene for each of them. The same as a mode in
    /// [`MatchmakingSettings`] and a host in [`InstanceModes`], which stay available; call it before the app starts.
    ///
    /// # Panics
    /// When there is a mode of this name.
    ///
    /// ```
    /// use glam::Vec2;
    /// use throng::instance::InstanceRules;
    /// use throng::matchmaking::MatchModeSettings;
    /// use throng::prelude::*;
    ///
    /// let server = Server::builder()
    ///     .plugins(|app: &mut bevy_app::App| {
    ///         let arena = SceneSpec::new("arena", Vec2::splat(20.0));
    ///         app.add_match_mode(MatchModeSettings::groups("duel", 1), InstanceRules::with_duration_s(60.0), arena);
    ///     })
    ///     .build();
    /// ```
    fn add_match_mode(
        &mut self,
        mode: MatchModeSettings,
        rules: InstanceRules,
        host: impl InstanceHost,
    ) -> &mut Self;
}

impl MatchModeAppExt for App {
    fn add_match_mode(
        &mut self,
        mode: MatchModeSettings,
        rules: InstanceRules,
        host: impl InstanceHost,
    ) -> &mut Self {
        let name = mode.name().to_owned();
        self.init_resource::<InstanceModes>()
            .init_resource::<MatchmakingSettings>();
        let mut settings = self.world_mut().resource_mut::<MatchmakingSettings>();
        assert!(
            settings.modes.iter().all(|other| other.name() != name),
            "expected a new name for a match mode, found `{name}`, which is a mode already"
        );
        settings.modes.push(mode);
        let mut modes = self.world_mut().resource_mut::<InstanceModes>();
        modes.host(&name, rules, host);
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;

    fn add_duel(app: &mut App) {
        let arena = SceneSpec::new("arena", Vec2::splat(20.0));
        let mode = MatchModeSettings::groups("duel", 1);
        app.add_match_mode(mode, InstanceRules::with_duration_s(3.0), arena);
    }

    #[test]
    fn added_mode_has_a_queue_and_a_host_before_and_after_plugins() {
        let servers = [
            Server::builder().plugins(add_duel).build(),
            Server::builder().configure(add_duel).build(),
        ];
        for server in servers {
            let matchmaker = server.world().resource::<crate::matchmaking::Matchmaker>();
            assert!(matchmaker.mode_by_name("duel").is_some());
            let (rules, _) = server
                .world()
                .resource::<InstanceModes>()
                .get("duel")
                .unwrap();
            assert_eq!(rules, InstanceRules::with_duration_s(3.0));
        }
        // Also in an app that gets the plugins later.
        let mut app = App::new();
        add_duel(&mut app);
        app.add_plugins(crate::instance::InstancePlugin);
        assert_eq!(app.world().resource::<MatchmakingSettings>().modes.len(), 1);
    }

    #[test]
    #[should_panic(expected = "found `duel`, which is a mode already")]
    fn second_mode_of_a_name_is_a_mistake() {
        let mut app = App::new();
        add_duel(&mut app);
        add_duel(&mut app);
    }
}
