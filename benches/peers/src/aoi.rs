//! View lists compared with a k-d tree whose results are diffed each tick: the usual interest management on top of a spatial index.
//!
//! All objects walk in 1 km² and see the objects in the nine cells of 50 m around them, without caps, because a tree has none. The peer is
//! `kiddo` 6, whose Chebyshev distance turns the nine cells into one query. Each tick all objects have moved, so the tree is rebuilt and
//! queried; each result is sorted and compared with the viewer's previous one: an object in only one of them has entered or left. There are
//! two variants: one query per viewer, which is the obvious one, and one per cell, shared by all viewers in it.
//! After every fourth tick the lists of all sides must be equal, and so must the number of enters and leaves over all ticks. The peer has
//! no classes, caps, teams or layers to check; throng has them and checks them.

use std::time::Instant;

use glam::{IVec2, Vec2};
use kiddo::{Chebyshev, ImmutableKdTree};
use throng::aoi::{SceneViews, ViewEvent, ViewLinkMode};
use throng_aoi::workload::{CELL_M, Walkers};

use crate::Row;

const SIDE_M: f32 = 1_000.0;

/// A cap that no list reaches.
const CAP: u16 = 4_000;

/// Warm-up ticks, and measured ticks.
const WARM_UP_TICKS: usize = 20;
const TICKS: usize = 40;

/// Measured ticks between two comparisons of the lists.
const COMPARE_EVERY: usize = 4;

/// A design that maintains the list of every viewer.
trait Interest {
    /// Runs a tick with new positions. Returns the number of enters and leaves.
    fn update(&mut self, walkers: &Walkers) -> usize;
    /// The objects that a viewer sees, sorted.
    fn list(&self, viewer: u32) -> Vec<u32>;
}

struct Ours {
    views: SceneViews,
    events: Vec<ViewEvent>,
}

impl Interest for Ours {
    fn update(&mut self, walkers: &Walkers) -> usize {
        walkers.locate(&mut self.views);
        self.events.clear();
        self.views.update(u32::MAX, &mut self.events);
        self.events.len()
    }

    fn list(&self, viewer: u32) -> Vec<u32> {
        let mut list: Vec<u32> = self.views.seen_by(viewer).map(|(id, _)| id).collect();
        list.sort_unstable();
        list
    }
}

/// Lists made from a tree that is rebuilt every tick.
#[derive(Default)]
struct Tree {
    /// Whether the tree is queried once per cell instead of once per viewer.
    is_by_cell: bool,
    /// The list of each viewer, which contains the viewer itself.
    lists: Vec<Vec<u32>>,
    cells: Vec<IVec2>,
    near: Vec<u32>,
}

impl Tree {
    /// Sets `near` to the objects in the nine cells around this cell, sorted.
    fn gather(&mut self, tree: &ImmutableKdTree<f32, 2>, around: IVec2) {
        let middle = ((around.as_vec2() + 0.5) * CELL_M).to_array();
        let found = tree.query(&middle).within::<Chebyshev<f32>>(1.5 * CELL_M);
        // The query includes its border, so it finds objects of the next cells too.
        let is_near = |id: &u32| (self.cells[*id as usize] - around).abs().max_element() <= 1;
        self.near.clear();
        let found = found.unsorted().execute();
        self.near
            .extend(found.into_iter().map(|found| found.item).filter(is_near));
        self.near.sort_unstable();
    }

    /// Replaces a viewer's list with `near`. Returns the number of differences.
    fn replace_list(&mut self, viewer: usize) -> usize {
        let list = &mut self.lists[viewer];
        let changes = differences(list, &self.near);
        list.clone_from(&self.near);
        changes
    }
}

impl Interest for Tree {
    fn update(&mut self, walkers: &Walkers) -> usize {
        let cell = |at: &Vec2| (at / CELL_M).floor().as_ivec2();
        let points: Vec<[f32; 2]> = walkers.positions.iter().map(Vec2::to_array).collect();
        let tree = ImmutableKdTree::new_from_slice(&points).expect("the points fit in a tree");
        self.cells.clear();
        self.cells.extend(walkers.positions.iter().map(cell));
        // Before the first tick every viewer sees only itself.
        (self.lists.len()..points.len()).for_each(|id| self.lists.push(vec![id as u32]));
        let mut changes = 0;
        if self.is_by_cell {
            let mut viewers: Vec<usize> = (0..points.len()).collect();
            viewers.sort_unstable_by_key(|&id| (self.cells[id].y, self.cells[id].x));
            let cells = self.cells.clone();
            for viewers in viewers.chunk_by(|&a, &b| cells[a] == cells[b]) {
                self.gather(&tree, cells[viewers[0]]);
                changes += viewers
                    .iter()
                    .map(|&id| self.replace_list(id))
                    .sum::<usize>();
            }
        } else {
            for viewer in 0..points.len() {
                self.gather(&tree, self.cells[viewer]);
                changes += self.replace_list(viewer);
            }
        }
        changes
    }

    fn list(&self, viewer: u32) -> Vec<u32> {
        let mut list = self.lists[viewer as usize].clone();
        list.retain(|&id| id != viewer);
        list
    }
}

/// Number of elements in only one of two sorted lists.
fn differences(before: &[u32], now: &[u32]) -> usize {
    let (mut both, mut place) = (0, 0);
    for &id in now {
        while before.get(place).is_some_and(|&old| old < id) {
            place += 1;
        }
        both += usize::from(before.get(place) == Some(&id));
    }
    before.len() + now.len() - 2 * both
}

/// The time of a run, and its result.
struct Pass {
    median_ms: f64,
    events: usize,
    lists: Vec<Vec<Vec<u32>>>,
}

fn pass(mut walkers: Walkers, mut way: impl Interest) -> Pass {
    for _ in 0..WARM_UP_TICKS {
        walkers.walk();
        way.update(&walkers);
    }
    let (mut ms, mut events, mut lists) = (Vec::new(), 0, Vec::new());
    for nth in 0..TICKS {
        walkers.walk();
        let start = Instant::now();
        events += way.update(&walkers);
        ms.push(start.elapsed().as_secs_f64() * 1e3);
        if nth % COMPARE_EVERY == 0 {
            let viewers = 0..walkers.positions.len() as u32;
            lists.push(viewers.map(|viewer| way.list(viewer)).collect());
        }
    }
    ms.sort_unstable_by(f64::total_cmp);
    Pass {
        median_ms: ms[ms.len() / 2],
        events,
        lists,
    }
}

/// Both variants of the peer, at two sizes and two paces.
pub fn measure() -> Vec<Row> {
    let mut rows = Vec::new();
    for players in [2_000, 10_000] {
        for step_m in [2.5, 0.25] {
            let walkers = Walkers::new(players, SIDE_M, step_m);
            let ours = Ours {
                views: walkers.views(ViewLinkMode::Directed, CAP),
                events: Vec::new(),
            };
            let ours = pass(walkers.clone(), ours);
            let ways = [
                (false, "kiddo, asked by viewer"),
                (true, "kiddo, asked by cell"),
            ];
            for (is_by_cell, reference) in ways {
                let tree = Tree {
                    is_by_cell,
                    ..Tree::default()
                };
                let theirs = pass(walkers.clone(), tree);
                assert_eq!(ours.events, theirs.events, "{reference}: enters and leaves");
                assert!(ours.lists == theirs.lists, "{reference}: lists differ");
                let case = format!("{players} walk {step_m} m a tick");
                let both_ms = [ours.median_ms, theirs.median_ms];
                rows.push(Row::beside("aoi", case, both_ms, "ms/tick", reference));
            }
        }
    }
    rows
}
