//! Throng's transport compared with `renet`, `aeronet_transport` and `quinn-proto`, all on the same simulated networks, on one thread.
//!
//! ```text
//!                ┌─▶ end ─▶ datagrams ─▶ link: 55 to 59 ms, losses by seed and moment ─▶ end ─▶ compared, timed ─┐
//! town, crowd ───┤                                                                                              ├─▶ rows
//!                └─▶ ends of many clients, packets straight to the other ends ─▶ counted, processor time ───────┘
//! ```
//! *Town* is that of `throng bench net`: ticks of 33 ms. In each tick the server sends 150 bytes of unreliable messages and the client
//! 12, and in about every second tick the server sends an ordered message of 32 bytes. Time is simulated: the clock always reads zero, and a run is reproducible
//! (except for `quinn-proto`, whose handshake is random). All transports meet the same packet loss: burst losses depend on the send time,
//! other losses on the send time and the number of earlier datagrams at that time. Asserted for every transport: each ordered message
//! arrives once and in order, an unreliable one at most once; for throng also that its figures are those of its own bench.
//!
//! *Crowd* is that of `throng bench net`, too: 20 unreliable and 2 ordered messages of 12 bytes down per client and tick, one unreliable
//! message up, without a network. Timed, in CPU time of the thread, is the server's work: turning all messages to all clients into packets,
//! and receiving the client packets of three ticks ago. Checked: everything that is not lost arrives.
//!
//! The same for all: the messages, their send times, the networks, the definition of delivery time (when the packet is handed over, without
//! waiting for a frame), the IP and UDP headers (28 bytes per datagram), and encryption tags of 16 bytes.
//!
//! Different:
//! - Encryption. `quinn-proto` always encrypts: its bytes and times include TLS, so it is also compared with throng with
//!   encryption. The bytes of throng, `renet` and `aeronet_transport` include 20 per datagram for it, as in netcode; their times
//!   include none. (`renet` is encrypted like that; `aeronet_transport` leaves encryption to the layer below, which may need more.)
//! - When ends send. Throng, `renet` and `aeronet_transport` send once per tick, the client in the middle of the server's.
//!   `quinn-proto` acknowledges and retransmits by timers, as its driver does, and then sends separate acknowledgement datagrams.
//! - Each has its default settings. `renet` retransmits after 300 ms, on any network; it is also measured at 150 ms, at which
//!   nothing that arrives is retransmitted on this network, as it would be a tick earlier, and at every tick until acknowledged.
//!   The retransmission of `aeronet_transport` has no setting, that of `quinn-proto` few: immediate acknowledgements gained it 1 ms
//!   of a p99, for 6 % more bytes.
//! - `quinn-proto` holds back data beyond its congestion window, throng and `renet` beyond a byte budget, which is never used up
//!   here; throng and `quinn-proto` probe for a larger MTU. The connections of `renet` and `aeronet_transport` are used without
//!   the lookup by client: the table of `renet`'s server, the entities and systems of `aeronet`. The times of `quinn-proto` include
//!   the lookup of a connection by its number.
//! - `quinn-proto` has only byte streams, so its ordered messages carry a length byte of ours.
//! - Memory is what the servers' ends hold on the heap after the crowd has sent for 200 ticks, which includes unacknowledged data
//!   and the tables of `quinn-proto`'s endpoint. Counting takes 3 ns per allocation.

mod aeronet;
mod crowd;
mod end;
mod ours;
mod quinn;
mod renet;
mod town;

use std::error::Error;

use throng::net::EndpointSettings;
use throng_net::conditioner::{LossModel, NetworkConditioner};
use throng_net::workload::{self, TICK_US};

use crate::Row;
use aeronet::Aeronet;
use crowd::{Cost, CrowdLoss, crowd};
use end::Transport;
use ours::{Ours, OursSealed};
use quinn::Quinn;
use renet::Renet;
use town::{Town, town};

const SYSTEM: &str = "net";

/// The seed of all networks.
const SEED: u64 = 12_345;

const TICKS: u64 = 100_000;

/// Number of clients of a crowd.
const CLIENTS: usize = 500;

const TICK_MS: f64 = TICK_US as f64 / 1e3;

/// One-way delay, its jitter, and 1.5 ticks, in milliseconds.
const SOON_MS: f64 = 55.0 + 4.0 + 1.5 * TICK_MS;

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

const RENETS: [Renet; 3] = [
    Renet {
        name: "renet 2.0",
        resend_ms: 300,
    },
    Renet {
        name: "renet 2.0, 150 ms",
        resend_ms: 150,
    },
    Renet {
        name: "renet 2.0, each tick",
        resend_ms: 30,
    },
];

pub fn measure() -> Result<Vec<Row>, Box<dyn Error>> {
    let quinn = Quinn::new()?;
    let lossless = NetworkConditioner::with_loss(LossModel::Independent(0.0));
    let reliable = EndpointSettings::default().for_reliable_carrier();
    let once_bytes = workload::simulate_town(reliable, lossless, TICKS, SEED).down_bytes;
    let mut rows = Vec::new();
    for (loss, link) in LOSSES {
        let model = NetworkConditioner::with_loss(link);
        let ours = town(&Ours, model, TICKS, SEED);
        let own_bench = workload::simulate_town(EndpointSettings::default(), model, TICKS, SEED);
        assert_eq!(
            ours.figures, own_bench,
            "{loss}: differs from throng's own bench"
        );
        let mut peers = Vec::new();
        let mut beside = |name: &'static str, theirs: &Town| {
            peers.push(town_rows(loss, &ours, name, theirs, once_bytes).into_iter());
        };
        for renet in &RENETS {
            beside(renet.name(), &town(renet, model, TICKS, SEED));
        }
        beside(Aeronet.name(), &town(&Aeronet, model, TICKS, SEED));
        beside(quinn.name(), &town(&quinn, model, TICKS, SEED));
        rows.extend(figure_by_figure(peers));
    }
    for (loss, lost) in [
        ("no loss", CrowdLoss(None)),
        ("10 % lost", CrowdLoss(Some(10))),
    ] {
        let ours = crowd(&Ours, CLIENTS, lost);
        let sealed = crowd(&OursSealed, CLIENTS, lost);
        let theirs = [
            (OursSealed.name(), &sealed),
            (RENETS[0].name(), &crowd(&RENETS[0], CLIENTS, lost)),
            (Aeronet.name(), &crowd(&Aeronet, CLIENTS, lost)),
        ];
        let unsealed = theirs.map(|(name, theirs)| {
            let rows = crowd_rows(loss, &ours, name, theirs, "throng without sealing");
            rows.into_iter().map(aiming).collect::<Vec<_>>().into_iter()
        });
        let theirs = crowd(&quinn, CLIENTS, lost);
        let with_sealing = crowd_rows(loss, &sealed, quinn.name(), &theirs, "both with sealing");
        let peers = unsealed.into_iter().chain([with_sealing.into_iter()]);
        rows.extend(figure_by_figure(peers.collect()));
    }
    Ok(rows)
}

/// Reorders rows: the first row of each peer, then the second of each, and so on.
fn figure_by_figure(mut peers: Vec<std::vec::IntoIter<Row>>) -> Vec<Row> {
    let rounds = peers.first().map_or(0, ExactSizeIterator::len);
    let round = |_| {
        peers
            .iter_mut()
            .filter_map(Iterator::next)
            .collect::<Vec<_>>()
    };
    (0..rounds).flat_map(round).collect()
}

/// Throng's town compared with another's.
fn town_rows(
    loss: &str,
    ours: &Town,
    name: &'static str,
    theirs: &Town,
    once_bytes: f64,
) -> Vec<Row> {
    let row = |case: &str, of: &dyn Fn(&Town) -> f64, unit| {
        let case = format!("{loss}: {case}, {name}");
        Row::beside(SYSTEM, case, [of(ours), of(theirs)], unit, name)
    };
    let quantile = |case, share| {
        row(case, &|town| town.figures.quantile_ms(share), "ms")
            .about("Time from the push of an ordered message to its delivery.")
    };
    let soon = row(
        "soon",
        &|town| town.figures.share_within(SOON_MS) * 100.0,
        "%",
    )
    .more_is_better()
    .about(format!(
        "Share of ordered messages delivered within the one-way delay, its jitter and 1.5 ticks ({SOON_MS} ms)."
    ));
    let bytes = row("bytes", &|town| town.figures.down_bytes, "B").about(format!(
        "Bytes per tick from the server, with IP, UDP and encryption, in {:.2} and {:.2} datagrams; from the client {:.0} and {:.0}. Each byte sent once: {once_bytes:.0}.",
        ours.down_packets, theirs.down_packets, ours.figures.up_bytes, theirs.figures.up_bytes
    ));
    let unreliable = row("unreliable", &|town| town.unreliable_arrived * 100.0, "%")
        .more_is_better()
        .about("Share of unreliable messages that arrive.");
    let (p50, p99, p999) = (
        quantile("p50", 0.5),
        quantile("p99", 0.99),
        quantile("p99.9", 0.999),
    );
    let (soon, p99, p999, bytes) = match loss {
        "5 % lost" => (soon, p99.aiming_below(SOON_MS), p999, bytes),
        "10 % lost" => (
            soon.aiming_above(98.8),
            p99,
            p999.aiming_below(55.0 + 3.5 * TICK_MS),
            bytes.aiming_below((1.25 * once_bytes).round()),
        ),
        "10 % in bursts" => (soon, p99.aiming_below(200.0), p999, bytes),
        _ => (soon, p99, p999, bytes),
    };
    vec![soon, p50, p99, p999, bytes, unreliable]
}

/// The cost of a client in throng, compared with another transport.
fn crowd_rows(loss: &str, ours: &Cost, name: &'static str, theirs: &Cost, what: &str) -> Vec<Row> {
    let row = |case: &str, values, unit| {
        let case = format!("{loss}: {case}, {name}");
        Row::beside(SYSTEM, case, values, unit, name)
    };
    let packets = format!("{:.2} and {:.2} datagrams", ours.packets, theirs.packets);
    vec![
        row("send", [ours.send_ns, theirs.send_ns], "ns").about(format!(
            "CPU time to push 22 messages to a client and make its packets ({packets}); {what}."
        )),
        row("receive", [ours.receive_ns, theirs.receive_ns], "ns").about(format!(
            "CPU time to receive a client's packets of a tick; {what}."
        )),
        row(
            "allocations",
            [ours.allocations, theirs.allocations],
            "calls",
        )
        .about("Allocations of sending and receiving, per client and tick."),
        row("memory", [ours.bytes, theirs.bytes], "B")
            .about("Heap memory of the server's end of a connection."),
    ]
}

/// Adds the targets of throng's core.
fn aiming(row: Row) -> Row {
    match row.unit {
        "ns" => row.aiming_below(1_000.0),
        "calls" => row.aiming_below(0.0),
        _ => row.aiming_below(12_000.0),
    }
}
