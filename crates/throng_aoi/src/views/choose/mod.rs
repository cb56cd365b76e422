//! Who is let into the lists of a viewer, under its caps.
//!
//! | file | holds |
//! |---|---|
//! | `meet` | those who go before strangers are let in |
//! | `tied` | of them those with a tie, where a class has more of them than places |
//! | `victims` | who has to leave a full list for them |
//! | `fill` | strangers take the places that are free |
//! | `rerank`, `band_words` | bands of distance follow those who walk |
//! | `refill_queue` | who waits for a look |

pub mod band_words;
pub mod eviction;
pub mod fill;
pub mod priority_entry;
pub mod refill_queue;
pub mod related_entry;
pub mod rerank;
