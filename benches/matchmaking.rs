//! Heartbeats over a full queue: from scratch, and with a queue kept at a million parties; and packing alone, compared with the
//! reference's.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion};
use throng::matchmaking::{HeartbeatOutcome, Packing};
use throng_matchmaking::workload::{
    ArrivalPacker, Churn, PartyPowerSource, SkillEntry, SweepSeat, Sweeper, matcher_with_queue,
    tickets,
};

const PARTIES: u32 = 10_000;

pub fn bench(criterion: &mut Criterion) {
    let tickets = tickets(PARTIES, PartyPowerSource::Skill);
    let players: usize = tickets.iter().map(|ticket| ticket.members.len()).sum();
    for (name, packing) in [("windows", Packing::Windows), ("arrival", Packing::Arrival)] {
        let queued =
            matcher_with_queue(packing, PARTIES, &tickets).expect("the settings are valid");
        criterion.bench_function(&format!("matchmaking::{name}/{PARTIES}"), |bencher| {
            bencher.iter_batched(
                || queued.clone(),
                |mut matcher| {
                    let mut beat = HeartbeatOutcome::default();
                    matcher.run_heartbeat(10, &mut beat);
                    assert_eq!(10 * beat.matches.len() + matcher.waiting_players(), players);
                    (matcher, beat)
                },
                BatchSize::LargeInput,
            );
        });
    }
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
    criterion.bench_function(&format!("matchmaking::sweep/{PARTIES}"), |bencher| {
        bencher.iter(|| black_box(sweeper.sweep(black_box(&seats), 5, None).len()));
    });
    criterion.bench_function(&format!("matchmaking::arrival_pack/{PARTIES}"), |bencher| {
        bencher.iter(|| {
            let parties = tickets.iter().map(|ticket| (ticket.size, ticket.power));
            black_box(arrival.pack(parties, 5))
        });
    });
    let mut churn = Churn::new(1_000_000, 1_000, 500).expect("the settings are valid");
    let mut beat = HeartbeatOutcome::default();
    criterion.bench_function("matchmaking::heartbeat/1000000", |bencher| {
        bencher.iter_custom(|times| {
            let mut spent = Duration::ZERO;
            for _ in 0..times {
                beat.matches.clear();
                let requests = churn.requests(10_000);
                let start = Instant::now();
                let made = churn.heartbeat(requests, &mut beat);
                spent += start.elapsed();
                assert_eq!(made, Ok(500));
            }
            spent
        });
    });
}
