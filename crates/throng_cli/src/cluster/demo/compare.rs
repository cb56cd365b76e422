//! Compares what the clients of the demo have received with the state of the nodes, while everything stands still.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::walker::DemoWalker;
use crate::cluster::world::WorldFile;
use crate::mirror_check::MirrorCheckClient;
use crate::{CliError, is_interrupted};

/// How long mirrors may take to be equal: matches end first, and packets in flight arrive.
const COMPARE_TIME: Duration = Duration::from_secs(60);

/// Between two comparisons, and between two looks at the sockets of clients meanwhile.
const SETTLE_TIME: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Mirrors that a node compares before the sockets of clients are looked at again.
const BATCH: usize = 64;

/// Differences that are shown.
const SHOWN_MAX: usize = 3;

/// The outcome.
#[derive(Debug, Default)]
pub(super) struct ComparedMirrors {
    same: usize,
    differing: Vec<String>,
}

impl ComparedMirrors {
    /// Whether all mirrors are equal to the state of a node.
    pub const fn is_equal(&self) -> bool {
        self.differing.is_empty()
    }

    /// For the end of the run.
    pub fn lines(&self) -> Vec<String> {
        let all = self.same + self.differing.len();
        let summary = format!(
            "mirrors      {} of {all} equal to the state of their node, at rest",
            self.same
        );
        let shown = self.differing.iter().take(SHOWN_MAX);
        let shown = shown.map(|difference| format!("  {difference}"));
        [summary].into_iter().chain(shown).collect()
    }
}

/// Brings clients and nodes to rest, and compares until all mirrors are equal, or the time is over.
pub(super) fn compare_mirrors(
    walkers: &mut [DemoWalker],
    world: &WorldFile,
    nodes: &[SocketAddr],
) -> Result<ComparedMirrors, CliError> {
    walkers.iter_mut().for_each(DemoWalker::halt);
    let failed = |error: std::io::Error| CliError::new(format!("mirrors not compared: {error}"));
    for node in nodes {
        let mut check = MirrorCheckClient::connect(*node).map_err(failed)?;
        check.request_halt().map_err(failed)?;
    }
    let until = Instant::now() + COMPARE_TIME;
    let mut left: Vec<usize> = (0..walkers.len()).collect();
    loop {
        let settled = Instant::now() + SETTLE_TIME;
        while Instant::now() < settled {
            update(walkers, world)?;
            thread::sleep(POLL_INTERVAL);
        }
        // A node closes connections without requests.
        let checks = nodes.iter().map(|node| MirrorCheckClient::connect(*node));
        let checks: std::io::Result<Vec<_>> = checks.collect();
        let mut checks = checks.map_err(failed)?;
        let mut differing = Vec::new();
        let mut next = Vec::new();
        for some in left.chunks(BATCH) {
            let compared = compare_batch(&mut checks, walkers, some).map_err(failed)?;
            for (nth, difference) in compared {
                differing.push(format!("player {} {difference}", walkers[nth].player));
                next.push(nth);
            }
            update(walkers, world)?;
        }
        left = next;
        if left.is_empty() || Instant::now() >= until || is_interrupted() {
            let same = walkers.len() - left.len();
            return Ok(ComparedMirrors { same, differing });
        }
    }
}

/// Asks one node after the other for the players that are not at those before. Returns the clients whose mirror differs, and how.
fn compare_batch(
    checks: &mut [MirrorCheckClient],
    walkers: &[DemoWalker],
    some: &[usize],
) -> std::io::Result<Vec<(usize, String)>> {
    let mut differing = Vec::new();
    let mut away = some.to_vec();
    for check in checks {
        let held = away.iter().map(|&nth| &walkers[nth]);
        let held: Vec<_> = held.map(|it| (it.player, it.mirror())).collect();
        let replies = check.compare(&held)?;
        let mut still_away = Vec::new();
        for (&nth, reply) in away.iter().zip(replies) {
            match &*reply {
                "same" => {}
                "away" => still_away.push(nth),
                _ => differing.push((nth, reply)),
            }
        }
        away = still_away;
    }
    let away = away.into_iter();
    differing.extend(away.map(|nth| (nth, "is at no node".to_owned())));
    Ok(differing)
}

fn update(walkers: &mut [DemoWalker], world: &WorldFile) -> Result<(), CliError> {
    let now = Instant::now();
    let mut events = Vec::new();
    for walker in walkers {
        walker.update(now, world, &mut events)?;
        events.clear();
    }
    Ok(())
}
