//! Settings of property tests. Every run draws the same cases, so that a failure is caused by a change and the duration stays the same. If
//! the environment variable `THRONG_DRAW_ANEW` is set, each run draws new cases, for machines that search for bugs continuously.
//!
//! Used by both unit tests and integration tests.

/// The settings of a property test: `draws!(64)` for 64 cases, `draws!()` for proptest's default number.
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
