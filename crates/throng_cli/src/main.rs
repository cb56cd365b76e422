//! The program: parses the command line and hands over to the library.

use std::process::ExitCode;

/// A tick allocates little, but from many threads, and a long run must not fragment.
#[cfg(not(feature = "count-alloc"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The same, counted.
#[cfg(feature = "count-alloc")]
#[global_allocator]
static ALLOCATOR: throng::memory::CountingAllocator<mimalloc::MiMalloc> =
    throng::memory::CountingAllocator::new(mimalloc::MiMalloc);

fn main() -> ExitCode {
    throng_cli::main()
}
