//! The scenarios that come with the program, so that it plays without any file.

/// A scenario that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The name by which it can be asked for.
    pub name: &'static str,
    /// The scenario's file in RON, as it is compiled in.
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

/// A scenario to begin with, whose comments say what can be written.
pub const TEMPLATE: &str = include_str!("../../scenarios/template.ron");

/// The built-in scenario of a name.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|built_in| built_in.name == name)
}
