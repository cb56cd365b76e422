//! The list of all errors of a scenario, so that they can be reported at once.

use crate::scenario::text::ValidationError;

/// Maximum number of errors reported at once.
const PROBLEMS_MAX: usize = 50;

/// The errors of a scenario, in the order of its fields; the first fifty.
#[derive(Debug, Default)]
pub(in crate::scenario) struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// Runs a check of many parts, and returns its first error.
    pub fn first(check: impl FnOnce(&mut Self)) -> Result<(), ValidationError> {
        let mut problems = Self::default();
        check(&mut problems);
        problems.0.into_iter().next().map_or(Ok(()), Err)
    }

    /// Records the result of a check; returns whether it succeeded.
    pub fn check(&mut self, checked: Result<(), ValidationError>) -> bool {
        let is_ok = checked.is_ok();
        checked
            .err()
            .into_iter()
            .for_each(|problem| self.add(problem));
        is_ok
    }

    /// Records an error.
    pub fn add(&mut self, problem: ValidationError) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(problem);
        }
    }

    /// All recorded errors.
    pub fn into_vec(self) -> Vec<ValidationError> {
        self.0
    }
}
