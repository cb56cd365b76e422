//! Benchmarks of each system, one file per system, named `system::case/size`.
//!
//! `cargo bench` runs all benchmarks in about three minutes; `cargo bench -- aoi` runs those with `aoi` in their name; `cargo bench --
//! --test` runs each once, for its assertions. Input is generated from fixed seeds, set-up is not timed, and results are asserted, if
//! possible against a second way to the same result.

use std::time::Duration;

use criterion::{Criterion, criterion_main};

mod aoi;
mod map;
mod matchmaking;
mod nav;
mod outbox;
mod sync;
mod tick;
mod wire;
mod world;

/// Few samples and short measurements: differences of 10 % are visible, and all benchmarks together take less than three minutes.
fn all() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_200))
        .without_plots()
        .configure_from_args();
    for bench in [
        map::bench,
        nav::bench,
        aoi::bench,
        matchmaking::bench,
        outbox::bench,
        wire::bench,
        sync::bench,
        world::bench,
        tick::bench,
    ] {
        bench(&mut criterion);
    }
    criterion.final_summary();
}

criterion_main!(all);
