//! Which objects a viewer may see, and which ones it prefers when its list is full.
//!
//! ```text
//! ViewTraits (viewer) ─┐
//!                      ├─▶ ViewPriority ──▶ class 0..=63 ─┐
//! ViewTraits (target) ─┘                                  ├─▶ rank, the higher one wins
//! distance ───────────────▶ DistanceBands ──▶ nearness ───┘
//! ```
//! A *rank* is (class, nearness): within a class, lists prefer the nearer band when they are ranked, so in a crowd of equals
//! each viewer gets to see the nearest. Targets that go before unrelated ones enter by class, and are ranked by nearness when
//! it is their viewer's turn.
//!
//! Invariants: the permission and the class of a pair are pure functions of the two stored [`ViewTraits`]. Code that changes
//! what these functions read calls [`SceneViews::set_traits`](crate::SceneViews::set_traits).
//! A member of a list counts as nearer by [`DistanceBands::HYSTERESIS`], so two objects at the edge of a band do not alternate.
//! Cost: one call for each compared pair, so the function should be a handful of comparisons.

use glam::Vec2;
use throng_core::kinds::ObjectCategory;

/// The traits of an object that the rules of a scene may read. An identity of 0 means "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewTraits {
    /// Its own id; the views fill it in.
    pub id: u32,
    /// The object that owns it, as a player owns a pet; 0 for none.
    pub owner: u32,
    /// The object that it has selected as its target, or attacks; 0 for none.
    pub target: u32,
    /// Two words that only an embedder's own [`ViewFilter`] and [`ViewPriority`] read: quests, phases, fog of war,
    /// factions, as bits or numbers.
    pub tag: [u32; 2],
    /// The team that it belongs to; 0 for none.
    pub team: u32,
    /// The party that it belongs to; 0 for none.
    pub party: u32,
    /// The guild that it belongs to; 0 for none.
    pub guild: u32,
    /// The layers that it exists in, one bit each (phases, stealth levels, objects for game masters only).
    pub layers: u32,
    /// The layers that it sees as a viewer, one bit each.
    pub sees: u32,
    /// The category of its kind, which selects the cap that it counts against; the views fill it in.
    pub class: ObjectCategory,
    /// No viewer sees it while this is set.
    pub hidden: bool,
    /// It is scenery: every other object goes before it.
    pub scenery: bool,
}

impl ViewTraits {
    /// The default layer of every object.
    pub const ORDINARY_LAYER: u32 = 1;

    /// Whether this viewer's layers and the target's hiding allow the link, regardless of range.
    #[must_use]
    pub const fn can_see(&self, target: &Self) -> bool {
        self.sees & target.layers != 0 && !target.hidden
    }
}

impl Default for ViewTraits {
    fn default() -> Self {
        Self {
            id: 0,
            owner: 0,
            target: 0,
            tag: [0; 2],
            team: 0,
            party: 0,
            guild: 0,
            layers: Self::ORDINARY_LAYER,
            sees: Self::ORDINARY_LAYER,
            class: ObjectCategory::Npc,
            hidden: false,
            scenery: false,
        }
    }
}

/// Whether a viewer may see a target; the viewer's traits come first. Called for pairs whose layers allow the link.
///
/// It must be pure: same traits, same result. It is called from several threads, for every compared pair.
pub type ViewFilter = fn(&ViewTraits, &ViewTraits) -> bool;

/// The maximum number of rules by distance of a scene.
pub const DISTANCE_RULES_MAX: usize = 4;

/// One rule by distance.
#[derive(Clone, Copy, Debug)]
struct DistanceRule {
    beyond_m: f32,
    allows: ViewFilter,
}

/// Rules for pairs that are farther apart than a distance, for example "beyond 20 m only my team". A viewer sees a target only
/// if every rule whose distance is exceeded allows the pair. At exactly that distance a rule does not apply yet.
///
/// The distances are fixed, so that the views know which movements can change the result. They are compared exactly, in every
/// update. See [`SceneViews::set_distance_rules`](crate::SceneViews::set_distance_rules) for the cost.
///
/// ```
/// use throng_aoi::{DistanceRules, is_same_team};
///
/// const RULES: DistanceRules = DistanceRules::NONE
///     .beyond(20.0, is_same_team)
///     .beyond(60.0, |viewer, target| viewer.party != 0 && viewer.party == target.party);
/// assert!(!RULES.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DistanceRules {
    rules: [Option<DistanceRule>; DISTANCE_RULES_MAX],
}

impl DistanceRules {
    /// No rules.
    pub const NONE: Self = Self {
        rules: [None; DISTANCE_RULES_MAX],
    };

    /// Adds a rule: beyond this distance in metres, a viewer sees a target only if `allows` returns true.
    ///
    /// # Panics
    /// If the distance is negative or NaN, or if there are [`DISTANCE_RULES_MAX`] rules already.
    #[must_use]
    pub const fn beyond(mut self, distance_m: f32, allows: ViewFilter) -> Self {
        assert!(
            distance_m >= 0.0,
            "expected a distance of at least 0 m for a view rule"
        );
        let mut nth = 0;
        while nth < DISTANCE_RULES_MAX && self.rules[nth].is_some() {
            nth += 1;
        }
        assert!(
            nth < DISTANCE_RULES_MAX,
            "expected at most four view rules by distance"
        );
        self.rules[nth] = Some(DistanceRule {
            beyond_m: distance_m,
            allows,
        });
        self
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules[0].is_none()
    }

    /// Whether the rules allow a pair at this distance, given as its square. At an unknown distance (NaN) all rules apply.
    #[must_use]
    pub fn allow(&self, viewer: &ViewTraits, target: &ViewTraits, distance_m2: f64) -> bool {
        self.rules.iter().flatten().all(|rule| {
            let beyond_m = f64::from(rule.beyond_m);
            distance_m2 <= beyond_m * beyond_m || (rule.allows)(viewer, target)
        })
    }
}

/// The filter for members of one team: both are in the same team.
#[must_use]
pub const fn is_same_team(viewer: &ViewTraits, target: &ViewTraits) -> bool {
    viewer.team != 0 && viewer.team == target.team
}

/// The class of a pair, the viewer's traits first: a higher class is served first and evicts a lower one.
/// Classes above [`CLASS_MAX`] count as that.
///
/// It must be pure: same traits, same class.
pub type ViewPriority = fn(&ViewTraits, &ViewTraits) -> u8;

/// The highest class.
pub const CLASS_MAX: u8 = 63;

/// The class of scenery.
pub const SCENERY: u8 = 0;
/// The class of a target without a relation to the viewer.
pub const UNRELATED: u8 = 1;
/// The class of a member of the viewer's team.
pub const TEAM: u8 = 2;
/// The class of a member of the viewer's guild.
pub const GUILD: u8 = 3;
/// The class of a member of the viewer's party.
pub const PARTY: u8 = 4;
/// The class of an object whose target is the viewer.
pub const ATTACKER: u8 = 5;
/// The class of the viewer's target, and of objects that the viewer owns.
pub const OWN_OR_TARGET: u8 = 6;

/// The default [`ViewPriority`], from the top: own objects and own target, attackers of the viewer, party, guild, team,
/// unrelated objects, scenery.
#[must_use]
#[inline]
pub fn by_relationship(viewer: &ViewTraits, target: &ViewTraits) -> u8 {
    let same = |mine: u32, theirs: u32| mine != 0 && mine == theirs;
    if same(viewer.target, target.id) || same(target.owner, viewer.id) {
        OWN_OR_TARGET
    } else if same(target.target, viewer.id) {
        ATTACKER
    } else if same(viewer.party, target.party) {
        PARTY
    } else if same(viewer.guild, target.guild) {
        GUILD
    } else if same(viewer.team, target.team) {
        TEAM
    } else if target.scenery {
        SCENERY
    } else {
        UNRELATED
    }
}

/// The number of distance bands.
pub const BAND_COUNT: u8 = 4;

/// The rank of a class in a band; `nearness` from 0 to [`BAND_COUNT`] - 1, the nearest.
#[must_use]
pub const fn rank_of(class: u8, nearness: u8) -> u8 {
    let class = if class > CLASS_MAX { CLASS_MAX } else { class };
    class * BAND_COUNT + nearness
}

/// The class of a rank.
#[must_use]
pub const fn class_of(rank: u8) -> u8 {
    rank / BAND_COUNT
}

/// Bands of distance, each half a cell wide; the farthest has no end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceBands {
    /// Squares of the distances at which bands end.
    ends_m2: [f32; BAND_COUNT as usize - 1],
    /// The same for members of a list.
    member_ends_m2: [f32; BAND_COUNT as usize - 1],
}

impl DistanceBands {
    /// How much nearer a member of a list counts, as a fraction of the cell.
    pub const HYSTERESIS: f32 = 1.0 / 16.0;

    /// The bands of a grid with cells of this side, in metres.
    #[must_use]
    pub fn new(cell_m: f32) -> Self {
        let square = |cells: f32| cells * cell_m * (cells * cell_m);
        let ends = [0.5, 1.0, 1.5];
        Self {
            ends_m2: ends.map(square),
            member_ends_m2: ends.map(|end| square(end + Self::HYSTERESIS)),
        }
    }

    /// The nearness of two positions; 0, the farthest, if a coordinate is NaN.
    #[must_use]
    #[inline]
    pub fn nearness(&self, a: Vec2, b: Vec2) -> u8 {
        Self::within(&self.ends_m2, a, b)
    }

    /// The nearness of a member of a list. It needs no memory: an object that replaces a member is nearer than the member
    /// counts, so the member cannot replace it in turn.
    #[must_use]
    #[inline]
    pub fn nearness_of_member(&self, a: Vec2, b: Vec2) -> u8 {
        Self::within(&self.member_ends_m2, a, b)
    }

    /// Squares of the distances at which bands end, the nearest first.
    #[inline]
    pub(super) const fn ends_m2(&self) -> &[f32; BAND_COUNT as usize - 1] {
        &self.ends_m2
    }

    /// The same for members of a list.
    #[inline]
    pub(super) const fn member_ends_m2(&self) -> &[f32; BAND_COUNT as usize - 1] {
        &self.member_ends_m2
    }

    #[inline]
    fn within(ends_m2: &[f32; BAND_COUNT as usize - 1], a: Vec2, b: Vec2) -> u8 {
        let distance_m2 = a.distance_squared(b);
        ends_m2.iter().map(|&end| u8::from(distance_m2 < end)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_relation_decides_the_class() {
        let me = ViewTraits {
            team: 1,
            party: 2,
            guild: 3,
            ..ViewTraits::default()
        };
        let cases = [
            (
                ViewTraits {
                    team: 1,
                    party: 2,
                    guild: 3,
                    ..me
                },
                PARTY,
            ),
            (
                ViewTraits {
                    team: 9,
                    party: 2,
                    guild: 9,
                    ..me
                },
                PARTY,
            ),
            (
                ViewTraits {
                    team: 1,
                    party: 9,
                    guild: 3,
                    ..me
                },
                GUILD,
            ),
            (
                ViewTraits {
                    team: 1,
                    party: 0,
                    guild: 0,
                    ..me
                },
                TEAM,
            ),
            (
                ViewTraits {
                    team: 2,
                    party: 3,
                    guild: 1,
                    ..me
                },
                UNRELATED,
            ),
        ];
        for (target, class) in cases {
            assert_eq!(by_relationship(&me, &target), class, "{target:?}");
        }
    }

    #[test]
    fn pets_targets_and_attackers_outrank_the_party() {
        let me = ViewTraits {
            id: 1,
            target: 2,
            party: 7,
            ..ViewTraits::default()
        };
        let with = |id, owner, target, scenery| ViewTraits {
            id,
            owner,
            target,
            scenery,
            party: 7,
            ..ViewTraits::default()
        };
        assert_eq!(by_relationship(&me, &with(2, 0, 0, false)), OWN_OR_TARGET);
        assert_eq!(by_relationship(&me, &with(3, 1, 0, false)), OWN_OR_TARGET);
        assert_eq!(by_relationship(&me, &with(3, 0, 1, false)), ATTACKER);
        assert_eq!(by_relationship(&me, &with(3, 0, 9, true)), PARTY);
        let door = ViewTraits {
            scenery: true,
            ..ViewTraits::default()
        };
        assert_eq!(by_relationship(&me, &door), SCENERY);
    }

    #[test]
    fn members_count_a_sixteenth_of_a_cell_nearer() {
        let bands = DistanceBands::new(16.0);
        let at = |x: f32| Vec2::new(x, 0.0);
        for (x, near, near_as_member) in [
            (0.0, 3, 3),
            (7.9, 3, 3),
            (8.0, 2, 3),
            (8.9, 2, 3),
            (9.0, 2, 2),
            (16.0, 1, 2),
            (17.1, 1, 1),
            (23.9, 1, 1),
            (24.0, 0, 1),
            (25.0, 0, 0),
            (1e9, 0, 0),
        ] {
            let found = bands.nearness(Vec2::ZERO, at(x));
            let as_member = bands.nearness_of_member(Vec2::ZERO, at(x));
            assert_eq!((found, as_member), (near, near_as_member), "at {x}");
        }
        assert_eq!(bands.nearness(at(f32::NAN), Vec2::ZERO), 0);
    }

    #[test]
    fn objects_without_a_team_are_not_team_mates() {
        assert_eq!(
            by_relationship(&ViewTraits::default(), &ViewTraits::default()),
            UNRELATED
        );
    }

    #[test]
    fn layers_and_hidden_flag_decide_visibility() {
        let ghost = ViewTraits {
            layers: 0b10,
            ..ViewTraits::default()
        };
        let medium = ViewTraits {
            sees: 0b11,
            ..ViewTraits::default()
        };
        assert!(!ViewTraits::default().can_see(&ghost));
        assert!(medium.can_see(&ghost));
        assert!(!medium.can_see(&ViewTraits {
            hidden: true,
            ..ghost
        }));
        assert!(
            ViewTraits {
                hidden: true,
                ..medium
            }
            .can_see(&ghost),
            "who hides still sees"
        );
    }
}
