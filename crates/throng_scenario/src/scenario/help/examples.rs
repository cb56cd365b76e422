//! A short example of each entry: its required fields, and those optional ones that make it clear, each with a typical value.

use serde_json::{Map, Value};

/// Writes examples from the schema of scenarios.
pub(super) struct ExampleWriter<'a> {
    /// The definitions of types, by name.
    pub definitions: &'a Map<String, Value>,
}

/// Typical values of fields, by name.
const VALUES: [(&str, &str); 37] = [
    ("name", "\"keep\""),
    ("tag", "\"guards\""),
    ("kind", "\"npc\""),
    ("count", "5"),
    ("at", "Point(center_m: (50, 50))"),
    ("behaviour", "Wander(radius_m: 10)"),
    ("mode", "\"arena\""),
    ("parties", "10"),
    ("scene", "\"keep\""),
    ("to", "\"keep\""),
    ("of", "\"horses\""),
    ("follow", "\"others\""),
    ("attribute", "\"health\""),
    ("value", "50"),
    ("by", "2"),
    ("team", "1"),
    ("text", "\"hello\""),
    ("rect_tiles", "(10, 10, 4, 4)"),
    ("at_tile", "(10, 10)"),
    ("rows", "[\"..#\", \"..#\"]"),
    ("center_m", "(50, 50)"),
    ("min_m", "(10, 10)"),
    ("max_m", "(40, 40)"),
    ("radius_m", "20"),
    ("to_radius_m", "5"),
    ("sight_m", "20"),
    ("points", "[(10, 10), (40, 10)]"),
    (
        "between",
        "(Point(center_m: (10, 10)), Point(center_m: (40, 40)))",
    ),
    ("t_s", "5"),
    ("from_s", "5"),
    ("until_s", "60"),
    ("ms", "50"),
    ("below", "20"),
    ("at_most", "0"),
    ("at_least", "10"),
    ("run", "Despawn(tag: \"guards\", count: 20)"),
    ("expect", "NoObjectOnBlockedTile"),
];

/// The order of fields: `FIRST`, all others in alphabetical order, `LAST`.
const FIRST: [&str; 10] = [
    "name",
    "t_s",
    "from_s",
    "until_s",
    "tag",
    "kind",
    "mode",
    "scene",
    "attribute",
    "count",
];
const LAST: [&str; 4] = ["only", "behaviour", "run", "expect"];

/// Optional fields that examples show. Of `LIMITS`, only the first that an entry has is shown.
const SHOWN: [&str; 2] = ["count", "radius_m"];
const LIMITS: [&str; 3] = ["below", "at_most", "at_least"];

/// Fields of parts that examples show.
const PART_FIELDS: [(&str, &[&str]); 7] = [
    ("Scenario", &["name", "scenes", "crowds"]),
    ("Scene", &["name", "tile_m"]),
    ("Crowd", &["tag", "kind", "count", "behaviour"]),
    ("Queue", &["mode", "parties_per_s"]),
    ("Attribute", &["name", "encoding"]),
    ("ObjectKind", &["name"]),
    ("NetworkConditions", &["delay_ms", "loss"]),
];

/// Fields of parts whose value depends on the part.
const PART_VALUES: [(&str, &str, &str); 9] = [
    ("Scenario", "scenes", "[Scene(name: \"keep\")]"),
    ("Scenario", "crowds", "[Crowd(count: 5)]"),
    ("Scene", "tile_m", "0.5"),
    ("Queue", "parties_per_s", "2"),
    ("Queue", "mode", "\"duel\""),
    ("Attribute", "name", "\"fame\""),
    ("Attribute", "encoding", "U16"),
    ("NetworkConditions", "delay_ms", "80"),
    ("NetworkConditions", "loss", "0.01"),
];

/// Values without a name, and fields whose value depends on the entry.
const ENTRY_VALUES: [(&str, &str, &str); 12] = [
    ("ScaleAttribute", "by", "0.5"),
    ("SetSceneAttribute", "attribute", "\"weather\""),
    ("SetSceneAttribute", "scene", "\"keep\""),
    ("OpenScene", "name", "\"cellar\""),
    ("Counter", "name", "\"paths.found\""),
    ("Teleport", "to", "Point(center_m: (50, 50))"),
    ("Announce", "scope", "Viewers"),
    ("HashIs", "", "\"0123456789abcdef\""),
    ("Game", "", "Storm(damage: 5)"),
    ("InViewOf", "", "\"others\""),
    ("Seeing", "", "\"others\""),
    ("SetP99UnderMs", "", "View, 10"),
];

impl ExampleWriter<'_> {
    /// The example of a part of a scenario.
    pub(super) fn part(&self, name: &str, definition: &Value) -> String {
        format!("{name}({})", self.part_fields(name, definition))
    }

    /// The example of a variant with fields or with a value.
    pub(super) fn variant(
        &self,
        name: &str,
        content: &Value,
        is_read: &dyn Fn(&str) -> bool,
    ) -> String {
        if content.get("properties").is_some() {
            return self.fields(name, content, is_read);
        }
        let part = content.get("$ref").and_then(Value::as_str);
        let part = part.and_then(|part| part.rsplit('/').next());
        if let Some((part, definition)) =
            part.and_then(|part| Some((part, self.definitions.get(part)?)))
            && definition.get("properties").is_some()
        {
            let mut fields = self.part_fields(part, definition);
            if let Some(own) = entry_value(name, "name") {
                fields = fields.replace("\"keep\"", own);
            }
            return format!("{name}({fields})");
        }
        format!("{name}({})", self.value(name, "", content))
    }

    /// The example of an entry with named fields: the required ones, and a few optional ones.
    pub(super) fn fields(
        &self,
        name: &str,
        content: &Value,
        is_read: &dyn Fn(&str) -> bool,
    ) -> String {
        let properties = content.get("properties").and_then(Value::as_object);
        let all: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
        let limit = LIMITS
            .iter()
            .find(|limit| all.iter().any(|field| field == *limit));
        let limit = limit.filter(|_| name != "Counter").unwrap_or(&"at_least");
        let shown = all.into_iter().filter(|field| {
            SHOWN.contains(&field.as_str())
                || field == limit
                || self.is_required(name, content, field, is_read)
        });
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        self.call(name, content, shown)
    }

    /// Whether an entry cannot be parsed without a field. O(fields).
    pub(super) fn is_required(
        &self,
        name: &str,
        content: &Value,
        field: &str,
        is_read: &dyn Fn(&str) -> bool,
    ) -> bool {
        let properties = content.get("properties").and_then(Value::as_object);
        let others = properties.into_iter().flat_map(Map::keys);
        let others = others.map(String::as_str).filter(|other| *other != field);
        !is_read(&self.call(name, content, others.collect()))
    }

    fn call(&self, name: &str, content: &Value, mut fields: Vec<&str>) -> String {
        if fields.is_empty() {
            return name.to_owned();
        }
        fields.sort_by_key(|field| order(field));
        let written = fields.into_iter().map(|field| {
            let schema = &content["properties"][field];
            format!("{field}: {}", self.value(name, field, schema))
        });
        format!("{name}({})", written.collect::<Vec<_>>().join(", "))
    }

    fn part_fields(&self, name: &str, definition: &Value) -> String {
        let shown = PART_FIELDS.iter().find(|(part, _)| *part == name);
        let shown = shown.map_or(&[][..], |(_, fields)| fields);
        let written = shown.iter().map(|field| {
            let own = PART_VALUES.iter().find(|of| (of.0, of.1) == (name, *field));
            let value = own.map_or_else(
                || self.value(name, field, &definition["properties"][*field]),
                |own| own.2.to_owned(),
            );
            format!("{field}: {value}")
        });
        written.collect::<Vec<_>>().join(", ")
    }

    /// A typical value of a field; `field` is empty for a value without a name.
    fn value(&self, entry: &str, field: &str, schema: &Value) -> String {
        if let Some(own) = entry_value(entry, field) {
            return own.to_owned();
        }
        if let Some((_, value)) = VALUES.iter().find(|(name, _)| *name == field) {
            return (*value).to_owned();
        }
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap_or_default();
            let definition = self.definitions.get(name).unwrap_or(&Value::Null);
            if name == "Area" {
                return "Rect(min_m: (10, 10), max_m: (40, 40))".to_owned();
            }
            let first = definition["oneOf"].as_array().and_then(|all| all.first());
            let first = first.and_then(|first| first["const"].as_str());
            return first.unwrap_or("()").to_owned();
        }
        if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
            let items = items.iter().enumerate();
            let items = items.map(|(nth, item)| match item.get("prefixItems") {
                Some(_) if nth == 0 => "(0.2, 0.2)".to_owned(),
                Some(_) => "(0.8, 0.8)".to_owned(),
                None => self.value(entry, ".", item),
            });
            let list = items.collect::<Vec<_>>().join(", ");
            return if field.is_empty() {
                list
            } else {
                format!("({list})")
            };
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => "10".to_owned(),
            Some("boolean") => "true".to_owned(),
            Some("array") => "[]".to_owned(),
            Some("string") => "\"text\"".to_owned(),
            _ => "()".to_owned(),
        }
    }
}

fn entry_value(entry: &str, field: &str) -> Option<&'static str> {
    let known = ENTRY_VALUES
        .iter()
        .find(|of| (of.0, of.1) == (entry, field));
    known.map(|of| of.2)
}

/// The sort key of a field.
fn order(field: &str) -> (usize, usize) {
    let first = FIRST.iter().position(|name| *name == field);
    let last = LAST.iter().position(|name| *name == field);
    match (first, last) {
        (Some(at), _) => (0, at),
        (None, Some(at)) => (2, at),
        (None, None) => (1, 0),
    }
}
