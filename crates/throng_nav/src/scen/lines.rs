//! The lines of a file and their fields, with the location of errors.

use glam::UVec2;

use super::error::ScenProblem;
use crate::map::{SIDE_MAX, TILES_MAX};

/// A [`ScenError`] without the file's name.
#[derive(Debug)]
pub(super) struct LineError {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) problem: ScenProblem,
}

/// The non-empty lines of a text, with their numbers.
pub(super) struct ScenLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    count: u32,
}

impl<'a> ScenLines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().enumerate(),
            count: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<ScenLine<'a>> {
        let (index, text) = self.lines.find(|(index, text)| {
            self.count = *index as u32 + 1;
            !text.trim().is_empty()
        })?;
        Some(ScenLine {
            number: index as u32 + 1,
            text,
        })
    }

    /// An error for a text that ends too early.
    pub(super) fn unexpected_end(&self, expected: &'static str) -> LineError {
        LineError {
            line: self.count + 1,
            column: 1,
            problem: ScenProblem::Line {
                expected,
                found: "the end of the file".into(),
            },
        }
    }
}

/// A line and its number, from 1.
#[derive(Clone, Copy)]
pub(super) struct ScenLine<'a> {
    pub(super) number: u32,
    pub(super) text: &'a str,
}

impl<'a> ScenLine<'a> {
    pub(super) fn error(&self, column: u32, problem: ScenProblem) -> LineError {
        LineError {
            line: self.number,
            column,
            problem,
        }
    }

    /// Fails if the size in this line is not possible for a map.
    pub(super) fn check_size(&self, size: UVec2) -> Result<(), LineError> {
        let is_side = |side| (1..=SIDE_MAX).contains(&side);
        if is_side(size.x) && is_side(size.y) && u64::from(size.x) * u64::from(size.y) <= TILES_MAX
        {
            return Ok(());
        }
        Err(self.error(1, ScenProblem::Size { found: size }))
    }

    pub(super) fn unexpected_line(&self, expected: &'static str) -> LineError {
        let found = format!("`{}`", excerpt(self.text.trim()));
        self.error(1, ScenProblem::Line { expected, found })
    }

    /// Splits the line into the fields of `names`. Fields are separated by tabs if there are any between them, so that a name
    /// may contain spaces; otherwise by one or more spaces. Separators after the last field do not count.
    pub(super) fn fields<const N: usize>(
        self,
        names: &'static [&'static str; N],
    ) -> Result<Fields<'a, N>, LineError> {
        let line = self.text.trim_end();
        let separator = if line.contains('\t') { '\t' } else { ' ' };
        let mut fields = Fields {
            line: self,
            names,
            texts: [""; N],
            columns: [1; N],
        };
        let (mut count, mut column) = (0, 1);
        for text in line.split(separator) {
            if separator == '\t' || !text.trim().is_empty() {
                if let (Some(kept), Some(at)) =
                    (fields.texts.get_mut(count), fields.columns.get_mut(count))
                {
                    (*kept, *at) = (text.trim(), column);
                }
                count += 1;
            }
            column += text.chars().count() as u32 + 1;
        }
        if count != N {
            return Err(self.error(
                1,
                ScenProblem::FieldCount {
                    expected: N,
                    names: names.join(", "),
                    found: count,
                },
            ));
        }
        Ok(fields)
    }
}

/// A line split into its fields.
pub(super) struct Fields<'a, const N: usize> {
    line: ScenLine<'a>,
    names: &'static [&'static str; N],
    texts: [&'a str; N],
    columns: [u32; N],
}

impl<const N: usize> Fields<'_, N> {
    pub(super) fn field_error(&self, index: usize, expected: impl Into<String>) -> LineError {
        let problem = ScenProblem::Number {
            field: self.names[index],
            expected: expected.into(),
            found: excerpt(self.texts[index]),
        };
        self.line.error(self.columns[index], problem)
    }

    pub(super) fn integer(&self, index: usize) -> Result<u32, LineError> {
        self.texts[index]
            .parse()
            .map_err(|_| self.field_error(index, "a whole number from 0"))
    }

    /// A coordinate or a side of a map.
    pub(super) fn tiles(&self, index: usize) -> Result<u32, LineError> {
        // At most the largest side, so that no sum of a coordinate and a size overflows.
        self.texts[index]
            .parse::<u32>()
            .ok()
            .filter(|tiles| *tiles <= SIDE_MAX)
            .ok_or_else(|| self.field_error(index, "a whole number from 0 to 65536"))
    }

    /// The tile whose x is the field at `index`, and y the next.
    pub(super) fn tile(&self, index: usize) -> Result<UVec2, LineError> {
        Ok(UVec2::new(self.tiles(index)?, self.tiles(index + 1)?))
    }

    pub(super) fn number(&self, index: usize) -> Option<f64> {
        self.texts[index]
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    }
}

/// The beginning of a text, so that an error stays readable if a file is of another kind.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
