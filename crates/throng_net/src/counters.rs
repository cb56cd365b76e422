//! Counters that threads increment and any thread may read at any time.

/// Declares a struct of plain counts to read, and a struct of atomics to count with.
macro_rules! counters {
    (
        $(#[$plain_doc:meta])* $plain:ident, $(#[$shared_doc:meta])* $shared:ident:
        $($(#[$doc:meta])* $name:ident,)*
    ) => {
        $(#[$plain_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $plain {
            $($(#[$doc])* pub $name: u64,)*
        }

        $(#[$shared_doc])*
        #[derive(Debug, Default)]
        pub(super) struct $shared {
            $(pub $name: std::sync::atomic::AtomicU64,)*
        }

        impl $shared {
            pub fn read(&self) -> $plain {
                $plain {
                    $($name: self.$name.load(std::sync::atomic::Ordering::Relaxed),)*
                }
            }

            pub fn add(counter: &std::sync::atomic::AtomicU64, count: u64) {
                counter.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
            }

            pub fn one(counter: &std::sync::atomic::AtomicU64) {
                Self::add(counter, 1);
            }
        }
    };
}

pub(super) use counters;
