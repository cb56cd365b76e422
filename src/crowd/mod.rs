//! Synthetic players and NPCs: a load that behaves like a game.
//!
//! ```text
//!            ┌ players ─▶ connect, Login ─▶ Ingest ─▶ LoggedIn ─▶ object ─┐
//! CrowdSpec ─┤                                                            ├─▶ Behaviour ─▶ PathRequest ─▶ Path
//!            └ NPCs ─────────────────────────────────────────▶ object ────┘                               │
//!              synthetic client: Move, Face (encoded) ◀── its route ───────────────────────────────────────┘
//! ```
//! A synthetic player does everything by encoded messages that come in through `Ingest`, and nothing by touching state; it
//! borrows one thing, its route, from the server's navigator, since it has no map of its own. Its sending and its mirror's
//! decoding run outside the tick ([`FixedPreUpdate`](bevy_app::FixedPreUpdate) and
//! [`FixedPostUpdate`](bevy_app::FixedPostUpdate)), as a client's work does not burden a server. NPCs and attribute activity
//! are the server's own.
//!
//! Invariant: what an individual draws depends on the seed, its id and the tick alone, so that the order in which the ECS
//! stores individuals cannot show.

mod arrivals;
mod attributes;
mod behaviour;
mod clients;
mod commands;
mod line;
mod load;
mod lobby;
mod place;
mod plugin;
mod tickets;

pub use arrivals::{Arrivals, ArrivalsError, ArrivalsPlugin, cancel_oldest, queue_parties};
pub use attributes::{
    ATTRIBUTE_NAMES, Experience, Health, Level, Mana, Power, SCENE_ATTRIBUTE_NAMES, Weather,
    set_attribute, set_scene_attribute,
};
pub use behaviour::Behaviour;
pub use clients::{ClientsStats, SyntheticClients, mirror_errors};
pub use commands::{
    change_scene_of, despawn_some, login_some, logout_some, members, move_individual, send_home,
    set_attribute_of, set_behaviour, set_behaviour_of, set_team_of, teleport_some,
};
pub use line::{LINE_MS_MAX, LineSpec};
pub use load::{
    LOAD_PLAYERS_MAX, LOAD_WARM_UP_TICKS, LoadCensus, LoadError, add_load, load_census, load_npcs,
    load_side_tiles,
};
pub use place::CrowdArea;
pub use plugin::{
    CrowdId, CrowdPlugin, CrowdSpec, CrowdSystems, Crowds, Member, add_crowd, rest,
    spawn_individual,
};
pub use tickets::{ArrivalSpec, REGIONS_MAX};
