//! Times in options: seconds, minutes or hours.

/// Parses a time such as `90s`, `1.5m` or `2h`; a number without a unit is in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * factor);
    seconds
        .filter(|seconds| (0.0..=7.0 * 86_400.0).contains(seconds))
        .ok_or_else(|| "expected a time of up to seven days, such as 90s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_limits() {
        assert_eq!(seconds("90s"), Ok(90.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2h"), Ok(7200.0));
        assert_eq!(seconds("7"), Ok(7.0));
        assert_eq!(seconds("168h"), Ok(604_800.0), "seven days");
        assert!(seconds("604800.001").is_err());
        for bad in ["", "s", "-1s", "nan", "inf", "8000h", "5 parsecs", "µ"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
