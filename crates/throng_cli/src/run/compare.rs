//! `throng run --set NAME=A --set NAME=B --compare`: runs a scenario with two settings, and compares them.

use super::Run;
use super::run_output::RunOutput;
use crate::report::compare_runs;
use crate::{
    CliError, CliStatus, Output, interrupted_status, listen_for_interrupt, print, print_failure,
};

/// Parameters and their values.
type Settings = Vec<(String, String)>;

/// Splits a list of values into two settings: of a parameter that is set twice, each setting gets one value; a parameter that is set once
/// has the same value in both.
fn two_settings(values: &[(String, String)]) -> Result<[Settings; 2], CliError> {
    let mut both: [Settings; 2] = Default::default();
    let mut is_twice = false;
    for (nth, (name, value)) in values.iter().enumerate() {
        let before = values[..nth].iter().filter(|(other, _)| other == name);
        match before.count() {
            0 => both
                .iter_mut()
                .for_each(|one| one.push((name.clone(), value.clone()))),
            1 => {
                is_twice = true;
                let second = both[1].iter_mut().find(|(other, _)| other == name);
                second.into_iter().for_each(|of| of.1.clone_from(value));
            }
            _ => {
                return Err(CliError::new(format!(
                    "--compare: expected two values of `{name}`, found more"
                )));
            }
        }
    }
    if is_twice {
        Ok(both)
    } else {
        Err(CliError::new(
            "--compare: expected a parameter with two values, such as --set npcs=1000 --set npcs=2000",
        ))
    }
}

impl Run {
    /// Runs both settings, and prints their figures side by side.
    pub(super) fn compare(&self, output: Output) -> Result<CliStatus, CliError> {
        let settings = two_settings(&self.set.values)?;
        listen_for_interrupt();
        let timing = self.timing_checks();
        let (mut reports, mut names) = (Vec::new(), Vec::new());
        let mut is_ok = true;
        for (nth, set) in settings.iter().enumerate() {
            let loaded = match self.load_measured(set)? {
                Ok(loaded) => loaded,
                Err(status) => return Ok(status),
            };
            let Some(run) = self.measure(loaded, timing, output.quiet)? else {
                return Ok(interrupted_status());
            };
            // A setting is named by the values that differ.
            let other = &settings[1 - nth];
            let own = set.iter().filter(|value| !other.contains(value));
            let own: Vec<String> = own
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            let name = own.join(", ");
            if !run.report.is_ok() {
                is_ok = false;
                let failed = run
                    .report
                    .expectations
                    .iter()
                    .filter(|it| it.verdict.fails());
                for one in failed {
                    print_failure(&format!("{name}: {}: {}", one.text, one.found));
                }
            }
            names.push(name);
            let json = RunOutput::new(&run.report, run.machine).json()?;
            reports.push(json);
        }
        let (Ok(names), Ok(reports)) = (names.try_into(), reports.try_into()) else {
            return Ok(CliStatus::Failed);
        };
        let table = compare_runs(names, reports)?;
        if !output.quiet {
            print(&table)?;
        }
        Ok(match is_ok {
            true => CliStatus::Done,
            false => CliStatus::Failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_value_belongs_to_the_second_setting() {
        let pairs = |text: &str| -> Settings {
            let pair = |of: &str| {
                of.split_once('=')
                    .map(|(a, b)| (a.to_owned(), b.to_owned()))
            };
            text.split(' ').filter_map(pair).collect()
        };
        let both = two_settings(&pairs("wall=true n=1 m=5 n=2")).unwrap();
        assert_eq!(
            both,
            [pairs("wall=true n=1 m=5"), pairs("wall=true n=2 m=5")]
        );
        for bad in ["", "n=1", "n=1 m=2", "n=1 n=2 n=3"] {
            assert!(two_settings(&pairs(bad)).is_err(), "{bad}");
        }
    }
}
