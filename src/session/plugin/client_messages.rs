//! Handles client messages in batches, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use tracing::debug;

use super::checks::{RefusalReason, named_object};
use super::logins::{resume, start_login};
use super::messages::{
    FromClient, PlayerInput, PlayerRequest, PlayerRequestReceived, SessionNoticeRequest,
};
use super::settings::SessionStats;
use crate::inbox::InboundMessage;
use crate::memory::MemoryUse;
use crate::session::sessions::ResumeRequest;
use crate::session::{LogoutReason, Session, SessionState, Sessions};
use crate::wire::{ClientId, ClientInput, ClientMessage, InputMotion, SessionNotice};
use crate::world::{MoveInput, PlayerId, PlayerMotion, SceneId};

/// A message of the game's own, sent as `User`.
pub trait ClientMessageType: Sized + Send + Sync + 'static {
    /// Reads a message, which must fill the bytes: what a client sends is as hostile as any. `None` is counted as a bad message.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// The object that it names, if it names one: number and generation, as clients know them. It is looked up as that of an
    /// *Interact* is: where the sender neither sees it nor controls it, the message is refused and counted, and never written.
    fn target(&self) -> Option<(u32, u32)> {
        None
    }
}

/// Registers messages of the game's own.
pub trait ClientMessageAppExt {
    /// `User` messages of this kind are read as a `T`, and written as [`FromClient<T>`] in `Ingest`.
    ///
    /// # Panics
    /// At startup, where the kind has a type already.
    fn register_client_message<T: ClientMessageType>(&mut self, kind: u16) -> &mut Self;
}

type ReadCustomMessage = Arc<
    dyn Fn(&mut World, (ClientId, PlayerId, Option<Entity>), &[u8]) -> Result<(), RefusalReason>
        + Send
        + Sync,
>;

/// The game's own messages by kind.
#[derive(Resource, Default)]
pub(super) struct CustomMessages(BTreeMap<u16, ReadCustomMessage>);

impl ClientMessageAppExt for App {
    fn register_client_message<T: ClientMessageType>(&mut self, kind: u16) -> &mut Self {
        let mut kinds = self.world_mut().get_resource_or_init::<CustomMessages>();
        assert!(
            !kinds.0.contains_key(&kind),
            "client message kind {kind} is already registered: give `{}` another kind",
            std::any::type_name::<T>()
        );
        let read: ReadCustomMessage = Arc::new(|world, (client, player, entity), bytes| {
            let message = T::read(bytes).ok_or("malformed message")?;
            let target = match (message.target(), entity) {
                (None, _) => None,
                (Some((id, generation)), Some(own)) => {
                    Some(named_object(world, own, id, generation)?)
                }
                (Some(_), None) => return Err("names an object, but controls none"),
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
        self.add_message::<FromClient<T>>()
    }
}

/// What a batch of messages comes to, each kind in its order, before it is written for everybody.
#[derive(Default, MemoryUse)]
pub(super) struct MessageBatch {
    moves: Vec<MoveInput>,
    inputs: Vec<PlayerInput>,
    requests: Vec<PlayerRequestReceived>,
    notices: Vec<SessionNoticeRequest>,
    late_inputs: u64,
}

impl MessageBatch {
    pub fn write(&mut self, world: &mut World) {
        fn write<M: Message>(world: &mut World, messages: &mut Vec<M>) {
            if !messages.is_empty() {
                world.write_message_batch(messages.drain(..));
            }
        }
        write(world, &mut self.moves);
        write(world, &mut self.inputs);
        write(world, &mut self.requests);
        write(world, &mut self.notices);
        world.resource_mut::<SessionStats>().late_inputs += std::mem::take(&mut self.late_inputs);
    }
}

/// What remains to be done about a message.
pub(super) enum Handled<'a> {
    /// Nothing.
    Done,
    /// [`handle`] it, with the world at hand and all that was said before it written.
    NeedsWorld(ClientMessage<'a>),
}

/// Acts on a message if it concerns nobody but its sender and what it controls, as nearly all do; or says why not, and then
/// nothing has changed. One look at the list of sessions.
pub(super) fn handle_message<'a>(
    sessions: &mut Sessions,
    tick: u64,
    inbound: &'a InboundMessage,
    said: &mut MessageBatch,
) -> Result<Handled<'a>, RefusalReason> {
    let client = inbound.client;
    let session = sessions.acknowledge(client, inbound.number);
    let session = session.ok_or("no such session")?;
    let message = ClientMessage::decode(&inbound.bytes).map_err(|_| "malformed message")?;
    let what = match message {
        ClientMessage::Ping { number } => {
            session.player.ok_or(NOT_LOGGED_IN)?;
            let notice = SessionNotice::Pong { number, tick };
            said.notices.push(SessionNoticeRequest { client, notice });
            return Ok(Handled::Done);
        }
        ClientMessage::Move { to, heading } => {
            if let Some((_, entity)) = controlled_object(session)? {
                let motion = PlayerMotion::To(to.metres());
                said.moves.push(MoveInput {
                    entity,
                    motion,
                    heading,
                });
            }
            return Ok(Handled::Done);
        }
        ClientMessage::Face { heading } => {
            if let Some((_, entity)) = controlled_object(session)? {
                let motion = PlayerMotion::Turn;
                said.moves.push(MoveInput {
                    entity,
                    motion,
                    heading,
                });
            }
            return Ok(Handled::Done);
        }
        ClientMessage::Input(input) => {
            if let Some((_, entity)) = controlled_object(session)? {
                handle_input(session, client, entity, input, said);
            }
            return Ok(Handled::Done);
        }
        ClientMessage::MoveTo { to } => PlayerRequest::MoveTo(to.metres()),
        ClientMessage::Stop => PlayerRequest::Stop,
        ClientMessage::ViewCap { players } => PlayerRequest::ViewCap(players),
        ClientMessage::QueueFor { mode } => PlayerRequest::QueueFor(mode),
        ClientMessage::CancelQueue => PlayerRequest::CancelQueue,
        ClientMessage::AnswerMatch { accept } => PlayerRequest::AnswerMatch(accept),
        ClientMessage::Chat { scope, text } => PlayerRequest::Chat(scope, text.to_owned()),
        ClientMessage::Login { .. }
        | ClientMessage::Logout
        | ClientMessage::Resume { .. }
        | ClientMessage::Ready { .. }
        | ClientMessage::Interact { .. }
        | ClientMessage::Custom { .. } => return Ok(Handled::NeedsWorld(message)),
    };
    if let Some((player, entity)) = controlled_object(session)? {
        said.requests.push(PlayerRequestReceived {
            client,
            player,
            entity,
            request: what,
        });
    }
    Ok(Handled::Done)
}

const NOT_LOGGED_IN: RefusalReason = "not logged in";

/// Who a client is and what it controls. Between login and spawn that is nothing, and nobody's mistake.
fn controlled_object(session: &Session) -> Result<Option<(PlayerId, Entity)>, RefusalReason> {
    let player = session.player.ok_or(NOT_LOGGED_IN)?;
    if session.state == SessionState::Loading {
        return Err("session not ready");
    }
    Ok(session.controlled_entity.map(|entity| (player, entity)))
}

fn handle_input(
    session: &mut Session,
    client: ClientId,
    entity: Entity,
    input: ClientInput,
    said: &mut MessageBatch,
) {
    if !session.accept_input(input.seq) {
        // On a line that delivers twice or out of order that happens to the most honest client.
        debug!(
            client = client.0,
            seq = input.seq,
            "input refused: not newer than the last one handled"
        );
        said.late_inputs += 1;
        return;
    }
    let motion = match input.motion {
        InputMotion::Stand => PlayerMotion::Stand,
        InputMotion::To(to) => PlayerMotion::To(to.metres()),
        InputMotion::Towards(direction) => PlayerMotion::Towards(direction),
    };
    let heading = input.heading;
    said.moves.push(MoveInput {
        entity,
        motion,
        heading,
    });
    said.inputs.push(PlayerInput {
        client,
        entity,
        input,
    });
}

/// Acts on a message that was [heard](hear) and concerns others, too; or says why not, and then nothing has changed.
pub(super) fn handle_with_world(
    world: &mut World,
    client: ClientId,
    message: ClientMessage,
) -> Result<(), RefusalReason> {
    let sessions = world.resource::<Sessions>();
    let session = *sessions.get(client).ok_or("no such session")?;
    match message {
        ClientMessage::Login { player, credential } => {
            start_login(world, (client, &session), PlayerId(player), credential)
        }
        ClientMessage::Resume {
            player,
            token,
            received,
        } => {
            let player = PlayerId(player);
            let ticket = ResumeRequest {
                player,
                token,
                received_bytes: received,
            };
            resume(world, client, ticket)
        }
        ClientMessage::Logout if session.state != SessionState::Connecting => {
            let mut sessions = world.resource_mut::<Sessions>();
            sessions.end(client, LogoutReason::Requested);
            Ok(())
        }
        ClientMessage::Ready { scene } => {
            session.player.ok_or(NOT_LOGGED_IN)?;
            let is_asked = world
                .resource_mut::<Sessions>()
                .mark_ready(client, SceneId(scene));
            is_asked.then_some(()).ok_or("ready without a request")
        }
        ClientMessage::Custom { kind, bytes } => {
            let player = session.player.ok_or(NOT_LOGGED_IN)?;
            let read = world.resource::<CustomMessages>().0.get(&kind).cloned();
            let read = read.ok_or("unregistered message kind")?;
            read(world, (client, player, session.controlled_entity), bytes)
        }
        ClientMessage::Interact {
            id,
            generation,
            verb,
        } => {
            if let Some((player, entity)) = controlled_object(&session)? {
                let target = named_object(world, entity, id, generation)?;
                let what = PlayerRequest::Interact { target, verb };
                world.write_message(PlayerRequestReceived {
                    client,
                    player,
                    entity,
                    request: what,
                });
            }
            Ok(())
        }
        _ => Err("not valid in this session state"),
    }
}
