//! The memory of a run, relative to the memory before it was set up.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use serde::Serialize;

use throng::memory::{
    Allocated, AllocationTag, ProcessMemory, allocated_with_tag, memory_by_module,
};
use throng::sim::SimSystems;

/// The memory of the process, as far as it is known, and its distribution.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemorySummary {
    /// Current resident memory.
    pub rss_bytes: Option<u64>,
    /// Peak resident memory.
    pub peak_rss_bytes: Option<u64>,
    /// Growth of the resident heap and stacks since before the run was set up.
    pub grown_bytes: Option<u64>,
    /// Growth of the bytes that were requested from the allocator; the rest of `grown_bytes` is its overhead. `None` unless
    /// allocations are counted (feature `count-alloc`).
    pub allocated_bytes: Option<u64>,
    /// The memory of each module by its own accounting ([`memory_by_module`]); `nav_maps` is the search data of maps in `nav`.
    pub by_module: BTreeMap<&'static str, u64>,
    /// The part of `allocated_bytes` allocated in each set of a tick, and `outside` of them, if it is counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_set: BTreeMap<&'static str, u64>,
}

/// The memory before a run was set up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryBaseline {
    process: Option<ProcessMemory>,
    allocated: [Allocated; SimSystems::ALL.len() + 1],
}

impl MemoryBaseline {
    /// The current memory.
    pub fn now(process: Option<ProcessMemory>) -> Self {
        Self {
            process,
            allocated: std::array::from_fn(|tag| allocated_with_tag(AllocationTag(tag as u8))),
        }
    }
}

/// The current memory, and its distribution.
pub(super) fn memory_summary(
    world: &World,
    before: &MemoryBaseline,
    process: Option<ProcessMemory>,
) -> MemorySummary {
    let now = MemoryBaseline::now(process);
    let (then, process) = (before.process, now.process);
    let names = std::iter::once("outside").chain(SimSystems::ALL.map(SimSystems::name));
    let counted = names.zip(now.allocated.iter().zip(before.allocated));
    let by_set: BTreeMap<&'static str, u64> = counted
        .map(|(name, (now, then))| (name, now.bytes.saturating_sub(then.bytes) as u64))
        .filter(|&(_, bytes)| bytes > 0)
        .collect();
    let bytes = |counts: &[Allocated]| counts.iter().map(|count| count.bytes).sum::<usize>();
    let net = bytes(&now.allocated).saturating_sub(bytes(&before.allocated));
    let by_module = memory_by_module(world).into_iter();
    MemorySummary {
        rss_bytes: process.map(|process| process.resident_bytes),
        peak_rss_bytes: process.map(|process| process.peak_bytes),
        grown_bytes: process
            .zip(then)
            .map(|(now, then)| now.anonymous_bytes.saturating_sub(then.anonymous_bytes)),
        allocated_bytes: (!by_set.is_empty()).then_some(net as u64),
        by_module: by_module
            .map(|(name, bytes)| (name, bytes as u64))
            .collect(),
        by_set,
    }
}
