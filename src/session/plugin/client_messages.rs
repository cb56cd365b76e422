//! Handles client messages in batches, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_app::App;
use bevy_ecs::prelude::*;
use tracing::debug;

use super::checks::{RefusalReason, named_object};
use super::logins::{resume, start_login};
use super::messages::{
    ClientMessageRefused, FromClient, PlayerInput, PlayerRequest, PlayerRequestReceived,
    REFUSALS_PER_TICK_MAX, SessionNoticeRequest,
};
use super::settings::SessionStats;
use crate::inbox::InboundMessage;
use crate::memory::MemoryUse;
use crate::session::sessions::ResumeRequest;
use crate::session::{LogoutReason, Session, SessionState, Sessions};
use crate::wire::{ClientId, ClientInput, ClientMessage, InputMotion, SessionNotice};
use crate::world::{MoveInput, PlayerId, PlayerMotion, SceneId};

/// A custom message of the game, sent as `User`.
pub trait ClientMessageType: Sized + Send + Sync + 'static {
    /// Decodes a message, which must use all bytes. The bytes are untrusted. `None` is counted as a bad message.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// The object that the message names, if any: id and generation, as clients know them. It is checked like the target of an
    /// *Interact*: if the sender neither sees nor controls it, the message is refused and counted, and never written.
    fn target(&self) -> Option<(u32, u32)> {
        None
    }
}

/// Registers custom messages of the game.
pub trait ClientMessageAppExt {
    /// Decodes `User` messages of this kind as a `T`, and writes them as [`FromClient<T>`] in `Ingest`.
    ///
    /// # Panics
    /// At startup, if the kind is registered already.
    fn register_client_message<T: ClientMessageType>(&mut self, kind: u16) -> &mut Self;
}

type ReadCustomMessage = Arc<
    dyn Fn(&mut World, (ClientId, PlayerId, Option<Entity>), &[u8]) -> Result<(), RefusalReason>
        + Send
        + Sync,
>;

/// Custom messages by kind.
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

/// The results of a batch of messages, by kind and in order, before they are written to the world.
#[derive(Default, MemoryUse)]
pub(super) struct MessageBatch {
    moves: Vec<MoveInput>,
    inputs: Vec<PlayerInput>,
    requests: Vec<PlayerRequestReceived>,
    notices: Vec<SessionNoticeRequest>,
    refusals: Vec<ClientMessageRefused>,
    late_inputs: u64,
    /// Refused messages since the last write.
    bad_messages: u64,
    /// How many refusals may still be reported in this tick.
    refusals_left: u64,
}

impl MessageBatch {
    pub const fn begin_tick(&mut self) {
        self.refusals_left = REFUSALS_PER_TICK_MAX;
    }

    /// Counts a refused message, and reports it unless there were too many in this tick.
    pub fn refuse(&mut self, client: ClientId, reason: RefusalReason) {
        debug!(client = client.0, reason, "client message refused");
        self.bad_messages += 1;
        if self.refusals_left > 0 {
            self.refusals_left -= 1;
            self.refusals.push(ClientMessageRefused { client, reason });
        }
    }

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
        write(world, &mut self.refusals);
        let mut stats = world.resource_mut::<SessionStats>();
        stats.late_inputs += std::mem::take(&mut self.late_inputs);
        stats.bad_messages += std::mem::take(&mut self.bad_messages);
    }
}

/// What remains to be done for a message.
pub(super) enum Handled<'a> {
    /// Nothing.
    Done,
    /// Needs [`handle_with_world`], after the results of all earlier messages were written.
    NeedsWorld(ClientMessage<'a>),
}

/// Handles a message that affects only its sender and the object that it controls, as nearly all do. On an error nothing has
/// changed. One lookup in the list of sessions.
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

/// The player of a client and its controlled object. Between login and spawn there is none, which is not an error.
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
        // A network that duplicates or reorders packets causes this for correct clients, too.
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

/// Handles a message that [`handle_message`] returned because it affects more than its sender. On an error nothing has changed.
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
