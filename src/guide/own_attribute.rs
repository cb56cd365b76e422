//! Your own attribute: a component that clients learn of, that is saved, and that counts as state.
//!
//! An attribute is a component with a name, a number, an *encoding* (its bytes in packets), an *audience* (who may learn of
//! it) and a *cadence* (how often it is looked at). Derive [`Replicate`](crate::sync::Replicate); for one field of several, or
//! a value that has to be computed, call [`replicate_field`](crate::sync::ReplicateAppExt::replicate_field):
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use glam::Vec2;
//! use throng::prelude::*;
//!
//! #[derive(Component, Replicate, StateHashed)]
//! #[replicate(audience = Audience::OWNER, persist)]
//! struct Gold(u16);
//!
//! let mut server = Server::builder()
//!     .plugins(|app: &mut bevy_app::App| {
//!         app.replicate::<Gold>().hash_component::<Gold>("gold");
//!     })
//!     .build();
//! let scene = open_scene(server.world_mut(), SceneSpec::default(), ())?;
//! let place = (Object::in_scene(scene), Position(Vec2::splat(10.0)));
//! let player = server.world_mut().spawn((Player, PlayerId(1), place, Gold(5))).id();
//! server.step(1);
//!
//! // Bevy's change detection finds what was written, wherever that was; nothing is told twice.
//! server.world_mut().get_mut::<Gold>(player).unwrap().0 += 10;
//! let before = server.state_hash();
//! server.world_mut().get_mut::<Gold>(player).unwrap().0 += 1;
//! assert_ne!(server.state_hash(), before);
//! server.step(1);
//! # Ok::<(), throng::world::WorldError>(())
//! ```
//!
//! * **Audiences** can be joined (`Audience::OWNER.or(Audience::PARTY)`), and an embedder has up to four of its own
//!   ([`AudienceAppExt`](crate::sync::AudienceAppExt)). Viewers and team mates learn of what they see; a party of its
//!   members wherever they are; `SCENE` reaches all in the scene.
//! * **Saving**: what is `persistent()` comes back as [`SaveRequest`](crate::sync::SaveRequest) when it changed, looked at
//!   every [`save_every_ticks`](crate::sync::SyncSettings), and of an object that goes away. Before a server ends, despawn
//!   its objects and do one more tick: that asks for whatever is left. A store that could not keep it answers with
//!   [`SaveFailed`](crate::sync::SaveFailed). For one that is there already: [players that
//!   persist](super::players_that_persist).
//! * **Thousands of writes a tick**: mark them in [`DirtyMasks`](crate::sync::DirtyMasks) by hand, and nothing is scanned.
//! * **Said once**, such as damage or chat: [`Announce`](crate::sync::Announce).
//! * **In the state hash**: whatever the next tick depends on. Two servers that should be the same and differ in it are found
//!   at the first tick in which they do.
