//! The benchmark load for interest management, shared by `cargo bench` and `throng bench aoi`, so that both
//! measure the same.
//!
//! Walkers go straight on, turn at random every second (20 ticks, phased by id) and bounce off the
//! borders, in cells of 50 m without a margin, so that reference designs without a margin have the same cells; a hundred
//! teams, at most a hundred targets in view.

use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::kinds::{ObjectCategory, ViewRange};

use super::priority::ViewTraits;
use crate::views::{SceneViews, ViewCaps, ViewLinkMode, ViewProfile};

/// The side of a cell, in metres.
pub const CELL_M: f32 = 50.0;
/// The maximum number of targets of a viewer.
pub const CAP: u16 = 100;
/// The number of teams.
pub const TEAMS: u32 = 100;
/// The number of ticks between two turns of a walker.
const TURN_TICKS: u32 = 20;

/// The traits of the walker with this id.
#[must_use]
pub fn traits(id: u32) -> ViewTraits {
    ViewTraits {
        id,
        team: id % TEAMS + 1,
        ..ViewTraits::default()
    }
}

/// Walkers in a square.
#[derive(Clone, Debug)]
pub struct Walkers {
    /// The position of each walker, in metres.
    pub positions: Vec<Vec2>,
    steps: Vec<Vec2>,
    random: Pcg64Mcg,
    side_m: f32,
    step_m: f32,
    tick: u32,
}

impl Walkers {
    /// Creates this many walkers, in a square of this side, with steps of this length, both in metres.
    #[must_use]
    pub fn new(count: u32, side_m: f32, step_m: f32) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut axis = || random.random_range(0.0..side_m);
        let positions = (0..count).map(|_| Vec2::new(axis(), axis())).collect();
        let mut walkers = Self {
            positions,
            steps: vec![Vec2::ZERO; count as usize],
            random,
            side_m,
            step_m,
            tick: 0,
        };
        (0..count as usize).for_each(|id| walkers.turn(id));
        walkers
    }

    fn turn(&mut self, id: usize) {
        let angle = self.random.random_range(0.0..core::f32::consts::TAU);
        let (sin, cos) = libm::sincosf(angle);
        self.steps[id] = Vec2::new(cos, sin) * self.step_m;
    }

    /// Moves all walkers by one step.
    pub fn walk(&mut self) {
        self.tick += 1;
        let first = self.tick % TURN_TICKS;
        for id in (first as usize..self.steps.len()).step_by(TURN_TICKS as usize) {
            self.turn(id);
        }
        for (position, step) in self.positions.iter_mut().zip(&mut self.steps) {
            let next = *position + *step;
            if next.x < 0.0 || next.x >= self.side_m {
                step.x = -step.x;
            }
            if next.y < 0.0 || next.y >= self.side_m {
                step.y = -step.y;
            }
            *position += *step;
        }
    }

    /// Views of all walkers, not updated yet.
    #[must_use]
    pub fn views(&self, sight: ViewLinkMode, cap: u16) -> SceneViews {
        let count = self.positions.len() as u32;
        let side = (self.side_m, self.side_m);
        let mut views = SceneViews::with_size(side, CELL_M, 0.0, count)
            .expect("the workload's grid is valid")
            .with_view_link_mode(sight);
        for (id, &position) in (0..count).zip(&self.positions) {
            let profile = ViewProfile {
                class: ObjectCategory::Player,
                visibility: ViewRange::Near,
                traits: traits(id),
                viewable: true,
            };
            views
                .insert(id, position, profile, Some(ViewCaps::all(cap)))
                .expect("the id is free");
        }
        views
    }

    /// Reports all positions to the views.
    pub fn locate(&self, views: &mut SceneViews) {
        for (id, &position) in (0..).zip(&self.positions) {
            views.locate(id, position);
        }
    }
}

/// A crowd in nine adjacent cells: all move within their cells, and a share crosses a border each tick.
#[derive(Clone, Debug)]
pub struct HotSpot {
    walkers: Walkers,
    crossing: usize,
    next: usize,
}

impl HotSpot {
    /// Creates `count` objects; `crossing` of them change their cell each tick.
    #[must_use]
    pub fn new(count: u32, crossing: usize) -> Self {
        let mut walkers = Walkers::new(count, 3.0 * CELL_M, 0.0);
        for position in &mut walkers.positions {
            // Well inside their cells, so that the small steps stay there.
            *position = (*position / CELL_M).floor() * CELL_M + (*position % CELL_M) * 0.9 + 2.0;
        }
        Self {
            walkers,
            crossing,
            next: 0,
        }
    }

    /// Views of all objects, not updated yet.
    #[must_use]
    pub fn views(&self, sight: ViewLinkMode) -> SceneViews {
        self.walkers.views(sight, CAP)
    }

    /// Moves all objects by one step.
    pub fn walk(&mut self) {
        let sway = if self.next.is_multiple_of(2) {
            0.2
        } else {
            -0.2
        };
        for position in &mut self.walkers.positions {
            position.x += sway;
        }
        let count = self.walkers.positions.len();
        for nth in 0..self.crossing {
            let position = &mut self.walkers.positions[(self.next * self.crossing + nth) % count];
            position.x = (position.x + CELL_M) % (3.0 * CELL_M);
        }
        self.next += 1;
    }

    /// Reports all positions to the views.
    pub fn locate(&self, views: &mut SceneViews) {
        self.walkers.locate(views);
    }
}
