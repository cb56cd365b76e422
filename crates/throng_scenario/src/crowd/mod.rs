//! Synthetic players and NPCs: a load that behaves like a game.
//!
//! ```text
//!            ┌ players ─▶ connect, Login ─▶ Ingest ─▶ LoggedIn ─▶ object ─┐
//! CrowdSpec ─┤                                                            ├─▶ Behaviour ─▶ PathRequest ─▶ NavPath
//!            └ NPCs ─────────────────────────────────────────▶ object ────┘                               │
//!              synthetic client: Move, Face (encoded) ◀── its route ───────────────────────────────────────┘
//! ```
//! A synthetic player acts only by encoded messages that come in through `Ingest`, and never changes state directly. Only its route
//! comes from the server's navigator, since the client has no map. Its sending and its mirror's decoding run outside the tick
//! ([`FixedPreUpdate`](bevy_app::FixedPreUpdate) and [`FixedPostUpdate`](bevy_app::FixedPostUpdate)), because the work of clients
//! is not part of the server's load. NPCs and attribute activity belong to the server.
//!
//! | file | holds |
//! |---|---|
//! | `attribute_changes.rs` | attribute activity without player input |
//! | `arrivals.rs` | parties without objects, which queue at a rate |
//! | `attributes.rs` | the attributes of characters and scenes that are sent to clients |
//! | `authenticator.rs` | the authenticator of synthetic players: classes, banned addresses |
//! | `behaviour/` | the behaviours of individuals, and the extension point for games |
//! | `clients.rs` | synthetic clients: login, sending, mirrors |
//! | `commands.rs` | commands of scripts for crowds |
//! | `crowds.rs` | crowds and their members |
//! | `network_conditions.rs` | simulated network conditions between the server and clients |
//! | `disconnects.rs` | lost connections, second logins, kicks, bans |
//! | `load.rs` | the load for measurements of the whole tick |
//! | `party_queueing.rs` | players of crowds that queue with their parties |
//! | `custom_attributes.rs` | attributes that a game names at run time |
//! | `area.rs` | areas, and free spots in them |
//! | `possession.rs` | players who control another object, or watch |
//! | `plugin.rs` | the plugin and its systems |
//! | `routes.rs` | progress of players along their routes |
//! | `spawn.rs` | adding crowds, spawning individuals |
//! | `synthetic.rs` | one synthetic client |
//! | `tickets.rs` | the tickets of synthetic parties |
//! | `trades.rs` | players that persist and trade with each other |
//!
//! Kind numbers in packets: 0 player, 1 npc, 2 pet, 3 boss, 4 door. Attribute numbers in packets ([`ATTRIBUTE_NUMBERS`]): 1 health,
//! 2 mana, 3 level, 4 power, 5 experience, 6 weather (an attribute of scenes). [`custom_attribute_id`] returns the numbers of
//! custom attributes.
//!
//! Invariant: what an individual draws depends on the seed, its id and the tick only. The order in which the ECS stores
//! individuals has no effect.

mod area;
mod arrivals;
mod attribute_changes;
mod attributes;
mod authenticator;
mod behaviour;
mod clients;
mod commands;
mod crowds;
mod custom_attributes;
mod disconnects;
#[cfg(any(test, feature = "bench"))]
mod load;
mod network_conditions;
mod party_queueing;
mod plugin;
mod possession;
mod routes;
mod spawn;
mod synthetic;
mod tickets;
mod trades;

pub use area::CrowdArea;
pub use arrivals::{ArrivalsError, ArrivalsPlugin, PartyArrivals, cancel_oldest, queue_parties};
pub use attributes::{
    ATTRIBUTE_NAMES, ATTRIBUTE_NUMBERS, Experience, Health, Level, Mana, Power,
    SCENE_ATTRIBUTE_NAMES, Weather, attribute, attribute_range, scene_attribute_range,
    set_attribute, set_scene_attribute,
};
pub use authenticator::CrowdAuthenticator;
pub use behaviour::{
    Behaviour, BehaviourRule, Chase, Commute, Flee, Gather, Idle, Patrol, Perception,
    PerceptionTarget, Wander,
};
pub use clients::{SyntheticClientStats, SyntheticClients, mirror_errors};
pub(crate) use clients::{has_logins_under_way, session_states};
pub use commands::{
    change_scene_of, despawn_some, hide_some, login_some, logout_some, members, move_individual,
    send_home, set_attribute_of, set_behaviour, set_behaviour_of, set_team_of, teleport_some,
};
pub use crowds::{CrowdId, CrowdMember, CrowdSpec, Crowds, halt_crowds};
pub use custom_attributes::{
    CUSTOM_ATTRIBUTES_MAX, CustomAttributeAppExt, CustomAttributeSpec, CustomAttributeTable,
    custom_attribute_id,
};
pub use disconnects::{ban_some, client_of, disconnect_some, duplicate_login_some, kick_some};
#[cfg(any(test, feature = "bench"))]
pub use load::{
    LOAD_PLAYERS_MAX, LOAD_SQUARE_M, LOAD_WARM_UP_TICKS, LoadCensus, LoadError, LoadLayout,
    add_load, add_load_as, load_census, load_npcs, load_side_tiles,
};
pub use network_conditions::{CrowdNetworkConditions, DELAY_MS_MAX};
pub use plugin::{CrowdPlugin, CrowdSystems};
pub use possession::{PossessionError, count_possessing, possess, release, spectate};
pub use spawn::{CROWDS_MAX, PLAYERS_MAX, add_crowd, spawn_individual};
pub use tickets::REGIONS_MAX;
pub(crate) use trades::TradeSystems;
pub use trades::{Inventory, START_COINS, START_ITEMS, TradePlugin};
