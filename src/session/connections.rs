//! What a transport does: it opens sessions, and hands over what arrives by them.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::plugin::{SessionSettings, SessionStats};
use super::sessions::{Session, SessionRefused, Sessions};
use crate::inbox::{InboxWriter, Refused};
use crate::wire::ClientId;

/// Opens sessions and hands over what arrives, for a system of a transport. Best before
/// [`SimSystems::Ingest`](crate::sim::SimSystems), which handles it; [`disconnect`](super::disconnect) ends a session.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use throng::prelude::*;
///
/// /// What a socket of the game's own has taken in: of whom, and what.
/// #[derive(Resource, Default)]
/// struct Arrived(Vec<(ClientId, Vec<u8>)>);
///
/// fn receive(mut arrived: ResMut<Arrived>, mut connections: Connections) {
///     for (client, bytes) in arrived.0.drain(..) {
///         // What is refused is counted, and its sender tells by the numbers of inputs.
///         let _ = connections.offer(client, &bytes);
///     }
/// }
/// ```
#[derive(SystemParam)]
pub struct Connections<'w> {
    sessions: ResMut<'w, Sessions>,
    settings: Res<'w, SessionSettings>,
    stats: ResMut<'w, SessionStats>,
    inbox: InboxWriter<'w>,
}

impl Connections<'_> {
    /// Opens a session; `receives` is whether packets are made for it. O(log sessions).
    ///
    /// # Errors
    /// [`SessionRefused::Full`] at [`SessionSettings::sessions_max`], which is counted.
    pub fn connect(&mut self, receives: bool) -> Result<ClientId, SessionRefused> {
        open(
            &mut self.sessions,
            &self.settings,
            &mut self.stats,
            receives,
        )
    }

    /// Accepts a client's message, or says why not; see [`InboxWriter::offer`].
    ///
    /// # Errors
    /// [`Refused`] at one of the limits in [`InboxSettings`](crate::inbox::InboxSettings).
    pub fn offer(&mut self, client: ClientId, bytes: &[u8]) -> Result<(), Refused> {
        self.inbox.offer(client, bytes)
    }

    /// An open session.
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&Session> {
        self.sessions.get(client)
    }
}

/// Opens a session, for whoever has the world; see [`Connections::connect`].
///
/// # Errors
/// [`SessionRefused::Full`] at [`SessionSettings::sessions_max`], which is counted.
///
/// # Panics
/// Where there is no [`SessionPlugin`](super::SessionPlugin).
pub fn connect(world: &mut World, receives: bool) -> Result<ClientId, SessionRefused> {
    world.resource_scope(|world, mut sessions: Mut<Sessions>| {
        let settings = world.resource::<SessionSettings>().clone();
        let mut stats = world.resource_mut::<SessionStats>();
        open(&mut sessions, &settings, &mut stats, receives)
    })
}

fn open(
    sessions: &mut Sessions,
    settings: &SessionSettings,
    stats: &mut SessionStats,
    receives: bool,
) -> Result<ClientId, SessionRefused> {
    let opened = sessions.connect(settings.sessions_max, receives);
    stats.refused += u64::from(opened.is_err());
    opened
}
