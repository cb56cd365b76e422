//! What others made of a map's tiles and keep in its file: bytes by tag, which this folder does not look into.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What somebody prepared of a map's tiles, as bytes.
///
/// Whoever reads a part checks it as bytes of unknown origin: a file's checksum tells damage, not forgery. Clones share
/// the bytes, and parts that came from one file share those of the file.
#[derive(Clone)]
pub struct MapSection {
    tag: [u8; 4],
    file: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl MapSection {
    /// A part of these bytes. The tag says what they are, to whoever wrote them.
    pub fn new(tag: [u8; 4], bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self {
            tag,
            file: Arc::new(bytes),
            range,
        }
    }

    /// A part of a file. The range lies in it.
    pub(super) fn from_file(tag: [u8; 4], file: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self { tag, file, range }
    }

    /// What the bytes are.
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
