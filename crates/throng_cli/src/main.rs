//! The program: parses the command line and hands over to the library.

use std::process::ExitCode;

/// A fast allocator for many threads that does not fragment in long runs.
#[cfg(not(feature = "count-alloc"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The same, with counted allocations.
#[cfg(feature = "count-alloc")]
#[global_allocator]
static ALLOCATOR: throng::memory::CountingAllocator<mimalloc::MiMalloc> =
    throng::memory::CountingAllocator::new(mimalloc::MiMalloc);

fn main() -> ExitCode {
    throng_cli::main()
}
