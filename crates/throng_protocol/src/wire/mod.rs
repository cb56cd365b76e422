//! Bytes ↔ messages, in both directions. No game logic; a client can be written in another language from this page.
//!
//! | file | what it holds |
//! |---|---|
//! | `codec` | varints and fixed numbers, read with the place of whatever does not fit |
//! | `packet` | headers, packets made from messages, long messages in parts |
//! | `position` | positions, as either direction has them |
//! | `client`, `server` | the messages of either direction |
//! | `notice` | what a server says about the session itself |
//! | `value` | values of attributes, and how they are encoded |
//! | `replicated_attribute` | attributes as types |
//!
//! All integers are little endian. A *varint* is LEB128: seven bits a byte, lowest first, the high bit set on all bytes but
//! the last; at most 5 bytes for 32 bits and 10 for 64, and no more bits than that. Varints have 32 bits where nothing else is
//! said.
//!
//! A *position* is two varints, x then y, in units of 1/64 m from the scene's top left corner, x to the right and y down. It is
//! the nearest unit: metres × 64, rounded, halves up; what is negative becomes 0. It stands for that point and not for a
//! square, so reading it is a division by 64, and it is off by at most 1/128 m on each axis.
//!
//! # Client to server
//! One message a frame: a kind byte, then the body; bytes after it are an error. A message has at most 1,024 bytes.
//!
//! | kind | message | body |
//! |---|---|---|
//! | 1 | [`Login`](ClientMessage::Login) | player: varint (64 bits); credential: all bytes that follow, at most 512 |
//! | 2 | [`Logout`](ClientMessage::Logout) | – |
//! | 3 | [`Move`](ClientMessage::Move) | position where the own object now wants to be; heading: 1 byte |
//! | 4 | [`Face`](ClientMessage::Face) | heading: 1 byte |
//! | 5 | [`Resume`](ClientMessage::Resume) | player: varint (64 bits); token: 16 bytes; 1 byte: 0 nothing is here any more, 1 the bytes that came on the reliable channel (varint) follow |
//! | 6 | [`Ready`](ClientMessage::Ready) | scene: varint |
//! | 7 | [`Ping`](ClientMessage::Ping) | number: varint |
//! | 8 | [`Input`](ClientMessage::Input) | its number, the client's tick: 2 bytes each; heading: 1 byte; buttons: varint; motion: 1 byte, 0 stands, 1 a position follows, 2 a direction (1 byte) follows |
//! | 9 | [`MoveTo`](ClientMessage::MoveTo) | position |
//! | 10 | [`Stop`](ClientMessage::Stop) | – |
//! | 11 | [`ViewCap`](ClientMessage::ViewCap) | players: varint (16 bits) |
//! | 12 | [`Interact`](ClientMessage::Interact) | id, generation: varints; verb: varint (16 bits) |
//! | 13 | [`QueueFor`](ClientMessage::QueueFor) | mode: varint (16 bits) |
//! | 14 | [`CancelQueue`](ClientMessage::CancelQueue) | – |
//! | 15 | [`AnswerMatch`](ClientMessage::AnswerMatch) | 1 byte: 1 accepts, 0 does not |
//! | 16 | [`Chat`](ClientMessage::Chat) | scope: 1 byte, 0 who sees the speaker, 1 its scene, 2 its party, 3 its team; text: all bytes that follow, at most 512 of UTF-8 |
//! | 17 | [`Custom`](ClientMessage::Custom) | kind: varint (16 bits); all bytes that follow, as the game defines them |
//!
//! Every message is an *input* and has a number: the first that comes from a connection is 1, whatever it says, and each that
//! comes after it is the next, modulo 65,536. Those count too that do not decode, come before the login or are refused because
//! too much waits; a message that is lost on its way counts not. Packets name the last input that was handled or refused
//! with all before it: 0 before the first, and one that has to wait is not named before the tick that handles it.
//!
//! An [`Input`](ClientMessage::Input) has a number of its own, and from the first that is handled on packets name those instead: the
//! newest that was handled. It must be newer than that, by at most 32,767 (modulo 65,536); what is as old or older came twice,
//! late or out of order, and is refused. From then on, too, a client is told its *OwnPosition* in every tick in which an input was
//! handled or its object was moved, on the unreliable channel, and once more reliably when that ends; before, it was told with the
//! *Snapshot* of its object, and the input of that packet means nothing for it. A motion in a
//! direction is one step: the speed of the object × the tick in seconds, which is 1,000 / the rate in *Hello* as `f32`. The client
//! walks it at once, and again from *OwnPosition* on as many as that does not name: [`Predictor`](crate::predictor::Predictor).
//!
//! # Packets from the server
//! What a client is told comes in packets of two channels. *Reliable*: every packet arrives, once and in order; the transport
//! sees to that. *Unreliable*: a packet may get lost, come twice or late, and what is newest wins. A packet belongs to one
//! channel; it has a header of 8 bytes, then whole messages until its end, without lengths between them: every message says
//! itself where it ends. A packet is no longer than the limit in *Hello* (1,200 bytes unless the server is set otherwise, 500
//! to 65,507), its header included.
//!
//! | bytes | header |
//! |---|---|
//! | 0 | flags. Bit 0: the channel, 0 reliable, 1 unreliable. All other bits are 0; a packet that has one of them set is an error and is not read further |
//! | 1 | epoch: counts what begins with a *Scene* for this client, scene changes and resumes, modulo 256. The first is 1 |
//! | 2–3 | sequence: counts the packets of this client and channel from 0 on, modulo 65,536; *a* is newer than *b* when (a − b) modulo 65,536 is 1 to 32,767 |
//! | 4–5 | server tick modulo 65,536; the whole tick is the number nearest to the last one known that ends in these bits |
//! | 6–7 | number of the client's last input that the server handled or refused, modulo 65,536 |
//!
//! Two kinds of messages belong to the packets themselves; the channel is the reliable one:
//!
//! | kind | message | body |
//! |---|---|---|
//! | 7 | [`Hello`] | the first message that a client gets: version: varint, now 3; client's number: varint; ticks in 1,000 seconds: varint (20,000 at 20 Hz); server tick: varint (64 bits), whole; longest packet in bytes: varint. Of another version nothing but the version is read |
//! | 8 | *Part* | number of the long message: 2 bytes; its length: varint, at most 1,048,576; offset of this part in it: varint; bytes of it until the end of the packet, at least one |
//!
//! A message that does not fit into one packet is cut into *Parts*. A Part is alone in its packet; those of one message are
//! consecutive packets of the reliable channel with offsets that join without a gap, all with the same number and length. Their
//! bytes, put together, are read like the messages of a packet, but hold no Part. The number counts the cut messages of a
//! client, modulo 65,536. Anything else on that channel before the message is whole is an error, except in another epoch: then
//! the old parts are forgotten. An unreliable message is never cut.
//!
//! # Server to client
//! | kind | message | body |
//! |---|---|---|
//! | 1 | *Scene* | scene: varint; width, height: varints, in 1/64 m; the client forgets all objects, Remotes too |
//! | 2 | *Own* | id, generation: varints; the object that this client controls |
//! | 3 | *Despawn* | id, generation: varints; of the client's own object: see below |
//! | 4 | *Snapshot* | id, generation, kind: varints; motion; number of attributes: varint; that many attributes |
//! | 5 | *Delta* | id, generation: varints; number of attributes: varint; that many attributes |
//! | 6 | *Motion* | id, generation: varints; motion |
//! | 9 | *Announce* | id, generation of the object of the client's own scene that it is about: varints, 0 and 0 for none; length: varint, at most 1,048,512 ([`ANNOUNCE_BYTES_MAX`]); that many bytes, as the game defines them. May come on either channel |
//! | 10 | *Remote* | scene, id, generation, kind: varints; number of attributes: varint; that many attributes. All that is told of an object that this client need not see; what was told of it by earlier ones is forgotten. Id 0 is the scene itself, of generation and kind 0 |
//! | 11 | *RemoteDelta* | scene, id, generation: varints; number of attributes: varint; that many attributes |
//! | 12 | *Forget* | scene, id, generation: varints; nothing more is told of a Remote |
//! | 13 | *Queued* | place: varint; 1 is next |
//! | 14 | *Welcome* | player: varint (64 bits); token for *Resume*: 16 bytes |
//! | 15 | *Loading* | scene: varint; width, height: varints, in 1/64 m; what is in it is told after *Ready* |
//! | 16 | *Closed* | reason: 1 byte, 1 ended, 2 replaced by a login elsewhere, 3 behind, 4 the server stops, 5 kicked, 6 banned, 7 idle, 8 flooding, 9 could not say who it is, 10 late, 11 full, 12 resumed elsewhere, 13 what is kept of the player cannot be had; nothing follows |
//! | 17 | *Pong* | number: varint; server tick: varint (64 bits), whole |
//! | 18 | *NotResumed* | –; no session has the token of the last *Resume*, or it cannot be had now |
//! | 19 | *Continued* | 1 byte: 1 the client goes on with what it knew, 0 it forgets that: see below |
//! | 20 | *TimeRate* | percent: 1 byte, 1 to 100; what lies beyond counts as the nearest. From the packet's tick on, as many ticks pass in a real second as *Hello* says times this, and as many inputs are to be said. 100 after *Hello* until one comes |
//! | 21 | *OwnPosition* | x, y: 4 bytes each, `f32` of IEEE 754, in metres; they are finite. Where the client's own object stood at the end of the packet's tick, exactly, with every input handled up to the one that the packet's header names. May come on either channel; the newest tick counts |
//!
//! Kinds 13 to 20 are about the session. They come on the reliable channel, in packets of whatever epoch, and change nothing of
//! what is known of a scene.
//!
//! A *Despawn* of the client's own object says that the client controls nothing any more: the object is gone, its scene closed,
//! or control of it was taken away. The client then forgets all objects and Remotes and is in no scene; the packet has the
//! epoch that it was in. Nothing follows on either channel until the next *Scene*, which has the next epoch.
//!
//! # Coming back
//! A client whose connection is lost connects anew and sends *Resume* first, and nothing else before the *Welcome* that answers
//! it, or *NotResumed*. It says how many bytes of messages it took on the reliable channel of the connection whose Welcome told the
//! token: those of the packet with that Welcome and of all later ones, without headers of packets and heads of Parts, of a
//! message in Parts none before it is whole, modulo 2³². Behind the Welcome stands a *Continued*, and the epoch is the next.
//! Then comes what it missed of that channel, in its order and each message once: either all of it, on top of what the
//! client knows; or a *Scene* and what follows it, with the *Announces* that it missed behind its own *Snapshot*, which may name
//! objects that it does not know. The server takes whichever is smaller, and the second where the client has nothing any more;
//! then what was under way when the link was lost counts as taken. Announces of a client without an object wait until it has
//! one. The token is a new one; the one before counts once more if the link is lost before the client says anything else.
//!
//! A *motion* is the server tick at which it held, modulo 256 (1 byte), flags (1 byte; bit 0: a discontinuity, do not
//! interpolate; bit 1: it moves; bit 2: it has a floor; others are an error), position, heading (1 byte, 256ths of a turn, 0 is
//! +x, 64 is +y), if it moves velocity x and y (2 bytes each, signed, in 1/256 m/s, the
//! nearest one, so up to ±128 m/s), and if it has one its floor (1 byte, else 0). The whole tick of a motion is the last one,
//! not after its packet's, that ends in these eight bits: *t* − ((*t* − motion's byte) modulo 256), where *t* is the whole tick
//! of the packet. What moves is never told with a tick that is 256 or more behind; of what rests the tick does not matter.
//! Where an object is later follows from position, velocity and the ticks since; of two motions the newer counts.
//!
//! An *attribute* is its number (varint, 16 bits), the length of its value (varint, at most 255: [`ATTRIBUTE_BYTES_MAX`]) and the
//! value, as its game defines it. There are at most 256 attributes. In a *Delta* or *RemoteDelta* a length of 256
//! ([`ATTRIBUTE_REMOVED`]), with no bytes after it, says that the object has the attribute no more: the client forgets it, if it
//! holds it at all. A *Snapshot* or *Remote* has only what there is.
//!
//! On the reliable channel, in the order of a tick: Hello, Scene, Own, its Snapshot and its OwnPosition where they begin; Despawns, Forgets,
//! Snapshots, Remotes, RemoteDeltas, Deltas, Announces, Motions at rest or after a jump. A Delta never precedes its object's
//! Snapshot, nor a RemoteDelta or Forget its Remote. An object is never both: one that comes into sight is forgotten first, one
//! that leaves it is despawned first. On the unreliable one there are Announces and
//! Motions. A Motion of an object that is not known, of another generation or older than the one held is to be ignored, and so
//! is a packet of another epoch than that of the last *Scene*.

mod client;
mod close_reason;
mod codec;
mod notice;
mod packet;
mod position;
mod replicated_attribute;
mod server;
mod value;

use throng_core::memory::MemoryUse;

pub use client::{
    CHAT_BYTES_MAX, CLIENT_MESSAGE_BYTES_MAX, CREDENTIAL_BYTES_MAX, ChatScope, ClientInput,
    ClientMessage, InputMotion, MessageClass, ResumeToken,
};
pub use close_reason::CloseReason;
pub use codec::{WireError, WireReader, write_varint};
pub use notice::SessionNotice;
pub use packet::{
    Channel, ChannelState, DecodedPacket, FRAGMENT, HELLO, Hello, MESSAGE_BYTES_MAX,
    MTU_DEFAULT_BYTES, MTU_MAX_BYTES, MTU_MIN_BYTES, PACKET_HEADER_BYTES, PacketHeader,
    PacketTotals, PacketWriter, Reassembler, expand_counter, is_newer, tick_millihertz,
    wire_tick_s,
};
pub use position::{QuantizedPosition, quantise};
pub use replicated_attribute::{ReplicatedAttribute, attribute_id};
pub use server::{
    ANNOUNCE_BYTES_MAX, ATTRIBUTE_BYTES_MAX, ATTRIBUTE_REMOVED, Attribute, Motion, ServerMessage,
    UnseenObjectId, write_announce, write_attribute, write_controlled_object, write_delta_header,
    write_despawn, write_forget_unseen, write_motion, write_own_position, write_removed_attribute,
    write_scene, write_snapshot_header, write_unseen_delta_header, write_unseen_header,
};
pub use throng_derive::ReplicatedAttribute;
pub use value::{AttributeType, AttributeValue, Encoding};

/// The version of the packets and messages, in [`Hello`].
pub const PROTOCOL_VERSION: u32 = 3;

/// The number of a connection, never reused while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, MemoryUse)]
pub struct ClientId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as the page has it: with a comma for every thousand.
    fn with_thousands_separators(number: usize) -> String {
        let digits = number.to_string();
        let mut spelt = String::new();
        for (nth, digit) in digits.chars().enumerate() {
            if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
                spelt.push(',');
            }
            spelt.push(digit);
        }
        spelt
    }

    #[test]
    fn module_docs_state_the_real_limits_and_version() {
        let page = include_str!("mod.rs");
        let page = page.split("mod client;").next().unwrap_or_default();
        for (before, number, after) in [
            ("of 8 bytes", PACKET_HEADER_BYTES, ""),
            (
                "",
                MTU_DEFAULT_BYTES,
                " bytes unless the server is set otherwise",
            ),
            ("otherwise, ", MTU_MIN_BYTES, "\n//! to "),
            ("\n//! to ", MTU_MAX_BYTES, "), its header included"),
            ("its length: varint, at most ", MESSAGE_BYTES_MAX, ";"),
            ("at most ", ANNOUNCE_BYTES_MAX, " ([`ANNOUNCE_BYTES_MAX`])"),
            (
                "at most ",
                ATTRIBUTE_BYTES_MAX as usize,
                ": [`ATTRIBUTE_BYTES_MAX`]",
            ),
            (
                "a length of ",
                ATTRIBUTE_REMOVED as usize,
                "\n//! ([`ATTRIBUTE_REMOVED`])",
            ),
            ("version: varint, now ", PROTOCOL_VERSION as usize, ";"),
        ] {
            let expected = if after.is_empty() {
                before.to_owned()
            } else {
                format!("{before}{}{after}", with_thousands_separators(number))
            };
            assert!(page.contains(&expected), "{expected:?} is not on the page");
        }
        assert_eq!(PACKET_HEADER_BYTES, 8);
    }
}
