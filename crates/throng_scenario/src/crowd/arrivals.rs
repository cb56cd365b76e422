//! Synthetic parties that queue for matches and cancel, for scenarios and load tests.
//!
//! ```text
//! Queue: parties per second ─────┐
//! queue_parties(…) ──────────────┼─▶ due parties ──▶ [arrive] ──▶ QueueRequest
//! cancel_oldest(…) ──────────────┴─▶ due cancels ──▶          ──▶ CancelRequest ──▶ matchmaking
//! ```
//! These parties exist as tickets only. They have no objects, and are [`TicketParty::Synthetic`] with
//! [`TicketPlayer::Synthetic`], so that their numbers never collide with ids of the world. Parties of crowds have a home scene,
//! are real, and queue in `party_queueing`.
//!
//! Invariants: rates are kept in integers, so that k whole seconds produce exactly k times the rate; the same seed produces the
//! same tickets; everything in a ticket is drawn from the random stream `arrivals` only. A party that returns after its match
//! keeps its id, its players and its preferences.
//!
//! Cost: O(parties that queue, cancel or are matched in the tick), at most `PARTIES_PER_TICK_MAX` of each per flow.

use std::collections::{BTreeMap, VecDeque};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use thiserror::Error;
use tracing::warn;

use super::tickets::{draw_share, draw_size, draw_ticket};
use crate::scenario::ScenarioMatchMode;
use throng::instance::InstanceSystems;
use throng::matchmaking::{
    BackfillResult, CancelRequest, MatchFormed, MatchProposed, MatchResponse, Matchmaker,
    MatchmakingPlugin, PARTY_SIZE_MAX, QueueRequest, Ticket, TicketParty, TicketPlayer,
    tick_rate_millihertz,
};
use throng::memory::{MemoryAppExt, MemoryUse};
use throng::sim::{HashAppExt, RandomStreams, SimSystems, SimTick};
use throng::world::PartyId;

/// Maximum number of parties that a flow queues, and that it cancels, in a tick. Further pending parties queue in later ticks
/// ([`PartyArrivals::pending_parties`]); further cancellations are dropped.
pub const PARTIES_PER_TICK_MAX: u32 = 1 << 17;

/// The maximum rate of a flow, in parties per second.
pub const RATE_PER_S_MAX: f32 = 1e6;

/// Maximum number of parties of a flow that fight or rest before they queue again. Further parties do not return.
const RETURNING_MAX: usize = 1 << 17;

/// Number of players who queued last, from which a party draws the players that it avoids.
const AVOID_CANDIDATES: u64 = 64;

/// The name of the random stream.
const STREAM: &str = "arrivals";

/// Synthetic parties that queue and cancel. Adds [`MatchmakingPlugin`] when it is missing.
///
/// `arrive` is public so that other systems that draw from [`RandomStreams`] in [`SimSystems::Think`] can be ordered before or
/// after it. Each system draws from its own stream, so either order produces the same tickets.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalsPlugin;

throng::sim::sim_plugin!(ArrivalsPlugin, MatchmakingPlugin);

impl ArrivalsPlugin {
    fn add_to(app: &mut App) {
        app.init_resource::<PartyArrivals>()
            .count_memory::<PartyArrivals>("crowd")
            .add_systems(
                FixedUpdate,
                (
                    queue_synthetic_parties
                        .in_set(SimSystems::Think)
                        .after(InstanceSystems),
                    // Runs between two sets, so it delays no other system.
                    accept_matches
                        .after(SimSystems::Think)
                        .before(SimSystems::Navigate),
                ),
            )
            .hash_part("arrivals", |world, hasher| {
                world
                    .resource::<PartyArrivals>()
                    .hash_state(&mut |word| hasher.write_u64(word));
            });
    }
}

/// Why parties cannot queue or cancel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrivalsError {
    /// The mode has no flow.
    #[error("mode `{0}` has no synthetic parties")]
    NoSuchMode(String),
    /// A party cannot have this many players.
    #[error("expected parties of 1 to 5 players, found {0}")]
    Size(u8),
}

/// The flows of synthetic parties, one per mode.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
pub struct PartyArrivals {
    #[memory(each)]
    pub(super) flows: Vec<PartyFlow>,
    /// The next synthetic party; the number wraps to 0.
    next_party: u32,
    /// The next synthetic player; numbers are not reused.
    next_player: u64,
    /// The tick from which each party of a crowd may queue again.
    pub(super) rest_until_tick: BTreeMap<PartyId, u64>,
}

/// The flow of one mode.
#[derive(Clone, Debug, MemoryUse)]
pub(super) struct PartyFlow {
    #[memory(skip)]
    pub spec: ScenarioMatchMode,
    arrivals: Rate,
    cancels: Rate,
    /// Parties that have yet to queue: index 0 counts those with a random size, index i those of i players.
    pending: [u64; PARTY_SIZE_MAX as usize + 1],
    /// Parties to cancel in the next tick.
    pending_cancels: u64,
    /// Whether it was logged that its mode does not exist.
    is_warned: bool,
    /// Parties that queue again, with their tick; nearly sorted by it.
    #[memory(each)]
    returning: VecDeque<(u64, Ticket)>,
}

impl PartyArrivals {
    /// Opens the flow of a mode. If the mode has one, its settings change, and `parties` are added to the pending ones. The mode
    /// itself may open later; until then the pending parties wait outside. O(flows).
    pub fn open(&mut self, spec: ScenarioMatchMode) {
        let at = self
            .flows
            .iter()
            .position(|flow| flow.spec.mode == spec.mode);
        let parties = u64::from(spec.parties);
        let flow = match at {
            Some(at) => &mut self.flows[at],
            None => self.flows.push_mut(PartyFlow {
                spec: ScenarioMatchMode::default(),
                arrivals: Rate::default(),
                cancels: Rate::default(),
                pending: [0; _],
                pending_cancels: 0,
                is_warned: false,
                returning: VecDeque::new(),
            }),
        };
        flow.pending[0] += parties;
        flow.spec = spec;
    }

    /// Queues `parties` more parties, all of `size` players, or of sizes drawn by the mode's weights. They queue in the next
    /// [`SimSystems::Think`].
    ///
    /// # Errors
    /// [`ArrivalsError`] when the mode has no flow or the size is not 1–5; nothing is changed then.
    pub fn queue_parties(
        &mut self,
        mode: &str,
        parties: u32,
        size: Option<u8>,
    ) -> Result<(), ArrivalsError> {
        let place = match size {
            None => 0,
            Some(size @ 1..=PARTY_SIZE_MAX) => usize::from(size),
            Some(size) => return Err(ArrivalsError::Size(size)),
        };
        self.flow(mode)?.pending[place] += u64::from(parties);
        Ok(())
    }

    /// Cancels the `parties` longest-waiting parties of a mode, synthetic or not, in the next [`SimSystems::Think`]. Cancels
    /// fewer when fewer wait then, and at most 131,072.
    ///
    /// # Errors
    /// [`ArrivalsError::NoSuchMode`] when the mode has no flow; nothing is changed then.
    pub fn cancel_oldest(&mut self, mode: &str, parties: u32) -> Result<(), ArrivalsError> {
        self.flow(mode)?.pending_cancels += u64::from(parties);
        Ok(())
    }

    /// Parties that have yet to queue, over all modes. After a tick this is above 0 only if more than 131,072 were pending in a
    /// mode, or if the mode is not open. O(flows).
    #[must_use]
    pub fn pending_parties(&self) -> u64 {
        self.flows.iter().flat_map(|flow| flow.pending).sum()
    }

    fn flow(&mut self, mode: &str) -> Result<&mut PartyFlow, ArrivalsError> {
        let found = self.flows.iter_mut().find(|flow| flow.spec.mode == mode);
        found.ok_or_else(|| ArrivalsError::NoSuchMode(mode.to_owned()))
    }

    /// Feeds the counters, in a fixed order, to a hash.
    fn hash_state(&self, feed: &mut impl FnMut(u64)) {
        feed(u64::from(self.next_party));
        feed(self.next_player);
        for flow in &self.flows {
            feed(flow.arrivals.remainder);
            feed(flow.cancels.remainder);
            feed(flow.pending_cancels);
            flow.pending.into_iter().for_each(&mut *feed);
            for (tick, ticket) in &flow.returning {
                feed(*tick);
                ticket.hash_state(feed);
            }
        }
        for (&party, &tick) in &self.rest_until_tick {
            feed(u64::from(party.0));
            feed(tick);
        }
    }
}

impl PartyFlow {
    /// Logs, once, that its mode does not exist.
    fn warn_of_unknown_mode(&mut self) {
        if !std::mem::replace(&mut self.is_warned, true) {
            let mode = &self.spec.mode;
            warn!(mode, "party arrivals skipped: unknown mode");
        }
    }

    /// Takes the next pending party and returns its size; 0 means a random size.
    fn pop_pending(&mut self) -> Option<u8> {
        let place = self.pending.iter().position(|&due| due > 0)?;
        self.pending[place] -= 1;
        Some(place as u8)
    }

    /// Ticks from the start of a match until its parties may queue again.
    fn away_ticks(&self, tick_mhz: u64) -> u64 {
        to_ticks(self.spec.match_duration_s, tick_mhz)
            + to_ticks(self.spec.requeue_delay_s, tick_mhz)
    }

    /// Takes the next party whose rest is over.
    fn pop_returning(&mut self, now_tick: u64) -> Option<Ticket> {
        let is_due = |next: &&(u64, Ticket)| next.0 <= now_tick;
        self.returning.front().filter(is_due)?;
        self.returning.pop_front().map(|(_, ticket)| ticket)
    }
}

/// Converts seconds to ticks, at a tick rate of `tick_mhz` millihertz. NaN and negative values give 0.
pub(super) fn to_ticks(seconds: f32, tick_mhz: u64) -> u64 {
    (f64::from(seconds.max(0.0)) * tick_mhz as f64 / 1000.0) as u64
}

/// A rate per second, converted to events per tick.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// The fraction of an event left over from the ticks so far, in units of 1 / (10⁶ · `tick_mhz`) events.
    remainder: u64,
}

impl Rate {
    /// The number of events in this tick, at a tick rate of `tick_mhz` millihertz. O(1).
    fn events_this_tick(&mut self, per_s: f32, tick_mhz: u64) -> u64 {
        // NaN stays NaN when clamped, and the cast turns it into 0.
        let millionths_per_s = (f64::from(per_s.clamp(0.0, RATE_PER_S_MAX)) * 1e6).round() as u64;
        let event = 1_000_000 * tick_mhz;
        let total = self.remainder + millionths_per_s * 1000;
        self.remainder = total % event;
        total / event
    }
}

/// Queues parties and cancels them.
pub fn queue_synthetic_parties(
    (tick, time): (Res<SimTick>, Res<Time<Fixed>>),
    matchmaker: Res<Matchmaker>,
    mut arrivals: ResMut<PartyArrivals>,
    mut streams: ResMut<RandomStreams>,
    mut formed: MessageReader<MatchFormed>,
    mut filled: MessageReader<BackfillResult>,
    mut queue: MessageWriter<QueueRequest>,
    mut cancel: MessageWriter<CancelRequest>,
) {
    let tick_mhz = tick_rate_millihertz(&time);
    let rng = streams.stream(STREAM);
    let PartyArrivals {
        flows,
        next_party,
        next_player,
        rest_until_tick: rest_until,
    } = &mut *arrivals;
    let formed = formed.read().flat_map(|formed| &formed.match_info.groups);
    let joined = filled.read().map(|filled| &filled.tickets);
    for ticket in formed.chain(joined).flatten() {
        let named = matchmaker.names().get(usize::from(ticket.mode.0));
        let flow = flows.iter_mut().find(|flow| Some(&flow.spec.mode) == named);
        let Some(flow) = flow else { continue };
        let back = tick.0 + flow.away_ticks(tick_mhz);
        if let TicketParty::Real(party) = ticket.party {
            // The map has only parties that queue automatically.
            rest_until.entry(party).and_modify(|until| *until = back);
        } else if draw_share(rng, flow.spec.requeue_share) && flow.returning.len() < RETURNING_MAX {
            flow.returning.push_back((back, ticket.clone()));
        }
    }
    for flow in flows {
        flow.pending[0] += flow
            .arrivals
            .events_this_tick(flow.spec.parties_per_s, tick_mhz);
        let cancels = flow
            .cancels
            .events_this_tick(flow.spec.cancels_per_s, tick_mhz)
            + std::mem::take(&mut flow.pending_cancels);
        let Some(mode) = matchmaker.mode_by_name(&flow.spec.mode) else {
            flow.warn_of_unknown_mode();
            continue;
        };
        let oldest = matchmaker.modes()[usize::from(mode.0)].queue().iter();
        let cancels = cancels.min(u64::from(PARTIES_PER_TICK_MAX)) as usize;
        cancel.write_batch(oldest.take(cancels).map(|(_, ticket)| CancelRequest {
            party: ticket.party,
            player: None,
        }));
        for _ in 0..PARTIES_PER_TICK_MAX {
            let Some(mut ticket) = flow.pop_returning(tick.0) else {
                break;
            };
            ticket.since_tick = tick.0;
            queue.write(QueueRequest { ticket });
        }
        for _ in 0..PARTIES_PER_TICK_MAX {
            let Some(size) = flow.pop_pending() else {
                break;
            };
            let size = match size {
                0 => draw_size(rng, &flow.spec.size_weights),
                size => size,
            };
            let known = next_player.saturating_sub(AVOID_CANDIDATES)..*next_player;
            let party = TicketParty::Synthetic(*next_party);
            let mut ticket = draw_ticket(rng, &flow.spec, mode, party, size, known);
            ticket.since_tick = tick.0;
            let players = (*next_player..).take(usize::from(size));
            ticket.members = players.map(TicketPlayer::Synthetic).collect();
            *next_party = next_party.wrapping_add(1);
            *next_player += u64::from(size);
            queue.write(QueueRequest { ticket });
        }
    }
}

/// Synthetic players, and queued players of crowds, accept every match that is proposed to them.
fn accept_matches(
    arrivals: Res<PartyArrivals>,
    mut proposed: MessageReader<MatchProposed>,
    mut answers: MessageWriter<MatchResponse>,
) {
    for MatchProposed {
        match_info: found, ..
    } in proposed.read()
    {
        let is_ours = |ticket: &&Ticket| match ticket.party {
            TicketParty::Real(party) => arrivals.rest_until_tick.contains_key(&party),
            TicketParty::Synthetic(_) => true,
        };
        let ours = found.groups.iter().flatten().filter(is_ours);
        let players = ours.flat_map(|ticket| ticket.members.iter().copied());
        let accept = true;
        answers.write_batch(players.map(|player| MatchResponse { player, accept }));
    }
}

/// [`PartyArrivals::queue_parties`] for scripts with `&mut World`.
///
/// # Errors
/// [`ArrivalsError`] when the mode has no flow or the size is not 1–5; nothing is changed then.
pub fn queue_parties(
    world: &mut World,
    mode: &str,
    parties: u32,
    size: Option<u8>,
) -> Result<(), ArrivalsError> {
    world
        .get_resource_or_init::<PartyArrivals>()
        .queue_parties(mode, parties, size)
}

/// [`PartyArrivals::cancel_oldest`] for scripts with `&mut World`.
///
/// # Errors
/// [`ArrivalsError::NoSuchMode`] when the mode has no flow; nothing is changed then.
pub fn cancel_oldest(world: &mut World, mode: &str, parties: u32) -> Result<(), ArrivalsError> {
    world
        .get_resource_or_init::<PartyArrivals>()
        .cancel_oldest(mode, parties)
}

#[cfg(test)]
mod tests;
