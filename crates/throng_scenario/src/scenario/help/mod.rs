//! A reference of everything that a scenario may contain, in prose, from the descriptions of the [`json_schema`].
//!
//! ```text
//! json_schema, behaviours ─▶ [`help_entries`]: name, description, fields ─┬─▶ `throng scenario help`
//! examples: a value for each field that is needed ────────────────────────┘
//! ```
//! | file | holds |
//! |---|---|
//! | `examples.rs` | a short example of each entry |
//! | here | the entries |
//!
//! Invariant: every example is valid in a scenario with the names that it uses.

mod examples;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::behaviours::{BehaviourParameters, BehaviourVisitor, for_each_built_in};
use super::json_schema::{describe_type, json_schema};
use super::schema::{Action, Cue, Expectation, ObjectCondition, ScenarioArea};
use super::text::{self, ValuePath, parameters};
use crate::crowd::BehaviourRule;
use examples::ExampleWriter;

/// The group of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelpGroup {
    /// A part of a scenario: a scene, a crowd, a queue.
    Part,
    /// When an action runs.
    Cue,
    /// What a cue does.
    Action,
    /// Which objects an action applies to.
    Condition,
    /// Where something is.
    Area,
    /// How the individuals of a crowd choose where to go.
    Behaviour,
    /// A condition that a run must fulfil.
    Expectation,
}

impl HelpGroup {
    /// All groups, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Part,
        Self::Cue,
        Self::Action,
        Self::Condition,
        Self::Area,
        Self::Behaviour,
        Self::Expectation,
    ];

    /// Its name in the singular and in the plural.
    #[must_use]
    pub const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Part => ["part of a scenario", "Parts of a scenario"],
            Self::Cue => ["cue", "Cues, in `script`: when something happens"],
            Self::Action => ["action", "Actions, in `run` of a cue: what happens"],
            Self::Condition => [
                "condition",
                "Conditions, in `only` of an action: to which objects",
            ],
            Self::Area => ["area", "Areas: where"],
            Self::Behaviour => ["behaviour", "Behaviours of crowds"],
            Self::Expectation => ["expectation", "Expectations, in `expect`: what must hold"],
        }
    }
}

/// One name that a scenario may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpEntry {
    /// The name, as it is written in a scenario.
    pub name: String,
    /// Its group.
    pub group: HelpGroup,
    /// What it means.
    pub description: String,
    /// Its fields, the required ones first.
    pub fields: Vec<HelpField>,
    /// A short example.
    pub example: String,
}

/// A field of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpField {
    /// Its name; empty for a value without one, as in `Radius(20)`.
    pub name: String,
    /// The type of its value: `whole number`, `list of texts`, or the name of another entry.
    pub value: String,
    /// What it means.
    pub description: String,
    /// Whether it is required.
    pub is_required: bool,
}

/// Returns whether a text can be parsed as a value of some type.
type ReadTest = fn(&str) -> bool;

fn is_read<T: DeserializeOwned>(text: &str) -> bool {
    text::read::<T>(text).is_ok()
}

/// The parts that are entries, with their names in the schema.
const PARTS: [&str; 6] = [
    "Scenario",
    "Scene",
    "Crowd",
    "Queue",
    "Attribute",
    "ObjectKind",
];

/// All names that scenarios may contain, group by group, with the built-in behaviours. O(types).
#[must_use]
pub fn help_entries() -> Vec<HelpEntry> {
    let schema = json_schema();
    let Some(definitions) = schema.get("$defs").and_then(Value::as_object) else {
        return Vec::new();
    };
    let writer = ExampleWriter { definitions };
    let mut entries = Vec::new();
    for name in PARTS {
        if let Some(definition) = definitions.get(name) {
            let mut part = entry(name, HelpGroup::Part, definition, definition, &|_| true);
            part.example = writer.part(name, definition);
            if name == "ObjectKind" {
                describe_object_kind(&mut part);
            }
            entries.push(part);
        }
    }
    let enums: [(&str, HelpGroup, ReadTest); 5] = [
        ("Cue", HelpGroup::Cue, is_read::<Cue>),
        ("Action", HelpGroup::Action, is_read::<Action>),
        ("Only", HelpGroup::Condition, is_read::<ObjectCondition>),
        ("Area", HelpGroup::Area, is_read::<ScenarioArea>),
        (
            "Expectation",
            HelpGroup::Expectation,
            is_read::<Expectation>,
        ),
    ];
    for (name, group, read) in enums {
        let variants = definitions.get(name).and_then(|of| of["oneOf"].as_array());
        for variant in variants.into_iter().flatten() {
            entries.extend(variant_entry(group, variant, &writer, read));
        }
    }
    let mut behaviours = BehaviourEntries { writer, entries };
    for_each_built_in(&mut behaviours);
    let mut entries = behaviours.entries;
    entries.sort_by_key(|entry| entry.group);
    entries
}

/// Describes [`ObjectKind`](throng::world::ObjectKind), whose documentation is not in the schema, since it is a type of another crate.
fn describe_object_kind(entry: &mut HelpEntry) {
    entry.description =
        "A kind of object, in addition to the built-in ones: player, npc, pet, boss and door."
            .to_owned();
    for field in &mut entry.fields {
        let description = match field.name.as_str() {
            "name" => "Its name in scenarios and reports.",
            "class" => "The view cap that it counts towards: `Player`, `Npc` or `Thing`.",
            "visibility" => {
                "Where viewers see it: in the nine cells around them, in more cells, or in the whole scene."
            }
            _ => "",
        };
        field.description = description.to_owned();
    }
}

/// Adds an entry for each behaviour.
struct BehaviourEntries<'a> {
    writer: ExampleWriter<'a>,
    entries: Vec<HelpEntry>,
}

impl BehaviourVisitor for BehaviourEntries<'_> {
    fn visit<T: BehaviourParameters>(&mut self) {
        let name = T::Behaviour::NAME;
        let definition = describe_type::<T>(name);
        let read = |text: &str| parameters::read::<T>(text, &ValuePath::root()).is_ok();
        let example = self.writer.fields(name, &definition, &read);
        let is_required = |field: &str| self.writer.is_required(name, &definition, field, &read);
        self.entries.push(HelpEntry {
            example,
            ..entry(
                name,
                HelpGroup::Behaviour,
                &definition,
                &definition,
                &is_required,
            )
        });
    }
}

/// The entry of a variant; `None` for one whose schema is not known.
fn variant_entry(
    group: HelpGroup,
    variant: &Value,
    writer: &ExampleWriter<'_>,
    read: ReadTest,
) -> Option<HelpEntry> {
    if let Some(name) = variant.get("const").and_then(Value::as_str) {
        return Some(HelpEntry {
            example: name.to_owned(),
            ..entry(name, group, variant, &Value::Null, &|_| false)
        });
    }
    let (name, content) = variant.get("properties")?.as_object()?.iter().next()?;
    let example = writer.variant(name, content, &read);
    let is_required = |field: &str| writer.is_required(name, content, field, &read);
    Some(HelpEntry {
        example,
        ..entry(name, group, variant, content, &is_required)
    })
}

/// An entry without an example; `described` has the description, `content` the fields.
fn entry(
    name: &str,
    group: HelpGroup,
    described: &Value,
    content: &Value,
    is_required: &dyn Fn(&str) -> bool,
) -> HelpEntry {
    let mut fields: Vec<HelpField> = match content.get("properties").and_then(Value::as_object) {
        Some(properties) => fields_of(properties, is_required),
        None if content.is_object() => vec![HelpField {
            name: String::new(),
            value: type_text(content),
            description: String::new(),
            is_required: true,
        }],
        None => Vec::new(),
    };
    if group == HelpGroup::Part {
        // Serde has defaults for all; validation reports what is missing.
        fields
            .iter_mut()
            .for_each(|field| field.is_required = false);
    }
    fields.sort_by_key(|field| !field.is_required);
    HelpEntry {
        name: name.to_owned(),
        group,
        description: description_of(described),
        fields,
        example: String::new(),
    }
}

fn fields_of(
    properties: &Map<String, Value>,
    is_required: &dyn Fn(&str) -> bool,
) -> Vec<HelpField> {
    let field = |(name, schema): (&String, &Value)| {
        let default = schema.get("default").map(ron_text).unwrap_or_default();
        let description = description_of(schema);
        HelpField {
            value: match name.as_str() {
                "behaviour" => "behaviour".to_owned(),
                _ => type_text(schema),
            },
            description: match default.as_str() {
                "" => description,
                default => format!("{description} Default: {default}."),
            },
            is_required: is_required(name),
            name: name.clone(),
        }
    };
    properties.iter().map(field).collect()
}

fn description_of(value: &Value) -> String {
    let description = value.get("description").and_then(Value::as_str);
    description.unwrap_or_default().to_owned()
}

/// A default value as RON, if it is a flag, a number or a text; otherwise empty.
fn ron_text(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if !text.is_empty() => text.clone(),
        _ => String::new(),
    }
}

/// A type in words.
fn type_text(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
        let items: Vec<String> = items.iter().map(type_text).collect();
        return match items.as_slice() {
            [x, y] if x == "number" && y == "number" => "(x, y)".to_owned(),
            _ => format!("({})", items.join(", ")),
        };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => "whole number",
        Some("number") => "number",
        Some("boolean") => "true or false",
        Some("string") => "text",
        Some("array") => return format!("list of {}", type_text(&schema["items"])),
        Some("object") if schema.get("properties").is_none() => "map",
        _ => "value",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::ATTRIBUTE_NAMES;
    use crate::scenario::{Behaviours, LoadedScenario};

    /// A scenario that defines all names which examples use, and contains the example at its place.
    fn scenario_with(entry: &HelpEntry) -> String {
        let example = &entry.example;
        let [mut cues, mut cast, mut expect, mut parts] = [const { String::new() }; 4];
        match entry.group {
            HelpGroup::Part if entry.name == "Scenario" => return example.clone(),
            HelpGroup::Part => {
                let list = match entry.name.as_str() {
                    "Scene" => "scenes: [Scene(name: \"yard\"), ",
                    "Crowd" => "scenes: [Scene(name: \"yard\")], crowds: [",
                    "Queue" => "queues: [",
                    "Attribute" => "attributes: [",
                    _ => "kinds: [",
                };
                return format!("Scenario(name: \"x\", {list}{example}])");
            }
            HelpGroup::Cue => cues.clone_from(example),
            HelpGroup::Action => cues = format!("At(t_s: 1, run: {example})"),
            HelpGroup::Condition => {
                cues = format!("At(t_s: 1, run: Despawn(tag: \"guards\", only: [{example}]))");
            }
            HelpGroup::Area => cast = format!("Crowd(at: {example}),"),
            HelpGroup::Behaviour => cast = format!("Crowd(behaviour: {example}),"),
            HelpGroup::Expectation => expect.clone_from(example),
        }
        parts += "scenes: [Scene(name: \"yard\"), Scene(name: \"keep\")], queues: [Queue(mode: \"arena\")],";
        format!(
            "Scenario(name: \"x\", {parts} crowds: [{cast} Crowd(tag: \"guards\", kind: \"player\", count: 50),
            Crowd(tag: \"others\", kind: \"player\", count: 50), Crowd(tag: \"horses\", count: 50)],
            script: [{cues}], expect: [{expect}])"
        )
    }

    #[test]
    fn every_example_is_valid() {
        let entries = help_entries();
        assert!(entries.len() > 80, "{}", entries.len());
        let mut errors = Vec::new();
        for entry in entries {
            // A cue of a game is known to that game only, and leaks are tracked by some builds only.
            if entry.name == "Game" || entry.name == "NoLeaks" {
                continue;
            }
            let text = scenario_with(&entry);
            let checked = LoadedScenario::from_text("t.ron", &text)
                .and_then(|loaded| loaded.check(ATTRIBUTE_NAMES, &Behaviours::default()));
            if let Err(error) = checked {
                errors.push(format!("{}: {error}", entry.example));
            }
        }
        assert_eq!(errors, Vec::<String>::new());
    }

    #[test]
    fn every_entry_and_field_is_described() {
        for entry in help_entries() {
            assert!(!entry.description.is_empty(), "{entry:?}");
            for field in &entry.fields {
                let is_described = !field.description.is_empty();
                assert!(field.name.is_empty() || is_described, "{entry:?}");
            }
        }
    }

    #[test]
    fn required_fields_are_those_that_the_reader_needs() {
        let entries = help_entries();
        let required = |name: &str, group| {
            let entry = entries
                .iter()
                .find(|of| of.name == name && of.group == group);
            let fields = entry.unwrap().fields.iter().filter(|of| of.is_required);
            fields.map(|of| of.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(required("Chase", HelpGroup::Behaviour), ["kind", "sight_m"]);
        assert_eq!(required("Despawn", HelpGroup::Action), ["tag"]);
        assert_eq!(required("Every", HelpGroup::Cue), ["run", "t_s"]);
        assert_eq!(required("Gather", HelpGroup::Action), ["at", "tag"]);
    }
}
