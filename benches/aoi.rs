//! Who sees whom: the arrays and links beside plain sets with the same cap, classes and refill, in lists compared.
//!
//! Everybody walks 0.25 m a tick (5 m/s at 20 Hz) or 2.5 m in 1 km × 1 km with cells of 50 m, in teams of fifty, and
//! sees at most 100. Both keep the same promise: a full list holds nobody whom somebody left out outranks, and no place is
//! free while somebody could take it. Among equals they may choose differently, so classes are compared, not names.

use std::collections::{BTreeMap, HashSet};

use criterion::Criterion;
use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng::aoi::priority::{Standing, by_relationship};
use throng::aoi::views::{Profile, ViewEvent};
use throng::aoi::{SceneViews, ViewCaps};
use throng::world::{KindClass, Visibility};

const SIDE_M: f32 = 1_000.0;
const CELL_M: f32 = 50.0;
const CAP: usize = 100;
const TEAM_PLAYERS: u32 = 50;

/// Looks a tick: enough for nobody to be left waiting, so that both sides have done the same work.
const LOOKS: u32 = u32::MAX;

pub fn bench(criterion: &mut Criterion) {
    for players in [2_000, 10_000] {
        for step_m in [0.25, 2.5] {
            let (mut walkers, mut views) = (Walkers::new(players, step_m), links(players));
            let mut events = Vec::new();
            let mut warm = || tick_links(&mut walkers, &mut views, &mut events);
            (0..3).for_each(|_| warm());
            criterion.bench_function(&format!("aoi::links_{step_m}m/{players}"), |bencher| {
                bencher.iter(|| tick_links(&mut walkers, &mut views, &mut events));
            });
            assert!(views.link_count() > players as usize * 10);
        }
    }
    let (players, step_m) = (2_000, 2.5);
    let (mut walkers, mut views, mut sets) = (
        Walkers::new(players, step_m),
        links(players),
        Sets::new(players),
    );
    for _ in 0..10 {
        tick_links(&mut walkers, &mut views, &mut Vec::new());
        sets.update(&walkers.positions);
        for viewer in 0..players {
            assert_eq!(
                classes(views.seen_by(viewer).map(|(_, class)| class)),
                sets.classes(viewer),
                "{viewer}"
            );
        }
    }
    criterion.bench_function(&format!("aoi::sets_{step_m}m/{players}"), |bencher| {
        bencher.iter(|| {
            walkers.walk();
            sets.update(&walkers.positions);
        });
    });
}

/// How many of each class.
fn classes(seen: impl Iterator<Item = u8>) -> BTreeMap<u8, usize> {
    seen.fold(BTreeMap::new(), |mut counts, class| {
        *counts.entry(class).or_default() += 1;
        counts
    })
}

fn standing(id: u32) -> Standing {
    Standing {
        team: id / TEAM_PLAYERS + 1,
        ..Standing::default()
    }
}

/// People who walk straight on and turn back at the edges.
struct Walkers {
    positions: Vec<Vec2>,
    steps: Vec<Vec2>,
}

impl Walkers {
    fn new(count: u32, step_m: f32) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut vector = |low: f32, high: f32| {
            let mut axis = || random.random_range(low..high);
            Vec2::new(axis(), axis())
        };
        let positions = (0..count).map(|_| vector(0.0, SIDE_M)).collect();
        let steps = (0..count)
            .map(|_| vector(-1.0, 1.0).normalize_or(Vec2::X) * step_m)
            .collect();
        Self { positions, steps }
    }

    fn walk(&mut self) {
        for (position, step) in self.positions.iter_mut().zip(&mut self.steps) {
            let next = *position + *step;
            if next.x < 0.0 || next.x >= SIDE_M {
                step.x = -step.x;
            }
            if next.y < 0.0 || next.y >= SIDE_M {
                step.y = -step.y;
            }
            *position += *step;
        }
    }
}

fn links(players: u32) -> SceneViews {
    // Without a margin, so that the cells of both sides are the same.
    let mut views =
        SceneViews::with_size((SIDE_M, SIDE_M), CELL_M, 0.0, players).expect("the grid is valid");
    let positions = Walkers::new(players, 1.0).positions;
    for (id, position) in (0..players).zip(positions) {
        let profile = Profile {
            class: KindClass::Player,
            visibility: Visibility::Near,
            standing: standing(id),
            viewable: true,
        };
        let caps = Some(ViewCaps::all(CAP as u16));
        views
            .insert(id, position, profile, caps)
            .expect("the id is free");
    }
    views
}

fn tick_links(walkers: &mut Walkers, views: &mut SceneViews, events: &mut Vec<ViewEvent>) {
    walkers.walk();
    for (id, &position) in (0..).zip(&walkers.positions) {
        views.locate(id, position);
    }
    events.clear();
    views.update(LOOKS, events);
    assert_eq!(views.queue_len(), 0);
}

/// The plain way: a set an object, made anew from the nine cells and compared with what it was.
struct Sets {
    cells: Vec<Vec<u32>>,
    seen: Vec<HashSet<u32>>,
    standings: Vec<Standing>,
}

const COLUMNS: i32 = (SIDE_M / CELL_M) as i32;

impl Sets {
    fn new(players: u32) -> Self {
        Self {
            cells: vec![Vec::new(); (COLUMNS * COLUMNS) as usize],
            seen: vec![HashSet::new(); players as usize],
            standings: (0..players).map(standing).collect(),
        }
    }

    fn class(&self, viewer: u32, target: u32) -> u8 {
        by_relationship(
            &self.standings[viewer as usize],
            &self.standings[target as usize],
        )
    }

    fn classes(&self, viewer: u32) -> BTreeMap<u8, usize> {
        classes(
            self.seen[viewer as usize]
                .iter()
                .map(|&target| self.class(viewer, target)),
        )
    }

    /// Gives how many enters and leaves there were.
    fn update(&mut self, positions: &[Vec2]) -> usize {
        let cell = |position: Vec2| {
            (position / CELL_M)
                .floor()
                .as_ivec2()
                .clamp(glam::IVec2::ZERO, glam::IVec2::splat(COLUMNS - 1))
        };
        self.cells.iter_mut().for_each(Vec::clear);
        for (id, &position) in (0..).zip(positions) {
            let cell = cell(position);
            self.cells[(cell.y * COLUMNS + cell.x) as usize].push(id);
        }
        let mut changed = 0;
        for (viewer, &position) in (0..).zip(positions) {
            let middle = cell(position);
            let mut candidates = Vec::new();
            for y in (middle.y - 1).max(0)..=(middle.y + 1).min(COLUMNS - 1) {
                for x in (middle.x - 1).max(0)..=(middle.x + 1).min(COLUMNS - 1) {
                    candidates.extend(
                        self.cells[(y * COLUMNS + x) as usize]
                            .iter()
                            .filter(|&&id| id != viewer),
                    );
                }
            }
            let before = &self.seen[viewer as usize];
            if candidates.len() > CAP {
                // The higher class first; among equals those whom it sees already.
                candidates.sort_by_key(|&id| {
                    (
                        std::cmp::Reverse(self.class(viewer, id)),
                        !before.contains(&id),
                        id,
                    )
                });
                candidates.truncate(CAP);
            }
            let now: HashSet<u32> = candidates.into_iter().collect();
            changed += before.symmetric_difference(&now).count();
            self.seen[viewer as usize] = now;
        }
        changed
    }
}
