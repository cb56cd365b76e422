//! The extension point for behaviours: the trait, its input, and the component that holds it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec2;
use rand_pcg::Pcg64Mcg;

use crate::crowd::area::CrowdArea;
use throng::map::SceneMap;
use throng::sim::StateHasher;
use throng::world::{KindId, StateHashed};

/// A rule by which individuals choose where to go next.
///
/// A value is shared by all individuals with this behaviour and does not change. The state of an individual is in its
/// [`Perception`]; further state belongs in a component of the game, updated by a system that runs before
/// [`CrowdSystems`](crate::crowd::CrowdSystems). Two values are equal if individuals behave the same with both, and only then do
/// they have the same state hash.
///
/// ```
/// use rand_pcg::Pcg64Mcg;
/// use throng_scenario::crowd::{BehaviourRule, CrowdArea, PerceptionTarget, Perception};
/// use throng::world::{KindId, StateHashed};
///
/// /// Stands at its post, and runs at intruders that come near.
/// #[derive(Debug, PartialEq, StateHashed)]
/// struct Guard {
///     intruders: KindId,
///     radius_m: f32,
/// }
///
/// impl BehaviourRule for Guard {
///     const NAME: &'static str = "Guard";
///
///     fn perception_target(&self) -> Option<PerceptionTarget> {
///         Some(PerceptionTarget { kind: self.intruders, sight_m: self.radius_m })
///     }
///
///     fn next_goal(&self, senses: &Perception<'_>, _: &mut Pcg64Mcg) -> Option<CrowdArea> {
///         Some(CrowdArea::Point(senses.nearest_target.unwrap_or(senses.home)))
///     }
/// }
/// ```
pub trait BehaviourRule: StateHashed + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The name in scenarios and in the state hash, in CamelCase. Two types of a game must not share a name.
    const NAME: &'static str;

    /// The kind that it reacts to, and its sight range; none by default. An individual with a target scans its surroundings every
    /// 10 ticks, also while it walks, and chooses a new goal as long as it sees one.
    fn perception_target(&self) -> Option<PerceptionTarget> {
        None
    }

    /// The next goal: an area. The individual walks to a random free tile of the area that it can reach, or to the nearest such
    /// tile. `None` means no goal; the method is called again after 100 ticks.
    ///
    /// It is called after a short rest when the last goal has been reached or is unreachable, and whenever a
    /// [target](Self::perception_target) is in sight. Values drawn from `random` depend on the seed, the individual and the tick
    /// only. An implementation must use no other input: no clock, no other generator, no mutable state. It is called for several
    /// individuals in parallel.
    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea>;
}

/// The target of an individual's perception.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct PerceptionTarget {
    /// The kind of its targets; it never targets itself.
    pub kind: KindId,
    /// Sight range, in metres.
    pub sight_m: f32,
}

/// The input of an individual's choice of a goal.
#[derive(Clone, Copy, Debug)]
pub struct Perception<'a> {
    /// Its position, in metres.
    pub position: Vec2,
    /// Its home in metres: where it was spawned or was placed by a script.
    pub home: Vec2,
    /// Number of goals since it got this behaviour.
    pub goal_count: u32,
    /// Position of the nearest [target](BehaviourRule::perception_target), in metres; `None` when it sees none.
    pub nearest_target: Option<Vec2>,
    /// The current tick.
    pub tick: u64,
    /// The map of its scene.
    pub map: &'a SceneMap,
}

/// The behaviour of an individual: the component that holds any [`BehaviourRule`]. Cheap to clone.
///
/// ```
/// use throng_scenario::crowd::{Behaviour, Wander};
///
/// let behaviour = Behaviour::from(Wander { radius_m: 5.0 });
/// assert_eq!(behaviour.name(), "Wander");
/// assert_eq!(behaviour.downcast_ref(), Some(&Wander { radius_m: 5.0 }));
/// ```
#[derive(Component, Clone, Debug)]
pub struct Behaviour(Arc<dyn AnyBehaviour>);

impl Behaviour {
    /// The name in scenarios: [`BehaviourRule::NAME`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The behaviour itself, if it has this type.
    #[must_use]
    pub fn downcast_ref<T: BehaviourRule>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// See [`BehaviourRule::perception_target`].
    pub(super) fn perception_target(&self) -> Option<PerceptionTarget> {
        self.0.perception_target()
    }

    /// The next goal, in metres: the centre of a free tile that can be reached from its position. `None` means no goal. Costs as
    /// much as [`CrowdArea::free_tile`].
    pub(super) fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<Vec2> {
        let area = self.0.next_goal(senses, random)?;
        let map = senses.map;
        let region = map.tiles().region(map.tile_at(senses.position))?;
        let tile = area.free_tile(map.tiles(), map.tile_m(), region, random)?;
        Some(map.centre_of(tile))
    }
}

impl<T: BehaviourRule> From<T> for Behaviour {
    fn from(behaviour: T) -> Self {
        Self(Arc::new(behaviour))
    }
}

impl PartialEq for Behaviour {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl StateHashed for Behaviour {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_bytes(self.name().as_bytes());
        self.0.hash(hasher);
    }
}

/// A type-erased [`BehaviourRule`].
trait AnyBehaviour: StateHashed + fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn perception_target(&self) -> Option<PerceptionTarget>;
    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea>;
    fn equals(&self, other: &dyn AnyBehaviour) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: BehaviourRule> AnyBehaviour for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn perception_target(&self) -> Option<PerceptionTarget> {
        BehaviourRule::perception_target(self)
    }

    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea> {
        BehaviourRule::next_goal(self, senses, random)
    }

    fn equals(&self, other: &dyn AnyBehaviour) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
