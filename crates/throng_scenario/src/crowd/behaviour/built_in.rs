//! The built-in behaviours: plain functions over the perception of an individual.

use std::sync::Arc;

use glam::Vec2;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::rule::{BehaviourRule, Perception, PerceptionTarget};
use crate::crowd::area::{CrowdArea, random_direction};
use throng::world::{KindId, StateHashed};

/// Distance to the next goal of an individual that flees, in metres.
const FLIGHT_M: f32 = 12.0;

/// Maximum distance from home while an individual that chases or flees sees no target, in metres.
const STROLL_M: f32 = 10.0;

/// Stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Idle;

impl BehaviourRule for Idle {
    const NAME: &'static str = "Idle";

    fn next_goal(&self, _: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        None
    }
}

/// Walks to random spots around its home.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Wander {
    /// Maximum distance from home, in metres.
    pub radius_m: f32,
}

impl BehaviourRule for Wander {
    const NAME: &'static str = "Wander";

    fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        Some(around(senses.home, self.radius_m))
    }
}

/// Walks from point to point, then starts again at the first.
#[derive(Clone, Debug, PartialEq, StateHashed)]
pub struct Patrol {
    /// The points, in metres; without points it stays where it is.
    pub points: Arc<[Vec2]>,
}

impl BehaviourRule for Patrol {
    const NAME: &'static str = "Patrol";

    fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        let nth = senses.goal_count as usize % self.points.len().max(1);
        self.points.get(nth).copied().map(CrowdArea::Point)
    }
}

/// Runs after the nearest object of a kind, and strolls while it sees none.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Chase {
    /// The kind of its targets.
    pub kind: KindId,
    /// Sight range, in metres.
    pub sight_m: f32,
}

impl BehaviourRule for Chase {
    const NAME: &'static str = "Chase";

    fn perception_target(&self) -> Option<PerceptionTarget> {
        Some(PerceptionTarget {
            kind: self.kind,
            sight_m: self.sight_m,
        })
    }

    fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        Some(match senses.nearest_target {
            Some(prey) => CrowdArea::Point(prey),
            None => around(senses.home, STROLL_M),
        })
    }
}

/// Runs away from the nearest object of a kind, and strolls while it sees none.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Flee {
    /// The kind that it flees from.
    pub kind: KindId,
    /// Sight range, in metres.
    pub sight_m: f32,
}

impl BehaviourRule for Flee {
    const NAME: &'static str = "Flee";

    fn perception_target(&self) -> Option<PerceptionTarget> {
        Some(PerceptionTarget {
            kind: self.kind,
            sight_m: self.sight_m,
        })
    }

    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea> {
        Some(match senses.nearest_target {
            Some(hunter) => {
                let away = flee_offset(senses.position - hunter, random);
                CrowdArea::Point(senses.position + away)
            }
            None => around(senses.home, STROLL_M),
        })
    }
}

/// Walks back and forth between two areas.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Commute {
    /// The areas; the first is the first goal.
    pub between: [CrowdArea; 2],
}

impl BehaviourRule for Commute {
    const NAME: &'static str = "Commute";

    fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        Some(self.between[senses.goal_count as usize % 2])
    }
}

/// Walks to random free tiles of an area.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct Gather {
    /// The area; each goal is a random free tile of it.
    pub at: CrowdArea,
}

impl BehaviourRule for Gather {
    const NAME: &'static str = "Gather";

    fn next_goal(&self, _: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
        Some(self.at)
    }
}

/// The disc of all points within `radius_m` of a centre.
const fn around(center: Vec2, radius_m: f32) -> CrowdArea {
    CrowdArea::Ring {
        center,
        radius: radius_m / 2.0,
        width: radius_m,
    }
}

/// The offset of a goal away from the threat, turned by a random angle of up to 35° so that it does not keep running into a corner.
fn flee_offset(away: Vec2, random: &mut Pcg64Mcg) -> Vec2 {
    let straight = away
        .try_normalize()
        .unwrap_or_else(|| random_direction(random));
    let sideways = straight.perp() * random.random_range(-0.7..=0.7f32);
    (straight + sideways).normalize_or_zero() * FLIGHT_M
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::Behaviour;
    use rand::SeedableRng;
    use throng::map::{SceneMap, TileMap};
    use throng::sim::StateHasher;
    use throng::world::StateHashed;

    fn map() -> SceneMap {
        SceneMap::new(Arc::new(TileMap::new(200, 200, false).unwrap()), 0.5)
    }

    fn goal(behaviour: &Behaviour, goals: u32, nearest: Option<Vec2>) -> Option<Vec2> {
        let senses = Perception {
            position: Vec2::splat(50.0),
            home: Vec2::splat(50.0),
            goal_count: goals,
            nearest_target: nearest,
            tick: 0,
            map: &map(),
        };
        behaviour.next_goal(&senses, &mut Pcg64Mcg::seed_from_u64(goals.into()))
    }

    #[test]
    fn patrol_and_commute_goals_alternate() {
        let points: Arc<[Vec2]> =
            [Vec2::splat(10.25), Vec2::splat(20.25), Vec2::splat(30.25)].into();
        let patrol = Behaviour::from(Patrol {
            points: points.clone(),
        });
        let visited: Vec<_> = (0..6).filter_map(|nth| goal(&patrol, nth, None)).collect();
        assert_eq!(visited, [&points[..], &points[..]].concat());
        let commute = Behaviour::from(Commute {
            between: [points[0], points[2]].map(CrowdArea::Point),
        });
        let visited: Vec<_> = (0..3).filter_map(|nth| goal(&commute, nth, None)).collect();
        assert_eq!(visited, [points[0], points[2], points[0]]);
        assert_eq!(goal(&Patrol { points: [].into() }.into(), 0, None), None);
    }

    #[test]
    fn hunters_chase_and_prey_flees() {
        let other = Vec2::new(55.25, 50.25);
        let kind = KindId(0);
        assert_eq!(
            goal(
                &Chase {
                    kind,
                    sight_m: 20.0
                }
                .into(),
                0,
                Some(other)
            ),
            Some(other)
        );
        for nth in 0..20 {
            let to = goal(
                &Flee {
                    kind,
                    sight_m: 20.0,
                }
                .into(),
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

    fn hash(behaviour: &Behaviour) -> u64 {
        let mut hasher = StateHasher::default();
        behaviour.hash(&mut hasher);
        hasher.finish_u64()
    }

    #[test]
    fn every_parameter_of_a_behaviour_is_in_the_state_hash() {
        let [a, b] = [Vec2::splat(10.0), Vec2::splat(20.0)];
        let rect = |half: f32| CrowdArea::Rect {
            min: a - half,
            max: a + half,
        };
        let ring = |radius: f32, width: f32| CrowdArea::Ring {
            center: a,
            radius,
            width,
        };
        let [kind, other] = [KindId(0), KindId(1)];
        let hunt = |kind, sight_m| Behaviour::from(Chase { kind, sight_m });
        let flee = |kind, sight_m| Behaviour::from(Flee { kind, sight_m });
        let patrol = |points: &[Vec2]| {
            Behaviour::from(Patrol {
                points: points.into(),
            })
        };
        let places = [
            CrowdArea::Point(a),
            CrowdArea::Point(b),
            rect(1.0),
            rect(2.0),
            ring(1.0, 2.0),
            ring(1.0, 3.0),
            ring(2.0, 3.0),
        ];
        let mut all: Vec<Behaviour> = vec![
            Idle.into(),
            Wander { radius_m: 5.0 }.into(),
            Wander { radius_m: 6.0 }.into(),
            patrol(&[a]),
            patrol(&[a, b]),
            patrol(&[b, a]),
            hunt(kind, 5.0),
            hunt(kind, 6.0),
            hunt(other, 5.0),
            flee(kind, 5.0),
            flee(kind, 6.0),
            flee(other, 5.0),
        ];
        all.extend(places.map(|at| Behaviour::from(Gather { at })));
        for from in places {
            all.extend(places.map(|to| {
                Behaviour::from(Commute {
                    between: [from, to],
                })
            }));
        }
        for (nth, one) in all.iter().enumerate() {
            for (other_nth, other) in all.iter().enumerate() {
                let is_equal = nth == other_nth;
                assert_eq!(one == other, is_equal, "{one:?} {other:?}");
                assert_eq!(hash(one) == hash(other), is_equal, "{one:?} {other:?}");
            }
        }
    }
}
