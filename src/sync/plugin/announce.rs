//! Announcements of the game, their receivers, and how many were reached.

use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::wire::{Channel, ClientId};
use crate::world::{ObjectRef, PartyId, SceneId};

/// Tells clients of something that happens once: damage, chat, a spell that is cast.
///
/// Encoded once, whoever gets it. It is told in the tick in which it is written, if that is before `Replicate`.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct AnnouncementRequest {
    /// Whom it is about. A client that comes to know that object now is told of it first.
    pub about: Option<ObjectRef>,
    /// Who is told.
    pub scope: AnnouncementScope,
    /// Whether it may be lost.
    pub channel: Channel,
    /// For how many ticks it is of use to a client that is to be told of the object first.
    pub ttl_ticks: u32,
    /// What it says, as the game defines it; at most
    /// [`ANNOUNCE_BYTES_MAX`](crate::wire::ANNOUNCE_BYTES_MAX).
    pub bytes: Vec<u8>,
}

/// An announcement was encoded; written at the end of `Replicate`.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct AnnouncementSent {
    /// Whom it is about.
    pub about: Option<ObjectRef>,
    /// Who was to be told.
    pub scope: AnnouncementScope,
    /// Clients that were told, or will be as soon as they know the object.
    pub receivers: u32,
}

/// Who is told of an announcement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnnouncementScope {
    /// All who see an object, and the client that controls it.
    Viewers(ObjectRef),
    /// All whose own object is near a place.
    Radius {
        /// The scene that the place is in.
        scene: SceneId,
        /// The middle of the circle, in metres.
        at: Vec2,
        /// Its radius, in metres.
        radius_m: f32,
    },
    /// The members of a party, wherever they are.
    Party(PartyId),
    /// All in a scene.
    Scene(SceneId),
    /// One client and nobody else.
    Client(ClientId),
}
