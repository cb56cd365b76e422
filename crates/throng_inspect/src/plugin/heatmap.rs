//! Costs per cell, for the heat maps of pages: view links, and nodes searched for paths.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::heat::{HeatGrid, heat_frame};
use crate::protocol::HeatOf;
use throng::aoi::{AoiSettings, SceneAoiSettings, SceneInterest};
use throng::map::SceneMap;
use throng::nav::PathFound;
use throng::world::{ObjectCategory, Position, SceneId, SceneIds, Scenes, SimScene};

/// The factor that is kept of the nodes from one frame to the next: nodes of ten frames ago count a third.
const NODES_DECAY: f32 = 0.9;

/// Counters that run while a page requests them.
#[derive(Default)]
pub(super) struct HeatmapRecorder {
    path_cursor: MessageCursor<PathFound>,
    /// Nodes searched for paths, by scene and start of the path.
    nodes: BTreeMap<u32, HeatGrid>,
}

impl HeatmapRecorder {
    /// Counts the paths found since the last call, in the requested scenes. O(paths found).
    pub fn record_paths(&mut self, world: &World, wanted: &BTreeSet<(u32, HeatOf)>) {
        self.nodes
            .retain(|scene, _| wanted.contains(&(*scene, HeatOf::Nodes)));
        for &(scene, _) in wanted.iter().filter(|(_, of)| *of == HeatOf::Nodes) {
            if let Some(entity) = scene_entity(world, scene) {
                let grid = || empty_grid(world, entity);
                self.nodes.entry(scene).or_insert_with(grid);
            }
        }
        let Some(messages) = world.get_resource::<Messages<PathFound>>() else {
            return;
        };
        if self.nodes.is_empty() {
            return;
        }
        for found in self.path_cursor.read(messages) {
            let map = world.get::<SceneMap>(found.object.scene_entity());
            if let (Some(grid), Some(map)) = (self.nodes.get_mut(&found.object.scene().0), map) {
                grid.add(map.centre_of(found.from), found.nodes as f32);
            }
        }
    }

    /// The frame of a scene. O(objects of the scene) for links, O(cells) for nodes.
    pub fn frame(&mut self, world: &World, scene: u32, of: HeatOf) -> Option<Vec<u8>> {
        let entity = scene_entity(world, scene)?;
        if of == HeatOf::Nodes {
            let nodes = self.nodes.get_mut(&scene)?;
            let frame = heat_frame(scene, of, nodes);
            nodes.fade(NODES_DECAY);
            return Some(frame);
        }
        let views = world.get::<SceneInterest>(entity)?.views();
        let mut links = empty_grid(world, entity);
        for (id, object) in world.get::<SceneIds>(entity)?.iter() {
            let Some(at) = world.get::<Position>(object) else {
                continue;
            };
            let classes = [
                ObjectCategory::Player,
                ObjectCategory::Npc,
                ObjectCategory::Thing,
            ];
            let in_lists = classes.map(|class| views.list_len(id.0, class));
            let sees = in_lists.iter().sum::<usize>() + views.uncapped_len(id.0);
            links.add(at.0, sees as f32);
        }
        Some(heat_frame(scene, of, &links))
    }
}

fn scene_entity(world: &World, scene: u32) -> Option<Entity> {
    world.get_resource::<Scenes>()?.entity(SceneId(scene))
}

/// An empty grid with the cells of a scene.
fn empty_grid(world: &World, entity: Entity) -> HeatGrid {
    let size_m = world
        .get::<SimScene>(entity)
        .map_or(Vec2::ONE, SimScene::size_m);
    let spec = world.get::<SceneAoiSettings>(entity);
    let settings = world.get_resource::<AoiSettings>();
    let cell_m = spec
        .map(|spec| spec.cell_m)
        .or(settings.map(|settings| settings.cell_m));
    HeatGrid::new(size_m, cell_m.unwrap_or(size_m.max_element()))
}
