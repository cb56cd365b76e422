//! Registers components as attributes.

use std::sync::Arc;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

use super::attributes::{AttributeSpec, Attributes, Encode, RegisterError, RegisteredAttribute};
use super::dirty::{DirtyMasks, MaskSlot};
use super::order::SyncSystems;
use crate::wire::{AttributeValue, Encoding};

/// A component that is an attribute as a whole. Derive it for a component with one field, or with one field marked
/// `#[replicate]`:
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::prelude::*;
///
/// #[derive(Component, Replicate)]
/// #[replicate(audience = Audience::OWNER)]
/// struct Hunger(u8);
/// ```
/// `name`, `id`, `encoding`, `audience`, `cadence` and `persist` are optional: the name is the type's in snake case, the id
/// is computed from the name ([`AttributeSpec::named`]), the encoding from the field's type
/// ([`AttributeType`](crate::wire::AttributeType)).
pub trait Replicate: Component<Mutability = Mutable> {
    /// Its name and id, who receives it, when, and in which encoding.
    fn attribute() -> AttributeSpec;

    /// The value that clients receive.
    fn value(&self) -> AttributeValue;
}

/// Registers attributes.
///
/// An object's first values are sent with its snapshot. When its component is removed, the attribute is: clients that have its
/// value receive the removal at the attribute's cadence. A component that is removed and inserted again in between counts as
/// never removed.
///
/// The function that computes a value from a component is called by several threads in parallel, each for other objects.
///
/// # Panics
/// Like Bevy's own methods of `App`, these panic at startup on misuse: see [`RegisterError`]. The `try_` forms are
/// for attributes that come from a file.
pub trait ReplicateAppExt {
    /// Makes a component an attribute of the objects that have it. Writes through `&mut C` are found by change detection,
    /// which scans every such object once per tick.
    fn replicate<C: Replicate>(&mut self) -> &mut Self;

    /// The same for a value that a function computes from a component, for example one of its fields.
    fn replicate_field<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> &mut Self;

    /// The same without change detection: nothing is scanned, and code that writes the component marks the attribute's
    /// [bit](Attributes::bit) with [`DirtyMasks::mark`]. A write that is not marked is not sent.
    fn replicate_marked<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> &mut Self;

    /// As [`replicate_field`](Self::replicate_field); returns the attribute's bit.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn try_replicate_field<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError>;

    /// As [`replicate_marked`](Self::replicate_marked); returns the attribute's bit.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn try_replicate_marked<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError>;
}

impl ReplicateAppExt for App {
    fn replicate<C: Replicate>(&mut self) -> &mut Self {
        self.replicate_field(C::attribute(), C::value)
    }

    fn replicate_field<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> &mut Self {
        let registered = self.try_replicate_field(spec, field);
        expect_registered::<C>(registered);
        self
    }

    fn replicate_marked<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> &mut Self {
        let registered = self.try_replicate_marked(spec, field);
        expect_registered::<C>(registered);
        self
    }

    fn try_replicate_field<C: Component, V: Into<AttributeValue>>(
        &mut self,
        spec: AttributeSpec,
        field: impl Fn(&C) -> V + Send + Sync + 'static,
    ) -> Result<u32, RegisterError> {
        let bit = register(self, spec, field)?;
        let mark = move |changed: Query<&MaskSlot, Changed<C>>, mut masks: ResMut<DirtyMasks>| {
            changed.iter().for_each(|&slot| masks.mark(slot, bit));
        };
        // Each sets a bit of its own, so their order has no effect.
        let mark = mark
            .in_set(SyncSystems::Mark)
            .ambiguous_with(SyncSystems::Mark);
        self.add_systems(FixedUpdate, mark);
        Ok(bit)
    }

    fn try_replicate_marked<C: Component, V: Into<AttributeValue>>(
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

fn expect_registered<C>(registered: Result<u32, RegisterError>) {
    if let Err(error) = registered {
        panic!(
            "component `{}` is not replicated: {error}",
            std::any::type_name::<C>()
        );
    }
}

fn register<C: Component, V: Into<AttributeValue>>(
    app: &mut App,
    spec: AttributeSpec,
    field: impl Fn(&C) -> V + Send + Sync + 'static,
) -> Result<u32, RegisterError> {
    let bit = register_attribute(app, spec, field)?;
    // An observer instead of Bevy's list of removals, which is kept for two updates only: a loop may have more of them than ticks.
    app.add_observer(
        move |lost: On<Remove<C>>, slots: Query<&MaskSlot>, mut masks: ResMut<DirtyMasks>| {
            if let Ok(&slot) = slots.get(lost.entity) {
                masks.mark_removed(lost.entity, slot, bit);
            }
        },
    );
    Ok(bit)
}

fn register_attribute<C: Component, V: Into<AttributeValue>>(
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
    let bit = attributes.register(RegisteredAttribute { spec, encode })?;
    let words = attributes.mask_words();
    let mut masks = app.world_mut().get_resource_or_init::<DirtyMasks>();
    masks.widen(words);
    Ok(bit)
}
