//! Attributes that a game names at run time, in addition to the built-in ones: whole numbers, all in one component.
//!
//! There is no scan for changes: the code that changes an attribute marks its bit.

use bevy_app::App;
use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use throng::sim::StateHasher;
use throng::sync::{
    AttributeSpec, Audience, DirtyMasks, MaskSlot, RegisterError, ReplicateAppExt, SendRate,
};
use throng::wire::Encoding;
use throng::world::{ObjectHashAppExt, StateHashed};

/// Maximum number of custom attributes.
pub const CUSTOM_ATTRIBUTES_MAX: usize = 16;

/// The wire number of the first custom attribute; the others follow.
const FIRST_ID: u16 = 100;

/// The number in packets of the custom attribute that is registered at this place, from 0.
#[must_use]
pub const fn custom_attribute_id(nth: u16) -> u16 {
    FIRST_ID + nth
}

/// A custom attribute: a whole number that every individual of a crowd has.
///
/// ```
/// use throng::sync::{Audience, SendRate};
/// use throng::wire::Encoding;
/// use throng_scenario::crowd::CustomAttributeSpec;
///
/// let hunger = CustomAttributeSpec {
///     name: "hunger".to_owned(),
///     encoding: Encoding::U8,
///     audience: Audience::OWNER,
///     cadence: SendRate::Heartbeat,
///     min: 0,
///     max: 100,
///     start: 20,
/// };
/// assert!((hunger.min..=hunger.max).contains(&hunger.start));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomAttributeSpec {
    /// Its name in scripts.
    pub name: String,
    /// Its encoding in packets.
    pub encoding: Encoding,
    /// The clients that receive it.
    pub audience: Audience,
    /// How soon a change is sent.
    pub cadence: SendRate,
    /// The minimum value.
    pub min: i64,
    /// The maximum value.
    pub max: i64,
    /// The value of a new individual.
    pub start: i64,
}

/// The values of the custom attributes, in the order of their registration.
#[derive(Component, Clone, Debug, PartialEq, Eq)]
pub(super) struct CustomAttributes(SmallVec<[i64; 4]>);

impl StateHashed for CustomAttributes {
    fn hash(&self, hasher: &mut StateHasher) {
        self.0
            .iter()
            .for_each(|&value| hasher.write_u64(value as u64));
    }
}

/// The custom attributes with their bits in the masks.
#[derive(Resource, Clone, Debug, Default)]
pub struct CustomAttributeTable(Vec<(CustomAttributeSpec, u32)>);

impl CustomAttributeTable {
    /// The definition of each, in their order.
    pub fn specs(&self) -> impl Iterator<Item = &CustomAttributeSpec> {
        self.0.iter().map(|(spec, _)| spec)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(spec, _)| spec.name == name)
    }
}

/// Registers attributes with an app.
pub trait CustomAttributeAppExt {
    /// Adds an attribute to every individual that crowds spawn from now on. Its name is kept for the life of the process. Call it
    /// once per attribute and app, after [`CrowdPlugin`](super::CrowdPlugin).
    ///
    /// # Errors
    /// [`RegisterError`] when the name is taken, values are too long, or there are [`CUSTOM_ATTRIBUTES_MAX`] already; nothing is
    /// registered then.
    fn register_custom_attribute(
        &mut self,
        spec: CustomAttributeSpec,
    ) -> Result<&mut Self, RegisterError>;
}

impl CustomAttributeAppExt for App {
    fn register_custom_attribute(
        &mut self,
        spec: CustomAttributeSpec,
    ) -> Result<&mut Self, RegisterError> {
        let nth = {
            let table = self
                .world_mut()
                .get_resource_or_init::<CustomAttributeTable>();
            table.0.len()
        };
        // Bounded: scenarios limit the length of a name, and there are sixteen per app.
        let name: &'static str = Box::leak(spec.name.clone().into_boxed_str());
        if nth == CUSTOM_ATTRIBUTES_MAX {
            return Err(RegisterError::TooMany(name));
        }
        let told = AttributeSpec::new(name, custom_attribute_id(nth as u16), spec.encoding)
            .to(spec.audience)
            .at(spec.cadence);
        let bit = self.try_replicate_marked::<CustomAttributes, i64>(told, move |own| {
            own.0.get(nth).copied().unwrap_or_default()
        })?;
        if nth == 0 {
            self.hash_component::<CustomAttributes>("own attributes");
        }
        let mut table = self.world_mut().resource_mut::<CustomAttributeTable>();
        table.0.push((spec, bit));
        Ok(self)
    }
}

/// Gives a new individual the custom attributes.
pub(super) fn insert_default_values(world: &mut World, entity: Entity) {
    let Some(table) = world.get_resource::<CustomAttributeTable>() else {
        return;
    };
    let values = table
        .specs()
        .map(|spec| spec.start.clamp(spec.min, spec.max))
        .collect();
    world.entity_mut(entity).insert(CustomAttributes(values));
}

/// The value of an attribute.
pub(super) fn value(world: &World, entity: Entity, name: &str) -> Option<i64> {
    let nth = world.get_resource::<CustomAttributeTable>()?.find(name)?;
    world.get::<CustomAttributes>(entity)?.0.get(nth).copied()
}

/// Sets an attribute; values out of range are clamped. Returns whether it exists.
pub(super) fn set(world: &mut World, entity: Entity, name: &str, value: i64) -> bool {
    let Some(table) = world.get_resource::<CustomAttributeTable>() else {
        return false;
    };
    let Some(nth) = table.find(name) else {
        return false;
    };
    let (spec, bit) = &table.0[nth];
    let (value, bit) = (value.clamp(spec.min, spec.max), *bit);
    let own = world.get_mut::<CustomAttributes>(entity);
    let Some(place) = own.and_then(|own| own.into_inner().0.get_mut(nth)) else {
        return false;
    };
    if std::mem::replace(place, value) != value
        && let Some(&slot) = world.get::<MaskSlot>(entity)
        && let Some(mut masks) = world.get_resource_mut::<DirtyMasks>()
    {
        masks.mark(slot, bit);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::CrowdPlugin;
    use throng::server::Server;

    fn spec(name: &str) -> CustomAttributeSpec {
        CustomAttributeSpec {
            name: name.to_owned(),
            encoding: Encoding::U8,
            audience: Audience::VIEWERS,
            cadence: SendRate::Heartbeat,
            min: 0,
            max: 255,
            start: 0,
        }
    }

    #[test]
    fn duplicate_names_and_too_many_attributes_are_refused() {
        let server = Server::builder()
            .plugins(CrowdPlugin)
            .configure(|app| {
                let taken = app.register_custom_attribute(spec("health")).err();
                assert!(matches!(taken, Some(RegisterError::Taken { .. })));
                for nth in 0..CUSTOM_ATTRIBUTES_MAX {
                    app.register_custom_attribute(spec(&format!("own {nth}")))
                        .expect("there is room");
                }
                let refused = app.register_custom_attribute(spec("one more")).err();
                assert!(matches!(refused, Some(RegisterError::TooMany(_))));
                let table = app.world().resource::<CustomAttributeTable>();
                assert_eq!(table.specs().count(), CUSTOM_ATTRIBUTES_MAX);
            })
            .build();
        assert_eq!(server.tick(), 0);
    }
}
