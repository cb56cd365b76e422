//! One heartbeat over a full queue, from scratch, with both ways of packing.

use criterion::{BatchSize, Criterion};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng::matchmaking::{Matcher, ModeId, ModeSettings, Packing, QueueMode, Ticket};

const PARTIES: u32 = 10_000;

pub fn bench(criterion: &mut Criterion) {
    let tickets = tickets();
    let players: usize = tickets.iter().map(|ticket| ticket.members.len()).sum();
    for (name, packing) in [("windows", Packing::Windows), ("arrival", Packing::Arrival)] {
        let queued = queued(packing, &tickets);
        criterion.bench_function(&format!("matchmaking::{name}/{PARTIES}"), |bencher| {
            bencher.iter_batched(
                || queued.clone(),
                |mut matcher| {
                    let (mut matches, mut expired) = (Vec::new(), Vec::new());
                    matcher.run(10, &mut matches, &mut expired);
                    assert!(expired.is_empty());
                    assert_eq!(10 * matches.len() + matcher.waiting_players(), players);
                    (matcher, matches)
                },
                BatchSize::LargeInput,
            );
        });
    }
}

fn queued(packing: Packing, tickets: &[Ticket]) -> Matcher {
    let mode = ModeSettings {
        name: "bench".to_owned(),
        packing,
        matches_per_heartbeat_max: PARTIES,
        ..ModeSettings::default()
    };
    let mut matcher =
        Matcher::new(&[QueueMode::Groups(mode)], 20.0).expect("the settings are valid");
    tickets
        .iter()
        .for_each(|ticket| matcher.queue(ticket.clone()).expect("the ticket is valid"));
    matcher
}

/// Parties of one to five at 60, 20, 8, 4 and 8 %, skill bell-shaped with a deviation of 300.
fn tickets() -> Vec<Ticket> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut next_player = 0;
    (0..PARTIES)
        .map(|party| {
            let size = match random.random_range(0..100) {
                0..60 => 1,
                60..80 => 2,
                80..88 => 3,
                88..92 => 4,
                _ => 5u8,
            };
            let members = (next_player..next_player + u64::from(size)).collect();
            next_player += u64::from(size);
            let power = u32::from(size) * random.random_range(1_000..2_000u32);
            let bell: f64 = (0..12).map(|_| random.random_range(-0.5..0.5f64)).sum();
            let (skill, leader_strength) = ((bell * 300.0) as i32, power / u32::from(size));
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
