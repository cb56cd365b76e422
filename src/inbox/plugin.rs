//! The inbox as a resource.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_app::App;
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use throng_net::inbox::{
    BudgetRule, ClientQuota, InboxCounters, InboxLimits, Intake, MessageCosts,
};

use crate::memory::{MemoryAppExt, MemoryUse};
use crate::sim::{CounterDelta, HashAppExt, WorkAppExt};

/// The bounded queue of inbound messages, which [`SessionPlugin`](crate::session::SessionPlugin) drains in
/// [`SimSystems::Ingest`](crate::sim::SimSystems::Ingest).
///
/// A game does not use it directly: transports write through a [`TransportHandle`](crate::session::TransportHandle).
/// [`InboxSettings`] limits the messages and bytes of each client and of a tick; what exceeds them is dropped and counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct InboxPlugin;

crate::sim::sim_plugin!(InboxPlugin, ());

impl InboxPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<InboxSettings>();
        app.init_resource::<InboxSettings>()
            .init_resource::<Inbox>()
            .count_memory::<Inbox>("inbox")
            .add_cost_estimator({
                let mut handled = CounterDelta::default();
                move |world, _| {
                    let costs = world.resource::<InboxSettings>().costs;
                    handled.update(world.resource::<Inbox>().counters().handled)
                        * costs.of(false, 0)
                }
            })
            .hash_part("inbox", |world, hasher| {
                let inbox = world.resource::<Inbox>();
                let intake = inbox.intake();
                for message in intake.queue.iter() {
                    hasher.write_u64(u64::from(message.client.0));
                    hasher.write_u64(u64::from(message.number));
                    hasher.write_bytes(&message.bytes);
                }
                intake.hash_state(|word| hasher.write_u64(word));
            });
    }
}

/// Limits of queued messages, quotas per client, and the time of a tick for messages.
///
/// ```
/// # let mut app = bevy_app::App::new();
/// use throng::inbox::InboxSettings;
///
/// // At 10 Hz, 32 inputs are three seconds, too.
/// app.insert_resource(InboxSettings { client_backlog_max: 32, ..InboxSettings::default() });
/// ```
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct InboxSettings {
    /// Messages handled per tick, whatever the budget is; the rest waits for the next.
    pub messages_per_tick_max: u32,
    /// The maximum number of queued messages; further ones are refused.
    pub backlog_max: u32,
    /// The maximum number of queued messages of one client: by default the inputs of three seconds at 20 Hz. A further input replaces the
    /// oldest input; anything else is refused.
    pub client_backlog_max: u32,
    /// The maximum number of queued messages of one client that has not logged in; further ones are refused. It needs one or two: its
    /// login, and *Ready*.
    #[serde(alias = "newcomer_backlog_max")]
    pub unauthenticated_client_backlog_max: u32,
    /// The maximum number of queued messages of all clients that have not logged in; further ones are refused.
    #[serde(alias = "newcomers_backlog_max")]
    pub unauthenticated_backlog_max: u32,
    /// How much one client may send.
    pub quota: ClientQuota,
    /// How much of a tick may be spent on messages.
    pub budget: BudgetRule,
    /// Estimated costs of messages, so that a run is reproducible.
    pub costs: MessageCosts,
    /// Whether a clock is read instead of `costs`: for servers in real time. Which messages a tick handles then depends on the
    /// machine.
    #[serde(alias = "is_timed")]
    pub use_clock: bool,
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self {
            messages_per_tick_max: 50_000,
            backlog_max: 200_000,
            client_backlog_max: 64,
            unauthenticated_client_backlog_max: 4,
            unauthenticated_backlog_max: 50_000,
            quota: ClientQuota::default(),
            budget: BudgetRule::default(),
            costs: MessageCosts::default(),
            use_clock: false,
        }
    }
}

impl InboxSettings {
    /// The budget of the reference design, which was made for a client's frame: 20 ms, one more per tick while more than 100
    /// messages are queued, one less otherwise, within 20 to 40 ms; above 300 queued messages everything is handled. For
    /// comparisons.
    #[must_use]
    pub fn reference() -> Self {
        Self {
            messages_per_tick_max: u32::MAX,
            budget: BudgetRule::reference(),
            ..Self::default()
        }
    }

    /// The limits of the queue, for ticks of this length.
    #[must_use]
    pub fn limits(&self, tick_ns: u64) -> InboxLimits {
        InboxLimits {
            backlog_max: self.backlog_max as usize,
            client_backlog_max: self.client_backlog_max,
            unauthenticated_client_backlog_max: self.unauthenticated_client_backlog_max,
            unauthenticated_backlog_max: self.unauthenticated_backlog_max as usize,
            quota: self.quota,
            tick_ns,
        }
    }
}

/// The queue of received messages; transports fill it through a [`TransportHandle`](crate::session::TransportHandle).
#[derive(Resource, Debug, Default)]
pub struct Inbox {
    intake: Arc<Mutex<Intake>>,
}

impl Inbox {
    /// Locks the intake. Hold it only for a short time, since transports wait for it.
    pub(crate) fn intake(&self) -> MutexGuard<'_, Intake> {
        lock(&self.intake)
    }

    /// The same intake, for another thread.
    pub(crate) fn shared(&self) -> Arc<Mutex<Intake>> {
        self.intake.clone()
    }

    /// The number of queued messages.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.intake().queue.len()
    }

    /// Counters of all messages so far.
    #[must_use]
    pub fn counters(&self) -> InboxCounters {
        self.intake().queue.counters()
    }
}

/// Locks the intake. A thread that panicked while it held the lock left it valid between two calls, or at worst lost a message.
pub(crate) fn lock(intake: &Mutex<Intake>) -> MutexGuard<'_, Intake> {
    intake.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryUse for Inbox {
    fn heap_bytes(&self) -> usize {
        size_of::<Intake>() + self.intake().heap_bytes()
    }
}
