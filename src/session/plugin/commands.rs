//! Sessions by commands: `commands.disconnect_client(client, reason)`.

use bevy_ecs::prelude::*;

use super::effects::disconnect;
use crate::session::reasons::LogoutReason;
use crate::wire::ClientId;

/// Commands for sessions. They are applied with the other commands of the system.
pub trait SessionCommandsExt {
    /// Ends the session of a client, as the function [`disconnect`](super::disconnect) does: the object that it controls is
    /// despawned, [`LoggedOut`](super::LoggedOut) is written for its player, and the client receives the reason. It does nothing
    /// when the session has already ended, for example in the same tick.
    ///
    /// ```
    /// use bevy_ecs::prelude::*;
    /// use throng::prelude::*;
    /// use throng::session::{LogoutReason, SessionClient};
    ///
    /// #[derive(Component)]
    /// struct Cheated;
    ///
    /// fn kick(
    ///     cheaters: Query<&ControlledBy, With<Cheated>>,
    ///     sessions: Query<&SessionClient>,
    ///     mut commands: Commands,
    /// ) {
    ///     for session in sessions.iter_many(cheaters.iter().map(|by| by.0)).flatten() {
    ///         commands.disconnect_client(session.client(), LogoutReason::Kicked);
    ///     }
    /// }
    /// ```
    fn disconnect_client(&mut self, client: ClientId, reason: LogoutReason) -> &mut Self;
}

impl SessionCommandsExt for Commands<'_, '_> {
    fn disconnect_client(&mut self, client: ClientId, reason: LogoutReason) -> &mut Self {
        self.queue(move |world: &mut World| disconnect(world, client, reason));
        self
    }
}
