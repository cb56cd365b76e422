//! What clients send, one message at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use thiserror::Error;

use super::checks::{MessageFault, named_object};
use super::facts::{ClientTold, FromClient, PlayerAsked, PlayerInput, PlayerRequest};
use super::logins::{begin_login, resume};
use crate::inbox::InboundMessage;
use crate::session::sessions::ReturnTicket;
use crate::session::{LogoutReason, SessionState, Sessions};
use crate::sim::SimTick;
use crate::wire::{ClientId, ClientInput, ClientMessage, InputMotion, SessionNotice};
use crate::world::{MoveInput, PlayerId, SceneId};

/// A message of the game's own, sent as `User`.
pub trait ClientMessageType: Sized + Send + Sync + 'static {
    /// Reads a message, which must fill the bytes: what a client sends is as hostile as any. `None` is counted as a bad message.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Registers messages of the game's own.
pub trait ClientMessageAppExt {
    /// What clients send as `User` of this kind is read as a `T`, and written as [`FromClient<T>`] in `Ingest`.
    ///
    /// # Errors
    /// [`ClientMessageError`] when the kind has a type already.
    fn register_client_message<T: ClientMessageType>(
        &mut self,
        kind: u16,
    ) -> Result<&mut Self, ClientMessageError>;
}

/// Why a type of message was not registered.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ClientMessageError {
    /// Another type has this kind.
    #[error("kind {0} of client messages has a type already")]
    Taken(u16),
}

type ReadUser =
    Arc<dyn Fn(&mut World, (ClientId, PlayerId, Option<Entity>), &[u8]) -> bool + Send + Sync>;

/// The game's own messages by kind.
#[derive(Resource, Default)]
pub(super) struct UserMessages(BTreeMap<u16, ReadUser>);

impl ClientMessageAppExt for App {
    fn register_client_message<T: ClientMessageType>(
        &mut self,
        kind: u16,
    ) -> Result<&mut Self, ClientMessageError> {
        let mut kinds = self.world_mut().get_resource_or_init::<UserMessages>();
        if kinds.0.contains_key(&kind) {
            return Err(ClientMessageError::Taken(kind));
        }
        let read: ReadUser = Arc::new(|world, (client, player, entity), bytes| {
            let Some(message) = T::read(bytes) else {
                return false;
            };
            world.write_message(FromClient {
                client,
                player,
                entity,
                message,
            });
            true
        });
        kinds.0.insert(kind, read);
        Ok(self.add_message::<FromClient<T>>())
    }
}

/// Acts on a message, or says why not; then nothing has changed.
pub(super) fn handle(world: &mut World, inbound: &InboundMessage) -> Result<(), MessageFault> {
    let client = inbound.client;
    let message = ClientMessage::decode(&inbound.bytes).map_err(|_| "does not decode")?;
    let sessions = world.resource::<Sessions>();
    let session = *sessions.get(client).ok_or("no such session")?;
    match message {
        ClientMessage::Login { player, credential } => {
            return begin_login(world, (client, &session), PlayerId(player), credential);
        }
        ClientMessage::Resume {
            player,
            token,
            received,
        } => {
            let player = PlayerId(player);
            let ticket = ReturnTicket {
                player,
                token,
                received,
            };
            return resume(world, client, ticket);
        }
        ClientMessage::Logout if session.state != SessionState::Connecting => {
            let mut sessions = world.resource_mut::<Sessions>();
            sessions.end(client, LogoutReason::Requested);
            return Ok(());
        }
        _ => {}
    }
    let player = session.player.ok_or("not logged in")?;
    match message {
        ClientMessage::Ready { scene } => {
            let is_asked = world
                .resource_mut::<Sessions>()
                .ready(client, SceneId(scene));
            is_asked.then_some(()).ok_or("was not asked to be ready")
        }
        ClientMessage::Ping { number } => {
            let tick = world.resource::<SimTick>().0;
            let notice = SessionNotice::Pong { number, tick };
            world.write_message(ClientTold { client, notice });
            Ok(())
        }
        ClientMessage::User { kind, bytes } => {
            let read = world.resource::<UserMessages>().0.get(&kind).cloned();
            let read = read.ok_or("a kind of message that the game has not")?;
            let sender = (client, player, session.controls);
            read(world, sender, bytes)
                .then_some(())
                .ok_or("does not decode")
        }
        _ if session.state == SessionState::Loading => Err("is not ready"),
        // Between login and spawn a client has nothing to move; that is nobody's mistake.
        _ => match session.controls {
            Some(entity) => act(world, client, player, entity, message),
            None => Ok(()),
        },
    }
}

/// Acts on a message about the object that its sender controls.
fn act(
    world: &mut World,
    client: ClientId,
    player: PlayerId,
    entity: Entity,
    message: ClientMessage,
) -> Result<(), MessageFault> {
    let what = match message {
        ClientMessage::Move { to, heading } => {
            let to = Some(to.metres());
            world.write_message(MoveInput {
                entity,
                to,
                heading,
            });
            return Ok(());
        }
        ClientMessage::Face { heading } => {
            let to = None;
            world.write_message(MoveInput {
                entity,
                to,
                heading,
            });
            return Ok(());
        }
        ClientMessage::Input(input) => return take_input(world, client, entity, input),
        ClientMessage::MoveTo { to } => PlayerRequest::MoveTo(to.metres()),
        ClientMessage::Stop => PlayerRequest::Stop,
        ClientMessage::ViewCap { players } => PlayerRequest::ViewCap(players),
        ClientMessage::Interact {
            id,
            generation,
            verb,
        } => PlayerRequest::Interact {
            target: named_object(world, entity, id, generation)?,
            verb,
        },
        ClientMessage::QueueFor { mode } => PlayerRequest::QueueFor(mode),
        ClientMessage::CancelQueue => PlayerRequest::CancelQueue,
        ClientMessage::AnswerMatch { accept } => PlayerRequest::AnswerMatch(accept),
        ClientMessage::Say { scope, text } => PlayerRequest::Say(scope, text.to_owned()),
        _ => return Err("means nothing now"),
    };
    world.write_message(PlayerAsked {
        client,
        player,
        entity,
        what,
    });
    Ok(())
}

fn take_input(
    world: &mut World,
    client: ClientId,
    entity: Entity,
    input: ClientInput,
) -> Result<(), MessageFault> {
    let mut sessions = world.resource_mut::<Sessions>();
    if !sessions.take_input(client, input.seq) {
        return Err("an input that is no newer than the last");
    }
    let to = match input.motion {
        InputMotion::Stand => None,
        InputMotion::To(to) => Some(to.metres()),
        InputMotion::Towards(_) => {
            return Err("goes in a direction, which this server does not take");
        }
    };
    let heading = input.heading;
    world.write_message(MoveInput {
        entity,
        to,
        heading,
    });
    world.write_message(PlayerInput {
        client,
        entity,
        input,
    });
    Ok(())
}
