//! The simple design for comparison: a [`HashSet`] per object, rebuilt from the nine cells every tick and
//! compared with the previous one.
//!
//! It keeps the promise of directed mode for classes: no object outside a full list outranks a member, and no
//! slot is free while an object could take it. Among equals it prefers its current members.

use std::cmp::Reverse;
use std::collections::HashSet;

use glam::Vec2;

use super::priority::{ViewTraits, by_relationship};

/// The sets of all objects in a square scene.
#[derive(Clone, Debug)]
pub struct SetViews {
    columns: i32,
    cell_m: f32,
    cap: usize,
    traits: Vec<ViewTraits>,
    cells: Vec<Vec<u32>>,
    seen: Vec<HashSet<u32>>,
    /// Enters and leaves so far; each direction counts.
    pub event_count: u64,
}

impl SetViews {
    /// Creates sets of at most `cap` for objects without links, in a square of this side.
    #[must_use]
    pub fn new(side_m: f32, cell_m: f32, cap: usize, traits: Vec<ViewTraits>) -> Self {
        let columns = (side_m / cell_m).ceil() as i32;
        Self {
            columns,
            cell_m,
            cap,
            cells: vec![Vec::new(); (columns * columns) as usize],
            seen: vec![HashSet::new(); traits.len()],
            traits,
            event_count: 0,
        }
    }

    /// The targets of a viewer; the order is that of the set.
    #[must_use]
    pub fn seen_by(&self, viewer: u32) -> &HashSet<u32> {
        &self.seen[viewer as usize]
    }

    /// The class of a pair.
    #[must_use]
    pub fn class(&self, viewer: u32, target: u32) -> u8 {
        let traits = |id: u32| &self.traits[id as usize];
        by_relationship(traits(viewer), traits(target))
    }

    /// Sets the new positions of all objects, in metres.
    pub fn update(&mut self, positions: &[Vec2]) {
        let columns = self.columns;
        let axis = |metres: f32, cell_m: f32| ((metres / cell_m) as i32).clamp(0, columns - 1);
        self.cells.iter_mut().for_each(Vec::clear);
        for (id, position) in (0..).zip(positions) {
            let (x, y) = (axis(position.x, self.cell_m), axis(position.y, self.cell_m));
            self.cells[(y * columns + x) as usize].push(id);
        }
        for (viewer, position) in (0..).zip(positions) {
            let (x, y) = (axis(position.x, self.cell_m), axis(position.y, self.cell_m));
            let mut candidates = Vec::new();
            for y in (y - 1).max(0)..=(y + 1).min(columns - 1) {
                for x in (x - 1).max(0)..=(x + 1).min(columns - 1) {
                    let members = &self.cells[(y * columns + x) as usize];
                    candidates.extend(members.iter().filter(|&&id| id != viewer));
                }
            }
            let before = &self.seen[viewer as usize];
            if candidates.len() > self.cap {
                let order =
                    |&id: &u32| (Reverse(self.class(viewer, id)), !before.contains(&id), id);
                candidates.select_nth_unstable_by_key(self.cap, order);
                candidates.truncate(self.cap);
            }
            let now: HashSet<u32> = candidates.into_iter().collect();
            self.event_count += before.symmetric_difference(&now).count() as u64;
            self.seen[viewer as usize] = now;
        }
    }
}
