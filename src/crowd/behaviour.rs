//! What individuals want: the next goal, given where they are and whom they can see. Plain functions over the map.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec2;
use rand::{Rng, RngExt};

use super::place::{CrowdArea, direction};
use crate::map::SceneMap;
use crate::sim::StateHasher;
use crate::world::{KindId, StateHashed};

/// How far a frightened individual runs at once, in metres.
const FLIGHT_M: f32 = 12.0;

/// How far one that hunts strolls while it sees nobody, in metres.
const STROLL_M: f32 = 10.0;

/// What an individual does with its time.
#[derive(Component, Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// Stays where it is.
    Idle,
    /// Walks to random spots around where it began.
    Wander {
        /// How far they are from there, in metres.
        radius_m: f32,
    },
    /// Walks from point to point and begins anew.
    Patrol {
        /// The points, in metres.
        points: Arc<[Vec2]>,
    },
    /// Runs after the nearest of a kind, and strolls while it sees none.
    Chase {
        /// Whom.
        kind: KindId,
        /// How far it sees, in metres.
        sight_m: f32,
    },
    /// Runs from the nearest of a kind, and strolls while it sees none.
    Flee {
        /// From whom.
        kind: KindId,
        /// How far it sees, in metres.
        sight_m: f32,
    },
    /// Walks to and fro between two places.
    Commute {
        /// The places.
        between: [CrowdArea; 2],
    },
    /// Goes to a place, and shifts about there.
    Gather {
        /// The place.
        at: CrowdArea,
    },
}

impl Behaviour {
    /// Whether it looks around for others, and for whom and how far.
    pub(super) const fn looks_for(&self) -> Option<(KindId, f32)> {
        match *self {
            Self::Chase { kind, sight_m } | Self::Flee { kind, sight_m } => Some((kind, sight_m)),
            _ => None,
        }
    }
}

/// The state of mind of an individual.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
pub(super) struct Mind {
    /// Where it began.
    pub home: Vec2,
    /// The tick at which it looks again whether there is something to do.
    pub next_tick: u64,
    /// How many goals it has had.
    pub goals: u32,
    /// Whether it rests between two goals.
    pub resting: bool,
}

impl StateHashed for Mind {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_f32(self.home.x);
        hasher.write_f32(self.home.y);
        hasher.write_u64(self.next_tick << 1 | u64::from(self.resting));
        hasher.write_u64(u64::from(self.goals));
    }
}

impl StateHashed for Behaviour {
    fn hash(&self, hasher: &mut StateHasher) {
        let mut point = |tag: u64, point: Vec2| {
            hasher.write_u64(tag);
            hasher.write_f32(point.x);
            hasher.write_f32(point.y);
        };
        match self {
            Self::Idle => point(0, Vec2::ZERO),
            Self::Wander { radius_m } => point(1, Vec2::new(*radius_m, 0.0)),
            Self::Patrol { points } => points.iter().for_each(|&at| point(2, at)),
            Self::Chase { kind, sight_m } => point(3, Vec2::new(f32::from(kind.0), *sight_m)),
            Self::Flee { kind, sight_m } => point(4, Vec2::new(f32::from(kind.0), *sight_m)),
            Self::Commute { between } => between.iter().for_each(|place| point(5, place.centre())),
            Self::Gather { at } => point(6, at.centre()),
        }
    }
}

/// The next goal, in metres: the middle of a free tile that can be reached from `position`. `None` when there is nothing to do.
///
/// `threat` is the nearest of those it looks for. O(random tries), all on the map.
pub(super) fn next_goal(
    behaviour: &Behaviour,
    mind: &Mind,
    position: Vec2,
    threat: Option<Vec2>,
    map: &SceneMap,
    random: &mut impl Rng,
) -> Option<Vec2> {
    let around = |center: Vec2, radius_m: f32| CrowdArea::Ring {
        center,
        radius: radius_m / 2.0,
        width: radius_m,
    };
    let place = match behaviour {
        Behaviour::Idle => return None,
        Behaviour::Wander { radius_m } => around(mind.home, *radius_m),
        Behaviour::Patrol { points } => {
            CrowdArea::Point(*points.get(mind.goals as usize % points.len().max(1))?)
        }
        Behaviour::Chase { .. } => match threat {
            Some(prey) => CrowdArea::Point(prey),
            None => around(mind.home, STROLL_M),
        },
        Behaviour::Flee { .. } => match threat {
            Some(hunter) => CrowdArea::Point(position + flight(position - hunter, random)),
            None => around(mind.home, STROLL_M),
        },
        Behaviour::Commute { between } => between[mind.goals as usize % 2],
        Behaviour::Gather { at } => *at,
    };
    let region = map.tiles().region(map.tile_at(position))?;
    let tile = place.free_tile(map.tiles(), map.tile_m(), region, random)?;
    Some(map.centre_of(tile))
}

/// Away, a little to one side so that it does not run into a corner for ever.
fn flight(away: Vec2, random: &mut impl Rng) -> Vec2 {
    let straight = away.try_normalize().unwrap_or_else(|| direction(random));
    let sideways = straight.perp() * random.random_range(-0.7..=0.7f32);
    (straight + sideways).normalize_or_zero() * FLIGHT_M
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::TileMap;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn map() -> SceneMap {
        SceneMap::new(Arc::new(TileMap::new(200, 200, false).unwrap()), 0.5)
    }

    fn goal(behaviour: &Behaviour, goals: u32, threat: Option<Vec2>) -> Option<Vec2> {
        let mind = Mind {
            home: Vec2::splat(50.0),
            next_tick: 0,
            goals,
            resting: false,
        };
        next_goal(
            behaviour,
            &mind,
            Vec2::splat(50.0),
            threat,
            &map(),
            &mut Pcg64Mcg::seed_from_u64(goals.into()),
        )
    }

    #[test]
    fn a_patrol_and_a_commute_take_turns() {
        let points: Arc<[Vec2]> =
            [Vec2::splat(10.25), Vec2::splat(20.25), Vec2::splat(30.25)].into();
        let patrol = Behaviour::Patrol {
            points: points.clone(),
        };
        let visited: Vec<_> = (0..6).filter_map(|nth| goal(&patrol, nth, None)).collect();
        assert_eq!(visited, [&points[..], &points[..]].concat());
        let commute = Behaviour::Commute {
            between: [points[0], points[2]].map(CrowdArea::Point),
        };
        let visited: Vec<_> = (0..3).filter_map(|nth| goal(&commute, nth, None)).collect();
        assert_eq!(visited, [points[0], points[2], points[0]]);
        assert_eq!(
            goal(&Behaviour::Patrol { points: [].into() }, 0, None),
            None
        );
    }

    #[test]
    fn hunters_run_to_their_prey_and_the_prey_runs_away() {
        let other = Vec2::new(55.25, 50.25);
        let kind = KindId(0);
        assert_eq!(
            goal(
                &Behaviour::Chase {
                    kind,
                    sight_m: 20.0
                },
                0,
                Some(other)
            ),
            Some(other)
        );
        for nth in 0..20 {
            let to = goal(
                &Behaviour::Flee {
                    kind,
                    sight_m: 20.0,
                },
                nth,
                Some(other),
            )
            .unwrap();
            assert!(
                to.distance(other) > Vec2::splat(50.0).distance(other) + 5.0,
                "{to}"
            );
        }
    }
}
