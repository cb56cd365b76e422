//! Whom a viewer prefers to see when its list is full.
//!
//! ```text
//! Standing (viewer) ─┐
//!                    ├─▶ ViewPriority ─▶ class 0..=255, a higher one wins
//! Standing (target) ─┘
//! ```
//! Invariant: the class of a pair is a pure function of the two stored [`Standing`]s. Whoever changes what
//! the function reads says so through [`SceneViews::set_standing`](super::views::SceneViews::set_standing).
//! Cost: one call for each pair that is compared, so the function should be a handful of comparisons.

/// What the ranking and the layer masks know about an object. An identity of 0 means "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The team it fights for; 0 for none.
    pub team: u32,
    /// The party it travels with; 0 for none.
    pub party: u32,
    /// The guild it belongs to; 0 for none.
    pub guild: u32,
    /// The layers it exists in, one bit each (phases, stealth levels, what only game masters see).
    pub layers: u32,
    /// The layers it sees as a viewer, one bit each.
    pub sees: u32,
    /// Nobody sees it while this is set.
    pub hidden: bool,
}

impl Standing {
    /// The layer in which everything is unless told otherwise.
    pub const ORDINARY_LAYER: u32 = 1;

    /// Whether this viewer's layers and the target's hiding allow the link, range apart.
    #[must_use]
    pub const fn can_see(&self, target: &Self) -> bool {
        self.sees & target.layers != 0 && !target.hidden
    }
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            team: 0,
            party: 0,
            guild: 0,
            layers: Self::ORDINARY_LAYER,
            sees: Self::ORDINARY_LAYER,
            hidden: false,
        }
    }
}

/// Ranks a pair, the viewer's standing first: a higher class is served first and evicts a lower one.
///
/// It must be pure: same standings, same class.
pub type ViewPriority = fn(&Standing, &Standing) -> u8;

/// The class of somebody with no tie to the viewer.
pub const OTHER: u8 = 0;
/// The class of somebody of the viewer's team.
pub const TEAM: u8 = 1;
/// The class of somebody of the viewer's guild.
pub const GUILD: u8 = 2;
/// The class of somebody of the viewer's party.
pub const PARTY: u8 = 3;

/// The default [`ViewPriority`]: party, then guild, then team, then all others.
#[must_use]
pub fn by_relationship(viewer: &Standing, target: &Standing) -> u8 {
    let same = |mine: u32, theirs: u32| mine != 0 && mine == theirs;
    if same(viewer.party, target.party) {
        PARTY
    } else if same(viewer.guild, target.guild) {
        GUILD
    } else if same(viewer.team, target.team) {
        TEAM
    } else {
        OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_tie_decides() {
        let me = Standing {
            team: 1,
            party: 2,
            guild: 3,
            ..Standing::default()
        };
        let cases = [
            (
                Standing {
                    team: 1,
                    party: 2,
                    guild: 3,
                    ..me
                },
                PARTY,
            ),
            (
                Standing {
                    team: 9,
                    party: 2,
                    guild: 9,
                    ..me
                },
                PARTY,
            ),
            (
                Standing {
                    team: 1,
                    party: 9,
                    guild: 3,
                    ..me
                },
                GUILD,
            ),
            (
                Standing {
                    team: 1,
                    party: 0,
                    guild: 0,
                    ..me
                },
                TEAM,
            ),
            (
                Standing {
                    team: 2,
                    party: 3,
                    guild: 1,
                    ..me
                },
                OTHER,
            ),
        ];
        for (target, class) in cases {
            assert_eq!(by_relationship(&me, &target), class, "{target:?}");
        }
    }

    #[test]
    fn two_without_a_team_are_no_team_mates() {
        assert_eq!(
            by_relationship(&Standing::default(), &Standing::default()),
            OTHER
        );
    }

    #[test]
    fn layers_and_hiding_decide_who_can_be_seen() {
        let ghost = Standing {
            layers: 0b10,
            ..Standing::default()
        };
        let medium = Standing {
            sees: 0b11,
            ..Standing::default()
        };
        assert!(!Standing::default().can_see(&ghost));
        assert!(medium.can_see(&ghost));
        assert!(!medium.can_see(&Standing {
            hidden: true,
            ..ghost
        }));
        assert!(
            Standing {
                hidden: true,
                ..medium
            }
            .can_see(&ghost),
            "who hides still sees"
        );
    }
}
