//! The trial of delays: its parts, what is shared between crowd and attacker, and what was measured in each part.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::attacker::{Attacker, has_network};
use super::honest::HonestCrowd;
use super::server_process::{ServerCounters, ServerProcess};
use crate::CliError;
use throng_net::hostile::HostileKind;

/// Where an attack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttackSource {
    /// One address.
    Host,
    /// A network of 48 bits, each datagram from another network of 64 bits.
    Network,
}

/// A part of the trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhasePlan {
    /// Nobody attacks if there is no kind.
    pub kind: Option<HostileKind>,
    pub source: AttackSource,
    pub seconds: f64,
}

/// What was observed in a part.
#[derive(Clone, Debug)]
pub(super) struct PhaseReport {
    pub plan: PhasePlan,
    /// Datagrams of the attacker.
    pub sent: u64,
    pub seconds: f64,
    /// What the server counted, honest clients included.
    pub counted: ServerCounters,
    /// Datagrams that the system dropped before the server read them.
    pub dropped: u64,
    /// Cores that the server and the attacker used.
    pub server_cpu: f64,
    pub attacker_cpu: f64,
}

/// Delays of honest clients in a part of the trial.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseSamples {
    /// Arrivals of packets, minus the time of their tick, in microseconds. Only differences mean anything.
    pub arrivals_us: Vec<f64>,
    /// From an input to the packet that acknowledges it, in milliseconds.
    pub input_ms: Vec<f64>,
    /// The same for the client whose address the attacker forges.
    pub victim_ms: Vec<f64>,
    /// From the first request to the world, in milliseconds.
    pub login_ms: Vec<f64>,
    pub failed_logins: usize,
}

/// What the attacker knows of an honest client.
#[derive(Default)]
pub(super) struct CapturedTraffic {
    /// Its connect request.
    pub request: Vec<u8>,
    /// Its datagrams, each also with the number of its connection.
    pub datagrams: Vec<Vec<u8>>,
    /// Its socket: what is sent from it has a forged sender.
    pub socket: Option<UdpSocket>,
}

/// What crowd and attacker share.
#[derive(Default)]
pub(super) struct TrialState {
    /// The current part, from 1 on; 0 between parts.
    pub phase: AtomicUsize,
    /// The crowd is in the world.
    pub is_ready: AtomicBool,
    pub is_over: AtomicBool,
    /// Datagrams of honest clients.
    pub honest_sent: AtomicU64,
    captured: Mutex<CapturedTraffic>,
}

impl TrialState {
    pub fn captured(&self) -> MutexGuard<'_, CapturedTraffic> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sizes of the trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialSize {
    pub honest: usize,
    pub quiet_s: f64,
    pub attack_s: f64,
}

/// What the trial found.
pub(super) struct TrialResult {
    pub reports: Vec<PhaseReport>,
    /// By part, from 1 on.
    pub samples: Vec<PhaseSamples>,
    /// Honest clients that lost their connection.
    pub ended: usize,
    /// Datagrams of everybody, and what became of them.
    pub totals: TrialTotals,
}

/// Datagrams of the whole trial.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrialTotals {
    pub sent: u64,
    pub received: u64,
    pub accounted: u64,
    pub dropped: u64,
}

/// The parts: before and after each attack it is quiet.
pub(super) fn plans(size: TrialSize, has_network: bool) -> Vec<PhasePlan> {
    let mut attacks: Vec<(AttackSource, HostileKind)> = HostileKind::SINGLE
        .map(|kind| (AttackSource::Host, kind))
        .to_vec();
    if has_network {
        let kinds = [HostileKind::ForgedRequests, HostileKind::Mixed];
        attacks.extend(kinds.map(|kind| (AttackSource::Network, kind)));
    }
    let quiet = PhasePlan {
        kind: None,
        source: AttackSource::Host,
        seconds: size.quiet_s,
    };
    let mut plans = vec![quiet];
    for (source, kind) in attacks {
        let attack = PhasePlan {
            kind: Some(kind),
            source,
            seconds: size.attack_s,
        };
        plans.extend([attack, quiet]);
    }
    plans
}

/// Runs the trial against a server of its own.
pub(super) fn run(size: TrialSize) -> Result<TrialResult, CliError> {
    let server = ServerProcess::start()?;
    let plans = plans(size, server.address_v6.is_some() && has_network());
    let state = TrialState::default();
    let (issuer, observer) = (server.issuer(), server.observer());
    let mut crowd = HonestCrowd::new(issuer.clone(), server.address, size.honest, plans.len());
    let attacker = Attacker {
        state: &state,
        observer,
        issuer,
        server: server.address,
        server_v6: server.address_v6,
        player: 0,
    };
    let reports = std::thread::scope(|scope| {
        let attack = scope.spawn(|| {
            let reports = attacker.run(&plans);
            state.is_over.store(true, Ordering::Release);
            reports
        });
        let played = crowd.run(&state);
        state.is_over.store(true, Ordering::Release);
        let reports = attack.join();
        played.and(reports.unwrap_or_else(|_| Err(CliError::new("the attacker panicked"))))
    })?;
    // Until the last datagrams are handled.
    std::thread::sleep(Duration::from_secs(1));
    let counted = observer.counters()?;
    let hostile: u64 = reports.iter().map(|report| report.sent).sum();
    let totals = TrialTotals {
        sent: hostile + state.honest_sent.load(Ordering::Relaxed),
        received: counted.datagrams_in,
        accounted: counted.accounted(),
        dropped: observer.dropped(),
    };
    Ok(TrialResult {
        reports,
        samples: crowd.samples,
        ended: crowd.ended,
        totals,
    })
}
