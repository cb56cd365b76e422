//! The encoding of messages in both directions. No game logic. This page is sufficient to write a client in another language.
//!
//! All integers are little endian. A *varint* is LEB128: seven bits per byte, lowest first, the high bit set on all bytes but the last; at
//! most 5 bytes for 32 bits and 10 for 64, and no more bits than that. Varints have 32 bits unless another size is given.
//!
//! A *position* is two varints, x then y, in units of 1/64 m from the scene's top left corner, x to the right and y down. It is the nearest
//! unit: metres × 64, rounded, halves up; negative values become 0. It denotes a point, not a square, so decoding is a division by 64, with
//! an error of at most 1/128 m per axis.
//!
//! # Client to server
//! One message per frame: a kind byte, then the body; bytes after it are an error. A message has at most 1,024 bytes.
//!
//! | kind | message | body |
//! |---|---|---|
//! | 1 | [`Login`](ClientMessage::Login) | player: varint (64 bits), 0 for the player of the connection's token; credential: all bytes that follow, at most 512 |
//! | 2 | [`Logout`](ClientMessage::Logout) | – |
//! | 3 | [`Move`](ClientMessage::Move) | target position of the controlled object; heading: 1 byte |
//! | 4 | [`Face`](ClientMessage::Face) | heading: 1 byte |
//! | 5 | [`Resume`](ClientMessage::Resume) | player: varint (64 bits); token: 16 bytes; 1 byte: 0: the client has no state any more; 1: the number of bytes received on the reliable channel (varint) follows |
//! | 6 | [`Ready`](ClientMessage::Ready) | scene: varint |
//! | 7 | [`Ping`](ClientMessage::Ping) | number: varint |
//! | 8 | [`Input`](ClientMessage::Input) | its number, the client's tick: 2 bytes each; heading: 1 byte; buttons: varint; motion: 1 byte, 0: stand, 1: a position follows, 2: a direction (1 byte) follows |
//! | 9 | [`MoveTo`](ClientMessage::MoveTo) | position |
//! | 10 | [`Stop`](ClientMessage::Stop) | – |
//! | 11 | [`ViewCap`](ClientMessage::ViewCap) | players: varint (16 bits) |
//! | 12 | [`Interact`](ClientMessage::Interact) | id, generation: varints; verb: varint (16 bits) |
//! | 13 | [`QueueFor`](ClientMessage::QueueFor) | mode: varint (16 bits) |
//! | 14 | [`CancelQueue`](ClientMessage::CancelQueue) | – |
//! | 15 | [`AnswerMatch`](ClientMessage::AnswerMatch) | 1 byte: 1 accepts, 0 does not |
//! | 16 | [`Chat`](ClientMessage::Chat) | scope: 1 byte, 0 players who see the speaker, 1 its scene, 2 its party, 3 its team; text: all bytes that follow, at most 512 of UTF-8 |
//! | 17 | [`Custom`](ClientMessage::Custom) | kind: varint (16 bits); all bytes that follow, as the game defines them |
//!
//! Every message is an *input* and has a number: the first message of a connection is 1, whatever its kind, and each later one is the next
//! number, modulo 65,536. Messages that cannot be decoded, arrive before the login or are refused because the queue is full count as well;
//! messages lost on their way do not. Every packet names the newest input up to which all inputs were handled or refused: 0 before the
//! first, and in the packet with *Closed*. An input that has to wait is not named before the tick that handles it.
//!
//! An [`Input`](ClientMessage::Input) has its own number. From the first one that is handled on, packets name these numbers instead: the
//! newest that was handled. An input must be newer than that, by at most 32,767 (modulo 65,536); an equal or older one is a duplicate,
//! delayed or out of order, and is refused. From then on, the client also receives its *OwnPosition* in every tick in which an input was
//! handled or its object was moved, on the unreliable channel, and once more reliably when that ends. Before, it receives it together with
//! the *Snapshot* of its object, and the input of that packet has no meaning for it. A motion in a direction is one step: the speed of the
//! object (*OwnSpeed*) × the tick in seconds, which is 1,000 / the rate in *Hello* as `f32`. The client applies it at once, and applies the inputs that
//! an *OwnPosition* does not name again from that position. When an *OwnSpeed* arrives, it applies all inputs that no *OwnPosition* named yet
//! again, at the new speed: [`Predictor`](crate::predictor::Predictor).
//!
//! # Packets from the server
//! The server sends packets on two channels. *Reliable*: every packet arrives, once and in order; the transport ensures that. *Unreliable*:
//! a packet may be lost, duplicated or delayed, and the newest data counts. A packet belongs to one channel. It has a header of 8 bytes,
//! then whole messages until its end, without lengths between them: the end of a message follows from its content.
//! A packet is no longer than the limit in *Hello* (1,200 bytes unless the server is set otherwise, 500
//! to 65,507), its header included.
//!
//! | bytes | header |
//! |---|---|
//! | 0 | flags. Bit 0: the channel, 0 reliable, 1 unreliable. All other bits are 0; a packet that has one of them set is an error and is not read further |
//! | 1 | epoch, modulo 256: 0 until the first *Scene*, which has 1; one more for each later *Scene* and each resume. Scene changes while the client was away count, too |
//! | 2–3 | sequence: counts the packets of this client and channel from 0 on, modulo 65,536; *a* is newer than *b* when (a − b) modulo 65,536 is 1 to 32,767 |
//! | 4–5 | server tick modulo 65,536; the whole tick is the number nearest to the last one known that ends in these bits |
//! | 6–7 | number of the client's last input that the server handled or refused, modulo 65,536 |
//!
//! Two kinds of messages belong to the packets themselves, on the reliable channel:
//!
//! | kind | message | body |
//! |---|---|---|
//! | 7 | [`Hello`] | the first message to a client, and the first one after another server process has taken the client over: version: varint, now 4; client's id: varint; ticks in 1,000 seconds: varint (20,000 at 20 Hz); server tick: varint (64 bits), full; longest packet in bytes: varint. If the version differs, read no further |
//! | 8 | *Fragment* | number of the long message: 2 bytes; its length: varint, at most 1,048,576; offset of this fragment in it: varint; bytes of it until the end of the packet, at least one |
//!
//! A message that does not fit into one packet is split into *Fragments*. A Fragment is alone in its packet. Those of one message are
//! consecutive packets of the reliable channel, with offsets without gaps, all with the same number and length. Their bytes together are
//! read like the messages of a packet, but contain no Fragment. The number counts the split messages of a client from 0 on, modulo 65,536. Any other
//! message on that channel before the message is complete is an error, except in another epoch: then the old fragments are dropped. An
//! unreliable message is never split.
//!
//! A new connection has a new client id, and starts again with the numbers of packets, split messages and inputs.
//!
//! # Server to client
//! | kind | message | body |
//! |---|---|---|
//! | 1 | *Scene* | scene: varint; width, height: varints, in 1/64 m; the client forgets all objects, including UnseenObjects |
//! | 2 | *ControlledObject* | id, generation: varints; the object that this client controls |
//! | 3 | *Despawn* | id, generation: varints; for the controlled object: see below |
//! | 4 | *Snapshot* | id, generation, kind: varints; motion; number of attributes: varint; that many attributes. It may be sent many ticks after the object entered the view: the number per tick and the bytes are limited |
//! | 5 | *Delta* | id, generation: varints; number of attributes: varint; that many attributes |
//! | 6 | *Motion* | id, generation: varints; motion |
//! | 9 | *Announce* | id, generation of the object of the client's own scene that it is about: varints, 0 and 0 for none; length: varint, at most 1,048,512 ([`ANNOUNCE_BYTES_MAX`]); that many bytes, as the game defines them. On either channel. The client may not know the object: announcements to all clients near a position reach clients that do not see it |
//! | 10 | *UnseenObject* | scene, id, generation, kind: varints; number of attributes: varint; that many attributes. All attributes of an object that this client need not see; replaces earlier ones. Id 0 is the scene itself, of generation and kind 0 |
//! | 11 | *UnseenDelta* | scene, id, generation: varints; number of attributes: varint; that many attributes |
//! | 12 | *ForgetUnseen* | scene, id, generation: varints; nothing more follows about an UnseenObject |
//! | 13 | *Queued* | queue position: varint; 1 is next |
//! | 14 | *Welcome* | player: varint (64 bits); token for *Resume*: 16 bytes |
//! | 15 | *Loading* | scene: varint; width, height: varints, in 1/64 m; its contents follow after *Ready* |
//! | 16 | *Closed* | reason: 1 byte, 1 ended, 2 replaced by a login elsewhere, 3 slow consumer, 4 the server stops, 5 kicked, 6 banned, 7 idle, 8 flooding, 9 identity not proven, 10 timed out, 11 full, 12 resumed elsewhere, 13 the player's record is not available. After reason 9 the cause: 1 byte, 0 the game's login rule does not accept the player, 1 the connection proves no identity, 2 the login names another player than the token; the token's player and the login's follow then (varints, 64 bits). No message follows |
//! | 17 | *Pong* | number: varint; server tick: varint (64 bits), whole |
//! | 18 | *ResumeRefused* | –; no session has the token of the last *Resume*, or its player is not available now |
//! | 19 | *Resumed* | 1 byte: 1 the client keeps its state, 0 it discards it: see below |
//! | 20 | *TimeRate* | percent: 1 byte, 1 to 100; other values count as the nearest. From the packet's tick on, the number of ticks per real second is that of *Hello* times this, and so is the number of inputs to send. 100 after *Hello* until one arrives |
//! | 21 | *OwnPosition* | x, y: 4 bytes each, `f32` of IEEE 754, in metres, finite. The exact position of the controlled object at the end of the packet's tick, with every input handled up to the one in the packet's header. On either channel; the newest tick counts |
//! | 22 | *OwnSpeed* | speed: 4 bytes, `f32` of IEEE 754, in m/s, finite, 0 or more. The speed of the controlled object from the packet's tick on: at the start of a scene, after the OwnPosition, and in each tick in which it changed. 0 before the first |
//!
//! Kinds 13 to 20 are about the session. They arrive on the reliable channel, in packets of any epoch, and do not change what the client
//! knows of a scene, except *Resumed*.
//!
//! A *Despawn* of the controlled object means that the client controls nothing any more: the object is gone, its scene was closed, or
//! control was taken away. The client then forgets all objects and UnseenObjects and is in no scene; the packet has the epoch that it was
//! in. Nothing but kinds 13 to 20 follows on either channel until the next *Scene*, which has the next epoch.
//!
//! # Resuming a session
//! A client whose connection is lost connects again and sends *Resume* first. It sends nothing else before the reply, *Welcome* or
//! *ResumeRefused*. *Resume* contains the number of bytes of messages that it received on the reliable channel of the connection whose
//! Welcome had the token: those of the packet with that Welcome and of all later ones, without packet headers and Fragment headers, and
//! without incomplete fragmented messages, modulo 2³². A fragmented message counts when its last fragment has arrived.
//!
//! The reply is a *Resumed* and then a *Welcome*, in the same packet after the Hello. The packet's epoch is greater than the last one known, by
//! more than one if scenes changed meanwhile. Then follow the messages of that channel that the client missed, in order and each once. With
//! *Resumed* 1 these are all of them, on top of what the client knows, and have the new epoch. With *Resumed* 0 the client discards its state
//! and receives a *Scene* and what follows it, with the *Announces* that it missed after its own *Snapshot*; they may name objects that it
//! does not know. The server chooses whichever is smaller, and the second if the client has no state any more; then messages in flight when the connection
//! was lost count as received. Announces for a client without an object wait until it has one. The token is a new one; the previous one is
//! valid once more if the connection is lost before the client sends another message.
//!
//! # Another server process takes the client over
//! A *Hello* that is not the first one on its connection means that another server process serves the client from now on, for example because
//! its player was handed to another node of a cluster. The connection and its counters continue: the numbers of packets, split messages and
//! inputs, and the epoch, which is greater than the last one known. Client id, ticks, their length, objects and scenes are those of the new
//! process; its tick may be lower. Time runs at full speed until a *TimeRate* arrives. The client discards what it knows of the server's
//! clock, and ignores *Pongs* for earlier *Pings*. *Resumed* 0 and a *Welcome* with a new token follow in the same packet, in this order, and the
//! client sends neither *Login* nor *Resume*. Late unreliable packets of the former process have an older epoch. If the client was not
//! logged in yet, there is no *Resumed*, and the reply to its *Login* or *Resume* comes from the new process. Messages that the client
//! sends meanwhile are handled by the new process; of those sent shortly before, some may be lost, but none is handled twice.
//!
//! # Motions and attributes
//! A *motion* is the server tick at which it was valid, modulo 256 (1 byte), flags (1 byte; bit 0: a discontinuity, do not
//! interpolate; bit 1: it moves; bit 2: it has a floor; others are an error), position, heading (1 byte, 256ths of a turn, 0 is
//! +x, 64 is +y), if it moves velocity x and y (2 bytes each, signed, in 1/256 m/s, the
//! nearest one, so up to ±128 m/s), and if it has one its floor (1 byte, else 0). The full tick of a motion is the last one,
//! not after its packet's, that ends in these eight bits: *t* − ((*t* − motion's byte) modulo 256), where *t* is the full tick
//! of the packet. The tick of a moving object is never 256 or more ticks old. The tick of an object at rest may be older, and then comes out
//! too late by a multiple of 256; that changes nothing, because the object rests, and the next motion is newer all the same.
//! Where an object is later follows from position, velocity and the ticks since; of two motions the newer counts.
//!
//! An *attribute* is its number (varint, 16 bits), the length of its value (varint, at most 255: [`ATTRIBUTE_BYTES_MAX`]) and the value, as
//! its game defines it.
//! There are at most 256 attributes, each at most once in a message, in any order. In a *Delta* or *UnseenDelta* a length of 256
//! ([`ATTRIBUTE_REMOVED`]), with no bytes after it, means that the object does not have the attribute any more: the client removes it, if it
//! has it at all. A *Snapshot* or *UnseenObject* contains only existing attributes. A *Delta* or *UnseenDelta* has at least one attribute, and
//! never repeats a value of its object's *Snapshot* or *UnseenObject* of the same tick. Varints are as short as possible, and a motion with
//! bit 1 has a velocity other than 0, 0; decoders need not check either.
//!
//! The game assigns the numbers of kinds, attributes, verbs and messages. Those of scenarios are printed by `throng scenario attributes`, and
//! are, with the kinds, on the page of `throng_scenario::crowd`.
//!
//! Order of the messages of a tick on the reliable channel: Hello; the messages of kinds 13 to 20, in the order in which they were caused
//! (*Pong* and *Closed* usually alone); the messages missed before a resume with *Resumed* 1; at the start of a scene Scene,
//! ControlledObject, its Snapshot, OwnPosition and OwnSpeed, and the Announces missed before a resume with *Resumed* 0; Despawns,
//! ForgetUnseens, Snapshots, UnseenObjects and UnseenDeltas, Deltas, Announces, a changed OwnSpeed, the OwnPosition after the last change,
//! Motions at rest or after a jump. A Delta never precedes its object's Snapshot, nor an UnseenDelta or ForgetUnseen its UnseenObject. An
//! object is never both seen and unseen: before it enters the view a ForgetUnseen is sent, and when it leaves the view it is despawned
//! first, or stays known as if it were seen. The unreliable channel has Announces, OwnPositions and Motions. Ignore a Motion of an object that is unknown, has another
//! generation or has a newer motion already, and a packet of another epoch than that of the last *Scene*.

// | file | contents |
// | `codec` | varints and fixed-size numbers; errors with an offset |
// | `packet` | headers, packets of messages, fragments of long messages |
// | `position` | positions, in both directions |
// | `client`, `server` | the messages of either direction |
// | `notice`, `close_reason`, `login_refusal` | messages of the server about the session |
// | `value` | values of attributes, and their encodings |
// | `replicated_attribute` | attributes as types |

mod client;
mod close_reason;
mod codec;
mod login_refusal;
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
pub use login_refusal::LoginRefusal;
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
    write_despawn, write_forget_unseen, write_motion, write_own_position, write_own_speed,
    write_removed_attribute, write_scene, write_snapshot_header, write_unseen_delta_header,
    write_unseen_header,
};
pub use throng_derive::ReplicatedAttribute;
pub use value::{AttributeType, AttributeValue, Encoding};

/// The version of handshakes, packets and messages, in requests and in [`Hello`]. Client and server must have the same.
pub const PROTOCOL_VERSION: u32 = 4;

/// The id of a connection, never reused while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, MemoryUse)]
pub struct ClientId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a number as on the page, with a comma per thousand.
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
