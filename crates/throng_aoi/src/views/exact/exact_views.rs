//! All exact viewers of a scene, and which of them are due for a scan.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use glam::Vec2;
use throng_core::memory::MemoryUse;

use super::exact_viewer::{ExactScratch, ExactViewer};
use super::reach::ChangedCells;
use crate::priority::DistanceRules;
use crate::views::state::scene_state::SceneState;

/// The exact viewers, and the radii that the next update applies.
#[derive(Clone, Debug, MemoryUse)]
pub(crate) struct ExactViews {
    /// Ascending by id.
    #[memory(each)]
    pub(crate) viewers: Vec<ExactViewer>,
    /// Viewers whose radius, or the rules by distance, changed since the last update.
    pub(crate) pending_radii: BTreeMap<u32, Option<f32>>,
    /// The number of viewers that scan in one update.
    pub(crate) scans_max: u32,
    /// The objects with changes other than a movement in this update.
    changed: Vec<u32>,
    /// The positions of all objects in the last update; empty without exact viewers.
    last_positions: Vec<Vec2>,
    pub(crate) changed_cells: ChangedCells,
    /// The due viewers of this update: the number of updates that they waited, and their index.
    due: Vec<(u32, u32)>,
    /// The viewers that the last update deferred, those that wait longest first.
    waiting: Vec<u32>,
    #[memory(each)]
    pub(crate) scratch: Vec<ExactScratch>,
}

impl Default for ExactViews {
    fn default() -> Self {
        Self {
            viewers: Vec::new(),
            pending_radii: BTreeMap::new(),
            scans_max: u32::MAX,
            changed: Vec::new(),
            last_positions: Vec::new(),
            changed_cells: ChangedCells::default(),
            due: Vec::new(),
            waiting: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

impl ExactViews {
    fn place(&self, id: u32) -> Result<usize, usize> {
        self.viewers.binary_search_by_key(&id, |viewer| viewer.id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&ExactViewer> {
        self.viewers.get(self.place(id).ok()?)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut ExactViewer> {
        let place = self.place(id).ok()?;
        self.viewers.get_mut(place)
    }

    pub(crate) fn insert(&mut self, viewer: ExactViewer) {
        match self.place(viewer.id) {
            Ok(place) => self.viewers[place] = viewer,
            Err(place) => self.viewers.insert(place, viewer),
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<ExactViewer> {
        let place = self.place(id).ok()?;
        self.waiting.retain(|&waiting| waiting != id);
        Some(self.viewers.remove(place))
    }

    /// A new viewer of a scene with rules by distance is an exact viewer from the next update on.
    pub(crate) fn note_new_viewer(&mut self, id: u32, rules: &DistanceRules) {
        if !rules.is_empty() {
            self.pending_radii.entry(id).or_insert(None);
        }
    }

    /// Notes the objects that were changed, or changed their cell, in this update.
    pub(crate) fn note_changed(&mut self, changed: &[u32]) {
        if !self.viewers.is_empty() {
            self.changed.extend_from_slice(changed);
        }
    }

    /// Removes a member that is gone; its viewer is due for a scan.
    pub(crate) fn forget(&mut self, viewer: u32, list: usize, target: u32) {
        if let Some(viewer) = self.get_mut(viewer) {
            viewer.lists[list].retain(|&member| member != target);
            viewer.is_due = true;
        }
    }

    /// The targets of a viewer, list by list, by id.
    pub(crate) fn seen_by(&self, viewer: u32) -> impl Iterator<Item = u32> + '_ {
        let lists = self.get(viewer).map(|viewer| &viewer.lists);
        lists.into_iter().flatten().flatten().copied()
    }

    pub(crate) fn sees(&self, viewer: u32, list: usize, target: u32) -> bool {
        self.get(viewer)
            .is_some_and(|viewer| viewer.lists[list].binary_search(&target).is_ok())
    }

    pub(crate) fn list_len(&self, viewer: u32, list: usize) -> usize {
        self.get(viewer)
            .map_or(0, |viewer| viewer.lists[list].len())
    }

    /// The viewers of a target, by id.
    pub(crate) fn watchers(&self, list: usize, target: u32) -> impl Iterator<Item = u32> + '_ {
        let sees = move |viewer: &&ExactViewer| viewer.lists[list].binary_search(&target).is_ok();
        self.viewers.iter().filter(sees).map(|viewer| viewer.id)
    }

    /// The viewers that were due for a scan and were deferred, in the order in which they are served.
    pub(crate) fn waiting(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.waiting.iter().copied()
    }

    /// Finds the cells in which objects moved or changed since the last update. False if no viewer may lose or gain a target.
    pub(crate) fn collect_changes(&mut self, shared: &SceneState) -> bool {
        let mut changed = std::mem::take(&mut self.changed);
        let mut has_work = !changed.is_empty();
        for id in changed.drain(..) {
            self.changed_cells.note(shared, id);
            if shared.object(id).is_exact()
                && let Some(viewer) = self.get_mut(id)
            {
                viewer.is_due = true;
            }
        }
        self.changed = changed;
        self.last_positions
            .resize(shared.positions.len(), Vec2::NAN);
        let positions = self.last_positions.iter_mut().zip(&shared.positions);
        for (id, (last, &now)) in (0..).zip(positions) {
            // False for NaN; such a movement counts again in every update.
            if *last != now {
                *last = now;
                has_work = true;
                self.changed_cells.note(shared, id);
            }
        }
        has_work || self.viewers.iter().any(|viewer| viewer.is_due)
    }

    /// Selects the viewers that scan in this update; returns how many do, and how many are deferred.
    pub(crate) fn choose_scans(&mut self, update_count: u32) -> (usize, usize) {
        self.due.clear();
        self.waiting.clear();
        for (place, viewer) in (0..).zip(&mut self.viewers) {
            if viewer.is_due {
                let since = *viewer.waits_since.get_or_insert(update_count);
                self.due.push((update_count.wrapping_sub(since), place));
            }
        }
        let scans = self.due.len().min(self.scans_max as usize);
        if scans < self.due.len() {
            self.due
                .sort_unstable_by_key(|&(waited, place)| (Reverse(waited), place));
        }
        for &(_, place) in &self.due[..scans] {
            self.viewers[place as usize].scans = true;
        }
        for &(_, place) in &self.due[scans..] {
            self.waiting.push(self.viewers[place as usize].id);
        }
        (scans, self.due.len() - scans)
    }

    /// Frees the memory that only exact viewers need, once there are none.
    pub(crate) fn free_memory(&mut self) {
        if !self.last_positions.is_empty() {
            *self = Self {
                pending_radii: std::mem::take(&mut self.pending_radii),
                scans_max: self.scans_max,
                ..Self::default()
            };
        }
    }

    /// Hashes all state that later updates depend on. Without exact viewers that is none.
    pub(crate) fn hash_state(&self, fold: &mut impl FnMut(u64)) {
        for viewer in &self.viewers {
            let radius = viewer.radius_m.map_or(u32::MAX, f32::to_bits);
            fold(u64::from(viewer.id) << 32 | u64::from(radius));
            let since = viewer.waits_since.map_or(0, |since| 1 + u64::from(since));
            fold(since << 1 | u64::from(viewer.is_due));
            for list in &viewer.lists {
                fold(list.len() as u64);
                list.iter().for_each(|&target| fold(u64::from(target)));
            }
        }
    }
}
