//! The report of a run: the object that `--json` prints.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::Serialize;

use super::leaks::LeakSummary;
use super::margin::Margin;
use super::matches::ScenarioMatchStats;
use super::memory::MemorySummary;
use super::movement_summary::MovementSummary;
use super::player_store::PlayerStoreSummary;
use super::record::RunRecord;
use super::tick_checks::TickChecks;
use crate::crowd::{CrowdAuthenticator, SyntheticClients};
use throng::aoi::AoiStats;
use throng::inbox::Inbox;
use throng::matchmaking::Matchmaker;
use throng::movement::AttachedTo;
use throng::nav::{NavStats, Navigator};
use throng::outbox::OutboxStats;
use throng::session::{SessionEndCounts, SessionState, SessionStats, Sessions};
use throng::sim::{Overload, OverloadStats, SetTiming, SimSystems, SimTick, TickTimings};
use throng::sync::SyncStats;
use throng::world::{Object, ObjectCategory, ObjectKinds, PlayerId};

/// A run's figures. Every name is part of the program's interface.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Report {
    pub scenario: String,
    pub seed: u64,
    /// The parameters of the scenario by name, as they would be written in the file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    pub threads: usize,
    pub ticks: u64,
    /// The tick after which the run was interrupted, if it was; expectations were not checked then.
    pub interrupted: Option<u64>,
    pub sim_seconds: f64,
    pub wall_seconds: f64,
    pub state_hash: String,
    /// Without the ticks of `start_up`, as in `systems`.
    pub tick_ms: TickTimeSummary,
    /// The ticks of the first second, in which caches are cold and all objects spawn; `None` in a shorter run.
    pub start_up: Option<StartUpSummary>,
    pub systems: BTreeMap<&'static str, SetTimeSummary>,
    pub objects: ObjectSummary,
    /// Objects of each tag of the scenario at the end.
    pub tags: BTreeMap<String, u64>,
    pub clients: ClientSummary,
    pub sessions: SessionSummary,
    pub paths: PathSummary,
    pub builds: BuildSummary,
    pub views: ViewSummary,
    pub movement: MovementSummary,
    pub sync: SyncSummary,
    pub matchmaking: MatchmakingSummary,
    pub match_scenes: ScenarioMatchStats,
    pub inbox: InboxSummary,
    pub outbox: OutboxSummary,
    pub overload: OverloadSummary,
    /// Only in a run with a player store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_store: Option<PlayerStoreSummary>,
    pub memory: MemorySummary,
    /// The leak check, if `NoLeaks` is expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaks: Option<LeakSummary>,
    /// The record of the run, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<RunRecord>>,
    pub expectations: Vec<ExpectationResult>,
    /// How often cues ran.
    pub script_cues_run: u64,
    /// How often external actions ran. If any did, the scenario and the seed do not reproduce this run.
    #[serde(skip_serializing_if = "is_zero")]
    pub external_actions: u64,
    pub script_error_count: u64,
    /// Cues that could not do their action: their location, and the reason of the first failure.
    pub script_errors: Vec<String>,
    /// Cues that never ran, or never affected an object, with their location. After an interrupted run only the latter.
    pub cues_without_effect: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Times of whole ticks at the start of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct StartUpSummary {
    pub ticks: u64,
    pub mean_ms: f64,
    pub max_ms: f64,
}

/// Times of a whole tick.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct TickTimeSummary {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// Times of a set.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct SetTimeSummary {
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Objects at the end, and their maximum.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct ObjectSummary {
    pub players: u64,
    pub npcs: u64,
    pub other: u64,
    pub peak: u64,
}

/// Sessions: open at the end, the maximum, and the counters of the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct ClientSummary {
    pub now: u64,
    pub mirrors: u64,
    pub peak: u64,
    pub logins: u64,
    pub logouts: u64,
    pub refused: u64,
    /// Simulated seconds during which clients with a mirror were connected, summed up.
    pub mirror_seconds: f64,
}

/// Connection and login queue counters: over the run, and current values.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct SessionSummary {
    /// Players in the login queue.
    pub login_queue: u64,
    /// The maximum length of the login queue after a tick.
    pub max_login_queue: u64,
    /// Queue positions sent to clients.
    pub queue_positions_sent: u64,
    /// Maximum number of players admitted within a tick.
    pub max_admitted: u64,
    pub connections_lost: u64,
    /// Players whose connection is lost and whose object is kept.
    pub awaiting_reconnect: u64,
    /// Sessions resumed over another connection.
    pub resumed: u64,
    /// Those resumed by token, counted by clients with a mirror when they received the confirmation.
    pub resumed_by_token: u64,
    /// Players that control an object other than a player's own.
    pub possessing: u64,
    /// Spectators.
    pub spectating: u64,
    /// Session ends for which clients with a mirror got the close reason, once per end.
    pub end_notices: u64,
    pub addresses_banned: u64,
    pub bad_messages: u64,
    pub late_inputs: u64,
    /// Reasons of ended sessions, including those that never had a player.
    pub ended: SessionEndCounts,
}

/// Path requests and their replies.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct PathSummary {
    pub requested: u64,
    pub found: u64,
    pub unreachable: u64,
    pub blocked: u64,
    /// The blocked ones that start on a blocked tile.
    pub blocked_at_start: u64,
    /// The blocked ones whose goal is blocked and whose start is free.
    pub blocked_at_goal: u64,
    pub out_of_bounds: u64,
    /// The out-of-bounds ones in a scene without a map.
    pub without_map: u64,
    pub capped: u64,
    pub cancelled: u64,
    /// Answered by the search of an equal request of the same tick.
    pub shared: u64,
    pub mean_us: f64,
    pub p99_us: f64,
}

/// Search data built in the background.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct BuildSummary {
    pub adopted: u64,
    /// Builds that started from the data of a map file.
    pub loaded: u64,
    /// Builds for which the run waited between two ticks, and the waiting time, which is in no tick time. Runs in real time never
    /// wait.
    pub waited: u64,
    pub waited_ms: f64,
    /// Builds that were adopted late, and their total delay in ticks; in real time only.
    pub late: u64,
    pub late_ticks: u64,
}

/// View links: the current number, and the counters of the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct ViewSummary {
    pub cap: u16,
    pub links: u64,
    pub enters: u64,
    pub leaves: u64,
    pub evictions: u64,
    pub refills: u64,
    pub full_list_attempts: u64,
    pub longest_list: usize,
}

/// Messages sent to clients.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct SyncSummary {
    pub attributes_dirty: u64,
    /// Values that their encoding cannot represent, and that clients receive as the nearest one.
    pub attributes_clamped: u64,
    pub deltas: u64,
    pub snapshots: u64,
    pub despawns: u64,
    pub moves: u64,
    /// Messages about objects that may be out of view: parties, the scene.
    pub unseen_updates: u64,
    pub announcements: u64,
    /// Motions delayed by the byte budget, counted once per tick of delay.
    pub postponed: u64,
    /// Pairs of a client and an object that it knows, at the end.
    pub client_objects: u64,
    /// The number of these objects that are out of the client's view, but kept.
    pub kept: u64,
    /// Kept objects that were despawned at a client because it kept too many.
    pub kept_evicted: u64,
    /// Motions encoded for all clients together: new ones, and repetitions.
    pub motions_encoded: u64,
    pub packets: u64,
    /// Bytes of all packets, including headers.
    pub bytes: u64,
    pub message_bytes: MessageBytes,
    pub bytes_per_client_s: f64,
}

/// The bytes by kind of message, without headers.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct MessageBytes {
    pub snapshots: u64,
    pub despawns: u64,
    pub deltas: u64,
    pub moves: u64,
    pub unseen_updates: u64,
    pub announcements: u64,
}

/// Parties, of all modes and by mode.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct MatchmakingSummary {
    pub queued: u64,
    pub cancelled: u64,
    pub expired: u64,
    pub matches: u64,
    pub waiting: u64,
    pub mean_power_gap: f64,
    pub max_power_gap: u64,
    pub mean_spread: f64,
    pub p99_spread: u64,
    pub mean_wait_s: f64,
    pub max_wait_s: f64,
    pub waiting_for_s: f64,
    pub modes: Vec<ModeSummary>,
}

/// One mode of matchmaking.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct ModeSummary {
    pub name: String,
    pub matches: u64,
    pub waiting: u64,
    pub left_over_players: u64,
    pub mean_power_gap: f64,
    pub p95_power_gap: u64,
    pub max_power_gap: u64,
    pub mean_wait_s: f64,
    pub p95_wait_s: f64,
    pub max_wait_s: f64,
}

/// Messages from clients, over the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct InboxSummary {
    pub received: u64,
    pub handled: u64,
    pub refused: u64,
    pub max_backlog: usize,
    pub max_lag_ms: f64,
}

/// Packets to clients, over the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct OutboxSummary {
    pub packets: u64,
    pub bytes: u64,
    pub stalls: u64,
    pub dropped: u64,
}

/// Overload: the current level, the highest of the run, and the number of ticks of each measure. Levels are 0 for none, 1
/// updates, 2 enters and paths, 3 logins, 4 time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "self-explanatory names")]
pub struct OverloadSummary {
    pub level: u64,
    pub max_level: u64,
    /// The mean of a tick's cost over its budget.
    pub load: f64,
    /// The target speed of simulated time, in percent of real time.
    pub time_percent: u64,
    pub rises: u64,
    pub falls: u64,
    pub reduced_update_ticks: u64,
    pub deferred_work_ticks: u64,
    pub queued_login_ticks: u64,
    pub dilated_ticks: u64,
    /// Players in the login queue.
    pub login_queue: u64,
    /// Pending path requests.
    pub paths_waiting: u64,
}

/// An expectation and its result.
#[derive(Clone, Debug, Serialize)]
pub struct ExpectationResult {
    /// The expectation as text.
    pub text: String,
    /// Whether it passed; `None` if it was not checked: `verdict` has the reason.
    pub passed: Option<bool>,
    /// The result.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// The found value and its limit, for an expectation that compares one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Margin>,
}

/// The result of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// Nothing in the run could fail it, which does not count as passed.
    NotExercised,
    /// It was not checked: it is about wall time, or the run was interrupted.
    NotChecked,
    /// It is about wall time, was not checked, and would fail on this machine.
    SlowMachine,
}

impl Verdict {
    /// Whether a run with this verdict fails.
    #[must_use]
    pub const fn fails(self) -> bool {
        matches!(self, Self::Failed | Self::NotExercised)
    }
}

impl Report {
    /// Whether all expectations that were checked passed, and the run was not interrupted.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        let fails = self
            .expectations
            .iter()
            .any(|result| result.verdict.fails());
        self.interrupted.is_none() && !fails
    }
}

/// Counts the current players, NPCs and things.
pub(super) fn count_objects(world: &mut World) -> ObjectSummary {
    let mut counts = [0u64; 3];
    let mut query = world.query::<&Object>();
    let kinds = world.resource::<ObjectKinds>();
    for object in query.iter(world) {
        let class = kinds
            .get(object.kind())
            .map_or(ObjectCategory::Thing, |kind| kind.class);
        counts[class.index()] += 1;
    }
    ObjectSummary {
        players: counts[0],
        npcs: counts[1],
        other: counts[2],
        peak: counts.iter().sum(),
    }
}

pub(super) fn tick_times(
    timings: &TickTimings,
) -> (TickTimeSummary, BTreeMap<&'static str, SetTimeSummary>) {
    let of = |timing: SetTiming| SetTimeSummary {
        mean_ms: timing.mean_ms,
        p50_ms: timing.p50_ms,
        p99_ms: timing.p99_ms,
        max_ms: timing.max_ms,
    };
    let tick = timings.tick();
    let whole = TickTimeSummary {
        mean: tick.mean_ms,
        p50: tick.p50_ms,
        p99: tick.p99_ms,
        max: tick.max_ms,
    };
    let shown = SimSystems::ALL
        .into_iter()
        .filter(|set| !matches!(set, SimSystems::First | SimSystems::Last));
    (
        whole,
        shown
            .map(|set| (set.name(), of(timings.set(set))))
            .collect(),
    )
}

/// The times of the ticks so far, as start-up times. The caller must reset the timings afterwards.
pub(super) fn start_up(timings: &TickTimings, ticks: u64) -> StartUpSummary {
    let tick = timings.tick();
    StartUpSummary {
        ticks,
        mean_ms: tick.mean_ms,
        max_ms: tick.max_ms,
    }
}

pub(super) fn clients(world: &World, mirror_seconds: f64) -> ClientSummary {
    let stats = world.resource::<SessionStats>();
    ClientSummary {
        now: world.resource::<Sessions>().len() as u64,
        mirrors: world.resource::<SyntheticClients>().receiver_count() as u64,
        peak: stats.peak as u64,
        logins: stats.logins,
        logouts: stats.logouts,
        refused: stats.refused,
        mirror_seconds,
    }
}

pub(super) fn sessions(world: &World) -> SessionSummary {
    let stats = world.resource::<SessionStats>();
    let sessions = world.resource::<Sessions>();
    // A player's own object can be attached to another, too; it is neither possessed nor a spectator's view.
    let mut others: Vec<Entity> = sessions
        .iter()
        .filter_map(|(_, session)| session.controlled_entity)
        .collect();
    others.retain(|&entity| world.get::<PlayerId>(entity).is_none());
    let is_spectating = |entity: &&Entity| world.get::<AttachedTo>(**entity).is_some();
    let spectating = others.iter().filter(is_spectating).count();
    let awaiting_reconnect = sessions
        .iter()
        .filter(|(_, session)| session.state == SessionState::AwaitingReconnect);
    let client_stats = world.resource::<SyntheticClients>().stats();
    SessionSummary {
        login_queue: sessions.queue_len() as u64,
        max_login_queue: stats.queue_peak as u64,
        queue_positions_sent: stats.queue_notices,
        max_admitted: stats.admitted_per_tick_peak as u64,
        connections_lost: stats.connections_lost,
        awaiting_reconnect: awaiting_reconnect.count() as u64,
        resumed: stats.resumed,
        resumed_by_token: client_stats.resumed,
        possessing: (others.len() - spectating) as u64,
        spectating: spectating as u64,
        end_notices: client_stats.end_notices,
        addresses_banned: world.resource::<CrowdAuthenticator>().banned_count() as u64,
        bad_messages: stats.bad_messages,
        late_inputs: stats.late_inputs,
        ended: stats.ends,
    }
}

pub(super) fn paths(world: &World) -> PathSummary {
    let stats = world.resource::<NavStats>();
    let ends = world.resource::<TickChecks>().path_failures();
    PathSummary {
        requested: stats.requested,
        found: stats.found,
        unreachable: stats.unreachable,
        blocked: stats.blocked,
        blocked_at_start: ends.blocked_at_start,
        blocked_at_goal: ends.blocked_at_goal,
        out_of_bounds: stats.out_of_bounds,
        without_map: ends.without_map,
        capped: stats.capped,
        cancelled: stats.cancelled,
        shared: stats.shared,
        mean_us: stats.times.mean_us(),
        p99_us: stats.times.p99_us(),
    }
}

pub(super) fn builds(world: &World) -> BuildSummary {
    let stats = world.resource::<Navigator>().build_stats();
    BuildSummary {
        adopted: stats.adopted,
        loaded: stats.loaded,
        waited: stats.waited,
        waited_ms: stats.wait_time.as_secs_f64() * 1e3,
        late: stats.late,
        late_ticks: stats.late_ticks,
    }
}

pub(super) fn views(world: &World, cap: u16) -> ViewSummary {
    let AoiStats {
        counters, links, ..
    } = *world.resource::<AoiStats>();
    ViewSummary {
        cap,
        links,
        enters: counters.enters,
        leaves: counters.leaves,
        evictions: counters.evictions,
        refills: counters.refills,
        full_list_attempts: counters.full_list_attempts,
        longest_list: counters.longest_list,
    }
}

/// `client_seconds` is the time during which clients were connected, summed up.
pub(super) fn sync(world: &World, client_seconds: f64) -> SyncSummary {
    let SyncStats {
        attributes_dirty,
        attributes_clamped,
        sent,
        links,
        kept,
        motions_encoded,
        ..
    } = *world.resource::<SyncStats>();
    let OutboxStats { packets, bytes, .. } = *world.resource::<OutboxStats>();
    SyncSummary {
        attributes_dirty,
        attributes_clamped,
        deltas: sent.deltas.messages,
        snapshots: sent.snapshots.messages,
        despawns: sent.despawns.messages,
        moves: sent.motions.messages,
        unseen_updates: sent.unseen.messages,
        announcements: sent.announcements.messages,
        postponed: sent.deferred,
        client_objects: links,
        kept,
        kept_evicted: sent.kept_evicted,
        motions_encoded,
        packets,
        bytes,
        message_bytes: MessageBytes {
            snapshots: sent.snapshots.bytes,
            despawns: sent.despawns.bytes,
            deltas: sent.deltas.bytes,
            moves: sent.motions.bytes,
            unseen_updates: sent.unseen.bytes,
            announcements: sent.announcements.bytes,
        },
        bytes_per_client_s: if client_seconds > 0.0 {
            bytes as f64 / client_seconds
        } else {
            0.0
        },
    }
}

pub(super) fn matchmaking(world: &World, tick_hz: f64) -> MatchmakingSummary {
    let now_tick = world.resource::<SimTick>().0;
    let mut all = MatchmakingSummary::default();
    let (mut gap, mut spread, mut wait, mut parties) = (0.0, 0.0, 0.0, 0u64);
    let matchmaker = world.resource::<Matchmaker>();
    for (name, mode) in matchmaker.names().iter().zip(matchmaker.modes()) {
        let stats = mode.stats();
        all.modes.push(ModeSummary {
            name: name.clone(),
            matches: stats.matches,
            waiting: mode.waiting_parties(),
            left_over_players: stats.left_over_players,
            mean_power_gap: stats.power_gap.mean(),
            p95_power_gap: stats.power_gap.quantile(95),
            max_power_gap: stats.power_gap.max(),
            mean_wait_s: stats.wait_ticks.mean() / tick_hz,
            p95_wait_s: stats.wait_ticks.quantile(95) as f64 / tick_hz,
            max_wait_s: stats.wait_ticks.max() as f64 / tick_hz,
        });
        all.queued += stats.queued;
        all.cancelled += stats.cancelled;
        all.expired += stats.expired;
        all.matches += stats.matches;
        all.waiting += mode.waiting_parties();
        all.max_power_gap = all.max_power_gap.max(stats.power_gap.max());
        all.p99_spread = all.p99_spread.max(stats.spread.quantile(99));
        let oldest = mode.queue().iter().next();
        let oldest = oldest.map_or(now_tick, |(_, ticket)| ticket.since_tick);
        let waited_s = now_tick.saturating_sub(oldest) as f64 / tick_hz;
        all.waiting_for_s = all.waiting_for_s.max(waited_s);
        all.max_wait_s = all.max_wait_s.max(stats.wait_ticks.max() as f64 / tick_hz);
        gap += stats.power_gap.mean() * stats.matches as f64;
        spread += stats.spread.mean() * stats.matches as f64;
        wait += stats.wait_ticks.mean() * stats.matched_parties as f64;
        parties += stats.matched_parties;
    }
    let matches = all.matches.max(1) as f64;
    (all.mean_power_gap, all.mean_spread) = (gap / matches, spread / matches);
    all.mean_wait_s = wait / parties.max(1) as f64 / tick_hz;
    all
}

pub(super) fn inbox(world: &World, tick_hz: f64) -> InboxSummary {
    let counters = world.resource::<Inbox>().counters();
    InboxSummary {
        received: counters.received,
        handled: counters.handled,
        refused: counters.refused,
        max_backlog: counters.max_backlog,
        max_lag_ms: counters.max_lag_ticks as f64 * 1000.0 / tick_hz,
    }
}

pub(super) fn overload(world: &World) -> OverloadSummary {
    let overload = world.resource::<Overload>();
    let stats = world.resource::<OverloadStats>();
    let [
        _,
        reduced_update_ticks,
        deferred_work_ticks,
        queued_login_ticks,
        dilated_ticks,
    ] = stats.ticks;
    OverloadSummary {
        level: overload.level().number() as u64,
        max_level: stats.highest.number() as u64,
        load: f64::from(overload.load()),
        time_percent: u64::from(overload.time_percent()),
        rises: stats.rises,
        falls: stats.falls,
        reduced_update_ticks,
        deferred_work_ticks,
        queued_login_ticks,
        dilated_ticks,
        login_queue: world.resource::<Sessions>().queue_len() as u64,
        paths_waiting: world.resource::<NavStats>().waiting,
    }
}

pub(super) fn outbox(world: &World) -> OutboxSummary {
    let OutboxStats {
        packets,
        bytes,
        stalls,
        dropped,
        ..
    } = *world.resource::<OutboxStats>();
    OutboxSummary {
        packets,
        bytes,
        stalls,
        dropped,
    }
}
