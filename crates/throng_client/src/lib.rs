//! **A client library for games with a [throng](https://docs.rs/throng) server.** It connects with a token, stores the state that the
//! server sends, and predicts the player's object with the server's movement code. No engine, no Bevy, no threads: one call per frame.
//!
//! ```no_run
//! use std::time::Instant;
//! use throng_client::{Client, ClientEvent, ClientSettings, ControlState};
//!
//! # fn token_of_my_login_service() -> Vec<u8> { Vec::new() }
//! let mut client = Client::connect(&token_of_my_login_service(), ClientSettings::default())?;
//! loop {
//!     let now = Instant::now();
//!     client.set_controls(ControlState::towards(64)); // while the key is pressed; 64 is a quarter of a turn, +y
//!     client.update(now)?;
//!     while let Some(event) = client.next_event() {
//!         match event {
//!             ClientEvent::Entered { id, kind, .. } => println!("{id} of kind {kind} entered the view"),
//!             ClientEvent::Left { id, .. } => println!("{id} left the view"),
//!             _ => {}
//!         }
//!     }
//!     let here = client.own_position(now);
//!     let others = client.ids().into_iter().filter_map(|id| Some((id, client.position(id, now)?)));
//! #   let _ = (here, others.count());
//! #   break;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Shown positions are estimates: other objects are extrapolated from their last motion, and the controlled object is predicted from the
//! inputs, at the speed that the server sends. If an estimate was wrong, the shown position follows smoothly: after
//! [`ClientSettings::smoothing_s`] a third of the error is left. Until the game sets the map ([`Client::set_ground`]), the predicted object walks through walls, and is corrected by the server.
//!
//! Bounds: [`EVENTS_MAX`] events wait for the game; above it the oldest are dropped and counted. All other memory is proportional to the
//! objects in view. Cost: that of the received bytes, and one step per input.
#![warn(missing_docs)]

// | file | contents |
// | `client` | a session with a socket and a clock |
// | `session` | the session alone: packets and times in, messages out |
// | `event` | events for the game |
// | `smoothing` | smooth display positions |
// | `plugin` | with the feature `bevy`: one entity per object in view |

mod client;
mod event;
#[cfg(feature = "bevy")]
mod plugin;
mod session;
mod smoothing;

pub use client::{Client, ClientError, ClientStartError};
pub use event::{ClientEvent, EVENTS_MAX};
#[cfg(feature = "bevy")]
pub use plugin::{
    ClientDisconnected, ClientEventReceived, ClientPlugin, ControlledObject, DisconnectedClient,
    GameClient, RenderPosition, VisibleObject,
};
pub use session::{ClientMap, ClientSession, ClientSettings, ControlState};

pub use glam::Vec2;
pub use throng_nav::map::TileMap;
pub use throng_net::{ClientHandshakeError, ConnectionError, EndpointSettings};
pub use throng_protocol::mirror::{Mirror, MirrorError, MirrorObject};
pub use throng_protocol::predictor::Correction;
#[doc(no_inline)]
pub use throng_protocol::wire;
pub use throng_protocol::wire::{
    AttributeType, AttributeValue, ChatScope, ClientMessage, CloseReason, Encoding, InputMotion,
    LoginRefusal, QuantizedPosition, ReplicatedAttribute,
};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ClientReadme;
