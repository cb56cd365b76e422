//! Registered attributes: audience, cadence and encoding.

use std::fmt;
use std::sync::Arc;

use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::audience::Audience;
use crate::sync::attribute_set::{ATTRIBUTE_WORDS, ATTRIBUTES_MAX, AttributeSet};
use crate::sync::masks::WORD_BITS;
use crate::sync::scene_messages::AudienceVariant;
use crate::wire::{ATTRIBUTE_BYTES_MAX, AttributeValue, Encoding, attribute_id};

/// When a changed attribute is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SendRate {
    /// Once per heartbeat, in a tick that depends on the object, so that work and bytes are spread evenly.
    #[default]
    Heartbeat,
    /// In the tick of the change.
    EveryTick,
    /// Once in this many ticks, phased by object; 0 counts as 1.
    EveryNth(u32),
}

/// The description of an attribute at registration.
///
/// ```
/// use throng::sync::{Audience, AttributeSpec, SendRate};
/// use throng::wire::Encoding;
///
/// /// Sent to the owner in the tick of a change, and saved.
/// const COINS: AttributeSpec = AttributeSpec::named("coins", Encoding::Varint)
///     .to(Audience::OWNER)
///     .at(SendRate::EveryTick)
///     .persistent();
///
/// assert!(COINS.id >= 32_768); // computed from the name
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeSpec {
    /// Its name in scenarios and reports.
    pub name: &'static str,
    /// Its id in packets.
    pub id: u16,
    /// Its receivers.
    pub audience: Audience,
    /// How soon a change is sent.
    pub cadence: SendRate,
    /// The encoding of its values; at most [`ATTRIBUTE_BYTES_MAX`] bytes.
    pub encoding: Encoding,
    /// Whether changes also go to [`SaveRequest`](super::SaveRequest).
    pub persist: bool,
}

impl AttributeSpec {
    /// An attribute for all viewers of the object, sent once per heartbeat and not saved.
    #[must_use]
    pub const fn new(name: &'static str, id: u16, encoding: Encoding) -> Self {
        Self {
            name,
            id,
            audience: Audience::VIEWERS,
            cadence: SendRate::Heartbeat,
            encoding,
            persist: false,
        }
    }

    /// The same with an id that is computed from the name, 32,768 or above: the same in every build. Two names give the same
    /// id once in thousands of cases; registering the second one fails then, and one of them needs an explicit id.
    #[must_use]
    pub const fn named(name: &'static str, encoding: Encoding) -> Self {
        Self::new(name, attribute_id(name), encoding)
    }

    /// The same for another audience.
    #[must_use]
    pub const fn to(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// The same with another send rate.
    #[must_use]
    pub const fn at(self, cadence: SendRate) -> Self {
        Self { cadence, ..self }
    }

    /// The same, and saved.
    #[must_use]
    pub const fn persistent(self) -> Self {
        Self {
            persist: true,
            ..self
        }
    }
}

/// Why an attribute cannot be registered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RegisterError {
    /// The name or id is already in use.
    #[error(
        "attribute `{name}`: name or number {id} already used by another attribute; choose another name or set the number"
    )]
    Taken {
        /// The requested name.
        name: &'static str,
        /// The requested id.
        id: u16,
    },
    /// Values could be longer than the protocol allows.
    #[error(
        "attribute `{name}`: values of up to {found} bytes, expected at most {ATTRIBUTE_BYTES_MAX}"
    )]
    TooLong {
        /// The attribute's name.
        name: &'static str,
        /// The length of its longest value.
        found: u32,
    },
    /// The maximum number of attributes is reached.
    #[error("attribute `{0}` not registered: limit of {ATTRIBUTES_MAX} attributes reached")]
    TooMany(&'static str),
}

/// Appends the value of an entity, and returns whether its encoding represents it exactly; `None` when it has none.
pub(super) type Encode =
    Arc<dyn Fn(EntityRef, Encoding, &mut Vec<u8>) -> Option<bool> + Send + Sync>;

/// An attribute with the function that encodes it.
#[derive(Clone)]
pub(in crate::sync) struct RegisteredAttribute {
    pub spec: AttributeSpec,
    pub(super) encode: Encode,
}

impl RegisteredAttribute {
    /// Appends the value of an entity, and returns whether its encoding represents it exactly; `None` when it has none.
    pub fn encode(&self, entity: EntityRef, bytes: &mut Vec<u8>) -> Option<bool> {
        (self.encode)(entity, self.spec.encoding, bytes)
    }
}

/// The registered attributes; the index of one is its bit in every mask.
#[derive(Resource, Clone)]
pub struct Attributes {
    table: Vec<RegisteredAttribute>,
    /// By [`AudienceVariant`].
    variant_sets: Vec<AttributeSet>,
    /// By the relation of a client to an object.
    variants: Vec<AudienceVariant>,
    /// The number of custom audiences.
    audiences: usize,
    /// The variants for viewers of an object, its owner included.
    viewer_variants: Vec<AudienceVariant>,
    /// The variants with attributes that a client can receive without seeing the object.
    unseen_variants: Vec<AudienceVariant>,
    /// The attributes by send rate: the interval in ticks, or 0 for the heartbeat.
    cadences: Vec<(u64, AttributeSet)>,
    persistent: AttributeSet,
}

impl Default for Attributes {
    fn default() -> Self {
        let mut attributes = Self {
            table: Vec::new(),
            variant_sets: Vec::new(),
            variants: Vec::new(),
            audiences: 0,
            viewer_variants: Vec::new(),
            unseen_variants: Vec::new(),
            cadences: Vec::new(),
            persistent: [0; ATTRIBUTE_WORDS],
        };
        attributes.rebuild();
        attributes
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs()).finish()
    }
}

impl Attributes {
    /// The description of each attribute, by ascending bit.
    pub fn specs(&self) -> impl Iterator<Item = AttributeSpec> {
        self.table.iter().map(|registered| registered.spec)
    }

    /// The current value of an object's attribute at an index of [`specs`](Self::specs), as clients would receive it; `None`
    /// if it has none.
    #[must_use]
    pub fn value(&self, place: usize, of: EntityRef) -> Option<AttributeValue> {
        let registered = self.get(place)?;
        let mut bytes = Vec::new();
        registered.encode(of, &mut bytes)?;
        registered.spec.encoding.read(&bytes).ok()
    }

    /// The bit of the attribute with this name.
    #[must_use]
    pub fn bit(&self, name: &str) -> Option<u32> {
        let place = self.specs().position(|spec| spec.name == name)?;
        u32::try_from(place).ok()
    }

    /// The number of words of a mask of all attributes.
    pub(super) const fn mask_words(&self) -> usize {
        self.table.len().div_ceil(WORD_BITS)
    }

    /// The attribute of a bit.
    pub(in crate::sync) fn get(&self, bit: usize) -> Option<&RegisteredAttribute> {
        self.table.get(bit)
    }

    /// The attributes that a client with this relation receives.
    pub(in crate::sync) fn variant(&self, relation: Audience) -> AudienceVariant {
        // The number of relations is a power of two, and for `CONTROLLER` all bits are set.
        self.variants[usize::from(relation.0) & (self.variants.len() - 1)]
    }

    /// The attributes of each variant.
    pub(in crate::sync) fn variant_sets(&self) -> &[AttributeSet] {
        &self.variant_sets
    }

    /// The attributes that are saved.
    pub(in crate::sync) const fn persistent(&self) -> &AttributeSet {
        &self.persistent
    }

    /// The variants for viewers of an object, its owner included.
    pub(in crate::sync) fn viewer_variants(&self) -> &[AudienceVariant] {
        &self.viewer_variants
    }

    /// The attributes that a client with this relation receives of an object that it does not see, if any.
    pub(in crate::sync) fn unseen_variant(&self, relation: Audience) -> Option<AudienceVariant> {
        let variant = self.variant(relation);
        self.unseen_variants.contains(&variant).then_some(variant)
    }

    /// Whether any attribute is sent to parties.
    #[must_use]
    pub fn has_party_attributes(&self) -> bool {
        self.unseen_variant(Audience::PARTY).is_some()
    }

    /// The bit of the attribute with this id, if it is sent to parties and the bytes are one of its values.
    pub(super) fn party_bit(&self, id: u16, value: &[u8]) -> Option<usize> {
        let bit = self.specs().position(|spec| spec.id == id)?;
        let spec = self.get(bit)?.spec;
        let is_valid = spec.audience.contains(Audience::PARTY) && spec.encoding.read(value).is_ok();
        is_valid.then_some(bit)
    }

    /// The variants with attributes that a client can receive without seeing the object.
    pub(in crate::sync) fn unseen_variants(&self) -> &[AudienceVariant] {
        &self.unseen_variants
    }

    /// The relation of a client to the object that it controls.
    pub(in crate::sync) const CONTROLLER: Audience = Audience(u16::MAX);

    /// The attributes of an object that are sent in this tick if they changed; `in_heartbeat` if this is the object's tick of
    /// the heartbeat. Intervals in ticks are multiplied by `stretch`.
    pub(in crate::sync) fn scheduled(
        &self,
        tick: u64,
        id: u32,
        in_heartbeat: bool,
        stretch: u64,
    ) -> AttributeSet {
        let mut due = [0; ATTRIBUTE_WORDS];
        for &(every, set) in &self.cadences {
            let now = if every == 0 {
                in_heartbeat
            } else {
                (tick + u64::from(id)).is_multiple_of(every * stretch)
            };
            if now {
                (0..ATTRIBUTE_WORDS).for_each(|word| due[word] |= set[word]);
            }
        }
        due
    }

    pub(super) fn register(
        &mut self,
        registered: RegisteredAttribute,
    ) -> Result<u32, RegisterError> {
        let AttributeSpec {
            name, id, encoding, ..
        } = registered.spec;
        if self
            .specs()
            .any(|other| other.name == name || other.id == id)
        {
            return Err(RegisterError::Taken { name, id });
        }
        let found = encoding.bytes_max();
        if found > ATTRIBUTE_BYTES_MAX {
            return Err(RegisterError::TooLong { name, found });
        }
        if self.table.len() == ATTRIBUTES_MAX {
            return Err(RegisterError::TooMany(name));
        }
        self.table.push(registered);
        self.rebuild();
        Ok(self.table.len() as u32 - 1)
    }

    /// Adds an audience.
    pub(super) fn add_audience(&mut self) {
        self.audiences += 1;
        self.rebuild();
    }

    /// The sets of attributes that clients can receive, and the set for each relation of a client to an object.
    ///
    /// Few relations are possible: the owner, who has every relation; viewers, which are in the object's scene,
    /// with any of the viewer audiences; and clients that receive it unseen. So one byte is enough for the variants, with
    /// the maximum number of audiences.
    fn variants_of(
        &self,
        set_of: impl Fn(&dyn Fn(AttributeSpec) -> bool) -> AttributeSet,
    ) -> (Vec<AttributeSet>, Vec<AudienceVariant>) {
        let relations = 1_usize << (Audience::BUILT_IN_COUNT + self.audiences);
        let all = Audience((relations - 1) as u16);
        let sight = Audience::VIEWERS.or(Audience::SCENE);
        let unseen = Audience::PARTY.or(Audience::SCENE);
        let (mut variant_sets, mut variants) = (Vec::new(), vec![AudienceVariant(0); relations]);
        let relation_of = |relation: usize| {
            let relation = Audience(relation as u16);
            if relation.intersects(Audience::OWNER) {
                all
            } else if unseen.contains(relation) {
                relation
            } else {
                relation.or(sight)
            }
        };
        for (relation, variant) in variants.iter_mut().enumerate() {
            let relation = relation_of(relation);
            let set = set_of(&|spec| spec.audience.intersects(relation));
            let place = variant_sets.iter().position(|&other| other == set);
            *variant = AudienceVariant(place.unwrap_or(variant_sets.len()) as u8);
            if place.is_none() {
                variant_sets.push(set);
            }
        }
        debug_assert!(variant_sets.len() <= 256, "{} variants", variant_sets.len());
        (variant_sets, variants)
    }

    /// Computes everything that is derived from the table. O(relations × attributes).
    fn rebuild(&mut self) {
        let set_of = |choose: &dyn Fn(AttributeSpec) -> bool| {
            let mut set = [0; ATTRIBUTE_WORDS];
            for (bit, registered) in self.table.iter().enumerate() {
                set[bit / WORD_BITS] |= u64::from(choose(registered.spec)) << (bit % WORD_BITS);
            }
            set
        };
        let every = |cadence| match cadence {
            SendRate::Heartbeat => 0,
            SendRate::EveryTick => 1,
            SendRate::EveryNth(ticks) => u64::from(ticks.max(1)),
        };
        let (variant_sets, variants) = self.variants_of(set_of);
        self.variants = variants;
        let sight = Audience::VIEWERS.or(Audience::SCENE);
        let relations = (0..self.variants.len() as u16).map(Audience);
        let mut seen: Vec<AudienceVariant> = relations
            .filter(|relation| relation.contains(sight))
            .map(|relation| self.variant(relation))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let mut remotes = [
            Audience::PARTY,
            Audience::SCENE,
            Audience::PARTY.or(Audience::SCENE),
        ]
        .map(|relation| self.variant(relation))
        .to_vec();
        remotes.retain(|variant| variant_sets[usize::from(variant.0)] != [0; ATTRIBUTE_WORDS]);
        remotes.sort_unstable();
        remotes.dedup();
        let mut cadences: Vec<u64> = self.specs().map(|spec| every(spec.cadence)).collect();
        cadences.sort_unstable();
        cadences.dedup();
        let of_cadence = |ticks| (ticks, set_of(&|spec| every(spec.cadence) == ticks));
        let cadences = cadences.into_iter().map(of_cadence).collect();
        let persist = set_of(&|spec| spec.persist);
        (
            self.variant_sets,
            self.viewer_variants,
            self.unseen_variants,
        ) = (variant_sets, seen, remotes);
        (self.cadences, self.persistent) = (cadences, persist);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(attributes: &mut Attributes, spec: AttributeSpec) -> Result<u32, RegisterError> {
        let encode: Encode = Arc::new(|_, _, _| None);
        attributes.register(RegisteredAttribute { spec, encode })
    }

    #[test]
    fn attribute_names_ids_and_lengths_are_checked() {
        let mut attributes = Attributes::default();
        let mut register = |name, id, encoding| {
            super::tests::register(&mut attributes, AttributeSpec::new(name, id, encoding))
        };
        assert_eq!(register("health", 1, Encoding::Varint), Ok(0));
        let (name, found) = ("mana", 256);
        assert_eq!(
            register(name, 2, Encoding::Bytes { max: found }),
            Err(RegisterError::TooLong { name, found })
        );
        for (name, id) in [("mana", 1), ("health", 2)] {
            assert_eq!(
                register(name, id, Encoding::U8),
                Err(RegisterError::Taken { name, id })
            );
        }
        assert_eq!(register("mana", 2, Encoding::U8), Ok(1));
    }

    #[test]
    fn relations_with_equal_attributes_share_a_variant() {
        let mut attributes = Attributes::default();
        let plain = |name, id| AttributeSpec::new(name, id, Encoding::U8);
        register(&mut attributes, plain("health", 1)).unwrap();
        register(&mut attributes, plain("gold", 2).to(Audience::OWNER)).unwrap();
        assert!(attributes.unseen_variants().is_empty());
        let party = Audience::PARTY.or(Audience::GUILD);
        register(&mut attributes, plain("mana", 3).to(party)).unwrap();
        assert_eq!(
            attributes.unseen_variants(),
            [attributes.variant(Audience::PARTY)]
        );
        assert_eq!(attributes.unseen_variant(Audience::SCENE), None);
        // The owner, unrelated clients, and those of the party or guild.
        assert_eq!(attributes.viewer_variants().len(), 3);
        let attributes_of =
            |relation| attributes.variant_sets()[usize::from(attributes.variant(relation).0)][0];
        assert_eq!(attributes_of(Attributes::CONTROLLER), 0b111);
        assert_eq!(attributes_of(Audience::VIEWERS), 0b001);
        assert_eq!(attributes_of(Audience::VIEWERS.or(Audience::TEAM)), 0b001);
        assert_eq!(attributes_of(Audience::VIEWERS.or(Audience::GUILD)), 0b101);
        assert_eq!(
            attributes.variant(Audience::VIEWERS.or(Audience::PARTY)),
            attributes.variant(Audience::VIEWERS.or(Audience::GUILD))
        );
    }

    #[test]
    fn attributes_are_scheduled_at_their_send_rate() {
        let mut attributes = Attributes::default();
        let plain = |name, id| AttributeSpec::new(name, id, Encoding::U8);
        register(&mut attributes, plain("slow", 1)).unwrap();
        register(&mut attributes, plain("fast", 2).at(SendRate::EveryTick)).unwrap();
        register(&mut attributes, plain("third", 3).at(SendRate::EveryNth(3))).unwrap();
        let due = |tick, id, heartbeat| attributes.scheduled(tick, id, heartbeat, 1)[0];
        assert_eq!(due(5, 1, false), 0b110);
        assert_eq!(due(6, 1, false), 0b010);
        assert_eq!(due(6, 1, true), 0b011);
        let stretched = |tick| attributes.scheduled(tick, 1, false, 2)[0];
        assert_eq!([4, 5, 6, 8, 11].map(stretched), [0, 0b110, 0, 0, 0b110]);
    }
}
