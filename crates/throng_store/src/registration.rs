//! Names of servers: two running processes must not have the same name.
//!
//! A process is alive while it was seen within the duration of its leases: it has registered, renewed or saved, by the clock of the store.
//! A process that ends normally frees its name at once. One that crashed counts as dead after the duration of its leases; until then the
//! next process of that name is refused.

use super::error::{StoreError, StoreErrorKind};

/// How long a store keeps the entry of a process that was not seen and has not saved, in milliseconds: 30 days, by the clock of the store.
/// After that the entry is deleted when any process registers, and the next process of its name is number 1 again.
pub const SERVER_ENTRY_TTL_MS: u64 = 30 * 86_400_000;

/// The terms of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationTerms {
    /// The time, for tests; `None`: by the clock of the store.
    pub at_ms: Option<u64>,
    /// Duration of this process's leases, in milliseconds.
    pub lease_ms: u64,
    /// Whether to take the name from a process that is alive.
    pub take_over: bool,
}

impl Default for RegistrationTerms {
    /// For leases of a minute, without taking over.
    fn default() -> Self {
        Self {
            at_ms: None,
            lease_ms: 60_000,
            take_over: false,
        }
    }
}

/// The last process of a name, as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastProcess {
    pub incarnation: u64,
    /// When it was last seen; 0 after it has ended.
    pub seen_ms: u64,
    pub lease_ms: u64,
}

impl LastProcess {
    /// Returns an error if the name belongs to a process that is alive.
    pub fn check_name_free(
        &self,
        (store, name): (&str, &str),
        terms: RegistrationTerms,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        // A time further ahead than the duration of a lease comes from a wrong clock.
        let is_alive = self.seen_ms > 0 && now_ms.abs_diff(self.seen_ms) <= self.lease_ms;
        if terms.take_over || !is_alive {
            return Ok(());
        }
        let free = self.seen_ms.saturating_add(self.lease_ms);
        let cause = format!(
            "server `{name}` (process {}) was last seen at {}; if it does not run any more its name is free at {}; \
            else use another name, or take over its players (`take_over`, `--take-over`)",
            self.incarnation,
            format_utc(self.seen_ms),
            format_utc(free)
        );
        Err(name_in_use(store, cause))
    }

    /// Returns an error if another process has taken over the name.
    pub fn check_current(
        &self,
        (store, name): (&str, &str),
        incarnation: u64,
    ) -> Result<(), StoreError> {
        if self.incarnation <= incarnation {
            return Ok(());
        }
        let cause = format!(
            "process {} has taken over the name `{name}` of this process ({incarnation}); stop one of them or rename it",
            self.incarnation
        );
        Err(name_in_use(store, cause))
    }
}

fn name_in_use(store: &str, cause: String) -> StoreError {
    StoreError {
        store: store.to_owned(),
        kind: StoreErrorKind::NameInUse,
        cause,
    }
}

/// Formats a Unix time: `2026-11-27 08:20:03 UTC`.
fn format_utc(ms: u64) -> String {
    let (days, second) = (ms / 86_400_000, ms / 1_000 % 86_400);
    // Days since 0000-03-01, so that a leap day is the last of its year (Hinnant, *chrono-compatible low-level date algorithms*).
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + 400 * era + later;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_are_shown_as_dates() {
        for (ms, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_000, "2000-02-28 23:59:59 UTC"),
            (951_782_400_999, "2000-02-29 00:00:00 UTC"),
            (951_868_800_000, "2000-03-01 00:00:00 UTC"),
            (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(format_utc(ms), shown);
        }
    }

    #[test]
    fn name_is_free_when_its_process_is_silent_for_a_lease() {
        let last = LastProcess {
            incarnation: 3,
            seen_ms: 100_000,
            lease_ms: 60_000,
        };
        let admit = |now_ms, take_over| {
            let terms = RegistrationTerms {
                take_over,
                ..RegistrationTerms::default()
            };
            let admitted = last.check_name_free(("players.db", "a"), terms, now_ms);
            admitted.map_err(|error| error.to_string())
        };
        let refused = admit(160_000, false).unwrap_err();
        for part in ["`a`", "process 3", "01:40 UTC", "02:40 UTC", "--take-over"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(admit(160_000, true).is_ok());
        assert!(admit(160_001, false).is_ok());
        assert!(admit(39_999, false).is_ok(), "a stamp of a wrong clock");
    }
}
