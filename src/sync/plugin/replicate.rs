//! Components become attributes.

use std::sync::Arc;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

use super::attributes::{AttributeSpec, Attributes, Encode, RegisterError, Registered};
use super::dirty::{DirtyMasks, MaskSlot};
use super::order::SyncSystems;
use crate::wire::{Encoding, Value};

/// A component that is an attribute as a whole. For one of its fields see [`ReplicateAppExt::replicate_field`].
pub trait Replicate: Component<Mutability = Mutable> {
    /// What clients learn.
    fn value(&self) -> Value;
}

/// Registers attributes.
///
/// An object's first values are sent with its snapshot. When its component is removed, the attribute is: who was told of it
/// is told at the attribute's cadence that there is none any more. A component that is taken off and put on again in between
/// was never gone.
///
/// What makes a value of a component is called by several threads at once, each for other objects.
pub trait ReplicateAppExt {
    /// Makes a component an attribute of the objects that have it. Writes through `&mut C` are found by change detection,
    /// which looks at every such object once a tick.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn replicate<C: Replicate>(&mut self, spec: AttributeSpec) -> Result<u32, RegisterError>;

    /// The same for what a function makes of a component: one of its fields, say.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn replicate_field<C: Component, V: Into<Value>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError>;

    /// The same without change detection: nothing is ever scanned, and whoever writes the component marks the returned bit
    /// with [`DirtyMasks::mark`]. What is not marked is not sent.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn replicate_marked<C: Component, V: Into<Value>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError>;
}

impl ReplicateAppExt for App {
    fn replicate<C: Replicate>(&mut self, spec: AttributeSpec) -> Result<u32, RegisterError> {
        self.replicate_field(spec, C::value)
    }

    fn replicate_field<C: Component, V: Into<Value>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError> {
        let bit = register(self, spec, field)?;
        let mark = move |changed: Query<&MaskSlot, Changed<C>>, mut masks: ResMut<DirtyMasks>| {
            changed.iter().for_each(|&slot| masks.mark(slot, bit));
        };
        // Each sets a bit of its own, so their order cannot show.
        let mark = mark
            .in_set(SyncSystems::Mark)
            .ambiguous_with(SyncSystems::Mark);
        self.add_systems(FixedUpdate, mark);
        Ok(bit)
    }

    fn replicate_marked<C: Component, V: Into<Value>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError> {
        let bit = register(self, spec, field)?;
        self.add_observer(
            move |inserted: On<Insert<C>>,
                  slots: Query<&MaskSlot>,
                  mut masks: ResMut<DirtyMasks>| {
                if let Ok(&slot) = slots.get(inserted.entity) {
                    masks.mark(slot, bit);
                }
            },
        );
        Ok(bit)
    }
}

fn register<C: Component, V: Into<Value>>(
    app: &mut App,
    spec: AttributeSpec,
    field: impl Fn(&C) -> V + Send + Sync + 'static,
) -> Result<u32, RegisterError> {
    let bit = enter_on_list(app, spec, field)?;
    // An observer and no list of removals, which Bevy keeps for two updates only: a loop may have more of them than ticks.
    app.add_observer(
        move |lost: On<Remove<C>>, slots: Query<&MaskSlot>, mut masks: ResMut<DirtyMasks>| {
            if let Ok(&slot) = slots.get(lost.entity) {
                masks.mark_lost(lost.entity, slot, bit);
            }
        },
    );
    Ok(bit)
}

fn enter_on_list<C: Component, V: Into<Value>>(
    app: &mut App,
    spec: AttributeSpec,
    field: impl Fn(&C) -> V + Send + Sync + 'static,
) -> Result<u32, RegisterError> {
    let encode = move |entity: EntityRef, encoding: Encoding, bytes: &mut Vec<u8>| {
        let value = entity.get::<C>().map(|component| field(component).into());
        value.map(|value| {
            encoding.write(&value, bytes);
            encoding.fits(&value)
        })
    };
    let encode: Encode = Arc::new(encode);
    let mut attributes = app.world_mut().get_resource_or_init::<Attributes>();
    let bit = attributes.register(Registered { spec, encode })?;
    let words = attributes.mask_words();
    let mut masks = app.world_mut().get_resource_or_init::<DirtyMasks>();
    masks.widen(words);
    Ok(bit)
}
