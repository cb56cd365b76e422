//! An exact viewer: its lists, and how they are checked and computed.

use glam::Vec2;
use throng_core::memory::MemoryUse;

use super::reach::{ChangedCells, ExactSight};
use crate::priority::{DistanceBands, rank_of};
use crate::views::events::{ViewEvent, ViewLeaveReason};
use crate::views::state::object::{LIST_COUNT, UNCAPPED};
use crate::views::state::scene_state::SceneState;

/// Buffers of a worker, kept between updates.
#[derive(Clone, Debug, Default, MemoryUse)]
pub(crate) struct ExactScratch {
    /// The visible targets in reach, by list.
    found: [Vec<u32>; LIST_COUNT],
    /// Sort keys of competitors for the slots of a list.
    keys: Vec<u64>,
}

/// A viewer without a row.
#[derive(Clone, Debug, MemoryUse)]
pub(crate) struct ExactViewer {
    pub(crate) id: u32,
    /// Its own radius; `None` if it sees the nine cells, under rules by distance.
    pub(crate) radius_m: Option<f32>,
    /// Its targets by list, ascending.
    pub(crate) lists: [Vec<u32>; LIST_COUNT],
    /// A scan may change its lists.
    pub(crate) is_due: bool,
    /// The update in which it became due, while it waits for a scan.
    pub(crate) waits_since: Option<u32>,
    /// It scans in this update.
    pub(crate) scans: bool,
    /// Its position in the last update.
    last_position: Vec2,
    /// Its changes in this update.
    pub(crate) events: Vec<ViewEvent>,
}

impl ExactViewer {
    pub(crate) const fn new(id: u32, radius_m: Option<f32>, lists: [Vec<u32>; LIST_COUNT]) -> Self {
        Self {
            id,
            radius_m,
            lists,
            is_due: true,
            waits_since: None,
            scans: false,
            last_position: Vec2::NAN,
            events: Vec::new(),
        }
    }

    /// Ends the links that are no longer allowed, and notes whether a scan may find others.
    pub(crate) fn recheck(
        &mut self,
        shared: &SceneState,
        changes: &ChangedCells,
        scratch: &mut ExactScratch,
    ) {
        let here = shared.position(self.id);
        // An unknown position (NaN) counts as a movement, which is harmless.
        let has_moved = here != self.last_position;
        self.last_position = here;
        self.is_due |= has_moved || changes.touch(shared, self.id, self.radius_m);
        let (id, sight) = (self.id, ExactSight::new(shared, self.id, self.radius_m));
        for list in 0..LIST_COUNT {
            let events = &mut self.events;
            let before = self.lists[list].len();
            self.lists[list].retain(|&target| {
                let obstacle = sight.obstacle(target);
                if let Some(reason) = obstacle {
                    events.push(leave(id, target, reason, list));
                }
                obstacle.is_none()
            });
            self.is_due |= self.lists[list].len() < before;
            if self.lists[list].len() > cap_of(shared, id, list) {
                let mut kept = std::mem::take(&mut scratch.found[list]);
                kept.clear();
                kept.extend_from_slice(&self.lists[list]);
                self.keep_best(shared, list, &mut kept, &mut scratch.keys);
                self.replace_list(shared, list, &kept);
                scratch.found[list] = kept;
            }
        }
    }

    /// Computes all lists anew.
    pub(crate) fn scan(&mut self, shared: &SceneState, scratch: &mut ExactScratch) {
        scratch.found.iter_mut().for_each(Vec::clear);
        let (id, radius_m) = (self.id, self.radius_m);
        let sight = ExactSight::new(shared, id, radius_m);
        shared.visit_reach(id, radius_m, |target| {
            if target != id && sight.obstacle(target).is_none() {
                scratch.found[shared.object(target).list()].push(target);
            }
        });
        for list in 0..LIST_COUNT {
            let mut found = std::mem::take(&mut scratch.found[list]);
            self.keep_best(shared, list, &mut found, &mut scratch.keys);
            self.replace_list(shared, list, &found);
            scratch.found[list] = found;
        }
        self.is_due = false;
        self.waits_since = None;
        self.scans = false;
    }

    /// Reduces targets to those of the highest rank, up to the cap of their list, and sorts them by id. Of equal ones, members go
    /// first, then lower ids.
    fn keep_best(
        &self,
        shared: &SceneState,
        list: usize,
        targets: &mut Vec<u32>,
        keys: &mut Vec<u64>,
    ) {
        let cap = cap_of(shared, self.id, list);
        if targets.len() > cap {
            let (bands, here) = (self.bands(shared), shared.position(self.id));
            keys.clear();
            keys.extend(targets.iter().map(|&target| {
                let there = shared.position(target);
                let is_member = self.lists[list].binary_search(&target).is_ok();
                let nearness = if is_member {
                    bands.nearness_of_member(here, there)
                } else {
                    bands.nearness(here, there)
                };
                let rank = rank_of(shared.class(self.id, target), nearness);
                u64::from(!rank) << 33 | u64::from(!is_member) << 32 | u64::from(target)
            }));
            keys.select_nth_unstable(cap);
            targets.clear();
            targets.extend(keys[..cap].iter().map(|&key| key as u32));
        }
        targets.sort_unstable();
    }

    /// The distance bands of the viewer: quarters of its radius, of half the scene if it sees the whole scene.
    fn bands(&self, shared: &SceneState) -> DistanceBands {
        let Some(radius_m) = self.radius_m else {
            return shared.ranking.bands;
        };
        let (columns, rows) = shared.grid.size();
        let scene_m = f32::from(columns.max(rows)) * shared.grid.cell_m();
        DistanceBands::new(radius_m.min(scene_m) / 2.0)
    }

    /// Replaces a list by another one, ascending, of targets that it may see.
    fn replace_list(&mut self, shared: &SceneState, list: usize, targets: &[u32]) {
        let members = &mut self.lists[list];
        if members == targets {
            return;
        }
        // Both are sorted, so one pass finds the difference.
        let mut kept = targets.iter().peekable();
        for &target in members.iter() {
            while kept.next_if(|&&other| other < target).is_some() {}
            if kept.next_if_eq(&&target).is_none() {
                let reason = ViewLeaveReason::Evicted;
                self.events.push(leave(self.id, target, reason, list));
            }
        }
        let mut known = members.iter().peekable();
        for &target in targets {
            while known.next_if(|&&other| other < target).is_some() {}
            if known.next_if_eq(&&target).is_none() {
                self.events.push(ViewEvent::Enter {
                    viewer: self.id,
                    target,
                    priority: shared.class(self.id, target),
                    list: list as u8,
                });
            }
        }
        members.clear();
        members.extend_from_slice(targets);
    }
}

/// The cap of a list of a viewer.
fn cap_of(shared: &SceneState, viewer: u32, list: usize) -> usize {
    let cap = shared.object(viewer).caps.get(list);
    cap.map_or(usize::MAX, |&cap| cap.into())
}

const fn leave(viewer: u32, target: u32, reason: ViewLeaveReason, list: usize) -> ViewEvent {
    ViewEvent::Leave {
        viewer,
        target,
        reason,
        list: list as u8,
    }
}

const _: () = assert!(UNCAPPED + 1 == LIST_COUNT);
