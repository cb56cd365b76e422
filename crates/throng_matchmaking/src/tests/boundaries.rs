//! Everything that depends on waiting time happens at its exact tick: nothing one tick early, nothing one tick late.

use super::*;
use crate::RoomModeSettings;
use crate::ticket::TicketPreferences;

/// What keeps two parties apart.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
    Skill,
    Level,
    Gap,
    AvoidList,
}

const OBSTACLES: [Obstacle; 4] = [
    Obstacle::Skill,
    Obstacle::Level,
    Obstacle::Gap,
    Obstacle::AvoidList,
];

/// A limit that widens, until all limits are off.
#[derive(Clone, Copy, Debug)]
struct WideningLimit {
    start: u32,
    per_s: u32,
    off_s: f64,
}

/// The kinds of modes for two parties of one player.
#[derive(Clone, Copy, Debug)]
enum ModeKind {
    Groups(Packing),
    Rooms(bool),
}

const KINDS: [ModeKind; 4] = [
    ModeKind::Groups(Packing::Windows),
    ModeKind::Groups(Packing::Arrival),
    ModeKind::Rooms(false),
    ModeKind::Rooms(true),
];

/// A mode in which only one obstacle is limited.
fn mode_with(kind: ModeKind, obstacle: Obstacle, limit: WideningLimit) -> MatchModeSettings {
    let limited = |of: fn(Obstacle) -> bool| {
        if of(obstacle) {
            (limit.start, limit.per_s)
        } else {
            (UNLIMITED, 0)
        }
    };
    let skill = limited(|obstacle| matches!(obstacle, Obstacle::Skill));
    let level = limited(|obstacle| matches!(obstacle, Obstacle::Level));
    let gap = limited(|obstacle| matches!(obstacle, Obstacle::Gap));
    match kind {
        ModeKind::Groups(packing) => MatchModeSettings::Groups(GroupModeSettings {
            packing,
            skill_window_start: skill.0,
            skill_window_widen_per_s: skill.1,
            level_band_start: level.0,
            level_band_widen_per_s: level.1,
            power_gap_start: gap.0,
            power_gap_widen_per_s: gap.1,
            limits_off_after_s: limit.off_s,
            priority_after_s: 1e6,
            ..mode(1)
        }),
        ModeKind::Rooms(equal_size) => MatchModeSettings::Rooms(RoomModeSettings {
            side_size: 1,
            equal_size,
            strength_start: skill.0,
            strength_widen_per_s: skill.1,
            level_band_start: level.0,
            level_band_widen_per_s: level.1,
            strength_gap_start: gap.0,
            strength_gap_widen_per_s: gap.1,
            limits_off_after_s: limit.off_s,
            priority_after_s: 1e6,
            rank_weight_percent: 0,
            expire_after_s: 0.0,
            ..RoomModeSettings::default()
        }),
    }
}

/// A party of one that differs from another by this much in what the obstacle limits.
fn one_of_two(party: u32, obstacle: Obstacle, differs_by: u32, since_tick: u64) -> Ticket {
    let mut ticket = ticket(party, 1, 0, since_tick);
    match obstacle {
        Obstacle::Skill => {
            ticket.skill = differs_by as i32;
            ticket.leader_strength = differs_by;
        }
        Obstacle::Level => ticket.level = 1 + differs_by as u16,
        Obstacle::Gap => {
            ticket.power = 10 + differs_by;
            ticket.leader_strength = differs_by;
        }
        Obstacle::AvoidList => {
            // The one who avoids is the second party; the first is the oldest.
            ticket.preferences = (differs_by > 0).then(|| {
                Box::new(TicketPreferences {
                    avoid: [10u64].into_iter().map(Into::into).collect(),
                    ..TicketPreferences::default()
                })
            });
        }
    }
    ticket
}

/// The tick of the match of two parties, the first of which waits from tick 0 on, by the definition of the limits.
fn expected_tick(
    kind: ModeKind,
    obstacle: Obstacle,
    limit: WideningLimit,
    differs_by: u32,
    since_tick: u64,
    hz: u32,
) -> u64 {
    let is_ignored = matches!(
        (kind, obstacle),
        (ModeKind::Groups(Packing::Arrival), Obstacle::Skill)
    );
    let may_meet = |waited: u64| {
        let widened = u64::from(limit.per_s) * waited / u64::from(hz);
        let is_within = u64::from(limit.start) + widened >= u64::from(differs_by);
        let is_within = is_within && !matches!(obstacle, Obstacle::AvoidList);
        is_ignored || is_within || waited as f64 / f64::from(hz) >= limit.off_s
    };
    (since_tick..).find(|&waited| may_meet(waited)).unwrap()
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn limits_open_at_the_exact_tick(
        hz in prop::sample::select(vec![7_u32, 20, 30]),
        (start, per_s, differs_by) in (0..40_u32, 0..60_u32, 1..120_u32),
        off_ticks in 1..150_u32,
        since_tick in 0..12_u64,
    ) {
        // In the middle between two ticks, so that rounding of the product does not matter.
        let limit = WideningLimit { start, per_s, off_s: (f64::from(off_ticks) - 0.5) / f64::from(hz) };
        for kind in KINDS {
            for obstacle in OBSTACLES {
                let modes = [mode_with(kind, obstacle, limit)];
                let mut matcher = MatchmakingCore::new(&modes, f64::from(hz)).expect("valid settings");
                matcher.enqueue(one_of_two(1, obstacle, 0, 0)).unwrap();
                matcher.enqueue(one_of_two(2, obstacle, differs_by, since_tick)).unwrap();
                let expected = expected_tick(kind, obstacle, limit, differs_by, since_tick, hz);
                let matched_at = (since_tick..=expected).find(|&now| !run(&mut matcher, now).0.is_empty());
                prop_assert_eq!(matched_at, Some(expected), "{:?} {:?}", kind, obstacle);
            }
        }
    }
}

#[test]
fn priority_party_ignores_avoid_lists_from_its_exact_tick() {
    let mut matcher = matcher(GroupModeSettings {
        priority_after_s: 75.0,
        ..mode(2)
    });
    matcher.enqueue(ticket(1, 1, 0, 0)).unwrap();
    for party in 2..=4 {
        // The second avoids the third; neither has waited long.
        let preferences = (party == 2).then(|| {
            Box::new(TicketPreferences {
                avoid: [30_u64].into_iter().map(Into::into).collect(),
                ..TicketPreferences::default()
            })
        });
        let ticket = ticket(party, 1, 0, 1_490);
        matcher
            .enqueue(Ticket {
                preferences,
                ..ticket
            })
            .unwrap();
    }
    let matched_at = (1_490..1_520).find(|&now_tick| !run(&mut matcher, now_tick).0.is_empty());
    assert_eq!(matched_at, Some(1_500));
}

#[test]
fn priority_party_leaves_its_room_at_its_exact_tick() {
    let settings = RoomModeSettings {
        side_size: 2,
        strength_start: UNLIMITED,
        limits_off_after_s: 0.0,
        priority_after_s: 3.0,
        expire_after_s: 0.0,
        ..RoomModeSettings::default()
    };
    let modes = [MatchModeSettings::Rooms(settings)];
    let mut matcher = MatchmakingCore::new(&modes, 20.0).expect("valid settings");
    // Three in a room, and a party of two that does not fit into it.
    for party in 1..=3 {
        matcher.enqueue(ticket(party, 1, 0, 0)).unwrap();
    }
    assert!(run(&mut matcher, 0).0.is_empty());
    matcher.enqueue(ticket(4, 2, 0, 1)).unwrap();
    let matched_at = (1..=70).find(|&now_tick| !run(&mut matcher, now_tick).0.is_empty());
    assert_eq!(matched_at, Some(60));
}

#[test]
fn priority_party_keeps_its_partners_from_its_exact_tick() {
    for (now_tick, joined) in [(1_199, 1), (1_200, 0)] {
        let mut matcher = matcher(mode(5));
        matcher.enqueue(ticket(1, 5, 9_000, 0)).unwrap();
        matcher.enqueue(ticket(2, 1, 0, 1_000)).unwrap();
        let wanted = Backfill {
            missing: 1,
            level: 1,
            ..Backfill::default()
        };
        let found = matcher.backfill(ModeId(0), &wanted, now_tick);
        assert_eq!(found.len(), joined, "{now_tick}");
    }
}
