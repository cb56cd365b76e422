//! What View changed, told: messages for all, events for those who are observed.

use bevy_ecs::observer::CachedObservers;
use bevy_ecs::prelude::*;

use super::interest::{Entered, Left, SceneInterest, ViewFact};
use crate::aoi::views::ViewEvent;
use crate::world::Scenes;

/// The events of all scenes as messages, scene by scene. The one place that writes them.
pub(super) fn tell(
    scenes: Res<Scenes>,
    interests: Query<&SceneInterest>,
    mut entered: MessageWriter<Entered>,
    mut left: MessageWriter<Left>,
) {
    for interest in scenes
        .iter()
        .filter_map(|(_, scene)| interests.get(scene).ok())
    {
        let facts = || interest.events().iter().map(|event| interest.fact(event));
        entered.write_batch(facts().filter_map(|fact| match fact {
            ViewFact::Entered(entered) => Some(entered),
            ViewFact::Left(_) => None,
        }));
        left.write_batch(facts().filter_map(|fact| match fact {
            ViewFact::Left(left) => Some(left),
            ViewFact::Entered(_) => None,
        }));
    }
}

/// The same for observers, one by one, in the order in which things happened. O(1) while nobody observes either, else a
/// look-up for each link that began or ended.
pub(super) fn tell_observers(world: &mut World, mut facts: Local<Vec<ViewFact>>) {
    facts.clear();
    {
        let (enters, leaves) = (observers::<Entered>(world), observers::<Left>(world));
        if enters.is_none() && leaves.is_none() {
            return;
        }
        let is_observed = |event: &&ViewEvent, interest: &SceneInterest| {
            let fact = interest.fact(event);
            match fact {
                ViewFact::Entered(entered) => reaches(enters, entered.viewer_entity),
                ViewFact::Left(left) => reaches(leaves, left.viewer_entity),
            }
        };
        let scenes = world.resource::<Scenes>().iter();
        for interest in scenes.filter_map(|(_, scene)| world.get::<SceneInterest>(scene)) {
            let events = interest.events().iter();
            let observed = events.filter(|event| is_observed(event, interest));
            facts.extend(observed.map(|event| interest.fact(event)));
        }
    }
    for fact in facts.drain(..) {
        match fact {
            ViewFact::Entered(entered) => world.trigger(entered),
            ViewFact::Left(left) => world.trigger(left),
        }
    }
}

/// Who observes such events, if anybody does.
fn observers<E: Event>(world: &World) -> Option<&CachedObservers> {
    let observers = world
        .observers()
        .try_get_observers(world.event_key::<E>()?)?;
    let none = observers.global_observers().is_empty() && observers.entity_observers().is_empty();
    (!none).then_some(observers)
}

/// Whether an event of an entity reaches any of them.
fn reaches(observers: Option<&CachedObservers>, entity: Entity) -> bool {
    observers.is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}
