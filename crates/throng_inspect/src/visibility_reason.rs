//! Why a viewer sees another object, or does not.

use throng::aoi::{SceneViews, ViewException, ViewFilter, ViewTraits};
use throng::world::{ObjectCategory, ViewRange};

/// The deciding reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VisibilityReason {
    /// One of the two does not exist.
    Absent,
    /// The viewer has no view.
    NotAViewer,
    /// It is the viewer itself: always known.
    SameObject,
    /// It is in the view.
    Seen {
        /// Whether it was shown to this viewer explicitly.
        is_shown: bool,
        /// The class of the pair.
        class: u8,
        /// Whether the scene has a custom ranking, whose classes are unknown here.
        is_own_ranking: bool,
    },
    /// It is not viewable.
    NotViewable,
    /// It was hidden from this viewer explicitly.
    HiddenByException,
    /// It is hidden from all viewers.
    Hidden,
    /// The viewer does not see the layer of the target.
    Layers,
    /// The scene's rules do not allow it.
    Rules,
    /// The two see each other only mutually, and the target may not see the viewer.
    OneSided,
    /// It is out of range.
    OutOfRange {
        /// Number of grid cells between their cells, along the longer axis.
        cells: u16,
        /// Maximum number of grid cells.
        cells_max: u16,
    },
    /// It is beyond the viewer's own range.
    BeyondRange {
        /// Distance of the two, in metres.
        distance_m: f32,
        /// Range of the viewer, in metres.
        range_m: f32,
    },
    /// A rule of the scene by distance does not allow it.
    DistanceRule {
        /// Distance of the two, in metres.
        distance_m: f32,
    },
    /// The view is full of objects of equal or higher rank.
    ViewCapReached {
        /// Number of objects of its class in the view.
        found: usize,
        /// Maximum number of objects of its class.
        cap: u16,
    },
    /// The two see each other only mutually, and the target's view is full of objects that rank above the viewer.
    OtherCapReached {
        /// Number of objects of the viewer's class in the target's view.
        found: usize,
        /// Maximum number of objects of the viewer's class.
        cap: u16,
    },
    /// There is room, and the viewer's scan is pending.
    ScanPending,
}

/// Rules of the scene for the pair, in addition to its views.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairRules {
    /// The scene's filter.
    pub filter: Option<ViewFilter>,
    /// The view range of the target.
    pub visibility: Option<ViewRange>,
    /// Whether the scene has a custom ranking.
    pub has_custom_ranking: bool,
}

/// Why the viewer sees the target or not, in the order in which the views check. O(nine cells and the viewer's exceptions).
#[must_use]
pub fn explain_visibility(
    views: &SceneViews,
    rules: PairRules,
    viewer: u32,
    target: u32,
) -> VisibilityReason {
    let (Some(mine), Some(theirs)) = (views.traits(viewer), views.traits(target)) else {
        return VisibilityReason::Absent;
    };
    if viewer == target {
        return VisibilityReason::SameObject;
    }
    if views.caps(viewer).is_none() {
        return VisibilityReason::NotAViewer;
    }
    if views.visible(viewer, target) {
        let seen = views.seen_by(viewer).find(|(of, _)| *of == target);
        return VisibilityReason::Seen {
            is_shown: exception(views, viewer, target) == Some(ViewException::Show),
            class: seen.map_or(0, |(_, class)| class),
            is_own_ranking: rules.has_custom_ranking,
        };
    }
    if let Some(reason) = forbidden(views, rules, &mine, &theirs) {
        return reason;
    }
    let is_pair = views.is_pair(viewer, target);
    if is_pair && forbidden(views, rules, &theirs, &mine).is_some() {
        return VisibilityReason::OneSided;
    }
    let (here, there) = (views.grid().cell(viewer), views.grid().cell(target));
    let (scale, is_capped) = match rules.visibility {
        Some(ViewRange::Far(cells)) => (cells.max(1).into(), false),
        Some(ViewRange::Scene) => (u16::MAX, false),
        Some(ViewRange::Near) | None => (1, true),
    };
    let apart = |a: u16, b: u16| (a / scale).abs_diff(b / scale);
    let is_apart = apart(here.x, there.x).max(apart(here.y, there.y)) > 1;
    let distance_m2 = distance_m2(views, viewer, target);
    let distance_m = distance_m2.sqrt() as f32;
    if let Some(range_m) = views.radius(viewer) {
        let is_within = distance_m2 <= f64::from(range_m).powi(2) || range_m == f32::INFINITY;
        if !is_within {
            return VisibilityReason::BeyondRange {
                distance_m,
                range_m,
            };
        }
    } else if is_apart {
        return VisibilityReason::OutOfRange {
            cells: here.x.abs_diff(there.x).max(here.y.abs_diff(there.y)),
            cells_max: scale,
        };
    }
    if !views.is_allowed_by_distance(viewer, target) {
        return VisibilityReason::DistanceRule { distance_m };
    }
    if !views.could_see(viewer, target) {
        return VisibilityReason::NotViewable;
    }
    if let Some((found, cap)) = cap_reached(views, viewer, theirs.class).filter(|_| is_capped) {
        return VisibilityReason::ViewCapReached { found, cap };
    }
    match cap_reached(views, target, mine.class).filter(|_| is_pair) {
        Some((found, cap)) => VisibilityReason::OtherCapReached { found, cap },
        None => VisibilityReason::ScanPending,
    }
}

fn distance_m2(views: &SceneViews, a: u32, b: u32) -> f64 {
    let at = |id: u32| views.position(id).unwrap_or_default().as_dvec2();
    at(a).distance_squared(at(b))
}

fn exception(views: &SceneViews, viewer: u32, target: u32) -> Option<ViewException> {
    let found = views.exceptions(viewer).find(|(of, _)| *of == target);
    found.map(|(_, exception)| exception)
}

/// Why the viewer may not see the target at any position, if it may not.
fn forbidden(
    views: &SceneViews,
    rules: PairRules,
    viewer: &ViewTraits,
    target: &ViewTraits,
) -> Option<VisibilityReason> {
    if target.hidden {
        return Some(VisibilityReason::Hidden);
    }
    match exception(views, viewer.id, target.id) {
        Some(ViewException::Hide) => Some(VisibilityReason::HiddenByException),
        Some(ViewException::Show) => None,
        None if !viewer.can_see(target) => Some(VisibilityReason::Layers),
        None if rules.filter.is_some_and(|allows| !allows(viewer, target)) => {
            Some(VisibilityReason::Rules)
        }
        None => None,
    }
}

/// Current and maximum number of objects of a class in a view, if the view is full for it.
fn cap_reached(views: &SceneViews, viewer: u32, class: ObjectCategory) -> Option<(usize, u16)> {
    let cap = views.caps(viewer)?.by_class()[class.index()];
    let found = views.list_len(viewer, class);
    (found >= usize::from(cap)).then_some((found, cap))
}

/// The plural name of a class of objects.
const fn category_plural(class: ObjectCategory) -> &'static str {
    match class {
        ObjectCategory::Player => "players",
        ObjectCategory::Npc => "NPCs",
        ObjectCategory::Thing => "things",
    }
}

impl VisibilityReason {
    /// Whether the target is seen.
    #[must_use]
    pub const fn is_seen(self) -> bool {
        matches!(self, Self::Seen { .. } | Self::SameObject)
    }

    /// The reason as a sentence, for a target of this class.
    #[must_use]
    pub fn describe(self, class: ObjectCategory) -> String {
        match self {
            Self::Absent => "one of them is no longer in this scene".into(),
            Self::NotAViewer => "it is not a viewer".into(),
            Self::SameObject => "it is the same object".into(),
            Self::Seen { is_shown: true, .. } => "shown by an exception".into(),
            Self::Seen {
                class,
                is_own_ranking: true,
                ..
            } => format!("in view, with class {class} of the scene's custom ranking"),
            Self::Seen { class, .. } => {
                format!("in view, with class {class} ({})", class_text(class))
            }
            Self::NotViewable => "it is not viewable".into(),
            Self::HiddenByException => "hidden by an exception".into(),
            Self::Hidden => "it is hidden from all viewers".into(),
            Self::Layers => "they have no common layer".into(),
            Self::Rules => "the scene's view rules do not allow it".into(),
            Self::OneSided => "sight is mutual here, and the other cannot see this one".into(),
            Self::OutOfRange {
                cells,
                cells_max: 1,
            } => {
                format!("it is {cells} cells away; the view range is one cell")
            }
            Self::OutOfRange { cells, cells_max } => {
                format!("it is {cells} cells away; the view range of its kind is about {cells_max}")
            }
            Self::BeyondRange {
                distance_m,
                range_m,
            } => format!("it is {distance_m:.1} m away; the range of the viewer is {range_m} m"),
            Self::DistanceRule { distance_m } => {
                format!("the scene's view rules do not allow it at a distance of {distance_m:.1} m")
            }
            Self::ViewCapReached { found, cap } => format!(
                "view cap reached ({found} of {cap} {}), and no member has a lower priority",
                category_plural(class)
            ),
            Self::OtherCapReached { found, cap } => {
                format!(
                    "sight is mutual here, and the view cap of the other is reached: {found} of {cap}"
                )
            }
            Self::ScanPending => "free slot; the viewer is queued for a scan".into(),
        }
    }
}

/// The names of the classes of the default ranking.
const fn class_text(class: u8) -> &'static str {
    match class {
        0 => "scenery",
        1 => "unrelated",
        2 => "same team",
        3 => "same guild",
        4 => "same party",
        5 => "attacker",
        6 => "owned or targeted",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;
    use proptest::prelude::*;

    use super::*;
    use throng::aoi::{DistanceRules, ViewCaps, ViewLinkMode, ViewProfile};

    /// An object of a scene.
    #[derive(Clone, Copy, Debug)]
    struct Seen {
        x: f32,
        class: ObjectCategory,
        visibility: ViewRange,
        traits: ViewTraits,
        viewable: bool,
        cap: Option<u16>,
    }

    const SEEN: Seen = Seen {
        x: 5.0,
        class: ObjectCategory::Player,
        visibility: ViewRange::Near,
        traits: ViewTraits {
            id: 0,
            owner: 0,
            target: 0,
            tag: [0; 2],
            team: 0,
            party: 0,
            guild: 0,
            layers: 1,
            sees: 1,
            class: ObjectCategory::Player,
            hidden: false,
            scenery: false,
        },
        viewable: true,
        cap: None,
    };

    /// A scene with these objects, by id, in cells of 10 m, after an update.
    fn scene(
        sight: ViewLinkMode,
        all: &[Seen],
        exceptions: &[(u32, u32, ViewException)],
        allows: Option<ViewFilter>,
    ) -> SceneViews {
        let ids = all.len() as u32;
        let views = SceneViews::with_size((100.0, 10.0), 10.0, 1.0, ids).unwrap();
        let mut views = views.with_view_link_mode(sight);
        views.set_rules(allows, None);
        for (id, one) in (0..).zip(all) {
            let profile = ViewProfile {
                class: one.class,
                visibility: one.visibility,
                traits: one.traits,
                viewable: one.viewable,
            };
            let caps = one.cap.map(ViewCaps::all);
            let at = Vec2::new(one.x, 5.0);
            views.insert(id, at, profile, caps).unwrap();
        }
        for &(viewer, target, exception) in exceptions {
            views.set_exception(viewer, target, Some(exception));
        }
        views.update(ids, &mut Vec::new());
        views
    }

    fn no_tags(viewer: &ViewTraits, target: &ViewTraits) -> bool {
        viewer.tag[0] & target.tag[0] == 0
    }

    fn rules(all: &[Seen], target: u32, allows: Option<ViewFilter>) -> PairRules {
        let one = all.get(target as usize);
        PairRules {
            filter: allows,
            visibility: one.map(|one| one.visibility),
            has_custom_ranking: false,
        }
    }

    #[test]
    fn each_visibility_reason_is_given_where_it_applies() {
        let with = |change: fn(&mut ViewTraits)| {
            let mut one = SEEN;
            change(&mut one.traits);
            one
        };
        let all = [
            Seen {
                cap: Some(1),
                ..with(|me| (me.tag[0], me.team) = (1, 7))
            },
            with(|it| it.team = 7),
            with(|it| it.hidden = true),
            with(|it| it.layers = 2),
            with(|it| it.tag[0] = 1),
            SEEN,
            Seen { x: 35.0, ..SEEN },
            SEEN,
            Seen {
                viewable: false,
                ..SEEN
            },
            Seen {
                x: 35.0,
                visibility: ViewRange::Far(3),
                ..SEEN
            },
            Seen {
                x: 75.0,
                visibility: ViewRange::Far(3),
                ..SEEN
            },
            Seen {
                class: ObjectCategory::Npc,
                ..with(|it| it.layers = 2)
            },
        ];
        let (show, hide) = (ViewException::Show, ViewException::Hide);
        // An object hidden from all is also hidden from viewers to which it is shown.
        let exceptions = [(0, 2, show), (0, 5, hide), (0, 11, show)];
        let views = scene(ViewLinkMode::Directed, &all, &exceptions, Some(no_tags));
        let seen = |is_shown, class| VisibilityReason::Seen {
            is_shown,
            class,
            is_own_ranking: false,
        };
        let far = |cells, cells_max| VisibilityReason::OutOfRange { cells, cells_max };
        for (target, expected) in [
            (0, VisibilityReason::SameObject),
            (1, seen(false, 2)),
            (2, VisibilityReason::Hidden),
            (3, VisibilityReason::Layers),
            (4, VisibilityReason::Rules),
            (5, VisibilityReason::HiddenByException),
            (6, far(3, 1)),
            (7, VisibilityReason::ViewCapReached { found: 1, cap: 1 }),
            (8, VisibilityReason::NotViewable),
            (9, seen(false, 1)),
            (10, far(7, 3)),
            (11, seen(true, 1)),
            (99, VisibilityReason::Absent),
        ] {
            let found = explain_visibility(&views, rules(&all, target, Some(no_tags)), 0, target);
            assert_eq!(found, expected, "of {target}");
        }
        let found = explain_visibility(&views, rules(&all, 0, None), 1, 0);
        assert_eq!(found, VisibilityReason::NotAViewer);
        let own = VisibilityReason::Seen {
            is_shown: false,
            class: 2,
            is_own_ranking: true,
        };
        let sentence = own.describe(ObjectCategory::Player);
        assert!(!sentence.contains("team"), "{sentence}");
    }

    #[test]
    fn mutual_mode_names_the_cap_of_the_other_viewer() {
        let viewer = Seen {
            cap: Some(9),
            ..SEEN
        };
        let picky = Seen {
            cap: Some(0),
            ..viewer
        };
        let mut blind = viewer;
        blind.traits.sees = 0;
        let all = [viewer, blind, picky, SEEN];
        let of = |sight, target| {
            let views = scene(sight, &all, &[], None);
            explain_visibility(&views, rules(&all, target, None), 0, target)
        };
        assert_eq!(of(ViewLinkMode::Mutual, 1), VisibilityReason::OneSided);
        let full = VisibilityReason::OtherCapReached { found: 0, cap: 0 };
        assert_eq!(of(ViewLinkMode::Mutual, 2), full);
        assert!(
            of(ViewLinkMode::Mutual, 3).is_seen(),
            "who keeps no list has no say"
        );
        assert!((1..4).all(|target| of(ViewLinkMode::Directed, target).is_seen()));
    }

    #[test]
    fn target_that_came_after_the_last_scan_is_pending() {
        let viewer = Seen {
            cap: Some(9),
            ..SEEN
        };
        let mut views = scene(ViewLinkMode::Directed, &[viewer, SEEN], &[], None);
        views.set_exception(0, 1, Some(ViewException::Hide));
        views.update(9, &mut Vec::new());
        views.set_exception(0, 1, None);
        let found = explain_visibility(&views, PairRules::default(), 0, 1);
        assert_eq!(found, VisibilityReason::ScanPending);
    }

    fn some() -> impl Strategy<Value = Seen> {
        let visibility = prop_oneof![
            4 => Just(ViewRange::Near),
            1 => (0u8..4).prop_map(ViewRange::Far),
            1 => Just(ViewRange::Scene),
        ];
        let class = prop::sample::select(ObjectCategory::ALL.to_vec());
        let bits = (0u32..4, 1u32..4, 1u32..4, prop::bool::weighted(0.1));
        let cap = prop::option::weighted(0.7, 0u16..4);
        let viewable = prop::bool::weighted(0.9);
        (0u8..100, visibility, class, bits, viewable, cap).prop_map(
            |(x, visibility, class, (tag, layers, sees, hidden), viewable, cap)| Seen {
                x: x.into(),
                class,
                visibility,
                traits: ViewTraits {
                    tag: [tag; 2],
                    layers,
                    sees,
                    hidden,
                    ..SEEN.traits
                },
                viewable,
                cap,
            },
        )
    }

    proptest! {
        #![proptest_config(draws!(256))]

        #[test]
        fn visibility_reasons_match_the_views(
            all in prop::collection::vec(some(), 1..12),
            excepted in prop::collection::vec((0u32..12, 0u32..12, any::<bool>()), 0..8),
            is_mutual in any::<bool>(),
            is_filtered in any::<bool>(),
        ) {
            let sight = if is_mutual { ViewLinkMode::Mutual } else { ViewLinkMode::Directed };
            let allows = is_filtered.then_some(no_tags as ViewFilter);
            let excepted: Vec<_> = excepted
                .into_iter()
                .map(|(viewer, target, is_shown)| {
                    let exception = if is_shown { ViewException::Show } else { ViewException::Hide };
                    (viewer, target, exception)
                })
                .collect();
            let views = scene(sight, &all, &excepted, allows);
            let ids = 0..all.len() as u32;
            for (viewer, target) in ids.clone().flat_map(|a| ids.clone().map(move |b| (a, b))) {
                let reason = explain_visibility(&views, rules(&all, target, allows), viewer, target);
                let is_itself = viewer == target;
                prop_assert_eq!(reason.is_seen(), is_itself || views.visible(viewer, target));
                let could = matches!(
                    reason,
                    VisibilityReason::Seen { .. }
                        | VisibilityReason::ViewCapReached { .. }
                        | VisibilityReason::OtherCapReached { .. }
                        | VisibilityReason::ScanPending
                );
                prop_assert_eq!(could, views.could_see(viewer, target), "{:?}", reason);
                // With enough scans only mutual pairs wait, because their ends take turns.
                let waits = reason == VisibilityReason::ScanPending && !views.is_pair(viewer, target);
                prop_assert!(!waits, "{viewer} waits for {target}");
            }
        }
    }

    #[test]
    fn range_and_rules_by_distance_are_reported_with_the_distance() {
        let viewer = Seen {
            cap: Some(5),
            ..SEEN
        };
        let target = Seen { x: 18.0, ..SEEN };
        let mut views = scene(ViewLinkMode::Directed, &[viewer, target], &[], None);
        let reason = |views: &SceneViews| explain_visibility(views, PairRules::default(), 0, 1);
        assert!(reason(&views).is_seen());
        let rules = DistanceRules::NONE.beyond(10.0, |_, _| false);
        views.set_distance_rules(rules);
        views.update(9, &mut Vec::new());
        let distance_m = 13.0;
        assert_eq!(
            reason(&views),
            VisibilityReason::DistanceRule { distance_m }
        );
        views.set_radius(0, Some(12.5)).unwrap();
        views.update(9, &mut Vec::new());
        let range_m = 12.5;
        let expected = VisibilityReason::BeyondRange {
            distance_m,
            range_m,
        };
        assert_eq!(reason(&views), expected);
        assert_eq!(
            expected.describe(ObjectCategory::Player),
            "it is 13.0 m away; the range of the viewer is 12.5 m"
        );
    }
}
