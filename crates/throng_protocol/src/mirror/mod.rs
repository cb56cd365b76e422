//! A client in memory: decodes what the server sends, and holds what a real client would.
//!
//! Reliable packets must follow each other without a gap. Unreliable ones may be lost, come twice or late: a motion is taken
//! if it is of an object that is known and newer than the one held, and forgotten otherwise.

mod attribute_values;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

use foldhash::fast::FixedState;
use glam::Vec2;
use smallvec::SmallVec;
use thiserror::Error;
use throng_core::memory::MemoryUse;

pub use attribute_values::AttributeValues;

use crate::wire::{
    Attribute, Channel, Motion, PacketHeader, Reassembler, ReplicatedAttribute, ServerMessage,
    SessionNotice, UnseenObjectId, WireError, WireReader, expand_counter, wire_tick_s,
};

/// Why a packet does not follow from those before it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MirrorError {
    /// The bytes are no packet.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A packet is missing, or came twice.
    #[error("reliable packet {found} out of order, expected {expected}")]
    Sequence {
        /// The number that the packet has.
        found: u16,
        /// The number that was next.
        expected: u16,
    },
    /// The epoch changed without a new scene.
    #[error("epoch {found} without a Scene message, expected epoch {expected}")]
    Epoch {
        /// The packet's epoch.
        found: u8,
        /// The epoch that the client is in.
        expected: u8,
    },
    /// A message about an object that this client does not know.
    #[error("message about object {id} (generation {generation}), which has no snapshot")]
    UnknownObject {
        /// The object's number.
        id: u32,
        /// How often that number was given out before, as the message says.
        generation: u32,
    },
    /// A message about an object that this client was told nothing of, nor sees.
    #[error("message about unseen object {} of scene {} (generation {}), which was never sent", .0.id, .0.scene, .0.generation)]
    UnknownUnseenObject(UnseenObjectId),
    /// A snapshot of an object that this client knows already, or a message for those that do not see it.
    #[error("second snapshot of object {id} (generation {generation})")]
    AlreadyKnown {
        /// The object's number.
        id: u32,
        /// How often that number was given out before, as the message says.
        generation: u32,
    },
}

/// An object as this client knows it.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct MirrorObject {
    /// How often its number was given out before.
    pub generation: u32,
    /// Its kind's number.
    pub kind: u16,
    /// Where it was.
    pub motion: Motion,
    /// At which tick.
    pub motion_tick: u64,
    /// Its attributes' values.
    pub attributes: AttributeValues,
}

/// An object that this client need not see: one of its party, the scene itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, MemoryUse)]
pub struct MirrorUnseenObject {
    /// Its kind's number; 0 of a scene.
    pub kind: u16,
    /// What was told of it.
    pub attributes: AttributeValues,
}

/// Where a client's own object stood by the server, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnPosition {
    /// At the end of this tick.
    pub tick: u64,
    /// With this input handled, and all before it.
    pub input: u16,
    /// In metres.
    pub position: Vec2,
}

/// What a client knows.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Mirror {
    #[memory(each_value)]
    objects: HashMap<u32, MirrorObject, FixedState>,
    #[memory(each_value)]
    unseen_objects: BTreeMap<UnseenObjectId, MirrorUnseenObject>,
    reassembler: Reassembler,
    scene: Option<u32>,
    size_m: Vec2,
    controlled_object: Option<(u32, u32)>,
    tick: u64,
    tick_s: f32,
    epoch: u8,
    sequence: Option<u16>,
    packets: u64,
    ignored: u64,
    announcements: u64,
    last_announcement: Option<(Option<(u32, u32)>, Vec<u8>)>,
    notices: Vec<SessionNotice>,
    /// By how many percent simulated time is slower than real time.
    slowdown_percent: u8,
    handled_input: u16,
    own_position: Option<OwnPosition>,
    received_bytes: u32,
}

/// Motions that are looked up together: each object lies elsewhere in memory, and to wait for all takes as long as for one.
const MOTION_BATCH: usize = 16;

/// Number and generation of an object, and how it moved.
type Motions = SmallVec<[(u32, u32, Motion); MOTION_BATCH]>;

/// Notices that a mirror keeps for whoever asks; older ones are forgotten.
const NOTICES_MAX: usize = 64;

impl Mirror {
    /// Takes a packet. O(its bytes).
    ///
    /// # Errors
    /// [`MirrorError`] at the first message that does not fit; those before it have taken effect.
    pub fn receive(&mut self, packet: &[u8]) -> Result<(), MirrorError> {
        self.receive_each(packet, |_, _| ())
    }

    /// The same, with each message shown before it takes effect, beside what is known up to then.
    ///
    /// # Errors
    /// [`MirrorError`] at the first message that does not fit; those before it have taken effect.
    pub fn receive_each(
        &mut self,
        packet: &[u8],
        show: impl FnMut(&Self, &ServerMessage),
    ) -> Result<(), MirrorError> {
        // The reassembler is put back whatever comes of its messages, which it lends.
        let mut reassembler = std::mem::take(&mut self.reassembler);
        let result = match reassembler.accept(packet) {
            Ok(received) => self.apply_messages(received.header, received.messages, show),
            Err(error) => Err(error.into()),
        };
        self.reassembler = reassembler;
        result
    }

    fn apply_messages(
        &mut self,
        header: PacketHeader,
        messages: &[u8],
        mut show: impl FnMut(&Self, &ServerMessage),
    ) -> Result<(), MirrorError> {
        let reliable = header.channel == Channel::Reliable;
        if reliable {
            self.check_sequence(header)?;
        }
        self.packets += 1;
        let mut is_welcomed = false;
        let mut reader = WireReader::new(messages);
        if !reliable && header.epoch != self.epoch {
            self.ignored += 1;
            return Ok(());
        }
        let mut motions = Motions::new();
        while !reader.is_empty() {
            let read = ServerMessage::read(&mut reader);
            let tick = expand_counter(self.tick, header.tick);
            if let Ok(ServerMessage::Motion {
                id,
                generation,
                motion,
            }) = read
                && header.epoch == self.epoch
            {
                motions.push((id, generation, motion));
                if motions.len() == MOTION_BATCH {
                    self.apply_motions(&mut motions, tick, reliable, &mut show)?;
                }
                continue;
            }
            self.apply_motions(&mut motions, tick, reliable, &mut show)?;
            // Where it was read: it is some hundred bytes.
            let message = read.as_ref().map_err(|error| *error)?;
            show(self, message);
            match *message {
                ServerMessage::Hello(hello) => {
                    self.tick_s = wire_tick_s(hello.tick_millihertz);
                    // Of a server at its usual pace nothing is said.
                    (self.tick, self.slowdown_percent) = (hello.tick, 0);
                    continue;
                }
                // About the session, and so of no epoch.
                ServerMessage::Notice(notice) => {
                    is_welcomed |= matches!(notice, SessionNotice::Welcome { .. });
                    self.apply_notice(notice, header.epoch);
                    continue;
                }
                ServerMessage::Scene { .. } => self.epoch = header.epoch,
                _ if header.epoch != self.epoch => {
                    return Err(MirrorError::Epoch {
                        found: header.epoch,
                        expected: self.epoch,
                    });
                }
                _ => {}
            }
            if let ServerMessage::OwnPosition { position } = *message {
                self.set_own_position(OwnPosition {
                    tick,
                    input: header.input,
                    position,
                });
                continue;
            }
            self.apply(message, tick)?;
        }
        let tick = expand_counter(self.tick, header.tick);
        self.apply_motions(&mut motions, tick, reliable, &mut show)?;
        if reliable {
            let before = if is_welcomed { 0 } else { self.received_bytes };
            self.received_bytes = before.wrapping_add(messages.len() as u32);
        }
        self.tick = self.tick.max(tick);
        Ok(())
    }

    /// A reliable packet comes next, or is an error.
    fn check_sequence(&mut self, header: PacketHeader) -> Result<(), MirrorError> {
        let expected = self.sequence.map_or(0, |last| last.wrapping_add(1));
        if header.sequence != expected {
            return Err(MirrorError::Sequence {
                found: header.sequence,
                expected,
            });
        }
        self.sequence = Some(header.sequence);
        self.handled_input = header.input;
        Ok(())
    }

    fn apply_notice(&mut self, notice: SessionNotice, epoch: u8) {
        if let SessionNotice::TimeRate { percent } = notice {
            self.slowdown_percent = 100 - percent.clamp(1, 100);
        }
        if let SessionNotice::Resumed { keeps_state: keeps } = notice {
            self.epoch = epoch;
            if !keeps {
                self.clear_scene();
            }
        }
        if self.notices.len() == NOTICES_MAX {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Takes motions in their order.
    fn apply_motions(
        &mut self,
        motions: &mut Motions,
        tick: u64,
        reliable: bool,
        show: &mut impl FnMut(&Self, &ServerMessage),
    ) -> Result<(), MirrorError> {
        // Nothing is made of it but that all are on their way at once.
        for (id, ..) in motions.iter() {
            black_box(self.objects.get(id).map(|object| object.motion_tick));
        }
        for (id, generation, motion) in motions.drain(..) {
            let message = ServerMessage::Motion {
                id,
                generation,
                motion,
            };
            show(self, &message);
            let at = full_motion_tick(motion, tick);
            match self.object_mut(id, generation) {
                Ok(object) if at > object.motion_tick => {
                    (object.motion, object.motion_tick) = (motion, at);
                }
                Err(error) if reliable => return Err(error),
                Ok(_) | Err(_) => self.ignored += 1,
            }
        }
        Ok(())
    }

    /// Takes a message that is of the client's epoch and no motion.
    fn apply(&mut self, message: &ServerMessage, tick: u64) -> Result<(), MirrorError> {
        match *message {
            ServerMessage::Hello(_)
            | ServerMessage::Notice(_)
            | ServerMessage::Motion { .. }
            | ServerMessage::OwnPosition { .. } => {}
            ServerMessage::Scene { scene, size } => {
                self.clear_scene();
                (self.scene, self.size_m) = (Some(scene), size.metres());
            }
            ServerMessage::ControlledObject { id, generation } => {
                self.controlled_object = Some((id, generation))
            }
            ServerMessage::Despawn { id, generation } => {
                self.object_mut(id, generation)?;
                self.objects.remove(&id);
                if self.controlled_object == Some((id, generation)) {
                    self.clear_scene();
                }
            }
            ServerMessage::Snapshot {
                id,
                generation,
                kind,
                motion,
                ref attributes,
            } => {
                let object = MirrorObject {
                    generation,
                    kind,
                    motion,
                    motion_tick: full_motion_tick(motion, tick),
                    attributes: AttributeValues::default(),
                };
                self.add_object(id, object, attributes)?;
            }
            ServerMessage::Delta {
                id,
                generation,
                ref attributes,
            } => {
                self.object_mut(id, generation)?.attributes.set(attributes);
            }
            ServerMessage::UnseenObject {
                of,
                kind,
                ref attributes,
            } => self.set_unseen_object(of, kind, attributes)?,
            ServerMessage::UnseenDelta { of, ref attributes } => {
                let remote = self.unseen_objects.get_mut(&of);
                let remote = remote.ok_or(MirrorError::UnknownUnseenObject(of))?;
                remote.attributes.set(attributes);
            }
            ServerMessage::ForgetUnseen { of } => {
                let remote = self.unseen_objects.remove(&of);
                remote.ok_or(MirrorError::UnknownUnseenObject(of))?;
            }
            ServerMessage::Announce { about: from, bytes } => {
                self.announcements += 1;
                self.last_announcement = Some((from, bytes.to_vec()));
            }
        }
        Ok(())
    }

    /// Where the own object stood; what is older than what is known already came late.
    fn set_own_position(&mut self, told: OwnPosition) {
        if self.own_position.is_some_and(|held| held.tick >= told.tick) {
            self.ignored += 1;
        } else {
            self.own_position = Some(told);
        }
    }

    /// An object comes into sight.
    fn add_object(
        &mut self,
        id: u32,
        mut object: MirrorObject,
        attributes: &[Attribute],
    ) -> Result<(), MirrorError> {
        let generation = object.generation;
        let remote = UnseenObjectId {
            scene: self.scene.unwrap_or_default(),
            id,
            generation,
        };
        if self.objects.contains_key(&id) || self.unseen_objects.contains_key(&remote) {
            return Err(MirrorError::AlreadyKnown { id, generation });
        }
        object.attributes.set(attributes);
        self.objects.insert(id, object);
        Ok(())
    }

    /// All that is told of an object that need not be in sight.
    fn set_unseen_object(
        &mut self,
        of: UnseenObjectId,
        kind: u16,
        attributes: &[Attribute],
    ) -> Result<(), MirrorError> {
        let UnseenObjectId { id, generation, .. } = of;
        if self.scene == Some(of.scene) && self.object_mut(id, generation).is_ok() {
            return Err(MirrorError::AlreadyKnown { id, generation });
        }
        let mut remote = MirrorUnseenObject {
            kind,
            attributes: AttributeValues::default(),
        };
        remote.attributes.set(attributes);
        self.unseen_objects.insert(of, remote);
        Ok(())
    }

    /// All that held in a scene.
    fn clear_scene(&mut self) {
        self.objects.clear();
        self.unseen_objects.clear();
        (self.scene, self.size_m, self.controlled_object) = (None, Vec2::ZERO, None);
        self.own_position = None;
    }

    fn object_mut(&mut self, id: u32, generation: u32) -> Result<&mut MirrorObject, MirrorError> {
        let object = self
            .objects
            .get_mut(&id)
            .filter(|object| object.generation == generation);
        object.ok_or(MirrorError::UnknownObject { id, generation })
    }

    /// An object that this client knows.
    #[must_use]
    pub fn object(&self, id: u32) -> Option<&MirrorObject> {
        self.objects.get(&id)
    }

    /// The value of an attribute of an object that this client sees, as far as this client knows: `mirror.get::<Hunger>(id)`.
    /// `None` for an unknown object, without a value, and where the bytes are no such value.
    #[must_use]
    pub fn get<A: ReplicatedAttribute>(&self, id: u32) -> Option<A::Value> {
        self.object(id)?.attributes.value::<A>()
    }

    /// The objects that this client is told of without seeing them.
    pub fn unseen_objects(&self) -> impl Iterator<Item = (UnseenObjectId, &MirrorUnseenObject)> {
        self.unseen_objects.iter().map(|(&of, remote)| (of, remote))
    }

    /// The numbers of all known objects, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.objects.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The object that this client controls: number and generation; none when it was despawned.
    #[must_use]
    pub const fn controlled_object(&self) -> Option<(u32, u32)> {
        self.controlled_object
    }

    /// Where the own object stood by the newest packet that says so: told where a scene begins, and then while the client's inputs
    /// have numbers of their own. None without an object.
    #[must_use]
    pub const fn own_position(&self) -> Option<OwnPosition> {
        self.own_position
    }

    /// The length of a tick, in seconds; 0 before the greeting.
    #[must_use]
    pub const fn tick_s(&self) -> f32 {
        self.tick_s
    }

    /// Its connection is lost, and packets come over another one from now on. What it knows stays until the server says
    /// otherwise.
    pub fn reconnect(&mut self) {
        (self.sequence, self.reassembler) = (None, Reassembler::default());
    }

    /// What *Resume* says of how far it got: the bytes of the reliable messages of its connection.
    #[must_use]
    pub const fn received_bytes(&self) -> u32 {
        self.received_bytes
    }

    /// Takes what was said about the session since the last time, oldest first; of more than 64 the newest.
    pub fn take_notices(&mut self) -> Vec<SessionNotice> {
        std::mem::take(&mut self.notices)
    }

    /// The number of the client's last input that the server had handled, by the newest packet on the reliable channel.
    #[must_use]
    pub const fn handled_input(&self) -> u16 {
        self.handled_input
    }

    /// The scene that this client is in; none before the first one, and after its own object was despawned.
    #[must_use]
    pub const fn scene(&self) -> Option<u32> {
        self.scene
    }

    /// Width and height of the scene, in metres.
    #[must_use]
    pub const fn size_m(&self) -> Vec2 {
        self.size_m
    }

    /// The latest server tick that a packet named.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// Where an object is at a tick, in metres, as far as this client knows.
    #[must_use]
    pub fn position(&self, id: u32, tick: u64) -> Option<Vec2> {
        let object = self.objects.get(&id)?;
        let ticks = tick.saturating_sub(object.motion_tick);
        Some(object.motion.position_after(ticks as f32 * self.tick_s))
    }

    /// How fast simulated time passes, in percent of real time.
    #[must_use]
    pub const fn time_percent(&self) -> u8 {
        100 - self.slowdown_percent
    }

    /// Where an object is by now, in metres, as far as this client knows: so many real seconds after the latest tick that a
    /// packet named. Reckoned at the pace that the server says simulated time has.
    #[must_use]
    pub fn position_after(&self, id: u32, real_s: f32) -> Option<Vec2> {
        let object = self.objects.get(&id)?;
        let ticks = self.tick.saturating_sub(object.motion_tick);
        let since_s = real_s * f32::from(self.time_percent()) / 100.0;
        let simulated_s = ticks as f32 * self.tick_s + since_s;
        Some(object.motion.position_after(simulated_s))
    }

    /// How many announcements came.
    #[must_use]
    pub const fn announcements(&self) -> u64 {
        self.announcements
    }

    /// The last announcement: whom it is about, and what it says.
    #[must_use]
    pub fn last_announcement(&self) -> Option<(Option<(u32, u32)>, &[u8])> {
        let (from, bytes) = self.last_announcement.as_ref()?;
        Some((*from, bytes))
    }

    /// How many unreliable packets and motions were of no use: late, or of objects that are not known.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// How many packets came.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }
}

/// The tick of a motion: it names the last eight bits, and is not later than its packet's.
fn full_motion_tick(motion: Motion, tick: u64) -> u64 {
    tick.saturating_sub(u64::from((tick as u8).wrapping_sub(motion.at)))
}
