//! Replication: what changed on the server, and who is told.
//!
//! ```text
//! Health, … ─▶ change detection ─▶ DirtyMask ─▶ [Collect] encoded once ─┐
//! Position, … ─────────────────────────────────▶ [Replicate] encoded once ─┼─▶ a packet a client ─▶ outbox ─▶ Mirror
//! Entered, Left ────────────────────────────────────────────────────────┘
//! ```
//! Attributes are collected at the heartbeat, phased by object; an object that comes into somebody's sight with changes
//! pending is collected at once, so that all its viewers hold the same values. Motion is sent in the tick in which it
//! happens.
//!
//! Invariants: a delta never precedes its object's snapshot; equal bytes written again send nothing; a client's own object is
//! always known to it. Every encoded record is shared by all clients that get it. Audiences wider than viewers, rate tiers,
//! byte budgets and announcements are absent so far.
//!
//! Cost: O(changed attributes + moved objects) to encode, O(links of receiving clients) to put together.

mod mirror;
mod packets;
mod plugin;
mod records;

pub use mirror::{Mirror, MirrorError, MirrorObject};
pub use packets::PacketCounters;
pub use plugin::{
    AttributeSpec, Attributes, Audience, DirtyMask, RegisterError, Replicate, ReplicateAppExt,
    SyncPlugin, SyncSettings, SyncStats, SyncSystems, compare_mirror,
};
