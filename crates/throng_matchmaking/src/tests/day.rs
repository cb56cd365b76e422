//! A day of arrivals, and arrivals that try to starve a party.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::workload::PARTY_SIZE_PERCENT;
use crate::{Backfill, TicketPreferences};

/// Half a second at 20 ticks a second.
const HEARTBEAT_TICKS: u64 = 10;

fn arena() -> MatchmakingCore {
    matcher(GroupModeSettings {
        power_gap_start: 500,
        expire_after_s: 0.0,
        ..GroupModeSettings::default()
    })
}

/// The number of arrivals when `mean` are expected: Poisson's distribution, by Knuth's method.
fn poisson(random: &mut impl Rng, mean: f64) -> u32 {
    let limit = libm::exp(-mean);
    let (mut product, mut count) = (random.random_range(0.0..1.0f64), 0);
    while product > limit && count < 1000 {
        product *= random.random_range(0.0..1.0f64);
        count += 1;
    }
    count
}

fn size(random: &mut impl Rng) -> u8 {
    let mut pick = random.random_range(0..100u32);
    let fitting = PARTY_SIZE_PERCENT.iter().position(|&share| {
        let fits = pick < share;
        pick = pick.wrapping_sub(share);
        fits
    });
    fitting.unwrap() as u8 + 1
}

/// Checks after a heartbeat that no party is beyond the longest wait while a match with it is possible.
fn check_bound(matcher: &MatchmakingCore, now_tick: u64, table: &mut CompositionTable) {
    assert!(matcher.modes()[0].tickets_conserved());
    let first_after_ticks = matcher.modes()[0].tick_settings().priority_after_ticks;
    let left = waiting(matcher);
    let overdue = |ticket: &&Ticket| ticket.waited_ticks(now_tick) >= first_after_ticks;
    for party in left.iter().filter(overdue) {
        let others = left.iter().filter(|other| other.party != party.party);
        assert!(
            !table.fits(&counts([party]), &counts(others)),
            "{party:?} waits at {now_tick}"
        );
    }
}

#[test]
fn wait_bound_holds_over_a_day_with_an_evening_peak() {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let (mut matcher, mut table) = (arena(), CompositionTable::new(5));
    let (mut party, mut matched, mut longest) = (0, 0, 0);
    // An hour lasts four minutes here; only the sequence of the rates matters.
    let hour_ticks = 4800;
    for now_tick in (0..24 * hour_ticks).step_by(HEARTBEAT_TICKS as usize) {
        let hour = now_tick / hour_ticks;
        let mean = match hour {
            0..6 => 0.02,
            6..17 => 0.5,
            17..22 => 6.0,
            _ => 1.0,
        };
        let mut come = poisson(&mut random, mean);
        // One party of five at four in the morning.
        let five = now_tick == 4 * hour_ticks;
        come += u32::from(five);
        for _ in 0..come {
            party += 1;
            let size = if five { 5 } else { size(&mut random) };
            let skill = 1500 + random.random_range(-600..600);
            let power = u32::from(size) * random.random_range(1000..2000);
            let since_tick = now_tick;
            matcher
                .enqueue(Ticket {
                    power,
                    ..ticket(party, size, skill, since_tick)
                })
                .unwrap();
        }
        let (matches, _) = run(&mut matcher, now_tick);
        matched += matches.len();
        for made in &matches {
            let came = made.groups.iter().flatten();
            let evening = |ticket: &&Ticket| (18..21).contains(&(ticket.since_tick / hour_ticks));
            let waits = came
                .filter(evening)
                .map(|ticket| ticket.waited_ticks(now_tick));
            longest = longest.max(waits.max().unwrap_or(0));
        }
        check_bound(&matcher, now_tick, &mut table);
    }
    assert!(matched > 3000, "{matched}");
    // In the evening there are always enough players.
    assert!(longest <= 1500 + HEARTBEAT_TICKS, "{longest}");
}

#[test]
fn fours_and_threes_are_served_once_partners_fit() {
    for (sizes, rescue, fits) in [
        // Only fours: no match is possible until two single players arrive.
        (vec![4], vec![1, 1], 2),
        // Threes and threes: no match is possible until two parties of two arrive.
        (vec![3], vec![2, 2], 2),
        // Threes and fours: ones help the fours, twos the threes.
        (vec![3, 4], vec![1, 2], 2),
    ] {
        let (mut matcher, mut table) = (arena(), CompositionTable::new(5));
        let mut party = 0;
        let mut queue = |matcher: &mut MatchmakingCore, size, skill, now_tick| {
            party += 1;
            matcher
                .enqueue(ticket(party, size, skill, now_tick))
                .unwrap();
        };
        for now_tick in (0..3000).step_by(10) {
            for &size in &sizes {
                queue(&mut matcher, size, (now_tick % 700) as i32, now_tick);
            }
            assert!(run(&mut matcher, now_tick).0.is_empty(), "{sizes:?}");
            check_bound(&matcher, now_tick, &mut table);
        }
        // The arrivals are far from every party in skill, and the longest-waiting are served.
        for &size in &rescue {
            queue(&mut matcher, size, 9000, 3000);
        }
        let (matches, _) = run(&mut matcher, 3000);
        assert_eq!(matches.len(), 1, "{sizes:?}");
        let oldest = matches[0]
            .groups
            .iter()
            .flatten()
            .filter(|ticket| ticket.since_tick == 0);
        assert!(oldest.count() >= fits.min(sizes.len()), "{sizes:?}");
        check_bound(&matcher, 3000, &mut table);
    }
}

#[test]
fn party_of_five_is_matched_with_the_first_five_others() {
    let mut matcher = arena();
    matcher.enqueue(ticket(1, 5, 3000, 0)).unwrap();
    for now_tick in (0..6000).step_by(10) {
        if now_tick % 1200 == 0 {
            matcher
                .enqueue(ticket(2 + now_tick as u32, 1, 1500, now_tick))
                .unwrap();
        }
        let (matches, _) = run(&mut matcher, now_tick);
        assert_eq!(
            matches.len(),
            usize::from(now_tick == 4800),
            "at {now_tick}"
        );
    }
}

/// A party of any size, skill, power and level, with an avoid list and regions.
fn ticket_with_preferences(random: &mut Pcg64Mcg, party: u32, now_tick: u64) -> Ticket {
    let avoid = random.random_range(0..10 * u64::from(party));
    let wishes = Some(Box::new(TicketPreferences {
        regions: random.random_range(0..4),
        avoid: [avoid.into()].into_iter().collect(),
        ..TicketPreferences::default()
    }));
    let size = size(random);
    let skill = random.random_range(0..6000);
    let power = u32::from(size) * random.random_range(1000..2000);
    let level = random.random_range(1..60);
    Ticket {
        power,
        level,
        preferences: wishes,
        ..ticket(party, size, skill, now_tick)
    }
}

#[test]
fn wait_bound_holds_with_all_features_combined() {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let mut matcher = matcher(GroupModeSettings {
        accept_timeout_s: 5.0,
        ..GroupModeSettings::default()
    });
    let mut table = CompositionTable::new(5);
    let (mut party, mut served, mut asked) = (0u32, 0, Vec::new());
    for now_tick in (0..40_000).step_by(HEARTBEAT_TICKS as usize) {
        let mean = if now_tick % 8000 < 6000 { 0.04 } else { 0.6 };
        for _ in 0..poisson(&mut random, mean) {
            party += 1;
            let ticket = ticket_with_preferences(&mut random, party, now_tick);
            matcher.enqueue(ticket).unwrap();
        }
        let _ = matcher.cancel(party.saturating_sub(random.random_range(0..200)));
        for player in asked.drain(..) {
            if random.random_range(0..50) == 0 {
                let _ = matcher.decline(player);
            } else {
                let _ = matcher.accept(player, now_tick);
            }
        }
        let wanted = Backfill {
            missing: 1,
            skill: 1500,
            level: 30,
            ..Backfill::default()
        };
        if now_tick % 200 == 0 {
            matcher.backfill(ModeId(0), &wanted, now_tick);
        }
        let before = waiting(&matcher);
        let mut outcome = HeartbeatOutcome::default();
        matcher.run_heartbeat(now_tick, &mut outcome);
        assert!(matcher.modes()[0].tickets_conserved());
        let tickets = || {
            let groups = outcome.proposed.iter().flat_map(|made| &made.groups);
            groups.flatten()
        };
        asked.extend(tickets().flat_map(|ticket| ticket.members.clone()));
        let region = |ticket: &Ticket| match ticket.preferences.as_ref().map_or(0, |w| w.regions) {
            0 => u32::MAX,
            regions => regions,
        };
        for (rank, overdue) in before.iter().enumerate() {
            if overdue.waited_ticks(now_tick) < 1500 {
                break;
            }
            let could = [0, 1, 2].into_iter().any(|bit| {
                let here = |ticket: &&Ticket| region(ticket) >> bit & 1 == 1;
                let others = before.iter().filter(|other| other.party != overdue.party);
                here(&overdue) && table.fits(&counts([overdue]), &counts(others.filter(here)))
            });
            let older = |party: u32| before[..=rank].iter().any(|ticket| ticket.party == party);
            let went = tickets().any(|ticket| older(ticket.party.number()));
            assert!(!could || went, "{overdue:?} at {now_tick}");
            served += u32::from(could);
        }
    }
    let stats = matcher.stats(ModeId(0)).unwrap();
    assert!(
        served > 0 && stats.dissolved > 0 && stats.cancelled > 0 && stats.backfilled > 0,
        "{served} {stats:?}"
    );
}
