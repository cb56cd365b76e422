//! Transactions about matches, at their limits.
