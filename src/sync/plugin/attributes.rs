//! Registered attributes and the masks that say which of them changed.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use smallvec::SmallVec;
use thiserror::Error;

use super::SyncSystems;
use crate::sim::StateHasher;
use crate::wire::ATTRIBUTE_BYTES_MAX;
use crate::world::StateHashed;

/// Attributes that can be registered: one bit each in a [`DirtyMask`].
pub const ATTRIBUTES_MAX: usize = 64;

/// A component whose value clients learn.
pub trait Replicate: Component<Mutability = Mutable> {
    /// Appends the value's bytes, at most as many as its [`AttributeSpec::bytes_max`]; further ones are cut off.
    fn encode(&self, bytes: &mut Vec<u8>);
}

/// Who learns an attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Audience {
    /// The client that controls the object.
    Owner,
    /// That client, and everybody who sees the object.
    #[default]
    Viewers,
}

/// What is said of an attribute when it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeSpec {
    /// What scenarios and reports call it.
    pub name: &'static str,
    /// Its number in packets.
    pub id: u16,
    /// Who learns it.
    pub audience: Audience,
    /// The longest value, in bytes; at most [`ATTRIBUTE_BYTES_MAX`].
    pub bytes_max: u32,
}

/// Why an attribute cannot be registered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RegisterError {
    /// The name or number is another's.
    #[error(
        "attribute `{name}` ({id}): an attribute with that name or number is registered already"
    )]
    Taken {
        /// The name asked for.
        name: &'static str,
        /// The number asked for.
        id: u16,
    },
    /// Values could be longer than the wire allows.
    #[error(
        "attribute `{name}`: values of up to {found} bytes, at most {ATTRIBUTE_BYTES_MAX} are allowed"
    )]
    TooLong {
        /// The attribute.
        name: &'static str,
        /// Its longest value.
        found: u32,
    },
    /// There are as many as there may be.
    #[error("attribute `{0}`: there are {ATTRIBUTES_MAX} attributes already")]
    TooMany(&'static str),
}

/// An attribute with the function that encodes it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sync) struct Registered {
    pub spec: AttributeSpec,
    /// Appends the value of an entity; `false` when it has none.
    pub encode: fn(EntityRef, &mut Vec<u8>) -> bool,
}

/// The registered attributes; the place of one is its bit in every [`DirtyMask`].
#[derive(Resource, Clone, Debug, Default)]
pub struct Attributes(Vec<Registered>);

impl Attributes {
    /// What was said of each attribute, by ascending bit.
    pub fn specs(&self) -> impl Iterator<Item = AttributeSpec> {
        self.0.iter().map(|registered| registered.spec)
    }

    /// The bit of the attribute with this name.
    #[must_use]
    pub fn bit(&self, name: &str) -> Option<u32> {
        let place = self
            .0
            .iter()
            .position(|registered| registered.spec.name == name)?;
        u32::try_from(place).ok()
    }

    pub(super) fn table(&self) -> &[Registered] {
        &self.0
    }

    fn register(&mut self, registered: Registered) -> Result<u32, RegisterError> {
        let AttributeSpec {
            name,
            id,
            bytes_max,
            ..
        } = registered.spec;
        if self
            .specs()
            .any(|other| other.name == name || other.id == id)
        {
            return Err(RegisterError::Taken { name, id });
        }
        if bytes_max > ATTRIBUTE_BYTES_MAX {
            return Err(RegisterError::TooLong {
                name,
                found: bytes_max,
            });
        }
        if self.0.len() == ATTRIBUTES_MAX {
            return Err(RegisterError::TooMany(name));
        }
        self.0.push(registered);
        Ok(self.0.len() as u32 - 1)
    }
}

/// Which attributes of an object changed since they were last collected: one bit each.
///
/// Ordinary changes (`&mut Health`) find their way here through change detection, which looks at every object that has the
/// attribute once a tick.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyMask(u64);

impl DirtyMask {
    /// Sets the bit of an attribute, see [`Attributes::bit`].
    pub const fn mark(&mut self, bit: u32) {
        if bit < ATTRIBUTES_MAX as u32 {
            self.0 |= 1 << bit;
        }
    }

    /// Whether anything changed.
    #[must_use]
    pub const fn is_dirty(self) -> bool {
        self.0 != 0
    }

    /// The bits that are set, lowest first; none is left.
    pub(super) fn take(&mut self) -> impl Iterator<Item = u32> + use<> {
        let mut mask = std::mem::take(&mut self.0);
        std::iter::from_fn(move || {
            let bit = (mask != 0).then(|| mask.trailing_zeros())?;
            mask &= mask - 1;
            Some(bit)
        })
    }
}

impl StateHashed for DirtyMask {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0);
    }
}

/// The values that clients hold, encoded, by bit; `None` for attributes that the object does not have.
#[derive(Component, Clone, Debug, Default)]
pub(super) struct SentValues(Vec<Option<SmallVec<[u8; 8]>>>);

impl SentValues {
    /// Keeps a value; whether it differs from the one before.
    pub fn set(&mut self, bit: u32, value: &[u8]) -> bool {
        let bit = bit as usize;
        if self.0.len() <= bit {
            self.0.resize(bit + 1, None);
        }
        let changed = self.0[bit].as_deref() != Some(value);
        if changed {
            self.0[bit] = Some(SmallVec::from_slice(value));
        }
        changed
    }

    /// The values, by ascending bit.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(bit, value)| Some((bit, value.as_deref()?)))
    }
}

/// Registers attributes.
pub trait ReplicateAppExt {
    /// Makes a component an attribute of the objects that have it. Once it was replicated, an object keeps it: that it is
    /// removed is not told.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing is registered then.
    fn replicate<C: Replicate>(&mut self, spec: AttributeSpec) -> Result<(), RegisterError>;
}

impl ReplicateAppExt for App {
    fn replicate<C: Replicate>(&mut self, spec: AttributeSpec) -> Result<(), RegisterError> {
        let registered = Registered {
            spec,
            encode: encode::<C>,
        };
        let bit = self
            .world_mut()
            .get_resource_or_init::<Attributes>()
            .register(registered)?;
        let mark = move |mut changed: Query<&mut DirtyMask, Changed<C>>| {
            changed.iter_mut().for_each(|mut mask| mask.mark(bit));
        };
        // Each sets a bit of its own, so their order cannot show.
        let mark = mark
            .in_set(SyncSystems::Mark)
            .ambiguous_with(SyncSystems::Mark);
        self.add_systems(FixedUpdate, mark);
        Ok(())
    }
}

fn encode<C: Replicate>(entity: EntityRef, bytes: &mut Vec<u8>) -> bool {
    entity
        .get::<C>()
        .map(|component| component.encode(bytes))
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_gives_its_bits_once_lowest_first() {
        let mut mask = DirtyMask::default();
        [63, 0, 17, 17].into_iter().for_each(|bit| mask.mark(bit));
        assert_eq!(mask.take().collect::<Vec<_>>(), [0, 17, 63]);
        assert!(!mask.is_dirty());
    }

    #[test]
    fn names_numbers_and_lengths_are_checked() {
        let mut attributes = Attributes::default();
        let mut register = |name, id, bytes_max| {
            let spec = AttributeSpec {
                name,
                id,
                audience: Audience::Viewers,
                bytes_max,
            };
            attributes.register(Registered {
                spec,
                encode: |_, _| false,
            })
        };
        assert_eq!(register("health", 1, 5), Ok(0));
        assert_eq!(
            register("mana", 2, 256),
            Err(RegisterError::TooLong {
                name: "mana",
                found: 256
            })
        );
        assert_eq!(
            register("mana", 1, 5),
            Err(RegisterError::Taken {
                name: "mana",
                id: 1
            })
        );
        assert_eq!(
            register("health", 2, 5),
            Err(RegisterError::Taken {
                name: "health",
                id: 2
            })
        );
        assert_eq!(register("mana", 2, 5), Ok(1));
    }

    #[test]
    fn an_equal_value_is_no_change() {
        let mut sent = SentValues::default();
        assert!(sent.set(3, b"abc") && !sent.set(3, b"abc") && sent.set(3, b"abd"));
        assert_eq!(sent.iter().collect::<Vec<_>>(), [(3, b"abd".as_slice())]);
    }
}
