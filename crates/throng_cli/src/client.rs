//! `throng client`: synthetic players that connect to a server from another process.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use clap::builder::RangedI64ValueParser;
use serde_json::{Value, json};

use super::address::address;
use super::client_faults::{ClientFault, ClientFaultPlan};
use super::key_file::KeyFile;
use super::mirror_check::MirrorCheckClient;
use super::network_args::NetworkArgs;
use super::seconds::seconds;
use super::token::issue;
use super::{CliError, CliStatus, is_interrupted, listen_for_interrupt, print, whole_number};
use throng::net::{EndpointSettings, TokenKey, UdpClient};
use throng::sim::clock::Pacer;
use throng::wire::{Channel, PacketHeader, WireReader, expand_counter};
use throng_net::bot_client::BotClient;

/// Arguments of `throng client`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ClientCommand {
    /// Number of clients
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Address of the server
    #[arg(long, value_name = "HOST:PORT", value_parser = address, default_value = "127.0.0.1:7000")]
    connect: SocketAddr,
    #[command(flatten)]
    key: KeyFile,
    /// Id of the first player
    #[arg(long, value_name = "N", value_parser = whole_number, default_value_t = 1)]
    first: u64,
    /// How long the clients walk
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    duration: f64,
    #[command(flatten)]
    link: NetworkArgs,
    /// Inputs per second of each client
    #[arg(long, value_name = "HZ", value_parser = per_second, default_value = "20")]
    rate: f64,
    /// Clients that connect per second
    #[arg(long, value_name = "N", value_parser = per_second, default_value = "200")]
    arrivals: f64,
    /// Simulate N changes of a client's port (NAT), spread at random over the run
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = times())]
    rebinds: u32,
    /// Simulate N crashes of a client, which reconnects with a new token
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = times())]
    restarts: u32,
    /// Disconnect after this time without a packet from the server
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    timeout: f64,
    /// Address of the server's --mirror-check: compare every client with it at the end
    #[arg(long, alias = "truth", value_name = "HOST:PORT", value_parser = address)]
    mirror_check: Option<SocketAddr>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  throng client
  throng client 500 --loss 10% --delay-ms 55 --jitter-ms 4
  throng client 100 --key server.key --connect 203.0.113.5:7000
  throng client 500 --duration 600s --loss 10% --rebinds 1000 --restarts 200

Each client connects with its own token, logs in, walks and keeps a mirror.
Lateness is measured against the fastest packet of the last two seconds: it
shows delays by loss and retransmission, not the network's own delay. The
clients walk at the speed that the server allows, and do not know the map, so
walls cause corrections. Reliable packets and inputs are numbered: a lost or
duplicated packet is reported as a protocol error, a lost input as one without a
reply.

Exit codes: 0 all clients were admitted, stayed connected and recovered, and
equal the server as far as they were compared; 1 otherwise.";

/// Time between two polls of the sockets.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum time to wait for pending recoveries after the duration: much longer than needed, so that only a fault exceeds it.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time in which comparisons are repeated after all clients have stopped, until their mirrors equal the server's state.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// Validity of a token, in seconds.
const TOKEN_S: u64 = 60;

/// Mirrors compared between two polls of the sockets.
const COMPARE_BATCH: usize = 32;

/// Maximum number of differences shown.
const SHOWN_MAX: usize = 5;

/// Bins of the histogram of packet delays, each a tenth of a millisecond; longer delays count in the last bin.
const LATENESS_MAX: usize = 20_000;

fn number_within(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!(
            "expected a number from {} to {}",
            range.start(),
            range.end()
        )
    })
}

fn times() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=1_000_000)
}

fn per_second(text: &str) -> Result<f64, String> {
    number_within(text, 0.1..=10_000.0)
}

/// A client and its player.
struct BotPlayer {
    client: UdpClient,
    bot: BotClient,
    next_input_at: Duration,
    /// Why the connection ended.
    end: Option<String>,
    was_open: bool,
    /// The fault that it is recovering from.
    fault: Option<ClientFault>,
    /// Counters of its former connections.
    previous_totals: ConnectionTotals,
}

/// Counters of a connection, which survive a reconnect.
#[derive(Clone, Copy, Debug, Default)]
struct ConnectionTotals {
    bytes_in: u64,
    bytes_out: u64,
    corrections: u64,
}

/// Delays of reliable packets.
struct Lateness {
    counts: Vec<u64>,
    /// The earliest possible start of tick 0, in microseconds of this process, from the packets of the current second and of the one
    /// before. Older packets do not count, because the server's ticks may slip.
    zero_us: [f64; 2],
    second: u64,
    tick: u64,
    /// Whether delays are counted: not before the earliest arrival is known.
    is_counting: bool,
}

impl Lateness {
    fn new() -> Self {
        Self {
            counts: vec![0; LATENESS_MAX],
            zero_us: [f64::INFINITY; 2],
            second: 0,
            tick: 0,
            is_counting: false,
        }
    }

    fn record(&mut self, packet: &[u8], tick_s: f32, now_us: f64) {
        let Ok(header) = PacketHeader::read(&mut WireReader::new(packet)) else {
            return;
        };
        if header.channel != Channel::Reliable || tick_s <= 0.0 {
            return;
        }
        let tick = expand_counter(self.tick, header.tick);
        self.tick = self.tick.max(tick);
        let at_us = tick as f64 * f64::from(tick_s) * 1e6;
        let second = (now_us / 1e6) as u64;
        if second > self.second {
            self.second = second;
            self.zero_us = [f64::INFINITY, self.zero_us[0]];
        }
        self.zero_us[0] = self.zero_us[0].min(now_us - at_us);
        if self.is_counting {
            let zero_us = self.zero_us[0].min(self.zero_us[1]);
            let late = (now_us - at_us - zero_us) / 100.0;
            self.counts[(late as usize).min(LATENESS_MAX - 1)] += 1;
        }
    }

    /// The delay in milliseconds within which this share of packets arrived; `None` without packets.
    fn ms(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        let mut left = (all as f64 * share).ceil() as u64;
        let at = self.counts.iter().position(|&count| {
            left = left.saturating_sub(count);
            left == 0
        });
        at.map(|at| (at + 1) as f64 / 10.0)
    }
}

/// The result of the mirror comparison.
#[derive(Default)]
struct MirrorCheckResult {
    same: u64,
    offline: u64,
    differing: u64,
    shown: Vec<String>,
}

/// All clients.
struct BotClients {
    bots: Vec<BotPlayer>,
    lateness: Lateness,
    fault_plan: ClientFaultPlan,
    started_at: Instant,
}

impl ClientCommand {
    /// Runs the clients, and prints the result.
    pub(super) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let key = self.key.read(&[self.connect])?.first();
        listen_for_interrupt();
        let walk = Duration::from_secs_f64(self.duration);
        let mut clients = BotClients {
            bots: Vec::new(),
            lateness: Lateness::new(),
            fault_plan: ClientFaultPlan::new([self.rebinds, self.restarts], walk, self.link.seed),
            started_at: Instant::now(),
        };
        let step = Duration::from_secs_f64(1.0 / self.rate);
        let mut pacer = Pacer::new(POLL_INTERVAL);
        let mut all_here = None;
        while !is_interrupted() {
            let now = clients.started_at.elapsed();
            let due = (now.as_secs_f64() * self.arrivals) as u64 + 1;
            while (clients.bots.len() as u64) < due.min(u64::from(self.count)) {
                let player = self.connect_bot(clients.bots.len() as u64, key)?;
                clients.bots.push(player);
            }
            clients.poll(step);
            let is_all = clients.bots.len() == self.count as usize;
            if all_here.is_none() && is_all && clients.bots.iter().all(BotPlayer::has_login_ended) {
                all_here = Some(now);
                clients.lateness.is_counting = true;
            }
            if let Some(since) = all_here {
                self.inject_faults(&mut clients, now - since, key)?;
            }
            let is_nobody = is_all && clients.bots.iter().all(|it| it.end.is_some());
            let grace = if clients.fault_plan.is_finished() {
                Duration::ZERO
            } else {
                RECOVERY_TIMEOUT
            };
            if is_nobody || all_here.is_some_and(|since| now >= since + walk + grace) {
                break;
            }
            pacer.wait();
        }
        let mut figures = clients.to_json();
        let compared = self
            .mirror_check
            .map(|truth| clients.compare_mirrors(truth, step));
        let compared = compared.transpose();
        let compared =
            compared.map_err(|error| CliError::new(format!("--mirror-check: {error}")))?;
        if let Some(found) = &compared {
            figures["mirrors"] = json!({
                "same": found.same,
                "differing": found.differing,
                "away": found.offline,
            });
            figures["unanswered"] = clients.unacknowledged_inputs().into();
        }
        for player in &mut clients.bots {
            player.client.leave();
        }
        if self.json {
            print(&figures.to_string())?;
        } else if !quiet {
            let lines = text_lines(&figures, compared.as_ref());
            lines.iter().try_for_each(|line| print(line))?;
        }
        if is_interrupted() {
            return Ok(super::interrupted_status());
        }
        let is_answered = compared.is_none() || clients.unacknowledged_inputs() == 0;
        let is_true = compared.is_none_or(|found| found.differing + found.offline == 0);
        let is_whole =
            clients.bots.iter().all(BotPlayer::is_healthy) && clients.fault_plan.is_finished();
        Ok(if is_true && is_answered && is_whole {
            CliStatus::Done
        } else {
            CliStatus::Failed
        })
    }

    /// Starts the faults that are scheduled up to `now`, the time since all clients connected.
    fn inject_faults(
        &self,
        clients: &mut BotClients,
        now: Duration,
        key: TokenKey,
    ) -> Result<(), CliError> {
        while clients.fault_plan.is_due(now) {
            let idle: Vec<usize> = clients.fault_candidates().collect();
            let Some((nth, fault)) = clients.fault_plan.next(now, &idle) else {
                break;
            };
            let player = &mut clients.bots[nth];
            match fault {
                ClientFault::Rebind => player.client.rebind().map_err(|error| {
                    CliError::new(format!(
                        "could not open another socket for client {}: {error}",
                        nth + 1
                    ))
                })?,
                ClientFault::Restart => {
                    let before = player.totals();
                    let anew = self.connect_bot(nth as u64, key)?;
                    *player = BotPlayer {
                        previous_totals: before,
                        ..anew
                    };
                }
            }
            player.fault = Some(fault);
        }
        Ok(())
    }

    fn connect_bot(&self, nth: u64, key: TokenKey) -> Result<BotPlayer, CliError> {
        let player = self.first + nth;
        let times = (TOKEN_S, self.timeout.ceil() as i32);
        let token = issue(player, vec![self.connect], times, key)?;
        let client = UdpClient::connect(token, EndpointSettings::default());
        let client = client.map_err(|error| {
            CliError::new(format!(
                "could not open a socket for client {}: {error}",
                nth + 1
            ))
        })?;
        let client = match self.link.conditioner() {
            Some(link) => client.with_conditioner(link, self.link.seed ^ player.rotate_left(32)),
            None => client,
        };
        Ok(BotPlayer {
            client,
            bot: BotClient::new(player, self.link.seed),
            next_input_at: Duration::ZERO,
            end: None,
            was_open: false,
            fault: None,
            previous_totals: ConnectionTotals::default(),
        })
    }
}

impl BotPlayer {
    /// The counters of all its connections.
    fn totals(&self) -> ConnectionTotals {
        let totals = self.client.totals();
        ConnectionTotals {
            bytes_in: self.previous_totals.bytes_in + totals.bytes_in,
            bytes_out: self.previous_totals.bytes_out + totals.bytes_out,
            corrections: self.previous_totals.corrections + self.bot.corrections(),
        }
    }

    /// Takes the fault if the client has recovered from it.
    fn take_recovered_fault(&mut self) -> Option<ClientFault> {
        let is_over = match self.fault? {
            ClientFault::Rebind => !self.client.connection().is_migrating(),
            ClientFault::Restart => self.bot.mirror().controlled_object().is_some(),
        };
        self.fault.take_if(|_| is_over)
    }

    /// Whether the client is in the world, or its connection ended.
    fn has_login_ended(&self) -> bool {
        self.end.is_some() || self.bot.mirror().controlled_object().is_some()
    }

    fn is_healthy(&self) -> bool {
        self.end.is_none() && self.was_open && self.bot.mirror_error().is_none()
    }
}

impl BotClients {
    /// Indices of connected clients without a pending fault.
    fn fault_candidates(&self) -> impl Iterator<Item = usize> {
        let is_idle = |it: &BotPlayer| {
            it.fault.is_none() && it.is_healthy() && it.bot.mirror().controlled_object().is_some()
        };
        let all = self.bots.iter().enumerate();
        all.filter_map(move |(nth, it)| is_idle(it).then_some(nth))
    }

    /// Number of inputs without an acknowledgement from the server.
    fn unacknowledged_inputs(&self) -> usize {
        let all = self.bots.iter();
        all.map(|it| it.bot.unhandled_inputs()).sum()
    }

    /// Receives packets, and runs the clients whose next input is due.
    fn poll(&mut self, step: Duration) {
        let Self {
            bots: players,
            lateness,
            fault_plan,
            started_at: began,
        } = self;
        let now = began.elapsed();
        for player in players.iter_mut().filter(|player| player.end.is_none()) {
            if let Some(recovered) = player.take_recovered_fault() {
                fault_plan.record_recovery(recovered);
            }
            let BotPlayer {
                client,
                bot,
                next_input_at: acts_at,
                end,
                was_open,
                ..
            } = player;
            let mut take = |packet: &[u8]| {
                bot.receive(packet);
                let now_us = began.elapsed().as_secs_f64() * 1e6;
                lateness.record(packet, bot.mirror().tick_s(), now_us);
            };
            let mut over = client.receive(&mut take).err();
            if now >= *acts_at {
                *acts_at = (*acts_at + step).max(now);
                if matches!(client.connection().is_open(), Ok(true)) {
                    *was_open = true;
                    // If too much is pending, the connection ends by itself.
                    bot.update(|message| {
                        let _ = client.send(message);
                    });
                }
                let mut take = |packet: &[u8]| bot.receive(packet);
                over = over.or(client.update(&mut take).err());
            }
            *end = over.map(|over| match bot.refusal() {
                Some(refusal) => format!("login refused: {refusal}"),
                None => over.to_string(),
            });
        }
    }

    /// Stops all clients, and compares each mirror with the server.
    fn compare_mirrors(
        &mut self,
        truth: SocketAddr,
        step: Duration,
    ) -> std::io::Result<MirrorCheckResult> {
        let mut mirror_check = MirrorCheckClient::connect(truth)?;
        mirror_check.request_halt()?;
        let until = Instant::now() + COMPARE_TIMEOUT;
        for player in &mut self.bots {
            player.bot.stop();
        }
        let mut pacer = Pacer::new(POLL_INTERVAL);
        let mut left: Vec<usize> = (0..self.bots.len()).collect();
        let mut found = MirrorCheckResult::default();
        loop {
            // Waits for packets in flight.
            for _ in 0..100 {
                self.poll(step);
                pacer.wait();
            }
            let is_last = Instant::now() >= until || is_interrupted();
            let mut differing = Vec::new();
            let pending = std::mem::take(&mut left);
            for some in pending.chunks(COMPARE_BATCH) {
                let held = some.iter().map(|&nth| &self.bots[nth].bot);
                let held: Vec<_> = held.map(|it| (it.player(), it.mirror())).collect();
                let replies = mirror_check.compare(&held)?;
                for (&nth, reply) in some.iter().zip(replies) {
                    match &*reply {
                        "same" => found.same += 1,
                        "away" => found.offline += 1,
                        _ => {
                            let player = self.bots[nth].bot.player();
                            differing.push(format!("player {player} {reply}"));
                            left.push(nth);
                        }
                    }
                }
                self.poll(step);
            }
            if (left.is_empty() && self.unacknowledged_inputs() == 0) || is_last {
                found.differing = left.len() as u64;
                differing.truncate(SHOWN_MAX);
                found.shown = differing;
                return Ok(found);
            }
        }
    }

    fn to_json(&self) -> Value {
        let all = &self.bots;
        let count = |is: fn(&BotPlayer) -> bool| all.iter().filter(|it| is(it)).count();
        // Clients that never connected have no statistics.
        let connected = all.iter().filter(|it| it.was_open);
        let endpoints = connected.map(|it| it.client.connection().endpoint());
        let mean = |of: &dyn Fn(&throng::net::ReliableEndpoint) -> f64| {
            let count = endpoints.clone().count();
            (count > 0).then(|| endpoints.clone().map(of).sum::<f64>() / count as f64)
        };
        let past: Vec<ConnectionTotals> = all.iter().map(BotPlayer::totals).collect();
        let total = |of: fn(&ConnectionTotals) -> u64| past.iter().map(of).sum::<u64>();
        let seconds = self.started_at.elapsed().as_secs_f64() * all.len().max(1) as f64;
        let rate = |bytes: u64| bytes as f64 / seconds;
        json!({
            "clients": all.len(),
            "connected": count(|it| it.was_open),
            "in_world": count(|it| it.bot.mirror().controlled_object().is_some()),
            "ended": count(|it| it.end.is_some()),
            "faults": count(|it| it.bot.mirror_error().is_some()),
            "late_ms": {
                "p50": self.lateness.ms(0.5),
                "p99": self.lateness.ms(0.99),
                "p999": self.lateness.ms(0.999),
                "max": self.lateness.ms(1.0),
            },
            "loss": mean(&|endpoint| f64::from(endpoint.loss())),
            "round_trip_ms": mean(&|endpoint| endpoint.round_trip_us() as f64 / 1e3),
            "bytes_down_per_s": rate(total(|past| past.bytes_in)),
            "bytes_up_per_s": rate(total(|past| past.bytes_out)),
            "corrections": total(|past| past.corrections),
            "rebinds": self.fault_plan.to_json(ClientFault::Rebind),
            "restarts": self.fault_plan.to_json(ClientFault::Restart),
            "ends": all.iter().filter_map(|it| it.end.clone()).take(SHOWN_MAX).collect::<Vec<_>>(),
        })
    }
}

fn text_lines(figures: &Value, compared: Option<&MirrorCheckResult>) -> Vec<String> {
    let number = |name: &str| figures[name].as_f64().unwrap_or_default();
    let shown = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
    let late = |name: &str| shown(figures["late_ms"][name].as_f64());
    let mut lines = vec![
        format!(
            "clients     {} of {} connected, {} in the world; {} disconnected, {} protocol errors",
            figures["connected"],
            figures["clients"],
            figures["in_world"],
            figures["ended"],
            figures["faults"]
        ),
        format!(
            "delay       p50 {} ms, p99 {}, p99.9 {}, max {} (reliable packets)",
            late("p50"),
            late("p99"),
            late("p999"),
            late("max")
        ),
        format!(
            "network     upstream loss {} %, round trip {} ms",
            shown(figures["loss"].as_f64().map(|share| share * 100.0)),
            shown(figures["round_trip_ms"].as_f64())
        ),
        format!(
            "bytes       {:.2} kB/s down, {:.2} kB/s up per client",
            number("bytes_down_per_s") / 1e3,
            number("bytes_up_per_s") / 1e3
        ),
        format!("prediction  {} corrections", figures["corrections"]),
    ];
    for (name, figures) in ["rebinds", "restarts"].map(|name| (name, &figures[name])) {
        if figures["asked"] != 0 {
            lines.push(format!(
                "{name:<12}{} of {} recovered, {} started",
                figures["survived"], figures["asked"], figures["begun"]
            ));
        }
    }
    if let Some(found) = compared {
        lines.push(format!(
            "mirrors     {} equal, {} different, {} offline; {} inputs unacknowledged",
            found.same, found.differing, found.offline, figures["unanswered"]
        ));
        lines.extend(
            found
                .shown
                .iter()
                .map(|shown| format!("            {shown}")),
        );
    }
    let ends = figures["ends"].as_array().into_iter().flatten();
    lines.extend(ends.filter_map(|end| Some(format!("ended       {}", end.as_str()?))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_out_of_range_are_refused() {
        assert_eq!(
            (per_second("0.1"), per_second("1e4")),
            (Ok(0.1), Ok(10_000.0))
        );
        for none in ["", "nan", "inf", "-1", "1e9"] {
            assert!(per_second(none).is_err(), "{none}");
        }
        let expected = "expected a number from 0.1 to 10000";
        assert_eq!(per_second("0").err().as_deref(), Some(expected));
    }

    #[test]
    fn lateness_counts_from_the_earliest_packet() {
        let mut lateness = Lateness::new();
        lateness.is_counting = true;
        for (tick, late_us) in [(10_u16, 0.0), (11, 0.0), (12, 30_000.0), (13, 1_000.0)] {
            let header = PacketHeader {
                channel: Channel::Reliable,
                epoch: 0,
                sequence: 0,
                tick,
                input: 0,
            };
            let now_us = 7_000.0 + f64::from(tick) * 50_000.0 + late_us;
            lateness.record(&header.to_bytes(), 0.05, now_us);
        }
        let round = |ms: Option<f64>| ms.map(|ms| ms.round() as u64);
        assert_eq!(
            [0.5, 0.75, 1.0].map(|share| round(lateness.ms(share))),
            [0, 1, 30].map(Some)
        );
        assert_eq!(Lateness::new().ms(0.5), None, "no packet was recorded");
    }
}
