//! Metrics that the app adds to those of the server.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use crate::exposition::MetricFamily;

/// Metrics of the game, or of the program around the server: `/metrics` has them after the server's own, in the order of their names.
///
/// Set a family when its values change; the server reads them on request. The server's own names begin with `throng_` and `process_`;
/// others must not, since a name may appear only once.
///
/// ```
/// use throng_inspect::{AppMetrics, MetricFamily, MetricType};
///
/// let mut metrics = AppMetrics::default();
/// let bosses = MetricFamily::new("game_bosses", MetricType::Gauge, "Bosses that are alive.");
/// metrics.set(bosses.value(3.0));
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct AppMetrics(BTreeMap<&'static str, MetricFamily>);

impl AppMetrics {
    /// Adds a family, or replaces the one with the same name. O(log families).
    pub fn set(&mut self, family: MetricFamily) {
        self.0.insert(family.name(), family);
    }

    /// All families in the order of their names.
    pub(super) fn families(&self) -> impl Iterator<Item = &MetricFamily> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::MetricType;

    #[test]
    fn app_metric_is_replaced_by_its_name() {
        let mut metrics = AppMetrics::default();
        for (name, value) in [("b", 1.0), ("a", 2.0), ("b", 3.0)] {
            metrics.set(MetricFamily::new(name, MetricType::Gauge, "Of a test.").value(value));
        }
        let names = metrics.families().map(MetricFamily::name);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        let text = crate::exposition::exposition(metrics.families());
        assert!(text.contains("a 2\n") && text.ends_with("b 3\n"), "{text}");
    }
}
