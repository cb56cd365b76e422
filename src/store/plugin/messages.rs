//! Messages of the player store: requests and facts.

use bevy_ecs::prelude::*;
use throng_store::{CachedPlayer, PlayerRecord, PlayerStoreError};

use crate::wire::ClientId;
use crate::world::PlayerId;

/// A player that logged in is leased by this server, and its record was loaded: the game spawns its object now. Follows
/// [`LoggedIn`](crate::session::LoggedIn) in the same tick at the earliest.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use glam::Vec2;
/// # use throng::prelude::*;
/// use throng::store::PlayerLoaded;
///
/// #[derive(Resource)]
/// struct Town(Entity);
///
/// fn welcome(mut loaded: MessageReader<PlayerLoaded>, town: Res<Town>, mut commands: Commands) {
///     for PlayerLoaded { client_entity, record, .. } in loaded.read() {
///         let place = (InScene(town.0), Position(Vec2::splat(10.0)));
///         commands.spawn((Player, record.player, ControlledBy(*client_entity), place));
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLoaded {
    /// The session of the player.
    pub client: ClientId,
    /// The entity of the session.
    pub client_entity: Entity,
    /// The stored record; [`is_new`](PlayerRecord::is_new) if there is none.
    pub record: PlayerRecord,
}

/// The record of a player that logged in could not be loaded. Its session was ended.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::store::PlayerLoadFailed;
///
/// fn report(mut failed: MessageReader<PlayerLoadFailed>) {
///     for failed in failed.read() {
///         println!("player {} was not loaded: {}", failed.player.0, failed.error);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLoadFailed {
    /// The ended session.
    pub client: ClientId,
    /// The player.
    pub player: PlayerId,
    /// Why.
    pub error: PlayerStoreError,
}

/// This server has lost the lease of a player. If the player was here, its session was ended and its object despawned; it may
/// also have left before, with its last changes still unsaved.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::store::LeaseLost;
///
/// fn report(mut lost: MessageReader<LeaseLost>) {
///     for lost in lost.read() {
///         println!("player {} is on another server", lost.player.0);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLost {
    /// The player.
    pub player: PlayerId,
    /// Whether unsaved changes will still be saved, unless another server gets the player before: the lease expired because the
    /// store could not be reached. If `false`, another server has this player, or one that it made a transfer with, and nothing
    /// more is saved.
    pub is_save_pending: bool,
    /// Whether its own lease was lost: another server has taken the player. Otherwise the lease expired, or a save was refused.
    pub is_taken: bool,
}

/// A transaction is on disk.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::store::PlayersSaved;
///
/// fn report(mut saved: MessageReader<PlayersSaved>) {
///     for saved in saved.read() {
///         println!("{} players as of tick {} are on disk", saved.revisions.len(), saved.tick);
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayersSaved {
    /// The newest tick in the transaction: all saves of this and of earlier ticks are on disk.
    pub tick: u64,
    /// The players that were saved, with their new revisions.
    pub revisions: Vec<(PlayerId, u64)>,
}

/// Two players made a transfer: items or money changed hands. Write it in the tick in which the game changes their components,
/// before [`SyncSystems::Mark`](crate::sync::SyncSystems::Mark). Both are saved in this tick's transaction, or neither is;
/// [`PlayersSaved`] of this tick confirms it.
///
/// Both must be here: check [`PlayerStore::is_live`](super::PlayerStore::is_live) before components change. If one is not, the
/// transfer is refused: neither is saved, and the other one, whose components have changed, is logged out ([`LeaseLost`]).
/// Everything that is transferred must be in persistent attributes.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::store::AtomicSaveRequest;
///
/// /// After a trade: both players are saved, or neither.
/// fn save(mut requests: MessageWriter<AtomicSaveRequest>) {
///     requests.write(AtomicSaveRequest { players: [PlayerId(7), PlayerId(8)] });
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicSaveRequest {
    /// The players of the transfer.
    pub players: [PlayerId; 2],
}

/// Requests the data of a player, on this server or elsewhere. The reply is a [`PlayerLookupResult`], from the next tick on,
/// within [`load_timeout_ms`](crate::store::CacheSettings::load_timeout_ms).
///
/// An example that shows a player whose name, level, power, guild and gear were saved by another server:
///
/// ```
/// use std::time::Duration;
///
/// use bevy_app::App;
/// use bevy_ecs::prelude::*;
/// use throng::store::{PlayerLookupResult, PlayerLookup, MemoryDisk, StoreReplyMode, close_player_store};
/// use throng::prelude::*;
/// use throng::session::{ConnectionInfo, TransportHandle, connect};
/// use throng::store::{PlayerStore, PlayerStorePlugin, PlayerStoreSettings};
/// use throng::sync::AttributeSpec;
/// use throng::wire::{ClientMessage, Encoding};
/// use throng::wire::AttributeValue;
///
/// #[derive(Component)]
/// struct Character { name: String, level: u8, power: u32, guild: u64, gear: Vec<u8> }
///
/// const TEXT: Encoding = Encoding::Bytes { max: 24 };
/// const NAME: AttributeSpec = AttributeSpec::new("name", 40, TEXT);
/// const LEVEL: AttributeSpec = AttributeSpec::new("level", 41, Encoding::U8);
/// const POWER: AttributeSpec = AttributeSpec::new("power", 42, Encoding::Varint);
/// const GUILD: AttributeSpec = AttributeSpec::new("guild", 43, Encoding::Varint);
/// const GEAR: AttributeSpec = AttributeSpec::new("gear", 44, TEXT);
///
/// fn register(app: &mut App) {
///     app.replicate_field(NAME.persistent(), |of: &Character| AttributeValue::from(of.name.as_str()))
///         .replicate_field(LEVEL.persistent(), |of: &Character| of.level)
///         .replicate_field(POWER.persistent(), |of: &Character| of.power)
///         .replicate_field(GUILD.persistent(), |of: &Character| of.guild)
///         .replicate_field(GEAR.persistent(), |of: &Character| AttributeValue::from(&of.gear[..]));
/// }
///
/// fn game(server: &str, disk: &MemoryDisk) -> Server {
///     let settings = PlayerStoreSettings {
///         server: server.to_owned(),
///         reply_mode: StoreReplyMode::NextTick,
///         ..PlayerStoreSettings::default()
///     };
///     let mut server = Server::builder()
///         .plugins((PlayerStorePlugin, move |app: &mut App| {
///             register(app);
///             app.insert_resource(settings.clone());
///         }))
///         .build();
///     let mut directory = server.world_mut().resource_mut::<PlayerStore>();
///     directory.open(disk.clone()).unwrap();
///     server
/// }
///
/// // Somebody plays elsewhere, and goes.
/// let disk = MemoryDisk::default();
/// let mut other = game("town-1", &disk);
/// let scene = other.world_mut().spawn(SceneSpec::default()).id();
/// let client = connect(other.world_mut(), ConnectionInfo::player(7).without_loading())?;
/// let transport = other.world().resource::<TransportHandle>().clone();
/// transport.receive(client, &ClientMessage::login(7).to_bytes())?;
/// other.step(2);
/// let gear = vec![3, 1, 4];
/// let zoe = Character { name: "Zoë".to_owned(), level: 12, power: 3_400, guild: 5, gear };
/// let place = (InScene(scene), Position::default());
/// let session = other.world().resource::<Sessions>().client_entity(client).expect("it is open");
/// other.world_mut().spawn((Player, PlayerId(7), ControlledBy(session), zoe, place));
/// other.step(1);
/// assert!(close_player_store(other.world_mut(), Duration::from_secs(10)));
///
/// // Somebody here wants to know who that is.
/// let mut server = game("town-2", &disk);
/// let (player, number) = (PlayerId(7), 1);
/// server.world_mut().write_message(PlayerLookup { player, request_id: number });
/// server.step(2);
/// let answers = server.world().resource::<Messages<PlayerLookupResult>>();
/// let answer = answers.iter_current_update_messages().next().expect("the store answered");
/// let known = answer.result.clone()?.record.expect("there is such a player");
/// let value = |spec: AttributeSpec| known.value(spec.id, spec.encoding).expect("it was kept");
/// let (AttributeValue::Bytes(name), AttributeValue::Bytes(gear)) = (value(NAME), value(GEAR)) else { panic!() };
/// let count = |spec: AttributeSpec| known.count(spec.id, spec.encoding).expect("it was kept");
/// let shown = format!(
///     "{}, level {}, power {}, of guild {}, wears {:?}",
///     String::from_utf8_lossy(&name), count(LEVEL), count(POWER), count(GUILD), &gear[..]
/// );
/// println!("{shown}");
/// assert_eq!(shown, "Zoë, level 12, power 3400, of guild 5, wears [3, 1, 4]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerLookup {
    /// The player.
    pub player: PlayerId,
    /// An id that the caller chooses; the reply contains it.
    pub request_id: u64,
}

/// The result of a [`PlayerLookup`]. For a player on this server: the current values of its components. For others: what the
/// store had, at most [`ttl_ms`](crate::store::CacheSettings::ttl_ms) ago.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng::store::PlayerLookupResult;
///
/// fn log(mut results: MessageReader<PlayerLookupResult>) {
///     for it in results.read() {
///         match &it.result {
///             Ok(found) if found.record.is_some() => println!("player {}: {} ms old", it.player.0, found.age_ms),
///             Ok(_) => println!("no player {}", it.player.0),
///             Err(error) => println!("player {}: {error}", it.player.0),
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLookupResult {
    /// The player.
    pub player: PlayerId,
    /// The id of the lookup.
    pub request_id: u64,
    /// The data, or the error if it could not be loaded in time.
    pub result: Result<CachedPlayer, PlayerStoreError>,
}
