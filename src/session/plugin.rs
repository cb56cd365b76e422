//! The session plugin: connections, logins, logouts and client messages.

mod checks;
mod control;
mod effects;
mod facts;
mod ingest;
mod logins;
mod messages;
mod settings;
#[cfg(test)]
mod tests;
mod time_rate;
mod told;

pub use control::{ControlledBy, control};
pub use effects::disconnect;
pub use facts::{
    AwaitingReconnect, ConnectionLost, FromClient, LoggedIn, LoggedOut, PlayerInput, PlayerRequest,
    PlayerRequestReceived, SessionClosed, SessionNoticeRequest, SessionResumed,
};
pub use ingest::connect;
pub use messages::{ClientMessageAppExt, ClientMessageType};
pub use settings::{SessionEndCounts, SessionSettings, SessionStats};

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use self::control::{UncontrolledObjects, control_when_placed, despawn_uncontrolled};
use self::ingest::{IngestState, ingest};
use self::messages::UserMessages;
use self::time_rate::tell_time_rate;
use self::told::ask_to_load;
use super::authentication::Authentication;
use super::sessions::Sessions;
use super::token::SessionKey;
use super::transport::TransportHandle;
use crate::inbox::InboxPlugin;
use crate::memory::MemoryAppExt;
use crate::outbox::SlowConsumerDetected;
use crate::sim::{HashAppExt, SimSystems};
use crate::world::{Object, WorldPlugin};

/// Client life cycle. Adds [`WorldPlugin`] and [`InboxPlugin`] when they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionPlugin;

crate::sim::sim_plugin!(SessionPlugin, (WorldPlugin, InboxPlugin));

impl SessionPlugin {
    fn add_to(app: &mut App) {
        #[cfg(feature = "reflect")]
        app.register_type::<SessionSettings>()
            .register_type::<SessionStats>();
        app.init_resource::<SessionSettings>()
            .init_resource::<Sessions>()
            .init_resource::<SessionStats>()
            .init_resource::<SessionKey>()
            .init_resource::<Authentication>()
            .init_resource::<TransportHandle>()
            .init_resource::<UserMessages>()
            .init_resource::<IngestState>()
            .init_resource::<UncontrolledObjects>()
            .count_memory::<Sessions>("session")
            .count_memory::<IngestState>("session")
            .add_counted_message::<PlayerInput>("session")
            .add_counted_message::<SessionNoticeRequest>("session")
            .add_observer(control_when_placed)
            .add_message::<LoggedIn>()
            .add_message::<LoggedOut>()
            .add_message::<ConnectionLost>()
            .add_message::<SessionResumed>()
            .add_message::<SessionClosed>()
            .add_message::<PlayerRequestReceived>()
            .add_message::<SlowConsumerDetected>()
            .add_systems(FixedUpdate, ingest.in_set(SimSystems::Ingest))
            .add_systems(
                FixedUpdate,
                (ask_to_load, tell_time_rate)
                    .chain()
                    .after(SimSystems::Heartbeat)
                    .before(SimSystems::Replicate),
            )
            .add_systems(FixedUpdate, despawn_uncontrolled.in_set(SimSystems::Last))
            .hash_part("sessions", |world, hasher| {
                for (client, session) in world.resource::<Sessions>().iter() {
                    session.digest(client, |word| hasher.write_u64(word));
                    let object = session
                        .controlled_entity
                        .and_then(|entity| world.get::<Object>(entity));
                    hasher.write_u64(object.map_or(u64::MAX, Object::key));
                }
                let sessions = world.resource::<Sessions>();
                sessions.digest(|word| hasher.write_u64(word));
                world.resource::<IngestState>().hash(hasher);
            });
    }
}
