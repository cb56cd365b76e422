//! Messages about sessions, for other modules and games.

use bevy_ecs::prelude::*;

use crate::inbox::VerifiedIdentity;
use crate::session::LogoutReason;
use crate::wire::{ChatScope, ClientId, ClientInput, LoginRefusal, SessionNotice};
use crate::world::PlayerId;

/// A player logged in. The game spawns an object for it with [`ControlledBy`](crate::session::ControlledBy).
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The session of the player.
    pub client: ClientId,
    /// The entity of the session.
    pub client_entity: Entity,
    /// The player.
    pub player: PlayerId,
}

/// A player's session ended, and its object was despawned.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOut {
    /// The ended session.
    pub client: ClientId,
    /// The entity of the session. It is despawned at the end of the tick.
    pub client_entity: Entity,
    /// The player of the session.
    pub player: PlayerId,
    /// The object that it controlled, now despawned.
    pub entity: Option<Entity>,
    /// Why it ended.
    pub reason: LogoutReason,
}

/// A player's connection is lost. Its object stays, marked [`AwaitingReconnect`], until [`SessionResumed`] or [`LoggedOut`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLost {
    /// The session of the connection.
    pub client: ClientId,
    /// The entity of the session.
    pub client_entity: Entity,
    /// The player of the session.
    pub player: PlayerId,
    /// The object that it controls, if it has one.
    pub entity: Option<Entity>,
}

/// A player's session continues over another connection. It still controls the same object.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionResumed {
    /// The new id of the session.
    pub client: ClientId,
    /// Its previous id.
    pub previous_client: ClientId,
    /// The entity of the session, the same as before.
    pub client_entity: Entity,
    /// The player of the session.
    pub player: PlayerId,
    /// The object that it controls.
    pub entity: Option<Entity>,
}

/// A session ended, with or without a player. Its client receives the reason and nothing more.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionClosed {
    /// The client of the session.
    pub client: ClientId,
    /// Whether packets were sent to it.
    pub receives: bool,
    /// What its transport had verified.
    pub claims: VerifiedIdentity,
    /// Why it ended.
    pub reason: LogoutReason,
    /// Why its login was refused, if the hook refused it.
    pub refusal: Option<LoginRefusal>,
}

/// A message of a client was refused: malformed, unexpected, or not allowed. At most [`REFUSALS_PER_TICK_MAX`] are written per tick;
/// all are counted in [`SessionStats`](crate::session::SessionStats).
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientMessageRefused {
    /// The client that sent it; its session may have ended.
    pub client: ClientId,
    /// Why it was refused, in a few words.
    pub reason: &'static str,
}

/// The maximum number of [`ClientMessageRefused`] per tick.
pub const REFUSALS_PER_TICK_MAX: u64 = 64;

/// A notice to a client about its session.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionNoticeRequest {
    /// The client.
    pub client: ClientId,
    /// The notice.
    pub notice: SessionNotice,
}

/// On an object while the connection of its player is lost.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitingReconnect;

/// Input of a player other than motion (see [`MoveInput`](crate::world::MoveInput)): pressed keys and their time.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerInput {
    /// The session that sent it.
    pub client: ClientId,
    /// The player's object.
    pub entity: Entity,
    /// The input as received; it is not validated.
    pub input: ClientInput,
}

/// A request of a player to the game, which may ignore it.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct PlayerRequestReceived {
    /// The session that sent it.
    pub client: ClientId,
    /// The player.
    pub player: PlayerId,
    /// The object that it controls.
    pub entity: Entity,
    /// The request.
    pub request: PlayerRequest,
}

/// Requests of players.
#[derive(Clone, Debug, PartialEq)]
pub enum PlayerRequest {
    /// Walk to this position, in metres.
    MoveTo(glam::Vec2),
    /// Stop walking.
    Stop,
    /// Show at most this many players.
    ViewCap(u16),
    /// Interact with an object that the player sees or controls (this was checked).
    Interact {
        /// The object.
        target: Entity,
        /// The action, as the game defines it.
        verb: u16,
    },
    /// Queue for a match of this mode.
    QueueFor(u16),
    /// Leave the matchmaking queue.
    CancelQueue,
    /// Accept or decline the proposed match.
    AnswerMatch(bool),
    /// Send a chat message.
    Chat(ChatScope, String),
}

/// A custom message of the game, of a type that was registered with
/// [`register_client_message`](crate::session::ClientMessageAppExt::register_client_message).
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct FromClient<T: Send + Sync + 'static> {
    /// The session that sent it.
    pub client: ClientId,
    /// The player.
    pub player: PlayerId,
    /// The object that the player controls, if any.
    pub entity: Option<Entity>,
    /// The object that the message [names](crate::session::ClientMessageType::target), which the player sees or controls.
    pub target: Option<Entity>,
    /// The decoded message.
    pub message: T,
}
