//! How property tests draw their cases: the same ones in every run, so that a change is judged by what it changes and
//! takes as long as it did before. With the environment variable `THRONG_DRAW_ANEW` set to anything, each run draws
//! others: for a machine that looks for faults while nobody waits.
//!
//! Unit tests and integration tests have this file in common.

/// The settings of a property test: `draws!(64)` for 64 cases, `draws!()` for as many as proptest takes by itself.
macro_rules! draws {
    () => {
        draws!(proptest::test_runner::Config::default().cases)
    };
    ($cases:expr) => {
        proptest::test_runner::Config {
            cases: $cases,
            rng_seed: match std::env::var_os("THRONG_DRAW_ANEW") {
                Some(_) => proptest::test_runner::RngSeed::Random,
                None => proptest::test_runner::RngSeed::Fixed(0x7412_0460),
            },
            ..proptest::test_runner::Config::default()
        }
    };
}
