//! Why a tick was slow: the sets that took more time than usual, and the work that was above average.

use std::collections::BTreeMap;

use super::numbers::{figure, fixed};
use throng::sim::SimSystems;

/// Maximum number of named causes.
const CAUSES_MAX: usize = 4;

/// The columns that can explain a slow tick, with their labels.
const CAUSES: [(&str, &str); 13] = [
    ("path_requests", "path requests"),
    ("nodes_expanded", "nodes of searches"),
    ("enters", "enters"),
    ("leaves", "leaves"),
    ("logins", "logins"),
    ("logouts", "logouts"),
    ("messages_handled", "messages"),
    ("matches", "matches"),
    ("packets", "packets"),
    ("snapshot_bytes", "bytes of snapshots"),
    ("delta_bytes", "bytes of deltas"),
    ("paths_waiting", "paths waiting"),
    ("messages_waiting", "messages waiting"),
];

/// A set, and by how much it exceeded its median.
struct Excess {
    name: &'static str,
    ms: f64,
    usual_ms: f64,
}

/// The explanation of a tick, from its figures, their means over the run, and the median of each set.
pub(super) fn reasons(
    figures: &BTreeMap<String, f64>,
    means: &BTreeMap<String, f64>,
    p50_ms: impl Fn(&str) -> f64,
) -> Vec<String> {
    let figure_of = |name: &str| figures.get(name).copied().unwrap_or(0.0);
    let mut sets: Vec<Excess> = SimSystems::STEPS
        .iter()
        .map(|set| Excess {
            name: set.name(),
            ms: figure_of(&format!("{}_ms", set.name())),
            usual_ms: p50_ms(set.name()),
        })
        .collect();
    sets.sort_by(|a, b| b.excess_ms().total_cmp(&a.excess_ms()));
    let all: f64 = sets.iter().map(|set| set.excess_ms().max(0.0)).sum();
    let mut causes = Vec::new();
    // The one or two sets that make up most of the excess.
    for set in sets
        .iter()
        .take(2)
        .filter(|set| set.excess_ms() > 0.25 * all)
    {
        causes.push(set.describe());
    }
    let mut things: Vec<(f64, String)> = CAUSES
        .into_iter()
        .filter_map(|(column, word)| {
            let (found, usual) = (figure_of(column), means.get(column).copied().unwrap_or(0.0));
            let is_unusual = found >= 2.0 * usual && found - usual >= 5.0;
            is_unusual.then(|| {
                let usual_word = figure(usual);
                (
                    found / usual.max(0.1),
                    format!("{} {word} ({usual_word} on average)", figure(found)),
                )
            })
        })
        .collect();
    things.sort_by(|a, b| b.0.total_cmp(&a.0));
    if things.is_empty() {
        causes
            .push("no count was unusual, so other load of the machine may be the cause".to_owned());
    }
    causes.extend(things.into_iter().take(CAUSES_MAX).map(|(_, cause)| cause));
    causes
}

impl Excess {
    fn excess_ms(&self) -> f64 {
        self.ms - self.usual_ms
    }

    fn describe(&self) -> String {
        let times = self.ms / self.usual_ms;
        let usual = if times.is_finite() && times >= 1.5 {
            format!("{}\u{a0}×\u{a0}its median", figure(times))
        } else {
            format!("its median is {} ms", fixed(self.usual_ms, 2))
        };
        format!(
            "<b>{}</b> took {} ms, {usual}",
            self.name,
            fixed(self.ms, 2)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &[(&str, f64)]) -> BTreeMap<String, f64> {
        all.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn slow_set_and_increased_counts_are_named() {
        let tick = named(&[
            ("navigate_ms", 31.0),
            ("view_ms", 4.0),
            ("path_requests", 412.0),
            ("enters", 30.0),
            ("packets", 99.0),
        ]);
        let means = named(&[("path_requests", 12.0), ("enters", 28.0), ("packets", 95.0)]);
        let causes = reasons(&tick, &means, |set| if set == "view" { 3.5 } else { 1.0 });
        assert_eq!(
            causes,
            [
                "<b>navigate</b> took 31.00 ms, 31\u{a0}×\u{a0}its median",
                "412 path requests (12 on average)"
            ]
        );
    }

    #[test]
    fn tick_without_a_known_cause_says_so() {
        let tick = named(&[("view_ms", 9.0), ("send_ms", 8.0), ("enters", 3.0)]);
        let causes = reasons(&tick, &named(&[]), |_| 0.0);
        assert_eq!(causes.len(), 3, "{causes:?}");
        assert!(
            causes[0].contains("its median is 0.00 ms") && causes[2].contains("the machine"),
            "{causes:?}"
        );
    }
}
