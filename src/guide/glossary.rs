//! Words that this crate uses, and what the field calls them elsewhere.
//!
//! | word | means |
//! |---|---|
//! | affiliation | the team, party and guild of an object |
//! | announcement | something told once and not kept: damage, chat, a cast |
//! | AOI, area of interest | the objects that a client is told of; here the *view* of its own object |
//! | attribute | a replicated value of an object or a scene |
//! | audience | who may learn of an attribute: its owner, viewers, team, party, guild, all in the scene |
//! | backfill | others who join a running match in the place of those who left |
//! | base | position, velocity and tick that a client *reckons* on from |
//! | capped | a search that was given up after a limit of nodes |
//! | cell | a square of the interest grid; nine of them are a view's range |
//! | cue | an entry of a scenario's script |
//! | directed, mutual | sight in which each end has a list of its own; in which a link needs both ends' consent |
//! | dirty mask | bits that say which attributes of an object changed |
//! | epoch | counts a client's changes of scene; packets of an older one are dropped |
//! | eviction | a link that gave way to one of higher rank |
//! | generation | tells two objects apart that had the same id, one after the other |
//! | heartbeat | every so many ticks: matches are made |
//! | follower | a server that shows another one's player, and is told of its saves for a time |
//! | fresh | young enough to be shown without asking the store again |
//! | instance | a match's own scene, with its players' way in and home |
//! | jump point | a tile where a shortest path may have to turn |
//! | link | one direction of "sees" |
//! | mirror | what a client knows, decoded from its packets |
//! | mode | a kind of match that parties wait for |
//! | peers | the other servers of the same store |
//! | reckoning | going on from a base by velocity until told otherwise; dead reckoning |
//! | remote | an object that a client is told of without seeing it: a party member elsewhere |
//! | revision | how often a player was saved; of two records the one with the higher revision is newer |
//! | scene | an independent space with a map and a grid of its own; elsewhere a zone, shard or map |
//! | set | a step of the tick: Ingest, Think, Navigate, Move, Locate, View, Heartbeat, Replicate, Send |
//! | sink | where packets go when they leave the server |
//! | snapshot | all that a client may know of an object, when it comes into sight |
//! | state hash | a fingerprint of all that decides over the next tick |
//! | sticky cell | one that is left only beyond a margin, so that nobody flickers at its edge |
//! | ticket | a party in a queue, with what it wishes for |
//! | tie | an object's owner or target, which ranks first in views |
//! | tile | a square of the obstacle map, free or blocked |
