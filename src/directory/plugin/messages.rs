//! What the directory tells, and what it is asked for.

use bevy_ecs::prelude::*;

use crate::directory::error::DirectoryError;
use crate::directory::record::PlayerRecord;
use crate::wire::ClientId;
use crate::world::PlayerId;

/// A player that logged in is this server's, and this is what is kept of it: the game spawns its object now. Follows
/// [`LoggedIn`](crate::session::LoggedIn) in the same tick at the earliest.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLoaded {
    /// The session by which it plays.
    pub client: ClientId,
    /// What is kept of it; [`is_new`](PlayerRecord::is_new) when that is nothing.
    pub record: PlayerRecord,
}

/// The record of a player that logged in cannot be had. Its session was ended.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerRefused {
    /// The session that was.
    pub client: ClientId,
    /// Who is refused.
    pub player: PlayerId,
    /// Why.
    pub error: DirectoryError,
}

/// A player is not this server's any more. If it was here, its session was ended and its object despawned; it may also have
/// left before, with its last values still to be saved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLost {
    /// Who is gone.
    pub player: PlayerId,
    /// Whether what was not saved of it is still going to be, unless another server has it by then: its lease ran out, for the
    /// store could not be reached. Else another server has it, or somebody that it dealt with, and nothing more is saved.
    pub is_saved: bool,
}

/// A transaction is on disk.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayersSaved {
    /// The tick whose saves it ended with: all of this and of earlier ticks are on disk now.
    pub tick: u64,
    /// The players that were saved, with their revisions now.
    pub revisions: Vec<(PlayerId, u64)>,
}

/// Two players dealt with each other: items or money changed hands. Written in the tick in which the game changes their
/// components, before [`SyncSystems::Mark`](crate::sync::SyncSystems::Mark). Both are saved in this tick's transaction, or
/// neither is; [`PlayersSaved`] of this tick says that they are.
///
/// Both must be here ([`Directory::is_live`](super::Directory::is_live)). All that is exchanged has to be in attributes that
/// are persistent.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Who dealt.
    pub players: [PlayerId; 2],
}
