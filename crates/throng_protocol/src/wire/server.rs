//! Messages of the server: written field by field, decoded as borrowed values.

use glam::Vec2;
use smallvec::SmallVec;

use super::codec;
use super::codec::{WireError, WireReader, write_varint};
use super::notice::SessionNotice;
use super::packet::{HELLO, Hello};
use super::position::{QuantizedPosition, quantise, read_position, rounded, write_position};

/// The longest value of an attribute, in bytes.
pub const ATTRIBUTE_BYTES_MAX: u32 = 255;

/// The length that marks a removed attribute; no value follows.
pub const ATTRIBUTE_REMOVED: u32 = 256;

/// Velocity units per metre per second.
const VELOCITY_UNITS: f32 = 256.0;

/// Position and velocity of an object at a tick. Later positions follow from them until a newer motion arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    /// The tick, modulo 256. Of two motions of an object the newer counts, in whatever order they arrive.
    pub at: u8,
    /// Position at that tick.
    pub position: QuantizedPosition,
    /// Velocity in 1/256 m/s, at most ±128 m/s per axis; zero at rest.
    pub velocity: [i16; 2],
    /// Heading, in 256ths of a turn.
    pub heading: u8,
    /// Floor, as the game counts them.
    pub floor: u8,
    /// The object did not walk here: do not interpolate.
    pub discontinuity: bool,
}

/// Bits of a motion's flags.
const DISCONTINUITY: u8 = 1;
const MOVING: u8 = 1 << 1;
const FLOOR: u8 = 1 << 2;

impl Motion {
    /// The motion nearest to these values.
    #[must_use]
    pub fn of(at: u8, position: Vec2, velocity: Vec2, heading: u8, floor: u8) -> Self {
        let velocity = velocity * VELOCITY_UNITS;
        Self {
            at,
            position: quantise(position),
            velocity: [rounded(velocity.x) as i16, rounded(velocity.y) as i16],
            heading,
            floor,
            discontinuity: false,
        }
    }

    /// Whether its velocity is zero.
    #[must_use]
    pub fn is_at_rest(self) -> bool {
        self.velocity == [0, 0]
    }

    /// Whether this velocity rounds to zero.
    #[must_use]
    pub fn rounds_to_rest(velocity: Vec2) -> bool {
        let moves = |axis: f32| (axis * VELOCITY_UNITS).abs() >= 0.5;
        !(moves(velocity.x) || moves(velocity.y))
    }

    /// Extrapolated position after a number of seconds, in metres.
    #[must_use]
    pub fn position_after(self, seconds: f32) -> Vec2 {
        let velocity = Vec2::new(f32::from(self.velocity[0]), f32::from(self.velocity[1]));
        self.position.metres() + velocity * (seconds / VELOCITY_UNITS)
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let flags = [
            (self.discontinuity, DISCONTINUITY),
            (!self.is_at_rest(), MOVING),
            (self.floor != 0, FLOOR),
        ];
        let flags = flags
            .iter()
            .filter(|(is, _)| *is)
            .fold(0, |all, (_, flag)| all | flag);
        bytes.extend([self.at, flags]);
        write_position(bytes, self.position);
        bytes.push(self.heading);
        if flags & MOVING != 0 {
            let [x, y] = self.velocity.map(i16::to_le_bytes);
            bytes.extend([x[0], x[1], y[0], y[1]]);
        }
        if flags & FLOOR != 0 {
            bytes.push(self.floor);
        }
    }

    fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        let at = reader.byte()?;
        let place = reader.at();
        let flags = reader.byte()?;
        if flags > DISCONTINUITY | MOVING | FLOOR {
            return Err(WireError::UnknownKind {
                at: place,
                found: flags,
            });
        }
        let position = read_position(reader)?;
        let heading = reader.byte()?;
        let mut velocity = [0; 2];
        if flags & MOVING != 0 {
            for axis in &mut velocity {
                *axis = i16::from_le_bytes(reader.array()?);
            }
        }
        let floor = if flags & FLOOR == 0 {
            0
        } else {
            reader.byte()?
        };
        Ok(Self {
            at,
            position,
            velocity,
            heading,
            floor,
            discontinuity: flags & DISCONTINUITY != 0,
        })
    }
}

/// An attribute of an object: its registered number and its encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The number that the attribute was registered with.
    pub id: u16,
    /// The encoded value, at most [`ATTRIBUTE_BYTES_MAX`] bytes; `None` if a *Delta* or *UnseenDelta* removes the attribute.
    pub value: Option<&'a [u8]>,
}

/// An object of any scene, as in messages about unseen objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnseenObjectId {
    /// Scene id.
    pub scene: u32,
    /// Object id in that scene; 0 is the scene itself.
    pub id: u32,
    /// Generation: how often that id was assigned before in the scene.
    pub generation: u32,
}

impl UnseenObjectId {
    fn read(reader: &mut WireReader) -> Result<Self, WireError> {
        Ok(Self {
            scene: reader.varint_u32()?,
            id: reader.varint_u32()?,
            generation: reader.varint_u32()?,
        })
    }
}

/// A message of the server, borrowed from its packet.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerMessage<'a> {
    /// The first message to a client.
    Hello(Hello),
    /// A message about the session.
    Notice(SessionNotice),
    /// The client is in this scene from now on.
    Scene {
        /// Scene id.
        scene: u32,
        /// Width and height, in 1/64 m.
        size: QuantizedPosition,
    },
    /// The client controls this object.
    ControlledObject {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
    },
    /// The client loses the object: it left the view, or was destroyed. Objects that the server marks to be kept stay when they leave the
    /// view, with further Deltas and Motions.
    Despawn {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
    },
    /// The object entered the view, with everything that this client may know of it.
    Snapshot {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// Number of its kind.
        kind: u16,
        /// Its motion.
        motion: Motion,
        /// Those of its attributes that this client may know.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// Attributes of an object in view changed.
    Delta {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// The changed attributes.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// The attributes of an object that the client need not see: a member of its party, an object that all in the scene know, or the scene
    /// itself as object 0. Replaces what the client knew of it.
    UnseenObject {
        /// The object, in any scene.
        of: UnseenObjectId,
        /// Number of its kind; 0 for a scene.
        kind: u16,
        /// Those of its attributes that this client receives.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// Attributes of an unseen object changed.
    UnseenDelta {
        /// The object, in any scene.
        of: UnseenObjectId,
        /// The changed attributes.
        attributes: SmallVec<[Attribute<'a>; 8]>,
    },
    /// The client receives nothing more about the unseen object; it may be in view from now on.
    ForgetUnseen {
        /// The object, in any scene.
        of: UnseenObjectId,
    },
    /// A one-time event.
    Announce {
        /// The object that it is about: id and generation.
        about: Option<(u32, u32)>,
        /// Its content, as the game defines it.
        bytes: &'a [u8],
    },
    /// The motion of an object changed.
    Motion {
        /// Object id in the client's scene.
        id: u32,
        /// Generation: how often that id was assigned before.
        generation: u32,
        /// Its new motion.
        motion: Motion,
    },
    /// Position of the controlled object at the end of the tick, after the input that the packet names.
    OwnPosition {
        /// The exact position on the server, in metres.
        position: Vec2,
    },
    /// Speed of the controlled object from the packet's tick on.
    OwnSpeed {
        /// In metres per second: finite, 0 or more.
        speed_m_s: f32,
    },
}

const SCENE: u8 = 1;
const CONTROLLED_OBJECT: u8 = 2;
const DESPAWN: u8 = 3;
const SNAPSHOT: u8 = 4;
const DELTA: u8 = 5;
const MOTION: u8 = 6;
const ANNOUNCE: u8 = 9;
const UNSEEN_OBJECT: u8 = 10;
const UNSEEN_DELTA: u8 = 11;
const FORGET_UNSEEN: u8 = 12;
const OWN_POSITION: u8 = 21;
const OWN_SPEED: u8 = 22;

/// The longest text of an *Announce*, in bytes: with its header it is within [`MESSAGE_BYTES_MAX`](super::MESSAGE_BYTES_MAX).
pub const ANNOUNCE_BYTES_MAX: usize = (1 << 20) - 64;

impl<'a> ServerMessage<'a> {
    /// Whether messages of this kind are an *Announce*.
    #[must_use]
    pub const fn is_announce(kind: u8) -> bool {
        kind == ANNOUNCE
    }

    /// Decodes the next message of a packet.
    ///
    /// # Errors
    /// [`WireError`] with the offset of the first invalid byte. Allocates no more than the bytes allow.
    pub fn read(reader: &mut WireReader<'a>) -> Result<Self, WireError> {
        let at = reader.at();
        Ok(match reader.byte()? {
            HELLO => Self::Hello(Hello::read(reader)?),
            SCENE => Self::Scene {
                scene: reader.varint_u32()?,
                size: read_position(reader)?,
            },
            CONTROLLED_OBJECT => Self::ControlledObject {
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
                attributes: read_attributes(reader, AttributeListKind::Full)?,
            },
            DELTA => Self::Delta {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                attributes: read_attributes(reader, AttributeListKind::Delta)?,
            },
            UNSEEN_OBJECT => Self::UnseenObject {
                of: UnseenObjectId::read(reader)?,
                kind: read_u16(reader)?,
                attributes: read_attributes(reader, AttributeListKind::Full)?,
            },
            UNSEEN_DELTA => Self::UnseenDelta {
                of: UnseenObjectId::read(reader)?,
                attributes: read_attributes(reader, AttributeListKind::Delta)?,
            },
            FORGET_UNSEEN => Self::ForgetUnseen {
                of: UnseenObjectId::read(reader)?,
            },
            ANNOUNCE => {
                let (id, generation) = (reader.varint_u32()?, reader.varint_u32()?);
                let at = reader.at();
                let found = reader.varint_u32()?;
                if found as usize > ANNOUNCE_BYTES_MAX {
                    let max = ANNOUNCE_BYTES_MAX as u32;
                    return Err(WireError::TooLong { at, found, max });
                }
                Self::Announce {
                    about: (id != 0).then_some((id, generation)),
                    bytes: reader.bytes(found as usize)?,
                }
            }
            MOTION => Self::Motion {
                id: reader.varint_u32()?,
                generation: reader.varint_u32()?,
                motion: Motion::read(reader)?,
            },
            OWN_POSITION => Self::OwnPosition {
                position: Vec2::new(read_f32(reader)?, read_f32(reader)?),
            },
            OWN_SPEED => Self::OwnSpeed {
                speed_m_s: read_f32(reader)?.max(0.0),
            },
            kind if SessionNotice::is_notice(kind) => {
                Self::Notice(SessionNotice::read(kind, reader)?)
            }
            found => return Err(WireError::UnknownKind { at, found }),
        })
    }
}

/// Appends a *Scene*.
pub fn write_scene(bytes: &mut Vec<u8>, scene: u32, size_m: Vec2) {
    bytes.push(SCENE);
    write_varint(bytes, u64::from(scene));
    write_position(bytes, quantise(size_m));
}

/// Appends a *ControlledObject*.
pub fn write_controlled_object(bytes: &mut Vec<u8>, id: u32, generation: u32) {
    write_object_header(bytes, CONTROLLED_OBJECT, id, generation);
}

/// Appends a *Despawn*.
pub fn write_despawn(bytes: &mut Vec<u8>, id: u32, generation: u32) {
    write_object_header(bytes, DESPAWN, id, generation);
}

/// Appends an *Announce*. The caller has to limit the text to [`ANNOUNCE_BYTES_MAX`].
pub fn write_announce(bytes: &mut Vec<u8>, from: Option<(u32, u32)>, text: &[u8]) {
    debug_assert!(text.len() <= ANNOUNCE_BYTES_MAX);
    // No object has the id 0.
    let (id, generation) = from.unwrap_or((0, 0));
    write_object_header(bytes, ANNOUNCE, id, generation);
    write_varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

/// Appends a *Motion*.
pub fn write_motion(bytes: &mut Vec<u8>, id: u32, generation: u32, motion: Motion) {
    write_object_header(bytes, MOTION, id, generation);
    motion.write(bytes);
}

/// Appends an *OwnPosition*.
pub fn write_own_position(bytes: &mut Vec<u8>, position: Vec2) {
    bytes.push(OWN_POSITION);
    for metres in position.to_array() {
        bytes.extend(metres.to_le_bytes());
    }
}

/// Appends an *OwnSpeed*, in metres per second.
pub fn write_own_speed(bytes: &mut Vec<u8>, speed_m_s: f32) {
    bytes.push(OWN_SPEED);
    bytes.extend(speed_m_s.to_le_bytes());
}

/// Appends a *Snapshot* up to the number of its attributes; the caller appends these.
pub fn write_snapshot_header(
    bytes: &mut Vec<u8>,
    id: u32,
    generation: u32,
    kind: u16,
    motion: Motion,
    count: u16,
) {
    write_object_header(bytes, SNAPSHOT, id, generation);
    write_varint(bytes, u64::from(kind));
    motion.write(bytes);
    write_varint(bytes, u64::from(count));
}

/// Appends a *Delta* up to the number of its attributes; the caller appends these.
pub fn write_delta_header(bytes: &mut Vec<u8>, id: u32, generation: u32, count: u16) {
    write_object_header(bytes, DELTA, id, generation);
    write_varint(bytes, u64::from(count));
}

/// Appends an *UnseenObject* up to the number of its attributes; the caller appends these.
pub fn write_unseen_header(bytes: &mut Vec<u8>, of: UnseenObjectId, kind: u16, count: u16) {
    write_unseen_id(bytes, UNSEEN_OBJECT, of);
    write_varint(bytes, u64::from(kind));
    write_varint(bytes, u64::from(count));
}

/// Appends an *UnseenDelta* up to the number of its attributes; the caller appends these.
pub fn write_unseen_delta_header(bytes: &mut Vec<u8>, of: UnseenObjectId, count: u16) {
    write_unseen_id(bytes, UNSEEN_DELTA, of);
    write_varint(bytes, u64::from(count));
}

/// Appends a *ForgetUnseen*.
pub fn write_forget_unseen(bytes: &mut Vec<u8>, of: UnseenObjectId) {
    write_unseen_id(bytes, FORGET_UNSEEN, of);
}

/// Appends an attribute. The caller has to limit the value to [`ATTRIBUTE_BYTES_MAX`].
pub fn write_attribute(bytes: &mut Vec<u8>, id: u16, value: &[u8]) {
    debug_assert!(value.len() <= ATTRIBUTE_BYTES_MAX as usize);
    write_varint(bytes, u64::from(id));
    write_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Appends the removal of an attribute, for *Delta* and *UnseenDelta*.
pub fn write_removed_attribute(bytes: &mut Vec<u8>, id: u16) {
    write_varint(bytes, u64::from(id));
    write_varint(bytes, u64::from(ATTRIBUTE_REMOVED));
}

fn write_object_header(bytes: &mut Vec<u8>, kind: u8, id: u32, generation: u32) {
    bytes.push(kind);
    write_varint(bytes, u64::from(id));
    write_varint(bytes, u64::from(generation));
}

fn write_unseen_id(bytes: &mut Vec<u8>, kind: u8, of: UnseenObjectId) {
    bytes.push(kind);
    for number in [of.scene, of.id, of.generation] {
        write_varint(bytes, u64::from(number));
    }
}

/// The kind of a list of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttributeListKind {
    /// All attributes of the object.
    Full,
    /// Changes, which may include removed attributes.
    Delta,
}

fn read_attributes<'a>(
    reader: &mut WireReader<'a>,
    kind: AttributeListKind,
) -> Result<SmallVec<[Attribute<'a>; 8]>, WireError> {
    let count = read_u16(reader)?;
    let mut attributes = SmallVec::new();
    (0..count).try_for_each(|_| read_attribute(reader, kind).map(|it| attributes.push(it)))?;
    Ok(attributes)
}

fn read_attribute<'a>(
    reader: &mut WireReader<'a>,
    kind: AttributeListKind,
) -> Result<Attribute<'a>, WireError> {
    let id = read_u16(reader)?;
    let at = reader.at();
    let found = reader.varint_u32()?;
    if found == ATTRIBUTE_REMOVED && kind == AttributeListKind::Delta {
        return Ok(Attribute { id, value: None });
    }
    if found > ATTRIBUTE_BYTES_MAX {
        return Err(WireError::TooLong {
            at,
            found,
            max: ATTRIBUTE_BYTES_MAX,
        });
    }
    Ok(Attribute {
        id,
        value: Some(reader.bytes(found as usize)?),
    })
}

fn read_f32(reader: &mut WireReader) -> Result<f32, WireError> {
    let at = reader.at();
    let number = f32::from_le_bytes(reader.array()?);
    if number.is_finite() {
        Ok(number)
    } else {
        Err(WireError::NotFinite { at })
    }
}

fn read_u16(reader: &mut WireReader) -> Result<u16, WireError> {
    let at = reader.at();
    u16::try_from(reader.varint_u32()?)
        .map_err(|_| codec::WireError::VarintOverflow { at, bits: 16 })
}

#[cfg(test)]
mod tests;
