//! The JSON Schema of scenarios, generated from the types that read them.
//!
//! ```text
//! Scenario: Deserialize ─▶ trace: what it asks for ─▶ properties and variants ┐
//! schema/*.rs ──────────▶ docs: what stands above each ──────────────────────┴─▶ JSON Schema
//! ```
//! Editors, forms and generators use it. A scenario in JSON is written as serde writes it: a struct is an object, a variant
//! without fields is its name, any other an object with its name as the only property.
//!
//! | file | holds |
//! |---|---|
//! | `docs.rs` | the doc comments of fields and variants |
//! | `trace.rs` | the types, from their calls to a deserializer |
//!
//! Invariant: the schema contains exactly what the reader accepts, since it is generated from the reader.

mod docs;
mod trace;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::schema::{
    Scenario, ScenarioAttribute, ScenarioCrowd, ScenarioMatchMode, ScenarioScene, ScenarioSettings,
};
use crate::crowd::CrowdNetworkConditions;
use docs::Docs;

/// The sources of the types of a scenario file.
const SOURCES: [&str; 10] = [
    include_str!("../../crowd/network_conditions.rs"),
    include_str!("../schema/area.rs"),
    include_str!("../schema/attribute.rs"),
    include_str!("../schema/crowd.rs"),
    include_str!("../schema/expect.rs"),
    include_str!("../schema/mod.rs"),
    include_str!("../schema/parameter.rs"),
    include_str!("../schema/queue.rs"),
    include_str!("../schema/script.rs"),
    include_str!("../schema/selector.rs"),
];

/// The JSON Schema (draft 2020-12) of a scenario, with the docs of every field of its types. For behaviours and custom cues it
/// only checks that they are present.
#[must_use]
pub fn json_schema() -> Value {
    let docs = Docs::parse(&SOURCES);
    let mut definitions = trace::definitions::<Scenario>();
    for (name, definition) in &mut definitions {
        describe(name, definition, &docs);
    }
    for (name, defaults) in defaults() {
        let properties = definitions
            .get_mut(name)
            .and_then(|definition| definition.get_mut("properties"));
        let properties = properties.and_then(Value::as_object_mut);
        for (field, value) in properties.into_iter().flatten() {
            // Null is the absent value, which needs no description.
            let default = defaults.get(field).filter(|default| !default.is_null());
            if let (Some(object), Some(default)) = (value.as_object_mut(), default) {
                object.insert("default".to_owned(), default.clone());
            }
        }
    }
    let definitions: Map<String, Value> = definitions
        .into_iter()
        .map(|(name, definition)| (name.to_owned(), definition))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of throng",
        "$ref": "#/$defs/Scenario",
        "$defs": definitions,
    })
}

/// The types whose fields all have defaults, with these defaults.
fn defaults() -> [(&'static str, Value); 7] {
    fn default_of<T: Default + Serialize>(name: &'static str) -> (&'static str, Value) {
        (name, serde_json::to_value(T::default()).unwrap_or_default())
    }
    [
        default_of::<Scenario>("Scenario"),
        default_of::<ScenarioScene>("Scene"),
        default_of::<ScenarioCrowd>("Crowd"),
        default_of::<ScenarioMatchMode>("Queue"),
        default_of::<ScenarioAttribute>("Attribute"),
        default_of::<ScenarioSettings>("Settings"),
        default_of::<CrowdNetworkConditions>("NetworkConditions"),
    ]
}

/// Adds the docs of a type to its definition.
fn describe(name: &str, definition: &mut Value, docs: &Docs) {
    set_description(definition, docs.type_doc(name));
    if let Some(properties) = definition.get_mut("properties") {
        describe_fields(properties, |field| docs.member_doc(name, field));
    }
    let variants = definition.get_mut("oneOf").and_then(Value::as_array_mut);
    for variant in variants.into_iter().flatten() {
        if let Some(text) = variant.get("const").and_then(Value::as_str) {
            let said = docs.member_doc(name, text);
            set_description(variant, said);
            continue;
        }
        let object = variant.get_mut("properties").and_then(Value::as_object_mut);
        let Some((text, fields)) = object.and_then(|object| object.iter_mut().next()) else {
            continue;
        };
        let (text, owner) = (text.clone(), format!("{name}::{text}"));
        if let Some(properties) = fields.get_mut("properties") {
            describe_fields(properties, |field| docs.member_doc(&owner, field));
        }
        set_description(variant, docs.member_doc(name, &text));
    }
}

fn describe_fields<'a>(properties: &mut Value, of: impl Fn(&str) -> Option<&'a str>) {
    for (field, value) in properties.as_object_mut().into_iter().flatten() {
        set_description(value, of(field));
    }
}

fn set_description(value: &mut Value, said: Option<&str>) {
    if let (Some(object), Some(said)) = (value.as_object_mut(), said) {
        object.insert("description".to_owned(), said.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{BUILT_IN, parse};

    /// Values that the schema does not describe, with their path.
    fn unknown(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let definition = root.pointer(name.trim_start_matches('#'))?;
            return unknown(root, definition, value, place);
        }
        if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
            let faults = variants.iter().map(|variant| match variant.get("const") {
                Some(name) => (name != value).then(|| format!("{place} is not {name}")),
                None => unknown(root, variant, value, place),
            });
            let faults: Option<Vec<String>> = faults.collect();
            return faults.and_then(|faults| faults.into_iter().max_by_key(String::len));
        }
        match value {
            Value::Object(fields) => {
                let properties = schema.get("properties");
                fields.iter().find_map(|(field, value)| {
                    let place = format!("{place}.{field}");
                    let any = schema
                        .get("additionalProperties")
                        .filter(|any| !any.is_boolean());
                    match properties.and_then(|all| all.get(field)).or(any) {
                        Some(schema) => unknown(root, schema, value, &place),
                        None => Some(format!("{place} is unknown")),
                    }
                })
            }
            Value::Array(items) => items.iter().enumerate().find_map(|(nth, item)| {
                let place = format!("{place}[{nth}]");
                let schema = schema
                    .pointer(&format!("/prefixItems/{nth}"))
                    .or_else(|| schema.get("items"));
                match schema {
                    Some(schema) => unknown(root, schema, item, &place),
                    None => Some(format!("{place} is unknown")),
                }
            }),
            Value::String(_) if schema.get("type") == Some(&json!("number")) => {
                Some(format!("{place} is a text"))
            }
            _ => None,
        }
    }

    #[test]
    fn every_built_in_scenario_matches_the_schema() {
        let root = json_schema();
        for built_in in BUILT_IN {
            let scenario = parse(built_in.name, built_in.text).unwrap();
            let value = serde_json::to_value(&scenario).unwrap();
            assert_eq!(unknown(&root, &root, &value, ""), None, "{}", built_in.name);
        }
        let wrong = json!({"scenes": [{"nam": "a"}]});
        let told = unknown(&root, &root, &wrong, "");
        assert_eq!(told.as_deref(), Some(".scenes[0].nam is unknown"));
    }

    #[test]
    fn every_variant_and_field_of_the_schema_is_described() {
        let root = json_schema();
        let of = |pointer: &str| root.pointer(pointer).and_then(Value::as_object).unwrap();
        for name in [
            "Scenario",
            "Scene",
            "Crowd",
            "Queue",
            "Attribute",
            "Settings",
            "Packets",
            "NetworkConditions",
        ] {
            let definition = &root["$defs"][name];
            assert!(definition.get("description").is_some(), "{name}");
            for (field, schema) in of(&format!("/$defs/{name}/properties")) {
                assert!(schema.get("description").is_some(), "{name}.{field}");
            }
        }
        for (name, variants) in [
            ("Cue", 5),
            ("Action", 34),
            ("Only", 8),
            ("Area", 4),
            ("Pick", 2),
            ("Scope", 5),
            ("Class", 2),
            ("AudienceName", 6),
            ("MapSource", 2),
            ("Expectation", 21),
        ] {
            let definition = &root["$defs"][name];
            assert!(definition.get("description").is_some(), "{name}");
            let all = root
                .pointer(&format!("/$defs/{name}/oneOf"))
                .and_then(Value::as_array)
                .unwrap();
            assert_eq!(all.len(), variants, "{name}");
            for variant in all {
                assert!(variant.get("description").is_some(), "{name}: {variant}");
                let contents = variant.get("properties").and_then(Value::as_object);
                let contents = contents.into_iter().flat_map(Map::values);
                let fields = contents.filter_map(|content| content.get("properties")?.as_object());
                for (field, schema) in fields.flatten() {
                    assert!(
                        schema.get("description").is_some(),
                        "{name}: {variant}: {field}"
                    );
                }
            }
        }
        let scene = of("/$defs/Scene/properties");
        assert_eq!(scene["view_cap"]["default"], json!(100));
        let announce = of("/$defs/Action/oneOf/9/properties/Announce/properties");
        assert!(
            announce["ttl_ticks"]["description"]
                .as_str()
                .is_some_and(|said| said.contains("ticks"))
        );
    }
}
