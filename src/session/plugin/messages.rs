//! Messages about sessions, for other modules and games.

use bevy_ecs::prelude::*;

use crate::inbox::VerifiedIdentity;
use crate::session::LogoutReason;
use crate::wire::{ChatScope, ClientId, ClientInput, LoginRefusal, SessionNotice};
use crate::world::PlayerId;

/// A player logged in. The game spawns an object for it with [`ControlledBy`](crate::session::ControlledBy).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// #[derive(Resource)]
/// struct Town(Entity);
///
/// fn welcome(mut logins: MessageReader<LoggedIn>, town: Res<Town>, mut commands: Commands) {
///     for login in logins.read() {
///         let place = (InScene(town.0), Position(Vec2::splat(10.0)));
///         commands.spawn((Player, login.player, ControlledBy(login.client_entity), place));
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The session of the player.
    pub client: ClientId,
    /// The entity of the session.
    pub client_entity: Entity,
    /// The player.
    pub player: PlayerId,
}

/// A player's session ended, and its object was despawned, unless it has [`OutlivesSession`](crate::session::OutlivesSession).
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// fn say_goodbye(mut logouts: MessageReader<LoggedOut>) {
///     for logout in logouts.read() {
///         println!("player {} left: {}", logout.player.0, logout.reason.label());
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOut {
    /// The ended session.
    pub client: ClientId,
    /// The entity of the session. It is despawned at the end of the tick.
    pub client_entity: Entity,
    /// The player of the session.
    pub player: PlayerId,
    /// The object that it controlled, now despawned or without a client.
    pub entity: Option<Entity>,
    /// Why it ended.
    pub reason: LogoutReason,
}

/// A player's connection is lost. Its object stays, marked [`AwaitingReconnect`], until [`SessionResumed`] or [`LoggedOut`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::ConnectionLost;
///
/// /// A player without a connection cannot be hurt.
/// fn protect(mut lost: MessageReader<ConnectionLost>, mut commands: Commands) {
///     for object in lost.read().filter_map(|lost| lost.entity) {
///         commands.entity(object).insert(ViewTag([1, 0]));
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::SessionResumed;
///
/// fn end_protection(mut resumed: MessageReader<SessionResumed>, mut commands: Commands) {
///     for object in resumed.read().filter_map(|resumed| resumed.entity) {
///         commands.entity(object).remove::<ViewTag>();
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::session::SessionClosed;
///
/// fn log(mut closed: MessageReader<SessionClosed>) {
///     for it in closed.read() {
///         println!("session of client {} ended: {:?}", it.client.0, it.reason);
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::ClientMessageRefused;
///
/// fn log(mut refused: MessageReader<ClientMessageRefused>) {
///     for refused in refused.read() {
///         println!("client {}: {}", refused.client.0, refused.reason);
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::SessionNoticeRequest;
/// use throng::wire::SessionNotice;
///
/// /// A login queue of your own: `SessionPlugin` writes these notices for its queue.
/// fn report_position(client: ClientId, position: u32, mut notices: MessageWriter<SessionNoticeRequest>) {
///     notices.write(SessionNoticeRequest { client, notice: SessionNotice::Queued { position } });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionNoticeRequest {
    /// The client.
    pub client: ClientId,
    /// The notice.
    pub notice: SessionNotice,
}

/// On an object while the connection of its player is lost.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::AwaitingReconnect;
///
/// fn count_away(away: Query<(), With<AwaitingReconnect>>) {
///     println!("{} players have lost their connection", away.iter().count());
/// }
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitingReconnect;

/// Input of a player other than motion (see [`MoveInput`](crate::world::MoveInput)): pressed keys and their time.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::PlayerInput;
///
/// /// The game defines the buttons; the first one is a jump.
/// fn jump(mut inputs: MessageReader<PlayerInput>) {
///     for input in inputs.read().filter(|of| of.input.buttons & 1 != 0) {
///         println!("{} jumps", input.entity);
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::session::{PlayerRequest, PlayerRequestReceived};
///
/// fn open_doors(mut requests: MessageReader<PlayerRequestReceived>) {
///     for received in requests.read() {
///         if let PlayerRequest::Interact { target, verb: 1 } = received.request {
///             println!("{} opens {target}", received.entity);
///         }
///     }
/// }
/// ```
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
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// /// A chat line: any text of up to 200 bytes.
/// struct Chat(String);
///
/// impl ClientMessageType for Chat {
///     fn read(bytes: &[u8]) -> Option<Self> {
///         let text = std::str::from_utf8(bytes).ok()?;
///         (text.len() <= 200).then(|| Self(text.to_owned()))
///     }
/// }
///
/// /// Registered by `app.register_client_message::<Chat>(1)`.
/// fn show(mut lines: MessageReader<FromClient<Chat>>) {
///     for line in lines.read() {
///         println!("player {}: {}", line.player.0, line.message.0);
///     }
/// }
/// ```
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
