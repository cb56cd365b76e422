//! Your own view rule: stealth, phases, fog, "only my quest's monsters".
//!
//! Without a rule a viewer sees all that is in the nine cells round its own, up to a cap for each class of kinds: own pet and
//! target first, then attackers, party, guild, team, others, and the near before the far.
//! [`ViewRules`](crate::aoi::ViewRules) on a scene say more, by two plain functions over what views read of an object:
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use glam::Vec2;
//! use throng::prelude::*;
//!
//! /// The first word of a tag: how well somebody hides, and in the second how well it looks.
//! const STEALTH: ViewRules = ViewRules {
//!     allows: Some(|viewer, target| viewer.tag[1] >= target.tag[0] || viewer.party != 0 && viewer.party == target.party),
//!     class: None,
//! };
//!
//! let mut server = Server::builder().build();
//! let scene = open_scene(server.world_mut(), SceneSpec::default(), STEALTH)?;
//! let place = || (Object::in_scene(scene), Position(Vec2::splat(10.0)));
//! let thief = server.world_mut().spawn((Player, place(), ViewTag([3, 0]))).id();
//! let guard = server.world_mut().spawn((Player, place(), ViewTag([0, 2]))).id();
//! server.step(1);
//! let sees = |server: &mut Server| {
//!     let mut views = bevy_ecs::system::SystemState::<Views>::new(server.world_mut());
//!     views.get(server.world()).map(|views| views.sees(guard, thief))
//! };
//! assert!(!sees(&mut server)?);
//!
//! // A changed tag announces itself; its pairs are judged anew in the same tick.
//! server.world_mut().entity_mut(guard).insert(ViewTag([0, 3]));
//! server.step(1);
//! assert!(sees(&mut server)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * For one pair, whatever the rule says: [`show_to`](crate::aoi::show_to), [`hide_from`](crate::aoi::hide_from).
//! * For everybody: `Viewable::hidden`; by layers: `Viewable::layers` and `Viewer::sees`.
//! * Who sees whom: the parameter [`Views`](crate::aoi::Views); what begins and ends:
//!   [`Entered`](crate::aoi::Entered) and [`Left`](crate::aoi::Left), as messages or by an observer on the viewer.
//! * A rule is called from several threads and must answer the same for the same traits, so it is a function and no closure.
//! * Without a rule a pair costs one branch more, with one a call. A ranking of your own (`class`) passes nobody over: expect
//!   a few times the work in a crowd.
