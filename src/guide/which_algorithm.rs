//! Which search to choose: almost always none, since the default is the fastest.
//!
//! All seven answer exactly, also right after an edit of the map; they differ in what they prepare. Set
//! [`NavSettings::algorithm`](crate::nav::NavSettings) only for a reason:
//!
//! | the map | choose | since |
//! |---|---|---|
//! | changes now and then | `jps-graph`, the default | successors of jump points are listed, and landmarks say how far a goal is; after an edit planes answer until the graph is built anew |
//! | changes every tick | `jps-bit-prune` | sign planes follow an edit in microseconds, and nothing is built in the background |
//! | is huge, memory is short | `jps-bit-prune` | the graph gives way by itself above `graph_bytes_per_tile_max` |
//! | any, to compare with | `astar` | the textbook, without a trick; slow |
//!
//! ```
//! use throng::nav::{Algorithm, NavMap, Outcome, Query, Search};
//! use throng::map::TileMap;
//! use glam::IVec2;
//!
//! // Without a server: one search on one map.
//! let map = TileMap::from_ascii("......\n.####.\n......")?;
//! let query = Query::new(IVec2::new(0, 1), IVec2::new(5, 1));
//! let mut tiles = Vec::new();
//! let found = Search::default().find(&map, &NavMap::default(), Algorithm::JpsBitPrune, query, &mut tiles);
//! assert!(matches!(found, Outcome::Found(path) if path.length_tiles() == 7.0));
//! # Ok::<(), throng::map::MapError>(())
//! ```
//!
//! In a server, a [`PathRequest`](crate::nav::PathRequest) on an entity is all: `PathClass::Npc` gives up after few nodes,
//! `PathClass::Travel` goes any way, sliced over ticks. `throng path --map FILE --scen FILE --algorithm all` times all of them
//! on your map, `throng bench nav` on a generated town.
