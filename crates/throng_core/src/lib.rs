#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// Derived code uses the name of this crate both outside and inside it.
extern crate self as throng_core;

pub mod clock;
pub mod hash;
pub mod ids;
pub mod kinds;
pub mod memory;
pub mod motion;
pub mod parallel;
pub mod random;
pub mod spatial;

/// Adds `ALL` and `name` to an enum without fields.
///
/// ```
/// #[derive(Clone, Copy, throng_core::Variants)]
/// #[variants(kebab)]
/// enum Wind {
///     NorthEast,
///     #[variants("calm")]
///     None,
/// }
/// assert_eq!(Wind::ALL.map(Wind::name), ["north-east", "calm"]);
/// ```
pub use throng_derive::Variants;
