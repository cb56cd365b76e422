//! The matchmaking plugin: requests in, matches on the heartbeat, messages out.
//!
//! ```text
//! PartyTicket inserted ──▶ QueueRequest · removed ──▶ CancelRequest
//! every tick   QueueRequest ──▶ [queue_tickets]  ──▶ TicketQueued    · TicketRefused
//!              MatchResponse ─▶ [answer_matches] ──▶ MatchFormed     · TicketCancelled
//!              CancelRequest ─▶ [cancel_tickets] ──▶ TicketCancelled · TicketRefused
//!              LoggedOut ─────▶ [cancel_tickets] ──▶ TicketCancelled
//!              ConnectionLost ──────▶ [hold_tickets]   ──▶ TicketCancelled, suspended; SessionResumed ─▶ TicketQueued
//!              SpectateRequest ──▶ [watch_rooms]
//!              BackfillRequest ▶ [fill_matches]  ──▶ BackfillResult
//! Heartbeat                     [make_matches]   ──▶ TicketExpired   · MatchProposed · MatchFormed
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
//! Limits: a request costs O(log n) ([`BackfillRequest`] a bounded search, see [`MatchmakingCore::backfill`]) and is handled in its own tick. None
//! is carried over, so the limits of the writers (for clients the budget of the inbox) bound the work. The queues are bounded by
//! [`GroupModeSettings::tickets_max`](super::GroupModeSettings::tickets_max). Every refusal is a message and a count.

#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};

use bevy_app::{App, FixedUpdate, Startup};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};
use tracing::{debug, error};

use super::suspended::SuspendedTickets;
use super::{
    Backfill, HeartbeatOutcome, Match, MatchMode, MatchModeSettings, MatchmakingCore, ModeError,
    ModeId, Ticket, TicketError, TicketParty, TicketPlayer,
};
use crate::memory::{MemoryAppExt, MemoryUse};
use crate::session::{ConnectionLost, LoggedOut, SessionResumed};
use crate::sim::{HashAppExt, Heartbeat, HeartbeatSystems, SimSystems, SimTick};
use crate::world::Players;

/// Makes battles out of waiting parties, in [`HeartbeatSystems::Match`]. Needs no other plugin of the crate.
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
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MatchmakingSettings {
    /// The modes; their ids are their places, from 0.
    pub modes: Vec<MatchModeSettings>,
}

/// What is counted beside the statistics of each mode ([`MatchmakingCore::stats`]).
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct MatchmakingStats {
    /// Requests to queue that were refused, for whatever reason.
    pub queue_refused: u64,
    /// Cancellations that were refused.
    pub cancel_refused: u64,
    /// Answers to matches that were not proposed, or no more.
    pub response_refused: u64,
    /// Wishes to watch where nobody can, or nobody else.
    pub spectate_refused: u64,
}

/// The waiting parties of all modes: a [`MatchmakingCore`] as a resource.
///
/// To queue and cancel by messages keeps an order that does not depend on the schedule. Whoever calls
/// [`MatchmakingCore::enqueue`], [`MatchmakingCore::cancel`] or [`MatchmakingCore::remove_player`] directly (a bulk load, a player who
/// is gone for good) gets the outcome as the result, and no fact is written.
#[derive(Resource, Clone, Debug, MemoryUse)]
pub struct Matchmaker(MatchmakingCore);

impl Matchmaker {
    /// Opens these modes at `tick_hz` ticks a second. Inserted as a resource it replaces the old one, whose
    /// parties wait no more.
    ///
    /// # Errors
    /// [`ModeError`] when a mode's settings are out of range or two have the same name.
    pub fn new(modes: &[MatchModeSettings], tick_hz: f64) -> Result<Self, ModeError> {
        MatchmakingCore::new(modes, tick_hz).map(Self)
    }

    /// Whether the books are right: in every mode queued = matched + cancelled + expired + waiting, counted
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

/// What waits for players whose connection is lost.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
struct TicketSuspensions(SuspendedTickets);

/// A party that is an entity, with its ticket: inserted it queues, removed or despawned it gives up. That is the
/// same as to write the messages, and is answered by the same: a party that waits no more cannot give up. To
/// change a ticket, remove it in one tick and insert another in the next.
#[derive(Component, Clone, Debug, PartialEq, Eq)]
#[component(immutable)]
pub struct PartyTicket(pub Ticket);

/// A party wants a battle. Answered in the same tick by [`TicketQueued`] or [`TicketRefused`].
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct QueueRequest {
    /// Its ticket. A `since_tick` that is not reached yet counts as now.
    pub ticket: Ticket,
}

/// A party wants to wait no longer. Answered in the same tick by [`TicketCancelled`] or [`TicketRefused`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The party that is to wait no longer.
    pub party: TicketParty,
    /// The player who asks, and must be a member; `None` when the server itself asks.
    pub player: Option<TicketPlayer>,
}

/// A player accepts or declines the match that is proposed. To decline voids the party's ticket, which is
/// answered by [`TicketCancelled`]; the last acceptance by [`MatchFormed`], both in the same tick. An answer
/// that comes too late is counted and otherwise ignored.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchResponse {
    /// The player who answers, a member of a party of the match.
    pub player: TicketPlayer,
    /// Whether the player accepts.
    pub accept: bool,
}

/// A player wants to watch the room of a party, or to watch no more. A wish that cannot be granted is counted and
/// otherwise ignored.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpectateRequest {
    /// The player who wants to watch, or to watch no more.
    pub player: TicketPlayer,
    /// The party whose room is to be watched; `None` to watch no more.
    pub party: Option<TicketParty>,
}

/// Players are missing in a running match. Answered in the same tick by [`BackfillResult`].
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// The number of the running match; given back in the answer.
    pub id: u64,
    /// The mode in whose queue players are looked for.
    pub mode: ModeId,
    /// The group that lacks players, 0 or 1; given back in the answer.
    pub group: usize,
    /// Who is missing.
    pub backfill: Backfill,
}

/// Who joins a running match.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct BackfillResult {
    /// The number of the running match, as the request gave it.
    pub id: u64,
    /// The group that they join, 0 or 1.
    pub group: usize,
    /// The parties, which wait no more; none when none make up exactly what is missing.
    pub tickets: Vec<Ticket>,
    /// The objects of their players, in the order of the tickets' members; players without one are left out.
    pub objects: Vec<Entity>,
}

/// A party waits from this tick on.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketQueued {
    /// The ticket with which the party waits.
    pub ticket: Ticket,
}

/// A request was refused; the queues are as they were.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketRefused {
    /// The party that the request was about.
    pub party: TicketParty,
    /// Why it was refused.
    pub error: TicketError,
}

/// A party waits no more, since it was asked for.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketCancelled {
    /// The party that waits no more.
    pub party: TicketParty,
    /// Where it waited.
    pub mode: ModeId,
}

/// A party waits no more, since it has waited or kept silent about a match for too long.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketExpired {
    /// The party that waits no more.
    pub party: TicketParty,
    /// Where it waited.
    pub mode: ModeId,
}

/// A match is found whose players are asked whether they accept; in a mode with
/// [`accept_timeout_s`](super::GroupModeSettings::accept_timeout_s).
#[derive(Message, Clone, Debug, PartialEq)]
pub struct MatchProposed {
    /// Who against whom.
    pub match_info: Match,
    /// The objects of each group's players, in the order of the tickets' members; players without one are left out.
    pub objects: [Vec<Entity>; 2],
}

/// Two groups are to fight each other; their parties wait no more.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct MatchFormed {
    /// Who against whom, and how good a match it is.
    pub match_info: Match,
    /// The objects of each group's players, in the order of the tickets' members; players without one are left out.
    pub objects: [Vec<Entity>; 2],
}

/// Ticks in a thousand seconds, rounded. A timestep is kept in whole nanoseconds, so that thirty ticks a
/// second last a little less than one; to the millihertz, the rate is the one that was meant.
pub fn tick_rate_millihertz(time: &Time<Fixed>) -> u64 {
    let timestep_ns = time.timestep().as_nanos().max(1);
    ((1_000_000_000_000 + timestep_ns / 2) / timestep_ns).max(1) as u64
}

/// Opens the modes of the settings.
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
        // The app plays on without battles; what is wrong with its numbers is the embedder's to mend.
        Err(error) => error!(%error, "matchmaking disabled: invalid mode settings"),
    }
}

/// A party entity gets its ticket.
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

/// A party entity loses its ticket.
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

/// Parties that want to wait.
fn queue_tickets(
    tick: Res<SimTick>,
    mut requests: MessageReader<QueueRequest>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut held: ResMut<TicketSuspensions>,
    (mut queued, mut cancelled): (MessageWriter<TicketQueued>, MessageWriter<TicketCancelled>),
    mut refused: MessageWriter<TicketRefused>,
) {
    for request in requests.read() {
        let mut ticket = request.ticket.clone();
        // Left in the future it would wait behind those who come after it.
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
                debug!(party = %ticket.party, %error, "ticket refused");
                refused.write(TicketRefused {
                    party: ticket.party,
                    error,
                });
            }
        }
    }
}

/// Parties that want to wait no longer, and those of players who logged out: a party never splits.
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
        // One that is held waits no more already; it is not to wait again.
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
    // They watch no room any more, either.
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

/// Parties of which somebody's connection is lost wait no more, and again when all are back.
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

/// Players who say whether they accept.
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

/// Players who want to watch, or to watch no more.
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

/// Running matches in which players are missing.
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

/// Waiting parties become matches.
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
