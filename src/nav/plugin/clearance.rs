//! Maps eroded for walkers wider than a tile: built in the background at the first request, and from then on edited with
//! their scenes' maps, in the same tick.
//!
//! Scenes with the same tiles share them until one is edited. They are kept until their scenes close.
//!
//! Cost: for every clearance in use, an edit costs once more what it costs the map itself, and so do pending splits, within a
//! common limit for all.

use std::sync::Arc;

use super::background::Background;
use super::build_late::NavBuildLate;
use super::ground::{GroundError, MapEdit, MapKey, edits_between};
use super::stats::MapBuildStats;
use crate::map::{TileMap, TileRect, split_runs_per_map};

/// The eroded maps, in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct ClearanceMaps(Vec<ClearanceMap>);

#[derive(Debug)]
struct ClearanceMap {
    map: MapKey,
    /// The fingerprint of the scene's tiles that it is derived from.
    base_fingerprint: u64,
    state: ClearanceState,
}

#[derive(Debug)]
enum ClearanceState {
    Requested,
    /// Being built, for this tick, from tiles that were edited in these rectangles since.
    Building(u64, Background<TileMap>, Vec<TileRect>),
    Ready(Arc<TileMap>),
}

impl ClearanceMaps {
    pub(super) fn tiles(&self, map: MapKey) -> Result<&Arc<TileMap>, GroundError> {
        let mut erosions = self.0.iter();
        let erosion = erosions.find(|erosion| erosion.map == map);
        match &erosion.ok_or(GroundError::TooWide)?.state {
            ClearanceState::Ready(tiles) => Ok(tiles),
            _ => Err(GroundError::Building),
        }
    }

    pub(super) fn request(&mut self, map: MapKey) {
        if !self.0.iter().any(|erosion| erosion.map == map) {
            self.0.push(ClearanceMap {
                map,
                base_fingerprint: 0,
                state: ClearanceState::Requested,
            });
        }
    }

    /// The bytes of all finished maps; scenes that share one count it each.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |erosion: &ClearanceMap| match &erosion.state {
            ClearanceState::Ready(tiles) => tiles.memory().total_bytes(),
            _ => 0,
        };
        self.0.iter().map(bytes).sum()
    }

    /// Finishes the builds that the next tick adopts, if `wait` is true.
    pub(super) fn finish_before_tick(&mut self, wait: bool, stats: &mut MapBuildStats) {
        for erosion in &mut self.0 {
            let state = std::mem::replace(&mut erosion.state, ClearanceState::Requested);
            erosion.state = match state {
                ClearanceState::Building(due_tick, work, changed) => ClearanceState::Building(
                    due_tick,
                    work.finish_before_tick(wait, stats),
                    changed,
                ),
                other => other,
            };
        }
    }

    /// Applies the edits of the scenes' maps, finishes pending splits, adopts builds of earlier ticks, and
    /// starts requested ones.
    /// Adds the eroded maps to `maps`, their changes to `edits`, and late ones to `late`.
    pub(super) fn update(
        &mut self,
        tick: u64,
        wait: bool,
        edits: &mut Vec<MapEdit>,
        maps: &mut Vec<(MapKey, Arc<TileMap>)>,
        stats: &mut MapBuildStats,
        late: &mut Vec<NavBuildLate>,
    ) {
        let base_of = |map: MapKey| {
            let key = MapKey {
                clearance: 0,
                ..map
            };
            let mut bases = maps.iter();
            bases.find(|base| base.0 == key).map(|base| base.1.clone())
        };
        let unsettled = self.0.iter().filter(|erosion| !erosion.is_settled());
        let unsettled = unsettled.count();
        let mut ready = Vec::new();
        let mut wanted = Vec::new();
        self.0.retain_mut(|erosion| {
            let Some(base) = base_of(erosion.map) else {
                return false;
            };
            if erosion.base_fingerprint != base.fingerprint()
                || matches!(erosion.state, ClearanceState::Building(..))
            {
                let due_tick = match erosion.state {
                    ClearanceState::Building(due_tick, ..) => Some(due_tick),
                    _ => None,
                };
                erosion.apply_edits(&base, wait, edits);
                let is_ready = matches!(erosion.state, ClearanceState::Ready(_));
                if let Some(due_tick) = due_tick.filter(|_| is_ready) {
                    stats.count_adopted(tick, due_tick);
                    late.extend(NavBuildLate::of(erosion.map, tick, due_tick));
                }
            }
            if unsettled > 0 && !erosion.is_settled() {
                erosion.finish_splits(split_runs_per_map(unsettled));
            }
            match &erosion.state {
                ClearanceState::Ready(tiles) => ready.push((erosion.map, tiles.clone())),
                ClearanceState::Requested => wanted.push((erosion.map, base)),
                ClearanceState::Building(..) => {}
            }
            true
        });
        for (map, base) in wanted {
            let is_twin = |erosion: &&ClearanceMap| {
                erosion.map.clearance == map.clearance
                    && erosion.base_fingerprint == base.fingerprint()
            };
            let state = match self.0.iter().find(is_twin).map(|twin| &twin.state) {
                Some(ClearanceState::Ready(tiles)) => {
                    ready.push((map, tiles.clone()));
                    ClearanceState::Ready(tiles.clone())
                }
                Some(_) => continue,
                None => {
                    let tiles = base.clone();
                    ClearanceState::Building(
                        tick + 1,
                        Background::start(move || tiles.eroded(map.clearance)),
                        Vec::new(),
                    )
                }
            };
            if let Some(erosion) = self.0.iter_mut().find(|erosion| erosion.map == map) {
                (erosion.base_fingerprint, erosion.state) = (base.fingerprint(), state);
            }
        }
        maps.extend(ready);
    }
}

impl ClearanceMap {
    fn is_settled(&self) -> bool {
        match &self.state {
            ClearanceState::Ready(tiles) => tiles.has_final_regions(),
            _ => true,
        }
    }

    fn finish_splits(&mut self, runs_max: usize) {
        if let ClearanceState::Ready(tiles) = &mut self.state {
            Arc::make_mut(tiles).finish_splits(runs_max);
        }
    }

    /// Updates the map to the current tiles of the scene.
    fn apply_edits(&mut self, base: &TileMap, wait: bool, edits: &mut Vec<MapEdit>) {
        let key = MapKey {
            clearance: 0,
            ..self.map
        };
        let mut rects = Vec::new();
        let is_followed = edits_between(
            edits,
            key,
            self.base_fingerprint,
            base.fingerprint(),
            &mut rects,
        );
        self.base_fingerprint = base.fingerprint();
        let clearance = self.map.clearance;
        self.state = match std::mem::replace(&mut self.state, ClearanceState::Requested) {
            ClearanceState::Ready(mut tiles) if is_followed => {
                let eroded = Arc::make_mut(&mut tiles);
                for rect in rects {
                    let before = eroded.fingerprint();
                    if let Some(rect) = eroded.update_eroded(base, rect, clearance) {
                        edits.push(MapEdit {
                            map: self.map,
                            rect,
                            before,
                            after: eroded.fingerprint(),
                        });
                    }
                }
                ClearanceState::Ready(tiles)
            }
            ClearanceState::Building(due_tick, work, mut changed) if is_followed => {
                changed.extend(rects);
                match work.finish(wait) {
                    Ok(mut eroded) => {
                        for rect in changed {
                            eroded.update_eroded(base, rect, clearance);
                        }
                        ClearanceState::Ready(Arc::new(eroded))
                    }
                    Err(work) => ClearanceState::Building(due_tick, work, changed),
                }
            }
            _ => ClearanceState::Requested,
        };
        if matches!(self.state, ClearanceState::Requested) {
            self.base_fingerprint = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bevy_ecs::prelude::*;
    use bevy_tasks::TaskPoolBuilder;

    use super::*;
    use crate::map::TileEdit;

    #[test]
    fn edit_during_a_clearance_build_is_applied() {
        let pool = TaskPoolBuilder::new().num_threads(1).build();
        // The build ends in the fourth tick.
        for edited_tick in 0..5 {
            let key = |clearance| MapKey {
                scene: Entity::PLACEHOLDER,
                clearance,
            };
            let mut base = TileMap::new(40, 40, false).unwrap();
            let (end, ended) = mpsc::channel();
            let tiles = base.clone();
            let build = pool.spawn(async move {
                ended.recv().ok();
                tiles.eroded(2)
            });
            let mut erosions = ClearanceMaps(vec![ClearanceMap {
                map: key(2),
                base_fingerprint: base.fingerprint(),
                state: ClearanceState::Building(1, Background::Task(build), Vec::new()),
            }]);
            for tick in 0..5 {
                let mut edits = Vec::new();
                if tick == edited_tick {
                    let before = base.fingerprint();
                    let rect = TileRect::new(20, 20, 3, 1);
                    base.edit(rect, &TileEdit::Block).unwrap();
                    edits.push(MapEdit {
                        map: key(0),
                        rect,
                        before,
                        after: base.fingerprint(),
                    });
                }
                let is_due = tick == 3;
                if is_due {
                    end.send(()).unwrap();
                }
                let mut maps = vec![(key(0), Arc::new(base.clone()))];
                let (mut stats, mut late) = (MapBuildStats::default(), Vec::new());
                erosions.update(tick, is_due, &mut edits, &mut maps, &mut stats, &mut late);
                assert_eq!(erosions.tiles(key(2)).is_ok(), tick >= 3);
            }
            let eroded = erosions.tiles(key(2)).unwrap();
            assert!(**eroded == base.eroded(2), "edited in tick {edited_tick}");
        }
    }
}
