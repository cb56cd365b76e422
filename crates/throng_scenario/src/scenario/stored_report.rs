//! Reports that an earlier version stored: their old keys become the current ones.

use serde_json::{Map, Value};

use super::counters::FORMER_NAMES;

/// Former keys of a report that are not counters.
const FORMER_KEYS: [(&str, &str); 8] = [
    ("script_cues_from_outside", "external_actions"),
    ("script_faults", "script_errors"),
    ("script_idle_cues", "cues_without_effect"),
    ("leaks.held_bytes", "leaks.retained_bytes"),
    ("leaks.held", "leaks.retained"),
    ("leaks.growing", "leaks.per_player"),
    ("leaks.lost_blocks", "leaks.untracked_blocks"),
    ("leaks.knows_inlined", "leaks.has_line_tables"),
];

/// Former groups, whose counters have moved to others.
const FORMER_GROUPS: [&str; 2] = ["battles", "directory"];

/// Former keys of each expectation.
const FORMER_RESULT_KEYS: [(&str, &str); 1] = [("holds", "passed")];

/// Former verdicts.
const FORMER_VERDICTS: [(&str, &str); 2] =
    [("not_judged", "not_checked"), ("slow_here", "slow_machine")];

/// Former columns of a record.
const FORMER_COLUMNS: [(&str, &str); 3] = [
    ("players_in_line", "login_queue"),
    ("remote_bytes", "unseen_update_bytes"),
    ("announce_bytes", "announcement_bytes"),
];

/// Replaces the former keys of a report in JSON by the current ones, so that reports of earlier versions can be shown and
/// compared. Values and unknown keys stay. Keys of the record's own types are read by serde aliases.
///
/// Cost: O(keys that were ever renamed + expectations + slowest ticks).
pub fn rename_former_keys(report: &mut Value) {
    for (former, current) in FORMER_NAMES.iter().chain(&FORMER_KEYS) {
        rename(report, former, current);
    }
    if let Some(fields) = report.as_object_mut() {
        for group in FORMER_GROUPS {
            let is_empty = fields
                .get(group)
                .and_then(Value::as_object)
                .is_some_and(Map::is_empty);
            if is_empty {
                fields.remove(group);
            }
        }
    }
    let results = report.get_mut("expectations").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        for (former, current) in FORMER_RESULT_KEYS {
            rename(result, former, current);
        }
        if let Some(verdict) = result.get_mut("verdict") {
            let renamed = FORMER_VERDICTS.iter().find(|(former, _)| verdict == former);
            if let Some((_, current)) = renamed {
                *verdict = (*current).into();
            }
        }
    }
    let Some(record) = report.get_mut("record") else {
        return;
    };
    for (former, current) in FORMER_COLUMNS {
        for table in ["series", "means"] {
            if let Some(table) = record.get_mut(table) {
                rename(table, former, current);
            }
        }
        let ticks = record.get_mut("slowest").and_then(Value::as_array_mut);
        for tick in ticks.into_iter().flatten() {
            for values in ["figures", "values"] {
                if let Some(values) = tick.get_mut(values) {
                    rename(values, former, current);
                }
            }
        }
    }
}

/// Moves a value to another path; if that path has a value already, the moved value is dropped. Steps of a path are separated by
/// dots.
fn rename(root: &mut Value, former: &str, current: &str) {
    if let Some(value) = take(root, former) {
        place(root, current, value);
    }
}

fn take(root: &mut Value, path: &str) -> Option<Value> {
    let (group, key) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = group.split('.').filter(|step| !step.is_empty());
    let mut at = root;
    for step in steps {
        at = at.get_mut(step)?;
    }
    at.as_object_mut()?.remove(key)
}

fn place(root: &mut Value, path: &str, value: Value) {
    let (group, key) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = group.split('.').filter(|step| !step.is_empty());
    let mut at = root;
    for step in steps {
        let Some(fields) = at.as_object_mut() else {
            return;
        };
        at = fields
            .entry(step)
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if let Some(fields) = at.as_object_mut() {
        fields.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn former_keys_become_current_ones() {
        let mut report = json!({
            "scenario": "x",
            "battles": { "opened": 3, "lost": 1 },
            "directory": { "look_ups": 7, "own": 2 },
            "sessions": { "in_line": 4, "ended": { "late": 1 } },
            "script_faults": ["a"],
            "script_fault_count": 1,
            "expectations": [{ "holds": null, "verdict": "slow_here" }, { "holds": true, "verdict": "passed" }],
            "record": {
                "series": { "players_in_line": [1.0] },
                "slowest": [{ "figures": { "remote_bytes": 5 } }],
            },
        });
        rename_former_keys(&mut report);
        let current = json!({
            "scenario": "x",
            "match_scenes": { "opened": 3, "missing": 1 },
            "directory": { "own": 2 },
            "player_store": { "lookups": 7 },
            "sessions": { "login_queue": 4, "ended": { "timed_out": 1 } },
            "script_errors": ["a"],
            "script_error_count": 1,
            "expectations": [
                { "passed": null, "verdict": "slow_machine" },
                { "passed": true, "verdict": "passed" },
            ],
            "record": {
                "series": { "login_queue": [1.0] },
                "slowest": [{ "figures": { "unseen_update_bytes": 5 } }],
            },
        });
        assert_eq!(report, current);
        rename_former_keys(&mut report);
        assert_eq!(report, current, "a current report stays as it is");
    }

    #[test]
    fn any_json_is_accepted() {
        for text in [
            "3",
            "[]",
            "{}",
            r#"{"battles": 3, "sync": [], "record": {"slowest": {}}}"#,
        ] {
            let mut value: Value = serde_json::from_str(text).unwrap();
            let before = value.clone();
            rename_former_keys(&mut value);
            assert_eq!(value, before);
        }
    }
}
