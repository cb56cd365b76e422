//! What an embedder imports, by module: `use throng::prelude::*;`.
//!
//! What is typed first in a server of one's own: plugins, settings, scenes and objects, what happens to them, and what one sets.
//! Whatever is rarer stands flat in its module.

pub use crate::ThrongPlugins;
pub use crate::aoi::{
    AoiPlugin, AoiSettings, AoiStats, SceneAoiSettings, SceneInterest, ViewCaps, ViewEntered,
    ViewEntityCommandsExt, ViewLeaveReason, ViewLeft, ViewLinkMode, ViewRelations,
    ViewRerankRequest, ViewRules, ViewTag, ViewTraits, Viewable, Viewer, Views,
    clear_view_exception, hide_from, show_to,
};
pub use crate::inbox::{Inbox, InboxPlugin, InboxSettings};
pub use crate::instance::{
    InstanceEnded, InstanceHost, InstanceModes, InstanceOpened, InstancePlayerEntered,
    InstancePlayerReturned, InstancePlugin, InstanceRules, InstanceSettings, Instances,
    end_instance, leave_instance,
};
pub use crate::map::{MapEdited, MapPlugin, SceneMap, TileEdit, TileMap, TileRect, edit_map};
pub use crate::matchmaking::{
    BackfillRequest, BackfillResult, CancelRequest, MatchFormed, MatchModeSettings, Matchmaker,
    MatchmakingPlugin, MatchmakingSettings, ModeId, QueueRequest, Ticket, TicketParty,
    TicketPlayer, TicketRefused,
};
pub use crate::movement::{
    AttachedTo, MaxSpeed, MoveRefused, MovementPlugin, MovementSettings, Walker, WalkerArrived,
};
pub use crate::nav::{
    NavPath, NavPlugin, NavSettings, NavStats, PathFailed, PathFound, PathRequest,
    SearchBudgetClass,
};
pub use crate::outbox::{MemorySink, Outbox, OutboxPlugin, OutboxSettings, PacketSink};
pub use crate::server::{Pace, Server};
pub use crate::session::{
    AdmissionClass, Authentication, Authenticator, AwaitingReconnect, ClientMessageAppExt,
    ClientMessageType, ConnectionInfo, ConnectionLost, ControlledBy, DisconnectReason, FromClient,
    LoggedIn, LoggedOut, LoginRequest, LoginResponder, LogoutReason, PlayerInput, PlayerRequest,
    PlayerRequestReceived, SessionCommandsExt, SessionKey, SessionPlugin, SessionResumed,
    SessionSettings, SessionState, Sessions, TransportHandle, VerifiedIdentity, connect, control,
    disconnect,
};
pub use crate::sim::{
    HashAppExt, Heartbeat, HeartbeatSystems, LoadMeasure, Overload, OverloadChanged, OverloadLevel,
    OverloadSettings, RandomStreams, SimPlugin, SimSettings, SimSystems, SimTick, StateHasher,
    Workers,
};
pub use crate::store::{
    AtomicSaveRequest, LeaseLost, PlayerLoadFailed, PlayerLoaded, PlayerStore, PlayerStorePlugin,
    PlayerStoreSettings, PlayersSaved,
};
pub use crate::sync::{
    AnnouncementRequest, AnnouncementScope, AttributeSpec, Audience, AudienceAppExt, DirtyMasks,
    MaskSlot, Membership, Mirror, Predictor, Replicate, ReplicateAppExt, SaveFailed, SaveRequest,
    SendRate, ServerClock, SyncPlugin, SyncSettings,
};
pub use crate::wire::{AttributeValue, Channel, ClientId, ClientMessage, CloseReason, Encoding};
pub use crate::world::{
    Floor, GuildId, Heading, KindId, Npc, Object, ObjectCategory, ObjectChangedScene,
    ObjectCommandsExt, ObjectDespawned, ObjectEntityCommandsExt, ObjectHashAppExt, ObjectId,
    ObjectKind, ObjectKinds, ObjectRef, ObjectSpawned, ObjectTeleported, Parties, PartyId, Player,
    PlayerId, Players, Position, SceneClosed, SceneId, SceneOpened, SceneSpec, Scenes, SimScene,
    SpawnRefused, StateHashed, TeamId, Velocity, ViewRange, WorldError, WorldPlugin, change_scene,
    close_scene, despawn_object, join_party, leave_party, open_scene, spawn_object, teleport,
};
