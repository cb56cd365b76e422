//! `throng relay`: simulated network conditions, as a process between clients and a server.
//!
//! ```text
//! clients ──▶ front socket ──▶ up ──▶ a socket a client ──▶ server
//!         ◀──              ◀── down ◀──                 ◀──
//! ```
//! For the server each client has its own address, and a client that changes its port is a new client, as behind a router. Datagrams are
//! not parsed, so any protocol works.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::address::address;
use super::network_args::NetworkArgs;
use super::seconds::seconds;
use super::{CliError, CliStatus, is_interrupted, listen_for_interrupt, print};
use throng::sim::clock::Stopwatch;
use throng_net::conditioner::{ConditionedPath, LossModel, NetworkConditioner};

/// Arguments of `throng relay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Relay {
    /// Address of the server
    #[arg(long, value_name = "HOST:PORT", value_parser = address, default_value = "127.0.0.1:7000")]
    to: SocketAddr,
    /// Address that clients connect to
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7100")]
    listen: SocketAddr,
    #[command(flatten)]
    link: NetworkArgs,
    /// How long to run [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  throng serve town --listen 127.0.0.1:7000 --public 127.0.0.1:7100
  throng relay --loss 10% --delay-ms 55 --jitter-ms 4
  throng client 500 --connect 127.0.0.1:7100

Forwards UDP between clients and a server, and loses, delays and reorders it.
Start the server with the relay's address as --public. Packets arrive up to one
millisecond later than configured. The same seed loses the same packets only if
they are sent at the same times.

Exit codes: 0 stopped as requested; 2 no socket.";

/// Time between two polls of the sockets.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of clients; datagrams of further ones are dropped.
const CLIENTS_MAX: usize = 16_384;

/// Maximum number of datagrams in flight per client and direction; further ones are dropped.
const IN_FLIGHT_MAX: usize = 4_096;

/// Idle time after which a client is removed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// More than the longest datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// Datagrams received at one end and delivered to the other.
#[derive(Clone, Copy, Debug, Default)]
struct ForwardedCounts {
    datagrams: u64,
    bytes: u64,
    arrived: u64,
}

/// A client, with a socket of its own towards the server.
struct RelayedClient {
    socket: UdpSocket,
    /// To the server and to the client.
    paths: [ConditionedPath; 2],
    last_received: Duration,
    /// The task that receives from the server.
    reader: JoinHandle<()>,
}

/// The state of the relay.
struct RelayState {
    front: UdpSocket,
    to: SocketAddr,
    conditioner: NetworkConditioner,
    seed: u64,
    clock: Stopwatch,
    clients_by_address: BTreeMap<SocketAddr, RelayedClient>,
    client_count: u64,
    /// To the server and to the clients.
    forwarded: [ForwardedCounts; 2],
    /// Datagrams dropped because there were too many clients.
    refused: u64,
}

const UP: usize = 0;
const DOWN: usize = 1;

impl Relay {
    /// Relays datagrams, and prints the counters.
    pub(super) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let failed = |error: io::Error| {
            CliError::new(format!(
                "relay from {} to {}: {error}",
                self.listen, self.to
            ))
        };
        listen_for_interrupt();
        let front = socket_at(self.listen).map_err(failed)?;
        let address = front.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build();
        let runtime = runtime.map_err(failed)?;
        if !quiet {
            print(&format!("relaying to {} from {address}", self.to))?;
        }
        let perfect = NetworkConditioner {
            delay_us: 0,
            jitter_us: 0,
            ..NetworkConditioner::with_loss(LossModel::Independent(0.0))
        };
        let state = Rc::new(RefCell::new(RelayState {
            front,
            to: self.to,
            conditioner: self.link.conditioner().unwrap_or(perfect),
            seed: self.link.seed,
            clock: Stopwatch::start(),
            clients_by_address: BTreeMap::new(),
            client_count: 0,
            forwarded: [ForwardedCounts::default(); 2],
            refused: 0,
        }));
        let until = self.duration.map(Duration::from_secs_f64);
        let passing = forward(state.clone(), until);
        LocalSet::new()
            .block_on(&runtime, passing)
            .map_err(failed)?;
        let figures = state.borrow().to_json();
        if self.json {
            print(&figures.to_string())?;
        } else if !quiet {
            print(&state.borrow().summary())?;
        }
        Ok(CliStatus::Done)
    }
}

/// Relays datagrams until the time is up.
async fn forward(state: Rc<RefCell<RelayState>>, until: Option<Duration>) -> io::Result<()> {
    let front = state.borrow().front.try_clone()?;
    let front = read(front, {
        let state = state.clone();
        move |from, datagram| RelayState::receive_from_client(&state, from, datagram)
    })?;
    while !is_interrupted() && until.is_none_or(|until| state.borrow().clock.elapsed() < until) {
        state.borrow_mut().deliver();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    front.abort();
    Ok(())
}

/// Starts a task that receives from a socket.
fn read(
    socket: UdpSocket,
    mut on_datagram: impl FnMut(SocketAddr, &[u8]) + 'static,
) -> io::Result<JoinHandle<()>> {
    let socket = tokio::net::UdpSocket::from_std(socket)?;
    Ok(spawn_local(async move {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            match socket.recv_from(&mut buffer).await {
                Ok((length, from)) => on_datagram(from, &buffer[..length]),
                // The other end is unreachable at the moment.
                Err(error) => {
                    tracing::debug!(%error, "datagram receive failed");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }))
}

fn socket_at(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl RelayedClient {
    /// Opens the socket to the server for a client.
    fn open(state: &Rc<RefCell<RelayState>>, client: SocketAddr) -> io::Result<Self> {
        let RelayState {
            to,
            conditioner: model,
            seed,
            client_count: clients,
            ..
        } = *state.borrow();
        let any = match to {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let socket = socket_at(any)?;
        socket.connect(to)?;
        let reader = read(socket.try_clone()?, {
            let state = state.clone();
            move |_, datagram| state.borrow_mut().send(client, DOWN, datagram)
        })?;
        let link = |nth| {
            ConditionedPath::new(
                model,
                (seed ^ clients.rotate_left(32)).wrapping_mul(2) + nth,
            )
        };
        Ok(Self {
            socket,
            paths: [link(0), link(1)],
            last_received: Duration::ZERO,
            reader,
        })
    }
}

impl RelayState {
    /// Handles a datagram from a client; a new client gets a socket.
    fn receive_from_client(state: &Rc<RefCell<Self>>, from: SocketAddr, datagram: &[u8]) {
        let (is_known, count) = {
            let state = state.borrow();
            (
                state.clients_by_address.contains_key(&from),
                state.clients_by_address.len(),
            )
        };
        if !is_known {
            let client_state = (count < CLIENTS_MAX).then(|| RelayedClient::open(state, from));
            let Some(Ok(client_state)) = client_state else {
                state.borrow_mut().refused += 1;
                return;
            };
            let mut state = state.borrow_mut();
            state.client_count += 1;
            state.clients_by_address.insert(from, client_state);
        }
        state.borrow_mut().send(from, UP, datagram);
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Queues a datagram to the server or to the client.
    fn send(&mut self, client: SocketAddr, way: usize, datagram: &[u8]) {
        let now_us = self.now_us();
        let Some(client_state) = self.clients_by_address.get_mut(&client) else {
            return;
        };
        client_state.last_received = Duration::from_micros(now_us);
        self.forwarded[way].datagrams += 1;
        self.forwarded[way].bytes += datagram.len() as u64;
        let link = &mut client_state.paths[way];
        if link.in_flight() < IN_FLIGHT_MAX {
            link.send(now_us, datagram);
        }
    }

    /// Delivers datagrams that are due, and removes idle clients.
    fn deliver(&mut self) {
        let now_us = self.now_us();
        let now = Duration::from_micros(now_us);
        let Self {
            front,
            forwarded: passed,
            ..
        } = self;
        self.clients_by_address.retain(|client, client_state| {
            let RelayedClient {
                socket,
                paths: [up, down],
                ..
            } = client_state;
            // Datagrams that the system refuses are lost, like others.
            while up.receive(now_us, |_, datagram| {
                passed[UP].arrived += u64::from(socket.send(datagram).is_ok());
            }) {}
            while down.receive(now_us, |_, datagram| {
                passed[DOWN].arrived += u64::from(front.send_to(datagram, *client).is_ok());
            }) {}
            let is_there = now.saturating_sub(client_state.last_received) < IDLE_TIMEOUT;
            if !is_there {
                client_state.reader.abort();
            }
            is_there
        });
    }

    fn to_json(&self) -> Value {
        let of = |way: usize| {
            let ForwardedCounts {
                datagrams,
                bytes,
                arrived,
            } = self.forwarded[way];
            json!({ "datagrams": datagrams, "bytes": bytes, "arrived": arrived })
        };
        json!({ "clients": self.client_count, "up": of(UP), "down": of(DOWN), "refused": self.refused })
    }

    fn summary(&self) -> String {
        let share = |way: usize| {
            let ForwardedCounts {
                datagrams, arrived, ..
            } = self.forwarded[way];
            let share = 100.0 * arrived as f64 / datagrams.max(1) as f64;
            format!("{arrived} of {datagrams} ({share:.1} %)")
        };
        format!(
            "{} clients; datagrams delivered: up {}, down {}",
            self.client_count,
            share(UP),
            share(DOWN)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_in_flight_are_limited_per_client_and_direction() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_io().enable_time().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let front = socket_at(([127, 0, 0, 1], 0).into()).unwrap();
            let state = Rc::new(RefCell::new(RelayState {
                to: front.local_addr().unwrap(),
                front,
                conditioner: NetworkConditioner {
                    delay_us: 3_600_000_000,
                    ..NetworkConditioner::with_loss(LossModel::Independent(0.0))
                },
                seed: 0,
                clock: Stopwatch::start(),
                clients_by_address: BTreeMap::new(),
                client_count: 0,
                forwarded: [ForwardedCounts::default(); 2],
                refused: 0,
            }));
            let client = SocketAddr::from(([127, 0, 0, 1], 9));
            let sent = IN_FLIGHT_MAX + 5;
            for _ in 0..sent {
                RelayState::receive_from_client(&state, client, b"up");
            }
            let before = Duration::from_micros(state.borrow().now_us());
            state.borrow_mut().send(client, DOWN, b"down");
            state.borrow_mut().deliver();
            let state = state.borrow();
            let client_state = &state.clients_by_address[&client];
            let in_flight = [UP, DOWN].map(|way| client_state.paths[way].in_flight());
            assert_eq!(in_flight, [IN_FLIGHT_MAX, 1]);
            let datagrams = state.forwarded.map(|counts| counts.datagrams);
            assert_eq!(datagrams, [sent as u64, 1]);
            assert!(
                client_state.last_received >= before,
                "the client is not idle"
            );
        });
    }
}
