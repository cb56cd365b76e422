//! Values that are legal and unusual: probably in another unit, such as milliseconds for seconds, or with a digit too many.
//!
//! Every field with a unit has a usual range here; a test compares the list with the JSON schema. 0 is usual everywhere, since it turns
//! most things off. `duration_s` has a check of its own (`validate/duration.rs`).

use super::text::{Outline, TextSpan, unit_of};

/// The least and the greatest usual value of each field with a unit, by its name; the unit is that of the name. Ascending by name.
const USUAL: [(&str, f64, f64); 76] = [
    ("accept_timeout_s", 1.0, 600.0),
    ("alley_tiles", 1.0, 50.0),
    ("attributes_per_s", 0.001, 100.0),
    ("authentication_timeout_s", 0.1, 600.0),
    ("avenue_tiles", 1.0, 100.0),
    ("block_tiles", 8.0, 1_000.0),
    ("budget_ms", 0.01, 100.0),
    ("build_ticks", 1.0, 2_000.0),
    ("bytes_max", 100.0, 1e9),
    ("bytes_per_client_s", 100.0, 1e8),
    ("bytes_per_s", 100.0, 1e8),
    ("cancels_per_s", 0.001, 10_000.0),
    ("cell_m", 2.0, 1_000.0),
    ("churn_per_s", 0.001, 10_000.0),
    ("corridor_tiles", 1.0, 50.0),
    ("decline_penalty_s", 0.05, 86_400.0),
    ("delay_ms", 1.0, 5_000.0),
    ("door_tiles", 1.0, 50.0),
    ("enter_after_s", 0.01, 600.0),
    ("every_s", 0.01, 3_600.0),
    ("expire_after_s", 0.05, 7_200.0),
    ("for_s", 0.01, 7_200.0),
    ("from_s", 0.01, 86_400.0),
    ("full_rate_distance_m", 0.5, 5_000.0),
    ("graph_bytes_per_tile_max", 0.1, 1_000.0),
    ("heartbeat_ticks", 1.0, 1_200.0),
    ("height_tiles", 4.0, 20_000.0),
    ("idle_timeout_s", 0.05, 86_400.0),
    ("in_flight_s_max", 0.05, 120.0),
    ("jitter_ms", 1.0, 5_000.0),
    ("leave_after_s", 0.01, 3_600.0),
    ("leaves_per_s", 0.001, 10_000.0),
    ("level_band_widen_per_s", 1.0, 1_000.0),
    ("limits_off_after_s", 0.05, 7_200.0),
    ("loading_timeout_s", 0.05, 3_600.0),
    ("login_grace_s", 0.05, 3_600.0),
    ("login_timeout_s", 0.05, 3_600.0),
    ("margin_m", 0.05, 500.0),
    ("match_duration_s", 0.05, 14_400.0),
    ("messages_per_s", 0.01, 1_000.0),
    ("motion_tolerance_m", 0.001, 10.0),
    ("ms", 0.01, 10_000.0),
    ("mtu_bytes", 500.0, 65_507.0),
    ("parties_per_s", 0.001, 10_000.0),
    ("power_gap_widen_per_s", 1.0, 1e6),
    ("priority_after_s", 0.05, 7_200.0),
    ("queue_position_interval_s", 0.05, 600.0),
    ("radius_m", 0.01, 5_000.0),
    ("rank_weight_percent", 1.0, 1_000.0),
    ("reconnect_grace_s", 0.05, 86_400.0),
    ("rematch_cooldown_s", 0.05, 86_400.0),
    ("requeue_delay_s", 0.05, 3_600.0),
    ("rerank_ticks", 1.0, 2_000.0),
    ("resume_buffer_bytes_max", 100.0, 1e8),
    ("room_tiles", 2.0, 1_000.0),
    ("save_every_ticks", 1.0, 100_000.0),
    ("sight_m", 0.5, 1_000.0),
    ("skill_window_widen_per_s", 1.0, 1e6),
    ("smoothing_s", 0.01, 600.0),
    ("snap_tiles_max", 1.0, 2_000.0),
    ("speed_m_s", 0.05, 60.0),
    ("spill_client_bytes_max", 100.0, 1e8),
    ("street_tiles", 1.0, 100.0),
    ("strength_gap_widen_per_s", 1.0, 1e6),
    ("strength_widen_per_s", 1.0, 1e6),
    ("t_s", 0.01, 86_400.0),
    ("tick_hz", 1.0, 128.0),
    ("tile_m", 0.1, 5.0),
    ("to_radius_m", 0.01, 5_000.0),
    ("ttl_ticks", 1.0, 100_000.0),
    ("until_s", 0.01, 86_400.0),
    ("view_range_m", 1.0, 5_000.0),
    ("wall_tiles", 1.0, 50.0),
    ("warm_up_s", 0.01, 3_600.0),
    ("width_m", 0.01, 5_000.0),
    ("width_tiles", 4.0, 20_000.0),
];

/// The numbers of a text that are outside the usual range of their field, each with a message.
pub(super) fn unusual_values(outline: &Outline) -> Vec<(TextSpan, String)> {
    let found = outline.numbers().filter_map(|(field, span, value)| {
        let (_, low, high) = usual_range(field)?;
        let is_usual = value == 0.0 || (low..=high).contains(&value);
        let unit = unit_of(field).unwrap_or_default();
        let words = outline.text_at(&span);
        let message = format!("`{field}` is usually {low} to {high} {unit}, found `{words}`");
        (!is_usual).then_some((span, message))
    });
    found.collect()
}

fn usual_range(field: &str) -> Option<(&'static str, f64, f64)> {
    let at = USUAL
        .binary_search_by_key(&field, |(name, ..)| *name)
        .ok()?;
    Some(USUAL[at])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::scenario::{BUILT_IN, LoadedScenario, TEMPLATE, json_schema};

    fn warnings(text: &str) -> Vec<String> {
        let found = unusual_values(&Outline::new(text));
        found.into_iter().map(|(_, message)| message).collect()
    }

    /// The fields of numbers in a JSON schema.
    fn number_fields(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(parts) => {
                let fields = parts.get("properties").and_then(Value::as_object);
                for (name, part) in fields.into_iter().flatten() {
                    let kinds = [&part["type"], &part["anyOf"][0]["type"]];
                    if kinds
                        .iter()
                        .any(|kind| *kind == "number" || *kind == "integer")
                    {
                        found.insert(name.clone());
                    }
                }
                parts.values().for_each(|part| number_fields(part, found));
            }
            Value::Array(parts) => parts.iter().for_each(|part| number_fields(part, found)),
            _ => {}
        }
    }

    #[test]
    fn every_field_with_a_unit_has_a_usual_range() {
        let mut fields = BTreeSet::new();
        number_fields(&json_schema(), &mut fields);
        fields.retain(|field| unit_of(field).is_some() && field != "duration_s");
        let known: BTreeSet<String> = USUAL.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let differ: Vec<_> = fields.symmetric_difference(&known).collect();
        assert!(differ.is_empty(), "{differ:?}");
        assert!(USUAL.is_sorted_by(|a, b| a.0 < b.0), "ascending");
        assert!(USUAL.iter().all(|(_, low, high)| 0.0 < *low && low < high));
    }

    #[test]
    fn values_beyond_the_ends_of_a_range_are_unusual() {
        for (field, low, high) in USUAL {
            let found = |value: f64| warnings(&format!("Scenario({field}: {value:?})"));
            for usual in [0.0, low, high] {
                assert!(found(usual).is_empty(), "{field} {usual}");
            }
            for unusual in [low * 0.999, high * 1.001] {
                assert_eq!(found(unusual).len(), 1, "{field} {unusual}");
            }
        }
        assert_eq!(
            warnings("Scenario(scenes: [Scene(name: \"a\", tile_m: 50)])"),
            ["`tile_m` is usually 0.1 to 5 metres, found `50`"]
        );
    }

    #[test]
    fn options_and_behaviours_are_checked_but_no_game_content() {
        let unusual = |entry: &str| warnings(&format!("Scenario(x: [{entry}])")).len();
        assert_eq!(unusual("Crowd(view_range_m: Some(50_000))"), 1);
        assert_eq!(unusual("Crowd(view_range_m: Some(50))"), 0);
        assert_eq!(unusual("Crowd(behaviour: Wander(radius_m: 90000))"), 1);
        assert_eq!(unusual("At(t_s: 1, run: Game(Storm(radius_m: 90000)))"), 0);
        assert_eq!(unusual("Crowd(tag: \"tile_m: 50\") /* tile_m: 50 */"), 0);
        assert_eq!(unusual("Block(rect_tiles: (490000, 300, 20, 4))"), 0);
    }

    #[test]
    fn values_of_built_in_scenarios_are_usual() {
        let built_in = BUILT_IN
            .iter()
            .map(|built_in| (built_in.name, built_in.text));
        for (name, text) in built_in.chain([("template", TEMPLATE)]) {
            let loaded = LoadedScenario::from_text(name, text).unwrap();
            let found = loaded.sources.unusual_values();
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }

    #[test]
    fn value_of_a_parameter_is_reported_at_its_name() {
        let text = "Scenario(name: \"x\", parameters: {\"side\": 50}, scenes: [Scene(name: \"a\", tile_m: side)])";
        let loaded = LoadedScenario::from_text("t.ron", text).unwrap();
        let found = loaded.sources.unusual_values();
        let words = |error: &crate::scenario::SourceError| {
            let start = error.span.offset();
            text[start..start + error.span.len()].to_owned()
        };
        assert_eq!(found.iter().map(words).collect::<Vec<_>>(), ["side"]);
    }
}
