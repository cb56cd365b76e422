//! Heat maps of the positions in scenes during a run, and the tracks of some objects.

use bevy_ecs::prelude::*;
use glam::Vec2;
use serde::{Deserialize, Serialize};

use throng::map::{SceneMap, TileMap};
use throng::movement::MaxSpeed;
use throng::world::{Object, ObjectCategory, ObjectKinds, Position, SceneIds, Scenes, SimScene};

/// Maximum number of recorded scenes; the first ones of a run are recorded.
const SCENES_MAX: usize = 4;

/// Cells of the heat map along the longer side of a scene.
const CELLS_PER_SIDE: u32 = 96;

/// Squares of the drawn map along the longer side of a scene.
const SQUARES_PER_SIDE: u32 = 192;

/// Maximum number of tiles sampled along the side of a square.
const TILES_SAMPLED: u32 = 6;

/// Number of objects per scene whose tracks are kept.
const TRACKS_MAX: usize = 12;

/// Maximum number of points of a track; when it is full, every second one is dropped.
const TRACK_POINTS_MAX: usize = 256;

/// The record of a scene over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SceneRecord {
    /// The scene's name.
    pub scene: String,
    /// Its width, metres.
    pub width_m: f32,
    /// Its height, metres.
    pub height_m: f32,
    /// Number of samples of the crowd.
    #[serde(alias = "looks")]
    pub samples: u64,
    /// Cells of the heat map in a row.
    pub columns: u32,
    /// Rows of the heat map.
    pub rows: u32,
    /// Number of objects seen in each cell over all samples, row by row from the top.
    pub heat: Vec<u32>,
    /// The map, row by row from the top: a digit per square, from 0 for free ground to 9 for blocked ground.
    pub map: Vec<String>,
    /// Tracks of some objects, metres.
    pub tracks: Vec<Vec<[f32; 2]>>,
}

/// The scenes of a run.
#[derive(Debug, Default)]
pub(super) struct SceneRecorder {
    scenes: Vec<(Entity, WatchedScene)>,
}

#[derive(Debug)]
struct WatchedScene {
    record: SceneRecord,
    tracked: Vec<ObjectTrack>,
}

#[derive(Debug)]
struct ObjectTrack {
    entity: Entity,
    track: Track,
    is_gone: bool,
}

/// The track of an object at even intervals, in bounded memory.
#[derive(Clone, Debug)]
struct Track {
    points: Vec<Vec2>,
    /// Interval between kept points, in samples.
    keep_every: u64,
    samples: u64,
    last: Vec2,
}

impl Track {
    fn new(at: Vec2) -> Self {
        Self {
            points: vec![at],
            keep_every: 1,
            samples: 0,
            last: at,
        }
    }

    fn add(&mut self, at: Vec2) {
        self.samples += 1;
        self.last = at;
        if !self.samples.is_multiple_of(self.keep_every) {
            return;
        }
        if self.points.len() == TRACK_POINTS_MAX {
            let mut nth = 0;
            self.points.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.keep_every *= 2;
        }
        if self.samples.is_multiple_of(self.keep_every) {
            self.points.push(at);
        }
    }

    /// The kept points and the last position, without consecutive duplicates.
    fn to_points(&self) -> Vec<[f32; 2]> {
        let tenths = |at: Vec2| ((at * 10.0).round() / 10.0).to_array();
        let mut points: Vec<[f32; 2]> = self.points.iter().copied().map(tenths).collect();
        points.push(tenths(self.last));
        points.dedup();
        points
    }
}

impl SceneRecorder {
    /// Samples all positions.
    pub fn sample(&mut self, world: &World) {
        for (_, entity) in world.resource::<Scenes>().iter() {
            let is_known = self.scenes.iter().any(|(known, _)| *known == entity);
            if !is_known
                && self.scenes.len() < SCENES_MAX
                && let Some(scene) = world.get::<SimScene>(entity)
            {
                self.scenes.push((entity, WatchedScene::new(scene)));
            }
        }
        for (scene, watched) in &mut self.scenes {
            if let Some(objects) = world.get::<SceneIds>(*scene) {
                watched.sample(world, *scene, objects);
            }
            if let Some(map) = world.get::<SceneMap>(*scene)
                && watched.record.map.is_empty()
            {
                watched.record.map = draw_map(map.tiles());
            }
        }
    }

    /// The result. Maps are recorded in their current state.
    pub fn finish(self, world: &World) -> Vec<SceneRecord> {
        let finish = |(scene, watched): (Entity, WatchedScene)| {
            let mut record = watched.record;
            if let Some(map) = world.get::<SceneMap>(scene) {
                record.map = draw_map(map.tiles());
            }
            let followed = watched.tracked.iter();
            record.tracks = followed.map(|one| one.track.to_points()).collect();
            record
        };
        self.scenes.into_iter().map(finish).collect()
    }
}

impl WatchedScene {
    fn new(scene: &SimScene) -> Self {
        let size = scene.size_m().max(Vec2::ONE);
        let (columns, rows) = grid_size(size.x, size.y, CELLS_PER_SIDE);
        Self {
            record: SceneRecord {
                scene: scene.name().to_owned(),
                width_m: size.x,
                height_m: size.y,
                samples: 0,
                columns,
                rows,
                heat: vec![0; (columns * rows) as usize],
                map: Vec::new(),
                tracks: Vec::new(),
            },
            tracked: Vec::new(),
        }
    }

    fn sample(&mut self, world: &World, scene: Entity, objects: &SceneIds) {
        let SceneRecord {
            columns,
            rows,
            width_m,
            height_m,
            ..
        } = self.record;
        self.record.samples += 1;
        for (_, entity) in objects.iter() {
            let Some(Position(at)) = world.get::<Position>(entity) else {
                continue;
            };
            let cell = |part: f32, count: u32| ((part * count as f32) as u32).min(count - 1);
            let (x, y) = (cell(at.x / width_m, columns), cell(at.y / height_m, rows));
            let count = &mut self.record.heat[(y * columns + x) as usize];
            *count = count.saturating_add(1);
        }
        for followed in self.tracked.iter_mut().filter(|one| !one.is_gone) {
            let is_here = world
                .get::<Object>(followed.entity)
                .is_some_and(|object| object.scene_entity() == scene);
            match world.get::<Position>(followed.entity) {
                Some(position) if is_here => followed.track.add(position.0),
                _ => followed.is_gone = true,
            }
        }
        if self.tracked.len() < TRACKS_MAX {
            self.track_more(world, objects);
        }
    }

    /// Starts tracks of objects that can walk, spread evenly over their ids: NPCs, or other objects if there are no NPCs.
    fn track_more(&mut self, world: &World, objects: &SceneIds) {
        let kinds = world.resource::<ObjectKinds>();
        let walkers = objects.iter().filter(|(_, entity)| {
            let is_known = self.tracked.iter().any(|one| one.entity == *entity);
            world.get::<MaxSpeed>(*entity).is_some() && !is_known
        });
        let is_npc = |entity: Entity| {
            let object = world.get::<Object>(entity);
            let kind = object.and_then(|object| kinds.get(object.kind()));
            kind.is_some_and(|kind| kind.class == ObjectCategory::Npc)
        };
        let (mut npcs, mut others) = (Vec::new(), Vec::new());
        for (_, entity) in walkers {
            let of_class = if is_npc(entity) {
                &mut npcs
            } else {
                &mut others
            };
            of_class.push(entity);
        }
        let chosen = if npcs.is_empty() { others } else { npcs };
        let free = TRACKS_MAX - self.tracked.len();
        let step = chosen.len().div_ceil(free).max(1);
        for entity in chosen.into_iter().step_by(step) {
            if let Some(position) = world.get::<Position>(entity) {
                self.tracked.push(ObjectTrack {
                    entity,
                    track: Track::new(position.0),
                    is_gone: false,
                });
            }
        }
    }
}

/// Columns and rows of squares; `longer` is their number along the longer side.
fn grid_size(width: f32, height: f32, longer: u32) -> (u32, u32) {
    let side = width.max(height) / longer as f32;
    let count = |length: f32| ((length / side).ceil() as u32).clamp(1, longer);
    (count(width), count(height))
}

/// Draws the map as digits: the blocked share of each square in ninths, rounded up.
fn draw_map(map: &TileMap) -> Vec<String> {
    let (width, height) = (map.width(), map.height());
    let (columns, rows) = grid_size(
        width as f32,
        height as f32,
        SQUARES_PER_SIDE.min(width.max(height)),
    );
    let span = |nth: u32, count: u32, length: u32| {
        let (from, to) = (
            u64::from(nth) * u64::from(length) / u64::from(count),
            u64::from(nth + 1) * u64::from(length) / u64::from(count),
        );
        let step = ((to - from).div_ceil(u64::from(TILES_SAMPLED))).max(1);
        (from..to.max(from + 1)).step_by(step as usize)
    };
    let square = |x: u32, y: u32| {
        let (mut blocked, mut all) = (0, 0);
        for tile_y in span(y, rows, height) {
            for tile_x in span(x, columns, width) {
                all += 1;
                blocked += u32::from(map.is_blocked((tile_x as i32, tile_y as i32).into()));
            }
        }
        char::from_digit((blocked * 9).div_ceil(all.max(1)), 10).unwrap_or('9')
    };
    let row = |y| (0..columns).map(|x| square(x, y)).collect();
    (0..rows).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn track_is_bounded_and_ends_at_its_object() {
        let mut track = Track::new(Vec2::ZERO);
        for nth in 1..=10_000 {
            track.add(Vec2::new(nth as f32, 0.0));
        }
        let points = track.to_points();
        assert!(points.len() <= TRACK_POINTS_MAX + 1, "{}", points.len());
        assert_eq!(
            (points[0], points.last()),
            ([0.0, 0.0], Some(&[10_000.0, 0.0]))
        );
        let steps: Vec<f32> = points
            .windows(2)
            .map(|pair| pair[1][0] - pair[0][0])
            .collect();
        let (last, even) = steps.split_last().unwrap();
        assert!(
            even.iter().all(|step| *step == track.keep_every as f32),
            "{even:?}"
        );
        assert!(*last <= track.keep_every as f32);
        let mut still = Track::new(Vec2::ONE);
        (0..50).for_each(|_| still.add(Vec2::ONE));
        assert_eq!(still.to_points(), [[1.0, 1.0]]);
    }

    #[test]
    fn map_drawing_is_bounded_and_shows_thin_walls() {
        let map = TileMap::from_ascii("..@\n@..").unwrap();
        assert_eq!(draw_map(&map), ["009", "900"]);
        let wide = TileMap::from_fn(1_000, 500, |x, _| x == 500).unwrap();
        let rows = draw_map(&wide);
        assert_eq!((rows.len(), rows[0].len()), (96, 192));
        assert!(rows.iter().all(|row| row.matches(|c| c > '0').count() <= 1));
        assert_eq!(grid_size(10.0, 1_000.0, 96), (1, 96));
    }
}
