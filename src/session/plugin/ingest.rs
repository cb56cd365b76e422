//! `Ingest`: handles what arrived since the last tick, within a budget.
//!
//! ```text
//! new connections ─▶ authentication replies ─▶ messages, one per client in turn ─▶ ended connections, floods ─▶ deadlines, login queue
//! ```

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::debug;

use super::checks::MessageFault;
use super::effects::{end, tell, with_key};
use super::logins::take_answers;
use super::messages::{Handled, MessageBatch, handle, hear};
use super::settings::{SessionSettings, SessionStats};
use crate::inbox::{
    ConnectionInfo, DisconnectReason, InboundMessage, Inbox, InboxSettings, WorkBudget,
};
use crate::memory::MemoryUse;
use crate::outbox::SlowConsumerDetected;
use crate::session::authentication::{Authentication, LoginDecision};
use crate::session::reasons::{AcceptError, LogoutReason};
use crate::session::sessions::{SessionEffect, Sessions};
use crate::session::transport::TransportHandle;
use crate::sim::clock::Stopwatch;
use crate::sim::{Overload, SimTick, StateHasher};
use crate::wire::{ClientId, MessageClass};

/// Messages that are taken at once, with the intake locked.
const TAKEN_AT_ONCE: usize = 32;

/// What is kept from tick to tick, and buffers.
#[derive(Resource, Default, MemoryUse)]
pub(super) struct IngestState {
    budget: WorkBudget,
    new: Vec<(ClientId, ConnectionInfo)>,
    taken: Vec<InboundMessage>,
    said: MessageBatch,
    ended: Vec<(ClientId, DisconnectReason)>,
    flooding: Vec<ClientId>,
    refused: Vec<(ClientId, u16)>,
    answered: Vec<LoginDecision>,
    effects: Vec<SessionEffect>,
    behind: MessageCursor<SlowConsumerDetected>,
}

impl IngestState {
    pub fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.budget.threshold_ns());
    }
}

/// All that came in is taken notice of, and messages are handled as far as the budget goes.
///
/// Hooks and observers run meanwhile, which may connect a client themselves. So the state is moved out and its place left with an
/// empty one: nothing that such a call keeps there is needed afterwards.
pub(super) fn ingest(world: &mut World) {
    let mut state = std::mem::take(&mut *world.resource_mut::<IngestState>());
    ingest_with(world, &mut state);
    *world.resource_mut::<IngestState>() = state;
}

fn ingest_with(world: &mut World, state: &mut IngestState) {
    begin(world);
    let behind = world.resource::<Messages<SlowConsumerDetected>>();
    for client in state.behind.read(behind).map(|behind| behind.client) {
        state.ended.push((client, DisconnectReason::Lost));
    }
    for (client, _) in state.ended.drain(..) {
        end(
            world,
            client,
            LogoutReason::SlowConsumer,
            &mut state.effects,
        );
    }
    open_new(world, state);
    with_key(world, |sessions, key| sessions.resume_waiting(key));
    tell(world, &mut state.effects);
    world.resource::<Authentication>().take(&mut state.answered);
    take_answers(world, &mut state.answered, &mut state.effects);
    handle_messages(world, state);
    let inbox = world.resource::<Inbox>();
    inbox.intake().queue.take_ended(&mut state.ended);
    inbox.intake().queue.take_flooding(&mut state.flooding);
    for (client, _) in state.ended.drain(..) {
        world.resource_mut::<Sessions>().lose_link(client);
        tell(world, &mut state.effects);
    }
    for client in state.flooding.drain(..) {
        end(world, client, LogoutReason::Flooding, &mut state.effects);
    }
    finish(world, &mut state.effects);
}

fn begin(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    let timestep = world.resource::<Time<Fixed>>().timestep();
    let overload = *world.resource::<Overload>();
    let mut rules = world
        .resource::<SessionSettings>()
        .rules(timestep.as_secs_f64());
    if !overload.admits_logins() {
        rules.admitted_per_tick_max = 0;
    }
    world.resource_mut::<Sessions>().begin_tick(tick, rules);
    let tick_ns = u64::try_from(timestep.as_nanos()).unwrap_or(u64::MAX);
    // Clients send by real time, of which a tick has more while simulated time is dilated.
    let real_ns = tick_ns.saturating_mul(100) / u64::from(overload.time_percent().max(1));
    let limits = world.resource::<InboxSettings>().limits(real_ns);
    world.resource::<Inbox>().intake().begin_tick(tick, limits);
}

/// Opens sessions for those who connected.
fn open_new(world: &mut World, state: &mut IngestState) {
    let max = world
        .resource::<SessionSettings>()
        .sessions_opened_per_tick_max as usize;
    let refused = world
        .resource::<Inbox>()
        .intake()
        .take_connections(max, &mut state.new);
    world.resource_mut::<SessionStats>().refused += refused;
    for (client, connected) in state.new.drain(..) {
        let is_banned = connected.address.is_some_and(|address| {
            let mut authentication = world.resource_mut::<Authentication>();
            authentication.hook.is_banned(address)
        });
        world
            .resource_mut::<Sessions>()
            .open(client, connected, is_banned);
        tell(world, &mut state.effects);
    }
    let open = world.resource::<Sessions>().len();
    let mut stats = world.resource_mut::<SessionStats>();
    stats.peak = stats.peak.max(open);
}

/// Handles messages until the tick's budget is used up.
fn handle_messages(world: &mut World, state: &mut IngestState) {
    let tick = world.resource::<SimTick>().0;
    let settings = world.resource::<InboxSettings>();
    let (costs, use_clock) = (settings.costs, settings.use_clock);
    let mut left = settings.messages_per_tick_max as usize;
    let tick_ns = world.resource::<Time<Fixed>>().timestep().as_nanos() as u64;
    let (waiting, clients) = {
        let intake = world.resource::<Inbox>().intake();
        (intake.queue.len(), intake.queue.clients())
    };
    let budget_ns = state
        .budget
        .begin_tick(&settings.budget, waiting, clients, tick_ns);
    let watch = use_clock.then(Stopwatch::start);
    let mut spent_ns = 0;
    while spent_ns < budget_ns && left > 0 {
        let mut reckoned_ns = 0;
        {
            let mut intake = world.resource::<Inbox>().intake();
            intake.queue.prefetch(TAKEN_AT_ONCE.min(left));
            while state.taken.len() < TAKEN_AT_ONCE.min(left) && spent_ns + reckoned_ns < budget_ns
            {
                let Some(message) = intake.queue.pop(tick) else {
                    break;
                };
                let is_login = MessageClass::of(&message.bytes) == MessageClass::Login;
                reckoned_ns += costs.of(is_login, message.bytes.len());
                state.taken.push(message);
            }
        }
        if state.taken.is_empty() {
            break;
        }
        left -= state.taken.len();
        act_on_taken(world, tick, state);
        spent_ns = match &watch {
            Some(watch) => u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX),
            None => spent_ns + reckoned_ns,
        };
    }
    let inbox = world.resource::<Inbox>();
    inbox.intake().queue.take_refused(&mut state.refused);
    let mut sessions = world.resource_mut::<Sessions>();
    for (client, number) in state.refused.drain(..) {
        sessions.settle(client, number);
    }
}

/// Acts on the messages that were taken, in their order.
fn act_on_taken(world: &mut World, tick: u64, state: &mut IngestState) {
    let mut messages = state.taken.iter();
    let sessions = world.resource::<Sessions>();
    state
        .taken
        .iter()
        .for_each(|message| sessions.prefetch(message.client));
    while !messages.as_slice().is_empty() {
        let mut faults = 0;
        let mut by_world = None;
        let sessions = &mut *world.resource_mut::<Sessions>();
        for inbound in messages.by_ref() {
            match hear(sessions, tick, inbound, &mut state.said) {
                Ok(Handled::Done) => {}
                Ok(Handled::ByWorld(message)) => {
                    by_world = Some((inbound.client, message));
                    break;
                }
                Err(fault) => faults += refused(inbound.client, fault),
            }
        }
        state.said.write(world);
        if let Some((client, message)) = by_world {
            if let Err(fault) = handle(world, client, message) {
                faults += refused(client, fault);
            }
            tell(world, &mut state.effects);
        }
        world.resource_mut::<SessionStats>().bad_messages += faults;
    }
    state.taken.clear();
}

/// One message more was refused.
fn refused(client: ClientId, reason: MessageFault) -> u64 {
    debug!(client = client.0, reason, "client message refused");
    1
}

/// Deadlines, and the line.
fn finish(world: &mut World, effects: &mut Vec<SessionEffect>) {
    world.resource_mut::<Sessions>().expire();
    with_key(world, |sessions, key| sessions.admit(key));
    world.resource_mut::<Sessions>().tell_places();
    tell(world, effects);
    let sessions = world.resource::<Sessions>();
    let (queued, admitted) = (sessions.queued(), sessions.admitted());
    let mut stats = world.resource_mut::<SessionStats>();
    stats.queued_max = stats.queued_max.max(queued);
    stats.admitted_max = stats.admitted_max.max(admitted);
}

/// Connects a client by the [`TransportHandle`] and has the world take notice of it at once, for whoever has the world: tests,
/// tools, players in memory.
///
/// # Errors
/// [`AcceptError`] where there is no room.
///
/// # Panics
/// Where there is no [`SessionPlugin`](super::SessionPlugin).
pub fn connect(world: &mut World, connected: ConnectionInfo) -> Result<ClientId, AcceptError> {
    let client = world.resource::<TransportHandle>().connect(connected)?;
    begin(world);
    open_new(world, &mut IngestState::default());
    let sessions = world.resource::<Sessions>();
    match sessions.get(client) {
        Some(_) => Ok(client),
        None => Err(AcceptError::Full(sessions.len())),
    }
}
