//! Messages of instances: requests and facts.

use bevy_ecs::prelude::*;
use thiserror::Error;

use crate::matchmaking::{ModeId, Ticket, TicketParty, TicketPlayer};
use crate::world::{PlayerId, WorldError};

/// The id of an instance. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

/// Request: end an instance, for example because the match is decided. Handled in the next
/// [`InstanceSystems`](crate::instance::InstanceSystems); ignored when it has ended already.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::{EndInstanceRequest, InstanceId};
///
/// fn on_last_flag(instance: InstanceId, mut requests: MessageWriter<EndInstanceRequest>) {
///     requests.write(EndInstanceRequest { instance });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndInstanceRequest {
    /// The instance to end.
    pub instance: InstanceId,
}

/// Request: a player or party leaves a match before its end. Handled like [`EndInstanceRequest`]: real players are moved home, and
/// replacements are requested.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::{InstanceId, LeaveInstanceRequest, Leaver};
///
/// fn give_up(instance: InstanceId, mut requests: MessageWriter<LeaveInstanceRequest>) {
///     let leaver = Leaver::Player(PlayerId(7).into());
///     requests.write(LeaveInstanceRequest { instance, leaver });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaveInstanceRequest {
    /// The instance.
    pub instance: InstanceId,
    /// The player or the party that leaves.
    pub leaver: Leaver,
}

/// A player alone, or a whole party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaver {
    /// One player; the rest of its party stays.
    Player(TicketPlayer),
    /// A whole party.
    Party(TicketParty),
}

/// A match has a scene from this tick on; the [`InstancePlayerEntered`] of its players follow directly.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::InstanceOpened;
///
/// fn report(mut opened: MessageReader<InstanceOpened>) {
///     for it in opened.read() {
///         println!("match {} runs in scene {}", it.match_id, it.scene);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceOpened {
    /// The id of the instance.
    pub instance: InstanceId,
    /// The match.
    pub match_id: u64,
    /// The mode of the match.
    pub mode: ModeId,
    /// The scene's entity.
    pub scene: Entity,
}

/// A match gets no scene; its players stay where they are.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::InstanceRefused;
///
/// fn report(mut refused: MessageReader<InstanceRefused>) {
///     for it in refused.read() {
///         println!("no scene for match {}: {}", it.match_id, it.error);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct InstanceRefused {
    /// The id that matchmaking gave the match.
    pub match_id: u64,
    /// The mode of the match.
    pub mode: ModeId,
    /// The cause.
    pub error: InstanceError,
}

/// Why a match has no scene.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The limit of instances that run or wait to be opened is reached.
    #[error("too many instances: at most {max} can run at once")]
    TooMany {
        /// The limit in [`InstanceSettings`](crate::instance::InstanceSettings).
        max: u32,
    },
    /// The host declined to open a scene for this match.
    #[error("the instance host declined the match")]
    Declined,
    /// The host could not open a scene.
    #[error("the instance host could not open a scene: {0}")]
    Host(String),
    /// The world refused the scene.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// A player's object is in the scene of its match.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// use throng::instance::InstancePlayerEntered;
///
/// /// Each side begins at its own end of the arena.
/// fn place(mut entered: MessageReader<InstancePlayerEntered>, mut commands: Commands) {
///     for player in entered.read().filter(|player| !player.is_return) {
///         let x = if player.side == 0 { 2.0 } else { 18.0 };
///         commands.entity(player.entity).teleport(Vec2::new(x, 10.0)).insert(TeamId(player.side as u32 + 1));
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerEntered {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player.
    pub player: PlayerId,
    /// Its object, the same as before.
    pub entity: Entity,
    /// Its side, 0 or 1.
    pub side: usize,
    /// Whether it was in this match before and has returned to its seat.
    pub is_return: bool,
}

/// A player left the scene of its match before the match's end.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::InstancePlayerLeft;
///
/// fn report(mut left: MessageReader<InstancePlayerLeft>) {
///     for it in left.read() {
///         println!("player {} left: {:?}", it.player.0, it.reason);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerLeft {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player.
    pub player: PlayerId,
    /// Its object in the match; gone if the reason says so.
    pub entity: Entity,
    /// Its side, 0 or 1.
    pub side: usize,
    /// The reason, and whether its seat is reserved.
    pub reason: DepartureReason,
}

/// A player, real or synthetic, was removed from the lineup of a running match. For real players who were in its scene there is
/// also an [`InstancePlayerLeft`]; this message comes when a reserved seat is released, and for players who never entered.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::MemberLeft;
///
/// fn report(mut left: MessageReader<MemberLeft>) {
///     for it in left.read() {
///         println!("{:?} left its party in match {}", it.player, it.match_id);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLeft {
    /// The match.
    pub match_id: u64,
    /// The player's party.
    pub party: TicketParty,
    /// The player.
    pub player: TicketPlayer,
}

/// A player was matched and has a seat in another instance, which it keeps: it is removed from the new match, and a
/// replacement is requested.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::instance::PlayerAlreadyInInstance;
///
/// fn log(mut refused: MessageReader<PlayerAlreadyInInstance>) {
///     for it in refused.read() {
///         println!("player {} was matched but already plays in instance {:?}", it.player.0, it.seated_in);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerAlreadyInInstance {
    /// The instance of the new match.
    pub instance: InstanceId,
    /// The player.
    pub player: PlayerId,
    /// The instance with its seat.
    pub seated_in: InstanceId,
}

/// Why a player left a match before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureReason {
    /// Its object is gone, for example by a logout. Its seat is reserved until this tick.
    Gone {
        /// The tick from which replacements are requested.
        reserved_until_tick: u64,
    },
    /// The game moved it to another scene, where it stays.
    Moved,
    /// It requested to leave.
    Requested,
}

/// A player's object was moved home, at the end of its match or after it left; in that case it follows [`InstancePlayerLeft`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::InstancePlayerReturned;
///
/// fn end_teams(mut returned: MessageReader<InstancePlayerReturned>, mut commands: Commands) {
///     for player in returned.read() {
///         commands.entity(player.entity).remove::<TeamId>();
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerReturned {
    /// The instance that it left.
    pub instance: InstanceId,
    /// The player.
    pub player: PlayerId,
    /// Its object.
    pub entity: Entity,
}

/// A party joined a running match; the [`InstancePlayerEntered`] of its players follow directly.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::instance::InstancePartyJoined;
///
/// fn greet(mut joined: MessageReader<InstancePartyJoined>) {
///     for it in joined.read() {
///         println!("{} players reinforce side {}", it.ticket.size, it.side);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct InstancePartyJoined {
    /// The instance of the match.
    pub instance: InstanceId,
    /// Its side, 0 or 1.
    pub side: usize,
    /// The ticket of the party, which is no longer queued.
    pub ticket: Ticket,
}

/// A match ended: its players are home, its scene is closed.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::instance::InstanceEnded;
///
/// fn report(mut ended: MessageReader<InstanceEnded>) {
///     for it in ended.read() {
///         println!("match {} ended: {:?}", it.match_id, it.reason);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceEnded {
    /// The id of the instance, which is not reused.
    pub instance: InstanceId,
    /// The match.
    pub match_id: u64,
    /// The former entity of the scene.
    pub scene: Entity,
    /// Why it ended.
    pub reason: EndReason,
}

/// Why an instance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its time ended.
    TimeLimit,
    /// The game requested it.
    Requested,
    /// It had no seats any more.
    Empty,
    /// Its scene was closed by other code.
    SceneClosed,
}

/// A player could not be moved in, and is removed from the match, or could not be moved home, and its object was despawned.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::instance::InstanceMoveFailed;
///
/// fn log(mut failed: MessageReader<InstanceMoveFailed>) {
///     for it in failed.read() {
///         let direction = if it.is_returning { "home" } else { "into the match" };
///         println!("player {} could not be moved {direction}: {}", it.player.0, it.error);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct InstanceMoveFailed {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player.
    pub player: PlayerId,
    /// The object; gone now if it was on its way home.
    pub entity: Entity,
    /// Whether it was on its way home.
    pub is_returning: bool,
    /// The cause.
    pub error: WorldError,
}
