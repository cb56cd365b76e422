//! Live allocations that were made since tracking began, by thread and by call stack.
//!
//! ```text
//! allocator ─▶ on_alloc, on_free ─▶ LiveBlocks (fixed, no allocation, no recursion) ─▶ live_sites(): largest first, with names
//! ```
//! Off until [`track_leaks`]: a call then costs a relaxed load. While it is on, an allocation costs a stack walk of some
//! microseconds.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::counts::with_local;
use super::live_blocks::{FRAMES_MAX, LiveBlocks};

/// Rows of the table: 131,072 blocks, 37 MB once they are used.
const ROWS: usize = 1 << 14;

static IS_ON: AtomicBool = AtomicBool::new(false);
static BLOCKS: Mutex<LiveBlocks<ROWS>> = Mutex::new(LiveBlocks::new());
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether this thread is in the hook, or reports: its allocations and frees there are ignored.
    static IS_IN_HOOK: Cell<bool> = const { Cell::new(false) };
    /// Whether allocations of this thread are not recorded.
    static IS_UNTRACKED: Cell<bool> = const { Cell::new(false) };
    /// Threads in the order of their first recorded allocation; 0 before that.
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Live allocations of one thread with the same callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationSite {
    /// In the order of the threads' first recorded allocations; 1 is the first.
    pub thread: u32,
    /// The bytes of all blocks.
    pub bytes: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// Functions from the innermost on, without those of the allocator; inlined ones are included as far as debug information has them.
    pub functions: Vec<String>,
}

/// The live allocations since tracking began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationSites {
    /// Largest first.
    pub sites: Vec<AllocationSite>,
    /// Blocks that were not recorded, or were evicted, because the table was full of larger ones; whether they are live is not known.
    pub dropped: u64,
}

/// Whether the program has line tables, which are needed to name inlined functions: without them, allocations of such a function
/// are attributed to its caller. `--profile profiling` and the profile of the tests have them.
#[must_use]
pub fn has_line_tables() -> bool {
    let mut has_lines = false;
    // Frames are return addresses, one behind the address that is looked up.
    let inside = (track_leaks as *mut std::ffi::c_void).wrapping_byte_add(1);
    backtrace::resolve(inside, |symbol| {
        has_lines |= symbol.filename().is_some();
    });
    has_lines
}

/// Crates whose functions allocate on behalf of their callers.
const CONTAINERS: [&str; 9] = [
    "alloc",
    "arrayvec",
    "core",
    "fixedbitset",
    "hashbrown",
    "indexmap",
    "rtrb",
    "smallvec",
    "std",
];

/// Crates, or prefixes of their names, below this one and the game: Bevy, its executor, logs.
const FOREIGN: [&str; 8] = [
    "async_",
    "bevy",
    "concurrent_queue",
    "crossbeam",
    "event_listener",
    "futures_lite",
    "std::",
    "tracing",
];

impl AllocationSite {
    /// The function that allocated: the innermost one outside containers; the innermost one of all if there is none.
    #[must_use]
    pub fn function(&self) -> Option<&str> {
        let own = self.functions.iter().find(|name| !is_container(name));
        own.or(self.functions.first()).map(String::as_str)
    }

    /// Whether this crate or the game allocated, and not their dependencies, which keep a little permanently.
    #[must_use]
    pub fn is_own_code(&self) -> bool {
        let foreign = |name: &str| {
            let path = path_of(name);
            FOREIGN.into_iter().any(|home| path.starts_with(home))
        };
        self.function().is_some_and(|name| !foreign(name))
    }
}

/// The path of a function: `a::b::c` for both `a::b::c` and `<a::b::C as d::E>::c`.
fn path_of(name: &str) -> &str {
    let dressed = ['<', '&', '*', '[', '('];
    name.trim_start_matches(dressed)
        .trim_start_matches("mut ")
        .trim_start_matches("const ")
        .trim_start_matches(dressed)
}

fn is_container(name: &str) -> bool {
    let path = path_of(name);
    let is_of = |home: &str| {
        let rest = path.strip_prefix(home);
        rest.is_some_and(|rest| rest.starts_with("::"))
    };
    CONTAINERS.into_iter().any(is_of) || path.starts_with("__") || is_of_primitive(path)
}

/// Whether a function is a method of a primitive type or a type parameter: `<u8 as core::clone::Clone>::clone`.
fn is_of_primitive(path: &str) -> bool {
    let of_what = path.split(" as ").next().unwrap_or_default();
    path.contains(" as ") && !of_what.contains("::")
}

/// Starts recording allocations, without those made before.
///
/// Call this after start-up to find later what has been allocated since and is still live.
pub fn track_leaks() {
    without_hook(|| {
        table().clear();
        // The first stack walk initialises global data.
        capture_frames(&mut [0; FRAMES_MAX]);
    });
    IS_ON.store(true, Relaxed);
}

/// Stops recording; recorded allocations stay until the next [`track_leaks`], and are right until one of them is freed.
pub fn stop_tracking_leaks() {
    IS_ON.store(false, Relaxed);
}

/// The live allocations since [`track_leaks`]. Looks up function names, which takes seconds in a large program.
#[must_use]
pub fn allocation_sites() -> AllocationSites {
    without_hook(|| {
        let mut by_stack = BTreeMap::<(u32, [usize; FRAMES_MAX]), (usize, usize)>::new();
        let lost = {
            let blocks = table();
            for block in blocks.iter() {
                let of_stack = by_stack.entry((block.thread, block.frames)).or_default();
                *of_stack = (of_stack.0 + block.bytes, of_stack.1 + 1);
            }
            blocks.dropped()
        };
        let mut names = BTreeMap::new();
        let sites = by_stack
            .into_iter()
            .map(|((thread, frames), (bytes, blocks))| AllocationSite {
                thread,
                bytes,
                blocks,
                functions: functions_of(&frames, &mut names),
            });
        let mut sites: Vec<AllocationSite> = sites.collect();
        sites.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| a.functions.cmp(&b.functions))
        });
        AllocationSites {
            sites,
            dropped: lost,
        }
    })
}

pub(super) fn on_alloc(address: usize, bytes: usize) {
    if !IS_ON.load(Relaxed) || IS_IN_HOOK.get() || IS_UNTRACKED.get() {
        return;
    }
    without_hook(|| {
        if THREAD.get() == 0 {
            THREAD.set(THREADS.fetch_add(1, Relaxed) + 1);
        }
        let mut frames = [0; FRAMES_MAX];
        capture_frames(&mut frames);
        table().insert(address, bytes, THREAD.get(), |into| *into = frames);
    });
}

pub(super) fn on_free(address: usize) {
    if !IS_ON.load(Relaxed) || IS_IN_HOOK.get() {
        return;
    }
    without_hook(|| table().remove(address));
}

/// Does not record this thread's allocations in `work`: for data that outlives the search for leaks, such as its report.
pub fn without_leak_tracking<T>(work: impl FnOnce() -> T) -> T {
    with_local(&IS_UNTRACKED, true, work)
}

/// Ignores this thread's calls of the allocator in `work`.
fn without_hook<T>(work: impl FnOnce() -> T) -> T {
    with_local(&IS_IN_HOOK, true, work)
}

fn table() -> MutexGuard<'static, LiveBlocks<ROWS>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The return addresses of the callers, from the innermost on, without those of this file and the allocator.
fn capture_frames(frames: &mut [usize; FRAMES_MAX]) {
    let mut place = 0;
    backtrace::trace(|frame| {
        let Some(slot) = frames.get_mut(place) else {
            return false;
        };
        *slot = frame.ip().addr();
        place += 1;
        true
    });
}

/// The names of functions by their addresses, looked up once each.
fn functions_of(
    frames: &[usize; FRAMES_MAX],
    names: &mut BTreeMap<usize, Vec<String>>,
) -> Vec<String> {
    let frames = frames.iter().take_while(|&&address| address != 0);
    let all = frames.flat_map(|&address| {
        let found = names.entry(address).or_insert_with(|| {
            let mut found = Vec::new();
            backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
                let home = symbol.filename().and_then(module_path_of);
                let name = symbol.name().map(|name| format!("{name:#}"));
                found.extend(name.map(|name| with_path(name, home)));
            });
            found
        });
        found.clone()
    });
    let of_hook = |name: &String| {
        let path = path_of(name);
        let homes = ["backtrace::", "memory::", "throng_core::memory::", "__rust"];
        homes.into_iter().any(|home| path.starts_with(home))
    };
    all.skip_while(of_hook).collect()
}

/// A function's name with its path. With line tables only, an inlined function has just its bare name: then its file
/// determines the path.
fn with_path(name: String, home: Option<String>) -> String {
    let bare = name.split(['<', '{']).next().unwrap_or_default();
    let has_path = name.starts_with('<') || bare.contains("::") || bare.starts_with("__");
    match home {
        Some(home) if !has_path => format!("{home}::{name}"),
        _ => name,
    }
}

/// The crate of a file of the standard library or the registry; for any other the path of its module below `src` or `tests`.
fn module_path_of(file: &Path) -> Option<String> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let after = |folder: &str, steps: usize| {
        let at = parts.iter().position(|&part| part == folder)?;
        parts.get(at + steps).copied()
    };
    if after("rustc", 1).is_some() {
        return after("library", 1).map(str::to_owned);
    }
    // `registry/src/index/name-1.2.3/src/lib.rs`
    if let Some(package) = after("registry", 3) {
        let name = package.rsplit_once('-').map_or(package, |(name, _)| name);
        return Some(name.replace('-', "_"));
    }
    let root = parts
        .iter()
        .rposition(|part| ["src", "tests"].contains(part))?;
    let modules = parts[root + 1..].join("::");
    Some(modules.trim_end_matches(".rs").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_function_name_gets_its_module_path() {
        let named =
            |name: &str, file: &str| with_path(name.to_owned(), module_path_of(Path::new(file)));
        for (name, file, expected) in [
            ("plant", "tests/allocations.rs", "allocations::plant"),
            (
                "inside<(), throng::x>",
                "/home/me/game/src/memory/leaks.rs",
                "memory::leaks::inside<(), throng::x>",
            ),
            (
                "with_capacity_in<u8>",
                "/rustc/5980/library/alloc/src/vec/mod.rs",
                "alloc::with_capacity_in<u8>",
            ),
            (
                "{closure#0}",
                "/home/me/.cargo/registry/src/index.crates.io-19/concurrent-queue-2.5.0/src/lib.rs",
                "concurrent_queue::{closure#0}",
            ),
            (
                "throng::sync::fill",
                "src/sync/client.rs",
                "throng::sync::fill",
            ),
            ("<a::B as c::D>::e", "src/main.rs", "<a::B as c::D>::e"),
            ("__rust_alloc", "src/main.rs", "__rust_alloc"),
        ] {
            assert_eq!(named(name, file), expected);
        }
    }
}
