//! `Ingest`: handles what arrived since the last tick, within a budget.
//!
//! ```text
//! new connections ─▶ authentication replies ─▶ messages, one per client in turn ─▶ ended connections, floods ─▶ deadlines, login queue
//! ```

use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use tracing::debug;

use super::client_messages::{Handled, MessageBatch, handle_message, handle_with_world};
use super::control::{SessionClient, SessionUserData};
use super::effects::{end_session, with_key, write_effects};
use super::logins::{apply_login_decisions, continue_session};
use super::settings::{SessionSettings, SessionStats};
use crate::inbox::{
    ConnectionInfo, DisconnectReason, InboundMessage, Inbox, InboxSettings, WorkBudget,
};
use crate::memory::MemoryUse;
use crate::outbox::SlowConsumerDetected;
use crate::session::authentication::{Authentication, LoginDecision};
use crate::session::bans::BanList;
use crate::session::reasons::{AcceptError, LogoutReason};
use crate::session::sessions::{SessionEffect, Sessions};
use crate::session::transport::TransportHandle;
use crate::sim::clock::Stopwatch;
use crate::sim::{Overload, SimTick, StateHasher};
use crate::wire::{ClientId, MessageClass};

/// Ticks after which the messages of a client that comes from another process are handled even if it controls no object.
const HELD_TICKS_MAX: u64 = 32;

/// Messages that are taken per lock of the intake.
const BATCH_MAX: usize = 32;

/// State that is kept between ticks, and buffers.
#[derive(Resource, Default, MemoryUse)]
pub(super) struct IngestState {
    budget: WorkBudget,
    connections: Vec<(ClientId, ConnectionInfo)>,
    /// Clients that come from another process. Their messages wait until the client controls an object, at most until this tick.
    held: Vec<(ClientId, u64)>,
    batch: Vec<InboundMessage>,
    output: MessageBatch,
    ended: Vec<(ClientId, DisconnectReason)>,
    flooding: Vec<ClientId>,
    shut_out: Vec<ClientId>,
    refused: Vec<(ClientId, u16)>,
    decisions: Vec<LoginDecision>,
    effects: Vec<SessionEffect>,
    slow_consumers: MessageCursor<SlowConsumerDetected>,
}

impl IngestState {
    pub fn hash(&self, inbox: &Inbox, hasher: &mut StateHasher) {
        hasher.write_u64(self.budget.threshold_ns());
        for &(client, until_tick) in &self.held {
            hasher.write_u64(client.0.into());
            hasher.write_u64(until_tick);
            for message in inbox.intake().queue.client_messages(client) {
                let bytes = message.bytes.iter();
                bytes.for_each(|&byte| hasher.write_u64(byte.into()));
            }
        }
    }
}

/// Handles all connection events, and messages up to the budget.
///
/// Hooks and observers run in between and may connect clients themselves. So the state is moved out, and an empty one is left
/// in its place. Of the state that such a call stores there, only the held clients are needed afterwards.
pub(super) fn ingest(world: &mut World) {
    let mut state = std::mem::take(&mut *world.resource_mut::<IngestState>());
    ingest_with(world, &mut state);
    let mut own = world.resource_mut::<IngestState>();
    state.held.append(&mut own.held);
    *own = state;
}

fn ingest_with(world: &mut World, state: &mut IngestState) {
    begin_tick(world);
    let behind = world.resource::<Messages<SlowConsumerDetected>>();
    for client in state
        .slow_consumers
        .read(behind)
        .map(|behind| behind.client)
    {
        state.ended.push((client, DisconnectReason::Lost));
    }
    for (client, _) in state.ended.drain(..) {
        end_session(
            world,
            client,
            LogoutReason::SlowConsumer,
            &mut state.effects,
        );
    }
    open_sessions(world, state);
    with_key(world, |sessions, key| sessions.resume_pending(key));
    write_effects(world, &mut state.effects);
    world
        .resource::<Authentication>()
        .drain_decisions(&mut state.decisions);
    apply_login_decisions(world, &mut state.decisions, &mut state.effects);
    release_held(world, &mut state.held);
    handle_messages(world, state);
    let inbox = world.resource::<Inbox>();
    inbox.intake().queue.take_ended(&mut state.ended);
    inbox.intake().queue.take_flooding(&mut state.flooding);
    inbox.intake().queue.take_shut_out(&mut state.shut_out);
    for (client, reason) in state.ended.drain(..) {
        let mut sessions = world.resource_mut::<Sessions>();
        if reason == DisconnectReason::Moved {
            sessions.end(client, LogoutReason::Moved);
        } else {
            sessions.on_disconnect(client);
        }
        write_effects(world, &mut state.effects);
    }
    for client in state.flooding.drain(..) {
        end_session(world, client, LogoutReason::Flooding, &mut state.effects);
    }
    for client in state.shut_out.drain(..) {
        debug!(
            client = client.0,
            "client closed: its login found the inbox full"
        );
        end_session(world, client, LogoutReason::Full, &mut state.effects);
    }
    finish_tick(world, &mut state.effects);
}

fn begin_tick(world: &mut World) {
    let tick = world.resource::<SimTick>().0;
    let timestep = world.resource::<Time<Fixed>>().timestep();
    let overload = *world.resource::<Overload>();
    let mut rules = world
        .resource::<SessionSettings>()
        .tick_settings(timestep.as_secs_f64());
    if !overload.admits_logins() {
        rules.admitted_per_tick_max = 0;
    }
    world.resource_mut::<Sessions>().begin_tick(tick, rules);
    let tick_ns = u64::try_from(timestep.as_nanos()).unwrap_or(u64::MAX);
    // Clients send by real time; a tick has more of it while simulated time is dilated.
    let real_ns = tick_ns.saturating_mul(100) / u64::from(overload.time_percent().max(1));
    let limits = world.resource::<InboxSettings>().limits(real_ns);
    world.resource::<Inbox>().intake().begin_tick(tick, limits);
}

/// Opens sessions for new connections.
fn open_sessions(world: &mut World, state: &mut IngestState) {
    let max = world
        .resource::<SessionSettings>()
        .sessions_opened_per_tick_max as usize;
    let refused = world
        .resource::<Inbox>()
        .intake()
        .take_connections(max, &mut state.connections);
    world.resource_mut::<SessionStats>().refused += refused;
    for (client, connected) in state.connections.drain(..) {
        let is_banned = connected.address.is_some_and(|address| {
            if world
                .resource::<BanList>()
                .of_address(address.ip())
                .is_some()
            {
                return true;
            }
            let mut authentication = world.resource_mut::<Authentication>();
            authentication.hook.is_banned(address)
        });
        let client_entity = world.spawn_empty().id();
        let user_data = connected.user_data.clone();
        let continues = connected.continues.and(connected.claims.player);
        let mut sessions = world.resource_mut::<Sessions>();
        sessions.open((client, client_entity), connected, is_banned);
        // An observer of the component finds the session.
        let mut opened = world.entity_mut(client_entity);
        if let Some(data) = user_data {
            opened.insert(SessionUserData::new(data));
        }
        opened.insert(SessionClient::new(client));
        write_effects(world, &mut state.effects);
        if let Some(player) = continues {
            continue_session(world, client, player, &mut state.effects);
            let until_tick = world.resource::<SimTick>().0 + HELD_TICKS_MAX;
            state.held.push((client, until_tick));
        }
    }
    let open = world.resource::<Sessions>().len();
    let mut stats = world.resource_mut::<SessionStats>();
    stats.peak = stats.peak.max(open);
}

/// Releases the messages of clients that came from another process and now control an object. Earlier, most of them would be refused.
fn release_held(world: &World, held: &mut Vec<(ClientId, u64)>) {
    let (sessions, tick) = (world.resource::<Sessions>(), world.resource::<SimTick>().0);
    held.retain(|&(client, until_tick)| {
        let session = sessions.get(client);
        let controls = session.is_none_or(|session| session.controlled_entity.is_some());
        let mut intake = world.resource::<Inbox>().intake();
        let is_over = controls || tick >= until_tick || intake.queue.has_ended(client);
        if is_over {
            intake.queue.release(client);
        }
        !is_over
    });
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
    state.output.begin_tick();
    while spent_ns < budget_ns && left > 0 {
        let mut reckoned_ns = 0;
        {
            let mut intake = world.resource::<Inbox>().intake();
            intake.queue.prefetch(BATCH_MAX.min(left));
            while state.batch.len() < BATCH_MAX.min(left) && spent_ns + reckoned_ns < budget_ns {
                let Some(message) = intake.queue.pop(tick) else {
                    break;
                };
                let is_login = MessageClass::of(&message.bytes) == MessageClass::Login;
                reckoned_ns += costs.of(is_login, message.bytes.len());
                state.batch.push(message);
            }
        }
        if state.batch.is_empty() {
            break;
        }
        left -= state.batch.len();
        handle_batch(world, tick, state);
        spent_ns = match &watch {
            Some(watch) => u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX),
            None => spent_ns + reckoned_ns,
        };
    }
    let inbox = world.resource::<Inbox>();
    inbox.intake().queue.take_refused(&mut state.refused);
    let mut sessions = world.resource_mut::<Sessions>();
    for (client, number) in state.refused.drain(..) {
        sessions.acknowledge(client, number);
    }
}

/// Handles a batch of messages, in order.
fn handle_batch(world: &mut World, tick: u64, state: &mut IngestState) {
    let mut messages = state.batch.iter();
    let sessions = world.resource::<Sessions>();
    state
        .batch
        .iter()
        .for_each(|message| sessions.prefetch(message.client));
    while !messages.as_slice().is_empty() {
        let mut by_world = None;
        let sessions = &mut *world.resource_mut::<Sessions>();
        for inbound in messages.by_ref() {
            match handle_message(sessions, tick, inbound, &mut state.output) {
                Ok(Handled::Done) => {}
                Ok(Handled::NeedsWorld(message)) => {
                    by_world = Some((inbound.client, message));
                    break;
                }
                Err(reason) => state.output.refuse(inbound.client, reason),
            }
        }
        state.output.write(world);
        if let Some((client, message)) = by_world {
            if let Err(reason) = handle_with_world(world, client, message) {
                state.output.refuse(client, reason);
            }
            write_effects(world, &mut state.effects);
        }
    }
    // A refusal of the last message.
    state.output.write(world);
    state.batch.clear();
}

/// Applies deadlines and the login queue.
fn finish_tick(world: &mut World, effects: &mut Vec<SessionEffect>) {
    world.resource_mut::<Sessions>().end_expired();
    with_key(world, |sessions, key| sessions.admit(key));
    world.resource_mut::<Sessions>().notify_queue_positions();
    write_effects(world, effects);
    let sessions = world.resource::<Sessions>();
    let (queued, admitted) = (sessions.queue_len(), sessions.admitted());
    let mut stats = world.resource_mut::<SessionStats>();
    stats.queue_peak = stats.queue_peak.max(queued);
    stats.admitted_per_tick_peak = stats.admitted_per_tick_peak.max(admitted);
}

/// Connects a client through the [`TransportHandle`] and opens its session at once. For code with access to the world: tests,
/// tools, in-memory players.
///
/// # Errors
/// [`AcceptError`] if there is no room.
///
/// # Panics
/// Without a [`SessionPlugin`](super::SessionPlugin).
pub fn connect(world: &mut World, connected: ConnectionInfo) -> Result<ClientId, AcceptError> {
    let client = world.resource::<TransportHandle>().connect(connected)?;
    begin_tick(world);
    let mut state = IngestState::default();
    open_sessions(world, &mut state);
    let mut own = world.resource_mut::<IngestState>();
    own.held.append(&mut state.held);
    let sessions = world.resource::<Sessions>();
    match sessions.get(client) {
        Some(_) => Ok(client),
        None => Err(AcceptError::Full(sessions.len())),
    }
}
