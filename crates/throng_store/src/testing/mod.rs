//! Helpers for tests of stores, in this crate and others.

#[cfg(any(test, feature = "sqlite"))]
mod files;
mod hooked_store;
#[cfg(feature = "postgres")]
mod postgres;

#[cfg(any(test, feature = "sqlite"))]
pub use files::TestFolder;
pub use hooked_store::{HookedSource, SaveCall};
#[cfg(feature = "postgres")]
pub use postgres::{Operator, TestSchema, postgres_url};

use crate::registration::RegistrationTerms;
use crate::store::ClaimTerms;

/// A process that takes its name from any other process.
pub const TAKE_OVER: RegistrationTerms = RegistrationTerms {
    at_ms: Some(1_000),
    lease_ms: 60_000,
    take_over: true,
};

/// A lease from one second to 61 seconds after 1970.
pub const FIRST_MINUTE: ClaimTerms = ClaimTerms {
    at_ms: Some(1_000),
    lease_ms: 60_000,
    grace_ms: 0,
};
