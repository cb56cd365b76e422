//! Replication: sends changes of the server's state to the clients that may receive them.
//!
//! Register a component with [`ReplicateAppExt::replicate`] or [`ReplicateAppExt::replicate_field`]. Its *audience* decides which
//! clients receive it: the owner; the team or guild, where they see the object; all viewers; the party, wherever it is; or all
//! clients in the scene. You can add audiences with [`AudienceAppExt`]. One-time messages are sent with
//! [`AnnouncementRequest`]. The scene itself is object 0 and has attributes of its own.
//!
//! ```text
//! Health, … ── marked by hand, or by change detection ─▶ DirtyMasks ─▶ [Collect] encoded once ─┐
//! Position, … ─▶ a MotionBase per object, renewed when extrapolation errs ─▶ encoded once ─────┼─▶ client update ─▶ outbox
//! view events ─▶ known and waiting objects of each client ─▶ Despawn, Snapshot (limited) ──────┤   (list of messages)
//! parties, scenes ─▶ unseen objects of each client ─▶ Forget, UnseenObject ────────────────────┘
//! ForeignMembers ──▶ unseen objects of the scene FOREIGN_SCENE, as members of their parties
//! ```
//!
//! Clients that may receive different attributes of an object need different bytes. There are few such *variants*, and each is encoded
//! once. Attributes are collected at their cadence. When a client starts to know an object, all pending attributes of the object are
//! collected at once, so that all clients that know it have the same values. Clients extrapolate motion from a base that all of them
//! share. A client without an object receives nothing until it has one.
//!
//! The byte budget of a client defers motions and snapshots and drops unreliable announcements. Other messages may exceed it.
//!
//! Invariants:
//! - A delta never precedes the snapshot of its object.
//! - Writing equal bytes again sends nothing.
//! - A client always knows its own object.
//! - At rest every [`Mirror`] is equal to what [`compare_mirror`] expects, whatever the unreliable channel lost.
//!
//! Cost: a mark by hand is two `or`s; change detection scans every row; encoding is O(dirty attributes + objects); listing is O(links of
//! receiving clients), a few nanoseconds for a link without changes (`throng bench sync`). The unseen objects of a client are computed
//! again if its party, its view or the scene's public objects change. Memory grows with the number of links: each client has an unordered
//! array of the objects that it knows. The array is not parallel to the view list, which costs one search per added or removed link,
//! 2 % of replication.

// | file | contents |
// | `masks`, `attribute_set` | dirty bits of many objects; a set of attributes |
// | `scene_messages` | the messages of a scene in a tick, each stored once |
// | `motion`, `announce` | motion bases; one-time messages |
// | `membership` | memberships of objects in custom audiences |
// | `pending_updates`, `client_objects` | objects with pending messages; objects that a client knows |
// | `kept_objects` | objects that a client knows and that are out of its view, with `Viewable::keep` |
// | `client`, `unseen` | state of one client: the objects that it sees, and the unseen ones |
// | `send_budget` | the byte budget of a client |
// | `notices` | messages about the client's own session |
// | `own_position`, `own_speed` | exact positions and the speed of the client's own object |
// | `sent_log`, `resume_buffer` | recent messages, and what a client missed while its connection was lost |
// | `message_list` | a list of encoded messages |
// | `counters` | messages and bytes sent, by kind |
// | `plugin` | the systems |
// | `throng_protocol` | `Mirror`, a client in memory; `Predictor`, prediction of the client's own object; `ServerClock`, estimate of the server's tick |

mod announce;
mod attribute_set;
mod client;
mod client_objects;
mod counters;
mod kept_objects;
mod masks;
mod membership;
mod message_list;
mod motion;
mod notices;
mod own_position;
mod own_speed;
mod pending_updates;
mod plugin;
mod resume_buffer;
mod scene_messages;
mod send_budget;
mod sent_log;
mod unseen;

pub use client::CLIENT_STATE_BYTES;
pub use counters::{SentCount, SentCounters};
#[doc(hidden)]
pub use masks::{SlotMasks, bits};
pub use membership::{AUDIENCES_MAX, Membership};
pub use plugin::{
    AnnouncementRequest, AnnouncementScope, AnnouncementSent, AttributeSpec, Attributes, Audience,
    AudienceAppExt, AudienceError, DirtyMasks, FOREIGN_SCENE, ForeignMembers, MaskSlot,
    PendingReplication, RegisterError, Replicate, ReplicateAppExt, SaveFailed, SaveRequest,
    SendRate, SyncPlugin, SyncSettings, SyncStats, SyncSystems, compare_mirror,
    compare_mirror_exactly, full_save_request, party_values, pending_replication, save_all,
};
pub use throng_protocol::mirror::{
    AttributeValues, Mirror, MirrorError, MirrorObject, MirrorUnseenObject, OwnPosition,
};
pub use throng_protocol::predictor::{Correction, Predictor, UNHANDLED_MAX};
pub use throng_protocol::server_clock::{CLOCK_SAMPLES, ServerClock};
