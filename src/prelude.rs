//! What an embedder imports, by module: `use throng::prelude::*;`.
//!
//! What is typed first in a server of one's own: plugins, settings, scenes and objects, what happens to them, and what one sets.
//! Whatever is rarer stands flat in its module.

pub use crate::ThrongPlugins;
pub use crate::aoi::{
    AoiPlugin, AoiSettings, AoiStats, Entered, InterestSpec, LeaveReason, Left, PriorityChanged,
    SceneInterest, Sight, Ties, ViewCaps, ViewRules, ViewTag, ViewTraits, Viewable, Viewer, Views,
    end_exception, hide_from, show_to,
};
pub use crate::directory::{
    Directory, DirectoryPlugin, DirectorySettings, LeaseLost, PlayerLoaded, PlayerRefused,
    PlayersSaved, Transfer,
};
pub use crate::inbox::{Inbox, InboxPlugin, InboxSettings};
pub use crate::instance::{
    InstanceEnded, InstanceHost, InstanceModes, InstanceOpened, InstancePlugin, InstanceRules,
    InstanceSettings, Instances, PlayerEntered, PlayerReturned, end_instance, leave_instance,
};
pub use crate::map::{MapEdited, MapPlugin, SceneMap, TileEdit, TileMap, TileRect, edit_map};
pub use crate::matchmaking::{
    BackfillRequest, CancelRequest, MatchFilled, MatchFormed, Matchmaker, MatchmakingPlugin,
    MatchmakingSettings, ModeId, QueueMode, QueueRequest, Ticket, TicketParty, TicketPlayer,
    TicketRefused,
};
pub use crate::movement::{
    Arrived, Follows, MoveRefused, MovementPlugin, MovementSettings, Speed, Walker,
};
pub use crate::nav::{
    NavPlugin, NavSettings, NavStats, Path, PathClass, PathFailed, PathFound, PathRequest,
};
pub use crate::outbox::{MemorySink, Outbox, OutboxPlugin, OutboxSettings, Sink};
pub use crate::server::{Pace, Server};
pub use crate::session::{
    AdmissionClass, Authentication, Authenticator, ClientMessageAppExt, ClientMessageType,
    Connected, ControlledBy, DisconnectReason, FromClient, LinkDead, LinkLost, LoggedIn, LoggedOut,
    LoginAnswer, LoginAsked, LogoutReason, PlayerAsked, PlayerInput, PlayerRequest, Resumed,
    SessionKey, SessionPlugin, SessionSettings, SessionState, Sessions, TransportClaims,
    TransportHandle, connect, control, disconnect,
};
pub use crate::sim::{
    HashAppExt, Heartbeat, HeartbeatSystems, LoadMeasure, Overload, OverloadChanged, OverloadLevel,
    OverloadSettings, RandomStreams, SimPlugin, SimSettings, SimSystems, SimTick, StateHasher,
    Workers,
};
pub use crate::sync::{
    Announce, AnnounceScope, AttributeSpec, Audience, AudienceAppExt, Cadence, DirtyMasks,
    MaskSlot, Membership, Mirror, Predictor, Replicate, ReplicateAppExt, SaveFailed, SaveRequest,
    ServerClock, SyncPlugin, SyncSettings,
};
pub use crate::wire::{Channel, ClientId, ClientMessage, CloseReason, Encoding, Value};
pub use crate::world::{
    Despawned, Floor, GuildId, Heading, KindClass, KindId, Npc, Object, ObjectCommandsExt,
    ObjectHashAppExt, ObjectId, ObjectKind, ObjectKinds, ObjectRef, Parties, PartyId, Player,
    PlayerId, Players, Position, Scene, SceneChanged, SceneClosed, SceneId, SceneOpened, SceneSpec,
    Scenes, SpawnRefused, Spawned, StateHashed, TeamId, Teleported, Velocity, Visibility,
    WorldError, WorldPlugin, change_scene, close_scene, despawn_object, join_party, leave_party,
    open_scene, spawn_object, teleport,
};
