//! Variants whose fields all have defaults may be written without brackets: `PathsExact` for `PathsExact()`.

use std::cell::RefCell;
use std::fmt;
use std::iter;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

/// An enum whose variants with fields may be written without brackets.
pub(super) struct OptionalBrackets<A>(pub A);

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for OptionalBrackets<A> {
    type Error = A::Error;
    type Variant = OptionalBrackets<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, rest) = self.0.variant_seed(seed)?;
        Ok((name, OptionalBrackets(rest)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for OptionalBrackets<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let waiting = RefCell::new(Some(visitor));
        let read = self.0.struct_variant(fields, Once(&waiting));
        match (read, waiting.into_inner()) {
            // No bracket was opened: all fields are absent.
            (Err(_), Some(visitor)) => {
                visitor.visit_map(MapDeserializer::new(iter::empty::<(&'static str, bool)>()))
            }
            (read, _) => read,
        }
    }
}

/// A visitor that remains available if it was not used.
struct Once<'a, V>(&'a RefCell<Option<V>>);

impl<'de, V: Visitor<'de>> Visitor<'de> for Once<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a variant")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<V::Value, M::Error> {
        let visitor = self.0.take();
        visitor.map_or_else(
            || Err(Error::custom("read twice")),
            |visitor| visitor.visit_map(map),
        )
    }

    fn visit_seq<S: SeqAccess<'de>>(self, fields: S) -> Result<V::Value, S::Error> {
        let visitor = self.0.take();
        visitor.map_or_else(
            || Err(Error::custom("read twice")),
            |visitor| visitor.visit_seq(fields),
        )
    }
}
