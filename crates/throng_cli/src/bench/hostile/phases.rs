//! The phases of the delay trial: their plans, the state that crowd and attacker share, and the measurements of each phase.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::server_process::ServerCounters;
use throng_net::hostile::HostileKind;

/// Where an attack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttackSource {
    /// Nowhere: nothing is sent, which shows how much delays differ without an attack.
    Nowhere,
    /// One address.
    Host,
    /// A /48 network; consecutive datagrams come from different /64 networks.
    Network,
}

/// The plan of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhasePlan {
    /// The kind of attack; `None` if nothing is sent.
    pub kind: Option<HostileKind>,
    pub source: AttackSource,
    pub seconds: f64,
    /// Whether it is compared with the quiet phases before and after it.
    pub is_compared: bool,
}

/// What was observed in a phase.
#[derive(Clone, Debug)]
pub(super) struct PhaseReport {
    pub plan: PhasePlan,
    /// Datagrams sent by the attacker.
    pub sent: u64,
    pub seconds: f64,
    /// What the server counted, honest clients included.
    pub counted: ServerCounters,
    /// Datagrams that the system dropped before the server read them.
    pub dropped: u64,
    /// CPU use of the server and of the attacker, in cores.
    pub server_cpu: f64,
    pub attacker_cpu: f64,
}

/// Delays of honest clients in one phase.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseSamples {
    /// Arrival times of packets minus the start of their tick, in microseconds. Only differences are meaningful.
    pub arrivals_us: Vec<f64>,
    /// From an input to the packet that acknowledges it, in milliseconds.
    pub input_ms: Vec<f64>,
    /// Input delays of the client whose address the attacker forges.
    pub victim_ms: Vec<f64>,
    /// From the first request to the world, in milliseconds.
    pub login_ms: Vec<f64>,
    pub failed_logins: usize,
}

/// Traffic of an honest client, for the attacker to replay.
#[derive(Default)]
pub(super) struct CapturedTraffic {
    /// Its connect request.
    pub request: Vec<u8>,
    /// Its datagrams, each also in a copy with its connection number.
    pub datagrams: Vec<Vec<u8>>,
    /// Its socket: datagrams that the attacker sends from it have a forged sender.
    pub socket: Option<UdpSocket>,
}

/// The state that the crowd and the attacker share.
#[derive(Default)]
pub(super) struct TrialState {
    /// The current phase, from 1; 0 between phases.
    pub phase: AtomicUsize,
    /// Whether the crowd is in the world.
    pub is_ready: AtomicBool,
    pub is_over: AtomicBool,
    /// Number of datagrams that honest clients sent.
    pub honest_sent: AtomicU64,
    captured: Mutex<CapturedTraffic>,
}

impl TrialState {
    pub fn captured(&self) -> MutexGuard<'_, CapturedTraffic> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
