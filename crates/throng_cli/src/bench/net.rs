//! `throng bench net`: a town's messages over a network that loses packets, in simulated time, compared with sending each byte once; and
//! the CPU cost of the core per client and tick, measured.
//!
//! The one-way delay is 55 ms plus up to 4 ms; both ends send every 33 ms. In a town the server sends 150 bytes of unreliable messages per
//! tick, and in about every second tick a message of 32 bytes on an ordered stream. A latency is the time from the push of such a message
//! to its delivery; bytes include the overhead of IP, UDP and encryption.

use super::CliError;
use super::rows::BenchRow;
use throng::net::EndpointSettings;
use throng::sim::clock::Stopwatch;
use throng_net::conditioner::{LossModel, NetworkConditioner};
use throng_net::workload::{CROWD_MESSAGES, ConnectedCrowd, TICK_US, TownResult, simulate_town};

const SYSTEM: &str = "net";

/// The seed of all networks.
const SEED: u64 = 12_345;

/// Length of a tick, delay of a packet without loss, and jitter, in milliseconds.
const TICK_MS: f64 = TICK_US as f64 / 1e3;
const ONE_WAY_MS: f64 = 55.0;
const JITTER_MS: f64 = 4.0;

/// The loss models, by name.
const LOSSES: [(&str, LossModel); 4] = [
    ("no loss", LossModel::Independent(0.0)),
    ("5 % lost", LossModel::Independent(0.05)),
    ("10 % lost", LossModel::Independent(0.1)),
    (
        "10 % in bursts",
        LossModel::Bursts {
            share: 0.1,
            mean_us: 50_000.0,
        },
    ),
];

pub(super) fn measure(quick: bool) -> Result<Vec<BenchRow>, CliError> {
    let ticks = if quick { 30_000 } else { 100_000 };
    let lossless = NetworkConditioner::with_loss(LossModel::Independent(0.0));
    let once = simulate_town(
        EndpointSettings::default().for_reliable_carrier(),
        lossless,
        ticks,
        SEED,
    );
    let mut rows = Vec::new();
    for (name, loss) in LOSSES {
        let model = NetworkConditioner::with_loss(loss);
        let figures = simulate_town(EndpointSettings::default(), model, ticks, SEED);
        rows.extend(latencies(name, &figures));
        rows.push(bytes(name, &figures, &once));
    }
    let (clients, rounds) = if quick { (500, 61) } else { (2_000, 121) };
    for (name, lost_one_in) in [("no loss", None), ("10 % lost", Some(10))] {
        rows.extend(costs(name, clients, lost_one_in, rounds));
    }
    Ok(rows)
}

/// Delivery times of a town's ordered messages, with the targets for each loss model.
fn latencies(name: &str, figures: &TownResult) -> Vec<BenchRow> {
    let row = |quantile: &str, share: f64| {
        BenchRow::new(
            SYSTEM,
            format!("{name}: {quantile}"),
            figures.quantile_ms(share),
            "ms",
        )
        .about("Time from the push of an ordered message to its delivery.")
        .with_comparison("each message arrives once, in order", figures.missing == 0)
    };
    let aim = |row: BenchRow, most_ms: f64| row.with_target_below(most_ms, "ms");
    let (p50, p99, p999) = (row("p50", 0.5), row("p99", 0.99), row("p99.9", 0.999));
    let soon_ms = ONE_WAY_MS + JITTER_MS + 1.5 * TICK_MS;
    let soon = BenchRow::new(
        SYSTEM,
        format!("{name}: soon"),
        figures.share_within(soon_ms) * 100.0,
        "%",
    )
    .more_is_better()
    .about(format!(
        "Share of ordered messages delivered within the one-way delay, its jitter and 1.5 ticks ({soon_ms} ms)."
    ));
    match name {
        "5 % lost" => vec![p50, aim(p99, soon_ms), p999],
        "10 % lost" => vec![
            p50,
            p99,
            aim(p999, ONE_WAY_MS + 3.5 * TICK_MS),
            soon.with_target_above(98.8, "%"),
        ],
        "10 % in bursts" => vec![p50, aim(p99, 200.0), p999],
        _ => vec![p50, p99, p999],
    }
}

/// Bytes per tick from the server, compared with sending each byte once without acknowledgements.
fn bytes(name: &str, figures: &TownResult, once: &TownResult) -> BenchRow {
    let row = BenchRow::new(SYSTEM, format!("{name}: bytes"), figures.down_bytes, "B")
        .with_reference("sent once", once.down_bytes)
        .about(format!(
            "Bytes per tick from the server, with IP, UDP and encryption; from the client {:.0}.",
            figures.up_bytes
        ));
    if name == "10 % lost" {
        let meets = figures.down_bytes <= 1.25 * once.down_bytes;
        row.with_target("<= 25 % more than sent once", meets)
    } else {
        row
    }
}

/// The server's cost of the core per client and tick.
fn costs(name: &str, clients: usize, lost_one_in: Option<usize>, rounds: usize) -> Vec<BenchRow> {
    let mut crowd = ConnectedCrowd::new(clients, lost_one_in);
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    let (mut sent, mut replies) = (0, 0);
    // The first half warms up buffers and estimates.
    for round in 0..2 * rounds {
        let mut watch = Stopwatch::start();
        crowd.send();
        let sent_ns = watch.lap_ns();
        crowd.run_clients();
        watch.lap_ns();
        let received = crowd.receive();
        let received_ns = watch.lap_ns();
        if round >= rounds {
            sent += clients;
            replies += received;
            sending.push(sent_ns as f64 / clients as f64);
            receiving.push(received_ns as f64 / clients as f64);
        }
    }
    let messages = CROWD_MESSAGES.0 + CROWD_MESSAGES.1;
    let a_message: Vec<f64> = sending.iter().map(|ns| ns / messages as f64).collect();
    // A lost packet loses all of its unreliable messages.
    let least = if lost_one_in.is_some() { 0.85 } else { 0.95 };
    let all = replies as f64 >= least * sent as f64 && crowd.delivered > sent as u64;
    let (unreliable, reliable) = CROWD_MESSAGES;
    vec![
        BenchRow::repeated(SYSTEM, format!("{name}: send"), &sending, "ns/client")
            .about(format!(
                "Pushing {unreliable} unreliable and {reliable} ordered messages of 12 bytes and building the packet, per client, of {clients} clients."
            ))
            .with_comparison("all messages that are not lost arrive", all)
            .with_target_below(1_000.0, "ns"),
        BenchRow::repeated(SYSTEM, format!("{name}: message"), &a_message, "ns/msg")
            .about("The same per message.")
            .with_target_below(40.0, "ns"),
        BenchRow::repeated(SYSTEM, format!("{name}: receive"), &receiving, "ns/client")
            .about("Receiving a client's packet with acknowledgements and a message of 12 bytes.")
            .with_target_below(1_000.0, "ns"),
        BenchRow::new(SYSTEM, format!("{name}: memory"), crowd.client_bytes() as f64, "B")
            .about("Memory of the core per client, including buffers.")
            .with_target_below(12_000.0, "B"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_and_a_crowd_gets_replies() {
        let model = NetworkConditioner::with_loss(LossModel::Independent(0.1));
        let figures = simulate_town(EndpointSettings::default(), model, 300, SEED);
        let rows = latencies("10 % lost", &figures);
        assert!(rows.iter().all(|row| row.results_agree != Some(false)));
        let rows = costs("10 % lost", 20, Some(10), 10);
        assert!(rows.iter().all(|row| row.results_agree != Some(false)));
    }
}
