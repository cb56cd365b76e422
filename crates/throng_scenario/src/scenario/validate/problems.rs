//! Everything that is wrong with a scenario, gathered so that it can be told at once.

use crate::scenario::text::ValidationError;

/// Problems that are told at once; whoever has so many does not read further ones.
const PROBLEMS_MAX: usize = 50;

/// What is wrong with a scenario, in the order of its fields; the first fifty.
#[derive(Debug, Default)]
pub(in crate::scenario) struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// The first problem that a check of many parts finds.
    pub fn first(check: impl FnOnce(&mut Self)) -> Result<(), ValidationError> {
        let mut problems = Self::default();
        check(&mut problems);
        problems.0.into_iter().next().map_or(Ok(()), Err)
    }

    /// Takes note of what a check found; whether it found nothing.
    pub fn check(&mut self, checked: Result<(), ValidationError>) -> bool {
        let is_right = checked.is_ok();
        checked
            .err()
            .into_iter()
            .for_each(|problem| self.add(problem));
        is_right
    }

    /// Takes note of a problem.
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
