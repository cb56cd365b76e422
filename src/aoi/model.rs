//! The views against a model that looks at every pair on every tick, over random scripts.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use glam::{Vec2, vec2};
use proptest::prelude::*;

use super::{
    grid::GridCell,
    priority::{Standing, by_relationship},
    views::{InsertError, LeaveReason, Profile, Removal, SceneViews, ViewCaps, ViewEvent},
};
use crate::world::kinds::{KindClass, Visibility};

const IDS: u32 = 24;
const CELL_M: f32 = 10.0;
const MARGIN_M: f32 = 2.5;
const COLUMNS: i64 = 7;
const ROWS: i64 = 5;

/// One line of a script; positions in half metres, so that borders and margins are hit exactly.
#[derive(Clone, Debug)]
enum Op {
    Insert {
        id: u32,
        at: (i16, i16),
        class: u8,
        visibility: u8,
        team: u32,
        viewable: bool,
        caps: Option<[u16; 3]>,
    },
    Remove {
        id: u32,
        removal: Removal,
    },
    Walk {
        id: u32,
        by: (i16, i16),
    },
    Teleport {
        id: u32,
        to: (i16, i16),
    },
    Join {
        id: u32,
        team: u32,
        party: u32,
    },
    Layers {
        id: u32,
        layers: u32,
        sees: u32,
    },
    Hide {
        id: u32,
        hidden: bool,
    },
    Caps {
        id: u32,
        caps: Option<[u16; 3]>,
    },
    Tick {
        looks: u32,
    },
}

#[derive(Clone, Debug)]
struct ModelObject {
    position: Vec2,
    cell: (i64, i64),
    class: KindClass,
    visibility: Visibility,
    standing: Standing,
    viewable: bool,
    caps: Option<[u16; 3]>,
}

/// What should be: objects with their sticky cells, and the links that the events told of.
#[derive(Default)]
struct Model {
    objects: BTreeMap<u32, ModelObject>,
    links: BTreeSet<(u32, u32)>,
    removed: BTreeMap<u32, Removal>,
    blinded: BTreeSet<u32>,
}

fn metres((x, y): (i16, i16)) -> Vec2 {
    vec2(f32::from(x), f32::from(y)) / 2.0
}

fn floor_cell(p: Vec2) -> (i64, i64) {
    let axis = |p: f32, count: i64| ((p / CELL_M).floor() as i64).clamp(0, count - 1);
    (axis(p.x, COLUMNS), axis(p.y, ROWS))
}

fn sticky_cell(cell: (i64, i64), p: Vec2) -> (i64, i64) {
    let axis = |cell: i64, p: f32, floor: i64| {
        let low = cell as f32 * CELL_M;
        if p < low - MARGIN_M || p >= low + CELL_M + MARGIN_M {
            floor
        } else {
            cell
        }
    };
    let floor = floor_cell(p);
    (axis(cell.0, p.x, floor.0), axis(cell.1, p.y, floor.1))
}

impl Model {
    fn in_range(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (&self.objects[&viewer], &self.objects[&target]);
        let scale = match b.visibility {
            Visibility::Near => 1,
            Visibility::Far(cells) => i64::from(cells.max(1)),
            Visibility::Scene => return true,
        };
        let near = |a: i64, b: i64| (a / scale - b / scale).abs() <= 1;
        near(a.cell.0, b.cell.0) && near(a.cell.1, b.cell.1)
    }

    fn could_see(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (&self.objects[&viewer], &self.objects[&target]);
        viewer != target
            && a.caps.is_some()
            && b.viewable
            && !b.standing.hidden
            && a.standing.sees & b.standing.layers != 0
            && self.in_range(viewer, target)
    }

    fn rank(&self, viewer: u32, target: u32) -> u8 {
        by_relationship(
            &self.objects[&viewer].standing,
            &self.objects[&target].standing,
        )
    }

    /// Does to the model and to the views what a line says.
    fn apply(&mut self, views: &mut SceneViews, op: &Op) {
        match *op {
            Op::Insert {
                id,
                at,
                class,
                visibility,
                team,
                viewable,
                caps,
            } => {
                let visibility = match visibility {
                    0..6 => Visibility::Near,
                    6 => Visibility::Far(2),
                    7 => Visibility::Far(3),
                    _ => Visibility::Scene,
                };
                let class = KindClass::ALL[usize::from(class)];
                let standing = Standing {
                    team,
                    ..Standing::default()
                };
                let profile = Profile {
                    class,
                    visibility,
                    standing,
                    viewable,
                };
                let inserted = views.insert(id, metres(at), profile, caps.map(view_caps));
                match self.objects.entry(id) {
                    Entry::Occupied(_) => assert_eq!(inserted, Err(InsertError::IdInUse { id })),
                    Entry::Vacant(free) => {
                        assert_eq!(inserted, Ok(()));
                        let position = metres(at);
                        let cell = floor_cell(position);
                        free.insert(ModelObject {
                            position,
                            cell,
                            class,
                            visibility,
                            standing,
                            viewable,
                            caps,
                        });
                    }
                }
            }
            Op::Remove { id, removal } => {
                let existed = self.objects.remove(&id).is_some();
                assert_eq!(views.remove(id, removal), existed);
                if existed {
                    self.removed.entry(id).or_insert(removal);
                    assert!(views.watchers(id).len() == 0 && views.seen_by(id).next().is_none());
                }
            }
            Op::Walk { id, by } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.position += metres(by);
                    object.cell = sticky_cell(object.cell, object.position);
                    views.locate(id, object.position);
                }
            }
            Op::Teleport { id, to } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.position = metres(to);
                    object.cell = floor_cell(object.position);
                }
                views.teleport(id, metres(to));
            }
            Op::Join { id, team, party } => {
                self.change_standing(views, id, |old| Standing { team, party, ..old })
            }
            Op::Layers { id, layers, sees } => {
                self.change_standing(views, id, |old| Standing {
                    layers,
                    sees,
                    ..old
                });
            }
            Op::Hide { id, hidden } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.standing.hidden = hidden;
                }
                views.set_hidden(id, hidden);
            }
            Op::Caps { id, caps } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.caps = caps;
                    if caps.is_none() {
                        self.blinded.insert(id);
                    }
                }
                views.set_caps(id, caps.map(view_caps));
            }
            Op::Tick { looks } => self.tick(views, looks),
        }
    }

    fn change_standing(
        &mut self,
        views: &mut SceneViews,
        id: u32,
        change: impl Fn(Standing) -> Standing,
    ) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.standing = change(object.standing);
            views.set_standing(id, object.standing);
        }
    }

    fn tick(&mut self, views: &mut SceneViews, looks: u32) {
        let mut events = Vec::new();
        let looked = views.counters().looks;
        views.update(looks, &mut events);
        assert!(views.counters().looks - looked <= u64::from(looks));
        self.replay(&events);
        self.check(views);
        assert_eq!(views.validate(), Ok(()));
        self.removed.clear();
        self.blinded.clear();
    }

    /// Events must alternate for each pair, have the right reason, and never undo each other.
    fn replay(&mut self, events: &[ViewEvent]) {
        let mut touched = BTreeSet::new();
        for &event in events {
            match event {
                ViewEvent::Enter {
                    viewer,
                    target,
                    priority,
                } => {
                    assert!(self.links.insert((viewer, target)), "{event:?} twice");
                    assert!(self.could_see(viewer, target), "{event:?}");
                    assert_eq!(priority, self.rank(viewer, target), "{event:?}");
                    let reused = [viewer, target]
                        .iter()
                        .any(|id| self.removed.contains_key(id))
                        || self.blinded.contains(&viewer);
                    assert!(
                        touched.insert((viewer, target)) || reused,
                        "{event:?} in the tick of its leave"
                    );
                }
                ViewEvent::Leave {
                    viewer,
                    target,
                    reason,
                } => {
                    assert!(
                        self.links.remove(&(viewer, target)),
                        "{event:?} without enter"
                    );
                    assert!(
                        touched.insert((viewer, target)),
                        "{event:?} in the tick of its enter"
                    );
                    let removed = |removal| {
                        [viewer, target]
                            .iter()
                            .any(|id| self.removed.get(id) == Some(&removal))
                    };
                    let holds = match reason {
                        LeaveReason::Range => !self.in_range(viewer, target),
                        LeaveReason::Hidden => {
                            self.in_range(viewer, target) && !self.could_see(viewer, target)
                        }
                        LeaveReason::Evicted => self.could_see(viewer, target),
                        LeaveReason::Despawn => {
                            removed(Removal::Despawn) || self.blinded.contains(&viewer)
                        }
                        LeaveReason::Scene => removed(Removal::Scene),
                    };
                    assert!(holds, "{event:?}");
                }
            }
        }
    }

    fn check(&self, views: &SceneViews) {
        let links: BTreeSet<_> = views
            .links()
            .map(|(viewer, target, _)| (viewer, target))
            .collect();
        assert_eq!(
            links, self.links,
            "the events tell another story than the links"
        );
        assert_eq!(links.len(), views.link_count());
        let queued: BTreeSet<u32> = views.queued().collect();
        assert_eq!(queued.len(), views.queue_len());
        for (&viewer, a) in &self.objects {
            let cell = GridCell {
                x: a.cell.0 as u16,
                y: a.cell.1 as u16,
            };
            assert_eq!(views.cell(viewer), Some(cell), "cell of {viewer}");
            for (&target, b) in &self.objects {
                let linked = self.links.contains(&(viewer, target));
                assert_eq!(views.sees(viewer, target), linked, "{viewer} sees {target}");
                assert!(
                    !linked || self.could_see(viewer, target),
                    "{viewer} sees {target} and cannot"
                );
                assert_eq!(
                    views.watchers(target).any(|watcher| watcher == viewer),
                    linked
                );
                if b.visibility != Visibility::Near && !queued.contains(&viewer) {
                    assert_eq!(
                        linked,
                        self.could_see(viewer, target),
                        "{viewer} sees {target}, outside caps"
                    );
                }
            }
            for class in KindClass::ALL {
                self.check_list(views, viewer, class, &queued);
            }
        }
        assert!(queued.iter().all(|id| {
            self.objects
                .get(id)
                .is_some_and(|object| object.caps.is_some())
        }));
    }

    fn check_list(
        &self,
        views: &SceneViews,
        viewer: u32,
        class: KindClass,
        queued: &BTreeSet<u32>,
    ) {
        let cap = self.objects[&viewer]
            .caps
            .map_or(0, |caps| usize::from(caps[class.index()]));
        let counts = |target: u32| {
            let other = &self.objects[&target];
            other.class == class && other.visibility == Visibility::Near
        };
        let (seen, unseen): (Vec<u32>, Vec<u32>) = self
            .objects
            .keys()
            .filter(|&&target| counts(target) && self.could_see(viewer, target))
            .partition(|&&target| self.links.contains(&(viewer, target)));
        assert!(
            seen.len() <= cap,
            "{viewer} sees {} of {class:?}, its cap is {cap}",
            seen.len()
        );
        assert_eq!(views.list_len(viewer, class), seen.len());
        let lowest = seen.iter().map(|&target| self.rank(viewer, target)).min();
        let highest = unseen.iter().map(|&target| self.rank(viewer, target)).max();
        if let (Some(highest), false) = (highest, queued.contains(&viewer)) {
            assert_eq!(
                seen.len(),
                cap,
                "{viewer} has a free place and does not see {unseen:?}"
            );
            assert!(
                lowest.is_none_or(|lowest| highest <= lowest),
                "one of {unseen:?} outranks {viewer}'s lowest"
            );
        }
    }

    /// At rest the queue is worked off in the promised number of ticks, and nothing is left to gain.
    fn come_to_rest(&mut self, views: &mut SceneViews, looks: u32) {
        self.tick(views, 0);
        for _ in 0..views.queue_len().div_ceil(looks as usize) {
            self.tick(views, looks);
        }
        assert_eq!(views.queue_len(), 0);
        let before = views.counters();
        self.tick(views, looks);
        assert_eq!(views.counters(), before, "at rest nothing happens");
    }
}

fn view_caps([players, npcs, things]: [u16; 3]) -> ViewCaps {
    ViewCaps {
        players,
        npcs,
        things,
    }
}

fn scene() -> SceneViews {
    SceneViews::with_size(
        (COLUMNS as f32 * CELL_M, ROWS as f32 * CELL_M),
        CELL_M,
        MARGIN_M,
        IDS,
    )
    .expect("a legal scene")
}

fn digest(views: &SceneViews) -> Vec<u64> {
    let mut words = Vec::new();
    views.digest(&mut |word| words.push(word));
    words
}

fn place() -> impl Strategy<Value = (i16, i16)> {
    // Most in the middle, some beyond the borders.
    prop_oneof![4 => (20i16..80, 20i16..60), 1 => (-20i16..160, -20i16..120)]
}

fn caps() -> impl Strategy<Value = Option<[u16; 3]>> {
    prop_oneof![1 => Just(None), 5 => prop::array::uniform3(0u16..5).prop_map(Some)]
}

fn change() -> impl Strategy<Value = Op> {
    let id = || 0..IDS;
    prop_oneof![
        12 => (id(), (-14i16..=14, -14i16..=14)).prop_map(|(id, by)| Op::Walk { id, by }),
        3 => (id(), place()).prop_map(|(id, to)| Op::Teleport { id, to }),
        3 => (id(), 0u32..3, 0u32..3).prop_map(|(id, team, party)| Op::Join { id, team, party }),
        1 => (id(), 1u32..4, 1u32..4).prop_map(|(id, layers, sees)| Op::Layers { id, layers, sees }),
        1 => (id(), any::<bool>()).prop_map(|(id, hidden)| Op::Hide { id, hidden }),
        2 => (id(), caps()).prop_map(|(id, caps)| Op::Caps { id, caps }),
    ]
}

fn insert() -> impl Strategy<Value = Op> {
    (
        0..IDS,
        place(),
        0u8..3,
        0u8..9,
        0u32..3,
        prop::bool::weighted(0.9),
        caps(),
    )
        .prop_map(|(id, at, class, visibility, team, viewable, caps)| {
            // Mostly players, so that caps bite.
            Op::Insert {
                id,
                at,
                class: class / 2,
                visibility,
                team,
                viewable,
                caps,
            }
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => change(),
        3 => insert(),
        1 => (0..IDS, prop_oneof![Just(Removal::Despawn), Just(Removal::Scene)])
            .prop_map(|(id, removal)| Op::Remove { id, removal }),
        4 => (0u32..4).prop_map(|looks| Op::Tick { looks }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn views_are_exact_on_every_tick(
        cast in prop::collection::vec(insert(), 0..40),
        script in prop::collection::vec(op(), 0..120),
        looks in 1u32..4,
    ) {
        let (mut model, mut views) = (Model::default(), scene());
        for op in cast.iter().chain(&script) {
            model.apply(&mut views, op);
        }
        model.come_to_rest(&mut views, looks);
    }

    /// Everything but a removal is noted by id, so it does not matter who reports first.
    #[test]
    fn the_order_of_calls_within_a_tick_does_not_matter(
        cast in prop::collection::vec(insert(), 10..40),
        ticks in prop::collection::vec(prop::collection::vec(change(), 0..12), 1..8),
        looks in 0u32..4,
    ) {
        let (mut forward, mut backward) = ((Model::default(), scene()), (Model::default(), scene()));
        cast.iter().for_each(|op| forward.0.apply(&mut forward.1, op));
        cast.iter().for_each(|op| backward.0.apply(&mut backward.1, op));
        for changes in &ticks {
            // A viewer that ceases to be one loses its links at once, as by a removal.
            let ceases = |op: &&Op| matches!(op, Op::Caps { caps: None, .. });
            let mut reordered: Vec<&Op> = changes.iter().filter(|op| !ceases(op)).collect();
            reordered.iter().for_each(|op| forward.0.apply(&mut forward.1, op));
            // A stable sort keeps the order of what one object does.
            reordered.sort_by_key(|op| match op {
                Op::Walk { id, .. } | Op::Teleport { id, .. } | Op::Join { id, .. } => u32::MAX - id,
                Op::Layers { id, .. } | Op::Hide { id, .. } | Op::Caps { id, .. } => u32::MAX - id,
                _ => 0,
            });
            reordered.iter().for_each(|op| backward.0.apply(&mut backward.1, op));
            let mut events = [Vec::new(), Vec::new()];
            forward.1.update(looks, &mut events[0]);
            backward.1.update(looks, &mut events[1]);
            prop_assert_eq!(&events[0], &events[1]);
            prop_assert_eq!(digest(&forward.1), digest(&backward.1));
        }
    }

    #[test]
    fn nearby_finds_exactly_those_within_the_radius(
        cast in prop::collection::vec(insert(), 0..40),
        walks in prop::collection::vec(change(), 0..40),
        (x, y) in place(),
        radius_m in 0f32..60.0,
        classes in 0u8..8,
    ) {
        let (mut model, mut views) = (Model::default(), scene());
        cast.iter().chain(&walks).for_each(|op| model.apply(&mut views, op));
        model.tick(&mut views, 8);
        let centre = metres((x, y));
        let mut found = vec![7];
        views.nearby(centre, radius_m, classes, &mut found);
        let expected: Vec<u32> = model.objects.iter()
            .filter(|(_, object)| object.viewable && classes >> object.class.index() & 1 != 0)
            .filter(|(_, object)| object.position.distance_squared(centre) <= radius_m * radius_m)
            .map(|(&id, _)| id)
            .collect();
        prop_assert_eq!(found, expected);
    }
}

mod cases;
