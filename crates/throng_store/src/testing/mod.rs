//! What tests of stores have in common, here and in the crates above.

#[cfg(any(test, feature = "sqlite"))]
mod files;
mod hooked_store;

#[cfg(any(test, feature = "sqlite"))]
pub use files::TestFolder;
pub use hooked_store::{HookedSource, Saving};
