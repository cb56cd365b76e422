//! Emits the changes of View: messages for all, events where there are observers.

use bevy_ecs::observer::CachedObservers;
use bevy_ecs::prelude::*;

use super::interest::{SceneInterest, ViewEntered, ViewLeft};
use crate::world::Scenes;

/// The message for an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum ViewMessage {
    Entered(ViewEntered),
    Left(ViewLeft),
}

/// Writes the events of all scenes as messages, scene by scene. No other function writes them.
pub(super) fn write_view_events(
    scenes: Res<Scenes>,
    interests: Query<&SceneInterest>,
    mut entered: MessageWriter<ViewEntered>,
    mut left: MessageWriter<ViewLeft>,
) {
    for (_, scene) in scenes.iter() {
        let Ok(interest) = interests.get(scene) else {
            continue;
        };
        let events = interest.events().iter();
        entered.write_batch(
            events
                .clone()
                .filter_map(|event| interest.to_entered(event)),
        );
        left.write_batch(events.filter_map(|event| interest.to_left(event)));
    }
}

/// Triggers observers, event by event, in the order of the events. O(1) without observers, otherwise one lookup for each link
/// that began or ended.
pub(super) fn trigger_view_observers(world: &mut World, mut facts: Local<Vec<ViewMessage>>) {
    facts.clear();
    {
        let (of_enters, of_leaves) = (
            observers::<ViewEntered>(world),
            observers::<ViewLeft>(world),
        );
        if of_enters.is_none() && of_leaves.is_none() {
            return;
        }
        for (_, scene) in world.resource::<Scenes>().iter() {
            let Some(interest) = world.get::<SceneInterest>(scene) else {
                continue;
            };
            for event in interest.events() {
                let entered = interest.to_entered(event).map(ViewMessage::Entered);
                let fact = entered.or_else(|| interest.to_left(event).map(ViewMessage::Left));
                facts.extend(fact.filter(|fact| match fact {
                    ViewMessage::Entered(entered) => has_observer(of_enters, entered.viewer_entity),
                    ViewMessage::Left(left) => has_observer(of_leaves, left.viewer_entity),
                }));
            }
        }
    }
    for fact in facts.drain(..) {
        match fact {
            ViewMessage::Entered(entered) => world.trigger(entered),
            ViewMessage::Left(left) => world.trigger(left),
        }
    }
}

/// The observers of such events, if any.
fn observers<E: Event>(world: &World) -> Option<&CachedObservers> {
    let observers = world
        .observers()
        .try_get_observers(world.event_key::<E>()?)?;
    let none = observers.global_observers().is_empty() && observers.entity_observers().is_empty();
    (!none).then_some(observers)
}

/// Whether an event of an entity reaches any of them.
fn has_observer(observers: Option<&CachedObservers>, entity: Entity) -> bool {
    observers.is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}
