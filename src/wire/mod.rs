//! Bytes ↔ messages, in both directions. No game logic; a client can be written in another language from this page.
//!
//! All integers are little endian. A *varint* is LEB128: seven bits a byte, lowest first, the high bit set on all bytes but
//! the last; at most 5 bytes for 32 bits and 10 for 64, and no more bits than that. A *position* is two varints, x then y,
//! in units of 1/64 m from the scene's top left corner.
//!
//! # Client to server
//! One message a frame: a kind byte, then the body; bytes after it are an error.
//!
//! | kind | message | body |
//! |---|---|---|
//! | 1 | [`Login`](ClientMessage::Login) | player: varint (64 bits) |
//! | 2 | [`Logout`](ClientMessage::Logout) | – |
//! | 3 | [`Move`](ClientMessage::Move) | position where the own object now wants to be; heading: 1 byte |
//! | 4 | [`Face`](ClientMessage::Face) | heading: 1 byte |
//!
//! # Server to client
//! One packet a client and tick, when there is something to say: a header of 8 bytes, then messages until the end.
//!
//! | bytes | header |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | epoch: counts scene changes of this client, modulo 256. A new epoch begins with *Scene* |
//! | 2–3 | sequence: counts this client's packets, modulo 65,536 |
//! | 4–7 | server tick, modulo 2³² |
//!
//! | kind | message | body |
//! |---|---|---|
//! | 1 | *Scene* | scene: varint; width, height: varints, in 1/64 m; the client forgets all objects |
//! | 2 | *Own* | id, generation: varints; the object that this client controls |
//! | 3 | *Despawn* | id, generation: varints |
//! | 4 | *Snapshot* | id, generation, kind: varints; motion; number of attributes: 1 byte; that many attributes |
//! | 5 | *Delta* | id, generation: varints; number of attributes: 1 byte; that many attributes |
//! | 6 | *Motion* | id, generation: varints; motion |
//!
//! A *motion* is a position, velocity x and y (1 byte each, signed, in 1/8 m/s), heading (1 byte, 256ths of a turn, 0 is +x,
//! 64 is +y), floor (1 byte) and flags (1 byte; bit 0: a discontinuity, do not interpolate). An *attribute* is its number
//! (varint), the length of its value (varint, at most [`ATTRIBUTE_BYTES_MAX`]) and the value, as its game defines it.
//!
//! Within a packet: Scene, Own, Despawns, Snapshots, Deltas, Motions. A delta never precedes its object's snapshot.

mod client;
mod codec;
mod server;

pub use client::ClientMessage;
pub use codec::{Reader, WireError, write_varint};
pub use server::{
    ATTRIBUTE_BYTES_MAX, Attribute, HEADER_BYTES, Header, Motion, PositionQuantum, ServerMessage,
    quantise, write_attribute, write_delta_head, write_despawn, write_motion, write_own,
    write_scene, write_snapshot_head,
};

/// The version in every packet's header.
pub const VERSION: u8 = 1;

/// The number of a connection, never reused while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);
