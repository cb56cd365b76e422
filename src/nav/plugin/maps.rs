//! What is prepared of the maps of all scenes: kept in step with edits, built in the background.
//!
//! ```text
//! scene opens ──▶ build ──(a tick)──▶ adopted ──▶ edit ──▶ planes and table repaired, graph dropped ──┐
//!                   ▲                                                        build_ticks without edit ┘
//! ```
//! A build is begun and adopted at ticks that follow from openings and edits alone, so that which algorithm answers in
//! which tick never depends on how fast a thread was. Scenes on the same tiles share a build and what came of it. What is
//! edited during a build is followed when that is adopted.
//!
//! Cost: a look at every scene a tick. A build holds the tiles, so that an edit during one copies the map.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use bevy_tasks::{AsyncComputeTaskPool, Task, block_on};
use indexmap::IndexMap;

use super::NavSettings;
use crate::map::{MapEdited, SceneMap, TileMap, TileRect};
use crate::nav::{Algorithm, NavMap};

/// What answers while a faster algorithm is not ready.
const FALLBACK: Algorithm = Algorithm::JpsBitPrune;

/// What is prepared, scene by scene.
#[derive(Debug, Default)]
pub(super) struct NavMaps {
    /// In the order of opening; looked up by entity, never sorted by it.
    scenes: IndexMap<Entity, Prepared, foldhash::fast::FixedState>,
    builds: Vec<Build>,
    unprepared: NavMap,
    changed: Vec<TileRect>,
}

#[derive(Debug)]
struct Prepared {
    nav_map: NavMap,
    fingerprint: u64,
    /// The tick from which on a build may begin, and how many ticks it is given.
    quiet_from: u64,
    build_ticks: u64,
}

/// A build of one map under way.
#[derive(Debug)]
struct Build {
    /// The tiles that it is for now: those it began with, and what they were edited to since.
    fingerprint: u64,
    changed: Vec<TileRect>,
    adopt_tick: u64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Background(Task<NavMap>),
    /// Without a pool it is done when it is due.
    Due(Plan),
}

/// What is to be built.
#[derive(Debug)]
struct Plan {
    tiles: Arc<TileMap>,
    nav_map: NavMap,
    algorithm: Algorithm,
    graph_bytes_max: usize,
}

impl Plan {
    fn build(mut self) -> NavMap {
        // Its planes serve until the rest is there, and again when an edit has undone the rest.
        self.nav_map.prepare(&self.tiles, FALLBACK);
        self.nav_map
            .prepare_within(&self.tiles, self.algorithm, self.graph_bytes_max);
        self.nav_map
    }

    fn begin(self) -> Work {
        match AsyncComputeTaskPool::try_get() {
            Some(pool) if pool.thread_num() > 0 => {
                Work::Background(pool.spawn(async move { self.build() }))
            }
            _ => Work::Due(self),
        }
    }
}

impl NavMaps {
    /// What is prepared of a scene's map.
    pub(super) fn of(&self, scene: Entity) -> &NavMap {
        self.scenes
            .get(&scene)
            .map_or(&self.unprepared, |prepared| &prepared.nav_map)
    }

    /// Bytes of everything prepared; scenes that share a structure count it each.
    pub(super) fn bytes(&self, algorithm: Algorithm) -> usize {
        let maps = self.scenes.values();
        maps.map(|prepared| prepared.nav_map.prepared_bytes(algorithm))
            .sum()
    }

    /// Takes in opened and closed scenes and edits, adopts builds that are due, and begins those that are missing.
    ///
    /// `scenes` are all scenes that have a map, by their numbers, so that storage order does not show.
    pub(super) fn update(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        edited: &[MapEdited],
        scenes: &[(Entity, &SceneMap)],
    ) {
        self.scenes
            .retain(|scene, _| scenes.iter().any(|(open, _)| open == scene));
        for &(scene, map) in scenes {
            self.follow(tick, settings, edited, scene, map);
        }
        for &(scene, map) in scenes {
            if !self.scenes.contains_key(&scene) {
                let prepared = self.opened(map, settings.algorithm, tick);
                self.scenes.insert(scene, prepared);
            }
        }
        self.adopt(tick, settings.wait_for_builds, scenes);
        for &(scene, map) in scenes {
            self.build_missing(tick, settings, scene, map.tiles());
        }
    }

    /// Follows the edits of a scene's map, or starts anew with a map that was exchanged.
    fn follow(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        edited: &[MapEdited],
        scene: Entity,
        map: &SceneMap,
    ) {
        let fingerprint = map.tiles().fingerprint();
        let Some(prepared) = self.scenes.get_mut(&scene) else {
            return;
        };
        if prepared.fingerprint == fingerprint {
            return;
        }
        self.changed.clear();
        let mut reached = prepared.fingerprint;
        for edit in edited.iter().filter(|edit| edit.scene_entity == scene) {
            if edit.before == reached {
                self.changed.push(edit.rect);
                reached = edit.after;
            }
        }
        if reached == fingerprint {
            prepared.nav_map.follow_edit(map.tiles(), &self.changed);
            let building = self.builds.iter_mut();
            for build in building.filter(|build| build.fingerprint == prepared.fingerprint) {
                build.fingerprint = fingerprint;
                build.changed.extend_from_slice(&self.changed);
            }
        } else {
            prepared.nav_map = NavMap::default();
        }
        prepared.fingerprint = fingerprint;
        prepared.build_ticks = u64::from(settings.build_ticks);
        prepared.quiet_from = tick + prepared.build_ticks;
    }

    /// A scene with tiles that another may have too.
    fn opened(&self, map: &SceneMap, algorithm: Algorithm, tick: u64) -> Prepared {
        let tiles = map.tiles();
        let twin = self
            .scenes
            .values()
            .find(|prepared| prepared.nav_map.is_prepared(tiles, algorithm));
        Prepared {
            nav_map: twin.map(|twin| twin.nav_map.clone()).unwrap_or_default(),
            fingerprint: tiles.fingerprint(),
            quiet_from: tick,
            build_ticks: 1,
        }
    }

    /// Gives what was built to the scenes that have those tiles.
    fn adopt(&mut self, tick: u64, wait: bool, scenes: &[(Entity, &SceneMap)]) {
        for mut build in std::mem::take(&mut self.builds) {
            if build.adopt_tick > tick {
                self.builds.push(build);
                continue;
            }
            let mut waiting = self.scenes.values();
            if !waiting.any(|prepared| prepared.fingerprint == build.fingerprint) {
                continue;
            }
            let mut built = match build.work {
                Work::Background(task) if wait || task.is_finished() => block_on(task),
                Work::Background(_) => {
                    self.builds.push(build);
                    continue;
                }
                Work::Due(plan) => plan.build(),
            };
            for (scene, map) in scenes {
                let Some(prepared) = self.scenes.get_mut(scene) else {
                    continue;
                };
                if prepared.fingerprint != build.fingerprint {
                    continue;
                }
                if !build.changed.is_empty() {
                    built.follow_edit(map.tiles(), &build.changed);
                    build.changed.clear();
                }
                prepared.nav_map = built.clone();
            }
        }
    }

    fn build_missing(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        scene: Entity,
        tiles: &Arc<TileMap>,
    ) {
        let Some(prepared) = self.scenes.get(&scene) else {
            return;
        };
        let is_complete = [FALLBACK, settings.algorithm]
            .iter()
            .all(|&algorithm| prepared.nav_map.is_prepared(tiles, algorithm));
        let is_building = || {
            let mut builds = self.builds.iter();
            builds.any(|build| build.fingerprint == prepared.fingerprint)
        };
        if is_complete || prepared.quiet_from > tick || is_building() {
            return;
        }
        let tile_count = tiles.rect().tile_count() as f32;
        let plan = Plan {
            tiles: tiles.clone(),
            nav_map: prepared.nav_map.clone(),
            algorithm: settings.algorithm,
            graph_bytes_max: (settings.graph_bytes_per_tile_max * tile_count) as usize,
        };
        self.builds.push(Build {
            fingerprint: prepared.fingerprint,
            changed: Vec::new(),
            adopt_tick: tick + prepared.build_ticks,
            work: plan.begin(),
        });
    }
}
