//! Checks views by brute force: every pair, without trust in the incremental state.
//!
//! For tests, debug builds and the expectations of scenarios. O(objects² + links); not for every tick of a
//! large scene.

use thiserror::Error;

use super::scene_views::SceneViews;
use super::state::bits::ones;
use super::state::object::{LIST_COUNT, NONE, TrackedObject, UNCAPPED};
use super::state::rows::NEIGHBOURHOOD_CELLS;

/// What is wrong with the views of a scene.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ViewInvariantError(String);

impl ViewInvariantError {
    /// An error that a check of the caller found.
    #[doc(hidden)]
    pub const fn new(what: String) -> Self {
        Self(what)
    }
}

impl SceneViews {
    /// Checks, right after an [`update`](Self::update):
    /// - every position lies in its object's sticky cell, and every object has the right slot and row;
    /// - a link joins two objects that can see each other now, and its target has a slot; a mutual pair sees each other;
    /// - the counts of a list are right: members, whether it may have refused a target, lowest class;
    /// - no list is over its cap;
    /// - the list of a viewer with exact distances is complete up to its cap, in both modes, unless it waits for its scan;
    /// - directed mode: unless a viewer waits for its scan, an object that it could see and does not see never has a higher
    ///   class than a member of that list, and the list has no free slot while such an object exists. Mutual mode: for a pair
    ///   that could be linked, this holds for one of the ends, unless one is queued.
    ///
    /// # Errors
    /// Names the broken invariant and the objects concerned.
    pub fn validate(&self) -> Result<(), ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        if !self.changed.is_clear() || !self.pending_leaves.is_empty() {
            return fault("there are changes that no update has seen".into());
        }
        // First, because a row that sees an empty slot makes list queries invalid.
        self.validate_cells()?;
        let mut links = 0;
        for (id, object) in (0..).zip(&self.shared.objects) {
            self.validate_location(id, object)?;
            for list in 0..LIST_COUNT {
                links += self.validate_list(id, list)?;
            }
        }
        if links != self.link_count() {
            let counted = self.link_count();
            return fault(format!("{counted} links are counted, there are {links}"));
        }
        Ok(())
    }

    /// Whether a viewer could see a target now, regardless of caps.
    #[must_use]
    pub fn could_see(&self, viewer: u32, target: u32) -> bool {
        let Some(b) = self.object(target) else {
            return false;
        };
        let in_range = match self.exact.get(viewer).and_then(|viewer| viewer.radius_m) {
            Some(radius_m) => {
                let (here, there) = (self.shared.position(viewer), self.shared.position(target));
                let (here, there) = (here.as_dvec2(), there.as_dvec2());
                let radius_m = f64::from(radius_m);
                radius_m.is_infinite() || here.distance_squared(there) <= radius_m * radius_m
            }
            None => self.shared.grid.in_range(
                usize::from(b.layer),
                self.shared.grid.cell(viewer),
                self.shared.grid.cell(target),
            ),
        };
        let is_exact = self.object(viewer).is_some_and(TrackedObject::is_exact);
        self.allows(viewer, target)
            && in_range
            && (!is_exact || self.is_allowed_by_distance(viewer, target))
    }

    fn validate_location(&self, id: u32, object: &TrackedObject) -> Result<(), ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        let (grid, place) = (&self.shared.grid, self.shared.location(id));
        if !object.alive {
            return Ok(());
        }
        let cell = grid.cell(id);
        let position = self.shared.position(id);
        if grid.sticky_cell(cell, position) != cell || grid.committed_cell(id) != cell {
            return fault(format!("{id} is at {position} and reported in {cell:?}"));
        }
        let stands = self.shared.cells.get(place.cell as usize);
        if stands.is_none_or(|stands| stands.grid_cell != cell) {
            return fault(format!("{id} does not stand in its cell {cell:?}"));
        }
        let has_slot = object.viewable && !object.uncapped;
        let in_slot = stands.and_then(|stands| stands.relations.ids().get(place.slot as usize));
        if has_slot != (place.slot != NONE) || has_slot && in_slot != Some(&id) {
            return fault(format!("{id} does not stand in its slot"));
        }
        let viewers = &self.viewers[place.cell as usize];
        let in_row = viewers.relations.ids().get(place.row as usize);
        let has_row = object.has_row;
        if has_row != (place.row != NONE) || has_row && in_row != Some(&id) {
            return fault(format!("{id} does not stand in its row"));
        }
        let is_listed = self.exact.get(id).is_some();
        if object.is_exact() != is_listed || object.has_row && !object.viewer {
            return fault(format!(
                "{id} is an exact viewer without lists, or has lists and is none"
            ));
        }
        Ok(())
    }

    /// Checks that cells know their neighbours, and have the right number of targets and viewers.
    fn validate_cells(&self) -> Result<(), ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        let mut found = (0, 0);
        for (cell, viewers) in self.shared.cells.iter().zip(&self.viewers) {
            for direction in 0..NEIGHBOURHOOD_CELLS {
                let at = cell.grid_cell.neighbour(direction, self.shared.grid.size());
                let index = at.and_then(|at| self.shared.index_of(at));
                let near = cell.neighbours[direction];
                let words = index.map_or(0, |near| self.shared.cells[near].words as u32);
                let width = cell.layout[direction + 1] - cell.layout[direction];
                if index.map_or(NONE, |near| near as u32) != near || width != words {
                    return fault(format!("{:?} has a wrong neighbour", cell.grid_cell));
                }
            }
            let seen = cell.relations.ids().iter().filter(|&&id| id != NONE);
            found = (found.0 + seen.count(), found.1 + viewers.used);
            let layout = (viewers.rows.len(), viewers.rows.words());
            let is_sound = viewers.rows.is_consistent() && cell.relations.is_consistent();
            if layout != (viewers.len(), cell.layout[NEIGHBOURHOOD_CELLS] as usize) || !is_sound {
                return fault(format!(
                    "the rows of {:?} have another layout",
                    cell.grid_cell
                ));
            }
            for row in 0..viewers.len() {
                if viewers.id(row) == NONE && viewers.rows.set_words(row).next().is_some() {
                    return fault(format!("a free row of {:?} sees somebody", cell.grid_cell));
                }
                for (direction, near) in self.shared.neighbours(viewers.cell as usize) {
                    let seen = viewers.rows.range(row, cell.words_in(direction));
                    if seen
                        .zip(near.slots.iter().map(|word| !word.taken))
                        .any(|(seen, free)| seen & free != 0)
                    {
                        let viewer = viewers.id(row);
                        return fault(format!(
                            "{viewer} sees a slot of {:?} that nobody has",
                            near.grid_cell
                        ));
                    }
                }
            }
        }
        let objects = self.shared.objects.iter().filter(|object| object.alive);
        let expected = objects.fold((0, 0), |(targets, viewers), object| {
            let target = usize::from(object.viewable && !object.uncapped);
            (targets + target, viewers + usize::from(object.has_row))
        });
        if found != expected {
            return fault(format!(
                "cells have {found:?} members, expected {expected:?}"
            ));
        }
        Ok(())
    }

    /// Checks a list and returns its length.
    fn validate_list(&self, viewer: u32, list: usize) -> Result<usize, ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        let objects = &self.shared.objects;
        let object = &objects[viewer as usize];
        let mut members: Vec<u32> = self.list(viewer, list).map(|seen| seen.0).collect();
        for &target in &members {
            if !self.could_see(viewer, target) {
                return fault(format!("{viewer} sees {target} and cannot"));
            }
            let other = &objects[target as usize];
            if self.shared.ranking.is_pair(object, other) && !self.visible(target, viewer) {
                return fault(format!("{viewer} sees {target}, which does not see it"));
            }
        }
        members.sort_unstable();
        if members.windows(2).any(|pair| pair[0] == pair[1]) {
            return fault(format!("{viewer} sees somebody twice in list {list}"));
        }
        if !object.viewer {
            return Ok(members.len());
        }
        if object.is_exact() {
            self.validate_exact_list(viewer, list, &members)?;
            return Ok(members.len());
        }
        self.validate_counts(viewer, list, &members)?;
        let lowest = self.lowest_class(viewer, list);
        for (target, other) in (0..).zip(objects) {
            if other.list() != list
                || !self.could_see(viewer, target)
                || members.binary_search(&target).is_ok()
            {
                continue;
            }
            let class = self.shared.ranking.class(object, other);
            let is_pair = self.shared.ranking.is_pair(object, other);
            let here = self.missing_member_error(viewer, list, class, lowest);
            let there = if is_pair && here.is_some() {
                let lowest = self.lowest_class(target, object.list());
                self.missing_member_error(target, object.list(), class, lowest)
            } else {
                here
            };
            if let (Some(what), Some(_)) = (here, there) {
                return fault(format!("{viewer} {what} {target}, of class {class}"));
            }
            let remembers = |viewer, list| {
                self.queue.contains(viewer) || self.remembers_refusal(viewer, list, class)
            };
            let there_remembers = || is_pair && there.is_none() && remembers(target, object.list());
            if !(here.is_none() && remembers(viewer, list) || there_remembers()) {
                return fault(format!("{viewer} has forgotten that it refused {target}"));
            }
        }
        Ok(members.len())
    }

    /// Checks a list of an exact viewer.
    fn validate_exact_list(
        &self,
        viewer: u32,
        list: usize,
        members: &[u32],
    ) -> Result<(), ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        let object = &self.shared.objects[viewer as usize];
        let cap = object.caps.get(list);
        let cap = cap.map_or(usize::MAX, |&cap| usize::from(cap));
        if members.len() > cap {
            let len = members.len();
            return fault(format!(
                "{viewer} sees {len} in list {list}, its cap is {cap}"
            ));
        }
        let lowest = self.lowest_class(viewer, list);
        for (target, other) in (0..).zip(&self.shared.objects) {
            let is_missing = other.list() == list
                && members.binary_search(&target).is_err()
                && self.could_see(viewer, target)
                && !self.exact.waiting().any(|waiting| waiting == viewer);
            let class = self.shared.ranking.class(object, other);
            if is_missing && (members.len() < cap || lowest.is_some_and(|lowest| class > lowest)) {
                return fault(format!("{viewer} does not see {target}, of class {class}"));
            }
        }
        Ok(())
    }

    /// Checks the counts of a list.
    fn validate_counts(
        &self,
        viewer: u32,
        list: usize,
        members: &[u32],
    ) -> Result<(), ViewInvariantError> {
        let fault = |text| Err(ViewInvariantError(text));
        let place = self.shared.location(viewer);
        let viewers = &self.viewers[place.cell as usize];
        let state = &viewers.states[place.row as usize];
        if list == UNCAPPED {
            return Ok(());
        }
        let (len, cap) = (members.len(), usize::from(state.caps[list]));
        if len > cap || state.caps != self.shared.objects[viewer as usize].caps {
            return fault(format!(
                "{viewer} sees {len} in list {list}, its cap is {cap}"
            ));
        }
        if len != usize::from(state.count[list]) {
            let count = state.count[list];
            return fault(format!(
                "{viewer} counts {count} in list {list}, it has {len}"
            ));
        }
        let seen = viewers.rows.set_words(place.row as usize);
        let near = members.len();
        if seen.map(|(_, word)| ones(word).count()).sum::<usize>() < near {
            return fault(format!("{viewer} sees fewer than its lists have"));
        }
        for &target in members {
            let class = self.shared.class(viewer, target);
            if class < state.lowest_class[list] {
                let low = state.lowest_class[list];
                return fault(format!(
                    "{viewer} ranks {target} as {class}, the lowest as {low}"
                ));
            }
        }
        Ok(())
    }

    /// Whether a viewer has noted that a target of this class may be outside a list.
    fn remembers_refusal(&self, viewer: u32, list: usize, class: u8) -> bool {
        let place = self.shared.location(viewer);
        let state = &self.viewers[place.cell as usize].states[place.row as usize];
        list == UNCAPPED
            || self.shared.is_ranked(list)
            || !self.shared.outranks_unrelated(list, class)
            || state.refused_lists >> list & 1 != 0
    }

    fn lowest_class(&self, viewer: u32, list: usize) -> Option<u8> {
        self.list(viewer, list).map(|(_, class)| class).min()
    }

    /// The error if a target of this class, in range, is not in a list; nothing if a scan is pending.
    fn missing_member_error(
        &self,
        viewer: u32,
        list: usize,
        class: u8,
        lowest: Option<u8>,
    ) -> Option<&'static str> {
        if self.queue.contains(viewer) {
            return None;
        }
        let place = self.shared.location(viewer);
        let state = &self.viewers[place.cell as usize].states[place.row as usize];
        if list == UNCAPPED || state.has_room(list) {
            Some("is not queued and has a place for")
        } else if lowest.is_some_and(|lowest| class > lowest) {
            Some("is not queued and has a lower member than")
        } else {
            None
        }
    }
}
