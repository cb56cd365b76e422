//! The scripts: random operations on a scene, and how each one is applied.

use super::*;

/// One operation of a script; positions in half metres, so that borders and margins are hit exactly.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Insert {
        id: u32,
        at: (i16, i16),
        class: u8,
        visibility: u8,
        team: u32,
        viewable: bool,
        scenery: bool,
        caps: Option<[u16; 3]>,
    },
    Remove {
        id: u32,
        removal: RemovalReason,
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
    Aim {
        id: u32,
        target: u32,
        owner: u32,
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
    Tag {
        id: u32,
        tag: [u32; 2],
    },
    Rules {
        filter: Option<ViewFilter>,
        priority: Option<ViewPriority>,
    },
    Except {
        id: u32,
        target: u32,
        exception: Option<ViewException>,
    },
    Caps {
        id: u32,
        caps: Option<[u16; 3]>,
    },
    /// In half metres.
    Radius {
        id: u32,
        radius: Option<i64>,
    },
    DistanceRules {
        rules: Vec<(i64, ViewFilter)>,
    },
    Tick {
        looks: u32,
    },
}

impl Model {
    /// Applies an operation to the model and to the views.
    pub(super) fn apply(&mut self, views: &mut SceneViews, op: &Op) {
        match *op {
            Op::Insert { .. } => self.insert(views, op),
            Op::Remove { id, removal } => self.remove(views, id, removal),
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
                self.change_traits(views, id, |old| ViewTraits { team, party, ..old })
            }
            Op::Aim { id, target, owner } => {
                self.change_traits(views, id, |old| ViewTraits {
                    target,
                    owner,
                    ..old
                });
            }
            Op::Layers { id, layers, sees } => {
                self.change_traits(views, id, |old| ViewTraits {
                    layers,
                    sees,
                    ..old
                });
            }
            Op::Hide { id, hidden } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    object.traits.hidden = hidden;
                }
                views.set_hidden(id, hidden);
            }
            Op::Caps { id, caps } => {
                if let Some(object) = self.objects.get_mut(&id) {
                    if object.caps.is_some() != caps.is_some() {
                        self.roles.insert(id);
                    }
                    object.caps = caps;
                    object.radius = object.radius.filter(|_| caps.is_some());
                }
                views.set_caps(id, caps.map(view_caps));
            }
            Op::Tag { id, tag } => {
                self.change_traits(views, id, |old| ViewTraits { tag, ..old });
            }
            Op::Rules { filter, priority } => {
                (self.filter, self.priority) = (filter, priority);
                views.set_rules(filter, priority);
            }
            Op::Except {
                id,
                target,
                exception,
            } => self.except(views, (id, target), exception),
            Op::Radius { id, radius } => self.set_radius(views, id, radius),
            Op::DistanceRules { ref rules } => {
                // A viewer that gets its row back may lose and see an object in the same tick.
                self.roles.extend(self.objects.keys());
                self.distance_rules.clone_from(rules);
                let none = DistanceRules::NONE;
                let rules = rules.iter().fold(none, |rules, &(beyond, allows)| {
                    rules.beyond(beyond as f32 / 2.0, allows)
                });
                views.set_distance_rules(rules);
            }
            Op::Tick { looks } => self.tick(views, looks),
        }
    }

    fn insert(&mut self, views: &mut SceneViews, op: &Op) {
        let Op::Insert {
            id,
            at,
            class,
            visibility,
            team,
            viewable,
            scenery,
            caps,
        } = *op
        else {
            return;
        };
        let visibility = match visibility {
            0..6 => ViewRange::Near,
            6 => ViewRange::Far(2),
            7 => ViewRange::Far(3),
            _ => ViewRange::Scene,
        };
        let class = ObjectCategory::ALL[usize::from(class)];
        let traits = ViewTraits {
            id,
            team,
            scenery: scenery && self.has_scenery,
            ..ViewTraits::default()
        };
        let profile = ViewProfile {
            class,
            visibility,
            traits,
            viewable,
        };
        let inserted = views.insert(id, metres(at), profile, caps.map(view_caps));
        match self.objects.entry(id) {
            Entry::Occupied(_) => assert_eq!(inserted, Err(ViewInsertError::IdInUse { id })),
            Entry::Vacant(free) => {
                assert_eq!(inserted, Ok(()));
                let position = metres(at);
                let cell = floor_cell(position);
                free.insert(ModelObject {
                    position,
                    cell,
                    class,
                    visibility,
                    traits,
                    viewable,
                    caps,
                    radius: None,
                });
            }
        }
    }

    fn set_radius(&mut self, views: &mut SceneViews, id: u32, radius: Option<i64>) {
        let object = self.objects.get_mut(&id);
        if let Some(object) = object.filter(|object| object.caps.is_some()) {
            object.radius = radius;
            self.roles.insert(id);
        }
        let radius_m = radius.map(|radius| match radius {
            WHOLE_SCENE => f32::INFINITY,
            half_metres => half_metres as f32 / 2.0,
        });
        assert_eq!(views.set_radius(id, radius_m), Ok(()));
        let known = self
            .objects
            .get(&id)
            .is_some_and(|object| object.radius.is_some());
        assert_eq!(views.radius(id).is_some(), known);
    }

    fn remove(&mut self, views: &mut SceneViews, id: u32, removal: RemovalReason) {
        let existed = self.objects.remove(&id).is_some();
        assert_eq!(views.remove(id, removal), existed);
        if existed {
            self.exceptions
                .retain(|&(viewer, target), _| viewer != id && target != id);
            for object in self.objects.values_mut() {
                let ViewTraits { owner, target, .. } = &mut object.traits;
                for tie in [owner, target].into_iter().filter(|tie| **tie == id) {
                    *tie = 0;
                }
            }
            self.removed.entry(id).or_insert(removal);
            assert!(views.watchers(id).next().is_none() && views.seen_by(id).next().is_none());
        }
    }

    fn except(
        &mut self,
        views: &mut SceneViews,
        (id, target): (u32, u32),
        exception: Option<ViewException>,
    ) {
        views.set_exception(id, target, exception);
        let exist = self.objects.contains_key(&id) && self.objects.contains_key(&target);
        match exception.filter(|_| exist && id != target) {
            Some(exception) => self.exceptions.insert((id, target), exception),
            None => self.exceptions.remove(&(id, target)),
        };
    }

    fn change_traits(
        &mut self,
        views: &mut SceneViews,
        id: u32,
        change: impl Fn(ViewTraits) -> ViewTraits,
    ) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.traits = change(object.traits);
            views.set_traits(id, object.traits);
        }
    }
}

pub(super) fn sight() -> impl Strategy<Value = ViewLinkMode> {
    prop_oneof![Just(ViewLinkMode::Directed), Just(ViewLinkMode::Mutual)]
}

pub(super) fn place() -> impl Strategy<Value = (i16, i16)> {
    // Most in the middle, some beyond the borders.
    prop_oneof![4 => (20i16..80, 20i16..60), 1 => (-20i16..160, -20i16..120)]
}

pub(super) fn caps() -> impl Strategy<Value = Option<[u16; 3]>> {
    prop_oneof![1 => Just(None), 5 => prop::array::uniform3(0u16..5).prop_map(Some)]
}

pub(super) fn change() -> impl Strategy<Value = Op> {
    let id = || 0..IDS;
    prop_oneof![
        12 => (id(), (-14i16..=14, -14i16..=14)).prop_map(|(id, by)| Op::Walk { id, by }),
        3 => (id(), place()).prop_map(|(id, to)| Op::Teleport { id, to }),
        3 => (id(), 0u32..3, 0u32..3).prop_map(|(id, team, party)| Op::Join { id, team, party }),
        1 => (id(), 1u32..4, 1u32..4).prop_map(|(id, layers, sees)| Op::Layers { id, layers, sees }),
        2 => (id(), id(), id()).prop_map(|(id, target, owner)| Op::Aim { id, target, owner }),
        1 => (id(), any::<bool>()).prop_map(|(id, hidden)| Op::Hide { id, hidden }),
        2 => (id(), caps()).prop_map(|(id, caps)| Op::Caps { id, caps }),
        2 => (id(), prop::array::uniform2(0u32..4)).prop_map(|(id, tag)| Op::Tag { id, tag }),
        2 => (id(), id(), exception())
            .prop_map(|(id, target, exception)| Op::Except { id, target, exception }),
        1 => rules(),
    ]
}

/// A change of a radius, or of the rules by distance. Many distances of a lattice of half metres are whole: 5, 10, 13 and 25.
pub(super) fn exact_change() -> impl Strategy<Value = Op> {
    let radius = prop_oneof![
        2 => Just(None),
        4 => prop::sample::select(vec![0, 5, 10, 13, 20, 25, 26, 50]).prop_map(Some),
        2 => (0i64..90).prop_map(Some),
        1 => Just(Some(WHOLE_SCENE)),
    ];
    let filters: [ViewFilter; 4] = [
        crate::priority::is_same_team,
        |a, b| a.party == b.party,
        |_, _| false,
        |a, b| a.id < b.id,
    ];
    let rule = (
        prop::sample::select(vec![0, 5, 10, 20, 25]),
        prop::sample::select(filters.to_vec()),
    );
    prop_oneof![
        5 => (0..IDS, radius).prop_map(|(id, radius)| Op::Radius { id, radius }),
        1 => prop::collection::vec(rule, 0..3).prop_map(|rules| Op::DistanceRules { rules }),
    ]
}

fn exception() -> impl Strategy<Value = Option<ViewException>> {
    let exceptions = [
        None,
        Some(ViewException::Show),
        Some(ViewException::Hide),
        Some(ViewException::Hide),
    ];
    prop::sample::select(exceptions.to_vec())
}

/// Rules of all kinds: one-sided ones, such that no objects meet or all are equal, classes above the highest.
fn rules() -> impl Strategy<Value = Op> {
    let filters: [Option<ViewFilter>; 5] = [
        None,
        Some(|a, b| a.tag[0] & b.tag[0] == b.tag[0]),
        Some(|a, b| a.team != b.team || a.party == b.party),
        Some(|a, b| (a.id + 2 * b.id) % 3 != 0),
        Some(|a, b| a.tag[1] >= b.tag[1]),
    ];
    let priorities: [Option<ViewPriority>; 5] = [
        None,
        Some(|_, b| (b.id % 5) as u8),
        Some(|a, b| if a.tag[1] == b.tag[1] { 9 } else { 0 }),
        Some(|a, b| (a.tag[0] + 40 * b.tag[1]) as u8),
        Some(|_, _| 200),
    ];
    let filters = prop::sample::select(filters.to_vec());
    (filters, prop::sample::select(priorities.to_vec()))
        .prop_map(|(filter, priority)| Op::Rules { filter, priority })
}

pub(super) fn insert() -> impl Strategy<Value = Op> {
    (
        0..IDS,
        place(),
        0u8..3,
        0u8..9,
        0u32..3,
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.4),
        caps(),
    )
        .prop_map(
            |(id, at, class, visibility, team, viewable, scenery, caps)| {
                // Mostly players, so that caps are reached.
                Op::Insert {
                    id,
                    at,
                    class: class / 2,
                    visibility,
                    team,
                    viewable,
                    scenery,
                    caps,
                }
            },
        )
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => change(),
        3 => insert(),
        1 => (0..IDS, prop_oneof![Just(RemovalReason::Despawn), Just(RemovalReason::Scene)])
            .prop_map(|(id, removal)| Op::Remove { id, removal }),
        4 => (0u32..4).prop_map(|looks| Op::Tick { looks }),
    ]
}
