//! The hot kernels of throng, one at a time, each with a fixed amount of work. `.ci/instructions` runs them under callgrind, which counts
//! the instructions of one thread. Times vary by a third from minute to minute, instruction counts by less than 1 %, so a kernel that gets
//! 5 % worse is detected.
//!
//! `throng-instructions` lists the kernels; `throng-instructions KERNEL` sets one up and runs its work once, inside [`run_counted`]. The
//! input is that of `throng bench` and `cargo bench`, at smaller sizes.

use std::hint::black_box;
use std::process::ExitCode;

use throng::aoi::ViewLinkMode;
use throng::matchmaking::{HeartbeatOutcome, Packing};
use throng::nav::{Algorithm, NavMap, PathSearch};
use throng::outbox::{Assembler, CountingSink, OutgoingBatch};
use throng::sync::{SlotMasks, SyncSettings};
use throng_aoi::workload::{CAP, HotSpot, Walkers};
use throng_matchmaking::workload::{PartyPowerSource, matcher_with_queue, tickets};
use throng_nav::workload::{queries, town};
use throng_net::outbox::workload::fill_batch;
use throng_net::workload::ConnectedCrowd;
use throng_scenario::crowd::{LOAD_WARM_UP_TICKS, add_load};
use throng_scenario::testing::TestServer;
use throng_scenario::walking_server::WalkingServer;

/// A prepared kernel. It returns a figure that proves that the work was done.
type Work = Box<dyn FnMut() -> u64>;

/// The kernels: name and set-up.
const KERNELS: [(&str, fn() -> Work); 11] = [
    ("nav_graph", || searches(Algorithm::JpsGraph)),
    ("nav_planes", || searches(Algorithm::JpsBitPrune)),
    ("aoi_directed", || walk(ViewLinkMode::Directed)),
    ("aoi_mutual", || walk(ViewLinkMode::Mutual)),
    ("aoi_hot_spot", || hot_spot(ViewLinkMode::Directed)),
    ("aoi_hot_spot_mutual", || hot_spot(ViewLinkMode::Mutual)),
    ("sync_masks", masks),
    ("sync_tick", replicate),
    ("outbox_packets", packets),
    ("net_tick", datagrams),
    ("matchmaking_heartbeat", heartbeat),
];

/// The whole tick.
const TICK: (&str, fn() -> Work) = ("tick", tick);

fn main() -> ExitCode {
    let mut kernels = KERNELS.iter().chain([&TICK]);
    let Some(name) = std::env::args().nth(1) else {
        kernels.for_each(|(name, _)| print_line(name));
        return ExitCode::SUCCESS;
    };
    let Some((_, set_up)) = kernels.find(|(kernel, _)| *kernel == name) else {
        print_line(&format!(
            "unknown kernel `{name}`; run without an argument for a list"
        ));
        return ExitCode::FAILURE;
    };
    let done = run_counted(&mut set_up());
    print_line(&format!("{name}: {done}"));
    if done == 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn print_line(line: &str) {
    println!("{line}");
}

/// Callgrind counts the instructions of this function only.
#[inline(never)]
fn run_counted(work: &mut Work) -> u64 {
    black_box(work())
}

fn searches(algorithm: Algorithm) -> Work {
    let map = town(512).expect("the recipe makes a map");
    let queries = queries(&map, 64, 1);
    let mut nav_map = NavMap::default();
    nav_map.prepare(&map, algorithm);
    let (mut search, mut waypoints) = (PathSearch::new(), Vec::new());
    let mut all = move || {
        let answers = queries.iter().map(|&query| {
            black_box(search.find(&map, &nav_map, algorithm, query, &mut waypoints));
            waypoints.len() as u64
        });
        answers.sum()
    };
    all();
    Box::new(all)
}

fn walk(sight: ViewLinkMode) -> Work {
    let mut walkers = Walkers::new(2_000, 1_000.0, 0.25);
    let mut views = walkers.views(sight, CAP);
    let mut events = Vec::new();
    let mut tick = move || {
        walkers.walk();
        walkers.locate(&mut views);
        events.clear();
        views.update(u32::MAX, &mut events);
        views.link_count() as u64
    };
    (0..5).for_each(|_| _ = tick());
    Box::new(move || (0..20).map(|_| tick()).sum())
}

fn hot_spot(sight: ViewLinkMode) -> Work {
    let mut spot = HotSpot::new(1_000, 20);
    let mut views = spot.views(sight);
    let mut events = Vec::new();
    let mut tick = move || {
        spot.walk();
        spot.locate(&mut views);
        events.clear();
        views.update(1_024, &mut events);
        views.link_count() as u64
    };
    (0..5).for_each(|_| _ = tick());
    Box::new(move || (0..20).map(|_| tick()).sum())
}

fn masks() -> Work {
    const OBJECTS: u32 = 10_000;
    let mut masks = SlotMasks::new(1);
    masks.grow(OBJECTS as usize);
    Box::new(move || {
        let mut seen = 0;
        for round in 0..200 {
            for object in (0..OBJECTS).step_by(100) {
                masks.mark(object, black_box((object + round) % 64));
            }
            masks.drain(|_, mask| {
                seen += mask
                    .iter()
                    .map(|word| u64::from(word.count_ones()))
                    .sum::<u64>();
                mask.fill(0);
            });
        }
        seen
    })
}

fn replicate() -> Work {
    let mut server = WalkingServer::new(2_000, 200, 447.0, SyncSettings::default())
        .expect("the scene has room for all objects");
    (0..20).for_each(|_| _ = server.step());
    Box::new(move || {
        (0..10).for_each(|_| _ = server.step());
        server.stats().0.links
    })
}

fn packets() -> Work {
    let mut batch = OutgoingBatch::default();
    fill_batch(&mut batch, 1, 2_000, 200, 97);
    let (mut assembler, mut sink) = (Assembler::default(), CountingSink::default());
    Box::new(move || {
        let updates = batch.parts.iter().flat_map(|part| part.updates());
        let made = updates.map(|update| {
            let written = assembler.write_update(batch.tick, update, &batch.shared, &mut sink);
            written.messages
        });
        made.sum()
    })
}

fn datagrams() -> Work {
    let mut crowd = ConnectedCrowd::new(200, Some(10));
    let mut tick = move || {
        crowd.send();
        crowd.run_clients();
        crowd.receive()
    };
    (0..30).for_each(|_| _ = tick());
    Box::new(move || (0..10).map(|_| tick()).sum())
}

fn heartbeat() -> Work {
    const PARTIES: u32 = 2_000;
    let tickets = tickets(PARTIES, PartyPowerSource::Skill);
    let mut matcher =
        matcher_with_queue(Packing::Windows, PARTIES, &tickets).expect("the settings are valid");
    Box::new(move || {
        let mut beat = HeartbeatOutcome::default();
        matcher.run_heartbeat(10, &mut beat);
        beat.matches.len() as u64
    })
}

fn tick() -> Work {
    let mut server = TestServer::builder().build();
    add_load(server.world_mut(), 500).expect("the load is within limits");
    server.step(LOAD_WARM_UP_TICKS);
    Box::new(move || {
        server.step(20);
        server.tick()
    })
}
