//! The attacker: a thread that runs the phases of the trial, sends datagrams at the planned rate, and observes the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::honest::HOSTILE_PLAYERS;
use super::phases::{AttackSource, PhasePlan, PhaseReport, TrialState};
use super::server_process::{ServerObserver, TokenIssuer, thread_cpu_s};
use crate::{CliError, is_interrupted};
use throng_net::hostile::{AnySource, HostileKind, HostilePackets, request_of};

/// Datagrams per second.
pub(super) const RATE_PER_S: f64 = 100_000.0;

/// Datagrams between two readings of the clock.
const BURST: u64 = 32;

/// If the attacker is late by more than this many seconds, it skips the datagrams that it could not send.
const LATE_S_MAX: f64 = 0.005;

/// Pause after a phase, in which the server handles the last datagrams and nothing is measured.
const PAUSE: Duration = Duration::from_millis(400);

/// The only address of the hostile host.
const HOST: Ipv4Addr = Ipv4Addr::new(127, 9, 9, 9);

/// The hostile /48 network, which contains 65,536 /64 networks. The prefix is reserved for documentation.
pub(super) const NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 0);

/// Whether the whole hostile network is routed to this machine.
pub(super) fn has_network() -> bool {
    let routes = std::fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    is_local(&routes, NETWORK)
}

/// Whether the text of /proc/net/ipv6_route routes this /48 network to the loopback interface.
fn is_local(routes: &str, network: Ipv6Addr) -> bool {
    let route = format!("{:032x} 30 ", network.to_bits());
    routes
        .lines()
        .any(|line| line.starts_with(&route) && line.ends_with(" lo"))
}

/// The attacker.
pub(super) struct Attacker<'a> {
    pub state: &'a TrialState,
    pub observer: ServerObserver,
    pub issuer: TokenIssuer,
    pub server: SocketAddr,
    pub server_v6: Option<SocketAddr>,
    /// The number of the next player whose token it uses.
    pub player: u64,
    /// Time between the arrival of the last honest client and the first phase.
    pub settle: Duration,
}

/// The sockets of an attack.
enum AttackSockets {
    Host {
        own: UdpSocket,
        victim: Option<UdpSocket>,
    },
    Network(AnySource),
}

impl AttackSockets {
    /// Sends a datagram; returns whether the system accepted it.
    fn send(&self, nth: u64, datagram: &[u8]) -> bool {
        match self {
            Self::Host { own, victim } => {
                // A data packet without a connection number is matched by its address.
                let is_data = datagram.first().is_some_and(|first| first & 0xf == 5);
                match victim {
                    Some(victim) if is_data => victim.send(datagram).is_ok(),
                    _ => own.send(datagram).is_ok(),
                }
            }
            Self::Network(source) => {
                // An odd factor visits each /64 network once in 65,536 datagrams.
                let network = (nth.wrapping_mul(40_503) & 0xffff) as u128;
                let address = NETWORK.to_bits() | network << 64 | 1;
                source
                    .send(IpAddr::V6(Ipv6Addr::from_bits(address)), datagram)
                    .is_ok()
            }
        }
    }
}

impl Attacker<'_> {
    /// Runs all phases, and returns what was observed in each.
    pub fn run(mut self, plans: &[PhasePlan]) -> Result<Vec<PhaseReport>, CliError> {
        while !self.state.is_ready.load(Ordering::Acquire) {
            if is_interrupted() || self.state.is_over.load(Ordering::Acquire) {
                return Ok(Vec::new());
            }
            std::thread::sleep(PAUSE);
        }
        wait(self.settle.as_secs_f64());
        let mut reports = Vec::new();
        for (nth, plan) in plans.iter().enumerate() {
            if is_interrupted() {
                break;
            }
            reports.push(self.phase(nth + 1, plan)?);
        }
        Ok(reports)
    }

    fn phase(&mut self, nth: usize, plan: &PhasePlan) -> Result<PhaseReport, CliError> {
        let prepared = self.prepare(plan)?;
        let before = self.observer.counters()?;
        let [cpu_s, own_cpu_s] = [self.observer.cpu_s(), thread_cpu_s()];
        let dropped = self.observer.dropped();
        self.state.phase.store(nth, Ordering::Release);
        let start = Instant::now();
        let sent = match (plan.kind, prepared) {
            (Some(kind), Some((sockets, mut packets))) => {
                flood(kind, &sockets, &mut packets, plan.seconds)
            }
            _ => {
                wait(plan.seconds);
                0
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        self.state.phase.store(0, Ordering::Release);
        let cpu = [self.observer.cpu_s() - cpu_s, thread_cpu_s() - own_cpu_s];
        std::thread::sleep(PAUSE);
        Ok(PhaseReport {
            plan: *plan,
            sent,
            seconds,
            counted: self.observer.counters()?.since(&before),
            dropped: self.observer.dropped() - dropped,
            server_cpu: cpu[0] / seconds,
            attacker_cpu: cpu[1] / seconds,
        })
    }

    /// The sockets and datagrams of an attack. Each attack gets its own, because tokens expire.
    fn prepare(
        &mut self,
        plan: &PhasePlan,
    ) -> Result<Option<(AttackSockets, HostilePackets)>, CliError> {
        if plan.kind.is_none() {
            return Ok(None);
        }
        let player = HOSTILE_PLAYERS + self.player;
        self.player += 1;
        let captured = self.state.captured();
        let mut requests = vec![request_of(self.issuer.token(player)?)];
        if plan.kind == Some(HostileKind::ReplayedRequests) {
            requests.push(captured.request.clone());
        }
        let opened = |error: std::io::Error| {
            CliError::new(format!("could not open a socket of the attacker: {error}"))
        };
        let is_host = plan.source == AttackSource::Host;
        let sockets = match (plan.source, self.server_v6) {
            (AttackSource::Network, Some(server)) => {
                AttackSockets::Network(AnySource::open(server).map_err(opened)?)
            }
            _ => {
                // Other kinds come from the attacker's own address only.
                let is_forged = plan.kind == Some(HostileKind::ReplayedData);
                let own = UdpSocket::bind((HOST, 0)).map_err(opened)?;
                own.connect(self.server).map_err(opened)?;
                let victim = captured.socket.as_ref().filter(|_| is_forged);
                let victim = victim.and_then(|socket| socket.try_clone().ok());
                if let Some(victim) = &victim {
                    // The client shares this socket and expects it to stay non-blocking.
                    victim.set_nonblocking(true).map_err(opened)?;
                }
                AttackSockets::Host { own, victim }
            }
        };
        let datagrams = captured.datagrams.iter();
        let usable = datagrams.filter(|datagram| is_host || datagram.first() == Some(&15));
        let usable = usable.cloned().collect();
        let packets = HostilePackets::new(self.player, requests, usable, TokenIssuer::expires_s());
        Ok(Some((sockets, packets)))
    }
}

/// Sends datagrams for this many seconds. Returns their number.
fn flood(
    kind: HostileKind,
    sockets: &AttackSockets,
    packets: &mut HostilePackets,
    seconds: f64,
) -> u64 {
    let start = Instant::now();
    let (mut sent, mut made, mut given_up) = (0, 0_u64, 0_u64);
    loop {
        let elapsed_s = start.elapsed().as_secs_f64();
        if elapsed_s >= seconds || is_interrupted() {
            return sent;
        }
        let due = (elapsed_s * RATE_PER_S) as u64;
        let late = due.saturating_sub(made + given_up);
        given_up += late.saturating_sub((LATE_S_MAX * RATE_PER_S) as u64);
        if late == 0 {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        for _ in 0..late.min(BURST) {
            sent += u64::from(sockets.send(made, packets.next(kind)));
            made += 1;
        }
    }
}

fn wait(seconds: f64) {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds && !is_interrupted() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_of_the_hostile_network_is_found() {
        let zeros = "0".repeat(32);
        let line = |prefix: &str, bits: &str, device: &str| {
            format!(
                "{prefix} {bits} {zeros} 00 {zeros} 00000400 00000001 00000000 80200001       {device}\n"
            )
        };
        let own = "20010db80bad00000000000000000000";
        assert!(is_local(&line(own, "30", "lo"), NETWORK));
        for (prefix, bits, device) in [(own, "40", "lo"), (own, "30", "eth0"), (&zeros, "00", "lo")]
        {
            assert!(!is_local(&line(prefix, bits, device), NETWORK));
        }
    }
}
