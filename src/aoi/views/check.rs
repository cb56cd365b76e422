//! Checks views by brute force: every pair, nothing taken from the incremental state on trust.
//!
//! For tests, debug builds and the expectations of scenarios. O(objects² + links); not for every tick of a
//! large scene.

use thiserror::Error;

use super::scene_views::SceneViews;
use super::shard::{Shared, ViewShard};
use crate::aoi::links::{LISTS, UNCAPPED};
use crate::aoi::priority::{class_of, rank_of};

/// What is wrong with the views of a scene.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ViewFault(String);

impl ViewFault {
    pub(crate) const fn new(what: String) -> Self {
        Self(what)
    }
}

impl SceneViews {
    /// Checks, right after an [`update`](Self::update):
    /// - every position lies in its object's sticky cell, and every object stands in the grid where it
    ///   should;
    /// - a link joins two that can see each other now, has its class of now, and is known at both ends; a
    ///   mutual pair sees each other;
    /// - nobody is over cap;
    /// - unless a viewer is queued, nobody whom it could see and does not has a higher class than a member of
    ///   the list concerned, and it has no free place while such an object exists; and whom it refused it
    ///   remembers. Of a pair that could be mutual, this holds for one of the ends.
    ///
    /// # Errors
    /// Says what does not hold, for whom.
    pub fn validate(&self) -> Result<(), ViewFault> {
        let fault = |text| Err(ViewFault(text));
        if !self.changed.is_empty() || !self.parted.is_empty() {
            return fault("there are changes that no update has seen".into());
        }
        for shard in &self.shards {
            shard.links.validate().map_err(ViewFault)?;
        }
        let grid = &self.shared.grid;
        let mut counts = (0, 0);
        for (id, object) in (0..).zip(&self.shared.objects) {
            let ViewShard { viewer_index, .. } = self.shard(id);
            let layer = usize::from(object.layer);
            grid.validate(id, layer, object.viewable)
                .and_then(|()| viewer_index.validate(id, grid.home(id), object.viewer))
                .map_err(ViewFault)?;
            counts.0 += usize::from(object.viewable);
            counts.1 += usize::from(object.viewer);
            if !object.alive && self.watchers_len(id) > 0 {
                return fault(format!("{id} is seen but does not exist"));
            }
            let cell = grid.cell(id);
            if object.alive && grid.sticky_cell(cell, object.position) != cell {
                return fault(format!(
                    "{id} is at {} and reported in {cell:?}",
                    object.position
                ));
            }
            for list in 0..LISTS {
                self.validate_list(id, list)?;
            }
        }
        let viewers = self
            .shards
            .iter()
            .map(|shard| shard.viewer_index.viewer_count());
        let found = (grid.target_count(), viewers.sum());
        if found != counts {
            return fault(format!("cells have {found:?} members, expected {counts:?}"));
        }
        Ok(())
    }

    /// Whether a viewer could see a target now, caps apart.
    #[must_use]
    pub fn could_see(&self, viewer: u32, target: u32) -> bool {
        let (Some(a), Some(b)) = (self.object(viewer), self.object(target)) else {
            return false;
        };
        viewer != target
            && a.viewer
            && b.viewable
            && self.shared.allows(a, b)
            && self.shared.grid.in_range(
                usize::from(b.layer),
                self.shared.grid.cell(viewer),
                self.shared.grid.cell(target),
            )
    }

    fn validate_list(&self, viewer: u32, list: usize) -> Result<(), ViewFault> {
        let fault = |text| Err(ViewFault(text));
        let Shared {
            objects, ranking, ..
        } = &self.shared;
        let object = &objects[viewer as usize];
        let ViewShard { links, .. } = self.shard(viewer);
        let mut members: Vec<u32> = Vec::with_capacity(links.list_len(viewer, list));
        for key in links.keys(viewer, list) {
            let target = key.target();
            if !self.could_see(viewer, target) {
                return fault(format!("{viewer} sees {target} and cannot"));
            }
            if objects[target as usize].list() != list {
                return fault(format!("{viewer} has {target} in list {list}"));
            }
            let (a, b) = (object, &objects[target as usize]);
            if ranking.class(a, b) != class_of(key.rank()) {
                return fault(format!("{viewer} ranks {target} as {}", key.rank()));
            }
            if ranking.is_pair(a, b) && !self.visible(target, viewer) {
                return fault(format!("{viewer} sees {target}, which does not see it"));
            }
            members.push(target);
        }
        members.sort_unstable();
        if members.windows(2).any(|pair| pair[0] == pair[1]) {
            return fault(format!("{viewer} sees somebody twice in list {list}"));
        }
        let cap = if list == UNCAPPED {
            usize::MAX
        } else {
            usize::from(self.shard(viewer).viewer_state(viewer).caps[list])
        };
        if members.len() > cap {
            return fault(format!(
                "{viewer} sees {} in list {list}, its cap is {cap}",
                members.len()
            ));
        }
        if !object.viewer {
            return Ok(());
        }
        for (target, other) in (0..).zip(objects) {
            if other.list() != list
                || !self.could_see(viewer, target)
                || members.binary_search(&target).is_ok()
            {
                continue;
            }
            let class = ranking.class(object, other);
            let (here, there) = (
                self.end_fault(viewer, list, class),
                if ranking.is_pair(object, other) {
                    self.end_fault(target, object.list(), class)
                } else {
                    self.end_fault(viewer, list, class)
                },
            );
            if let (Some(what), Some(_)) = (here, there) {
                return fault(format!("{viewer} {what} {target}, of class {class}"));
            }
        }
        Ok(())
    }

    /// What is wrong if somebody of this class, in range, is not in a list; nothing if it is refused or will
    /// be looked at.
    fn end_fault(&self, viewer: u32, list: usize, class: u8) -> Option<&'static str> {
        let ViewShard { links, .. } = self.shard(viewer);
        let state = self.shard(viewer).viewer_state(viewer);
        if state.bound[list] <= u16::from(rank_of(class, 0)) {
            return Some("has forgotten that it refused");
        }
        if self.queue.contains(viewer) {
            return None;
        }
        let lowest = links.lowest_rank(viewer, list).map(class_of);
        if links.list_len(viewer, list) < state.cap(list) {
            Some("is not queued and has a place for")
        } else if lowest.is_some_and(|lowest| class > lowest) {
            Some("is not queued and has a lower member than")
        } else {
            None
        }
    }
}
