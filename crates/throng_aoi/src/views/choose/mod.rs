//! Selects the targets that enter the lists of a viewer, under its caps.
//!
//! | file | holds |
//! |---|---|
//! | `priority_entry` | targets that go before unrelated ones enter |
//! | `related_entry` | of these, related targets, where a class has more of them than free slots |
//! | `eviction` | which member leaves a full list for them |
//! | `fill` | unrelated targets take free slots |
//! | `rerank`, `band_words` | distance bands follow moving objects |
//! | `refill_queue` | viewers that wait for a scan |

pub mod band_words;
pub mod eviction;
pub mod fill;
pub mod priority_entry;
pub mod refill_queue;
pub mod related_entry;
pub mod rerank;
