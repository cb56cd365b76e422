//! The text of a scenario: parsing, and locating values in the text for errors.
//!
//! | file | holds |
//! |---|---|
//! | `brackets.rs` | brackets that are not closed where they should be |
//! | `error.rs` | errors, with their place in the text |
//! | `outline.rs` | the tokens of a RON text, and the place of each field and list item |
//! | `parameters.rs` | a value whose type depends on the name in front of it |
//! | `recovery.rs` | parsing after an error |
//! | `units.rs` | the unit of a field, from its name |
//! | `value_path.rs` | the path to a value, such as `crowds[2].kind`, and errors there |
//! | `suggest.rs` | the known name that is closest to an unknown one |
//! | `syntax.rs` | from text to a scenario; errors of the RON parser as plain text |

mod brackets;
mod error;
mod outline;
pub(super) mod parameters;
mod recovery;
mod suggest;
mod syntax;
mod units;
mod value_path;

pub use error::{ScenarioError, SourceError};
pub use suggest::{closest, list_names};
pub use value_path::{PathStep, ValidationError, ValuePath};

pub(super) use outline::{BYTE_ORDER_MARK, Outline, TextSpan, TokenKind};
pub(super) use recovery::{ERRORS_MAX, with_comma, without_entry};
pub(super) use syntax::{parse, parse_action};
pub(super) use units::unit_of;

/// Parses a text as one value of any type.
///
/// # Errors
/// The error as text.
pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    syntax::read_value(text, &Outline::new(text)).map_err(|wrong| wrong.message)
}
