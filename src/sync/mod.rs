//! Replication: what changed on the server, and who is told.
//!
//! ```text
//! Health, … ── marked by hand, or by change detection ─▶ DirtyMasks ─▶ [Collect] encoded once ─┐
//! Position, … ─▶ a MotionBase an object, new when reckoning goes wrong ─▶ encoded once ────────┼─▶ a line a client ─▶ outbox
//! events of views ─▶ links, waiting of each client ─▶ Despawn, Snapshot (so many a tick) ──────┤    (a list of messages)
//! parties, scenes ─▶ remotes of each client, who are not in sight ─▶ Forget, Remote ────────────┘
//! ```
//! An attribute is told to an audience: the owner, the team or guild where they see the object, all viewers; its party
//! wherever it is, or all in the scene, in sight or not. The scene itself is object 0, with attributes of its own. What
//! different clients may learn of an object falls into few *variants*; each is encoded once. Attributes are collected at
//! their cadence; all pending ones at once when somebody comes to know the object, so that all who know it hold the same.
//!
//! Audiences of an embedder's own are components, too ([`AudienceAppExt`]). A client that loses its object is told that, and
//! nothing more until it has another.
//!
//! | file | what it holds |
//! |---|---|
//! | `masks`, `attribute_set` | dirty bits of many objects; a set of attributes |
//! | `records` | what a scene has to tell in a tick, each message once |
//! | `motion`, `announce` | what clients reckon on from; what is said once |
//! | `membership` | what an object is in audiences of an embedder's own |
//! | `due_objects`, `links` | of whom there is something to tell; whom a client knows |
//! | `client`, `remotes` | what one client knows and is sent next; what of it that it does not see |
//! | `allowance` | how much that may be |
//! | `notices` | what one client is told about its session |
//! | `own_position` | where its own object stands, exactly |
//! | `sent_log`, `kept` | what all were told of late, and what one missed, for the case that a connection is lost |
//! | `message_list` | messages one behind the other |
//! | `counters` | what was sent, by kind |
//! | `plugin` | all that in the tick |
//! | `throng_protocol` | [`Mirror`], a client in memory; [`Predictor`], its own object ahead of the server; [`ServerClock`], which tick it is at the server |
//!
//! Where things are is reckoned by clients from a base that all share. The byte budget of a client makes motions
//! and snapshots wait and drops unreliable announcements; all else may overdraw it. What a client knows lies in an array of its
//! own, in no order: memory grows with links. That it is not parallel to the view list costs a search for each link that comes
//! or goes, 2 % of replication.
//!
//! Invariants: a delta never precedes its object's snapshot; equal bytes written again send nothing; a client's own object is
//! always known to it; at rest every [`Mirror`] holds what [`compare_mirror`] expects, whatever the unreliable channel lost.
//!
//! Cost: two `or`s a mark by hand; change detection looks at every row; O(dirty attributes + objects) to encode, O(links of
//! receiving clients) to list, a few nanoseconds where nothing is new: `throng bench sync`. Who is told of what it
//! does not see is worked out anew for a client when its party, its view or the scene's public objects change.

mod allowance;
mod announce;
mod attribute_set;
mod client;
mod counters;
mod due_objects;
mod kept;
mod links;
mod masks;
mod membership;
mod message_list;
mod motion;
mod notices;
mod own_position;
mod plugin;
mod records;
mod remotes;
mod sent_log;

pub use client::CLIENT_STATE_BYTES;
pub use counters::{SentCount, SentCounters};
#[doc(hidden)]
pub use masks::{SlotMasks, bits};
pub use membership::{AUDIENCES_MAX, Membership};
pub use plugin::{
    Announce, AnnounceScope, Announced, AttributeSpec, Attributes, Audience, AudienceAppExt,
    AudienceError, Cadence, DirtyMasks, MaskSlot, RegisterError, Replicate, ReplicateAppExt,
    SaveFailed, SaveRequest, SyncPlugin, SyncSettings, SyncStats, SyncSystems, compare_mirror,
    compare_mirror_exactly, request_all_saves, save_request_of,
};
pub use throng_protocol::mirror::{
    AttributeValues, Mirror, MirrorError, MirrorObject, MirrorRemote, OwnPosition,
};
pub use throng_protocol::predictor::{Correction, Predictor, UNHANDLED_MAX};
pub use throng_protocol::server_clock::{CLOCK_SAMPLES, ServerClock};
