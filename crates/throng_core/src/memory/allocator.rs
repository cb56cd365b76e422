//! The allocator for programs and tests that count allocations or search for leaks.
//!
//! ```text
//! alloc ─▶ inner allocator ─▶ [tag | block] ─▶ counts, and the table of live blocks while leaks are tracked
//! ```
//! Each block has the tag of its allocation in front of it, 8 bytes or as many as its alignment, so that it is
//! subtracted from the same count, whichever thread frees it. Cost: two atomic additions per call and the tag's bytes.
#![expect(
    unsafe_code,
    reason = "GlobalAlloc is an unsafe trait; the crates that wrap it keep no call stacks, and are no smaller than this file"
)]

use std::alloc::{GlobalAlloc, Layout};

use super::counts;
#[cfg(feature = "leak-track")]
use super::leaks;

/// The size of a tag in front of a block, and the minimum alignment of a block with it.
const TAG_BYTES: usize = size_of::<u64>();

/// An allocator that counts the allocations of another one; use it as the `#[global_allocator]` of a program or a test.
pub struct CountingAllocator<A>(A);

impl<A> CountingAllocator<A> {
    /// Counts the allocations of `inner`.
    pub const fn new(inner: A) -> Self {
        Self(inner)
    }
}

/// The layout of a block with its tag, and the offset of the block itself; `None` when it is too large.
fn tagged_layout(layout: Layout) -> Option<(Layout, usize)> {
    let align = layout.align().max(TAG_BYTES);
    let whole = Layout::from_size_align(layout.size().checked_add(align)?, align).ok()?;
    Some((whole, align))
}

/// Writes the tag in front of a block of this size, counts it, and returns the block.
///
/// # Safety
/// `whole` is null or begins a block of `offset + bytes` bytes that is aligned to `offset`, a multiple of [`TAG_BYTES`].
unsafe fn tag_block(whole: *mut u8, offset: usize, bytes: usize) -> *mut u8 {
    if whole.is_null() {
        return whole;
    }
    let tag = counts::add(bytes);
    // SAFETY: the block begins after `offset` bytes; the last eight of them are aligned as a `u64`.
    let block = unsafe {
        let block = whole.add(offset);
        block.sub(TAG_BYTES).cast::<u64>().write(tag as u64);
        block
    };
    #[cfg(feature = "leak-track")]
    leaks::on_alloc(block.addr(), bytes);
    block
}

/// Subtracts a block from the counts before it is freed.
///
/// # Safety
/// `block` came from [`tag_block`] with the same size.
unsafe fn untag_block(block: *mut u8, bytes: usize) {
    // SAFETY: `tag_block` wrote the tag there.
    let tag = unsafe { block.sub(TAG_BYTES).cast::<u64>().read() };
    counts::subtract(tag as usize, bytes);
    #[cfg(feature = "leak-track")]
    leaks::on_free(block.addr());
}

// SAFETY: every block is one of the inner allocator's, which is larger by the space in front of it and has at least the requested
// alignment; it is freed with the layout that it was allocated with.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = tagged_layout(layout) else {
            return std::ptr::null_mut();
        };
        // SAFETY: `whole` is not empty, and has the size that `tag_block` expects.
        unsafe { tag_block(self.0.alloc(whole), offset, layout.size()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((whole, offset)) = tagged_layout(layout) else {
            return std::ptr::null_mut();
        };
        // SAFETY: as in `alloc`.
        unsafe { tag_block(self.0.alloc_zeroed(whole), offset, layout.size()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // A block with this layout was allocated, so there is one with a tag.
        let Some((whole, offset)) = tagged_layout(layout) else {
            return;
        };
        // SAFETY: `block` came from here with this layout.
        unsafe {
            untag_block(block, layout.size());
            self.0.dealloc(block.sub(offset), whole);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let larger = Layout::from_size_align(bytes, layout.align()).ok();
        let (Some((whole, offset)), Some((larger, _))) =
            (tagged_layout(layout), larger.and_then(tagged_layout))
        else {
            return std::ptr::null_mut();
        };
        // SAFETY: `block` came from here with this layout. It is subtracted first: once the inner allocator has moved it, another
        // thread may get its address. One that could not be moved stays, and is counted again.
        unsafe {
            untag_block(block, layout.size());
            let before = block.sub(offset);
            let moved = self.0.realloc(before, whole, larger.size());
            if moved.is_null() {
                tag_block(before, offset, layout.size());
            }
            tag_block(moved, offset, bytes)
        }
    }
}
