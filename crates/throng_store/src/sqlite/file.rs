//! Which file is open, to see when it is moved.

use std::fs;
use std::path::Path;

/// Which file a path leads to, whatever its name: the device and the number on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    pub fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let id = {
            use std::os::unix::fs::MetadataExt;
            Self(file.dev(), file.ino())
        };
        // Elsewhere a file that is open can neither be moved nor deleted.
        #[cfg(not(unix))]
        let id = Self(u64::from(file.is_file()), 0);
        Some(id)
    }
}
