//! What an embedder imports.

pub use crate::ThrongPlugins;
pub use crate::aoi::{
    AoiPlugin, Entered, InterestSpec, Left, PriorityChanged, SceneInterest, Sight, Ties, ViewCaps,
    ViewRules, ViewTag, Viewable, Viewer, hide_from, show_to,
};
pub use crate::inbox::{Inbox, InboxPlugin};
pub use crate::instance::{InstanceHost, InstanceModes, InstancePlugin, InstanceRules};
pub use crate::map::{MapEdited, MapPlugin, SceneMap, TileEdit, TileMap, TileRect, edit_map};
pub use crate::matchmaking::{MatchFormed, MatchmakingPlugin, QueueRequest, Ticket};
pub use crate::movement::{MovementPlugin, Speed, Walker};
pub use crate::nav::{NavPlugin, Path, PathClass, PathFailed, PathFound, PathRequest};
pub use crate::outbox::{Outbox, OutboxPlugin, Sink};
pub use crate::server::{Pace, Server};
pub use crate::session::{LoggedIn, LoggedOut, SessionPlugin, Sessions, control};
pub use crate::sim::{
    HashAppExt, Heartbeat, RandomStreams, SimPlugin, SimSystems, SimTick, StateHasher, Workers,
};
pub use crate::sync::{
    AttributeSpec, Audience, Cadence, DirtyMasks, MaskSlot, Replicate, ReplicateAppExt, SyncPlugin,
};
pub use crate::wire::{Encoding, Value};
pub use crate::world::{
    Despawned, Object, ObjectHashAppExt, ObjectKinds, PlayerId, Position, SceneSpec, Spawned,
    StateHashed, TeamId, WorldPlugin, change_scene, despawn_object, open_scene, spawn_object,
    teleport,
};
