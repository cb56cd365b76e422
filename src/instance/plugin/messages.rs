//! Messages of instances: requests and facts.

use bevy_ecs::prelude::*;
use thiserror::Error;

use crate::matchmaking::{ModeId, Ticket, TicketParty, TicketPlayer};
use crate::world::{PlayerId, WorldError};

/// The number of an instance. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

/// The game wants an instance to end, since the match is decided, say. Handled in the next
/// [`InstanceSystems`](crate::instance::InstanceSystems); nothing happens when it has ended already.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndInstanceRequest {
    /// The instance that is to end.
    pub instance: InstanceId,
}

/// Somebody wants to leave a match before its end. Handled as [`EndInstanceRequest`] is: real players are moved home, and
/// others are asked to join in their place.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaveInstanceRequest {
    /// Which instance is left.
    pub instance: InstanceId,
    /// The player or the party that leaves it.
    pub leaver: Leaver,
}

/// Who leaves a match before its end: a player alone, or a whole party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaver {
    /// One player; the rest of its party plays on.
    Player(TicketPlayer),
    /// A whole party.
    Party(TicketParty),
}

/// A match has a scene from this tick on; its players' [`InstancePlayerEntered`] come right after it.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceOpened {
    /// The number that the instance has from now on.
    pub instance: InstanceId,
    /// The match that is played in it.
    pub match_id: u64,
    /// The mode of the match.
    pub mode: ModeId,
    /// The scene's entity.
    pub scene: Entity,
}

/// A match has no scene, and will have none; its players stay where they are.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct InstanceRefused {
    /// The match that gets no scene, by the number that matchmaking gave it.
    pub match_id: u64,
    /// The mode of the match.
    pub mode: ModeId,
    /// What stood in the way.
    pub error: InstanceError,
}

/// Why a match has no scene.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// As many instances run or wait to be opened as may.
    #[error("too many instances: at most {max} can run at once")]
    TooMany {
        /// How many may run or wait to be opened at once, as [`InstanceSettings`](crate::instance::InstanceSettings)
        /// say.
        max: u32,
    },
    /// The host does not want this match to be played in a scene.
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
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerEntered {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player that this is about.
    pub player: PlayerId,
    /// Its object, the one that it had before.
    pub entity: Entity,
    /// The side that it plays on, 0 or 1.
    pub side: usize,
    /// Whether it was in this match before and has come back to its seat.
    pub is_return: bool,
}

/// A player is in the scene of its match no more, before the match's end.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerLeft {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player that this is about.
    pub player: PlayerId,
    /// The object that it played with; gone where the reason says so.
    pub entity: Entity,
    /// The side that it played on, 0 or 1.
    pub side: usize,
    /// Why it is there no more, and whether its seat is held for it.
    pub reason: DepartureReason,
}

/// A player, real or synthetic, is in the lineup of a running match no more. Of real players who were in its scene a
/// [`InstancePlayerLeft`] tells as well; this one comes when a seat that was held is given up, and for those who stay out.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLeft {
    /// The match.
    pub match_id: u64,
    /// The player's party in it.
    pub party: TicketParty,
    /// The player that this is about.
    pub player: TicketPlayer,
}

/// A player was found for a match and has a seat in another, which it keeps: it is out of the new match, and others are asked
/// to join in its place.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerAlreadyInInstance {
    /// The instance of the new match.
    pub instance: InstanceId,
    /// The player that this is about.
    pub player: PlayerId,
    /// The instance in which it has its seat.
    pub seated_in: InstanceId,
}

/// How a player left a match before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureReason {
    /// Its object is gone: it logged out, say. Its seat is held until this tick.
    Gone {
        /// From this tick on others are asked to join in its place.
        reserved_until_tick: u64,
    },
    /// The game moved it to another scene, where it stays.
    Moved,
    /// It asked to leave.
    Requested,
}

/// A player's object was moved home, at the end of its match or since it left; follows on [`InstancePlayerLeft`] then.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlayerReturned {
    /// The instance from whose scene it was moved.
    pub instance: InstanceId,
    /// The player that this is about.
    pub player: PlayerId,
    /// Its object, the one that it played with.
    pub entity: Entity,
}

/// A party joined a running match; the [`InstancePlayerEntered`] of its players come right after it.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct InstancePartyJoined {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The side that it plays on, 0 or 1.
    pub side: usize,
    /// The ticket with which the party waited; it waits no more.
    pub ticket: Ticket,
}

/// A match is over: its players are home, its scene is closed.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceEnded {
    /// The number that the instance had; no other one will get it.
    pub instance: InstanceId,
    /// The match that was played in it.
    pub match_id: u64,
    /// The entity that the scene was.
    pub scene: Entity,
    /// Why it ended.
    pub reason: EndReason,
}

/// Why an instance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its time was over.
    TimeLimit,
    /// The game asked for it.
    Requested,
    /// Nobody had a seat in it any more.
    Empty,
    /// Somebody else closed its scene.
    SceneClosed,
}

/// A player could not be moved in, and is out of the match, or could not be moved home, and its object was despawned.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct InstanceMoveFailed {
    /// The instance of its match.
    pub instance: InstanceId,
    /// The player that this is about.
    pub player: PlayerId,
    /// The object that was to be moved; gone now if it was on its way home.
    pub entity: Entity,
    /// Whether it was on its way home.
    pub is_returning: bool,
    /// What stood in the way.
    pub error: WorldError,
}
