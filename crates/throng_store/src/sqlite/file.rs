//! Identity of the open file, to detect when it is moved.

use std::fs;
use std::path::{Path, PathBuf};

/// An open file, and where it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenFile {
    path: PathBuf,
    id: FileId,
}

impl OpenFile {
    /// The file that was opened by this name; `opened` is its path as SQLite states it, empty for a database in memory. A name can also be
    /// a URI.
    ///
    /// # Errors
    /// [`FileMoved`] if the file is gone already.
    pub fn of(name: &Path, opened: &str) -> Result<Option<Self>, FileMoved> {
        if opened.is_empty() {
            return Ok(None);
        }
        let paths = [name, Path::new(opened)].into_iter();
        let mut files = paths.filter_map(|path| {
            let path = path.to_owned();
            FileId::of(&path).map(|id| Self { path, id })
        });
        files.next().map(Some).ok_or(FileMoved)
    }

    /// Whether it is still at its path.
    pub fn is_in_place(&self) -> bool {
        FileId::of(&self.path) == Some(self.id)
    }
}

/// The open file is not at its path any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileMoved;

/// The file at a path, whatever its name: its device and inode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(path: &Path) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn file_that_is_moved_while_it_is_opened_is_noticed() {
        let folder = TestFolder::new();
        let path = folder.file("players.db");
        fs::write(&path, "").unwrap();
        let opened = path.to_str().unwrap();
        let file = OpenFile::of(&path, opened).unwrap().unwrap();
        assert!(file.is_in_place());
        let uri = PathBuf::from(format!("file:{opened}"));
        assert!(OpenFile::of(&uri, opened).unwrap().is_some(), "a URI");
        assert_eq!(OpenFile::of(Path::new(":memory:"), ""), Ok(None));

        fs::rename(&path, folder.file("moved.db")).unwrap();
        assert!(!file.is_in_place());
        assert_eq!(OpenFile::of(&path, opened), Err(FileMoved));
        fs::write(&path, "").unwrap();
        assert!(!file.is_in_place(), "another file of the same name");
    }
}
