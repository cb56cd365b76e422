//! Coming from `bevy_replicon` or `lightyear`.
//!
//! Both replicate a world to clients that run Bevy, too. throng replicates objects of scenes to clients of any make, through a
//! view that is bounded for each of them, and never holds more of a client than a list of what it knows.
//!
//! | there | here |
//! |---|---|
//! | `app.replicate::<C>()` | [`app.replicate::<C>()`](crate::sync::ReplicateAppExt) with `#[derive(Replicate)]`: an attribute has a name, a number and an encoding, since clients are not Rust |
//! | the `Replicated` marker | [`Object`](crate::world::Object) with [`Viewable`](crate::aoi::Viewable); [`Player`](crate::world::Player) and [`Npc`](crate::world::Npc) bring it |
//! | a client's visibility, rooms, interest groups | views are found from positions: [`Viewer`](crate::aoi::Viewer), [`ViewRules`](crate::aoi::ViewRules), [`show_to`](crate::aoi::show_to) and [`hide_from`](crate::aoi::hide_from) for exceptions |
//! | `SendMode`, send intervals | [`Cadence`](crate::sync::Cadence), and tiers of motion by distance |
//! | server and client events | [`Announce`](crate::sync::Announce) out; [`ClientMessage`](crate::wire::ClientMessage) in |
//! | entity mapping | an object has an id and a generation in its scene, the same for everybody |
//! | interpolation, prediction | the mirror reckons motion on; a [`Predictor`](crate::sync::Predictor) walks the own object ahead of the server |
//! | a transport that is built in | `net::listen`: UDP, sealed, by token; your own with a [`TransportHandle`](crate::session::TransportHandle) in and a [`Sink`](crate::outbox::Sink) out |
//! | any component of any entity | attributes of objects: numbers, or up to 255 bytes, by an [`Encoding`](crate::wire::Encoding) |
//!
//! What you gain: caps, priorities and byte budgets that hold in a crowd; the same state on any number of threads; scenarios
//! that compare what clients hold with what they may hold. What you lose: components as they are (a client gets attributes by number), and rollback of other
//! objects than the player's own; Bevy on the client's side is a plugin of the crate `throng_client`.
//! Where a world is small and all clients are Bevy, stay where you are.
