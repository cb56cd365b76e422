//! The whole pipeline against brute force and against its promises.

mod boundaries;
mod bounds;
mod day;
mod matcher;
mod proposals;
mod rooms;
mod terms;

use proptest::prelude::*;
use throng_core::ids::{PartyId, PlayerId};

use super::*;
use crate::mode::{GROUP_SIZE_MAX, GroupModeTickSettings, UNLIMITED};
use crate::queue::compositions::{CompositionTable, Counts};

// In these tests a bare number is a real party or player.
impl From<u32> for TicketParty {
    fn from(number: u32) -> Self {
        Self::Real(PartyId(number))
    }
}

impl From<u64> for TicketPlayer {
    fn from(number: u64) -> Self {
        Self::Real(PlayerId(number))
    }
}

impl PartialEq<u32> for TicketParty {
    fn eq(&self, number: &u32) -> bool {
        *self == Self::from(*number)
    }
}

impl PartialEq<u64> for TicketPlayer {
    fn eq(&self, number: &u64) -> bool {
        *self == Self::from(*number)
    }
}

/// A mode named "arena" without expiry and without a gap limit, with a narrow window.
pub(super) fn mode(group_size: u8) -> GroupModeSettings {
    GroupModeSettings {
        group_size,
        expire_after_s: 0.0,
        priority_after_s: 0.0,
        skill_window_start: 20,
        power_gap_start: UNLIMITED,
        ..GroupModeSettings::default()
    }
}

/// A party whose players are 10 × its id and the following; each player's power is 10.
pub(super) fn ticket(party: u32, size: u8, skill: i32, since_tick: u64) -> Ticket {
    Ticket {
        party: party.into(),
        size,
        power: 10 * u32::from(size),
        skill,
        level: 1,
        leader_strength: 0,
        mode: ModeId(0),
        since_tick,
        members: (0..u64::from(size))
            .map(|at| (10 * u64::from(party) + at).into())
            .collect(),
        preferences: None,
    }
}

fn matcher(settings: GroupModeSettings) -> MatchmakingCore {
    MatchmakingCore::new(&[MatchModeSettings::Groups(settings)], 20.0).expect("valid settings")
}

fn run(matcher: &mut MatchmakingCore, now_tick: u64) -> (Vec<Match>, Vec<Ticket>) {
    let mut beat = HeartbeatOutcome::default();
    matcher.run_heartbeat(now_tick, &mut beat);
    (beat.matches, beat.expired)
}

fn rules_of(matcher: &MatchmakingCore) -> GroupModeTickSettings {
    *matcher.modes()[0].tick_settings()
}

fn waiting(matcher: &MatchmakingCore) -> Vec<Ticket> {
    matcher.modes()[0]
        .queue()
        .iter()
        .map(|(_, ticket)| ticket.clone())
        .collect()
}

fn counts<'a>(tickets: impl IntoIterator<Item = &'a Ticket>) -> Counts {
    let mut counts = [0; 5];
    tickets
        .into_iter()
        .for_each(|ticket| counts[usize::from(ticket.size) - 1] += 1);
    counts
}

/// Whether some subset of the parties, sorted by age, is an allowed match at `now_tick`, gaps aside.
fn has_match(tickets: &[Ticket], group_size: u8, window_at: impl Fn(&Ticket) -> u32) -> bool {
    let mut table = CompositionTable::new(group_size);
    (1u32..1 << tickets.len()).any(|mask| {
        let members = || {
            (0..tickets.len())
                .filter(|at| mask >> at & 1 == 1)
                .map(|at| &tickets[at])
        };
        let spread = members()
            .map(|t| t.skill)
            .max()
            .unwrap()
            .abs_diff(members().map(|t| t.skill).min().unwrap());
        spread <= window_at(members().next().unwrap()) && table.fits(&counts(members()), &[0; 5])
    })
}

#[test]
fn full_parties_match_with_the_longer_waiting_first() {
    let mut matcher = matcher(mode(5));
    matcher.enqueue(ticket(2, 5, 3, 4)).unwrap();
    matcher.enqueue(ticket(1, 5, 0, 6)).unwrap();
    let (matches, _) = run(&mut matcher, 10);
    assert_eq!(matches.len(), 1);
    assert_eq!(
        matches[0].groups,
        [vec![ticket(2, 5, 3, 4)], vec![ticket(1, 5, 0, 6)]]
    );
    assert_eq!(matches[0].power, [50, 50]);
    assert_eq!(
        (
            matches[0].quality.spread,
            matches[0].quality.waited_ticks_max
        ),
        (3, 6)
    );
    assert_eq!(matcher.waiting_parties(), 0);
}

#[test]
fn arrival_packing_ignores_skill() {
    for (packing, made) in [(Packing::Arrival, 1), (Packing::Windows, 0)] {
        let mut matcher = matcher(GroupModeSettings { packing, ..mode(1) });
        matcher.enqueue(ticket(1, 1, -5000, 0)).unwrap();
        matcher.enqueue(ticket(2, 1, 5000, 0)).unwrap();
        assert_eq!(run(&mut matcher, 0).0.len(), made);
    }
}

#[test]
fn power_gap_above_the_limit_waits_until_it_widens() {
    let settings = GroupModeSettings {
        power_gap_start: 10,
        power_gap_widen_per_s: 10,
        ..mode(1)
    };
    let mut matcher = matcher(settings);
    matcher
        .enqueue(Ticket {
            power: 100,
            ..ticket(1, 1, 0, 0)
        })
        .unwrap();
    matcher
        .enqueue(Ticket {
            power: 130,
            ..ticket(2, 1, 0, 0)
        })
        .unwrap();
    assert!(run(&mut matcher, 39).0.is_empty());
    assert!(matcher.stats(ModeId(0)).unwrap().gap_refusals > 0);
    assert_eq!(run(&mut matcher, 40).0[0].quality.power_gap, 30);
}

#[test]
fn matches_per_heartbeat_are_limited_longest_waiting_first() {
    let mut matcher = matcher(GroupModeSettings {
        matches_per_heartbeat_max: 2,
        ..mode(1)
    });
    for party in 0..8 {
        matcher
            .enqueue(ticket(
                party,
                1,
                100 * (party as i32 / 2),
                20 - u64::from(party),
            ))
            .unwrap();
    }
    let oldest = |matches: &[Match]| {
        matches
            .iter()
            .map(|m| m.groups[0][0].party)
            .collect::<Vec<_>>()
    };
    assert_eq!(oldest(&run(&mut matcher, 20).0), [7, 5]);
    assert_eq!(oldest(&run(&mut matcher, 30).0), [3, 1]);
    assert_eq!(matcher.stats(ModeId(0)).unwrap().matches_exhausted, 2);
}

#[test]
fn all_party_sizes_are_matched_at_the_wait_bound() {
    for group_size in [5u8, 7, 10, 50] {
        for size in 1..=5 {
            // Far above all others in skill, so that only the wait bound can help it.
            let mut matcher = matcher(GroupModeSettings {
                limits_off_after_s: 30.0,
                ..mode(group_size)
            });
            matcher.enqueue(ticket(0, size, 1_000_000, 0)).unwrap();
            let (mut party, mut matched_at) = (0, None);
            for now_tick in (0..=610).step_by(10) {
                for size in [1, 2, 3, 4, 5, 1, 1, 1, 2] {
                    party += 1;
                    let skill = (party * 37 % 100) as i32;
                    matcher
                        .enqueue(ticket(party, size, skill, now_tick))
                        .unwrap();
                }
                let (matches, _) = run(&mut matcher, now_tick);
                if matches
                    .iter()
                    .flat_map(|m| m.groups.iter().flatten())
                    .any(|ticket| ticket.party == 0)
                {
                    matched_at = Some(now_tick);
                }
            }
            assert_eq!(
                matched_at,
                Some(600),
                "a party of {size} among groups of {group_size}"
            );
        }
    }
}

#[test]
fn parties_expire_by_age_at_the_configured_tick() {
    let mut matcher = matcher(GroupModeSettings {
        expire_after_s: 10.0,
        ..mode(5)
    });
    matcher.enqueue(ticket(1, 5, 0, 5)).unwrap();
    matcher.enqueue(ticket(2, 1, 0, 0)).unwrap();
    assert!(run(&mut matcher, 199).1.is_empty());
    assert_eq!(run(&mut matcher, 200).1, [ticket(2, 1, 0, 0)]);
    assert_eq!(run(&mut matcher, 205).1, [ticket(1, 5, 0, 5)]);
    assert_eq!(matcher.waiting_players(), 0);
}

#[test]
fn extreme_values_are_handled() {
    let mut matcher = matcher(mode(GROUP_SIZE_MAX));
    for party in 0..200u32 {
        let skill = if party % 2 == 0 { i32::MIN } else { i32::MAX };
        let since = if party % 3 == 0 { u64::MAX } else { 0 };
        matcher
            .enqueue(Ticket {
                power: u32::MAX,
                ..ticket(party, 1, skill, since)
            })
            .unwrap();
    }
    let (matches, _) = run(&mut matcher, u64::MAX);
    assert_eq!(matches.len(), 2);
    assert_eq!(matches[0].power, [50 * u64::from(u32::MAX); 2]);
}

#[test]
fn large_queue_matches_most_players_in_one_heartbeat() {
    let mut matcher = matcher(GroupModeSettings {
        matches_per_heartbeat_max: 10_000,
        ..mode(5)
    });
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut players = 0;
    for party in 0..10_000 {
        let size = match draw(100) {
            0..60 => 1,
            60..80 => 2,
            80..88 => 3,
            88..92 => 4,
            _ => 5,
        };
        let skill = (0..4).map(|_| draw(1000) as i32).sum::<i32>() / 2;
        let power = 1000 * u32::from(size) + draw(500) as u32;
        matcher
            .enqueue(Ticket {
                power,
                ..ticket(party, size, skill, 0)
            })
            .unwrap();
        players += usize::from(size);
    }
    let (matches, _) = run(&mut matcher, 0);
    assert!(
        matches.len() * 10 > players * 9 / 10,
        "{} matches of {players} players",
        matches.len()
    );
    assert_eq!(matches.len() * 10 + matcher.waiting_players(), players);
    assert!(matches.iter().all(|made| made.quality.spread <= 20));
}

#[test]
fn packing_respects_levels_and_regions_and_matches_most() {
    let mut matcher = matcher(GroupModeSettings {
        matches_per_heartbeat_max: 10_000,
        candidates_per_heartbeat_max: 1,
        ..mode(5)
    });
    let mut players = 0;
    for (nth, mut ticket) in (0..).zip(workload::tickets_of_levels(4_000)) {
        let regions = [0, 0b01, 0b10, 0b11][nth % 4];
        ticket.preferences = Some(Box::new(ticket::TicketPreferences {
            regions,
            ..Default::default()
        }));
        players += usize::from(ticket.size);
        matcher.enqueue(ticket).unwrap();
    }
    // With one search step or none, only packed parties are matched.
    let (matches, _) = run(&mut matcher, 0);
    assert!(
        matches.len() * 10 > players * 6 / 10,
        "{} of {players}",
        matches.len()
    );
    for made in &matches {
        let tickets = || made.groups.iter().flatten();
        let levels = || tickets().map(|ticket| ticket.level);
        assert!(levels().max().unwrap() - levels().min().unwrap() <= 10);
    }
}

/// One step of a script of requests.
#[derive(Clone, Debug)]
enum Step {
    Queue {
        size: u8,
        skill: i32,
        power: u32,
        given_back_ticks: u64,
    },
    Cancel {
        party: u32,
    },
    Leave {
        player: u64,
    },
    Run {
        ticks: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let queue = (
        0u8..=6,
        -40i32..40,
        0u32..1000,
        prop::sample::select(vec![0u64, 0, 0, 50]),
    );
    let step = prop_oneof![
        8 => queue.prop_map(|(size, skill, power, given_back_ticks)| Step::Queue { size, skill, power, given_back_ticks }),
        1 => (0u32..60).prop_map(|party| Step::Cancel { party }),
        1 => (0u64..600).prop_map(|player| Step::Leave { player }),
        2 => (0u64..80).prop_map(|ticks| Step::Run { ticks }),
    ];
    prop::collection::vec(step, 0..80)
}

fn script_mode() -> impl Strategy<Value = GroupModeSettings> {
    let packing = prop::sample::select(vec![Packing::Windows, Packing::Arrival]);
    (
        1u8..=10,
        packing,
        1u32..4,
        prop::sample::select(vec![0u32, 100, UNLIMITED]),
        2u64..8,
    )
        .prop_map(
            |(group_size, packing, matches_per_heartbeat_max, power_gap_start, expire)| {
                GroupModeSettings {
                    packing,
                    matches_per_heartbeat_max,
                    power_gap_start,
                    expire_after_s: expire as f64,
                    limits_off_after_s: 4.0,
                    ..mode(group_size)
                }
            },
        )
}

/// Runs a script, checks every match and the counters after every heartbeat, and returns all matches.
fn run_script(settings: &GroupModeSettings, script: &[Step]) -> Result<Vec<Match>, TestCaseError> {
    let mut matcher = matcher(settings.clone());
    let (mut now_tick, mut party) = (0u64, 0);
    let mut all = Vec::new();
    for step in script {
        match *step {
            Step::Queue {
                size,
                skill,
                power,
                given_back_ticks,
            } => {
                party += 1;
                // Valid or not: a refusal must keep the counters consistent as well.
                let since_tick = now_tick.saturating_sub(given_back_ticks);
                let members = (0..u64::from(size.min(5)))
                    .map(|at| (10 * u64::from(party) + at).into())
                    .collect();
                let _ = matcher.enqueue(Ticket {
                    size,
                    power,
                    members,
                    ..ticket(party, 1, skill, since_tick)
                });
            }
            Step::Cancel { party } => drop(matcher.cancel(party)),
            Step::Leave { player } => drop(matcher.remove_player(player)),
            Step::Run { ticks } => {
                now_tick += ticks;
                let (matches, _) = run(&mut matcher, now_tick);
                prop_assert!(matches.len() <= settings.matches_per_heartbeat_max as usize);
                for made in &matches {
                    check_match(made, &matcher, now_tick)?;
                }
                all.extend(matches);
                let stats = matcher.stats(ModeId(0)).unwrap();
                let gone = stats.matched_parties + stats.cancelled + stats.expired;
                prop_assert_eq!(stats.queued, gone + matcher.waiting_parties() as u64);
                prop_assert_eq!(matcher.waiting_parties(), waiting(&matcher).len());
                let players: usize = waiting(&matcher)
                    .iter()
                    .map(|ticket| usize::from(ticket.size))
                    .sum();
                prop_assert_eq!(matcher.waiting_players(), players);
            }
        }
    }
    let mut players: Vec<TicketPlayer> = all
        .iter()
        .flat_map(|m| m.groups.iter().flatten())
        .flat_map(|t| t.members.iter().copied())
        .collect();
    let matched = players.len();
    players.sort_unstable();
    players.dedup();
    prop_assert_eq!(players.len(), matched, "a player is in at most one match");
    Ok(all)
}

fn check_match(
    made: &Match,
    matcher: &MatchmakingCore,
    now_tick: u64,
) -> Result<(), TestCaseError> {
    let rules = rules_of(matcher);
    for (group, power) in made.groups.iter().zip(made.power) {
        prop_assert_eq!(
            group.iter().map(|ticket| ticket.size).sum::<u8>(),
            rules.group_size
        );
        prop_assert_eq!(
            group
                .iter()
                .map(|ticket| u64::from(ticket.power))
                .sum::<u64>(),
            power
        );
    }
    let all = || made.groups.iter().flatten();
    for ticket in all() {
        prop_assert_eq!(
            ticket.members.len(),
            usize::from(ticket.size),
            "parties stay whole"
        );
        prop_assert_eq!(
            matcher.ticket(ticket.party),
            None,
            "who is matched waits no more"
        );
    }
    let waited = all()
        .map(|ticket| ticket.waited_ticks(now_tick))
        .max()
        .unwrap();
    prop_assert_eq!(made.groups[0][0].waited_ticks(now_tick), waited);
    prop_assert!(made.quality.spread <= rules.window_at(waited));
    let limit = rules.power_gap_at(waited);
    prop_assert!(limit == UNLIMITED || made.quality.power_gap <= u64::from(limit));
    Ok(())
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn random_scripts_conserve_tickets_and_are_deterministic(settings in script_mode(), script in steps()) {
        let first = run_script(&settings, &script)?;
        prop_assert_eq!(first, run_script(&settings, &script)?);
    }

    #[test]
    fn no_allowed_match_is_left_after_a_heartbeat(
        group_size in 1u8..=8,
        packing in prop::sample::select(vec![Packing::Windows, Packing::Arrival]),
        parties in prop::collection::vec((1u8..=5, -40i32..40, 0u64..2000), 0..24),
    ) {
        let settings = GroupModeSettings { packing, skill_window_widen_per_s: 1, ..mode(group_size) };
        let mut matcher = matcher(settings);
        for (party, &(size, skill, since_tick)) in (0u32..).zip(&parties) {
            let _ = matcher.enqueue(ticket(party, size, skill, since_tick));
        }
        run(&mut matcher, 2000);
        let left = waiting(&matcher);
        // Trying all subsets is possible for few parties; there are rarely more than this.
        prop_assume!(left.len() <= 14);
        let rules = rules_of(&matcher);
        prop_assert!(!has_match(&left, group_size, |oldest| rules.window_at(oldest.waited_ticks(2000))));
    }

    #[test]
    fn match_count_is_optimal_with_unlimited_windows(
        ten in any::<bool>(),
        sizes in prop::collection::vec(1u8..=5, 15..60),
        skew in 0i32..1000,
    ) {
        let group_size = if ten { 10 } else { 5 };
        let mut matcher = matcher(GroupModeSettings { skill_window_start: UNLIMITED, ..mode(group_size) });
        for (party, &size) in (0u32..).zip(&sizes) {
            let skill = (party as i32 * skew) % 3000;
            matcher.enqueue(ticket(party, size, skill, u64::from(party))).unwrap();
        }
        let most = super::pack::plan::tests::most_groups(&counts(&waiting(&matcher)), group_size) / 2;
        prop_assert_eq!(run(&mut matcher, 100).0.len(), most as usize);
    }

    #[test]
    fn overdue_party_yields_only_to_longer_waiting_parties(
        group_size in 1u8..=8,
        matches_per_heartbeat_max in 1u32..4,
        parties in prop::collection::vec((1u8..=5, -4000i32..4000, 0u64..2000), 0..30),
    ) {
        let mut matcher = matcher(GroupModeSettings { matches_per_heartbeat_max, ..mode(group_size) });
        for (party, &(size, skill, since_tick)) in (0u32..).zip(&parties) {
            let _ = matcher.enqueue(ticket(party, size, skill, since_tick));
        }
        let rank: Vec<u32> = waiting(&matcher).iter().map(|ticket| ticket.party.number()).collect();
        let rank = |party: u32| rank.iter().position(|&at| at == party);
        let (matches, _) = run(&mut matcher, 2000);
        let left = waiting(&matcher);
        let mut table = CompositionTable::new(group_size);
        for overdue in left.iter().filter(|ticket| ticket.waited_ticks(2000) >= 1200) {
            let is_younger = |made: &&Match| rank(made.groups[0][0].party.number()) > rank(overdue.party.number());
            let younger: Vec<&Match> = matches.iter().filter(is_younger).collect();
            if matches.len() == matches_per_heartbeat_max as usize && younger.is_empty() {
                continue;
            }
            let taken = younger.iter().flat_map(|made| made.groups.iter().flatten());
            let others = left.iter().filter(|ticket| ticket.party != overdue.party).chain(taken);
            prop_assert!(!table.fits(&counts([overdue]), &counts(others)));
        }
    }
}
