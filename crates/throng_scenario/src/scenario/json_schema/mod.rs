//! The JSON Schema of scenarios, generated from the types that read them.
//!
//! ```text
//! Scenario: Deserialize ─▶ trace: its calls ────────▶ properties and variants ┐
//! schema/*.rs ──────────▶ docs: the doc comments ────────────────────────────┴─▶ JSON Schema
//! ```
//! Editors, forms and generators use it. Scenarios in JSON use the format of serde: a struct is an object, a variant without fields
//! is a string with its name, and any other variant is an object with its name as the only property.
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
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::behaviours::{BehaviourParameters, BehaviourVisitor, for_each_built_in};
use super::schema::{
    Scenario, ScenarioAttribute, ScenarioCrowd, ScenarioMatchMode, ScenarioScene, ScenarioSettings,
};
use crate::crowd::{BehaviourRule, CrowdNetworkConditions};
use docs::Docs;

/// The sources of the types of a scenario file.
const SOURCES: [&str; 11] = [
    include_str!("../behaviours/built_in.rs"),
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

/// The JSON Schema (draft 2020-12) of a scenario, with the docs of every field of its types. Behaviours and custom cues are texts;
/// the definition `Behaviour` describes the built-in behaviours and their parameters.
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
            // Null means that the field is absent by default.
            let default = defaults.get(field).filter(|default| !default.is_null());
            if let (Some(object), Some(default)) = (value.as_object_mut(), default) {
                object.insert("default".to_owned(), default.clone());
            }
        }
    }
    let mut behaviours = BehaviourDefinitions(Vec::new());
    for_each_built_in(&mut behaviours);
    definitions.insert(
        "Behaviour",
        json!({
            "description": "A built-in behaviour. In a scenario it is a text, written as in RON: `Wander(radius_m: 10)`.",
            "oneOf": behaviours.0,
        }),
    );
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

/// The definitions of behaviours, each as a variant.
struct BehaviourDefinitions(Vec<Value>);

impl BehaviourVisitor for BehaviourDefinitions {
    fn visit<T: BehaviourParameters>(&mut self) {
        let name = T::Behaviour::NAME;
        let mut content = describe_type::<T>(name);
        let fields = content.as_object_mut();
        let description = fields.and_then(|fields| fields.remove("description"));
        self.0.push(json!({
            "type": "object",
            "description": description,
            "properties": { name: content },
            "required": [name],
            "additionalProperties": false,
        }));
    }
}

/// The definition of the parameter type of a behaviour, with its docs.
pub(super) fn describe_type<T: DeserializeOwned>(name: &str) -> Value {
    let docs = Docs::parse(&SOURCES);
    let definition = trace::definitions::<T>().remove(name);
    let mut definition = definition.unwrap_or_default();
    describe(name, &mut definition, &docs);
    definition
}

/// The default values of the types whose fields all have defaults.
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
            let description = docs.member_doc(name, text);
            set_description(variant, description);
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

fn set_description(value: &mut Value, description: Option<&str>) {
    if let (Some(object), Some(description)) = (value.as_object_mut(), description) {
        object.insert("description".to_owned(), description.into());
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
        let found = unknown(&root, &root, &wrong, "");
        assert_eq!(found.as_deref(), Some(".scenes[0].nam is unknown"));
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
            ("Behaviour", 7),
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
                .is_some_and(|description| description.contains("ticks"))
        );
    }
}
