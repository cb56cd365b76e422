//! The same crowds on several numbers of threads, each compared with the first: the speed-up of a tick.

use super::rows::BenchRow;
use crate::threads;

/// Prefix of crowds whose run is limited by time, so that two runs have different numbers of ticks.
const TIMED_LAYOUT: &str = "square ";

/// Unit of figures of the process instead of the run: a repeated crowd reuses memory that the crowd before freed.
const PROCESS_UNIT: &str = "bytes a player";

/// The rows of one number of threads, named after it, and compared with the rows of the first number if given. Times get their speed-up as
/// a ratio. All other rows must be equal for any number of threads, and are kept once, with the first.
pub(super) fn merge_rows(
    first: Option<(usize, &[BenchRow])>,
    count: usize,
    rows: Vec<BenchRow>,
) -> Vec<BenchRow> {
    let named = |row: BenchRow| {
        let case = format!("{}: {}", threads(count), row.case);
        BenchRow { case, ..row }
    };
    let Some((first_count, of_first)) = first else {
        return rows.into_iter().map(named).collect();
    };
    let is_time = |row: &BenchRow| row.unit == "ms";
    let is_compared = |row: &&BenchRow| {
        !is_time(row) && row.unit != PROCESS_UNIT && !row.case.contains(TIMED_LAYOUT)
    };
    let then = |case: &str| of_first.iter().find(|row| row.case == case);
    let differs = |row: &&BenchRow| then(&row.case).is_some_and(|then| then.value != row.value);
    let agrees = !rows.iter().filter(is_compared).any(|row| differs(&row));
    let with_first = |row: BenchRow| {
        let Some(then) = then(&row.case) else {
            return row;
        };
        let is_whole_tick = row.case.contains("tick mean");
        let row = BenchRow {
            reference: Some(threads(first_count).into()),
            reference_value: Some(then.value),
            reference_spread: then.spread,
            ratio: (row.value > 0.0).then_some(then.value / row.value),
            ..row
        };
        if is_whole_tick && !row.case.contains(TIMED_LAYOUT) {
            row.with_comparison("messages, view links and walkers", agrees)
        } else {
            row
        }
    };
    let times = rows.into_iter().filter(is_time);
    times.map(with_first).map(named).collect()
}

/// The rows that show the speed-up of the whole tick.
pub(super) fn speed_ups(rows: &[BenchRow]) -> Vec<BenchRow> {
    let is_whole_tick = |row: &&BenchRow| {
        let case = &row.case;
        row.reference.is_some() && (case.contains("tick mean/") || case.contains("tick p99/"))
    };
    rows.iter().filter(is_whole_tick).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tick_ms: f64, packets: f64) -> Vec<BenchRow> {
        vec![
            BenchRow::new("tick", "tick mean/20", tick_ms, "ms"),
            BenchRow::new("tick", "packets/20", packets, "a second"),
            BenchRow::new("tick", "square packets/20", tick_ms, "a second"),
            BenchRow::new("tick", "memory/20", tick_ms, PROCESS_UNIT),
        ]
    }

    #[test]
    fn speed_up_is_a_ratio_and_differing_packets_are_an_error() {
        let first = run(8.0, 400.0);
        let one = merge_rows(None, 1, first.clone());
        assert_eq!(
            (one.len(), one[0].case.as_str()),
            (4, "1 thread: tick mean/20")
        );
        let two = merge_rows(Some((1, &first)), 2, run(4.0, 400.0));
        let [row] = &two[..] else {
            panic!("expected the time alone, found {two:?}")
        };
        assert_eq!(row.case, "2 threads: tick mean/20");
        assert_eq!((row.ratio, row.results_agree), (Some(2.0), Some(true)));
        assert_eq!(row.reference.as_deref(), Some("1 thread"));
        assert_eq!(speed_ups(&two).len(), 1);
        let other = merge_rows(Some((1, &first)), 2, run(4.0, 401.0));
        assert_eq!(other[0].results_agree, Some(false));
    }
}
