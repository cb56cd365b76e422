//! Putting a client's packet together from shared records. No ECS: slices in, bytes out.

use super::records::{Change, SceneRecords, new_targets};
use crate::outbox::Frames;
use crate::wire::{ClientId, HEADER_BYTES, Header, write_despawn, write_own, write_scene};

/// What a client was told about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientState {
    /// Which client.
    pub client: ClientId,
    /// The epoch of its last packet.
    pub epoch: u8,
    /// The number of its next packet.
    pub sequence: u16,
    /// The object that it knows to control: scene, id, generation.
    pub own: Option<(u32, u32, u32)>,
}

/// One client's packet of this tick.
pub struct Job<'a> {
    /// The client; its state moves on when a packet is made.
    pub state: &'a mut ClientState,
    /// The object that it controls: scene, id, generation.
    pub own: (u32, u32, u32),
    /// What the scene has to tell.
    pub records: &'a SceneRecords,
    /// The scene's size, told when the client comes into it.
    pub size_m: glam::Vec2,
    /// The own object's full state, as its owner sees it; only when the client comes.
    pub own_snapshot: Option<Vec<u8>>,
}

/// What was put into packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Packets made.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Snapshots in them.
    pub snapshots: u64,
    /// Despawns in them.
    pub despawns: u64,
    /// Deltas in them.
    pub deltas: u64,
    /// Motions in them.
    pub motions: u64,
}

impl PacketCounters {
    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.snapshots += other.snapshots;
        self.despawns += other.despawns;
        self.deltas += other.deltas;
        self.motions += other.motions;
    }
}

/// Buffers of one worker.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The packets made.
    pub frames: Frames,
    /// What is in them.
    pub counters: PacketCounters,
    /// By object id: the last job to which it was new.
    new_to: Vec<u32>,
    /// The objects that a part of the packet in hand is about.
    ids: Vec<u32>,
    /// Those of them that have a record.
    found: Vec<u32>,
    job: u32,
}

/// Makes the packet of one client; none when there is nothing to say. O(the client's view list).
///
/// `seen` are the ids of the client's view list.
pub fn write_packet(
    job: &mut Job,
    tick: u64,
    scratch: &mut Scratch,
    seen: impl Iterator<Item = u32>,
) {
    let Scratch {
        frames,
        counters,
        new_to,
        ids,
        found,
        job: round,
    } = scratch;
    *round = round.wrapping_add(1);
    if *round == 0 {
        new_to.fill(0);
        *round = 1;
    }
    let header = Header {
        epoch: job.state.epoch,
        sequence: job.state.sequence,
        tick: tick as u32,
    };
    let fresh = job.own_snapshot.is_some();
    let header = if fresh {
        Header {
            epoch: header.epoch.wrapping_add(1),
            ..header
        }
    } else {
        header
    };
    let (scene, own, generation) = job.own;
    let records = job.records;
    let mut made = PacketCounters::default();
    let client = job.state.client;
    frames.push(client, |bytes| {
        let start = bytes.len();
        header.write(bytes);
        ids.clear();
        if let Some(snapshot) = &job.own_snapshot {
            write_scene(bytes, scene, job.size_m);
            write_own(bytes, own, generation);
            bytes.extend_from_slice(snapshot);
            ids.extend(seen);
            made.snapshots += 1 + records.snapshots.copy(ids, found, bytes);
        } else {
            let changes = records.changes.of(own);
            for pair in changes {
                if let Change::Left(generation) = pair.change {
                    write_despawn(bytes, pair.target, generation);
                    made.despawns += 1;
                }
            }
            // Mostly nothing has changed, and nobody is new.
            if !changes.is_empty() {
                ids.extend(new_targets(changes));
                ids.iter().for_each(|&id| mark(new_to, id, *round));
                made.snapshots += records.snapshots.copy(ids, found, bytes);
                ids.clear();
            }
            ids.extend(seen);
            if !changes.is_empty() {
                ids.retain(|&id| new_to.get(id as usize) != Some(round));
            }
            made.deltas += records.own_deltas.copy(&[own], found, bytes);
            made.deltas += records.deltas.copy(ids, found, bytes);
            made.motions += records.motions.copy(&[own], found, bytes);
            made.motions += records.motions.copy(ids, found, bytes);
        }
        let length = bytes.len() - start;
        if length == HEADER_BYTES {
            bytes.truncate(start);
        } else {
            made.packets = 1;
            made.bytes = length as u64;
        }
    });
    if made.packets > 0 {
        job.state.epoch = header.epoch;
        job.state.sequence = header.sequence.wrapping_add(1);
    }
    job.state.own = Some(job.own);
    counters.add(made);
}

fn mark(new_to: &mut Vec<u32>, id: u32, round: u32) {
    let id = id as usize;
    if new_to.len() <= id {
        new_to.resize(id + 1, 0);
    }
    new_to[id] = round;
}
