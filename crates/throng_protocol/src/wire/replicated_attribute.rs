//! Attributes as types, so that server and client agree on number, encoding and type of the value.

use super::value::{AttributeType, Encoding};

/// An attribute with one value of a known type. Derive it: on the server `Replicate` implements it as well; a client without
/// Bevy derives it alone, with the same name, number and encoding.
///
/// ```
/// use throng_protocol::wire::{Encoding, ReplicatedAttribute};
///
/// #[derive(ReplicatedAttribute)]
/// struct Hunger(u8);
///
/// #[derive(ReplicatedAttribute)]
/// #[replicate(name = "gold", id = 2, encoding = Encoding::U32)]
/// struct Purse(u32);
///
/// assert_eq!((Purse::ID, Purse::ENCODING), (2, Encoding::U32));
/// ```
/// Then [`Mirror::get`](crate::mirror::Mirror::get) decodes what the client received: `mirror.get::<Hunger>(object)`.
pub trait ReplicatedAttribute {
    /// The type of its value.
    type Value: AttributeType;

    /// Its number in packets.
    const ID: u16;

    /// The encoding of its value in packets.
    const ENCODING: Encoding;
}

/// The number of an attribute that has only a name, 32,768 or above: the 32-bit FNV-1a hash of the name, folded to 15 bits
/// above the numbers that are given by hand. It is the same in every build.
#[must_use]
pub const fn attribute_id(name: &str) -> u16 {
    let bytes = name.as_bytes();
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    0x8000 | ((hash >> 15) ^ hash) as u16 & 0x7fff
}
