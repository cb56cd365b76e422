//! A client in memory: decodes the server's packets, and stores what a real client would.
//!
//! Reliable packets must be complete and in order. Unreliable ones may be lost, duplicated or delayed: a motion is applied if its object is
//! known and the motion is newer than the stored one, and is ignored otherwise.

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

use crate::movement::step_m;
use crate::wire::{
    Attribute, Channel, Motion, PacketHeader, Reassembler, ReplicatedAttribute, ServerMessage,
    SessionNotice, UnseenObjectId, WireError, WireReader, expand_counter, wire_tick_s,
};

/// Why a packet does not follow from those before it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MirrorError {
    /// The bytes are not a valid packet.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A packet is missing or duplicated.
    #[error("reliable packet {found} out of order, expected {expected}")]
    Sequence {
        /// The sequence number found.
        found: u16,
        /// The sequence number expected.
        expected: u16,
    },
    /// The epoch changed without a new scene.
    #[error("epoch {found} without a Scene message, expected epoch {expected}")]
    Epoch {
        /// The packet's epoch.
        found: u8,
        /// The epoch of the client.
        expected: u8,
    },
    /// A message about an object that is unknown to this client.
    #[error("message about object {id} (generation {generation}), which has no snapshot")]
    UnknownObject {
        /// Object id.
        id: u32,
        /// Generation in the message: how often that id was assigned before.
        generation: u32,
    },
    /// A message about an unseen object that was never sent.
    #[error("message about unseen object {} of scene {} (generation {}), which was never sent", .0.id, .0.scene, .0.generation)]
    UnknownUnseenObject(UnseenObjectId),
    /// A second snapshot of an object, or an unseen-object message about an object in view.
    #[error("second snapshot of object {id} (generation {generation})")]
    AlreadyKnown {
        /// Object id.
        id: u32,
        /// Generation in the message: how often that id was assigned before.
        generation: u32,
    },
}

/// An object as this client knows it.
#[derive(Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct MirrorObject {
    /// Generation: how often its id was assigned before.
    pub generation: u32,
    /// Number of its kind.
    pub kind: u16,
    /// Its last motion.
    pub motion: Motion,
    /// Tick of that motion.
    pub motion_tick: u64,
    /// Its attributes' values.
    pub attributes: AttributeValues,
}

/// An object that this client need not see, such as a member of its party or the scene itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, MemoryUse)]
pub struct MirrorUnseenObject {
    /// Number of its kind; 0 for a scene.
    pub kind: u16,
    /// Its received attributes.
    pub attributes: AttributeValues,
}

/// The exact position of the controlled object, from the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnPosition {
    /// At the end of this tick.
    pub tick: u64,
    /// After this input and all earlier ones.
    pub input: u16,
    /// In metres.
    pub position: Vec2,
}

/// The speed of the controlled object, from the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnSpeed {
    /// From this tick on.
    pub tick: u64,
    /// In metres per second.
    pub speed_m_s: f32,
}

/// The state of a client.
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
    /// Whether a *Hello* has arrived on this connection.
    is_greeted: bool,
    takeovers: u32,
    packets: u64,
    ignored: u64,
    announcements: u64,
    last_announcement: Option<(Option<(u32, u32)>, Vec<u8>)>,
    notices: Vec<SessionNotice>,
    /// Slowdown of simulated time against real time, in percent.
    slowdown_percent: u8,
    handled_input: u16,
    own_position: Option<OwnPosition>,
    own_speed: Option<OwnSpeed>,
    received_bytes: u32,
}

/// Number of motions that are looked up together: the objects are in different parts of memory, and waiting for all takes as long as for
/// one.
const MOTION_BATCH: usize = 16;

/// Id and generation of an object, and its motion.
type Motions = SmallVec<[(u32, u32, Motion); MOTION_BATCH]>;

/// Maximum number of stored notices; older ones are dropped.
const NOTICES_MAX: usize = 64;

impl Mirror {
    /// Handles a packet. O(its bytes).
    ///
    /// # Errors
    /// [`MirrorError`] at the first invalid message; those before it have taken effect.
    pub fn receive(&mut self, packet: &[u8]) -> Result<(), MirrorError> {
        self.receive_each(packet, |_, _| ())
    }

    /// Like [`receive`](Self::receive), and shows each message before it takes effect, with the state up to then.
    ///
    /// # Errors
    /// [`MirrorError`] at the first invalid message; those before it have taken effect.
    pub fn receive_each(
        &mut self,
        packet: &[u8],
        show: impl FnMut(&Self, &ServerMessage),
    ) -> Result<(), MirrorError> {
        // The reassembler is put back in any case, because the messages borrow from it.
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
            // By reference, because it is a few hundred bytes.
            let message = read.as_ref().map_err(|error| *error)?;
            show(self, message);
            match *message {
                ServerMessage::Hello(hello) => {
                    if std::mem::replace(&mut self.is_greeted, true) {
                        self.takeovers = self.takeovers.wrapping_add(1);
                    }
                    self.tick_s = wire_tick_s(hello.tick_millihertz);
                    // A server at full speed sends no TimeRate.
                    (self.tick, self.slowdown_percent) = (hello.tick, 0);
                    continue;
                }
                // Notices are about the session, so they belong to no epoch.
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
            self.apply(message, tick, header.input)?;
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

    /// Checks that a reliable packet is the next one.
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

    /// Applies motions in order.
    fn apply_motions(
        &mut self,
        motions: &mut Motions,
        tick: u64,
        reliable: bool,
        show: &mut impl FnMut(&Self, &ServerMessage),
    ) -> Result<(), MirrorError> {
        // The result is not used: this only starts all memory loads at once.
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

    /// Applies a message of the client's epoch that is not a motion.
    fn apply(&mut self, message: &ServerMessage, tick: u64, input: u16) -> Result<(), MirrorError> {
        match *message {
            ServerMessage::Hello(_) | ServerMessage::Notice(_) | ServerMessage::Motion { .. } => {}
            ServerMessage::OwnPosition { position } => self.set_own_position(OwnPosition {
                tick,
                input,
                position,
            }),
            ServerMessage::OwnSpeed { speed_m_s } => {
                self.own_speed = Some(OwnSpeed { tick, speed_m_s });
            }
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

    /// Sets the position of the controlled object, unless a newer one is known.
    fn set_own_position(&mut self, own: OwnPosition) {
        if self.own_position.is_some_and(|held| held.tick >= own.tick) {
            self.ignored += 1;
        } else {
            self.own_position = Some(own);
        }
    }

    /// Adds an object that enters the view.
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

    /// Sets all attributes of an unseen object.
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

    /// Removes everything that belongs to a scene.
    fn clear_scene(&mut self) {
        self.objects.clear();
        self.unseen_objects.clear();
        (self.scene, self.size_m, self.controlled_object) = (None, Vec2::ZERO, None);
        (self.own_position, self.own_speed) = (None, None);
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

    /// The unseen objects that this client knows.
    pub fn unseen_objects(&self) -> impl Iterator<Item = (UnseenObjectId, &MirrorUnseenObject)> {
        self.unseen_objects.iter().map(|(&of, remote)| (of, remote))
    }

    /// All known objects, by ascending id. O(objects × log objects) for the order.
    ///
    /// ```
    /// # let mirror = throng_protocol::mirror::Mirror::default();
    /// for (id, object) in mirror.objects() {
    ///     println!("object {id} is of kind {}", object.kind);
    /// }
    /// ```
    pub fn objects(&self) -> impl Iterator<Item = (u32, &MirrorObject)> {
        let ids = self.ids().into_iter();
        ids.filter_map(|id| Some((id, self.objects.get(&id)?)))
    }

    /// The ids of all known objects, ascending.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.objects.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The object that this client controls: id and generation. `None` after it was despawned.
    #[must_use]
    pub const fn controlled_object(&self) -> Option<(u32, u32)> {
        self.controlled_object
    }

    /// The exact position of the controlled object in the newest packet. The server sends it at the start of a scene, and later while the
    /// client sends *Input* messages. `None` without an object.
    #[must_use]
    pub const fn own_position(&self) -> Option<OwnPosition> {
        self.own_position
    }

    /// The speed of the controlled object, which the server sends at the start of a scene and after each change. `None` without an object.
    #[must_use]
    pub const fn own_speed(&self) -> Option<OwnSpeed> {
        self.own_speed
    }

    /// The length of a step of the controlled object in a direction, in metres: its speed × a tick; 0 before the server has sent its speed.
    /// For [`PlayerStep::step_m`](crate::movement::PlayerStep::step_m).
    #[must_use]
    pub fn own_step_m(&self) -> f32 {
        let speed_m_s = self.own_speed.map_or(0.0, |speed| speed.speed_m_s);
        step_m(speed_m_s, self.tick_s)
    }

    /// Length of a tick, in seconds; 0 before *Hello*.
    #[must_use]
    pub const fn tick_s(&self) -> f32 {
        self.tick_s
    }

    /// The connection is lost, and packets of another one follow. The client keeps its state until the server discards it.
    pub fn reconnect(&mut self) {
        (self.sequence, self.reassembler) = (None, Reassembler::default());
        self.is_greeted = false;
    }

    /// Number of times another server process has taken the client over on the same connection, modulo 2³². Ticks and object ids are then
    /// those of the new process, and ticks may be lower than before.
    #[must_use]
    pub const fn takeovers(&self) -> u32 {
        self.takeovers
    }

    /// Bytes of reliable messages received on this connection, for *Resume*.
    #[must_use]
    pub const fn received_bytes(&self) -> u32 {
        self.received_bytes
    }

    /// Removes and returns the notices since the last call, oldest first; the newest 64 if there were more.
    pub fn take_notices(&mut self) -> Vec<SessionNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Number of the client's last input that the server has handled, from the newest reliable packet.
    #[must_use]
    pub const fn handled_input(&self) -> u16 {
        self.handled_input
    }

    /// The scene of this client; `None` before the first one, and after its controlled object was despawned.
    #[must_use]
    pub const fn scene(&self) -> Option<u32> {
        self.scene
    }

    /// Width and height of the scene, in metres.
    #[must_use]
    pub const fn size_m(&self) -> Vec2 {
        self.size_m
    }

    /// The latest server tick of a packet.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.tick
    }

    /// Extrapolated position of an object at a tick, in metres.
    #[must_use]
    pub fn position(&self, id: u32, tick: u64) -> Option<Vec2> {
        let object = self.objects.get(&id)?;
        let ticks = tick.saturating_sub(object.motion_tick);
        Some(object.motion.position_after(ticks as f32 * self.tick_s))
    }

    /// Rate of simulated time, in percent of real time.
    #[must_use]
    pub const fn time_percent(&self) -> u8 {
        100 - self.slowdown_percent
    }

    /// Extrapolated position of an object, in metres, a number of real seconds after the latest tick of a packet, at the current rate of
    /// simulated time.
    #[must_use]
    pub fn position_after(&self, id: u32, real_s: f32) -> Option<Vec2> {
        let object = self.objects.get(&id)?;
        let ticks = self.tick.saturating_sub(object.motion_tick);
        let since_s = real_s * f32::from(self.time_percent()) / 100.0;
        let simulated_s = ticks as f32 * self.tick_s + since_s;
        Some(object.motion.position_after(simulated_s))
    }

    /// Number of announcements received.
    #[must_use]
    pub const fn announcements(&self) -> u64 {
        self.announcements
    }

    /// The last announcement: its object, and its content.
    #[must_use]
    pub fn last_announcement(&self) -> Option<(Option<(u32, u32)>, &[u8])> {
        let (from, bytes) = self.last_announcement.as_ref()?;
        Some((*from, bytes))
    }

    /// Number of unreliable packets and motions without effect: outdated, or of unknown objects.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Number of packets received.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }
}

/// The full tick of a motion, from its last eight bits. It is not later than its packet's tick.
fn full_motion_tick(motion: Motion, tick: u64) -> u64 {
    tick.saturating_sub(u64::from((tick as u8).wrapping_sub(motion.at)))
}
