//! `throng bench matchmaking`: packing inside skill windows, compared with the reference's packing in arrival order.

use super::CliError;
use super::rows::{BenchRow, RepeatSpread};
use throng::matchmaking::{HeartbeatOutcome, Packing, Ticket};
use throng::sim::clock::Stopwatch;
use throng_matchmaking::workload::{
    ArrivalPacker, Churn, PARTIES_MAX, PartyPowerSource, PartySource, SkillEntry, SweepSeat,
    Sweeper, best_by_brute_force, least_spreads, matcher_with_queue, percentile, tickets,
    tickets_of_levels,
};

const SYSTEM: &str = "matchmaking";

/// Repetitions of a heartbeat from scratch.
const REPEATS: usize = 5;

/// The result of a heartbeat over a full queue.
#[derive(Default)]
struct HeartbeatResult {
    ms: f64,
    matched: u64,
    waiting: u64,
    spread_p99: u32,
    gap_sum: u64,
    matches: usize,
}

impl HeartbeatResult {
    fn gap_mean(&self) -> f64 {
        self.gap_sum as f64 / self.matches.max(1) as f64
    }
}

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let parties = if quick { 2_000 } else { 10_000 };
    let mut rows = from_scratch(parties)?;
    rows.push(pack_alone(parties));
    rows.extend(small_pools()?);
    rows.push(steady_queue(if quick { 100_000 } else { 1_000_000 })?);
    Ok(rows)
}

/// A heartbeat over a full queue.
fn from_scratch(parties: u32) -> Result<Vec<BenchRow>, CliError> {
    let waiting = tickets(parties, PartyPowerSource::Skill);
    let players: u64 = waiting.iter().map(|ticket| u64::from(ticket.size)).sum();
    let [windows, arrival] = alternate(&waiting)?;
    let row =
        |case: &str, value, unit| BenchRow::new(SYSTEM, format!("{case}/{parties}"), value, unit);
    let timed = |case: &str, factor: f64, unit| {
        let scaled = |ms: &[f64]| ms.iter().map(|ms| ms * factor).collect::<Vec<_>>();
        BenchRow::repeated(
            SYSTEM,
            format!("{case}/{parties}"),
            &scaled(&windows.ms),
            unit,
        )
        .with_repeated_reference("arrival", &scaled(&arrival.ms))
    };
    let is_whole = [&windows, &arrival].map(|run| run.last.matched + run.last.waiting == players);
    let (windows_done, arrival_done) = (&windows.last, &arrival.last);
    let least = percentile(least_spreads(&waiting, 5), 99);
    let apart = tickets(parties, PartyPowerSource::Independent);
    let [windows_apart, arrival_apart] = alternate(&apart)?;
    let levels = run_heartbeat(Packing::Windows, 10, &tickets_of_levels(parties))?;
    Ok(vec![
        timed("heartbeat", 1.0, "ms")
            .about(
                "One heartbeat over a full queue: packing in skill windows, compared with packing in \
                 arrival order.",
            )
            .with_comparison("every player is in a match or waits", is_whole == [true; 2]),
        row("spread p99", f64::from(windows_done.spread_p99), "skill")
            .with_reference("arrival", f64::from(arrival_done.spread_p99))
            .about("The p99 of the difference between the highest and the lowest skill in a match.")
            .with_target(
                format!("at most 1.2 times the least, which is {least}"),
                f64::from(windows_done.spread_p99) <= 1.2 * f64::from(least),
            ),
        row("gap mean", windows_done.gap_mean(), "power")
            .with_reference("arrival", arrival_done.gap_mean())
            .about("The difference in power between the two groups of a match.")
            .with_target(
                "no worse than in arrival order",
                windows_done.gap_mean() <= arrival_done.gap_mean(),
            ),
        // If power is independent of skill, a narrow skill window leaves few choices, and spread has priority over gap. Arrival order
        // ignores skill and gets far smaller gaps in this case, so there is no target.
        row("gap mean apart", windows_apart.last.gap_mean(), "power")
            .with_reference("arrival", arrival_apart.last.gap_mean())
            .about(
                "The same, with power independent of skill: packing by skill has fewer \
                 candidates.",
            ),
        row("waiting", windows_done.waiting as f64, "players")
            .with_reference("arrival", arrival_done.waiting as f64)
            .about("Players without a match after the heartbeat."),
        timed("beat a party", 1e6 / f64::from(parties), "ns/party")
            .about("The time of the same heartbeat per party in the queue."),
        row("waiting, levels", levels.waiting as f64, "players")
            .about("Players without a match when levels 1 to 60 play in bands of 10.")
            .with_target(
                "at least three in four players are in a match",
                levels.waiting * 3 <= levels.matched,
            ),
    ])
}

/// Packing only, of sorted parties: no acceptance terms, no balancing, no matches.
fn pack_alone(parties: u32) -> BenchRow {
    let tickets = tickets(parties, PartyPowerSource::Skill);
    let mut seats: Vec<SweepSeat> = tickets
        .iter()
        .map(|ticket| SweepSeat {
            entry: SkillEntry::new(ticket.skill, ticket.party.number(), 0, ticket.size),
            power: ticket.power,
            window: u32::MAX,
            level_band: u32::MAX,
            regions: u32::MAX,
        })
        .collect();
    seats.sort_unstable_by_key(|seat| (seat.entry.skill(), seat.entry.party()));
    let (mut sweeper, mut arrival) = (Sweeper::default(), ArrivalPacker::default());
    let mut ns = [const { Vec::new() }; 2];
    let mut matches = [0; 2];
    let a_party = |watch: Stopwatch| watch.elapsed().as_secs_f64() * 1e9 / f64::from(parties);
    for _ in 0..9 {
        let watch = Stopwatch::start();
        matches[0] = sweeper.sweep(&seats, 5, None).len();
        ns[0].push(a_party(watch));
        let watch = Stopwatch::start();
        matches[1] = arrival.pack(tickets.iter().map(|ticket| (ticket.size, ticket.power)), 5);
        ns[1].push(a_party(watch));
    }
    BenchRow::repeated(SYSTEM, format!("sweep alone/{parties}"), &ns[0], "ns/party")
        .with_repeated_reference("arrival", &ns[1])
        .about("Packing only, of sorted parties: no terms, and no matches are made.")
        .with_comparison("as many matches or more", matches[0] >= matches[1])
        .with_target_below(50.0, "ns, which is 20 million parties a second")
}

/// Pools of about a dozen parties, which are solved exactly.
fn small_pools() -> Result<Vec<BenchRow>, CliError> {
    let mut source = PartySource::new(3, PartyPowerSource::Independent);
    let (mut exact, mut arrival, mut more) = (0, 0, true);
    let (mut found, mut optimum, mut most) = (0, 0, true);
    for nth in 0..200 {
        let parties = 8 + nth % (PARTIES_MAX - 7);
        let mut pool: Vec<Ticket> = (0..parties).map(|_| source.ticket(0)).collect();
        // With equal skills, no parties are kept apart.
        pool.iter_mut().for_each(|ticket| ticket.skill = 0);
        let windows = run_heartbeat(Packing::Windows, 10, &pool)?;
        let by_age = run_heartbeat(Packing::Arrival, 10, &pool)?;
        let (matches, gaps) = best_by_brute_force(&pool, 5);
        most &= windows.matches == matches as usize;
        found += windows.gap_sum;
        optimum += gaps;
        more &= windows.matches >= by_age.matches;
        if windows.matches == by_age.matches {
            exact += windows.gap_sum;
            arrival += by_age.gap_sum;
        }
    }
    Ok(vec![
        BenchRow::new(SYSTEM, "gap sum/pools to 14", exact as f64, "power")
            .with_reference("arrival", arrival as f64)
            .about(
                "The sum of all gaps of 200 small pools that are solved exactly, compared with arrival order.",
            )
            .with_comparison("as many matches or more", more)
            .with_target("gaps no larger", exact <= arrival),
        BenchRow::new(SYSTEM, "gap sum/brute force to 14", found as f64, "power")
            .with_reference("brute force", optimum as f64)
            .about("The same, compared with brute force, which is optimal.")
            .with_comparison("as many matches", most)
            .with_target(
                "at most 1.05 times the optimum",
                found as f64 <= 1.05 * optimum as f64,
            ),
    ])
}

/// A queue that is kept at a constant number of parties, over a hundred heartbeats with 500 matches each.
fn steady_queue(parties: usize) -> Result<BenchRow, CliError> {
    let failed =
        |error: &dyn std::fmt::Display| CliError::new(format!("the queue was not filled: {error}"));
    let mut churn = Churn::new(parties, 1_000, 500).map_err(|error| failed(&error))?;
    let (mut beat, mut us) = (HeartbeatOutcome::default(), Vec::new());
    let mut made = 0;
    for _ in 0..100 {
        beat.matches.clear();
        let requests = churn.requests(10_000);
        let watch = Stopwatch::start();
        made += churn
            .heartbeat(requests, &mut beat)
            .map_err(|error| failed(&error))?;
        us.push(watch.elapsed().as_micros() as u32);
    }
    let ms: Vec<f64> = us.iter().map(|&us| f64::from(us) / 1e3).collect();
    let queue = churn.matcher().modes().first().map(|mode| mode.queue());
    let mut arrival = ArrivalPacker::default();
    let watch = Stopwatch::start();
    let waiting = queue.into_iter().flat_map(|queue| queue.iter());
    let pairs = arrival.pack(waiting.map(|(_, ticket)| (ticket.size, ticket.power)), 5);
    let arrival_ms = watch.elapsed().as_secs_f64() * 1e3;
    let p99_ms = f64::from(percentile(us, 99)) / 1e3;
    Ok(
        BenchRow::new(SYSTEM, format!("beat p99/{parties}"), p99_ms, "ms")
            .with_spread(RepeatSpread::from_samples(&ms))
            .with_reference("arrival", arrival_ms)
            .about(
                "A heartbeat over a queue that is kept at this many parties, 20,000 of which \
                 arrive a second, compared with packing all of it once in arrival order.",
            )
            .with_comparison(
                "500 matches in every heartbeat",
                made == 50_000 && pairs > 500,
            )
            .with_target_below(50.0, "ms"),
    )
}

/// Repetitions of a heartbeat: their times, and the result, which is the same each time.
#[derive(Default)]
struct HeartbeatTimes {
    ms: Vec<f64>,
    last: HeartbeatResult,
}

/// Heartbeats from scratch, alternating between packing by skill and in arrival order.
fn alternate(tickets: &[Ticket]) -> Result<[HeartbeatTimes; 2], CliError> {
    let mut beats = <[HeartbeatTimes; 2]>::default();
    for _ in 0..REPEATS {
        for (beats, packing) in beats.iter_mut().zip([Packing::Windows, Packing::Arrival]) {
            beats.last = run_heartbeat(packing, 10, tickets)?;
            beats.ms.push(beats.last.ms);
        }
    }
    Ok(beats)
}

/// A heartbeat from scratch.
fn run_heartbeat(
    packing: Packing,
    now_tick: u64,
    tickets: &[Ticket],
) -> Result<HeartbeatResult, CliError> {
    let queued = matcher_with_queue(packing, 1 << 20, tickets);
    let mut matcher = queued.map_err(|error| CliError::new(format!("no queue: {error}")))?;
    let mut beat = HeartbeatOutcome::default();
    let watch = Stopwatch::start();
    matcher.run_heartbeat(now_tick, &mut beat);
    let ms = watch.elapsed().as_secs_f64() * 1e3;
    let groups = || {
        beat.matches
            .iter()
            .flat_map(|made| made.groups.iter().flatten())
    };
    let spreads = beat.matches.iter().map(|made| made.quality.spread);
    Ok(HeartbeatResult {
        ms,
        matched: groups().map(|ticket| u64::from(ticket.size)).sum(),
        waiting: matcher.waiting_players() as u64,
        spread_p99: percentile(spreads.collect(), 99),
        gap_sum: beat.matches.iter().map(|made| made.quality.power_gap).sum(),
        matches: beat.matches.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_party_is_lost() {
        let tickets = tickets(300, PartyPowerSource::Skill);
        let players: u64 = tickets.iter().map(|ticket| u64::from(ticket.size)).sum();
        for packing in [Packing::Windows, Packing::Arrival] {
            let Ok(done) = run_heartbeat(packing, 10, &tickets) else {
                panic!("the settings are valid")
            };
            assert_eq!(done.matched + done.waiting, players);
            assert!(done.matched > players / 2);
        }
    }
}
