//! Validation of session settings.

use super::bounds::check_range;
use super::limits::DURATION_S_MAX;
use crate::scenario::text::{ValidationError, ValuePath};
use throng::session::SessionSettings;

/// Checks that times are within their range, and that no more slots are reserved than there are players at most.
pub(super) fn check_sessions(
    place: &ValuePath,
    settings: &SessionSettings,
) -> Result<(), ValidationError> {
    for (field, seconds) in [
        ("login_grace_s", settings.login_grace_s),
        ("login_timeout_s", settings.login_timeout_s),
        (
            "authentication_timeout_s",
            settings.authentication_timeout_s,
        ),
        ("loading_timeout_s", settings.loading_timeout_s),
        ("reconnect_grace_s", settings.reconnect_grace_s),
        ("idle_timeout_s", settings.idle_timeout_s),
        (
            "queue_position_interval_s",
            settings.queue_position_interval_s,
        ),
    ] {
        check_range(
            &place.field(field),
            f64::from(seconds),
            0.0..=DURATION_S_MAX,
        )?;
    }
    let reserved: u64 = settings
        .reserved_slots
        .iter()
        .map(|&reserved| u64::from(reserved))
        .sum();
    if reserved > u64::from(settings.players_max) {
        let message = format!(
            "expected at most {} reserved slots (`players_max`), found {reserved}",
            settings.players_max
        );
        return Err(ValidationError::new(place.field("reserved_slots"), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Behaviours, parse, validate};

    fn first_error(session: &str) -> String {
        let text = format!("Scenario(name: \"x\", settings: (session: ({session})))");
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        validate(&scenario, &[], &Behaviours::default())
            .map_or_else(|problem| problem.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn invalid_session_times_and_slots_are_refused() {
        assert_eq!(
            first_error("reconnect_grace_s: 3, players_max: 9, reserved_slots: (0, 4, 0, 5)"),
            "ok"
        );
        for (session, expected) in [
            (
                "reconnect_grace_s: -1",
                "settings.session.reconnect_grace_s: expected settings.session.reconnect_grace_s from 0 to 604800 seconds, found -1",
            ),
            (
                "idle_timeout_s: NaN",
                "settings.session.idle_timeout_s: expected settings.session.idle_timeout_s from 0 to 604800 seconds, found NaN",
            ),
            (
                "players_max: 8, reserved_slots: (0, 4, 0, 5)",
                "settings.session.reserved_slots: expected at most 8 reserved slots (`players_max`), found 9",
            ),
        ] {
            assert_eq!(first_error(session), expected);
        }
    }
}
