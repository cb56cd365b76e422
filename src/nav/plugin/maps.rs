//! What is prepared of the maps of all scenes: kept in step with edits, built in the background.
//!
//! ```text
//! scene opens ──▶ build ──(build_ticks)──▶ adopted ──▶ edit ──▶ repaired at once ──(build_ticks quiet)──▶ build ──▶ …
//! ```
//! A build is begun and adopted at ticks that follow from the edits alone, so that which algorithm answers in which tick
//! never depends on how fast a thread was. Scenes on the same tiles share one build and what came of it.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use bevy_tasks::{AsyncComputeTaskPool, Task, block_on};
use indexmap::IndexMap;

use super::NavSettings;
use crate::map::{MapEdited, SceneMap, TileMap, TileRect};
use crate::nav::{Algorithm, Diagonal, NavMap};

/// Scenes by entity; never sorted by it.
type ByScene<T> = IndexMap<Entity, T, foldhash::fast::FixedState>;

/// What is prepared, scene by scene.
#[derive(Debug, Default)]
pub(super) struct NavMaps {
    scenes: ByScene<Prepared>,
    builds: Vec<Build>,
    /// Serves scenes that were opened since the tick began.
    unprepared: NavMap,
    changed: Vec<TileRect>,
}

#[derive(Clone, Debug)]
struct Prepared {
    nav_map: NavMap,
    fingerprint: u64,
    /// The tick from which on a build may begin.
    quiet_from: u64,
}

/// A build of one map under way.
#[derive(Debug)]
struct Build {
    fingerprint: u64,
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
}

impl Plan {
    fn build(mut self) -> NavMap {
        // Its planes serve until the rest is there, and again when an edit has undone the rest.
        for algorithm in [FALLBACK, self.algorithm] {
            self.nav_map.prepare(&self.tiles, algorithm);
        }
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

/// What answers while a faster algorithm is not ready.
const FALLBACK: Algorithm = Algorithm::JpsBitPrune;

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

    /// Takes in opened and closed scenes and edits, begins builds, and adopts those that are due.
    pub(super) fn update(
        &mut self,
        tick: u64,
        settings: &NavSettings,
        edited: &[MapEdited],
        maps: &Query<(Entity, &SceneMap)>,
    ) {
        self.unprepared = NavMap::new(settings.diagonal);
        self.scenes.retain(|&scene, prepared| {
            maps.contains(scene) && prepared.nav_map.diagonal() == settings.diagonal
        });
        self.adopt(tick, settings.wait_for_builds);
        let build_ticks = u64::from(settings.build_ticks);
        for (scene, map) in maps {
            let tiles = map.tiles();
            let fingerprint = tiles.fingerprint();
            match self.scenes.get_mut(&scene) {
                Some(prepared) if prepared.fingerprint == fingerprint => {}
                Some(prepared) => {
                    let edits = edited.iter().filter(|edit| edit.scene_entity == scene);
                    self.changed.clear();
                    self.changed.extend(edits.map(|edit| edit.rect));
                    if self.changed.is_empty() {
                        // The map was exchanged for another.
                        prepared.nav_map = NavMap::new(settings.diagonal);
                    } else {
                        prepared.nav_map.follow_edit(tiles, &self.changed);
                    }
                    prepared.fingerprint = fingerprint;
                    prepared.quiet_from = tick + build_ticks;
                }
                None => {
                    let prepared = self.opened(fingerprint, settings.diagonal, tick);
                    self.scenes.insert(scene, prepared);
                }
            }
            let Some(prepared) = self.scenes.get(&scene) else {
                continue;
            };
            let is_missing = [FALLBACK, settings.algorithm]
                .iter()
                .any(|&algorithm| !prepared.nav_map.is_prepared(tiles, algorithm));
            let is_building = || {
                self.builds
                    .iter()
                    .any(|build| build.fingerprint == fingerprint)
            };
            if is_missing && prepared.quiet_from <= tick && !is_building() {
                self.builds.push(Build {
                    fingerprint,
                    adopt_tick: tick + build_ticks,
                    work: Plan {
                        tiles: tiles.clone(),
                        nav_map: prepared.nav_map.clone(),
                        algorithm: settings.algorithm,
                    }
                    .begin(),
                });
            }
        }
    }

    /// A scene with tiles that another may have too.
    fn opened(&self, fingerprint: u64, diagonal: Diagonal, tick: u64) -> Prepared {
        let mut scenes = self.scenes.values();
        let twin = scenes.find(|prepared| prepared.fingerprint == fingerprint);
        twin.cloned().unwrap_or(Prepared {
            nav_map: NavMap::new(diagonal),
            fingerprint,
            quiet_from: tick,
        })
    }

    /// Gives what was built to the scenes that still have those tiles.
    fn adopt(&mut self, tick: u64, wait: bool) {
        let mut still_building = Vec::new();
        for build in std::mem::take(&mut self.builds) {
            if build.adopt_tick > tick {
                still_building.push(build);
                continue;
            }
            let fingerprint = build.fingerprint;
            let scenes = self.scenes.values_mut();
            let mut waiting = scenes
                .filter(|prepared| prepared.fingerprint == fingerprint)
                .peekable();
            if waiting.peek().is_none() {
                // Edited since: the task ends with its handle.
                continue;
            }
            let built = match build.work {
                Work::Background(task) if wait || task.is_finished() => block_on(task),
                Work::Background(_) => {
                    still_building.push(build);
                    continue;
                }
                Work::Due(plan) => plan.build(),
            };
            for prepared in waiting {
                prepared.nav_map = built.clone();
            }
        }
        self.builds = still_building;
    }
}
