//! Why a party waits for a match, in words.

use throng::matchmaking::WaitReason;

/// A sentence for a person, behind "it waits: ". A tick lasts `tick_s` seconds.
#[must_use]
pub fn wait_sentence(reason: WaitReason, tick_s: f64) -> String {
    let opens = |ticks: u64| match ticks {
        0 => "it has no limits any more".to_owned(),
        _ => format!("its limits are gone in {:.0} s", ticks as f64 * tick_s),
    };
    match reason {
        WaitReason::TooFewPlayers { waiting, needed } => {
            format!("{waiting} players wait, a match takes {needed}")
        }
        WaitReason::SizesDoNotFit => {
            "the sizes of the parties that wait make no two full groups with it".into()
        }
        WaitReason::OutsideRegions => "too few parties share a region with it".into(),
        WaitReason::OutsideLevels {
            band,
            opens_in_ticks,
        } => format!(
            "too few are within {band} levels of it; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::OutsideWindow {
            window,
            opens_in_ticks,
        } => format!(
            "too few are within {window} points of its skill; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::WishesDisagree { opens_in_ticks } => format!(
            "those it could meet avoid each other, have just met, or lack a role; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::PowerGap {
            gap,
            limit,
            opens_in_ticks,
        } => format!(
            "the match it could have is uneven by {gap} power, {limit} may be; {}",
            opens(opens_in_ticks)
        ),
        WaitReason::InRoom { players, missing } => {
            format!("its room has {players} players and lacks {missing}")
        }
        WaitReason::Proposed { missing, .. } => {
            format!("its match is found, {missing} players have not accepted yet")
        }
        WaitReason::NextHeartbeat => "it has a match, which the next heartbeat may make".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_open_are_told_in_seconds() {
        let outside = |opens_in_ticks| WaitReason::OutsideWindow {
            window: 150,
            opens_in_ticks,
        };
        let told = wait_sentence(outside(240), 0.05);
        assert_eq!(
            told,
            "too few are within 150 points of its skill; its limits are gone in 12 s"
        );
        let told = wait_sentence(outside(0), 0.05);
        assert!(told.ends_with("it has no limits any more"), "{told}");
    }
}
