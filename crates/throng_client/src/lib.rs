//! **A game's client of a [throng](https://docs.rs/throng) server**: it connects by a token, holds what the server tells of the surroundings, and walks
//! its own object ahead of the server by the server's own steps. No engine, no Bevy, no thread: one call a frame.
//!
//! ```no_run
//! use std::time::Instant;
//! use throng_client::{Client, ClientEvent, ClientSettings, ControlState};
//!
//! # fn token_of_my_login_service() -> Vec<u8> { Vec::new() }
//! let mut client = Client::connect(&token_of_my_login_service(), ClientSettings::new(7))?;
//! loop {
//!     let now = Instant::now();
//!     client.set_controls(ControlState::towards(64)); // as long as the key is held; 64 is a quarter of a turn, +y
//!     client.update(now)?;
//!     while let Some(event) = client.next_event() {
//!         match event {
//!             ClientEvent::Entered { id, kind, .. } => println!("{id} of kind {kind} came into sight"),
//!             ClientEvent::Left { id, .. } => println!("{id} is out of sight"),
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
//! | file | holds |
//! |---|---|
//! | `client` | a session with a socket and a clock |
//! | `session` | the same without: packets and a time in, messages out |
//! | `event` | what a game is told |
//! | `smooth` | what is shown goes over to what is known in a tenth of a second, and does not jump |
//! | `plugin` | with the feature `bevy`: an entity for each object in sight |
//!
//! What stands on a screen is reckoned: others go on as the server last said, the own object where its inputs lead. Where either turns out
//! wrong, what is shown follows within [`ClientSettings::smoothing_s`]. The own object walks through walls that the server would not let it
//! through, and is corrected, until the game hands over the map ([`Client::set_ground`]).
//!
//! Bounds: [`EVENTS_MAX`] events wait for the game, further ones push the oldest out and are counted; everything else is what is in
//! sight. Cost: that of the bytes that come, and a step an input.
#![warn(missing_docs)]

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
pub use throng_net::{ConnectionError, EndpointSettings};
pub use throng_protocol::mirror::{Mirror, MirrorError, MirrorObject};
pub use throng_protocol::predictor::Correction;
#[doc(no_inline)]
pub use throng_protocol::wire;
pub use throng_protocol::wire::{
    AttributeType, AttributeValue, ChatScope, ClientMessage, CloseReason, Encoding, InputMotion,
    QuantizedPosition, ReplicatedAttribute,
};

/// What the README shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ClientReadme;
