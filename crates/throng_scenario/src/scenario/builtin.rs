//! The built-in scenarios, so that the program runs without any file.

/// A scenario that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The name by which it is selected.
    pub name: &'static str,
    /// The scenario's file in RON, embedded in the binary.
    pub text: &'static str,
}

macro_rules! built_in {
    ($name:literal) => {
        BuiltIn {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".ron")),
        }
    };
}

/// All built-in scenarios; the first is the default.
pub const BUILT_IN: [BuiltIn; 9] = [
    built_in!("town"),
    built_in!("siege"),
    built_in!("boss"),
    built_in!("arena_night"),
    built_in!("churn"),
    built_in!("auction"),
    built_in!("royale"),
    built_in!("raid"),
    built_in!("overload"),
];

/// The template for new scenarios, with comments that explain the format.
pub const TEMPLATE: &str = include_str!("../../scenarios/template.ron");

/// The built-in scenario with a name.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|built_in| built_in.name == name)
}
