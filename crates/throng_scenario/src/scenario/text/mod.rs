//! The text of a scenario: from bytes to values, and from a wrong value back to the words that say it.
//!
//! | file | holds |
//! |---|---|
//! | `error.rs` | what is wrong with a scenario, and where in its text |
//! | `outline.rs` | the words of a RON text, and where each field and list item stands |
//! | `parameters.rs` | a value whose type only the name in front of it tells |
//! | `value_path.rs` | the way to a value, such as `cast[2].kind`, and what is wrong there |
//! | `suggest.rs` | the known name that is closest to an unknown one |
//! | `syntax.rs` | from text to a scenario; what the RON reader says of broken text, in words |

mod error;
mod outline;
pub(super) mod parameters;
mod suggest;
mod syntax;
mod value_path;

pub use error::{ScenarioError, SourceError};
pub use suggest::{closest, list_names};
pub use value_path::{PathStep, ValidationError, ValuePath};

pub(super) use outline::{BYTE_ORDER_MARK, Outline, TextSpan, TokenKind};
pub(super) use syntax::{parse, parse_action};
