//! Messages about sessions, for other modules and games.

use bevy_ecs::prelude::*;

use crate::inbox::VerifiedIdentity;
use crate::session::LogoutReason;
use crate::wire::{ChatScope, ClientId, ClientInput, SessionNotice};
use crate::world::PlayerId;

/// A player logged in; the game gives it an object and [`control`](crate::session::control) of it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The session by which it plays.
    pub client: ClientId,
    /// The player that plays by it from now on.
    pub player: PlayerId,
}

/// A player's session ended, and its object was despawned.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOut {
    /// The session that was.
    pub client: ClientId,
    /// The player whose session it was.
    pub player: PlayerId,
    /// The object that it controlled, which is gone.
    pub entity: Option<Entity>,
    /// What ended it.
    pub reason: LogoutReason,
}

/// A player's connection is lost; its object stays, marked [`AwaitingReconnect`], until it is [`SessionResumed`] or [`LoggedOut`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLost {
    /// The session whose connection it was.
    pub client: ClientId,
    /// The player whose session it is.
    pub player: PlayerId,
    /// The object that it controls, if it has one.
    pub entity: Option<Entity>,
}

/// A player's session goes on over another connection. What it controlled it controls.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionResumed {
    /// The session as it is called from now on.
    pub client: ClientId,
    /// As it was called before.
    pub previous_client: ClientId,
    /// The player whose session it is.
    pub player: PlayerId,
    /// The object that it controls.
    pub entity: Option<Entity>,
}

/// A session ended, be there a player or not: nothing more is sent to its client, which is told why.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionClosed {
    /// The client whose session it was.
    pub client: ClientId,
    /// Whether packets were made for it.
    pub receives: bool,
    /// What its transport had proof of.
    pub claims: VerifiedIdentity,
    /// What ended it.
    pub reason: LogoutReason,
}

/// A client is to be told something about its session.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionNoticeRequest {
    /// Who is told.
    pub client: ClientId,
    /// What.
    pub notice: SessionNotice,
}

/// An object whose player's connection is lost: on it as long as it is.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitingReconnect;

/// A player's input beside its motion, which is a [`MoveInput`](crate::world::MoveInput): what it holds down, and when.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerInput {
    /// The session that it came by.
    pub client: ClientId,
    /// The player's object.
    pub entity: Entity,
    /// As it came; a client says in it what it likes.
    pub input: ClientInput,
}

/// A player asks for something that the game does, or does not.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct PlayerRequestReceived {
    /// The session that it came by.
    pub client: ClientId,
    /// Who asks.
    pub player: PlayerId,
    /// The object that it controls.
    pub entity: Entity,
    /// What for.
    pub request: PlayerRequest,
}

/// What players ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum PlayerRequest {
    /// To be walked there, in metres.
    MoveTo(glam::Vec2),
    /// To stand still.
    Stop,
    /// To be told of so many players at most.
    ViewCap(u16),
    /// To do something with an object, which it sees or controls: this was checked.
    Interact {
        /// The object.
        target: Entity,
        /// What, as the game counts it.
        verb: u16,
    },
    /// To queue for a match of this mode.
    QueueFor(u16),
    /// To queue no more.
    CancelQueue,
    /// To take the match that was proposed, or not.
    AnswerMatch(bool),
    /// To be heard.
    Chat(ChatScope, String),
}

/// A message of the game's own, of a type that was registered with
/// [`register_client_message`](crate::session::ClientMessageAppExt::register_client_message).
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct FromClient<T: Send + Sync + 'static> {
    /// The session that it came by.
    pub client: ClientId,
    /// Who sent it.
    pub player: PlayerId,
    /// The object that the player controls, if any.
    pub entity: Option<Entity>,
    /// The object that the message [names](crate::session::ClientMessageType::target), which the player sees or controls.
    pub target: Option<Entity>,
    /// What it says.
    pub message: T,
}
