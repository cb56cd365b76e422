//! What clients send, one message at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use thiserror::Error;
use tracing::debug;

use super::checks::{MessageFault, named_object};
use super::facts::{ClientTold, FromClient, PlayerAsked, PlayerInput, PlayerRequest};
use super::logins::{begin_login, resume};
use super::settings::SessionStats;
use crate::inbox::InboundMessage;
use crate::session::sessions::ReturnTicket;
use crate::session::{LogoutReason, SessionState, Sessions};
use crate::sim::SimTick;
use crate::wire::{ClientId, ClientInput, ClientMessage, InputMotion, SessionNotice};
use crate::world::{MoveInput, PlayerId, PlayerMotion, SceneId};

/// A message of the game's own, sent as `User`.
pub trait ClientMessageType: Sized + Send + Sync + 'static {
    /// Reads a message, which must fill the bytes: what a client sends is as hostile as any. `None` is counted as a bad message.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// The object that it names, if it names one: number and generation, as clients know them. It is looked up as that of an
    /// *Interact* is: where the sender neither sees it nor controls it, the message is refused and counted, and never written.
    fn named(&self) -> Option<(u32, u32)> {
        None
    }
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

type ReadUser = Arc<
    dyn Fn(&mut World, (ClientId, PlayerId, Option<Entity>), &[u8]) -> Result<(), MessageFault>
        + Send
        + Sync,
>;

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
            let message = T::read(bytes).ok_or("does not decode")?;
            let target = match (message.named(), entity) {
                (None, _) => None,
                (Some((id, generation)), Some(own)) => {
                    Some(named_object(world, own, id, generation)?)
                }
                (Some(_), None) => return Err("controls nothing, and names an object"),
            };
            world.write_message(FromClient {
                client,
                player,
                entity,
                target,
                message,
            });
            Ok(())
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
            let motion = PlayerMotion::To(to.metres());
            world.write_message(MoveInput {
                entity,
                motion,
                heading,
            });
            return Ok(());
        }
        ClientMessage::Face { heading } => {
            let motion = PlayerMotion::Turn;
            world.write_message(MoveInput {
                entity,
                motion,
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
        // On a line that delivers twice or out of order that happens to the most honest client.
        debug!(client = client.0, seq = input.seq, "late input refused");
        world.resource_mut::<SessionStats>().late_inputs += 1;
        return Ok(());
    }
    let motion = match input.motion {
        InputMotion::Stand => PlayerMotion::Stand,
        InputMotion::To(to) => PlayerMotion::To(to.metres()),
        InputMotion::Towards(direction) => PlayerMotion::Towards(direction),
    };
    let heading = input.heading;
    world.write_message(MoveInput {
        entity,
        motion,
        heading,
    });
    world.write_message(PlayerInput {
        client,
        entity,
        input,
    });
    Ok(())
}
