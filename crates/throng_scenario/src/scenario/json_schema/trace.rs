//! The structure of types, from their calls to a deserializer: each type is read from made-up values, repeatedly, until every
//! variant of every enum was seen. The method is that of the crate `serde-reflection`.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Value, json};

use crate::scenario::old_names::is_old_name;

/// Maximum number of readings: more than there are variants.
const READINGS_MAX: usize = 10_000;

/// The definitions of a type and its parts, by name.
pub(super) fn definitions<T: DeserializeOwned>() -> BTreeMap<&'static str, Value> {
    let mut trace = Trace::default();
    for _ in 0..READINGS_MAX {
        trace.has_more = false;
        let mut schema = Value::Null;
        let read = T::deserialize(Tracer {
            trace: &mut trace,
            schema: &mut schema,
        });
        debug_assert!(read.is_ok(), "{:?}", read.err());
        if read.is_err() || !trace.has_more {
            break;
        }
    }
    trace.definitions()
}

/// What was found so far.
#[derive(Default)]
struct Trace {
    structs: BTreeMap<&'static str, Value>,
    /// The variants of each enum, in their order.
    enums: BTreeMap<&'static str, BTreeMap<usize, Value>>,
    /// Variants that are fully explored.
    done: BTreeMap<&'static str, BTreeSet<usize>>,
    /// The enums being read, nested.
    open: Vec<&'static str>,
    /// Whether this reading skipped something that is not explored.
    has_more: bool,
    /// The field that is read.
    field: &'static str,
}

impl Trace {
    /// Reads a struct with these fields, and returns their types. Serde lists old names of fields next to the new ones; a value
    /// has only one of the two.
    fn fields<'de, V: Visitor<'de>>(
        &mut self,
        name: &str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<(V::Value, Value), Error> {
        let mut read = TracedFields {
            trace: self,
            fields: fields
                .iter()
                .copied()
                .filter(|field| !is_old_name(name, field))
                .collect::<Vec<_>>()
                .into_iter(),
            field: "",
            properties: Map::new(),
        };
        let value = visitor.visit_map(&mut read)?;
        Ok((value, object(read.properties)))
    }

    /// A text that its reader accepts: a row of tiles, except for fields that are read from names.
    fn text(&self) -> &'static str {
        match self.field {
            "algorithm" => "jps",
            _ => ".",
        }
    }
}

impl Trace {
    fn definitions(self) -> BTreeMap<&'static str, Value> {
        let mut all = self.structs;
        for (name, variants) in self.enums {
            let variants: Vec<Value> = variants.into_values().collect();
            all.insert(name, json!({ "oneOf": variants }));
        }
        all
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Reads one value, and returns its type.
struct Tracer<'a> {
    trace: &'a mut Trace,
    schema: &'a mut Value,
}

macro_rules! scalars {
    ($($method:ident $visit:ident $value:expr, $schema:tt;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            *self.schema = json!($schema);
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    scalars! {
        deserialize_any visit_bool false, { "type": ["boolean", "number", "string"] };
        deserialize_bool visit_bool false, { "type": "boolean" };
        deserialize_i8 visit_i8 1, { "type": "integer" };
        deserialize_i16 visit_i16 1, { "type": "integer" };
        deserialize_i32 visit_i32 1, { "type": "integer" };
        deserialize_i64 visit_i64 1, { "type": "integer" };
        deserialize_u8 visit_u8 1, { "type": "integer", "minimum": 0, "maximum": 255 };
        deserialize_u16 visit_u16 1, { "type": "integer", "minimum": 0, "maximum": 65535 };
        deserialize_u32 visit_u32 1, { "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32 };
        deserialize_u64 visit_u64 1, { "type": "integer", "minimum": 0 };
        deserialize_f32 visit_f32 1.0, { "type": "number" };
        deserialize_f64 visit_f64 1.0, { "type": "number" };
        deserialize_char visit_char '.', { "type": "string" };
        deserialize_identifier visit_str ".", { "type": "string" };
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.schema = json!({ "type": "string" });
        visitor.visit_str(self.trace.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bytes(&[])
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bytes(&[])
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if !name.contains("RawValue") {
            return visitor.visit_newtype_struct(self);
        }
        // Kept as it is written: a name with its parameters.
        *self.schema = json!({ "type": "string" });
        let text: StrDeserializer<'_, Error> = "Idle".into_deserializer();
        visitor.visit_newtype_struct(text)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (value, mut items) = self.read_items(1, visitor)?;
        *items.0 = json!({ "type": "array", "items": items.1.pop() });
        Ok(value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (value, items) = self.read_items(length, visitor)?;
        *items.0 = tuple(items.1);
        Ok(value)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut entries = TracedFields {
            trace: self.trace,
            fields: vec!["."].into_iter(),
            field: ".",
            properties: Map::new(),
        };
        let value = visitor.visit_map(&mut entries)?;
        let schema = entries.properties.remove(".");
        *self.schema = json!({ "type": "object", "additionalProperties": schema });
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (value, schema) = self.trace.fields(name, fields, visitor)?;
        self.trace.structs.insert(name, schema);
        *self.schema = reference(name);
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Serde lists old names of variants beside the new ones.
        let current = variants.iter().copied();
        let variants: Vec<&'static str> = current
            .filter(|variant| !is_old_name(name, variant))
            .collect();
        let is_left = |trace: &Trace, nth: &usize| {
            trace.done.get(name).is_none_or(|done| !done.contains(nth))
        };
        // A recursive enum uses its first variant, to end the recursion.
        let is_inner = self.trace.open.contains(&name);
        let mut left = (0..variants.len()).filter(|nth| !is_inner && is_left(self.trace, nth));
        let nth = left.next().unwrap_or_default();
        self.trace.open.push(name);
        let before = std::mem::replace(&mut self.trace.has_more, false);
        let mut schema = Value::Null;
        let value = visitor.visit_enum(TracedVariant {
            trace: &mut *self.trace,
            name: variants.get(nth).copied().unwrap_or_default(),
            schema: &mut schema,
        })?;
        let trace = self.trace;
        trace.open.pop();
        if is_inner {
            trace.has_more = before;
            *self.schema = reference(name);
            return Ok(value);
        }
        trace.enums.entry(name).or_default().insert(nth, schema);
        if !trace.has_more {
            trace.done.entry(name).or_default().insert(nth);
        }
        trace.has_more = before || (0..variants.len()).any(|nth| is_left(trace, &nth));
        *self.schema = reference(name);
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

impl<'a> Tracer<'a> {
    /// Reads a number of items, and returns their types if needed.
    fn read_items<'de, V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<(V::Value, (&'a mut Value, Vec<Value>)), Error> {
        let mut items = Items {
            trace: self.trace,
            left: length,
            schemas: Vec::new(),
        };
        let value = visitor.visit_seq(&mut items)?;
        Ok((value, (self.schema, items.schemas)))
    }
}

fn tuple(items: Vec<Value>) -> Value {
    let length = items.len();
    json!({ "type": "array", "prefixItems": items, "minItems": length, "maxItems": length })
}

struct Items<'a> {
    trace: &'a mut Trace,
    left: usize,
    schemas: Vec<Value>,
}

impl<'de> SeqAccess<'de> for &mut Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut schema = Value::Null;
        let value = seed.deserialize(Tracer {
            trace: &mut *self.trace,
            schema: &mut schema,
        })?;
        self.schemas.push(schema);
        Ok(Some(value))
    }
}

struct TracedFields<'a> {
    trace: &'a mut Trace,
    fields: std::vec::IntoIter<&'static str>,
    field: &'static str,
    properties: Map<String, Value>,
}

impl<'de> MapAccess<'de> for &mut TracedFields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.next() else {
            return Ok(None);
        };
        self.field = field;
        let name: StrDeserializer<'_, Error> = field.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut schema = Value::Null;
        self.trace.field = self.field;
        let value = seed.deserialize(Tracer {
            trace: &mut *self.trace,
            schema: &mut schema,
        })?;
        self.properties.insert(self.field.to_owned(), schema);
        Ok(value)
    }
}

struct TracedVariant<'a> {
    trace: &'a mut Trace,
    name: &'static str,
    schema: &'a mut Value,
}

impl TracedVariant<'_> {
    /// Says what is in the brackets of the variant.
    fn set_content(schema: &mut Value, name: &str, inner: Value) {
        let mut properties = Map::new();
        properties.insert(name.to_owned(), inner);
        *schema = object(properties);
        schema["required"] = json!([name]);
    }
}

impl<'de, 'a> EnumAccess<'de> for TracedVariant<'a> {
    type Error = Error;
    type Variant = TracedVariant<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for TracedVariant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        *self.schema = json!({ "const": self.name });
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let mut inner = Value::Null;
        let value = seed.deserialize(Tracer {
            trace: self.trace,
            schema: &mut inner,
        })?;
        Self::set_content(self.schema, self.name, inner);
        Ok(value)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        let mut items = Items {
            trace: self.trace,
            left: length,
            schemas: Vec::new(),
        };
        let value = visitor.visit_seq(&mut items)?;
        Self::set_content(self.schema, self.name, tuple(items.schemas));
        Ok(value)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (value, schema) = self.trace.fields("", fields, visitor)?;
        Self::set_content(self.schema, self.name, schema);
        Ok(value)
    }
}
