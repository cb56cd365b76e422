//! `throng bench matchmaking`: packing inside skill windows beside packing in the order of arrival.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Failure;
use super::rows::Row;
use crate::matchmaking::{Matcher, ModeId, ModeSettings, Packing, QueueMode, Ticket};
use crate::sim::clock::Stopwatch;

/// Shares of parties of one to five players, in percent.
const SIZES: [(u8, u32); 5] = [(1, 60), (2, 20), (3, 8), (4, 4), (5, 8)];

/// What one heartbeat over a full queue did.
struct Beat {
    ms: f64,
    matched: u64,
    waiting: u64,
    spread_p99: f64,
}

pub(super) fn measure(quick: bool) -> Result<Vec<Row>, Failure> {
    let parties = if quick { 2_000 } else { 10_000 };
    let tickets = tickets(parties);
    let players: u64 = tickets.iter().map(|ticket| u64::from(ticket.size)).sum();
    let windows = beat(Packing::Windows, &tickets)?;
    let arrival = beat(Packing::Arrival, &tickets)?;
    let whole = |beat: &Beat| beat.matched + beat.waiting == players;
    let rows = [
        Row::new(
            "matchmaking",
            format!("heartbeat/{parties}"),
            windows.ms,
            "ms",
        )
        .beside("arrival", arrival.ms)
        .aiming(
            "every player is in a match or waits",
            whole(&windows) && whole(&arrival),
        ),
        Row::new(
            "matchmaking",
            format!("spread p99/{parties}"),
            windows.spread_p99,
            "skill",
        )
        .beside("arrival", arrival.spread_p99),
        Row::new(
            "matchmaking",
            format!("waiting/{parties}"),
            windows.waiting as f64,
            "players",
        )
        .beside("arrival", arrival.waiting as f64),
    ];
    Ok(rows.into())
}

/// Parties whose skill is bell-shaped with a deviation of 300.
fn tickets(parties: u32) -> Vec<Ticket> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut next_player = 0;
    (0..parties)
        .map(|party| {
            let mut pick = random.random_range(0..100);
            let fitting = SIZES.iter().find(|&&(_, share)| {
                let fits = pick < share;
                pick = pick.wrapping_sub(share);
                fits
            });
            let size = fitting.map_or(1, |&(size, _)| size);
            let members = (next_player..next_player + u64::from(size)).collect();
            next_player += u64::from(size);
            let power = u32::from(size) * random.random_range(1_000..2_000);
            let skill = bell(&mut random, 300.0);
            let leader_strength = power / u32::from(size);
            Ticket {
                party,
                size,
                power,
                skill,
                level: 1,
                leader_strength,
                mode: ModeId(0),
                since_tick: 0,
                members,
            }
        })
        .collect()
}

/// The sum of twelve uniform numbers, which is as good as normal here and needs no logarithm.
fn bell(random: &mut impl Rng, deviation: f64) -> i32 {
    let sum: f64 = (0..12).map(|_| random.random_range(-0.5..0.5f64)).sum();
    (sum * deviation) as i32
}

/// The faster of two heartbeats from scratch.
fn beat(packing: Packing, tickets: &[Ticket]) -> Result<Beat, Failure> {
    let mode = ModeSettings {
        name: "bench".to_owned(),
        packing,
        matches_per_heartbeat_max: tickets.len() as u32,
        ..ModeSettings::default()
    };
    let failed =
        |error: &dyn std::fmt::Display| Failure::new(format!("the queue does not open: {error}"));
    let mut fastest: Option<Beat> = None;
    for _ in 0..2 {
        let mut matcher = Matcher::new(&[QueueMode::Groups(mode.clone())], 20.0)
            .map_err(|error| failed(&error))?;
        for ticket in tickets {
            matcher
                .queue(ticket.clone())
                .map_err(|error| failed(&error))?;
        }
        let (mut matches, mut expired) = (Vec::new(), Vec::new());
        let watch = Stopwatch::start();
        matcher.run(10, &mut matches, &mut expired);
        let ms = watch.elapsed().as_secs_f64() * 1e3;
        let stats = matcher.stats(ModeId(0));
        let found = Beat {
            ms,
            matched: stats.map_or(0, |stats| stats.matched_players),
            waiting: matcher.waiting_players() as u64,
            spread_p99: stats.map_or(0.0, |stats| stats.spread.quantile(99) as f64),
        };
        if fastest.as_ref().is_none_or(|fastest| found.ms < fastest.ms) {
            fastest = Some(found);
        }
    }
    fastest.ok_or_else(|| Failure::new("nothing was measured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shared_out_whole() {
        assert_eq!(SIZES.iter().map(|&(_, share)| share).sum::<u32>(), 100);
        let tickets = tickets(1_000);
        assert!(
            tickets
                .iter()
                .all(|ticket| usize::from(ticket.size) == ticket.members.len())
        );
        assert!((500..700).contains(&tickets.iter().filter(|ticket| ticket.size == 1).count()));
    }

    #[test]
    fn nobody_gets_lost() {
        let tickets = tickets(300);
        let players: u64 = tickets.iter().map(|ticket| u64::from(ticket.size)).sum();
        for packing in [Packing::Windows, Packing::Arrival] {
            let Ok(beat) = beat(packing, &tickets) else {
                panic!("the settings are valid")
            };
            assert_eq!(beat.matched + beat.waiting, players);
            assert!(beat.matched > players / 2);
        }
    }
}
