//! The parts of the trial of delays: what is planned, what crowd and attacker share, and what was measured in each part.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::server_process::ServerCounters;
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
