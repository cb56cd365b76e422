//! What the server sends: a header and messages, written piece by piece, read back as borrowed values.

use glam::Vec2;
use smallvec::SmallVec;

use super::codec::{Reader, WireError, write_varint};
use super::{VERSION, codec};

/// Bytes of a packet's header.
pub const HEADER_BYTES: usize = 8;

/// The longest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: u32 = 255;

/// Position units a metre.
const UNITS_A_METRE: f32 = 64.0;

/// Velocity units a metre a second.
const VELOCITY_UNITS: f32 = 8.0;

/// A position in units of 1/64 m (1.6 cm): up to 67,108 km, more than any scene has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PositionQuantum {
    /// To the right.
    pub x: u32,
    /// Down.
    pub y: u32,
}

impl PositionQuantum {
    /// The middle of the quantum, in metres.
    #[must_use]
    pub fn metres(self) -> Vec2 {
        Vec2::new(self.x as f32, self.y as f32) / UNITS_A_METRE
    }
}

/// The quantum nearest to a position in metres; what is negative or not a number becomes 0.
#[must_use]
pub fn quantise(position: Vec2) -> PositionQuantum {
    let units = (position * UNITS_A_METRE).round();
    PositionQuantum {
        x: units.x as u32,
        y: units.y as u32,
    }
}

/// What stands before a packet's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Counts scene changes of the client.
    pub epoch: u8,
    /// Counts the client's packets.
    pub sequence: u16,
    /// The server's tick.
    pub tick: u32,
}

impl Header {
    /// Appends the header's bytes.
    pub fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend([VERSION, self.epoch]);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.tick.to_le_bytes());
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Version`].
    pub fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let bytes = reader.take(HEADER_BYTES)?;
        if bytes[0] != VERSION {
            return Err(WireError::Version {
                found: bytes[0],
                expected: VERSION,
            });
        }
        Ok(Self {
            epoch: bytes[1],
            sequence: u16::from_le_bytes([bytes[2], bytes[3]]),
            tick: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        })
    }
}

/// Where an object is and how it moves, as clients learn it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    /// Where.
    pub position: PositionQuantum,
    /// How fast, in 1/8 m/s, at most ±16 m/s on each axis.
    pub velocity: [i8; 2],
    /// Where it looks, in 256ths of a turn.
    pub heading: u8,
    /// Its storey.
    pub floor: u8,
    /// It did not walk here: do not interpolate.
    pub discontinuity: bool,
}

impl Motion {
    /// The motion nearest to these values.
    #[must_use]
    pub fn of(position: Vec2, velocity: Vec2, heading: u8, floor: u8, discontinuity: bool) -> Self {
        let velocity = (velocity * VELOCITY_UNITS).round();
        Self {
            position: quantise(position),
            velocity: [velocity.x as i8, velocity.y as i8],
            heading,
            floor,
            discontinuity,
        }
    }

    fn write(self, bytes: &mut Vec<u8>) {
        write_position(bytes, self.position);
        let [vx, vy] = self.velocity.map(|axis| axis as u8);
        bytes.extend([
            vx,
            vy,
            self.heading,
            self.floor,
            u8::from(self.discontinuity),
        ]);
    }

    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let position = read_position(reader)?;
        let rest = reader.take(5)?;
        Ok(Self {
            position,
            velocity: [rest[0] as i8, rest[1] as i8],
            heading: rest[2],
            floor: rest[3],
            discontinuity: rest[4] & 1 != 0,
        })
    }
}

/// An attribute of an object: its registered number and its value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its number.
    pub id: u16,
    /// Its value.
    pub value: &'a [u8],
}

/// A message from the server, borrowed from its packet.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerMessage<'a> {
    /// The client is in this scene from now on.
    Scene {
        /// The scene's number.
        scene: u32,
        /// Width and height, in 1/64 m.
        size: PositionQuantum,
    },
    /// The client controls this object.
    Own {
        /// Its number.
        id: u32,
        /// Its generation.
        generation: u32,
    },
    /// The object is out of sight.
    Despawn {
        /// Its number.
        id: u32,
        /// Its generation.
        generation: u32,
    },
    /// The object came into sight: all that this client may know of it.
    Snapshot {
        /// Its number.
        id: u32,
        /// Its generation.
        generation: u32,
        /// Its kind.
        kind: u16,
        /// Where it is.
        motion: Motion,
        /// Its attributes.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// Attributes changed.
    Delta {
        /// Its number.
        id: u32,
        /// Its generation.
        generation: u32,
        /// Those that changed.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// The object moved.
    Motion {
        /// Its number.
        id: u32,
        /// Its generation.
        generation: u32,
        /// Where it is now.
        motion: Motion,
    },
}

const SCENE: u8 = 1;
const OWN: u8 = 2;
const DESPAWN: u8 = 3;
const SNAPSHOT: u8 = 4;
const DELTA: u8 = 5;
const MOTION: u8 = 6;

impl<'a> ServerMessage<'a> {
    /// Reads the next message of a packet.
    ///
    /// # Errors
    /// [`WireError`] with the place of the first byte that does not fit. Allocates no more than the bytes allow.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let at = reader.at();
        Ok(match reader.byte()? {
            SCENE => Self::Scene {
                scene: reader.varint_u32()?,
                size: read_position(reader)?,
            },
            OWN => Self::Own {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
            },
            DESPAWN => Self::Despawn {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
            },
            SNAPSHOT => Self::Snapshot {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                kind: read_u16(reader)?,
                motion: Motion::read(reader)?,
                attributes: read_attributes(reader)?,
            },
            DELTA => Self::Delta {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                attributes: read_attributes(reader)?,
            },
            MOTION => Self::Motion {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                motion: Motion::read(reader)?,
            },
            found => return Err(WireError::Kind { at, found }),
        })
    }
}

/// Appends a *Scene*.
pub fn write_scene(bytes: &mut Vec<u8>, scene: u32, size_m: Vec2) {
    bytes.push(SCENE);
    write_varint(bytes, u64::from(scene));
    write_position(bytes, quantise(size_m));
}

/// Appends an *Own*.
pub fn write_own(bytes: &mut Vec<u8>, id: u32, generation: u32) {
    write_named(bytes, OWN, id, generation);
}

/// Appends a *Despawn*.
pub fn write_despawn(bytes: &mut Vec<u8>, id: u32, generation: u32) {
    write_named(bytes, DESPAWN, id, generation);
}

/// Appends a *Motion*.
pub fn write_motion(bytes: &mut Vec<u8>, id: u32, generation: u32, motion: Motion) {
    write_named(bytes, MOTION, id, generation);
    motion.write(bytes);
}

/// Appends a *Snapshot* up to the number of its attributes, which the caller writes after it.
pub fn write_snapshot_head(
    bytes: &mut Vec<u8>,
    id: u32,
    generation: u32,
    kind: u16,
    motion: Motion,
    count: u8,
) {
    write_named(bytes, SNAPSHOT, id, generation);
    write_varint(bytes, u64::from(kind));
    motion.write(bytes);
    bytes.push(count);
}

/// Appends a *Delta* up to the number of its attributes, which the caller writes after it.
pub fn write_delta_head(bytes: &mut Vec<u8>, id: u32, generation: u32, count: u8) {
    write_named(bytes, DELTA, id, generation);
    bytes.push(count);
}

/// Appends an attribute. A value longer than [`ATTRIBUTE_BYTES_MAX`] is a bug of the caller.
pub fn write_attribute(bytes: &mut Vec<u8>, id: u16, value: &[u8]) {
    debug_assert!(value.len() <= ATTRIBUTE_BYTES_MAX as usize);
    write_varint(bytes, u64::from(id));
    write_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn write_named(bytes: &mut Vec<u8>, kind: u8, id: u32, generation: u32) {
    bytes.push(kind);
    write_varint(bytes, u64::from(id));
    write_varint(bytes, u64::from(generation));
}

fn read_attributes<'a>(reader: &mut Reader<'a>) -> Result<SmallVec<[Attribute<'a>; 8]>, WireError> {
    let count = reader.byte()?;
    (0..count).map(|_| read_attribute(reader)).collect()
}

fn read_attribute<'a>(reader: &mut Reader<'a>) -> Result<Attribute<'a>, WireError> {
    let id = read_u16(reader)?;
    let at = reader.at();
    let found = reader.varint_u32()?;
    if found > ATTRIBUTE_BYTES_MAX {
        return Err(WireError::TooLong {
            at,
            found,
            max: ATTRIBUTE_BYTES_MAX,
        });
    }
    Ok(Attribute {
        id,
        value: reader.take(found as usize)?,
    })
}

fn read_u16(reader: &mut Reader) -> Result<u16, WireError> {
    let at = reader.at();
    u16::try_from(reader.varint_u32()?).map_err(|_| codec::WireError::Varint { at, bits: 16 })
}

pub(super) fn write_position(bytes: &mut Vec<u8>, position: PositionQuantum) {
    write_varint(bytes, u64::from(position.x));
    write_varint(bytes, u64::from(position.y));
}

pub(super) fn read_position(reader: &mut Reader) -> Result<PositionQuantum, WireError> {
    Ok(PositionQuantum {
        x: reader.varint_u32()?,
        y: reader.varint_u32()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn motions() -> impl Strategy<Value = Motion> {
        (
            any::<[u32; 2]>(),
            any::<[i8; 2]>(),
            any::<[u8; 2]>(),
            any::<bool>(),
        )
            .prop_map(
                |([x, y], velocity, [heading, floor], discontinuity)| Motion {
                    position: PositionQuantum { x, y },
                    velocity,
                    heading,
                    floor,
                    discontinuity,
                },
            )
    }

    type Values = Vec<(u16, Vec<u8>)>;

    fn values() -> impl Strategy<Value = Values> {
        prop::collection::vec(
            (any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)),
            0..5,
        )
    }

    fn borrowed(values: &Values) -> SmallVec<[Attribute<'_>; 8]> {
        values
            .iter()
            .map(|(id, value)| Attribute { id: *id, value })
            .collect()
    }

    proptest! {
        #[test]
        fn every_message_reads_back(id: u32, generation: u32, kind: u16, motion in motions(), values in values()) {
            let mut bytes = Vec::new();
            let header = Header { epoch: 3, sequence: kind, tick: id };
            header.write(&mut bytes);
            prop_assert_eq!(bytes.len(), HEADER_BYTES);
            write_scene(&mut bytes, id, Vec2::new(100.0, 50.5));
            write_own(&mut bytes, id, generation);
            write_despawn(&mut bytes, id, generation);
            write_snapshot_head(&mut bytes, id, generation, kind, motion, values.len() as u8);
            values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
            write_delta_head(&mut bytes, id, generation, values.len() as u8);
            values.iter().for_each(|(id, value)| write_attribute(&mut bytes, *id, value));
            write_motion(&mut bytes, id, generation, motion);

            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Header::read(&mut reader), Ok(header));
            let mut read = Vec::new();
            while !reader.is_empty() {
                read.push(ServerMessage::read(&mut reader).unwrap());
            }
            let attributes = borrowed(&values);
            prop_assert_eq!(read, vec![
                ServerMessage::Scene { scene: id, size: PositionQuantum { x: 6400, y: 3232 } },
                ServerMessage::Own { id, generation },
                ServerMessage::Despawn { id, generation },
                ServerMessage::Snapshot { id, generation, kind, motion, attributes: attributes.clone() },
                ServerMessage::Delta { id, generation, attributes },
                ServerMessage::Motion { id, generation, motion },
            ]);
        }

        #[test]
        fn any_bytes_read_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_empty() && ServerMessage::read(&mut reader).is_ok() {}
        }
    }

    #[test]
    fn quanta_are_within_half_a_unit_and_never_negative() {
        let position = Vec2::new(123.456, 0.003);
        assert!((quantise(position).metres() - position).abs().max_element() <= 0.5 / 64.0);
        assert_eq!(
            quantise(Vec2::new(-5.0, f32::NAN)),
            PositionQuantum { x: 0, y: 0 }
        );
        assert_eq!(
            Motion::of(position, Vec2::new(99.0, -0.5), 0, 0, false).velocity,
            [127, -4]
        );
    }
}
