//! Replication compared with `bevy_replicon`.
//!
//! ```text
//! walkers ─▶ throng, everything sent ─┬─▶ packets ─▶ mirrors ─▶ Script: positions, and pairs that enter and leave
//!                                     │                            │
//!                                     │                            └─▶ bevy_replicon ─▶ messages ─▶ read and compared
//!         ─▶ throng, reckoned ────────┴─▶ packets ─▶ mirrors
//! ```
//! The objects that throng's clients know after each tick, taken from their mirrors, are those that `bevy_replicon`'s clients may see in
//! that tick; a client's own object is among them. Positions are bitwise equal. Both sides run on one thread, one after the other, without
//! a network. Asserted: in every tick each client gets the position of every object that it sees exactly once, on both sides;
//! `bevy_replicon`'s messages contain the script's positions, and throng's mirrors differ from them by at most the rounding of the wire
//! format.
//!
//! Timed, in CPU time of the thread (in wall time a busy machine would slow down the longer ticks more): from the changes to the bytes for
//! a transport. For throng these are the sets from the collection to the sink, which copies the packets into a buffer; for `bevy_replicon`
//! it is `ServerSystems::Send`, from the change detection to `ServerMessages`. Packets and messages with positions have at most 1,200
//! bytes. Deciding what a client sees is timed for neither: throng's views are another system, and the peer's `ClientVisibility` is set
//! between ticks. Throng's reading of view lists is timed; `bevy_replicon`'s handling of acknowledgements is not, which would add 2 to 8 %.
//!
//! Differences between the two sides:
//! - `bevy_replicon` tracks which client has acknowledged what, and retransmits until then; throng does not resend a lost
//!   position, because newer ones follow. Nothing is lost here: each client acknowledges what it received before the next tick, with
//!   the bytes that the real client sends, and when nothing moves nothing is sent.
//! - Its positions are two floats of 32 bits: 8 bytes, or 12 with the entity, the length and the component. Throng's motion has
//!   the position in 1/64 m, the velocity, the heading and the tick. Throng's packets include their number; `bevy_replicon` leaves
//!   packet headers to the transport.
//! - `bevy_replicon` replicates any registered component, and stores what is *hidden* from each client; throng has one message
//!   for motion, and stores what each client knows. The heap is that of the whole app: throng's includes the views, the
//!   peer's nothing that would compute visibility.
//! - With dead reckoning, throng sends less on purpose: motion that clients predict within 5 cm is not sent, and objects farther
//!   than 20 m at most every second tick. The peer has no dead reckoning, and its rates (`ReplicatePriority`) keep their defaults:
//!   its side is the same in both cases.

mod replicon;
mod spent;
mod walk;

use std::time::Duration;

use glam::Vec2;
use throng::sync::SyncSettings;

use crate::Row;
use crate::heap::allocated_bytes;
use walk::Server;

/// Objects, clients and measured ticks.
const SIZES: [(u32, u32, u32); 2] = [(2_000, 100, 40), (10_000, 1_000, 16)];

/// Repetitions; the minimum time of each tick counts, for both sides.
const ROUNDS: usize = 3;

/// Ticks until all views are full: a client learns a limited number of objects per tick.
const WARM_UP_TICKS: u32 = 60;

/// Maximum error of a mirror when everything is sent: half of the wire's 1/64 m on each axis, and the rounding of floats.
const OFF_M: f32 = 0.012;

/// Maximum p99 error with dead reckoning, for objects within [`SyncSettings::full_rate_distance_m`].
const RECKONED_OFF_P99_M: f32 = 0.1;

/// A client and an object, by index from 0. A client controls the object with its own index.
type Pair = (u32, u32);

/// The input of both sides.
pub struct Script {
    pub clients: u32,
    /// Positions before the first tick.
    pub positions: Vec<Vec2>,
    /// Pairs whose client knows the object before the first tick.
    pub known: Vec<Pair>,
    pub ticks: Vec<Tick>,
}

/// A tick of the script.
pub struct Tick {
    pub positions: Vec<Vec2>,
    /// Pairs whose client starts to know the object.
    pub entered: Vec<Pair>,
    /// Pairs whose client forgets the object.
    pub left: Vec<Pair>,
}

/// The result of a side over all ticks.
#[derive(Clone, Default)]
pub struct Played {
    /// The time of replication in each tick.
    pub took: Vec<Duration>,
    /// Known pairs, summed over the ticks.
    pub links: u64,
    /// Positions sent for objects that the client already knew; `enters` counts those of new objects.
    pub moves: u64,
    pub enters: u64,
    pub bytes: u64,
    /// Heap bytes in use at the end; only of the peer.
    pub heap_bytes: usize,
}

impl Played {
    /// Takes the smaller time of each tick of two repetitions, whose results must be equal.
    fn keep_min(&mut self, other: &Self) {
        assert_eq!(
            (self.links, self.moves, self.enters, self.bytes),
            (other.links, other.moves, other.enters, other.bytes),
            "every round has the same result"
        );
        for (least, &took) in self.took.iter_mut().zip(&other.took) {
            *least = took.min(*least);
        }
    }

    fn ns(&self) -> f64 {
        self.took.iter().sum::<Duration>().as_nanos() as f64
    }
}

pub fn measure() -> Vec<Row> {
    SIZES
        .into_iter()
        .flat_map(|(objects, clients, ticks)| compare(objects, clients, ticks))
        .collect()
}

fn compare(objects: u32, clients: u32, ticks: u32) -> Vec<Row> {
    // The density of 10,000 objects in 1 km².
    let side_m = (objects as f32 / 10_000.0).sqrt() * 1_000.0;
    let everything = SyncSettings {
        motion_tolerance_m: 0.0,
        full_rate_distance_m: side_m * 2.0,
        bytes_per_client_s: u32::MAX / 2,
        ..SyncSettings::default()
    };
    let walk = |settings: &SyncSettings| Server::new(objects, clients, side_m, settings.clone());
    let reckoning = SyncSettings::default();
    let before = allocated_bytes();
    let heap_bytes = {
        let mut server = walk(&reckoning);
        for _ in 0..WARM_UP_TICKS {
            server.step();
            server.discard();
        }
        allocated_bytes() - before
    };
    let mut best: Option<[Played; 3]> = None;
    for _ in 0..ROUNDS {
        let (script, all, off) = walk(&everything).play(WARM_UP_TICKS, ticks);
        assert_eq!(all.moves + all.enters, all.links, "sent once a tick");
        assert_eq!(off.missed, 0, "every object is sent");
        assert!(off.max_m <= OFF_M, "position error of {} m", off.max_m);
        let (_, reckoned, off) = walk(&reckoning).play(WARM_UP_TICKS, ticks);
        assert_eq!(reckoned.links, all.links, "the views are equal");
        let p99_m = off.near_p99_m;
        assert!(p99_m <= RECKONED_OFF_P99_M, "p99 error of {p99_m} m");
        let peer = replicon::play(&script);
        assert_eq!(
            (peer.links, peer.moves, peer.enters),
            (all.links, all.moves, all.enters),
            "the same visibility, and the same positions sent"
        );
        let round = [all, reckoned, peer];
        match &mut best {
            Some(best) => best.iter_mut().zip(&round).for_each(|(a, b)| a.keep_min(b)),
            None => best = Some(round),
        }
    }
    let Some([all, reckoned, peer]) = best else {
        return Vec::new();
    };
    let row = |case: &str, values, unit| {
        let case = format!("{case}/{objects}x{clients}");
        Row::beside("sync", case, values, unit, "bevy_replicon")
    };
    let client_ticks = f64::from(clients) * f64::from(ticks);
    let mut rows = Vec::new();
    for (case, played) in [("everything sent", &all), ("reckoned", &reckoned)] {
        let mut beside = |what: &str, unit, of: &dyn Fn(&Played) -> f64| {
            rows.push(row(&format!("{case}{what}"), [of(played), of(&peer)], unit));
        };
        beside("", "ns/link", &|side| side.ns() / side.links as f64);
        beside(", a tick", "ms", &|side| side.ns() / 1e6 / f64::from(ticks));
        beside(", sent", "positions/client/tick", &|side| {
            (side.moves + side.enters) as f64 / client_ticks
        });
        beside(", bytes", "B/client/tick", &|side| {
            side.bytes as f64 / client_ticks
        });
    }
    let heap_mb = [heap_bytes, peer.heap_bytes].map(|bytes| bytes as f64 / 1e6);
    rows.push(row("heap", heap_mb, "MB"));
    rows
}
