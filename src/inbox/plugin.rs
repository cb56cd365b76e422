//! The inbox as a resource.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use serde::{Deserialize, Serialize};

use super::queue::{InboundMessage, InboxCounters, InboxLimits, MessageQueue, Refused};
use crate::sim::{self, HashAppExt, SimTick};
use crate::wire::ClientId;

/// The bounded queue of inbound messages; sessions drain it in `Ingest`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InboxPlugin;

impl Plugin for InboxPlugin {
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if !sim::begin::<Self, _>(app, ()) {
            return;
        }
        #[cfg(feature = "reflect")]
        app.register_type::<InboxSettings>();
        app.init_resource::<InboxSettings>()
            .init_resource::<Inbox>()
            .hash_part("inbox", |world, hasher| {
                for message in world.resource::<Inbox>().queue.iter() {
                    hasher.write_u64(u64::from(message.client.0));
                    hasher.write_u64(u64::from(message.number));
                    hasher.write_bytes(&message.bytes);
                }
            });
    }

    fn finish(&self, app: &mut App) {
        sim::finish(app);
    }
}

/// How many messages may wait, and how many are handled a tick.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "reflect", derive(crate::sim::Reflect), reflect(Resource))]
pub struct InboxSettings {
    /// Messages handled a tick; the rest waits for the next.
    pub messages_per_tick_max: u32,
    /// Messages that may wait; further ones are refused.
    pub backlog_max: u32,
    /// Messages of one client that may wait; further ones are refused.
    pub client_backlog_max: u32,
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self {
            messages_per_tick_max: 50_000,
            backlog_max: 200_000,
            client_backlog_max: 64,
        }
    }
}

/// Where what arrives waits; transports put it there by [`InboxWriter`].
#[derive(Resource, Debug, Default)]
pub struct Inbox {
    queue: MessageQueue,
}

impl Inbox {
    fn offer(
        &mut self,
        settings: &InboxSettings,
        tick: SimTick,
        client: ClientId,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let limits = InboxLimits {
            backlog_max: settings.backlog_max as usize,
            client_backlog_max: settings.client_backlog_max,
        };
        self.queue.offer(limits, client, tick.0, bytes)
    }

    /// Takes the oldest message.
    pub(crate) fn take(&mut self, tick: SimTick) -> Option<InboundMessage> {
        self.queue.take(tick.0)
    }

    /// Takes a client of which a message was refused while none of it waited, with the number of the last that came.
    pub(crate) fn take_refused(&mut self) -> Option<(ClientId, u16)> {
        self.queue.take_refused()
    }

    /// A client's connection ended: its messages are counted no more. What waits is still handled.
    pub fn forget(&mut self, client: ClientId) {
        self.queue.forget(client);
    }

    /// How many messages wait.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// What became of messages so far.
    #[must_use]
    pub const fn counters(&self) -> InboxCounters {
        self.queue.counters()
    }
}

/// Hands over what arrives, for a system of a transport. What is offered before [`SimSystems::Ingest`](crate::sim::SimSystems)
/// is handled in the same tick, unless too much waits.
#[derive(SystemParam)]
pub struct InboxWriter<'w> {
    inbox: ResMut<'w, Inbox>,
    settings: Res<'w, InboxSettings>,
    tick: Res<'w, SimTick>,
}

impl InboxWriter<'_> {
    /// Accepts a client's message, or says why not. O(log clients).
    ///
    /// # Errors
    /// [`Refused`] at one of the limits in [`InboxSettings`].
    pub fn offer(&mut self, client: ClientId, bytes: &[u8]) -> Result<(), Refused> {
        self.inbox.offer(&self.settings, *self.tick, client, bytes)
    }
}

/// The same for whoever has the world.
///
/// # Errors
/// [`Refused`] at one of the limits in [`InboxSettings`].
///
/// # Panics
/// Where there is no [`InboxPlugin`].
pub fn offer(world: &mut World, client: ClientId, bytes: &[u8]) -> Result<(), Refused> {
    world.resource_scope(|world, mut inbox: Mut<Inbox>| {
        let tick = *world.resource::<SimTick>();
        inbox.offer(world.resource::<InboxSettings>(), tick, client, bytes)
    })
}
