//! `throng check`: validates scenarios and maps without running anything.

use std::path::Path;
use std::time::Instant;

use super::report::escaped;
use super::{ExitStatus, Failure, Printer, print};
use crate::crowd::ATTRIBUTE_NAMES;
use crate::map::{self, MapFormat};
use crate::scenario::{self, Behaviours};

/// Arguments of `throng check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  throng check town siege\n  throng check my.ron maps/keep.map")]
pub(super) struct Check {
    /// Scenarios (.ron files or built-in names) and maps
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

impl Check {
    /// Checks all files, a line for each that is good, an error for each that is not.
    pub(super) fn run(&self, printer: &Printer, quiet: bool) -> Result<ExitStatus, Failure> {
        let mut outcome = ExitStatus::Done;
        for file in &self.files {
            match check(file) {
                Ok(summary) if !quiet => print(&format!("{}: ok, {summary}", escaped(file)))?,
                Ok(_) => {}
                Err(failure) => {
                    printer.error(&failure);
                    outcome = ExitStatus::Bad;
                }
            }
        }
        Ok(outcome)
    }
}

/// Checks one file, and says what is in it.
fn check(file: &str) -> Result<String, Failure> {
    if MapFormat::of(Path::new(file)).is_ok() {
        let start = Instant::now();
        let map = map::load(file)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        return Ok(format!(
            "{} × {} tiles, {} regions, {ms:.1} ms",
            map.width(),
            map.height(),
            map.region_count()
        ));
    }
    let loaded = scenario::load(file)?;
    loaded.check(ATTRIBUTE_NAMES, &Behaviours::default())?;
    loaded.check_maps()?;
    let scenario = &loaded.scenario;
    let objects: u64 = scenario
        .cast
        .iter()
        .map(|crowd| u64::from(crowd.count))
        .sum();
    Ok(format!(
        "scenario `{}`, {} s, {}, {}, {}, {}, {}",
        escaped(&scenario.name),
        scenario.duration_s,
        counted(scenario.scenes.len() as u64, "scene"),
        counted(objects, "object"),
        counted(scenario.queues.len() as u64, "queue"),
        counted(scenario.script.len() as u64, "cue"),
        counted(scenario.expect.len() as u64, "expectation"),
    ))
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_scenarios_are_sound() {
        for built_in in scenario::BUILT_IN {
            assert!(
                check(built_in.name).is_ok(),
                "{}: {:?}",
                built_in.name,
                check(built_in.name)
            );
        }
    }
}
