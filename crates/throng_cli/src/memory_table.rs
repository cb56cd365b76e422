//! The output of `throng run --memory`: memory by module.

use std::fmt::Write;

use throng_scenario::{LeakSummary, LeakedAllocations, MemorySummary};

/// Modules by size, with bytes per object, player and link, whose numbers at the end of the run are in `per`; then the remaining growth of
/// the process. 80 columns.
pub(super) fn memory_table(memory: &MemorySummary, per: [u64; 3]) -> String {
    let whole = memory.grown_bytes.or(memory.allocated_bytes);
    let mut text = format!(
        "\n{:<14}{:>10}{:>9}{:>12}{:>12}{:>12}",
        "memory of", "kB", "share", "B/object", "B/player", "B/link"
    );
    let mut row = |name: &str, bytes: u64| {
        let share = whole
            .filter(|&whole| whole > 0)
            .map_or_else(String::new, |whole| {
                format!("{:.1} %", bytes as f64 * 100.0 / whole as f64)
            });
        let kilobytes = format!("{:.0}", bytes as f64 / 1e3);
        let of = per.map(|count| match count {
            0 => "-".to_owned(),
            _ => format!("{:.0}", bytes as f64 / count as f64),
        });
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n{name:<14}{kilobytes:>10}{share:>9}{:>12}{:>12}{:>12}",
            of[0], of[1], of[2]
        );
    };
    for (name, bytes) in by_size(memory) {
        row(name, bytes);
    }
    let counted = memory.by_module.values().sum();
    row("= modules", counted);
    if let Some(allocated) = memory.allocated_bytes {
        row("unattributed", allocated.saturating_sub(counted));
        if let Some(grown) = memory.grown_bytes {
            row("allocator", grown.saturating_sub(allocated));
        }
    }
    if let Some(grown) = memory.grown_bytes {
        row("= growth", grown);
    }
    if !memory.by_set.is_empty() {
        text.push_str("\n\nallocated in the set");
        for (name, bytes) in &memory.by_set {
            let _ = write!(text, "\n{name:<14}{:>10.0}", *bytes as f64 / 1e3);
        }
    }
    text
}

/// Modules with their bytes, the largest first.
fn by_size(memory: &MemorySummary) -> Vec<(&'static str, u64)> {
    let mut modules: Vec<_> = memory
        .by_module
        .iter()
        .map(|(&name, &bytes)| (name, bytes))
        .collect();
    modules.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    modules
}

/// Memory leaks of a run, by function. 80 columns, except for names and callers.
pub(super) fn leak_lines(leaks: &LeakSummary) -> String {
    let mut text = format!(
        "\nstill allocated after all players left: {:.0} kB; the largest:",
        leaks.retained_bytes as f64 / 1e3
    );
    write_sites(&mut text, &leaks.retained, false);
    text.push_str("\n\nallocated per player that left:");
    write_sites(&mut text, &leaks.per_player, true);
    let outlived = leaks.outlived_bytes as f64 / 1e3;
    let _ = write!(
        text,
        "\n\nnot freed at shutdown: {outlived:.0} kB; without Bevy:"
    );
    write_sites(&mut text, &leaks.leaked, true);
    if leaks.untracked_blocks > 0 {
        let _ = write!(
            text,
            "\n\n{} allocations not tracked: the table was full",
            leaks.untracked_blocks
        );
    }
    text
}

fn write_sites(text: &mut String, sites: &[LeakedAllocations], with_callers: bool) {
    if sites.is_empty() {
        text.push_str(" nothing");
    }
    for site in sites {
        let LeakedAllocations {
            blocks,
            bytes,
            thread,
            function,
            callers,
        } = site;
        let _ = write!(
            text,
            "\n{bytes:>12} B in {blocks:>6} blocks, thread {thread}: {function}"
        );
        for caller in callers.iter().filter(|_| with_callers) {
            let _ = write!(text, "\n{:>14}by {caller}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_modules_come_first_and_the_rest_is_summed() {
        let memory = MemorySummary {
            grown_bytes: Some(100_000_000),
            allocated_bytes: Some(80_000_000),
            by_module: [("aoi", 10_000_000), ("sync", 60_000_000)].into(),
            by_set: [("view", 80_000_000)].into(),
            ..MemorySummary::default()
        };
        let table = memory_table(&memory, [2_000, 1_000, 0]);
        let names: Vec<&str> = table
            .lines()
            .filter_map(|line| line.split("  ").next())
            .collect();
        let expected = [
            "",
            "memory of",
            "sync",
            "aoi",
            "= modules",
            "unattributed",
            "allocator",
            "= growth",
        ];
        assert_eq!(names[..8], expected);
        assert!(table.contains("60.0 %") && table.lines().all(|line| line.chars().count() <= 80));
        let line = table.lines().find(|line| line.starts_with("sync")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["sync", "60000", "60.0", "%", "30000", "60000", "-"]);
    }
}
