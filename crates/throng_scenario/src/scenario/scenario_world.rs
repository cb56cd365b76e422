//! Sets up a scenario's scenes, crowds and queues on a server.

use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use glam::Vec2;

use super::behaviours::{BehaviourSite, Behaviours, area_in_metres};
use super::load::LoadedScenario;
use super::schema::{self, Cue, MapSource, Scenario, ScenarioArea};
use super::text::{ScenarioError, ValidationError, ValuePath};
use super::validate::limits::GRID_CELLS_MAX;
use super::validate::{
    add_cells, add_tiles, areas_outside_map, check_edits, check_grid, is_open_at_start,
    scenes_with_paths, with_scaled_edits,
};
use crate::crowd::{
    Behaviour, CUSTOM_ATTRIBUTES_MAX, CrowdArea, CrowdAuthenticator, CrowdSpec,
    CustomAttributeAppExt, CustomAttributeSpec, PartyArrivals, Weather, add_crowd,
};
use throng::aoi::{SceneAoiSettings, ViewCaps, Viewer};
use throng::map::{MapRecipe, SceneMap, TileMap};
use throng::matchmaking::{MatchModeSettings, Matchmaker};
use throng::memory::MemoryUse;
use throng::nav::NavSettings;
use throng::outbox::OutboxSettings;
use throng::session::{Authentication, SessionKey};
use throng::sim::{LoadMeasure, RandomStreams, SimSettings, StateHasher};
use throng::sync::Audience;
use throng::world::{
    GuildId, KindId, Object, ObjectKinds, SceneSpec, SimScene, TeamId, WorldError, open_scene,
};

/// The state of a running scenario: the names of its scenes, and the maps that were loaded before the first tick.
#[derive(Resource, Debug)]
pub(super) struct ScenarioWorld {
    pub scenario: Scenario,
    /// In the order in which they opened; closed ones stay until the next scene opens.
    scenes: Vec<OpenedScene>,
    /// Number of times that a scene was opened; a scene with copies counts once.
    open_count: u64,
    /// Every map that the scenario can open, so that no tick waits for a file. Scenes with the same map share it.
    maps: Vec<ScenarioMap>,
}

/// The effects of a replacement map for the first scene, and the warnings about maps.
#[derive(Debug)]
pub(super) struct MapSubstitute {
    /// The factor for areas in metres in the first scene.
    scale: Vec2,
    /// The script, with its edits of that scene converted to the tiles of the replacement map.
    pub script: Vec<Cue>,
    /// Areas that reach beyond their maps.
    pub warnings: Vec<ValidationError>,
}

#[derive(Debug)]
struct ScenarioMap {
    source: MapSource,
    name: String,
    map: Arc<TileMap>,
}

#[derive(Debug)]
struct OpenedScene {
    name: String,
    entity: Entity,
    /// The factor for areas in metres, if another map replaces the scene's own.
    scale: Vec2,
    caps: ViewCaps,
    map: String,
    /// Cells of its interest grid.
    cells: u64,
    /// The number of its opening; its copies have the same.
    open_number: u64,
}

/// Why a scene or a crowd of a scenario cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScenarioWorldError {
    /// A scene that is not open.
    #[error("scene `{0}` is not open")]
    NotOpen(String),
    /// A scene whose map was not loaded before the run.
    #[error("scene `{0}` has no map")]
    NoMap(String),
    /// A scene whose grid does not fit its map, or an invalid behaviour.
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    /// The grids of all open scenes would take too much memory.
    #[error(
        "expected at most {GRID_CELLS_MAX} grid cells in all open scenes, found {cells}: use larger cells"
    )]
    TooManyCells {
        /// The number of cells, including those of the new scene.
        cells: u64,
    },
    /// An error of the world.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl ScenarioWorld {
    /// Loads all maps. `replacement` replaces that of the first scene.
    pub fn prepare(
        loaded: &LoadedScenario,
        replacement: Option<(String, TileMap)>,
        behaviours: &Behaviours,
    ) -> Result<(Self, MapSubstitute), ScenarioError> {
        let mut warnings = Vec::new();
        let mut maps: Vec<ScenarioMap> = Vec::new();
        let (mut tiles, mut cells) = (0, 0);
        let replaced = loaded
            .scenario
            .scenes
            .first()
            .filter(|_| replacement.is_some());
        for (place, scene) in scenes_with_paths(&loaded.scenario) {
            let known = maps.iter().find(|known| known.source == scene.map);
            let size = match known {
                Some(known) => known.map.rect(),
                None => {
                    let map = Arc::new(loaded.open_map(scene)?);
                    let size = map.rect();
                    loaded.locate_result(add_tiles(&mut tiles, &place, size))?;
                    maps.push(ScenarioMap {
                        source: scene.map.clone(),
                        name: map_source_name(&scene.map),
                        map,
                    });
                    size
                }
            };
            let substitute = replacement.as_ref().map(|(_, map)| map.rect());
            let substitute = substitute.filter(|_| replaced.is_some_and(|of| of.map == scene.map));
            let actual_size = substitute.unwrap_or(size);
            let of_scene = loaded.locate_result(check_grid(scene, &place, actual_size))?;
            if substitute.is_none() {
                loaded.locate_result(check_edits(&loaded.scenario, scene, size))?;
            } else if replaced.is_some_and(|of| of.name == scene.name) {
                // Edits of this scene are scaled like its areas. Edits of other scenes with the same map are not scaled; if they do
                // not fit, their cues fail when they run.
                let scaled = with_scaled_edits(&loaded.scenario, size, actual_size);
                loaded.locate_result(check_edits(&scaled, scene, actual_size))?;
            }
            if is_open_at_start(&place) {
                loaded.locate_result(add_cells(&mut cells, &place, scene, of_scene))?;
            }
            // Areas are scaled to a replacement map, so an area that reaches beyond one map reaches beyond the other.
            warnings.extend(areas_outside_map(&loaded.scenario, scene, size, behaviours));
        }
        let mut substitute = MapSubstitute {
            scale: Vec2::ONE,
            script: loaded.scenario.script.clone(),
            warnings,
        };
        if let (Some((name, map)), Some(first)) = (replacement, loaded.scenario.scenes.first()) {
            let size = |map: &TileMap| Vec2::new(map.width() as f32, map.height() as f32);
            let own = maps.iter().find(|known| known.source == first.map);
            if let Some(own) = own {
                substitute.scale = size(&map) / size(&own.map);
                let scaled = with_scaled_edits(&loaded.scenario, own.map.rect(), map.rect());
                substitute.script = scaled.script;
            }
            // In front, so that it is found first; scenes that open later with the same source use it too.
            maps.insert(
                0,
                ScenarioMap {
                    source: first.map.clone(),
                    name,
                    map: Arc::new(map),
                },
            );
        }
        Ok((
            Self {
                scenario: loaded.scenario.clone(),
                scenes: Vec::new(),
                open_count: 0,
                maps,
            },
            substitute,
        ))
    }

    /// The newest open scene with this name; without a name, with the name of the scenario's first scene.
    ///
    /// # Errors
    /// [`ScenarioWorldError::NotOpen`].
    pub fn scene(&self, world: &World, name: Option<&str>) -> Result<Entity, ScenarioWorldError> {
        let first = self.scenario.scenes.first();
        let name = name
            .or(first.map(|scene| scene.name.as_str()))
            .unwrap_or_default();
        let mut newest_first = self
            .scenes
            .iter()
            .rev()
            .filter(|opened| opened.name == name);
        newest_first
            .find(|opened| world.get_entity(opened.entity).is_ok())
            .map(|opened| opened.entity)
            .ok_or_else(|| ScenarioWorldError::NotOpen(name.to_owned()))
    }

    /// The scene that [`ScenarioWorld::scene`] returns, and all its copies that are still open, in their order.
    ///
    /// # Errors
    /// [`ScenarioWorldError::NotOpen`].
    pub fn copies(
        &self,
        world: &World,
        name: Option<&str>,
    ) -> Result<Vec<Entity>, ScenarioWorldError> {
        let newest = self.scene(world, name)?;
        let opening = |opened: &&OpenedScene| opened.entity == newest;
        let opening = self
            .scenes
            .iter()
            .find(opening)
            .map(|opened| opened.open_number);
        let same = self.scenes.iter();
        let same = same.filter(|opened| Some(opened.open_number) == opening);
        let open = same.filter(|opened| world.get_entity(opened.entity).is_ok());
        Ok(open.map(|opened| opened.entity).collect())
    }

    /// Hashes the scenes that names refer to, with their scale and view caps.
    pub fn hash(&self, world: &World, hasher: &mut StateHasher) {
        for opened in &self.scenes {
            let scene = world.get::<SimScene>(opened.entity);
            hasher.write_bytes(opened.name.as_bytes());
            hasher.write_u64(scene.map_or(u64::MAX, |scene| u64::from(scene.id().0)));
            hasher.write_f32(opened.scale.x);
            hasher.write_f32(opened.scale.y);
            let caps = [opened.caps.players, opened.caps.npcs, opened.caps.things];
            caps.into_iter()
                .for_each(|cap| hasher.write_u64(u64::from(cap)));
        }
    }

    /// The name of a scene's map in the event log: its file, or the generator.
    pub fn map_name(&self, scene: Entity) -> Option<&str> {
        self.scenes
            .iter()
            .find(|opened| opened.entity == scene)
            .map(|opened| opened.map.as_str())
    }

    /// The caps of viewers in a scene.
    pub fn caps(&self, scene: Entity) -> Option<ViewCaps> {
        self.scenes
            .iter()
            .find(|opened| opened.entity == scene)
            .map(|opened| opened.caps)
    }

    /// An area of a scene, in metres.
    pub fn resolve_area(&self, world: &World, scene: Entity, area: &ScenarioArea) -> CrowdArea {
        let (scale, size_m) = self.scale_and_size(world, scene);
        area_in_metres(area, scale, size_m)
    }

    /// The factor for areas in metres in a scene, and its size.
    fn scale_and_size(&self, world: &World, scene: Entity) -> (Vec2, Vec2) {
        let opened = self.scenes.iter().find(|opened| opened.entity == scene);
        let map = world.get::<SceneMap>(scene);
        (
            opened.map_or(Vec2::ONE, |opened| opened.scale),
            map.map_or(Vec2::ZERO, SceneMap::size_m),
        )
    }

    /// A behaviour with its areas in metres and its kinds resolved.
    ///
    /// # Errors
    /// [`ScenarioWorldError::Invalid`] for one that validation refuses.
    pub fn resolve_behaviour(
        &self,
        world: &World,
        scene: Entity,
        behaviour: &schema::BehaviourSpec,
    ) -> Result<Behaviour, ScenarioWorldError> {
        let (scale, size_m) = self.scale_and_size(world, scene);
        let site = BehaviourSite {
            path: ValuePath::root().field("behaviour"),
            kinds: world.resource::<ObjectKinds>(),
            scale,
            size_m,
        };
        let behaviours = world.resource::<Behaviours>();
        Ok(behaviours.resolve(behaviour, &site)?)
    }
}

/// The name of a map in reports.
fn map_source_name(source: &MapSource) -> String {
    match source {
        MapSource::File(path) => path.display().to_string(),
        MapSource::Generate(recipe) => match recipe {
            MapRecipe::Town(_) => "town",
            MapRecipe::Cave(_) => "cave",
            MapRecipe::Maze(_) => "maze",
            MapRecipe::Rooms(_) => "rooms",
            MapRecipe::Random(_) => "random",
        }
        .to_owned(),
    }
}

/// The kind with this name; validation guarantees that it exists.
fn kind_id(world: &World, name: &str) -> KindId {
    world
        .resource::<ObjectKinds>()
        .find(name)
        .unwrap_or_default()
}

/// Adds the authenticator of synthetic players; `RunOptions::configure` can replace it later.
pub(super) fn add_authentication(app: &mut App) {
    let world = app.world_mut();
    let authenticator = world.get_resource_or_init::<CrowdAuthenticator>().clone();
    world.insert_resource(Authentication::new(authenticator));
}

/// Sets up the initial state of the server. Returns the script to run, and warnings.
pub(super) fn set_up(
    world: &mut World,
    loaded: &LoadedScenario,
    map: Option<(String, TileMap)>,
) -> Result<MapSubstitute, ScenarioError> {
    let (stage, substitute) = ScenarioWorld::prepare(loaded, map, world.resource::<Behaviours>())?;
    let Scenario {
        settings,
        kinds,
        heartbeat_ticks,
        tick_hz,
        queues,
        network,
        ..
    } = &loaded.scenario;
    world.insert_resource(SimSettings {
        heartbeat_ticks: *heartbeat_ticks,
    });
    world.insert_resource(settings.view.clone());
    world.insert_resource(*network);
    world.insert_resource(NavSettings {
        time_searches: true,
        ..settings.nav.clone()
    });
    world.insert_resource(settings.inbox.clone());
    let mut overload = settings.overload.clone();
    if overload.measure == LoadMeasure::Auto {
        // A run must be the same at any pace.
        overload.measure = LoadMeasure::Off;
    }
    world.insert_resource(overload);
    // Seeded, so that messages to clients are the same in every run.
    let seed = world.resource::<RandomStreams>().seed();
    world.insert_resource(SessionKey::seeded(seed));
    world.insert_resource(settings.session.clone());
    world.insert_resource(settings.sync.clone());
    world.insert_resource(OutboxSettings {
        mtu_bytes: settings.outbox.mtu_bytes,
        spill_client_bytes_max: settings.outbox.spill_client_bytes_max,
        ..OutboxSettings::default()
    });
    for kind in kinds {
        world.resource_mut::<ObjectKinds>().register(kind.clone());
    }
    let modes: Vec<MatchModeSettings> = queues
        .iter()
        .map(schema::ScenarioMatchMode::mode_settings)
        .chain(settings.matchmaking.modes.clone())
        .collect();
    let matchmaker = Matchmaker::new(&modes, *tick_hz).map_err(|error| {
        ScenarioError::Invalid(loaded.locate_error(ValidationError::new(
            ValuePath::root().field("queues"),
            error.to_string(),
        )))
    })?;
    world.insert_resource(matchmaker);
    for queue in queues {
        world.resource_mut::<PartyArrivals>().open(queue.clone());
    }
    world.insert_resource(stage);
    let scenario = &loaded.scenario;
    for (nth, scene) in scenario.scenes.iter().enumerate() {
        let place = ValuePath::root().field("scenes").item(nth);
        let scale = if nth == 0 {
            substitute.scale
        } else {
            Vec2::ONE
        };
        open_copies(world, scene, scale).map_err(|error| error_at(loaded, place, &error))?;
    }
    for (nth, crowd) in scenario.crowds.iter().enumerate() {
        let place = ValuePath::root().field("crowds").item(nth);
        spawn_crowd(world, crowd).map_err(|error| error_at(loaded, place, &error))?;
    }
    Ok(substitute)
}

/// Registers the scenario's own attributes with an app that is not started yet. Invalid attributes are logged here, and reported by
/// the validation that follows.
pub(super) fn register_attributes(app: &mut App, attributes: &[schema::ScenarioAttribute]) {
    for attribute in attributes.iter().take(CUSTOM_ATTRIBUTES_MAX) {
        let (min, max) = attribute.bounds();
        let audience = attribute.audience.iter().map(|name| name.to_audience());
        let registered = app.register_custom_attribute(CustomAttributeSpec {
            name: attribute.name.clone(),
            encoding: attribute.encoding,
            audience: audience.reduce(Audience::or).unwrap_or(Audience::OWNER),
            cadence: attribute.cadence,
            min,
            max,
            start: attribute.start,
        });
        if let Err(error) = registered {
            tracing::warn!(%error, "scenario attribute not registered: clients will not receive it");
        }
    }
}

fn error_at(
    loaded: &LoadedScenario,
    place: ValuePath,
    error: &ScenarioWorldError,
) -> ScenarioError {
    ScenarioError::Invalid(loaded.locate_error(ValidationError::new(place, error.to_string())))
}

/// Opens a scene of the scenario with all its copies.
pub(super) fn open_copies(
    world: &mut World,
    scene: &schema::ScenarioScene,
    scale: Vec2,
) -> Result<(), ScenarioWorldError> {
    world.resource_mut::<ScenarioWorld>().open_count += 1;
    (1..=scene.copies).try_for_each(|nth| open_copy(world, scene, nth, scale).map(drop))
}

/// Opens a scene of the scenario, without copies.
pub(super) fn open_single(
    world: &mut World,
    scene: &schema::ScenarioScene,
    scale: Vec2,
) -> Result<Entity, ScenarioWorldError> {
    world.resource_mut::<ScenarioWorld>().open_count += 1;
    open_copy(world, scene, 1, scale)
}

/// Opens copy number `nth` of a scene, counted from 1.
fn open_copy(
    world: &mut World,
    scene: &schema::ScenarioScene,
    nth: u32,
    scale: Vec2,
) -> Result<Entity, ScenarioWorldError> {
    let stage = world.resource::<ScenarioWorld>();
    let Some(known) = stage.maps.iter().find(|known| known.source == scene.map) else {
        return Err(ScenarioWorldError::NoMap(scene.name.clone()));
    };
    let (map_name, map) = (
        known.name.clone(),
        SceneMap::new(known.map.clone(), scene.tile_m),
    );
    let spec = SceneSpec {
        name: match nth {
            1 => scene.name.clone(),
            _ => format!("{} {nth}", scene.name),
        },
        size_m: map.size_m(),
        max_objects: scene.max_objects,
    };
    let interest = SceneAoiSettings {
        cell_m: scene.cell_m,
        margin_m: scene.margin_m(),
        view_link_mode: scene.view_link_mode,
    };
    let place = ValuePath::root();
    let cells = check_grid(scene, &place, map.tiles().rect())?;
    let is_open = |opened: &&OpenedScene| world.get_entity(opened.entity).is_ok();
    let others: u64 = stage
        .scenes
        .iter()
        .filter(is_open)
        .map(|opened| opened.cells)
        .sum();
    if others + cells > GRID_CELLS_MAX {
        return Err(ScenarioWorldError::TooManyCells {
            cells: others + cells,
        });
    }
    // Runs observers of scenes, which may read `ScenarioWorld`.
    let entity = open_scene(world, spec, (map, interest, Weather::default()))?;
    let caps = ViewCaps {
        players: scene.view_cap,
        npcs: scene.npc_cap,
        things: scene.thing_cap,
    };
    // Drop closed scenes; those of matches would accumulate otherwise.
    let opened = world.resource::<ScenarioWorld>().scenes.iter();
    let closed: Vec<Entity> = opened
        .map(|opened| opened.entity)
        .filter(|&opened| opened != entity && world.get_entity(opened).is_err())
        .collect();
    let mut stage = world.resource_mut::<ScenarioWorld>();
    stage
        .scenes
        .retain(|opened| !closed.contains(&opened.entity));
    let opening = stage.open_count;
    stage.scenes.push(OpenedScene {
        name: scene.name.clone(),
        entity,
        scale,
        caps,
        map: map_name,
        cells,
        open_number: opening,
    });
    Ok(entity)
}

/// The scene of an object.
pub(super) fn scene_of(world: &World, entity: Entity) -> Option<Entity> {
    world.get::<Object>(entity).map(Object::scene_entity)
}

/// Applies a scene's view caps to those of the given objects that are in it.
pub(super) fn set_view_caps(world: &mut World, scene: Entity, arrived: &[Entity]) {
    let Some(caps) = world.resource::<ScenarioWorld>().caps(scene) else {
        return;
    };
    for &entity in arrived {
        let is_here = world
            .get::<Object>(entity)
            .is_some_and(|object| object.scene_entity() == scene);
        if is_here && let Some(mut viewer) = world.get_mut::<Viewer>(entity) {
            viewer.set_if_neq(Viewer { caps, ..*viewer });
        }
    }
}

/// Resolves a crowd of the scenario for one scene.
fn crowd_spec(
    world: &World,
    crowd: &schema::ScenarioCrowd,
    scene: Entity,
) -> Result<CrowdSpec, ScenarioWorldError> {
    let stage = world.resource::<ScenarioWorld>();
    let caps = stage.caps(scene).unwrap_or(ViewCaps {
        players: 0,
        npcs: 0,
        things: 0,
    });
    let at = stage.resolve_area(world, scene, &crowd.at);
    Ok(CrowdSpec {
        team: crowd.team.map(TeamId),
        guild: crowd.guild.map(GuildId),
        party_size: crowd.party_size,
        behaviour: stage.resolve_behaviour(world, scene, &crowd.behaviour)?,
        speed_m_s: crowd.speed_m_s,
        keep: crowd.keep,
        attributes_per_s: crowd.attributes_per_s,
        client_share: crowd.client_share,
        messages_per_s: crowd.messages_per_s,
        churn_per_s: crowd.churn_per_s,
        sends_inputs: crowd.sends_inputs,
        admission_class: crowd.admission_class,
        caps,
        view_range_m: crowd.view_range_m,
        ..CrowdSpec::new(
            crowd.tag.clone(),
            kind_id(world, &crowd.kind),
            crowd.count,
            scene,
            at,
        )
    })
}

/// Adds a crowd of the scenario, in each copy of its scene.
pub(super) fn spawn_crowd(
    world: &mut World,
    crowd: &schema::ScenarioCrowd,
) -> Result<(), ScenarioWorldError> {
    let scenes = world
        .resource::<ScenarioWorld>()
        .copies(world, crowd.scene.as_deref())?;
    for scene in scenes {
        let spec = crowd_spec(world, crowd, scene)?;
        add_crowd(world, spec)?;
    }
    Ok(())
}

impl MemoryUse for ScenarioWorld {
    fn heap_bytes(&self) -> usize {
        // A map that a scene shares is counted with that scene.
        let own = self.maps.iter().map(|of| &of.map);
        let own = own.filter(|map| Arc::strong_count(map) == 1);
        own.map(|map| size_of::<TileMap>() + map.memory().total_bytes())
            .sum()
    }
}
