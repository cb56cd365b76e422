//! Metric families and their Prometheus text format, version 0.0.4.
//!
//! Invariants: a name appears once, with its help and type before its samples; no two samples of a name have the same labels; the
//! text is UTF-8, and each line ends with a line feed.

use std::fmt::Write as _;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Only grows; restarts at 0 with the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative counts of values for several upper bounds, with the sum and the number of values.
    Histogram,
    /// The sum of values and their number.
    Summary,
}

impl MetricType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// One sample.
#[derive(Clone, Debug, PartialEq)]
struct MetricSample {
    /// The suffix of the family's name: `_bucket`, `_sum`, `_count`, or nothing.
    suffix: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// All samples of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<MetricSample>,
}

impl MetricFamily {
    /// A family without samples. Its name consists of letters, digits and underscores, ends with the unit, and for counters with
    /// `_total` after that.
    #[must_use]
    pub const fn new(name: &'static str, kind: MetricType, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind,
            samples: Vec::new(),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Adds a sample without labels.
    #[must_use]
    pub fn value(mut self, value: f64) -> Self {
        self.push("", Vec::new(), value);
        self
    }

    /// Adds samples, each with its value of a label.
    #[must_use]
    pub fn by_label<L: Into<String>>(
        mut self,
        label: &'static str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> Self {
        for (of, value) in values {
            self.push("", vec![(label, of.into())], value);
        }
        self
    }

    /// Adds a histogram: cumulative counts for ascending upper bounds, and the sum and number of all values.
    #[must_use]
    pub fn histogram(mut self, buckets: &[(f64, u64)], sum: f64, count: u64) -> Self {
        for &(most, below) in buckets {
            self.push("_bucket", vec![("le", most.to_string())], below as f64);
        }
        self.push("_bucket", vec![("le", "+Inf".to_owned())], count as f64);
        self.push("_sum", Vec::new(), sum);
        self.push("_count", Vec::new(), count as f64);
        self
    }

    /// Adds the sum and the number of values with their labels.
    #[must_use]
    pub fn summary<L: Into<String>>(
        mut self,
        label: &'static str,
        of: L,
        sum: f64,
        count: u64,
    ) -> Self {
        let labels = vec![(label, of.into())];
        self.push("_sum", labels.clone(), sum);
        self.push("_count", labels, count as f64);
        self
    }

    fn push(&mut self, suffix: &'static str, labels: Vec<(&'static str, String)>, value: f64) {
        self.samples.push(MetricSample {
            suffix,
            labels,
            value,
        });
    }
}

/// The text of all families in order. O(samples).
#[must_use]
pub fn exposition<'a>(families: impl IntoIterator<Item = &'a MetricFamily>) -> String {
    let mut text = String::new();
    for family in families {
        let MetricFamily { name, help, .. } = family;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string never fails.
        let _ = writeln!(text, "# HELP {name} {help}");
        let _ = writeln!(text, "# TYPE {name} {}", family.kind.as_str());
        for sample in &family.samples {
            let _ = write!(text, "{name}{}", sample.suffix);
            for (nth, (label, value)) in sample.labels.iter().enumerate() {
                let before = if nth == 0 { '{' } else { ',' };
                let value = value
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('\n', "\\n");
                let _ = write!(text, "{before}{label}=\"{value}\"");
            }
            let end = if sample.labels.is_empty() { "" } else { "}" };
            let _ = writeln!(text, "{end} {}", format_number(sample.value));
        }
    }
    text
}

/// Formats a number as the text format requires.
fn format_number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_family_is_written_in_prometheus_format() {
        let families = [
            MetricFamily::new("a_total", MetricType::Counter, "Of a\\b\nand c.").value(3.0),
            MetricFamily::new("b_seconds", MetricType::Gauge, "B.")
                .by_label("mode", [("q\"r\\\n", 0.5), ("s", f64::NAN)]),
            MetricFamily::new("c_seconds", MetricType::Histogram, "C.").histogram(
                &[(0.001, 1), (0.25, 3)],
                1.5,
                4,
            ),
            MetricFamily::new("d_seconds", MetricType::Summary, "D.").summary("of", "x", 2.5, 2),
        ];
        let expected = r#"# HELP a_total Of a\\b\nand c.
# TYPE a_total counter
a_total 3
# HELP b_seconds B.
# TYPE b_seconds gauge
b_seconds{mode="q\"r\\\n"} 0.5
b_seconds{mode="s"} NaN
# HELP c_seconds C.
# TYPE c_seconds histogram
c_seconds_bucket{le="0.001"} 1
c_seconds_bucket{le="0.25"} 3
c_seconds_bucket{le="+Inf"} 4
c_seconds_sum 1.5
c_seconds_count 4
# HELP d_seconds D.
# TYPE d_seconds summary
d_seconds_sum{of="x"} 2.5
d_seconds_count{of="x"} 2
"#;
        assert_eq!(exposition(&families), expected);
    }
}
