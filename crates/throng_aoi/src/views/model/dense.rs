//! Cells with many words of slots, whose objects come, go and walk: rows are rebuilt, slots and rows are reused.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::memory::MemoryUse;

use super::*;
use crate::views::state::cells::{TargetCell, ViewerCell};
use crate::views::update::cell_storage::SHRINK_CHECK_TICKS;
use crate::workload;

/// A crowd that arrives, walks, teleports, leaves and comes back, a part of it at a time.
struct Dense {
    random: Pcg64Mcg,
    size_m: Vec2,
    views: SceneViews,
    present: Vec<u32>,
    absent: Vec<u32>,
    /// The links according to the events.
    links: BTreeSet<(u32, u32)>,
    words_max: usize,
}

impl Dense {
    fn new(sight: ViewLinkMode, (columns, rows): (u16, u16), count: u32, seed: u64) -> Self {
        let size_m = vec2(f32::from(columns), f32::from(rows)) * CELL_M;
        let views = SceneViews::with_size(size_m.into(), CELL_M, MARGIN_M, count);
        let mut views = views.expect("a legal scene").with_view_link_mode(sight);
        views.set_rerank_ticks(16);
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            size_m,
            views,
            present: Vec::new(),
            absent: (0..count).collect(),
            links: BTreeSet::new(),
            words_max: 0,
        }
    }

    /// Most of them in one cell.
    fn spot(&mut self) -> Vec2 {
        let (x, y) = (self.random.random(), self.random.random());
        if self.random.random_bool(0.6) {
            vec2(x, y) * CELL_M + self.size_m * 0.5 - CELL_M * 0.5
        } else {
            vec2(x, y) * self.size_m
        }
    }

    fn somebody(&mut self) -> Option<u32> {
        let nth = self.random.random_range(0..self.present.len().max(1));
        self.present.get(nth).copied()
    }

    fn insert(&mut self) {
        let at = self.spot();
        let random = &mut self.random;
        let nth = random.random_range(0..self.absent.len());
        let id = self.absent.swap_remove(nth);
        let class = if random.random_bool(0.8) {
            ObjectCategory::Player
        } else {
            ObjectCategory::Npc
        };
        let traits = ViewTraits {
            team: random.random_range(0..9),
            party: random.random_range(0..50),
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class,
            visibility: if random.random_bool(0.95) {
                ViewRange::Near
            } else {
                ViewRange::Far(2)
            },
            traits,
            viewable: random.random_bool(0.95),
        };
        let is_viewer = random.random_bool(0.9);
        let cap = random.random_range(0..40);
        let caps = is_viewer.then(|| ViewCaps::all(cap));
        let inserted = self.views.insert(id, at, profile, caps);
        inserted.expect("a free id");
        self.present.push(id);
    }

    fn remove(&mut self) {
        let nth = self.random.random_range(0..self.present.len());
        let id = self.present.swap_remove(nth);
        assert!(self.views.remove(id, RemovalReason::Despawn));
        self.absent.push(id);
    }

    /// Sets rules of the scene for a while, a custom ranking among them, and limits the scans in an update.
    fn change_rules(&mut self) {
        let filter: Option<ViewFilter> = Some(|a, b| (a.id ^ b.id) % 16 != 3);
        let priority: Option<ViewPriority> =
            Some(|a, b| (b.id % 3 + u32::from(a.team == b.team)) as u8);
        let filter = filter.filter(|_| self.random.random_bool(0.4));
        let priority = priority.filter(|_| self.random.random_bool(0.2));
        self.views.set_rules(filter, priority);
    }

    /// Changes one object at random, usually by a step.
    fn disturb(&mut self, id: u32) {
        let step = vec2(self.random.random(), self.random.random()) * 8.0 - 4.0;
        let from = self.views.position(id).expect("it is present");
        match self.random.random_range(0..40) {
            0 => {
                let to = self.spot();
                self.views.teleport(id, to);
            }
            1 => {
                let traits = self.views.traits(id).expect("it is present");
                let team = self.random.random_range(0..9);
                self.views.set_traits(id, ViewTraits { team, ..traits });
            }
            2 => self.views.set_hidden(id, self.random.random_bool(0.3)),
            4 => {
                let cap = self.random.random_range(0..40);
                self.views.set_caps(id, Some(ViewCaps::all(cap)));
            }
            5 => {
                let traits = self.views.traits(id).expect("it is present");
                let (layers, sees) = (
                    self.random.random_range(1..4),
                    1 | self.random.random_range(0..4),
                );
                let layers = if self.random.random_bool(0.7) {
                    1
                } else {
                    layers
                };
                self.views.set_traits(
                    id,
                    ViewTraits {
                        layers,
                        sees,
                        ..traits
                    },
                );
            }
            // Removed and inserted again between two ticks.
            3 if !self.absent.is_empty() => {
                self.remove();
                self.insert();
            }
            _ => self.views.locate(id, from + step),
        }
    }

    /// Runs one tick that moves the number of objects towards `goal`.
    fn tick(&mut self, goal: usize) {
        for _ in 0..self.random.random_range(0..24) {
            if self.present.len() < goal && !self.absent.is_empty() {
                self.insert();
            } else if self.present.len() > goal {
                self.remove();
            }
        }
        for _ in 0..self.present.len() / 8 {
            let Some(id) = self.somebody() else {
                break;
            };
            self.disturb(id);
        }
        if self.random.random_bool(0.1) {
            self.change_rules();
        }
        let sweeps = self.random.random_range(0..90);
        self.views
            .set_full_scans_max(if sweeps < 50 { sweeps } else { u32::MAX });
        let looks = self.random.random_range(0..60);
        let mut events = Vec::new();
        self.views.update(looks, &mut events);
        for event in events {
            let changed = match event {
                ViewEvent::Enter { .. } => self.links.insert(event.pair()),
                ViewEvent::Leave { .. } => self.links.remove(&event.pair()),
            };
            assert!(changed, "{event:?}");
        }
        assert_eq!(self.views.validate(), Ok(()));
        let links = self
            .views
            .links()
            .map(|(viewer, target, _)| (viewer, target));
        assert!(links.collect::<BTreeSet<_>>() == self.links);
        let words = self.views.shared.cells.iter().map(|cell| cell.words);
        self.words_max = words.max().unwrap_or(0);
    }
}

fn crowds_of_many_words_are_exact(sight: ViewLinkMode, cells: (u16, u16), count: u32) {
    let mut dense = Dense::new(sight, cells, count, u64::from(count));
    let full = count as usize - 10;
    (0..50).for_each(|_| dense.tick(full));
    let most = dense.words_max;
    assert!(most >= 3, "{most} words");
    // Long enough for the shrink check of all cells.
    (0..90).for_each(|_| dense.tick(40));
    assert!(
        dense.words_max < most,
        "{most} words, {} then",
        dense.words_max
    );
    (0..30).for_each(|_| dense.tick(full));
}

#[test]
fn dense_directed_crowds_are_exact_under_churn() {
    crowds_of_many_words_are_exact(ViewLinkMode::Directed, (3, 3), 330);
    crowds_of_many_words_are_exact(ViewLinkMode::Directed, (5, 3), 400);
}

#[test]
fn dense_mutual_crowds_are_exact_under_churn() {
    crowds_of_many_words_are_exact(ViewLinkMode::Mutual, (3, 3), 330);
    crowds_of_many_words_are_exact(ViewLinkMode::Mutual, (5, 3), 400);
}

/// Memory follows the current number of objects, not the past maximum.
#[test]
fn memory_follows_a_walking_crowd() {
    let (count, cell_m) = (2_000, workload::CELL_M);
    let size_m = (40.0 * cell_m, 3.0 * cell_m);
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut spots: Vec<Vec2> = (0..count)
        .map(|_| vec2(random.random(), random.random()) * vec2(2.0, 3.0) * cell_m)
        .collect();
    let build = |spots: &[Vec2]| {
        let views = SceneViews::with_size(size_m, cell_m, 0.0, count);
        let mut views = views.expect("a legal scene");
        for (id, &at) in (0..).zip(spots) {
            let profile = ViewProfile {
                class: ObjectCategory::Player,
                visibility: ViewRange::Near,
                traits: workload::traits(id),
                viewable: true,
            };
            let inserted = views.insert(id, at, profile, Some(ViewCaps::all(50)));
            inserted.expect("a free id");
        }
        views.update(u32::MAX, &mut Vec::new());
        views
    };
    let mut views = build(&spots);
    let steps = [12.0, -12.0].map(|step| [step; 125]);
    for (tick, step) in (1..).zip(steps.concat()) {
        for (id, at) in (0..).zip(&mut spots) {
            at.x += step;
            views.locate(id, *at);
        }
        views.update(u32::MAX, &mut Vec::new());
        if tick % 25 == 0 {
            let mut afresh = build(&spots);
            // Until the memory that a login needed is freed.
            (0..SHRINK_CHECK_TICKS).for_each(|_| afresh.update(0, &mut Vec::new()));
            let (held, fresh) = (views.heap_bytes(), afresh.heap_bytes());
            assert!(
                held <= 3 * fresh,
                "{held} bytes after {tick} ticks, {fresh} afresh"
            );
        }
    }
    assert_eq!(views.validate(), Ok(()));
}

#[test]
fn memory_of_left_cells_and_mass_moves_is_freed() {
    let count = 300;
    let views = SceneViews::with_size((20.0 * CELL_M, 20.0 * CELL_M), CELL_M, 0.0, count);
    let mut views = views.expect("a legal scene");
    for id in 0..count {
        let profile = ViewProfile {
            class: ObjectCategory::Player,
            visibility: ViewRange::Near,
            traits: ViewTraits::default(),
            viewable: true,
        };
        let at = vec2((id % 20) as f32, (id / 20) as f32) * CELL_M + 1.0;
        let inserted = views.insert(id, at, profile, Some(ViewCaps::all(20)));
        inserted.expect("a free id");
    }
    let wait = |views: &mut SceneViews| {
        (0..=SHRINK_CHECK_TICKS).for_each(|_| views.update(u32::MAX, &mut Vec::new()));
        assert_eq!(views.validate(), Ok(()));
    };
    wait(&mut views);
    let thin = views.heap_bytes();
    (0..count).for_each(|id| views.teleport(id, vec2(1.0, 1.0)));
    wait(&mut views);
    let cells = views.shared.cells.iter().zip(&views.viewers);
    let held =
        |(target, viewers): (&TargetCell, &ViewerCell)| target.heap_bytes() + viewers.heap_bytes();
    assert!(cells.skip(1).all(|cell| held(cell) == 0));
    for id in 0..count {
        let at = vec2((id % 20) as f32, (id / 20) as f32) * CELL_M + 1.0;
        views.teleport(id, at);
    }
    views.update(u32::MAX, &mut Vec::new());
    wait(&mut views);
    let held = views.heap_bytes();
    assert!(held <= thin + thin / 4, "{held} bytes, {thin} before");
}
