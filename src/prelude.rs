//! The names that most programs need: `use throng::prelude::*;`.
//!
//! At most 60, and none of them clashes with the preludes of Bevy or of the standard library. All other names are in their modules.

pub use crate::ThrongPlugins;
pub use crate::aoi::{
    AoiSettings, ViewEntered, ViewEntityCommandsExt, ViewLeft, ViewRules, ViewTag, Viewable,
    Viewer, Views,
};
pub use crate::instance::MatchModeAppExt;
pub use crate::map::{SceneMap, TileMap};
pub use crate::matchmaking::{MatchFormed, QueueRequest, Ticket};
pub use crate::movement::{AttachedTo, MaxSpeed, Walker, WalkerArrived};
pub use crate::nav::{NavPath, PathFailed, PathFound, PathRequest};
pub use crate::server::{Pace, Server};
pub use crate::session::{
    ClientMessageAppExt, ClientMessageType, ControlledBy, FromClient, LoggedIn, LoggedOut,
    SessionCommandsExt, Sessions,
};
pub use crate::sim::{RandomStreams, SimSystems, SimTick};
pub use crate::sync::{AnnouncementRequest, Audience, Replicate, ReplicateAppExt};
pub use crate::wire::ClientId;
pub use crate::world::{
    Heading, InScene, KindId, Npc, Object, ObjectCommandsExt, ObjectDespawned,
    ObjectEntityCommandsExt, ObjectRef, ObjectSpawned, Player, PlayerId, Position, SceneSpec,
    SimScene, StateHashed, TeamId, open_scene,
};
