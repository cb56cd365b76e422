//! Why a party waits for a match, as text.

use throng::matchmaking::WaitReason;

/// A sentence that continues "it waits: ". A tick lasts `tick_s` seconds.
#[must_use]
pub fn describe_wait(reason: WaitReason, tick_s: f64) -> String {
    let opens = |ticks: u64| match ticks {
        0 => "all limits lifted".to_owned(),
        _ => format!("limits lifted in {:.0} s", ticks as f64 * tick_s),
    };
    match reason {
        WaitReason::TooFewPlayers { waiting, needed } => {
            format!("{waiting} players queued, a match needs {needed}")
        }
        WaitReason::SizesDoNotFit => {
            "waiting party sizes cannot form two full groups with this party".into()
        }
        WaitReason::OutsideRegions => "too few parties in its regions".into(),
        WaitReason::OutsideLevels {
            band,
            opens_in_ticks,
        } => format!(
            "too few parties within {band} levels; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::OutsideWindow {
            window,
            opens_in_ticks,
        } => format!(
            "too few parties within {window} points of its skill; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::PreferencesConflict { opens_in_ticks } => format!(
            "candidates excluded by avoid lists, recent matches or missing roles; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::PowerGap {
            gap,
            limit,
            opens_in_ticks,
        } => format!(
            "possible match has a power gap of {gap}, limit {limit}; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::InRoom { players, missing } => {
            format!("its room has {players} players, {missing} missing")
        }
        WaitReason::Proposed { missing, .. } => {
            format!("match proposed, {missing} players have not accepted yet")
        }
        WaitReason::NextHeartbeat => "a match is possible at the next heartbeat".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_limits_are_shown_in_seconds() {
        let outside = |opens_in_ticks| WaitReason::OutsideWindow {
            window: 150,
            opens_in_ticks,
        };
        let text = describe_wait(outside(240), 0.05);
        assert_eq!(
            text,
            "too few parties within 150 points of its skill; limits lifted in 12 s"
        );
        let text = describe_wait(outside(0), 0.05);
        assert!(text.ends_with("all limits lifted"), "{text}");
    }
}
