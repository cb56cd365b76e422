//! The unit of a field, from the end of its name.

/// Endings of names, the longer ones first, and the unit in words.
const UNITS: [(&str, &str); 14] = [
    ("bytes_per_tile", "bytes a tile"),
    ("bytes_per_client_s", "bytes a second"),
    ("bytes_per_s", "bytes a second"),
    ("per_s", "per second"),
    ("m_s", "metres a second"),
    ("ms", "milliseconds"),
    ("hz", "times a second"),
    ("ticks", "ticks"),
    ("tiles", "tiles"),
    ("tile", "tiles"),
    ("bytes", "bytes"),
    ("percent", "percent"),
    ("m", "metres"),
    ("s", "seconds"),
];

/// The unit of a field's value, such as `metres` for `radius_m`; also of limits such as `idle_s_max`.
pub fn unit_of(field: &str) -> Option<&'static str> {
    let field = field.strip_suffix("_max").unwrap_or(field);
    let field = field.strip_suffix("_min").unwrap_or(field);
    let is_end = |end: &str| {
        let before = field.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() && end.len() > 1 || before.ends_with('_'))
    };
    let found = UNITS.iter().find(|(end, _)| is_end(end));
    found.map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_the_end_of_a_name() {
        for (field, unit) in [
            ("speed_m_s", Some("metres a second")),
            ("radius_m", Some("metres")),
            ("duration_s", Some("seconds")),
            ("churn_per_s", Some("per second")),
            ("bytes_per_s", Some("bytes a second")),
            ("bytes_per_client_s", Some("bytes a second")),
            ("graph_bytes_per_tile_max", Some("bytes a tile")),
            ("idle_s_max", Some("seconds")),
            ("ms", Some("milliseconds")),
            ("tick_hz", Some("times a second")),
            ("width_tiles", Some("tiles")),
            ("mtu_bytes", Some("bytes")),
            ("count", None),
            ("s", None),
            ("alms", None),
            ("scenes", None),
        ] {
            assert_eq!(unit_of(field), unit, "{field}");
        }
    }
}
