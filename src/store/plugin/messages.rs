//! Messages of the directory: requests and facts.

use bevy_ecs::prelude::*;
use throng_store::{CachedPlayer, PlayerRecord, PlayerStoreError};

use crate::wire::ClientId;
use crate::world::PlayerId;

/// A player that logged in is this server's, and this is what is kept of it: the game spawns its object now. Follows
/// [`LoggedIn`](crate::session::LoggedIn) in the same tick at the earliest.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLoaded {
    /// The session by which it plays.
    pub client: ClientId,
    /// What is kept of it; [`is_new`](PlayerRecord::is_new) when that is nothing.
    pub record: PlayerRecord,
}

/// The record of a player that logged in cannot be had. Its session was ended.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLoadFailed {
    /// The session that was.
    pub client: ClientId,
    /// Who is refused.
    pub player: PlayerId,
    /// Why.
    pub error: PlayerStoreError,
}

/// A player is not this server's any more. If it was here, its session was ended and its object despawned; it may also have
/// left before, with its last values still to be saved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLost {
    /// Who is gone.
    pub player: PlayerId,
    /// Whether what was not saved of it is still going to be, unless another server has it by then: its lease ran out, for the
    /// store could not be reached. Else another server has it, or somebody that it dealt with, and nothing more is saved.
    pub is_save_pending: bool,
}

/// A transaction is on disk.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayersSaved {
    /// The tick whose saves it ended with: all of this and of earlier ticks are on disk now.
    pub tick: u64,
    /// The players that were saved, with their revisions now.
    pub revisions: Vec<(PlayerId, u64)>,
}

/// Two players dealt with each other: items or money changed hands. Written in the tick in which the game changes their
/// components, before [`SyncSystems::Mark`](crate::sync::SyncSystems::Mark). Both are saved in this tick's transaction, or
/// neither is; [`PlayersSaved`] of this tick says that they are.
///
/// Both must be here: check [`PlayerStore::is_live`](super::PlayerStore::is_live) before components change. If one is not, the deal is
/// refused: neither is saved, and the other one, whose components have changed, is logged out ([`LeaseLost`]). All that is exchanged has to be in attributes that
/// are persistent.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicSaveRequest {
    /// Who dealt.
    pub players: [PlayerId; 2],
}

/// Somebody wants to know of a player, here or elsewhere. Answered by [`PlayerLookupResult`], from the next tick on, within
/// [`load_timeout_ms`](crate::store::CacheSettings::load_timeout_ms).
///
/// "Show me that player", of whom another server saved a name, a level, power, a guild and gear:
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
/// let scene = open_scene(other.world_mut(), SceneSpec::default(), ())?;
/// let client = connect(other.world_mut(), ConnectionInfo::player(7).without_loading())?;
/// let transport = other.world().resource::<TransportHandle>().clone();
/// transport.receive(client, &ClientMessage::login(7).to_bytes())?;
/// other.step(2);
/// let gear = vec![3, 1, 4];
/// let zoe = Character { name: "Zoë".to_owned(), level: 12, power: 3_400, guild: 5, gear };
/// let place = (Object::in_scene(scene), Position::default());
/// other.world_mut().spawn((Player, PlayerId(7), ControlledBy::new(client), zoe, place));
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
    /// Of whom.
    pub player: PlayerId,
    /// A number of the asker's own, by which it knows the answer.
    pub request_id: u64,
}

/// What is known of a player that a [`PlayerLookup`] named: of one who is here what its components say now, of others what
/// the store had [`ttl_ms`](crate::store::CacheSettings::ttl_ms) ago at the earliest.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayerLookupResult {
    /// Of whom.
    pub player: PlayerId,
    /// The asker's number.
    pub request_id: u64,
    /// What is known; the error when it could not be had in time.
    pub result: Result<CachedPlayer, PlayerStoreError>,
}
