//! The scenes that this node runs, and their NPCs.

use std::collections::BTreeMap;

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use throng::prelude::*;
use throng_cluster::{ClusterPlayer, SceneAssigned, SceneDeclaration, SceneRemoved};

use super::ClusterWorld;
use super::world_file::{WorldFile, WorldScene};

/// Length of a tile, in metres.
const TILE_M: f32 = 0.5;

/// How fast NPCs walk, in metres per second.
const NPC_SPEED_M_S: f32 = 1.5;

/// The scenes that are open here.
#[derive(Resource, Default)]
pub(in crate::cluster) struct OpenScenes {
    scenes: BTreeMap<String, Entity>,
    waiting_room: Option<Entity>,
}

/// An NPC that walks about.
#[derive(Component)]
pub(super) struct Stroller;

impl OpenScenes {
    /// The place of players in the waiting room, and its sides.
    pub const WAITING_AT_M: Vec2 = Vec2::splat(5.0);

    /// A scene that is open here.
    pub fn get(&self, name: &str) -> Option<Entity> {
        self.scenes.get(name).copied()
    }

    /// The number of players in each open scene. Those in the waiting room and in matches are in none of them. O(players + scenes).
    pub fn count_players(world: &mut World) -> Vec<(String, u32)> {
        let mut counts: BTreeMap<Entity, u32> = BTreeMap::new();
        let mut players = world.query_filtered::<&InScene, With<ClusterPlayer>>();
        for scene in players.iter(world) {
            *counts.entry(scene.0).or_default() += 1;
        }
        let open = world.resource::<Self>().scenes.iter();
        let counted = open.map(|(name, scene)| (name.clone(), counts.get(scene).copied()));
        counted
            .map(|(name, players)| (name, players.unwrap_or(0)))
            .collect()
    }

    /// The scene for players whose scene is not here.
    pub fn waiting_room(&self) -> Entity {
        self.waiting_room.unwrap_or(Entity::PLACEHOLDER)
    }

    /// Opens the waiting room. Call it before players arrive.
    pub fn open_waiting_room(world: &mut World) -> Result<(), throng::world::WorldError> {
        let spec = SceneSpec::new("waiting room", 2.0 * Self::WAITING_AT_M);
        let room = open_scene(world, spec, ())?;
        world.resource_mut::<Self>().waiting_room = Some(room);
        Ok(())
    }
}

impl WorldFile {
    /// The scenes for the rows. All nodes of a cluster declare the same.
    pub fn declarations(&self) -> Vec<SceneDeclaration> {
        let specification = self.fingerprint().to_le_bytes();
        let scenes = self.scenes.iter();
        let declared = scenes.map(|scene| SceneDeclaration {
            name: scene.name.clone(),
            specification: specification.to_vec(),
            pinned_to: scene.pinned_to.clone(),
        });
        declared.collect()
    }
}

/// Opens the scenes that this node is to run now, and closes those that it does not run any more.
pub(super) fn follow_scenes(
    world: &mut World,
    mut assigned: Local<MessageCursor<SceneAssigned>>,
    mut removed: Local<MessageCursor<SceneRemoved>>,
) {
    let removed = removed.read(world.resource::<Messages<SceneRemoved>>());
    let removed: Vec<String> = removed.map(|scene| scene.name.clone()).collect();
    let assigned = assigned.read(world.resource::<Messages<SceneAssigned>>());
    let assigned: Vec<SceneAssigned> = assigned.cloned().collect();
    for name in removed {
        let closing = world.resource_mut::<OpenScenes>().scenes.remove(&name);
        if let Some(scene) = closing.and_then(|scene| world.get_entity_mut(scene).ok()) {
            { scene }.insert(ClosingScene);
        }
    }
    if assigned.is_empty() {
        return;
    }
    let file = world.resource::<ClusterWorld>().clone().0;
    let fingerprint = file.fingerprint().to_le_bytes();
    for SceneAssigned {
        name,
        specification,
        ..
    } in assigned
    {
        let known = file.scene(&name);
        match known.filter(|_| specification == fingerprint) {
            Some(scene) => {
                if let Err(error) = open_world_scene(world, scene) {
                    tracing::error!(name, %error, "scene not opened");
                }
            }
            None => tracing::error!(
                name,
                "scene not opened: it was declared by another world file; run all nodes with the same file, or use another database"
            ),
        }
    }
}

/// A scene that this node does not run any more. It closes when its players have left.
#[derive(Component)]
pub(super) struct ClosingScene;

/// Opens a scene without walls and objects.
pub(super) fn open_empty_scene(
    world: &mut World,
    name: &str,
    size_m: Vec2,
) -> Result<Entity, Box<dyn std::error::Error>> {
    let tiles = (size_m / TILE_M).round();
    let tiles = TileMap::new(tiles.x as u32, tiles.y as u32, false)?;
    let map = SceneMap::new(tiles.into(), TILE_M);
    Ok(open_scene(world, SceneSpec::new(name, map.size_m()), map)?)
}

fn open_world_scene(
    world: &mut World,
    scene: &WorldScene,
) -> Result<(), Box<dyn std::error::Error>> {
    let entity = open_empty_scene(world, &scene.name, scene.size_m)?;
    for _ in 0..scene.npcs {
        let mut streams = world.resource_mut::<RandomStreams>();
        let random = streams.stream("strollers");
        let (at, goal) = (
            place_in(scene.size_m, random),
            place_in(scene.size_m, random),
        );
        let npc = (Npc, Stroller, MaxSpeed(NPC_SPEED_M_S));
        world.spawn((npc, InScene(entity), Position(at), PathRequest::to(goal)));
    }
    let mut open = world.resource_mut::<OpenScenes>();
    open.scenes.insert(scene.name.clone(), entity);
    Ok(())
}

/// A place in a scene, 1 m from its edges or more.
fn place_in(size_m: Vec2, random: &mut Pcg64Mcg) -> Vec2 {
    let shares = Vec2::new(random.random(), random.random());
    Vec2::ONE + shares * (size_m - 2.0)
}

/// Whether everything stands still, so that mirrors can be compared. Players still arrive and leave.
#[derive(Resource, Default)]
pub(in crate::cluster) struct WorldAtRest(pub bool);

/// Stops all NPCs. Repeated in every tick, because pending searches still deliver paths.
pub(super) fn rest(rest: Res<WorldAtRest>, mut paths: Query<&mut NavPath>) {
    if rest.0 {
        paths.iter_mut().for_each(|mut path| path.clear());
    }
}

/// Gives NPCs that have arrived another goal.
pub(super) fn walk(
    mut arrived: MessageReader<WalkerArrived>,
    mut failed: MessageReader<PathFailed>,
    mut streams: ResMut<RandomStreams>,
    strollers: Query<&InScene, With<Stroller>>,
    scenes: Query<&SimScene>,
    mut commands: Commands,
) {
    let arrived = arrived.read().map(|arrived| arrived.entity);
    let failed = failed.read().map(|failed| failed.entity);
    for entity in arrived.chain(failed) {
        let scene = strollers.get(entity).ok();
        if let Some(scene) = scene.and_then(|scene| scenes.get(scene.0).ok()) {
            let goal = place_in(scene.size_m(), streams.stream("strollers"));
            commands.entity(entity).insert(PathRequest::to(goal));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_counted_by_scene() {
        let mut server = Server::builder().build();
        let world = server.world_mut();
        world.init_resource::<OpenScenes>();
        OpenScenes::open_waiting_room(world).unwrap();
        for name in ["town", "cave"] {
            let scene = open_empty_scene(world, name, Vec2::splat(10.0)).unwrap();
            let mut open = world.resource_mut::<OpenScenes>();
            open.scenes.insert(name.to_owned(), scene);
        }
        let open = world.resource::<OpenScenes>();
        let (town, waiting) = (open.scenes["town"], open.waiting_room());
        for (id, scene) in [(1, town), (2, town), (3, waiting)] {
            let id = PlayerId(id);
            let place = (InScene(scene), Position(Vec2::splat(5.0)));
            world.spawn((Player, id, ClusterPlayer(id), place));
        }
        // It is no player.
        world.spawn((Npc, InScene(town), Position(Vec2::splat(5.0))));
        let counted = OpenScenes::count_players(world);
        assert_eq!(counted, [("cave".to_owned(), 0), ("town".to_owned(), 2)]);
    }
}
