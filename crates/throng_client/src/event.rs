//! Events for the game, in the order in which the server sent them.

use glam::Vec2;
use throng_protocol::predictor::Correction;
use throng_protocol::wire::{CloseReason, LoginRefusal};

/// Maximum number of waiting events; above it the oldest are dropped.
pub const EVENTS_MAX: usize = 65_536;

/// An event since the game last read one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The client waits in the login queue.
    Queued {
        /// Position in the queue; 1 is next.
        position: u32,
    },
    /// The player is logged in, or the session is resumed.
    Welcomed {
        /// Player id.
        player: u64,
    },
    /// The session continues over this connection.
    Resumed {
        /// Whether the client keeps its state, and only the messages that it missed follow; otherwise everything is sent again.
        keeps_state: bool,
    },
    /// The session could not be resumed; the player logs in again.
    ResumeFailed,
    /// The player enters this scene, which is sent after [`Client::ready`](crate::Client::ready).
    Loading {
        /// Scene id.
        scene: u32,
        /// Width and height, in metres.
        size_m: Vec2,
    },
    /// The player is in this scene. All objects of the previous scene are gone, without events of their own.
    SceneEntered {
        /// Scene id.
        scene: u32,
        /// Width and height, in metres.
        size_m: Vec2,
    },
    /// The player controls no object any more, and no object is in view.
    SceneLeft,
    /// The player controls this object.
    ControlChanged {
        /// Object id in the scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
    },
    /// An object entered the view.
    Entered {
        /// Object id in the scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// Number of its kind.
        kind: u16,
    },
    /// An object left the view.
    Left {
        /// Object id in the scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
    },
    /// An attribute of an object in view was changed or removed.
    AttributeChanged {
        /// Object id in the scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// Number of the attribute.
        attribute: u16,
    },
    /// A one-time event of the game.
    Announced {
        /// The object that it is about: id and generation.
        about: Option<(u32, u32)>,
        /// Its content, as the game defines it.
        bytes: Vec<u8>,
    },
    /// The server's position of the controlled object differs from the predicted one.
    Corrected(Correction),
    /// The rate of simulated time has changed, because of the server's load.
    TimeRate {
        /// In percent of real time, 1 to 100.
        percent: u8,
    },
    /// The server has ended the session; the end of the connection follows.
    Closed {
        /// The reason; `None` if this version does not know its number.
        reason: Option<CloseReason>,
        /// Why the login was refused, if it was: its text is for a log.
        refusal: Option<LoginRefusal>,
    },
}
