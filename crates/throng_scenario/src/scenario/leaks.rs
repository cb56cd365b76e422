//! Leak check: after the last tick all players and NPCs leave, all scenes close, and the server is dropped.
//!
//! ```text
//! start-up over ─▶ allocations are recorded ─▶ the run ─▶ expectations ─▶ all leave, scenes close ─▶ retained ─▶ the server is
//! dropped ─▶ leaked
//! ```
//! Most memory that is *retained* while the server still exists is capacity for later use; state retained per player that left
//! appears as many blocks of one function. *Leaked* memory outlives the server.

use serde::Serialize;

use throng::server::Server;

/// Allocations of one function that were not freed.
#[derive(Clone, Debug, Serialize)]
pub struct LeakedAllocations {
    /// Number of blocks.
    pub blocks: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// Thread number, in the order of the first allocation after start-up.
    pub thread: u32,
    /// The allocating function.
    pub function: String,
    /// Its callers, innermost first.
    pub callers: Vec<String>,
}

/// Unfreed allocations. The lists contain functions of this crate and the game only, largest first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LeakSummary {
    /// Bytes that were still allocated after all players had left, of all crates.
    pub retained_bytes: usize,
    /// The largest of them.
    pub retained: Vec<LeakedAllocations>,
    /// Probable state of players that left.
    pub per_player: Vec<LeakedAllocations>,
    /// Bytes that outlived the server, of all crates.
    pub outlived_bytes: usize,
    /// The part of them that belongs to this crate or the game.
    pub leaked: Vec<LeakedAllocations>,
    /// Blocks that were not tracked, because there were too many larger ones at once.
    pub untracked_blocks: u64,
    /// Whether inlined functions are known; if not, their allocations may be attributed to their callers, and so to Bevy.
    pub has_line_tables: bool,
}

/// From this number on, the blocks of one function count as state of players that left, not as capacity.
#[cfg(feature = "leak-track")]
const GROWING_BLOCKS: usize = 64;

/// Starts to track allocations.
pub(super) fn start_tracking() {
    #[cfg(feature = "leak-track")]
    throng::memory::track_leaks();
}

/// Runs `work` without tracking its allocations.
pub(super) fn without_tracking<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(feature = "leak-track")]
    return throng::memory::without_leak_tracking(work);
    #[cfg(not(feature = "leak-track"))]
    work()
}

/// Removes all objects, closes all scenes, drops the server, and returns unfreed allocations.
#[cfg(feature = "leak-track")]
pub(super) fn find_leaks(mut server: Server, quiet_ticks: u64) -> LeakSummary {
    use std::collections::BTreeMap;

    use crate::crowd::SyntheticClients;
    use throng::memory::{
        AllocationSite, allocation_sites, has_line_tables, stop_tracking_leaks,
        without_leak_tracking,
    };

    let leaked = |site: &AllocationSite| LeakedAllocations {
        blocks: site.blocks,
        bytes: site.bytes,
        thread: site.thread,
        function: site.function().unwrap_or("?").to_owned(),
        callers: site.functions.iter().take(CALLERS_SHOWN).cloned().collect(),
    };
    close_sessions_and_scenes(&mut server);
    server.step(quiet_ticks);
    // The mirrors of synthetic clients are not state of the server.
    let mut clients = server.world_mut().resource_mut::<SyntheticClients>();
    clients.clear_mirrors();
    let retained = without_leak_tracking(allocation_sites);
    drop(server);
    without_leak_tracking(|| {
        let left = allocation_sites();
        stop_tracking_leaks();
        let ours = |sites: &[AllocationSite]| -> Vec<AllocationSite> {
            let ours = sites.iter().filter(|site| site.is_own_code());
            ours.cloned().collect()
        };
        let own_retained = ours(&retained.sites);
        // Several threads, and several callers, may leave blocks of one function.
        let mut by_function: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for site in &own_retained {
            *by_function.entry(site.function()).or_default() += site.blocks;
        }
        let is_growing = |site: &&AllocationSite| by_function[&site.function()] >= GROWING_BLOCKS;
        let growing = own_retained.iter().filter(is_growing);
        LeakSummary {
            retained_bytes: retained.sites.iter().map(|site| site.bytes).sum(),
            retained: own_retained.iter().take(SITES_SHOWN).map(leaked).collect(),
            per_player: growing.take(SITES_SHOWN).map(leaked).collect(),
            outlived_bytes: left.sites.iter().map(|site| site.bytes).sum(),
            leaked: ours(&left.sites)
                .iter()
                .take(SITES_SHOWN)
                .map(leaked)
                .collect(),
            untracked_blocks: retained.dropped,
            has_line_tables: has_line_tables(),
        }
    })
}

/// Maximum number of functions listed per kind, and of callers of each.
#[cfg(feature = "leak-track")]
const SITES_SHOWN: usize = 10;
#[cfg(feature = "leak-track")]
const CALLERS_SHOWN: usize = 12;

/// Ends all sessions and closes all scenes.
#[cfg(feature = "leak-track")]
fn close_sessions_and_scenes(server: &mut Server) {
    use throng::session::{LogoutReason, Sessions, disconnect};
    use throng::world::{Scenes, close_scene};

    let world = server.world_mut();
    crate::crowd::halt_crowds(world);
    let clients: Vec<_> = world
        .resource::<Sessions>()
        .iter()
        .map(|(client, _)| client)
        .collect();
    for client in clients {
        disconnect(world, client, LogoutReason::Requested);
    }
    server.step(1);
    let world = server.world_mut();
    let scenes: Vec<_> = world
        .resource::<Scenes>()
        .iter()
        .map(|(_, scene)| scene)
        .collect();
    for scene in scenes {
        // Cannot fail: the scene is open.
        let _ = close_scene(world, scene);
    }
}

/// Without the feature nothing is tracked, and validation rejects expectations on leaks.
#[cfg(not(feature = "leak-track"))]
pub(super) fn find_leaks(server: Server, _quiet_ticks: u64) -> LeakSummary {
    drop(server);
    LeakSummary::default()
}
