//! The list of all problems of a scenario, so that they can be reported at once.

use crate::scenario::text::ValidationError;

/// Maximum number of problems reported at once.
const PROBLEMS_MAX: usize = 50;

/// The problems of a scenario, in the order of its fields; the first fifty.
#[derive(Debug, Default)]
pub(in crate::scenario) struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// The first problem that a check of many parts finds.
    pub fn first(check: impl FnOnce(&mut Self)) -> Result<(), ValidationError> {
        let mut problems = Self::default();
        check(&mut problems);
        problems.0.into_iter().next().map_or(Ok(()), Err)
    }

    /// Records the result of a check; returns whether it found nothing.
    pub fn check(&mut self, checked: Result<(), ValidationError>) -> bool {
        let is_right = checked.is_ok();
        checked
            .err()
            .into_iter()
            .for_each(|problem| self.add(problem));
        is_right
    }

    /// Records a problem.
    pub fn add(&mut self, problem: ValidationError) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(problem);
        }
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<ValidationError> {
        self.0
    }
}
