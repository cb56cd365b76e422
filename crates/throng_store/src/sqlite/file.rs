//! Identity of the open file, to detect when it is moved.

use std::fs;
use std::path::Path;

/// The file at a path, whatever its name: its device and inode numbers.
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
        // On other systems an open file can be neither moved nor deleted.
        #[cfg(not(unix))]
        let id = Self(u64::from(file.is_file()), 0);
        Some(id)
    }
}
