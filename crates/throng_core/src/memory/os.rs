//! The memory of this process as the operating system reports it.

use std::fs;

/// Memory of this process that is in RAM, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// All of it.
    pub resident_bytes: u64,
    /// The maximum of `resident_bytes` so far.
    pub peak_bytes: u64,
    /// Memory that is not backed by files: heap and stacks.
    pub anonymous_bytes: u64,
}

/// Reads it from `/proc/self/status`; `None` where that file does not exist (Linux has it). A few microseconds.
#[must_use]
pub fn process_memory() -> Option<ProcessMemory> {
    // Not statm, which counts in pages; their size needs a call of a C library.
    parse_status(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_status(status: &str) -> Option<ProcessMemory> {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes = line.strip_prefix(':')?.trim().strip_suffix("kB")?;
        kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(ProcessMemory {
        resident_bytes: bytes("VmRSS")?,
        peak_bytes: bytes("VmHWM")?,
        anonymous_bytes: bytes("RssAnon")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_status_is_parsed_in_bytes() {
        let status = "Name:\tthrong\nVmHWM:\t    2288 kB\nVmRSS:\t    2048 kB\nRssAnon:\t     168 kB\nRssFile:\t    2120 kB\n";
        let found = parse_status(status).unwrap();
        assert_eq!(found.resident_bytes, 2048 * 1024);
        assert_eq!(
            (found.peak_bytes, found.anonymous_bytes),
            (2288 * 1024, 168 * 1024)
        );
        for broken in ["", "VmRSS: 5 kB", "VmHWM: 1 kB\nVmRSS: x kB\nRssAnon: 1 kB"] {
            assert_eq!(parse_status(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_process_has_some_memory() {
        if cfg!(target_os = "linux") {
            let found = process_memory().unwrap();
            assert!(found.anonymous_bytes > 0 && found.resident_bytes <= found.peak_bytes);
        }
    }
}
