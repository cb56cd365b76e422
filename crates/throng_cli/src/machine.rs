//! The machine, build and time of a measurement.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cores;

/// The machine, the build and the time of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Machine {
    /// The version of throng.
    pub throng: String,
    /// Whether the build is optimised.
    pub is_optimised: bool,
    pub cpu: String,
    pub cores: usize,
    pub os: String,
    pub memory_bytes: Option<u64>,
    /// The number of threads given to the systems.
    pub threads: usize,
    /// When the measurement began, in UTC: `2026-05-04T13:02:01Z`.
    pub date: String,
    /// The load average of the minute before the measurement.
    pub load_average: Option<f64>,
}

impl Machine {
    /// The current machine.
    pub(super) fn current(threads: usize) -> Self {
        Self {
            throng: env!("CARGO_PKG_VERSION").to_owned(),
            is_optimised: !cfg!(debug_assertions),
            cpu: cpu().unwrap_or_else(|| "unknown".to_owned()),
            cores: cores(),
            os: os(),
            memory_bytes: line_value("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
                .map(|kib| kib * 1_024),
            threads,
            date: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or_else(|_| "unknown".to_owned(), |now| utc(now.as_secs())),
            load_average: load_average(),
        }
    }

    /// A few lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        let load = self
            .load_average
            .map_or_else(String::new, |load| format!(", load average {load:.2}"));
        vec![
            format!("machine   {}", self.cpu),
            format!("          {} cores{load}; {}", self.cores, self.os),
            format!(
                "build     throng {}{}",
                self.throng,
                if self.is_optimised {
                    ""
                } else {
                    ", UNOPTIMISED"
                }
            ),
            format!("measured  {}, threads {}", self.date, self.threads),
        ]
    }

    /// Differences to another measurement's machine and build, one sentence each.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let texts = [
            ("CPU", &self.cpu, &other.cpu),
            ("system", &self.os, &other.os),
            ("throng", &self.throng, &other.throng),
        ];
        let texts = texts
            .into_iter()
            .map(|(what, here, there)| (what, here.clone(), there.clone()));
        let optimised = |is| if is { "optimised" } else { "not optimised" }.to_owned();
        let numbers = [
            ("cores", self.cores.to_string(), other.cores.to_string()),
            (
                "threads",
                self.threads.to_string(),
                other.threads.to_string(),
            ),
            (
                "build",
                optimised(self.is_optimised),
                optimised(other.is_optimised),
            ),
        ];
        texts
            .chain(numbers)
            .filter(|(_, here, there)| here != there)
            .map(|(what, here, there)| format!("{what}: `{here}` here, `{there}` in the baseline"))
            .collect()
    }
}

/// The load average of the last minute, if the system provides it.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn cpu() -> Option<String> {
    if let Some(name) = line_value("/proc/cpuinfo", "model name") {
        return Some(name);
    }
    if cfg!(target_os = "macos") {
        let output = Command::new("sysctl")
            .args(["-n", "machdep.cpu.brand_string"])
            .output();
        return Some(
            String::from_utf8(output.ok()?.stdout)
                .ok()?
                .trim()
                .to_owned(),
        );
    }
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

fn os() -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    match kernel {
        Ok(kernel) => format!("{os} {} {arch}", kernel.trim()),
        Err(_) => format!("{os} {arch}"),
    }
}

/// The value of the first line `name: value` of a file.
fn line_value(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(found, _)| found.trim() == name)?;
    Some(value.trim().to_owned())
}

/// Seconds since 1970 as a date and time (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_also_on_leap_days() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }

    #[test]
    fn other_machine_is_reported_and_same_one_is_not() {
        let here = Machine::current(2);
        assert!(here.differences(&here.clone()).is_empty());
        let there = Machine {
            cpu: "abacus".to_owned(),
            threads: 3,
            date: "long ago".to_owned(),
            load_average: None,
            ..here.clone()
        };
        let differences = here.differences(&there);
        assert_eq!(differences.len(), 2, "{differences:?}");
        assert!(
            differences[0].contains("`abacus` in the baseline"),
            "{differences:?}"
        );
    }
}
