//! The path to a part of a scenario: fields and list items, independent of any text.

use std::fmt;
use std::ops::Range;

/// One step from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// Into a field, by its name.
    Field(&'static str),
    /// Into an item of a list, counted from 0.
    Item(usize),
}

/// The path from the scenario to one of its values, such as `crowds[2].kind`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValuePath(Vec<PathStep>);

impl ValuePath {
    /// The scenario itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path of a field of this value.
    #[must_use]
    pub fn field(&self, name: &'static str) -> Self {
        self.with_step(PathStep::Field(name))
    }

    /// The path of an item of this list.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.with_step(PathStep::Item(index))
    }

    fn with_step(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The last field of the path.
    #[must_use]
    pub(in crate::scenario) fn last_field(&self) -> Option<&'static str> {
        self.0.iter().rev().find_map(|step| match step {
            PathStep::Field(name) => Some(*name),
            PathStep::Item(_) => None,
        })
    }

    /// The steps from the scenario down.
    #[must_use]
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scenario");
        }
        for (index, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Field(name) if index == 0 => f.write_str(name)?,
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

/// An error in a parsed scenario, before its text is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ValidationError {
    /// The value that is wrong.
    pub path: ValuePath,
    /// What was found and what was expected.
    pub message: String,
    /// Further help, such as the known names.
    pub help: Option<String>,
    /// The wrong bytes of the value's own text, if known; all of them otherwise.
    pub span: Option<Range<usize>>,
}

impl ValidationError {
    /// Creates an error without further help.
    pub fn new(place: ValuePath, message: impl Into<String>) -> Self {
        Self {
            path: place,
            message: message.into(),
            help: None,
            span: None,
        }
    }

    /// The same error, with further help.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_path_is_displayed_with_dots_and_indices() {
        assert_eq!(
            ValuePath::root()
                .field("crowds")
                .item(2)
                .field("kind")
                .to_string(),
            "crowds[2].kind"
        );
        assert_eq!(ValuePath::root().to_string(), "scenario");
    }
}
