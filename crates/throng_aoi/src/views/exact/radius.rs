//! Radii and rules by distance: the calls that change them, and how a viewer changes between a row and lists.
//!
//! A change is applied at the begin of the next update, by id, while slots and rows are those of the last update. The links of
//! the viewer stay; the update ends those that are no longer allowed.

use thiserror::Error;

use super::exact_viewer::ExactViewer;
use crate::priority::DistanceRules;
use crate::views::events::ViewLeaveReason;
use crate::views::scene_views::SceneViews;
use crate::views::state::bits::bit;
use crate::views::state::cells::RowState;
use crate::views::state::object::{CellLocation, LIST_COUNT, NONE, UNCAPPED};

/// A radius that no circle has.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("expected a view radius of at least 0 m, found {radius_m} m")]
pub struct ViewRadiusError {
    /// The radius in metres.
    pub radius_m: f32,
}

impl SceneViews {
    /// Gives a viewer a radius of its own, in metres. From the next update on it sees exactly the objects whose distance is at
    /// most the radius, whatever cells they are in and from how far their kind is visible. Everything else applies as before:
    /// caps, ranking, layers, hiding, rules, exceptions; objects of a kind with a larger view range stay outside caps. An
    /// infinite radius is the whole scene. With `None` it sees the cells around it again. Links with objects that stay visible
    /// do not end; when a radius ends, an object that enters the cells around the viewer in the same update may leave and enter.
    ///
    /// Others see the viewer as before. In mutual mode its links, in both directions, do not need the other end's consent.
    ///
    /// Unknown ids and objects that are not viewers are ignored. The radius ends when the object ceases to be a viewer.
    ///
    /// Cost: such a viewer tests its members in every update. In an update in which it moved, or an object in the cells that
    /// the circle touches moved or changed, it tests all objects in these cells. At most
    /// [`set_exact_scans_max`](Self::set_exact_scans_max) viewers do so in one update.
    ///
    /// # Errors
    /// If the radius is negative or NaN; nothing is changed then.
    pub fn set_radius(&mut self, id: u32, radius_m: Option<f32>) -> Result<(), ViewRadiusError> {
        if let Some(radius_m) = radius_m
            && (radius_m.is_nan() || radius_m < 0.0)
        {
            return Err(ViewRadiusError { radius_m });
        }
        let is_viewer = self.object(id).is_some_and(|object| object.viewer);
        if is_viewer && self.radius(id) != radius_m {
            self.exact.pending_radii.insert(id, radius_m);
        }
        Ok(())
    }

    /// The radius of a viewer in metres, also one that the next update applies; `None` if it has none of its own.
    #[must_use]
    pub fn radius(&self, id: u32) -> Option<f32> {
        let pending = self.exact.pending_radii.get(&id).copied();
        let known = || self.exact.get(id).and_then(|viewer| viewer.radius_m);
        pending.unwrap_or_else(known)
    }

    /// Replaces the rules by distance of the scene, from the next update on. They apply in addition to the filter of
    /// [`set_rules`](Self::set_rules); a target that is shown to a viewer by an exception is seen at every distance in range.
    ///
    /// While a scene has such rules, every viewer is examined as one with a radius is (see [`set_radius`](Self::set_radius) for
    /// the cost), also at rest if anything in the nine cells moves, and no link needs the other end's consent in mutual mode.
    pub fn set_distance_rules(&mut self, rules: DistanceRules) {
        if self.shared.distance_rules.is_empty() && rules.is_empty() {
            return;
        }
        self.shared.distance_rules = rules;
        for id in 0..self.shared.objects.len() as u32 {
            if self.object(id).is_some_and(|object| object.viewer) {
                self.exact.pending_radii.insert(id, self.radius(id));
            }
        }
    }

    /// Limits the viewers with a radius, or under rules by distance, that scan in one update. The default is all of them. The
    /// others lose at once the targets that they can no longer see, and see no new ones until their scan. Those that wait longest
    /// go first, then lower ids; [`queued`](Self::queued) has them in this order.
    pub const fn set_exact_scans_max(&mut self, scans: u32) {
        self.exact.scans_max = scans;
    }

    /// Whether the distance of two objects, or an exception, lets a viewer see a target, as far as the rules by distance are
    /// concerned. False for unknown ids.
    #[must_use]
    pub fn is_allowed_by_distance(&self, viewer: u32, target: u32) -> bool {
        let (Some(a), Some(b)) = (self.object(viewer), self.object(target)) else {
            return false;
        };
        let shared = &self.shared;
        let (here, there) = (shared.position(viewer), shared.position(target));
        let distance_m2 = here.as_dvec2().distance_squared(there.as_dvec2());
        let rules = &shared.distance_rules;
        rules.allow(&a.traits, &b.traits, distance_m2) || shared.is_shown(a, b)
    }

    /// Applies changed radii and rules by distance.
    pub(crate) fn apply_radii(&mut self) {
        while let Some((id, radius_m)) = self.exact.pending_radii.pop_first() {
            let has_rules = !self.shared.distance_rules.is_empty();
            let is_exact = radius_m.is_some() || has_rules;
            let known = self.exact.get_mut(id);
            match known {
                Some(viewer) if is_exact => {
                    viewer.radius_m = radius_m;
                    viewer.is_due = true;
                }
                Some(_) => self.give_row(id),
                None if is_exact => self.take_row(id, radius_m),
                None => {}
            }
        }
    }

    /// A viewer becomes an exact viewer, with its links.
    fn take_row(&mut self, id: u32, radius_m: Option<f32>) {
        let mut lists: [Vec<u32>; LIST_COUNT] = Default::default();
        for target in self.seen_near(id) {
            lists[self.shared.object(target).list()].push(target);
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        let CellLocation { cell, row, .. } = self.shared.location(id);
        if row != NONE {
            (_, lists[UNCAPPED]) = self.viewers[cell as usize].free(row);
            self.shared.locations[id as usize].row = NONE;
        }
        self.queue.remove(id);
        let is_mutual = self.shared.ranking.mutual;
        let object = &mut self.shared.objects[id as usize];
        object.has_row = false;
        // In mutual mode others may see it one-way from now on.
        object.pending.viewer |= is_mutual;
        object.pending.traits |= is_mutual;
        self.mark_changed(id);
        self.exact.insert(ExactViewer::new(id, radius_m, lists));
    }

    /// An exact viewer gets a row of its cell again, with its links to the targets around it.
    fn give_row(&mut self, id: u32) {
        let Some(mut viewer) = self.exact.remove(id) else {
            return;
        };
        let object = &mut self.shared.objects[id as usize];
        object.has_row = true;
        object.pending.viewer = true;
        object.pending.traits = true;
        object.pending.caps = true;
        let object = *object;
        self.mark_changed(id);
        let CellLocation { cell, slot, .. } = self.shared.location(id);
        if cell == NONE {
            // It has not been in an update, and so has no links.
            return;
        }
        let state = RowState {
            caps: object.caps,
            // Nothing is known about the targets that it does not see.
            refused_lists: (1 << UNCAPPED) - 1,
            slot,
            ..RowState::default()
        };
        let far = std::mem::take(&mut viewer.lists[UNCAPPED]);
        let row = self.viewers[cell as usize].allocate(&object.traits, state, far);
        self.shared.locations[id as usize].row = row;
        for (list, members) in viewer.lists[..UNCAPPED].iter().enumerate() {
            for &target in members {
                let other = self.shared.object(target);
                let at = self
                    .shared
                    .bit_of(&self.shared.cells[cell as usize], target);
                if self.shared.ranking.is_pair(&object, other) {
                    // Both ends have to agree from now on.
                    self.record_removed_link(id, target, ViewLeaveReason::Despawn, list);
                } else if let Some((word, place)) = at {
                    let viewers = &mut self.viewers[cell as usize];
                    viewers.rows.insert(row as usize, word, bit(place));
                    viewers.states[row as usize].count[list] += 1;
                } else {
                    self.record_removed_link(id, target, ViewLeaveReason::Range, list);
                }
            }
        }
        self.unlink_one_way_viewers(id);
    }

    /// Ends all links of a viewer if it is an exact one, and its radius.
    pub(crate) fn remove_exact_viewer(&mut self, id: u32, reason: ViewLeaveReason) {
        self.exact.pending_radii.remove(&id);
        let Some(viewer) = self.exact.remove(id) else {
            return;
        };
        for (list, members) in viewer.lists.iter().enumerate() {
            for &target in members {
                self.record_removed_link(id, target, reason, list);
            }
        }
    }
}
