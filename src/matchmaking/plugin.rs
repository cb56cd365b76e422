//! The matchmaking plugin: requests in, matches on the heartbeat, messages out.
//!
//! ```text
//! PartyTicket inserted ──▶ QueueRequest · removed ──▶ CancelRequest
//! every tick   QueueRequest ────▶ [queue_tickets]           ──▶ TicketQueued    · TicketRefused
//!              MatchResponse ───▶ [apply_match_responses]   ──▶ MatchFormed     · TicketCancelled
//!              CancelRequest ───▶ [cancel_tickets]          ──▶ TicketCancelled · TicketRefused
//!              LoggedOut ───────▶ [cancel_tickets]          ──▶ TicketCancelled
//!              ConnectionLost ──▶ [suspend_tickets]         ──▶ TicketCancelled, suspended; SessionResumed ─▶ TicketQueued
//!              SpectateRequest ─▶ [apply_spectate_requests]
//!              BackfillRequest ─▶ [backfill_matches]        ──▶ BackfillResult
//! Heartbeat                       [form_matches]            ──▶ TicketExpired   · MatchProposed · MatchFormed
//! ```
//! Requests are handled in every tick, right before [`SimSystems::Heartbeat`]: a message lives for two ticks, and the time between two
//! heartbeats is longer. A request in the tick of a heartbeat takes part in it. The requests of a tick are handled in the order in which
//! they were written, but cancellations come after all parties that queue, so a party that queues and cancels in one tick is not queued.
//!
//! A party with a member whose connection is lost is suspended. When all members are back it queues again and keeps the time that it
//! waited. If a member logs out, or the party makes another request, it does not.
//!
//! Invariant after every tick: [`Matchmaker::tickets_conserved`].
//!
//! Limits: a request costs O(log n) ([`BackfillRequest`] a bounded search, see [`MatchmakingCore::backfill`]) and is handled in its own
//! tick. None is carried over, so the limits of the writers (for clients the budget of the inbox) bound the work. The queues are bounded
//! by [`GroupModeSettings::tickets_max`](super::GroupModeSettings::tickets_max). Every refusal is a message and a count.

mod messages;
#[cfg(test)]
mod tests;

pub use messages::{
    BackfillRequest, BackfillResult, CancelRequest, MatchFormed, MatchProposed, MatchResponse,
    PartyTicket, QueueRequest, SpectateRequest, TicketCancelled, TicketExpired, TicketQueued,
    TicketRefused,
};

use std::ops::{Deref, DerefMut};

use bevy_app::{App, FixedUpdate, Startup};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};
use tracing::{debug, error, warn};

use super::suspended::SuspendedTickets;
use super::{
    HeartbeatOutcome, Match, MatchMode, MatchModeSettings, MatchmakingCore, ModeError, Ticket,
    TicketError,
};
use crate::memory::{MemoryAppExt, MemoryUse};
use crate::session::{ConnectionLost, LoggedOut, SessionResumed};
use crate::sim::{HashAppExt, Heartbeat, HeartbeatSystems, SimSystems, SimTick, WarnedCauses};
use crate::world::Players;

/// Matchmaking: forms matches of two sides from parties that wait.
///
/// Insert [`MatchmakingSettings`] with the modes. A party queues with the component [`PartyTicket`] or the message [`QueueRequest`], and
/// cancels by removing the one or with a [`CancelRequest`]. Matches arrive as [`MatchFormed`]; a refused request as [`TicketRefused`],
/// with the reason. [`InstancePlugin`](crate::instance::InstancePlugin) runs matches in scenes of their own.
///
/// Requests are handled in every tick, matches are formed on the heartbeat, in [`HeartbeatSystems::Match`]. A request costs O(log n).
/// Needs no other plugin of the crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchmakingPlugin;

crate::sim::sim_plugin!(MatchmakingPlugin, ());

impl MatchmakingPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<MatchmakingSettings>()
            .register_type::<MatchmakingStats>();
        app.init_resource::<MatchmakingSettings>()
            .init_resource::<Matchmaker>()
            .init_resource::<MatchmakingStats>()
            .init_resource::<TicketSuspensions>()
            .add_message::<LoggedOut>()
            .add_message::<ConnectionLost>()
            .add_message::<SessionResumed>()
            .add_message::<CancelRequest>()
            .add_message::<MatchResponse>()
            .add_message::<SpectateRequest>()
            .add_message::<BackfillRequest>()
            .add_message::<BackfillResult>()
            .add_message::<TicketRefused>()
            .add_message::<TicketCancelled>()
            .count_memory::<Matchmaker>("matchmaking")
            .count_memory::<TicketSuspensions>("matchmaking")
            .add_counted_message::<QueueRequest>("matchmaking")
            .add_counted_message::<TicketQueued>("matchmaking")
            .add_counted_message::<TicketExpired>("matchmaking")
            .add_counted_message::<MatchProposed>("matchmaking")
            .add_counted_message::<MatchFormed>("matchmaking")
            .add_observer(queue_party)
            .add_observer(cancel_party)
            .add_systems(Startup, open_modes)
            .add_systems(
                FixedUpdate,
                (
                    suspend_tickets,
                    queue_tickets,
                    apply_match_responses,
                    cancel_tickets,
                    apply_spectate_requests,
                    backfill_matches,
                )
                    .chain()
                    .after(SimSystems::View)
                    .before(SimSystems::Heartbeat),
            )
            .add_systems(Heartbeat, form_matches.in_set(HeartbeatSystems::Match))
            .hash_part("tickets", |world, hasher| {
                world
                    .resource::<Matchmaker>()
                    .hash_state(&mut |word| hasher.write_u64(word));
                let held = world.resource::<TicketSuspensions>();
                held.0.hash_state(&mut |word| hasher.write_u64(word));
            });
    }
}

/// The modes in which parties can queue.
///
/// Read once, when the app starts, unless a [`Matchmaker`] with modes is there already. To change modes
/// later, insert a new [`Matchmaker`].
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::matchmaking::{MatchModeSettings, MatchmakingSettings};
///
/// app.insert_resource(MatchmakingSettings { modes: vec![MatchModeSettings::groups("duel", 1)] });
/// ```
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MatchmakingSettings {
    /// The modes; their ids are their indices, from 0.
    pub modes: Vec<MatchModeSettings>,
}

/// Counters apart from the statistics of each mode ([`MatchmakingCore::stats`]).
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MatchmakingStats {
    /// Requests to queue that were refused, for any reason.
    pub queue_refused: u64,
    /// Cancellations that were refused.
    pub cancel_refused: u64,
    /// Responses to matches that are not proposed (any more).
    pub response_refused: u64,
    /// Requests to watch that were refused.
    pub spectate_refused: u64,
}

/// The waiting parties of all modes: a [`MatchmakingCore`] as a resource.
///
/// Messages keep an order of requests that does not depend on the schedule. Code that calls
/// [`MatchmakingCore::enqueue`], [`MatchmakingCore::cancel`] or [`MatchmakingCore::remove_player`] directly (a bulk load, a player who
/// is gone for good) gets the result as a return value, and no message is written.
#[derive(Resource, Clone, Debug, MemoryUse)]
pub struct Matchmaker(MatchmakingCore);

impl Matchmaker {
    /// Creates these modes at `tick_hz` ticks per second. Inserted as a resource it replaces the old one, whose
    /// parties are no longer queued.
    ///
    /// # Errors
    /// [`ModeError`] when a mode's settings are out of range or two have the same name.
    pub fn new(modes: &[MatchModeSettings], tick_hz: f64) -> Result<Self, ModeError> {
        MatchmakingCore::new(modes, tick_hz).map(Self)
    }

    /// Whether the counters are consistent: in every mode queued = matched + cancelled + expired + waiting, counted
    /// in parties. O(modes).
    #[must_use]
    pub fn tickets_conserved(&self) -> bool {
        self.modes().iter().all(MatchMode::tickets_conserved)
    }
}

impl Default for Matchmaker {
    /// No modes: every ticket is refused.
    fn default() -> Self {
        Self::new(&[], 1.0).expect("without modes nothing can be out of range")
    }
}

impl Deref for Matchmaker {
    type Target = MatchmakingCore;

    fn deref(&self) -> &MatchmakingCore {
        &self.0
    }
}

impl DerefMut for Matchmaker {
    fn deref_mut(&mut self) -> &mut MatchmakingCore {
        &mut self.0
    }
}

/// The suspended tickets of players whose connection is lost.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
struct TicketSuspensions(SuspendedTickets);

/// Ticks in a thousand seconds, rounded. A timestep is stored in whole nanoseconds, so thirty ticks
/// take slightly less than a second; to the millihertz, the rate is the intended one.
pub fn tick_rate_millihertz(time: &Time<Fixed>) -> u64 {
    let timestep_ns = time.timestep().as_nanos().max(1);
    ((1_000_000_000_000 + timestep_ns / 2) / timestep_ns).max(1) as u64
}

/// Creates the modes of the settings.
fn open_modes(
    settings: Res<MatchmakingSettings>,
    time: Option<Res<Time<Fixed>>>,
    mut matchmaker: ResMut<Matchmaker>,
) {
    if !matchmaker.modes().is_empty() || settings.modes.is_empty() {
        return;
    }
    let Some(time) = time else {
        error!("matchmaking disabled: `Time<Fixed>` not found; add `bevy_time::TimePlugin`");
        return;
    };
    match Matchmaker::new(&settings.modes, tick_rate_millihertz(&time) as f64 / 1000.0) {
        Ok(opened) => *matchmaker = opened,
        // The app continues without matchmaking; the embedder has to correct the settings.
        Err(error) => error!(%error, "matchmaking disabled: invalid mode settings"),
    }
}

/// Queues a party entity that got its ticket.
fn queue_party(
    insert: On<Insert<PartyTicket>>,
    parties: Query<&PartyTicket>,
    mut requests: MessageWriter<QueueRequest>,
) {
    if let Ok(PartyTicket(ticket)) = parties.get(insert.entity) {
        let ticket = ticket.clone();
        requests.write(QueueRequest { ticket });
    }
}

/// Cancels a party entity that lost its ticket.
fn cancel_party(
    remove: On<Remove<PartyTicket>>,
    parties: Query<&PartyTicket>,
    mut requests: MessageWriter<CancelRequest>,
) {
    if let Ok(PartyTicket(ticket)) = parties.get(remove.entity) {
        let (party, player) = (ticket.party, None);
        requests.write(CancelRequest { party, player });
    }
}

/// Queues the parties of all requests.
fn queue_tickets(
    tick: Res<SimTick>,
    (mut requests, mut warned): (MessageReader<QueueRequest>, Local<WarnedCauses>),
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut held: ResMut<TicketSuspensions>,
    (mut queued, mut cancelled): (MessageWriter<TicketQueued>, MessageWriter<TicketCancelled>),
    mut refused: MessageWriter<TicketRefused>,
) {
    for request in requests.read() {
        let mut ticket = request.ticket.clone();
        // With a tick in the future it would wait behind later parties.
        ticket.since_tick = ticket.since_tick.min(tick.0);
        match matchmaker.enqueue(ticket.clone()) {
            Ok(()) => {
                let party = ticket.party;
                queued.write(TicketQueued { ticket });
                let ticket = matchmaker.ticket(party);
                if ticket.is_some_and(|ticket| held.0.has_absent_member(ticket))
                    && let Ok(ticket) = matchmaker.cancel(party)
                {
                    cancelled.write(TicketCancelled {
                        party,
                        mode: ticket.mode,
                    });
                    held.0.suspend(ticket);
                }
            }
            Err(error) => {
                stats.queue_refused += 1;
                // A party may queue again at a bad moment; a mode that does not exist is an error of the game.
                if let TicketError::UnknownMode { mode, .. } = &error
                    && warned.is_new(0, u64::from(mode.0))
                {
                    let modes = matchmaker.names();
                    warn!(party = %ticket.party, mode = mode.0, ?modes, "parties refused: unknown mode");
                }
                debug!(party = %ticket.party, %error, "ticket refused");
                refused.write(TicketRefused {
                    party: ticket.party,
                    error,
                });
            }
        }
    }
}

/// Cancels the parties of all requests, and those of players who logged out: a party is never split.
fn cancel_tickets(
    mut requests: MessageReader<CancelRequest>,
    mut logged_out: MessageReader<LoggedOut>,
    mut held: ResMut<TicketSuspensions>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut cancelled: MessageWriter<TicketCancelled>,
    mut refused: MessageWriter<TicketRefused>,
) {
    for &CancelRequest { party, player } in requests.read() {
        // A suspended party is not queued any more; it must not be queued again.
        let of = held.0.get(party).map(|ticket| ticket.members.clone());
        if let Some(members) = of
            && player.is_none_or(|player| members.contains(&player))
        {
            held.0.remove_by_player(members[0]);
        }
        let ticket = match player {
            Some(player) => matchmaker.cancel_by_member(party, player),
            None => matchmaker.cancel(party),
        };
        match ticket {
            Ok(ticket) => {
                cancelled.write(TicketCancelled {
                    party,
                    mode: ticket.mode,
                });
            }
            Err(error) => {
                stats.cancel_refused += 1;
                debug!(%party, %error, "cancellation refused");
                refused.write(TicketRefused { party, error });
            }
        }
    }
    // They stop watching rooms, too.
    for logged_out in logged_out.read() {
        held.0
            .on_logout(logged_out.player.into(), logged_out.client);
        if let Some(ticket) = matchmaker.remove_player(logged_out.player) {
            cancelled.write(TicketCancelled {
                party: ticket.party,
                mode: ticket.mode,
            });
        }
    }
}

/// Suspends parties with a member whose connection is lost, and queues them again when all are back.
fn suspend_tickets(
    mut lost: MessageReader<ConnectionLost>,
    mut resumed: MessageReader<SessionResumed>,
    mut held: ResMut<TicketSuspensions>,
    mut matchmaker: ResMut<Matchmaker>,
    mut cancelled: MessageWriter<TicketCancelled>,
    mut requests: MessageWriter<QueueRequest>,
) {
    for lost in lost.read() {
        held.0.on_disconnect(lost.player.into(), lost.client);
        let party = matchmaker.party_of(lost.player);
        let ticket = party.and_then(|party| matchmaker.cancel(party).ok());
        if let Some(ticket) = ticket {
            cancelled.write(TicketCancelled {
                party: ticket.party,
                mode: ticket.mode,
            });
            held.0.suspend(ticket);
        }
    }
    for resumed in resumed.read() {
        let ticket = held.0.resume(resumed.player.into(), resumed.client);
        requests.write_batch(ticket.map(|ticket| QueueRequest { ticket }));
    }
}

/// Applies the responses of players.
fn apply_match_responses(
    tick: Res<SimTick>,
    players: Option<Res<Players>>,
    mut requests: MessageReader<MatchResponse>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut cancelled: MessageWriter<TicketCancelled>,
    mut formed: MessageWriter<MatchFormed>,
) {
    for &MatchResponse { player, accept } in requests.read() {
        let answered = if accept {
            matchmaker.accept(player, tick.0).map(|on| {
                formed.write_batch(on.map(|found| MatchFormed {
                    objects: objects_of_groups(players.as_deref(), &found),
                    match_info: found,
                }));
            })
        } else {
            matchmaker.decline(player).map(|ticket| {
                cancelled.write(TicketCancelled {
                    party: ticket.party,
                    mode: ticket.mode,
                });
            })
        };
        if let Err(error) = answered {
            stats.response_refused += 1;
            debug!(%player, %error, "match response ignored");
        }
    }
}

/// Applies requests to watch, or to stop watching.
fn apply_spectate_requests(
    mut requests: MessageReader<SpectateRequest>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
) {
    for &SpectateRequest { player, party } in requests.read() {
        let Some(party) = party else {
            matchmaker.stop_spectating(player);
            continue;
        };
        if let Err(error) = matchmaker.spectate(party, player) {
            stats.spectate_refused += 1;
            debug!(%player, %error, "spectate request refused");
        }
    }
}

/// Finds parties for running matches with missing players.
fn backfill_matches(
    tick: Res<SimTick>,
    players: Option<Res<Players>>,
    mut requests: MessageReader<BackfillRequest>,
    mut matchmaker: ResMut<Matchmaker>,
    mut filled: MessageWriter<BackfillResult>,
) {
    for request in requests.read() {
        let joined = matchmaker.backfill(request.mode, &request.backfill, tick.0);
        let (id, group) = (request.id, request.group);
        let objects = objects_of(players.as_deref(), &joined);
        filled.write(BackfillResult {
            id,
            group,
            tickets: joined,
            objects,
        });
    }
}

/// Runs the heartbeat: waiting parties become matches.
fn form_matches(
    tick: Res<SimTick>,
    players: Option<Res<Players>>,
    mut matchmaker: ResMut<Matchmaker>,
    mut outcome: Local<HeartbeatOutcome>,
    mut expired: MessageWriter<TicketExpired>,
    mut proposed: MessageWriter<MatchProposed>,
    mut formed: MessageWriter<MatchFormed>,
) {
    matchmaker.run_heartbeat(tick.0, &mut outcome);
    expired.write_batch(outcome.expired.drain(..).map(|ticket| TicketExpired {
        party: ticket.party,
        mode: ticket.mode,
    }));
    proposed.write_batch(outcome.proposed.drain(..).map(|found| MatchProposed {
        objects: objects_of_groups(players.as_deref(), &found),
        match_info: found,
    }));
    formed.write_batch(outcome.matches.drain(..).map(|found| MatchFormed {
        objects: objects_of_groups(players.as_deref(), &found),
        match_info: found,
    }));
}

fn objects_of_groups(players: Option<&Players>, found: &Match) -> [Vec<Entity>; 2] {
    std::array::from_fn(|group| objects_of(players, &found.groups[group]))
}

/// The objects of those players who have one. O(players log players).
fn objects_of(players: Option<&Players>, tickets: &[Ticket]) -> Vec<Entity> {
    let members = tickets.iter().flat_map(|ticket| &ticket.members);
    let real = members.filter_map(|member| member.real());
    real.filter_map(|player| players?.entity(player)).collect()
}
