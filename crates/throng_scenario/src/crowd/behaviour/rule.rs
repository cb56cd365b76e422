//! The door for behaviours: what one is, what it is told, and the component that holds it.

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

/// A way to spend one's time: the rule by which individuals choose where to go next.
///
/// A value is shared by all individuals that behave so, and does not change: what an individual remembers is in its
/// [`Perception`], and what more it needs is a component and a system of the game's own, before
/// [`CrowdSystems`](crate::crowd::CrowdSystems). Two values are equal when individuals could not be told apart by them, and then
/// alone their state hashes are.
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
    /// What scenarios and the state hash call it, in CamelCase. No two types that a game uses may share a name.
    const NAME: &'static str;

    /// Whom it looks for, and how far it sees; nobody by default. Who looks for somebody looks around every 10 ticks,
    /// also on its way, and is asked for another goal as long as it sees one.
    fn perception_target(&self) -> Option<PerceptionTarget> {
        None
    }

    /// Where to go next: an area, of which a random free tile in reach is chosen, or the nearest one to it. `None` when there
    /// is nothing to do; it is asked again after 100 ticks.
    ///
    /// It is asked when the last goal is reached (or cannot be) and a short rest is over, and whenever somebody whom it
    /// [looks for](Self::perception_target) is in sight. What it draws from `random` depends on the seed, the individual and the
    /// tick alone; it must ask nothing else: no clock, no other generator, no state that changes. Several individuals are asked
    /// at once, on threads of their own.
    fn next_goal(&self, senses: &Perception<'_>, random: &mut Pcg64Mcg) -> Option<CrowdArea>;
}

/// Whom an individual looks for.
#[derive(Clone, Copy, Debug, PartialEq, StateHashed)]
pub struct PerceptionTarget {
    /// The kind of those whom it looks for; never itself.
    pub kind: KindId,
    /// How far it sees, in metres.
    pub sight_m: f32,
}

/// What an individual knows when it chooses where to go.
#[derive(Clone, Copy, Debug)]
pub struct Perception<'a> {
    /// Where it is, in metres.
    pub position: Vec2,
    /// Where it began, or was put by a script, in metres.
    pub home: Vec2,
    /// How many goals it has had since it began to behave so.
    pub goal_count: u32,
    /// Where the nearest of those is whom it [looks for](BehaviourRule::perception_target), in metres; `None` when it sees none.
    pub nearest_target: Option<Vec2>,
    /// The tick in which it is asked.
    pub tick: u64,
    /// The map of the scene in which it is.
    pub map: &'a SceneMap,
}

/// What an individual does with its time: the component that holds any [`BehaviourRule`]. Cheap to clone.
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
    /// What scenarios call it: [`BehaviourRule::NAME`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The behaviour itself, if it is of this type.
    #[must_use]
    pub fn downcast_ref<T: BehaviourRule>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// See [`BehaviourRule::perception_target`].
    pub(super) fn perception_target(&self) -> Option<PerceptionTarget> {
        self.0.perception_target()
    }

    /// The next goal, in metres: the middle of a free tile that can be reached from where it stands. `None` when there is
    /// nothing to do. O(random tries), all on the map.
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

/// Any [`BehaviourRule`], its type forgotten.
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
