//! Files that a subcommand writes beside those that it reads.

use std::fs::canonicalize;
use std::path::Path;

use super::Failure;

/// Refuses an output that is one of the inputs, by whatever path both are named.
pub(super) fn check_output(output: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let is_same = |input: &&&Path| match (canonicalize(output), canonicalize(input)) {
        (Ok(output), Ok(input)) => output == input,
        _ => false,
    };
    match inputs.iter().find(is_same) {
        Some(input) => Err(Failure::new(format!(
            "the output {} would overwrite the input {}: name another file",
            output.display(),
            input.display()
        ))),
        None => Ok(()),
    }
}
