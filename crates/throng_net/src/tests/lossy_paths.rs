//! Everything arrives exactly once and in order, whatever the path does.

use proptest::collection::vec;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_protocol::wire::CLIENT_MESSAGE_BYTES_MAX;

use super::Talk;
use crate::conditioner::{LossModel, NetworkConditioner};
use crate::workload::simulate_town;
use crate::{CountersStart, EndpointSettings, StreamId};

/// A path, and the messages sent over it.
#[derive(Clone, Debug)]
struct PathCase {
    model: NetworkConditioner,
    /// From the tenth tick on, longer packets are lost.
    narrows_to: usize,
    start: CountersStart,
    seed: u64,
    /// For each tick, the stream and length of messages, to the client and to the server.
    said: Vec<Vec<(bool, u8, usize)>>,
    unreliable: usize,
}

impl PathCase {
    fn settings() -> EndpointSettings {
        EndpointSettings {
            // The burst is small, so that bytes wait from time to time.
            burst_bytes: 8_000,
            ..EndpointSettings::default()
        }
    }

    fn check(&self) -> Result<(), String> {
        let mut talk = Talk::new(Self::settings(), self.start, self.model, self.seed);
        for (tick, said) in self.said.iter().enumerate() {
            if tick == 10 {
                let model = NetworkConditioner {
                    bytes_max: self.narrows_to,
                    ..self.model
                };
                talk.duplex.server.path.set_model(model);
                talk.duplex.client.path.set_model(model);
            }
            for &(is_down, stream, length) in said {
                let stream = StreamId::ALL[usize::from(stream) % 4];
                if is_down {
                    talk.down.push(&mut talk.duplex.server, stream, length);
                } else {
                    talk.up.push(
                        &mut talk.duplex.client,
                        stream,
                        length.min(CLIENT_MESSAGE_BYTES_MAX),
                    );
                }
            }
            for _ in 0..said.len().min(3) {
                talk.down
                    .push_unreliable(&mut talk.duplex.server, self.unreliable);
                talk.up
                    .push_unreliable(&mut talk.duplex.client, self.unreliable / 4);
            }
            talk.tick()?;
        }
        talk.run_until_complete(3_000)
    }

    fn drawn(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut some = |share: f64, most: f64| {
            if random.random_bool(share) {
                random.random::<f64>() * most
            } else {
                0.0
            }
        };
        let loss = LossModel::Independent(some(0.7, 0.4));
        let model = NetworkConditioner {
            delay_us: some(0.9, 120_000.0) as u64,
            jitter_us: some(0.7, 60_000.0) as u64,
            duplicated: some(0.4, 0.5),
            delayed: some(0.4, 0.4),
            extra_delay_us_max: some(1.0, 400_000.0) as u64,
            ..NetworkConditioner::with_loss(loss)
        };
        let loss = match random.random_range(0..3) {
            0 => LossModel::Bursts {
                share: random.random_range(0.01..0.4),
                mean_us: random.random_range(10_000.0..300_000.0),
            },
            _ => loss,
        };
        let start = CountersStart {
            packet: *pick(&mut random, &[0, 65_535, 65_500, 32_760]),
            offset: *pick(
                &mut random,
                &[0, (1 << 24) - 300, (1 << 23) - 300, u32::MAX - 300],
            ),
        };
        let message = |random: &mut Pcg64Mcg| {
            let length = match random.random_range(0..40) {
                0 => random.random_range(1_000..20_000),
                1..8 => random.random_range(100..1_000),
                _ => random.random_range(1..60),
            };
            (random.random_bool(0.7), random.random_range(0..4), length)
        };
        let ticks = random.random_range(1..40);
        let said = (0..ticks).map(|_| {
            let count = random.random_range(0..4);
            (0..count).map(|_| message(&mut random)).collect()
        });
        Self {
            model: NetworkConditioner { loss, ..model },
            said: said.collect(),
            narrows_to: *pick(&mut random, &[usize::MAX, usize::MAX, 1_100, 500]),
            start,
            seed,
            unreliable: random.random_range(0..500),
        }
    }
}

fn pick<'a, T>(random: &mut Pcg64Mcg, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}

/// Number of random paths.
const PATHS: u64 = 10_000;
const THREADS: u64 = 4;

#[test]
fn messages_arrive_once_in_order_on_ten_thousand_paths() {
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || {
                for seed in (first..PATHS).step_by(THREADS as usize) {
                    let case = PathCase::drawn(seed);
                    if let Err(fault) = case.check() {
                        panic!("link {seed}: {fault}\n{case:?}");
                    }
                }
            });
        }
    });
}

fn loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        (0.0..0.4).prop_map(LossModel::Independent),
        (0.0..0.4, 10_000.0..300_000.0)
            .prop_map(|(share, mean_us)| LossModel::Bursts { share, mean_us }),
    ]
}

fn case() -> impl Strategy<Value = PathCase> {
    let times = (0_u64..120_000, 0_u64..60_000, 0_u64..400_000);
    let shares = (0.0..0.4, 0.0..0.4);
    let start = (
        any::<u16>(),
        prop_oneof![any::<u32>(), Just(u32::MAX - 100)],
    );
    let message = (
        any::<bool>(),
        0_u8..4,
        prop_oneof![1_usize..60, 1_usize..3_000],
    );
    let said = vec(vec(message, 0..4), 1..30);
    let rest = (
        any::<u64>(),
        0_usize..500,
        prop_oneof![Just(usize::MAX), 490_usize..1_300],
    );
    (loss(), times, shares, start, said, rest).prop_map(
        |(loss, (delay_us, jitter_us, late_us), (doubled, late), start, said, rest)| PathCase {
            model: NetworkConditioner {
                delay_us,
                jitter_us,
                loss,
                duplicated: doubled,
                delayed: late,
                extra_delay_us_max: late_us,
                bytes_max: usize::MAX,
            },
            narrows_to: rest.2,
            start: CountersStart {
                packet: start.0,
                offset: start.1,
            },
            seed: rest.0,
            said,
            unreliable: rest.1,
        },
    )
}

proptest! {
    #![proptest_config(draws!())]

    /// The same with cases that proptest can shrink.
    #[test]
    fn messages_arrive_once_in_order_on_any_path(case in case()) {
        prop_assert_eq!(case.check(), Ok(()));
    }
}

#[test]
fn a_day_of_packets_wraps_every_counter() {
    // 70,000 packets, and with long messages 2²⁴ bytes.
    let model = NetworkConditioner::with_loss(LossModel::Independent(0.02));
    let start = CountersStart {
        packet: 0,
        offset: u32::MAX - (1 << 23),
    };
    let settings = EndpointSettings {
        bytes_per_s: 1 << 30,
        burst_bytes: 1 << 20,
        ..EndpointSettings::default()
    };
    let mut talk = Talk::new(settings, start, model, 3);
    for nth in 0..70_000 {
        if nth % 100 == 0 {
            talk.down
                .push(&mut talk.duplex.server, StreamId::Bulk, 24_000);
        }
        talk.down.push(&mut talk.duplex.server, StreamId::World, 8);
        talk.tick().unwrap();
    }
    talk.run_until_complete(1_000).unwrap();
}

#[test]
fn loss_adds_little_latency() {
    let within = |loss| {
        let model = NetworkConditioner::with_loss(loss);
        simulate_town(EndpointSettings::default(), model, 40_000, 7)
    };
    let tenth = within(LossModel::Independent(0.1));
    assert_eq!(tenth.missing, 0);
    let share = tenth.share_within(55.0 + 4.0 + 1.5 * 33.0);
    assert!(share >= 0.985, "{share} came within a tick and a half");
    assert!(tenth.quantile_ms(0.999) <= 55.0 + 3.5 * 33.0);
    let bursts = within(LossModel::Bursts {
        share: 0.1,
        mean_us: 50_000.0,
    });
    assert!(
        bursts.quantile_ms(0.99) <= 230.0,
        "{}",
        bursts.quantile_ms(0.99)
    );
    let model = NetworkConditioner::with_loss(LossModel::Independent(0.0));
    let once = simulate_town(
        EndpointSettings::default().for_reliable_carrier(),
        model,
        40_000,
        7,
    );
    let ratio = tenth.down_bytes / once.down_bytes;
    assert!(ratio <= 1.3, "{ratio} times as many bytes as sent once");
}
