//! Announcements of the game, their scopes, and reports of the number of receivers.

use bevy_ecs::prelude::*;
use glam::Vec2;

use crate::wire::{Channel, ClientId};
use crate::world::{ObjectRef, PartyId, SceneId};

/// Sends a one-time message to clients: damage, chat, a spell.
///
/// Encoded once for all receivers. It is sent in the tick in which it is written, if that is before `Replicate`.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::sync::AnnouncementScope;
/// use throng::wire::Channel;
///
/// fn ring_bell(scene: &SimScene, mut requests: MessageWriter<AnnouncementRequest>) {
///     requests.write(AnnouncementRequest {
///         about: None,
///         scope: AnnouncementScope::Scene(scene.id()),
///         channel: Channel::Reliable,
///         ttl_ticks: 0,
///         bytes: b"bell".to_vec(),
///     });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq)]
pub struct AnnouncementRequest {
    /// The object concerned. A client that starts to know that object now receives its snapshot first.
    pub about: Option<ObjectRef>,
    /// The receivers.
    pub scope: AnnouncementScope,
    /// Reliable or unreliable.
    pub channel: Channel,
    /// For how many ticks it may wait for the object's snapshot.
    pub ttl_ticks: u32,
    /// The content, defined by the game; at most
    /// [`ANNOUNCE_BYTES_MAX`](crate::wire::ANNOUNCE_BYTES_MAX).
    pub bytes: Vec<u8>,
}

/// An announcement was encoded; written at the end of `Replicate`.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::sync::AnnouncementSent;
///
/// fn log(mut sent: MessageReader<AnnouncementSent>) {
///     for it in sent.read() {
///         println!("{:?}: {} receivers", it.scope, it.receivers);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq)]
pub struct AnnouncementSent {
    /// The object concerned.
    pub about: Option<ObjectRef>,
    /// The scope of the request.
    pub scope: AnnouncementScope,
    /// The number of clients that received it, or will as soon as they know the object.
    pub receivers: u32,
}

/// The receivers of an announcement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnnouncementScope {
    /// All viewers of an object, and the client that controls it.
    Viewers(ObjectRef),
    /// All clients whose own object is near a position.
    Radius {
        /// The scene of the position.
        scene: SceneId,
        /// The centre of the circle, in metres.
        at: Vec2,
        /// Its radius, in metres.
        radius_m: f32,
    },
    /// The members of a party, wherever they are.
    Party(PartyId),
    /// All clients in a scene.
    Scene(SceneId),
    /// One client.
    Client(ClientId),
}
