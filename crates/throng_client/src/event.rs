//! What a game is told, in the order in which the server said it.

use glam::Vec2;
use throng_protocol::predictor::Correction;
use throng_protocol::wire::CloseReason;

/// Events that wait for the game, at most; further ones push the oldest out.
pub const EVENTS_MAX: usize = 65_536;

/// Something that happened since the game last asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server is full, or lets nobody in for now.
    Queued {
        /// How many go in before this client and with it: 1 is next.
        position: u32,
    },
    /// The player is logged in, or back.
    Welcomed {
        /// Who it is.
        player: u64,
    },
    /// The session goes on over this connection.
    Resumed {
        /// Whether what was known before still holds, and only what was missed follows; otherwise all is told anew.
        keeps_state: bool,
    },
    /// The session that was to go on is over, and the player logs in anew.
    ResumeFailed,
    /// The player is to be in this scene, and is told of it after [`Client::ready`](crate::Client::ready).
    Loading {
        /// The scene's number.
        scene: u32,
        /// Its width and height, in metres.
        size_m: Vec2,
    },
    /// The player is in this scene; all that was in sight before is not any more, without a word of its own.
    SceneEntered {
        /// The scene's number.
        scene: u32,
        /// Its width and height, in metres.
        size_m: Vec2,
    },
    /// The player controls nothing any more, and nothing is in sight: its object is gone, or was taken from it.
    SceneLeft,
    /// The player controls this object.
    ControlChanged {
        /// Its number in the scene.
        id: u32,
        /// How often that number was given out before.
        generation: u32,
    },
    /// An object came into sight.
    Entered {
        /// Its number in the scene.
        id: u32,
        /// How often that number was given out before.
        generation: u32,
        /// The number of its kind.
        kind: u16,
    },
    /// An object is out of sight.
    Left {
        /// Its number in the scene.
        id: u32,
        /// How often that number was given out before.
        generation: u32,
    },
    /// An attribute of an object in sight has another value, or is gone.
    AttributeChanged {
        /// The object's number in the scene.
        id: u32,
        /// How often that number was given out before.
        generation: u32,
        /// The attribute's number.
        attribute: u16,
    },
    /// Something happens once.
    Announced {
        /// Whom it is about: number and generation.
        about: Option<(u32, u32)>,
        /// What it says, as the game defines it.
        bytes: Vec<u8>,
    },
    /// The server has the own object elsewhere than it was walked.
    Corrected(Correction),
    /// Simulated time passes at another pace: the server has more to do than it can, or no longer.
    TimeRate {
        /// In percent of real time, 1 to 100.
        percent: u8,
    },
    /// The server ended the session; the connection's end follows.
    Closed {
        /// Why; none of a number that this version does not know.
        reason: Option<CloseReason>,
    },
}
