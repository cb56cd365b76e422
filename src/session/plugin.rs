//! The session plugin: connections, logins, logouts and client messages.

mod ban;
mod checks;
mod client_messages;
mod commands;
mod control;
mod effects;
mod ingest;
mod loading;
mod logins;
mod messages;
mod settings;
mod stalled;
#[cfg(test)]
mod tests;
mod time_rate;

pub use ban::ban;
pub use client_messages::{ClientMessageAppExt, ClientMessageType};
pub use commands::SessionCommandsExt;
pub use control::{
    ControlledBy, Controls, OutlivesSession, SessionClient, SessionUserData, control,
    controlling_client,
};
pub use effects::disconnect;
pub use ingest::connect;
pub use messages::{
    AwaitingReconnect, ClientMessageRefused, ConnectionLost, FromClient, LoggedIn, LoggedOut,
    PlayerInput, PlayerRequest, PlayerRequestReceived, REFUSALS_PER_TICK_MAX, SessionClosed,
    SessionNoticeRequest, SessionResumed,
};
pub use settings::{LoginRefusalCounts, SessionEndCounts, SessionSettings, SessionStats};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use self::client_messages::CustomMessages;
use self::control::{EndedSessions, control_on_spawn, despawn_ended};
use self::effects::on_session_despawned;
use self::ingest::{IngestState, ingest};
use self::loading::request_loading;
use self::stalled::warn_of_stalled_sessions;
use self::time_rate::notify_time_rate;
use super::authentication::Authentication;
use super::bans::BanList;
use super::sessions::Sessions;
use super::token::SessionKey;
use super::transport::TransportHandle;
use crate::inbox::InboxPlugin;
use crate::memory::MemoryAppExt;
use crate::outbox::SlowConsumerDetected;
use crate::sim::{HashAppExt, SimSystems};
use crate::world::{Object, WorldPlugin};

/// Sessions of clients: connections, logins, the login queue, control of objects, resumed sessions, kicks and bans.
///
/// A transport reports connections through the resource [`TransportHandle`]. On the message [`LoggedIn`] a game spawns the player's
/// object, with [`ControlledBy`]. To check logins, set a hook in [`Authentication`]. `EntityCommands` and
/// [`SessionCommandsExt`] change control and disconnect clients.
///
/// Limits and times are in [`SessionSettings`], counters in [`SessionStats`]. The systems run in
/// [`SimSystems::Ingest`](crate::sim::SimSystems::Ingest); they never wait for a client or for the authentication. Adds [`WorldPlugin`]
/// and [`InboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionPlugin;

crate::sim::sim_plugin!(SessionPlugin, (WorldPlugin, InboxPlugin));

impl SessionPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<SessionSettings>()
            .register_type::<SessionStats>();
        app.world_mut()
            .register_component_hooks::<SessionClient>()
            .on_despawn(on_session_despawned);
        app.init_resource::<SessionSettings>()
            .init_resource::<Sessions>()
            .init_resource::<SessionStats>()
            .init_resource::<SessionKey>()
            .init_resource::<Authentication>()
            .init_resource::<BanList>()
            .init_resource::<TransportHandle>()
            .init_resource::<CustomMessages>()
            .init_resource::<IngestState>()
            .init_resource::<EndedSessions>()
            .count_memory::<Sessions>("session")
            .count_memory::<IngestState>("session")
            .count_memory::<BanList>("session")
            .add_counted_message::<PlayerInput>("session")
            .add_counted_message::<SessionNoticeRequest>("session")
            .add_observer(control_on_spawn)
            .add_message::<LoggedIn>()
            .add_message::<LoggedOut>()
            .add_message::<ConnectionLost>()
            .add_message::<SessionResumed>()
            .add_message::<SessionClosed>()
            .add_message::<ClientMessageRefused>()
            .add_message::<PlayerRequestReceived>()
            .add_message::<SlowConsumerDetected>()
            .add_systems(FixedUpdate, ingest.in_set(SimSystems::Ingest))
            .add_systems(
                FixedUpdate,
                (request_loading, notify_time_rate)
                    .chain()
                    .after(SimSystems::Heartbeat)
                    .before(SimSystems::Replicate),
            )
            .add_systems(
                FixedUpdate,
                (despawn_ended, warn_of_stalled_sessions).in_set(SimSystems::Last),
            )
            .hash_part("sessions", |world, hasher| {
                for (client, session) in world.resource::<Sessions>().iter() {
                    session.hash_state(client, |word| hasher.write_u64(word));
                    let object = session
                        .controlled_entity
                        .and_then(|entity| world.get::<Object>(entity));
                    hasher.write_u64(object.map_or(u64::MAX, Object::key));
                    if let Some(data) = world.get::<SessionUserData>(session.client_entity) {
                        let bytes = data.as_bytes();
                        bytes.iter().for_each(|&byte| hasher.write_u64(byte.into()));
                    }
                }
                let sessions = world.resource::<Sessions>();
                sessions.hash_state(|word| hasher.write_u64(word));
                world.resource::<IngestState>().hash(hasher);
            });
    }
}
