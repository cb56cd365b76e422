#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// Derived code names this crate from outside and from inside alike.
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

/// Gives an enum without fields `ALL` and `name`.
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
