//! A client in memory: decodes what the server sends, and holds what a real client would.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use glam::Vec2;
use thiserror::Error;

use crate::wire::{Attribute, Header, Motion, Reader, ServerMessage, WireError};

/// Why a packet does not follow from those before it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MirrorError {
    /// The bytes are no packet.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A packet is missing, or came twice.
    #[error("packet {found}, expected {expected}")]
    Sequence {
        /// Its number.
        found: u16,
        /// The number that was next.
        expected: u16,
    },
    /// The epoch changed without a new scene.
    #[error("epoch {found}, expected {expected} or a new scene")]
    Epoch {
        /// The packet's epoch.
        found: u8,
        /// The client's.
        expected: u8,
    },
    /// A message about an object that this client does not know.
    #[error("object {id} (generation {generation}) is not known")]
    Unknown {
        /// The object's number.
        id: u32,
        /// Its generation.
        generation: u32,
    },
    /// A snapshot of an object that this client knows already.
    #[error("object {id} (generation {generation}) is known already")]
    Known {
        /// The object's number.
        id: u32,
        /// Its generation.
        generation: u32,
    },
}

/// An object as this client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorObject {
    /// Its generation.
    pub generation: u32,
    /// Its kind's number.
    pub kind: u16,
    /// Where it is.
    pub motion: Motion,
    /// Its attributes' values by ascending number.
    pub attributes: Vec<(u16, Vec<u8>)>,
}

/// What a client knows.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    objects: HashMap<u32, MirrorObject, FixedState>,
    scene: Option<u32>,
    size_m: Vec2,
    own: Option<(u32, u32)>,
    tick: u32,
    epoch: u8,
    sequence: u16,
    packets: u64,
}

impl Mirror {
    /// Takes a packet. O(its bytes).
    ///
    /// # Errors
    /// [`MirrorError`] at the first message that does not fit; those before it have taken effect.
    pub fn receive(&mut self, packet: &[u8]) -> Result<(), MirrorError> {
        let mut reader = Reader::new(packet);
        let header = Header::read(&mut reader)?;
        if self.packets > 0 && header.sequence != self.sequence.wrapping_add(1) {
            let expected = self.sequence.wrapping_add(1);
            return Err(MirrorError::Sequence {
                found: header.sequence,
                expected,
            });
        }
        (self.sequence, self.tick) = (header.sequence, header.tick);
        self.packets += 1;
        while !reader.is_empty() {
            let message = ServerMessage::read(&mut reader)?;
            if header.epoch != self.epoch && !matches!(message, ServerMessage::Scene { .. }) {
                return Err(MirrorError::Epoch {
                    found: header.epoch,
                    expected: self.epoch,
                });
            }
            self.epoch = header.epoch;
            self.apply(message)?;
        }
        Ok(())
    }

    fn apply(&mut self, message: ServerMessage) -> Result<(), MirrorError> {
        match message {
            ServerMessage::Scene { scene, size } => {
                self.objects.clear();
                (self.scene, self.size_m, self.own) = (Some(scene), size.metres(), None);
            }
            ServerMessage::Own { id, generation } => self.own = Some((id, generation)),
            ServerMessage::Despawn { id, generation } => {
                self.known(id, generation)?;
                self.objects.remove(&id);
            }
            ServerMessage::Snapshot {
                id,
                generation,
                kind,
                motion,
                attributes,
            } => {
                if self.objects.contains_key(&id) {
                    return Err(MirrorError::Known { id, generation });
                }
                let mut object = MirrorObject {
                    generation,
                    kind,
                    motion,
                    attributes: Vec::new(),
                };
                object.set(&attributes);
                self.objects.insert(id, object);
            }
            ServerMessage::Delta {
                id,
                generation,
                attributes,
            } => {
                self.known(id, generation)?.set(&attributes);
            }
            ServerMessage::Motion {
                id,
                generation,
                motion,
            } => self.known(id, generation)?.motion = motion,
        }
        Ok(())
    }

    fn known(&mut self, id: u32, generation: u32) -> Result<&mut MirrorObject, MirrorError> {
        let object = self
            .objects
            .get_mut(&id)
            .filter(|object| object.generation == generation);
        object.ok_or(MirrorError::Unknown { id, generation })
    }

    /// An object that this client knows.
    #[must_use]
    pub fn object(&self, id: u32) -> Option<&MirrorObject> {
        self.objects.get(&id)
    }

    /// The numbers of all known objects, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.objects.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The object that this client controls: number and generation.
    #[must_use]
    pub const fn own(&self) -> Option<(u32, u32)> {
        self.own
    }

    /// The scene that this client is in.
    #[must_use]
    pub const fn scene(&self) -> Option<u32> {
        self.scene
    }

    /// Width and height of the scene, in metres.
    #[must_use]
    pub const fn size_m(&self) -> Vec2 {
        self.size_m
    }

    /// The server tick of the last packet.
    #[must_use]
    pub const fn tick(&self) -> u32 {
        self.tick
    }

    /// How many packets came.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }
}

impl MirrorObject {
    fn set(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            match self
                .attributes
                .binary_search_by_key(&attribute.id, |&(id, _)| id)
            {
                Ok(place) => {
                    let value = &mut self.attributes[place].1;
                    value.clear();
                    value.extend_from_slice(attribute.value);
                }
                Err(place) => self
                    .attributes
                    .insert(place, (attribute.id, attribute.value.to_vec())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        write_delta_head, write_despawn, write_own, write_scene, write_snapshot_head,
    };
    use proptest::prelude::*;

    fn packet(sequence: u16, epoch: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        Header {
            epoch,
            sequence,
            tick: u32::from(sequence),
        }
        .write(&mut bytes);
        write(&mut bytes);
        bytes
    }

    fn greeted() -> Mirror {
        let mut mirror = Mirror::default();
        let hello = packet(0, 1, |bytes| {
            write_scene(bytes, 4, Vec2::splat(10.0));
            write_own(bytes, 7, 0);
            write_snapshot_head(bytes, 7, 0, 1, Motion::default(), 0);
        });
        mirror.receive(&hello).unwrap();
        mirror
    }

    #[test]
    fn a_new_scene_forgets_the_objects_of_the_old_one() {
        let mut mirror = greeted();
        assert_eq!(
            (mirror.ids(), mirror.own(), mirror.scene()),
            (vec![7], Some((7, 0)), Some(4))
        );
        mirror
            .receive(&packet(1, 2, |bytes| write_scene(bytes, 5, Vec2::ONE)))
            .unwrap();
        assert_eq!(
            (mirror.ids(), mirror.own(), mirror.scene()),
            (vec![], None, Some(5))
        );
    }

    #[test]
    fn what_does_not_follow_is_an_error() {
        let despawn =
            |id, generation| move |bytes: &mut Vec<u8>| write_despawn(bytes, id, generation);
        let cases: [(Vec<u8>, MirrorError); 5] = [
            (
                packet(2, 1, |_| ()),
                MirrorError::Sequence {
                    found: 2,
                    expected: 1,
                },
            ),
            (
                packet(1, 2, despawn(7, 0)),
                MirrorError::Epoch {
                    found: 2,
                    expected: 1,
                },
            ),
            (
                packet(1, 1, despawn(7, 1)),
                MirrorError::Unknown {
                    id: 7,
                    generation: 1,
                },
            ),
            (
                packet(1, 1, |bytes| write_delta_head(bytes, 8, 0, 0)),
                MirrorError::Unknown {
                    id: 8,
                    generation: 0,
                },
            ),
            (
                packet(1, 1, |bytes| {
                    write_snapshot_head(bytes, 7, 1, 0, Motion::default(), 0)
                }),
                MirrorError::Known {
                    id: 7,
                    generation: 1,
                },
            ),
        ];
        for (packet, error) in cases {
            assert_eq!(greeted().receive(&packet), Err(error));
        }
    }

    proptest! {
        #[test]
        fn any_packet_is_taken_or_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut mirror = greeted();
            let _ = mirror.receive(&packet(1, 1, |packet| packet.extend(bytes)));
        }
    }
}
