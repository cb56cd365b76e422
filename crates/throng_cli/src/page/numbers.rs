//! Formatted numbers.

/// Groups of three digits are set apart by this: it is narrow, and no line breaks at it.
const GROUP: char = '\u{202f}';

/// A number with three digits that count, or all before the point, in groups.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.0995.. => 3,
        _ => 4,
    };
    grouped(&format!("{value:.digits$}"))
}

/// A number with this many digits after the point.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    grouped(&format!("{value:.digits$}"))
}

fn grouped(text: &str) -> String {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("−", rest));
    let (whole, rest) = text
        .split_once('.')
        .map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut shown = String::from(sign);
    for (nth, digit) in whole.chars().enumerate() {
        // Four digits are read at a glance.
        if nth > 0 && (whole.len() - nth).is_multiple_of(3) && whole.len() > 4 {
            shown.push(GROUP);
        }
        shown.push(digit);
    }
    if let Some(rest) = rest {
        shown.push('.');
        shown.push_str(rest);
    }
    shown
}

/// Bytes in the unit that suits them.
pub(crate) fn bytes(value: f64) -> String {
    match value.abs() {
        1e9.. => format!("{} GB", figure(value / 1e9)),
        1e6.. => format!("{} MB", figure(value / 1e6)),
        1e3.. => format!("{} kB", figure(value / 1e3)),
        _ => format!("{} B", figure(value.round())),
    }
}

/// A time of the run: seconds, and from two minutes on minutes and seconds.
pub(crate) fn clock(seconds: f64, is_long: bool) -> String {
    if !is_long {
        return figure(seconds);
    }
    let whole = seconds.round() as u64;
    match whole / 3_600 {
        0 => format!("{}:{:02}", whole / 60, whole % 60),
        hours => format!("{hours}:{:02}:{:02}", whole / 60 % 60, whole % 60),
    }
}

/// How many of something: its plural has an s.
pub(crate) fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", figure(number as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        let shown = [
            0.0,
            0.01234,
            0.5,
            3.2159,
            31.4159,
            314.159,
            9_999.0,
            1_234_567.0,
            -12_345.6,
        ];
        let expected = [
            "0",
            "0.0123",
            "0.500",
            "3.22",
            "31.4",
            "314",
            "9999",
            "1\u{202f}234\u{202f}567",
            "−12\u{202f}346",
        ];
        assert_eq!(shown.map(figure), expected);
        assert_eq!(
            [12.0, 1_500.0, 2.5e9].map(bytes),
            ["12 B", "1.50 kB", "2.50 GB"]
        );
        assert_eq!([75.0, 3_725.0].map(|s| clock(s, true)), ["1:15", "1:02:05"]);
        assert_eq!(
            [59.4, 59.5, 3_599.9].map(|s| clock(s, true)),
            ["0:59", "1:00", "1:00:00"]
        );
    }
}
