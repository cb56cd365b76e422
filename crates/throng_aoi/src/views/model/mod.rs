//! The views against a model that checks every pair on every tick, over random scripts.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use glam::{Vec2, vec2};
use proptest::prelude::*;
use throng_core::kinds::{ObjectCategory, ViewRange};
use throng_core::parallel::ThreadExecutor;

use super::{
    RemovalReason, SceneViews, ViewCaps, ViewCounters, ViewEvent, ViewException, ViewInsertError,
    ViewLeaveReason, ViewLinkMode, ViewProfile,
};
use crate::grid::GridCell;
use crate::priority::{
    BAND_COUNT, CLASS_MAX, DistanceBands, DistanceRules, ViewFilter, ViewPriority, ViewTraits,
    by_relationship,
};
use script::{Op, change, exact_change, insert, op, place, sight};

const IDS: u32 = 24;
const CELL_M: f32 = 10.0;
const MARGIN_M: f32 = 2.5;
const COLUMNS: i64 = 7;
const ROWS: i64 = 5;

#[derive(Clone, Debug)]
struct ModelObject {
    position: Vec2,
    cell: (i64, i64),
    class: ObjectCategory,
    visibility: ViewRange,
    traits: ViewTraits,
    viewable: bool,
    caps: Option<[u16; 3]>,
    /// Its own radius in half metres, if it has one; [`WHOLE_SCENE`] for an infinite one.
    radius: Option<i64>,
}

/// An infinite radius.
const WHOLE_SCENE: i64 = i64::MAX;

/// The expected state: objects with their sticky cells, and the links according to the events.
#[derive(Default)]
struct Model {
    sight: ViewLinkMode,
    objects: BTreeMap<u32, ModelObject>,
    links: BTreeSet<(u32, u32)>,
    /// What a consumer stores for the lists of each viewer: here the targets themselves.
    beside: BTreeMap<(u32, u8), BTreeSet<u32>>,
    removed: BTreeMap<u32, RemovalReason>,
    /// The rules of the scene.
    filter: Option<ViewFilter>,
    priority: Option<ViewPriority>,
    /// The rules by distance: beyond how many half metres, and what has to hold there.
    distance_rules: Vec<(i64, ViewFilter)>,
    exceptions: BTreeMap<(u32, u32), ViewException>,
    /// Whether the objects that the script marks so are scenery.
    has_scenery: bool,
    /// The number of exact viewers that may scan in a tick.
    exact_scans_max: u32,
    /// Objects that began or ceased to be viewers, or whose radius or rules by distance changed, since the last tick.
    roles: BTreeSet<u32>,
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
    /// Whether two objects are at most this many half metres apart, by integers.
    fn is_within(&self, a: u32, b: u32, half_metres: i64) -> bool {
        let axis = |a: f32, b: f32| (a * 2.0) as i64 - (b * 2.0) as i64;
        let (a, b) = (self.objects[&a].position, self.objects[&b].position);
        let (dx, dy) = (axis(a.x, b.x), axis(a.y, b.y));
        half_metres == WHOLE_SCENE || dx * dx + dy * dy <= half_metres * half_metres
    }

    /// Whether the links of a viewer depend on exact distances.
    fn is_exact(&self, viewer: u32) -> bool {
        let object = &self.objects[&viewer];
        object.caps.is_some() && (object.radius.is_some() || !self.distance_rules.is_empty())
    }

    fn in_range(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (&self.objects[&viewer], &self.objects[&target]);
        if let Some(radius) = a.radius {
            return self.is_within(viewer, target, radius);
        }
        let scale = match b.visibility {
            ViewRange::Near => 1,
            ViewRange::Far(cells) => i64::from(cells.max(1)),
            ViewRange::Scene => return true,
        };
        let near = |a: i64, b: i64| (a / scale - b / scale).abs() <= 1;
        near(a.cell.0, b.cell.0) && near(a.cell.1, b.cell.1)
    }

    /// Whether two objects see either each other or not at all.
    fn is_pair(&self, a: u32, b: u32) -> bool {
        let is_peer = |object: &ModelObject| {
            object.caps.is_some() && object.viewable && object.visibility == ViewRange::Near
        };
        self.sight == ViewLinkMode::Mutual
            && is_peer(&self.objects[&a])
            && is_peer(&self.objects[&b])
            && !self.is_exact(a)
            && !self.is_exact(b)
    }

    fn could_see(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (&self.objects[&viewer], &self.objects[&target]);
        let shows = |a: &ViewTraits, b: &ViewTraits| {
            let by_rules = a.sees & b.layers != 0 && self.filter.is_none_or(|filter| filter(a, b));
            let exception = self.exceptions.get(&(a.id, b.id));
            let shown = exception.map_or(by_rules, |&e| e == ViewException::Show);
            !b.hidden && shown
        };
        viewer != target
            && a.caps.is_some()
            && b.viewable
            && shows(&a.traits, &b.traits)
            && (!self.is_pair(viewer, target) || shows(&b.traits, &a.traits))
            && self.in_range(viewer, target)
            && self.is_allowed_by_distance(viewer, target)
    }

    fn is_allowed_by_distance(&self, viewer: u32, target: u32) -> bool {
        let (a, b) = (&self.objects[&viewer].traits, &self.objects[&target].traits);
        let is_shown = self.exceptions.get(&(viewer, target)) == Some(&ViewException::Show);
        let mut rules = self.distance_rules.iter();
        is_shown
            || rules.all(|&(beyond, allows)| self.is_within(viewer, target, beyond) || allows(a, b))
    }

    fn class(&self, viewer: u32, target: u32) -> u8 {
        let (a, b) = (&self.objects[&viewer].traits, &self.objects[&target].traits);
        let of = self.priority.unwrap_or(by_relationship);
        let back = self.is_pair(viewer, target).then(|| of(b, a));
        of(a, b).max(back.unwrap_or(0)).min(CLASS_MAX)
    }

    fn tick(&mut self, views: &mut SceneViews, looks: u32) {
        let mut events = Vec::new();
        let before = views.counters();
        views.update(looks, &mut events);
        let after = views.counters();
        let count = |is: fn(&ViewEvent) -> bool| events.iter().filter(|one| is(one)).count() as u64;
        let is_eviction = |event: &ViewEvent| {
            let reason = ViewLeaveReason::Evicted;
            matches!(event, ViewEvent::Leave { reason: of, .. } if *of == reason)
        };
        let entered = count(|event| matches!(event, ViewEvent::Enter { .. }));
        assert_eq!(after.enters - before.enters, entered);
        let left = count(|event| matches!(event, ViewEvent::Leave { .. }));
        assert_eq!(after.leaves - before.leaves, left);
        let evictions = after.evictions - before.evictions;
        let evicted = match views.view_link_mode() {
            ViewLinkMode::Directed => evictions..=evictions,
            // An evicted pair counts once and has two links.
            ViewLinkMode::Mutual => evictions..=2 * evictions,
        };
        assert!(evicted.contains(&count(is_eviction)), "{evictions}");
        assert!(after.scans - before.scans <= u64::from(looks));
        assert!(after.exact_scans - before.exact_scans <= u64::from(self.exact_scans_max));
        self.replay(&events);
        self.check(views);
        assert_eq!(views.validate(), Ok(()));
        self.removed.clear();
        self.roles.clear();
    }

    /// Events must alternate for each pair and have the right reason; only an eviction may undo an enter of the same
    /// tick, or be undone.
    fn replay(&mut self, events: &[ViewEvent]) {
        let (mut touched, mut evicted) = (BTreeSet::new(), BTreeSet::new());
        for &event in events {
            match event {
                ViewEvent::Enter {
                    viewer,
                    target,
                    priority,
                    list,
                } => {
                    let beside = self.beside.entry((viewer, list)).or_default();
                    assert!(beside.insert(target), "{event:?} in the list already");
                    assert!(self.links.insert((viewer, target)), "{event:?} twice");
                    assert!(self.could_see(viewer, target), "{event:?}");
                    assert_eq!(priority, self.class(viewer, target), "{event:?}");
                    let reused = [viewer, target]
                        .iter()
                        .any(|id| self.removed.contains_key(id) || self.roles.contains(id));
                    assert!(
                        touched.insert((viewer, target))
                            || reused
                            || evicted.contains(&(viewer, target)),
                        "{event:?} in the tick of its leave"
                    );
                }
                ViewEvent::Leave {
                    viewer,
                    target,
                    reason,
                    list,
                } => {
                    let beside = self.beside.entry((viewer, list)).or_default();
                    assert!(beside.remove(&target), "{event:?} from another list");
                    assert!(
                        self.links.remove(&(viewer, target)),
                        "{event:?} without enter"
                    );
                    assert!(
                        touched.insert((viewer, target)) || reason == ViewLeaveReason::Evicted,
                        "{event:?} in the tick of its enter"
                    );
                    if reason == ViewLeaveReason::Evicted {
                        evicted.insert((viewer, target));
                    }
                    let removed = |removal| {
                        [viewer, target]
                            .iter()
                            .any(|id| self.removed.get(id) == Some(&removal))
                    };
                    let holds = match reason {
                        ViewLeaveReason::Range => {
                            !self.in_range(viewer, target) || self.roles.contains(&viewer)
                        }
                        ViewLeaveReason::Hidden => {
                            self.in_range(viewer, target) && !self.could_see(viewer, target)
                        }
                        ViewLeaveReason::Evicted => self.could_see(viewer, target),
                        ViewLeaveReason::Despawn => {
                            removed(RemovalReason::Despawn)
                                || self.roles.contains(&viewer)
                                || self.roles.contains(&target)
                        }
                        ViewLeaveReason::Scene => removed(RemovalReason::Scene),
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
        for (&(viewer, list), beside) in &self.beside {
            let listed = views.list(viewer, usize::from(list)).map(|seen| seen.0);
            assert_eq!(
                listed.collect::<BTreeSet<u32>>(),
                *beside,
                "beside list {list} of {viewer}"
            );
        }
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
                assert_eq!(
                    views.visible(viewer, target),
                    linked,
                    "{viewer} sees {target}"
                );
                assert!(
                    !linked || self.could_see(viewer, target),
                    "{viewer} sees {target} and cannot"
                );
                assert_eq!(
                    views.watchers(target).any(|watcher| watcher == viewer),
                    linked
                );
                if self.is_pair(viewer, target) {
                    assert_eq!(linked, self.links.contains(&(target, viewer)));
                }
                if b.visibility != ViewRange::Near && !queued.contains(&viewer) {
                    assert_eq!(
                        linked,
                        self.could_see(viewer, target),
                        "{viewer} sees {target}, outside caps"
                    );
                }
            }
            for class in ObjectCategory::ALL {
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
        class: ObjectCategory,
        queued: &BTreeSet<u32>,
    ) {
        let cap = self.objects[&viewer]
            .caps
            .map_or(0, |caps| usize::from(caps[class.index()]));
        let counts = |target: u32| {
            let other = &self.objects[&target];
            other.class == class && other.visibility == ViewRange::Near
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
        for &target in &unseen {
            let class = self.class(viewer, target);
            let gains = self.could_enter(views, viewer, target, class);
            let back =
                !self.is_pair(viewer, target) || self.could_enter(views, target, viewer, class);
            let waits = queued.contains(&viewer)
                || self.is_pair(viewer, target) && queued.contains(&target);
            assert!(
                waits || !(gains && back),
                "{viewer} would see {target}, of class {class}, and does not wait"
            );
        }
    }

    /// Whether a viewer has a free slot for a target that it does not see, or a member of a lower class.
    fn could_enter(&self, views: &SceneViews, viewer: u32, target: u32, class: u8) -> bool {
        let list = self.objects[&target].class;
        let cap = self.objects[&viewer]
            .caps
            .map_or(0, |caps| usize::from(caps[list.index()]));
        let mut members = self.members(viewer, list);
        views.list_len(viewer, list) < cap
            || members.any(|member| self.class(viewer, member) < class)
    }

    /// The targets of a viewer in the list of a category.
    fn members(&self, viewer: u32, list: ObjectCategory) -> impl Iterator<Item = u32> + '_ {
        let seen = self.links.range((viewer, 0)..=(viewer, u32::MAX));
        seen.map(|&(_, target)| target).filter(move |target| {
            let other = &self.objects[target];
            other.class == list && other.visibility == ViewRange::Near
        })
    }

    /// No target of a class stays unseen in a nearer band than a member of that class, hysteresis apart.
    fn check_bands(&self) {
        let distance = |a: u32, b: u32| {
            self.objects[&a]
                .position
                .distance(self.objects[&b].position)
        };
        let keeps_farther = |viewer: u32, target: u32| {
            let (me, other) = (&self.objects[&viewer], &self.objects[&target]);
            let scene_m = COLUMNS.max(ROWS) as f32 * CELL_M;
            let cell_m = match me.radius {
                None => CELL_M,
                Some(WHOLE_SCENE) => scene_m / 2.0,
                Some(half_metres) => (half_metres as f32 / 2.0).min(scene_m) / 2.0,
            };
            let bands = DistanceBands::new(cell_m);
            let nearness = bands.nearness(me.position, other.position);
            let end_cells = 0.5 * f32::from(BAND_COUNT - nearness) + DistanceBands::HYSTERESIS;
            let class = self.class(viewer, target);
            nearness > 0
                && self.members(viewer, other.class).any(|member| {
                    self.class(viewer, member) == class
                        && distance(viewer, member) > end_cells * cell_m + 1e-3
                })
        };
        for &viewer in self.objects.keys() {
            for (&target, other) in &self.objects {
                let counts = other.visibility == ViewRange::Near
                    && viewer != target
                    && self.could_see(viewer, target)
                    && !self.links.contains(&(viewer, target));
                assert!(
                    !(counts
                        && keeps_farther(viewer, target)
                        && (!self.is_pair(viewer, target) || keeps_farther(target, viewer))),
                    "{viewer} sees somebody farther than {target}"
                );
            }
        }
    }

    fn set_exact_scans_max(&mut self, views: &mut SceneViews, scans: u32) {
        self.exact_scans_max = scans;
        views.set_exact_scans_max(scans);
    }

    /// At rest the queue is empty after the promised number of ticks, and nothing is left to gain.
    fn check_at_rest(&mut self, views: &mut SceneViews, looks: u32, rerank_ticks: u32) {
        self.set_exact_scans_max(views, looks);
        self.tick(views, 0);
        // Directed mode evicts no link of another viewer, so no other viewer is queued.
        let mut rounds = 0;
        while views.queue_len() > 0 {
            let ticks = views.queue_len().div_ceil(looks as usize);
            (0..ticks).for_each(|_| self.tick(views, looks));
            rounds += 1;
            let rounds_max = match self.sight {
                ViewLinkMode::Directed => 1,
                ViewLinkMode::Mutual => 50,
            };
            assert!(rounds <= rounds_max, "{} still wait", views.queue_len());
        }
        if rerank_ticks > 0 {
            views.set_rerank_ticks(rerank_ticks);
            // In mutual mode, a pair that ends for a nearer one, by hysteresis, may come back in a later turn.
            let turns = match self.sight {
                ViewLinkMode::Directed => 2,
                ViewLinkMode::Mutual => 8,
            };
            for _ in 0..turns * rerank_ticks {
                self.tick(views, IDS);
            }
            self.check_bands();
        }
        let counted = |views: &SceneViews| {
            let ViewCounters { enters, leaves, .. } = views.counters();
            (enters, leaves, views.queue_len())
        };
        let before = counted(views);
        for _ in 0..=rerank_ticks {
            self.tick(views, IDS);
        }
        assert_eq!(counted(views), before, "at rest nothing happens");
    }
}

fn view_caps([players, npcs, things]: [u16; 3]) -> ViewCaps {
    ViewCaps {
        players,
        npcs,
        things,
    }
}

fn scene(sight: ViewLinkMode) -> (Model, SceneViews) {
    let mut views = SceneViews::with_size(
        (COLUMNS as f32 * CELL_M, ROWS as f32 * CELL_M),
        CELL_M,
        MARGIN_M,
        IDS,
    )
    .expect("a legal scene")
    .with_view_link_mode(sight);
    views.set_rerank_ticks(0);
    let model = Model {
        sight,
        exact_scans_max: u32::MAX,
        ..Model::default()
    };
    (model, views)
}

fn hash_words(views: &SceneViews) -> Vec<u64> {
    let mut words = Vec::new();
    views.hash_state(&mut |word| words.push(word));
    words
}

proptest! {
    #![proptest_config(draws!(512))]

    #[test]
    fn views_are_exact_on_every_tick(
        cast in prop::collection::vec(insert(), 0..40),
        script in prop::collection::vec(op(), 0..120),
        looks in 1u32..4,
        sight in sight(),
        rerank_ticks in 0u32..5,
        sweeps_max in prop_oneof![Just(u32::MAX), 0u32..4],
        has_scenery in prop::bool::weighted(0.3),
    ) {
        let (mut model, mut views) = scene(sight);
        model.has_scenery = has_scenery;
        views.set_full_scans_max(sweeps_max);
        views.set_rerank_ticks(rerank_ticks);
        for op in cast.iter().chain(&script) {
            model.apply(&mut views, op);
        }
        views.set_rerank_ticks(0);
        model.check_at_rest(&mut views, looks, rerank_ticks);
    }

    /// The same with viewers that have a radius, and rules by distance.
    #[test]
    fn exact_viewers_are_exact_on_every_tick(
        cast in prop::collection::vec(insert(), 10..40),
        radii in prop::collection::vec(exact_change(), 1..12),
        script in prop::collection::vec(prop_oneof![4 => op(), 1 => exact_change()], 0..160),
        looks in 1u32..4,
        sight in sight(),
        rerank_ticks in 0u32..5,
        sweeps_max in prop_oneof![Just(u32::MAX), 0u32..4],
        exact_scans_max in prop_oneof![Just(u32::MAX), 0u32..4],
    ) {
        let (mut model, mut views) = scene(sight);
        model.set_exact_scans_max(&mut views, exact_scans_max);
        views.set_full_scans_max(sweeps_max);
        views.set_rerank_ticks(rerank_ticks);
        for op in cast.iter().chain(&radii).chain(&script) {
            model.apply(&mut views, op);
        }
        views.set_rerank_ticks(0);
        model.check_at_rest(&mut views, looks, rerank_ticks);
    }

    /// Everything but a removal is noted by id, so the order of the calls does not matter.
    #[test]
    fn call_order_within_a_tick_does_not_matter(
        cast in prop::collection::vec(insert(), 10..40),
        ticks in prop::collection::vec(
            prop::collection::vec(prop_oneof![4 => change(), 1 => exact_change()], 0..12),
            1..8,
        ),
        looks in 0u32..4,
        sight in sight(),
    ) {
        let (mut forward, mut backward) = (scene(sight), scene(sight));
        cast.iter().for_each(|op| forward.0.apply(&mut forward.1, op));
        cast.iter().for_each(|op| backward.0.apply(&mut backward.1, op));
        for changes in &ticks {
            // A viewer that ceases to be one loses its links at once, as by a removal; in mutual mode, so
            // does an object that becomes one.
            let ceases = |op: &&Op| match op {
                Op::Caps { caps, .. } => caps.is_none() || sight == ViewLinkMode::Mutual,
                _ => false,
            };
            let mut reordered: Vec<&Op> = changes.iter().filter(|op| !ceases(op)).collect();
            reordered.iter().for_each(|op| forward.0.apply(&mut forward.1, op));
            // A stable sort keeps the order of the operations of one object.
            reordered.sort_by_key(|op| match op {
                Op::Walk { id, .. } | Op::Teleport { id, .. } | Op::Join { id, .. } => u32::MAX - id,
                Op::Layers { id, .. } | Op::Hide { id, .. } | Op::Caps { id, .. } | Op::Aim { id, .. } => u32::MAX - id,
                Op::Tag { id, .. } | Op::Except { id, .. } | Op::Radius { id, .. } => u32::MAX - id,
                _ => 0,
            });
            reordered.iter().for_each(|op| backward.0.apply(&mut backward.1, op));
            let mut events = [Vec::new(), Vec::new()];
            forward.1.update(looks, &mut events[0]);
            backward.1.update(looks, &mut events[1]);
            prop_assert_eq!(&events[0], &events[1]);
            prop_assert_eq!(hash_words(&forward.1), hash_words(&backward.1));
        }
    }

    #[test]
    fn worker_count_does_not_change_views(
        cast in prop::collection::vec(insert(), 10..40),
        script in prop::collection::vec(prop_oneof![6 => op(), 1 => exact_change()], 0..120),
        sight in sight(),
        rerank_ticks in 0u32..5,
        sweeps_max in prop_oneof![Just(u32::MAX), 0u32..4],
    ) {
        let mut sides = [1, 2, 8].map(|count| (ThreadExecutor::new(count), scene(sight)));
        for (_, (_, views)) in &mut sides {
            views.set_rerank_ticks(rerank_ticks);
            views.set_full_scans_max(sweeps_max);
            views.set_exact_scans_max(sweeps_max);
        }
        for op in cast.iter().chain(&script) {
            let Op::Tick { looks } = *op else {
                sides.iter_mut().for_each(|(_, (model, views))| model.apply(views, op));
                continue;
            };
            let results = sides.each_mut().map(|(workers, (model, views))| {
                let mut events = Vec::new();
                views.update_with(*workers, looks, &mut events);
                model.removed.clear();
                assert_eq!(views.validate(), Ok(()));
                (events, hash_words(views), views.counters())
            });
            prop_assert_eq!(&results[0], &results[1]);
            prop_assert_eq!(&results[0], &results[2]);
        }
    }

    #[test]
    fn nearby_and_nearest_match_brute_force(
        cast in prop::collection::vec(insert(), 0..40),
        walks in prop::collection::vec(change(), 0..40),
        (x, y) in place(),
        radius_m in 0f32..60.0,
        classes in 0u8..8,
    ) {
        let (mut model, mut views) = scene(ViewLinkMode::Directed);
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
        prop_assert_eq!(&found, &expected);
        // The nearest of these.
        let distance = |id: &u32| model.objects[id].position.distance_squared(centre);
        let expected = expected.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let is_wanted = |id: u32| classes >> model.objects[&id].class.index() & 1 != 0;
        prop_assert_eq!(views.nearest(centre, radius_m, is_wanted), expected);
    }
}

mod cases;
mod crowds;
mod dense;
mod exact;
mod script;
