//! The delay trial: a server, an honest crowd, and an attacker that runs the phases.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::attacker::{Attacker, has_network};
use super::honest::HonestCrowd;
use super::phases::{AttackSource, PhasePlan, PhaseReport, PhaseSamples, TrialState};
use super::server_process::ServerProcess;
use crate::CliError;
use throng_net::hostile::HostileKind;

/// The sizes of the trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialSize {
    pub honest: usize,
    /// Time between the arrival of the last honest client and the first phase. In the first half minute after the arrival of 500 clients, logins
    /// take a tick longer, with or without an attack.
    pub settle_s: f64,
    pub quiet_s: f64,
    pub attack_s: f64,
}

/// The result of the trial.
pub(super) struct TrialResult {
    pub reports: Vec<PhaseReport>,
    /// By phase, from 1.
    pub samples: Vec<PhaseSamples>,
    /// Number of honest clients that lost their connection.
    pub ended: usize,
    /// Datagrams of all clients.
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

/// The phases: a quiet one before and after each attack. The first attack sends nothing.
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
        source: AttackSource::Nowhere,
        seconds: size.quiet_s,
        is_compared: false,
    };
    let nothing = PhasePlan {
        seconds: size.attack_s,
        is_compared: true,
        ..quiet
    };
    let mut plans = vec![quiet, nothing, quiet];
    for (source, kind) in attacks {
        let attack = PhasePlan {
            kind: Some(kind),
            source,
            ..nothing
        };
        plans.extend([attack, quiet]);
    }
    plans
}

/// Runs the trial against its own server process.
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
        settle: Duration::from_secs_f64(size.settle_s),
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
    // Waits until the server has handled the last datagrams.
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
