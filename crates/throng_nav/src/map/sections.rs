//! Sections: data that was prepared from a map's tiles and stored in its file, as bytes by tag. This folder does not read them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Data that was prepared from a map's tiles, as bytes.
///
/// A reader of a section checks it as bytes of unknown origin: a file's checksum detects damage, not forgery. Clones share
/// the bytes, and sections from one file share those of the file.
#[derive(Clone)]
pub struct MapSection {
    tag: [u8; 4],
    file: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl MapSection {
    /// Creates a section from these bytes. The tag identifies the contents.
    pub fn new(tag: [u8; 4], bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self {
            tag,
            file: Arc::new(bytes),
            range,
        }
    }

    /// A section of a file. The range must be inside it.
    pub(super) fn from_file(tag: [u8; 4], file: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self { tag, file, range }
    }

    /// The kind of contents.
    pub fn tag(&self) -> [u8; 4] {
        self.tag
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.file[self.range.clone()]
    }
}

impl PartialEq for MapSection {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.bytes() == other.bytes()
    }
}

impl Eq for MapSection {}

impl fmt::Debug for MapSection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tag, bytes) = (self.tag.escape_ascii(), self.range.len());
        write!(formatter, "MapPart({tag}, {bytes} bytes)")
    }
}
