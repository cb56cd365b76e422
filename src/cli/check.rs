//! `throng check`: validates scenarios and maps without running anything.

use std::path::Path;
use std::time::Instant;

use super::escape::escaped;
use super::set::Set;
use super::{ExitStatus, Failure, Printer, print};
use crate::crowd::ATTRIBUTE_NAMES;
use crate::map::{self, MapFormat};
use crate::scenario::{self, Behaviours, Crowd, Parameter};

/// Arguments of `throng check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  throng check town siege\n  throng check my.ron maps/keep.map")]
pub(super) struct Check {
    /// Scenarios (.ron files, built-in names, - for standard input) and maps
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    set: Set,
}

impl Check {
    /// Checks all files, a line for each that is good, an error for each that is not.
    pub(super) fn run(&self, printer: &Printer, quiet: bool) -> Result<ExitStatus, Failure> {
        let mut outcome = ExitStatus::Done;
        for file in &self.files {
            match check(file, &self.set) {
                Ok(found) => {
                    for warning in &found.warnings {
                        printer.warning(&format!("{file}: {warning}"));
                    }
                    if !quiet {
                        print(&format!("{}: ok, {}", escaped(file), found.summary))?;
                        let mut parameters = found.parameters.iter();
                        parameters.try_for_each(|line| print(&format!("  {}", escaped(line))))?;
                    }
                }
                Err(failure) => {
                    printer.error(&failure);
                    outcome = ExitStatus::Bad;
                }
            }
        }
        Ok(outcome)
    }
}

/// What a good file holds.
#[derive(Debug)]
struct Checked {
    summary: String,
    /// What is allowed and probably not meant.
    warnings: Vec<String>,
    /// A line each.
    parameters: Vec<String>,
}

/// Checks one file, and says what is in it.
fn check(file: &str, set: &Set) -> Result<Checked, Failure> {
    if MapFormat::of(Path::new(file)).is_ok() {
        let start = Instant::now();
        let map = map::load(file)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let summary = format!(
            "{} × {} tiles, {} regions, {ms:.1} ms",
            map.width(),
            map.height(),
            map.region_count()
        );
        let is_solid = map.free_count() == 0;
        let warnings = is_solid.then(|| "the map has no free tile".to_owned());
        return Ok(Checked {
            summary,
            warnings: warnings.into_iter().collect(),
            parameters: Vec::new(),
        });
    }
    let loaded = scenario::load_with(file, &set.values)?;
    loaded.check(ATTRIBUTE_NAMES, &Behaviours::default())?;
    let warnings = loaded.check_maps()?;
    let scenario = &loaded.scenario;
    // A crowd is in every copy of its scene.
    let copies = |crowd: &Crowd| {
        let home = crowd.scene.as_ref();
        let mut scenes = scenario.scenes.iter();
        let scene = scenes.find(|scene| home.is_none_or(|name| *name == scene.name));
        scene.map_or(1, |scene| u64::from(scene.copies))
    };
    let objects: u64 = scenario
        .cast
        .iter()
        .map(|crowd| u64::from(crowd.count) * copies(crowd))
        .sum();
    let scenes = scenario.scenes.iter().map(|scene| u64::from(scene.copies));
    let summary = format!(
        "scenario `{}`, {} s, {}, {}, {}, {}, {}",
        escaped(&scenario.name),
        scenario.duration_s,
        counted(scenes.sum(), "scene"),
        counted(objects, "object"),
        counted(scenario.queues.len() as u64, "queue"),
        counted(scenario.script.len() as u64, "cue"),
        counted(scenario.expect.len() as u64, "expectation"),
    );
    let parameters = loaded.sources.parameters().iter();
    let parameters = parameters.map(|Parameter { name, value, .. }| format!("{name} = {value}"));
    Ok(Checked {
        summary,
        warnings,
        parameters: parameters.collect(),
    })
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
                check(built_in.name, &Set::default()).is_ok(),
                "{}: {:?}",
                built_in.name,
                check(built_in.name, &Set::default())
            );
        }
    }
}
