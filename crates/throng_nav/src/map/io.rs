//! Maps from and to the disk. The only file of this folder that accesses it.
//!
//! A file is read in one go, and only if its size is possible for a map. It is written under another name first and then
//! renamed, so a reader never sees half a map and a failure leaves the old one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::edits::TilePattern;
use super::error::{MapError, SourceLocation};
use super::formats::{MapFormat, check_name, decode_owned, decode_patches, encode};
use super::tiles::TileMap;

/// The maximum size of a file to read or write, in bytes: four times the bytes of the largest map in the widest format.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads a map from a file; its name determines the format.
///
/// Errors: [`MapError`], which names the file, and the line and column or the byte of the error.
///
/// Cost: a `.map` of 1,024 × 1,024 tiles a few milliseconds.
pub fn load(path: impl AsRef<Path>) -> Result<TileMap, MapError> {
    let path = path.as_ref();
    let format = MapFormat::of(path)?;
    let name = path.to_string_lossy();
    let bytes = read(path, &name)?;
    decode_owned(format, &name, bytes)
}

/// Reads a MovingAI `.patch` file: patterns, in the order of their numbers.
///
/// Errors: [`MapError`], which names the file, and the line and column of the error.
pub fn load_patches(path: impl AsRef<Path>) -> Result<Vec<TilePattern>, MapError> {
    let path = path.as_ref();
    let name = path.to_string_lossy();
    decode_patches(&name, &read(path, &name)?)
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, MapError> {
    let fail = |source| MapError::Io {
        place: SourceLocation::file(name),
        action: "read the file",
        source,
    };
    let metadata = fs::metadata(path).map_err(fail)?;
    // A pipe or a device has no size to check, and opening one may block forever.
    if !metadata.is_file() {
        return Err(fail(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )));
    }
    check_length(metadata.len(), name)?;
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    // The file may grow meanwhile, and some files report less than they hold.
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(fail)?;
    check_length(bytes.len() as u64, name)?;
    Ok(bytes)
}

/// Fails if a file is too large.
fn check_length(found_bytes: u64, name: &str) -> Result<(), MapError> {
    if found_bytes <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(MapError::FileTooLarge {
        place: SourceLocation::file(name),
        found_bytes,
        bytes_max: FILE_BYTES_MAX,
    })
}

/// Writes a map to a file; its name determines the format. An existing file is replaced.
///
/// Errors: [`MapError::UnknownFormat`]; [`MapError::RawSize`] when a raw file could not be read back under this name;
/// [`MapError::FileTooLarge`] when it would be too large to be read back, which needs [sections](TileMap::parts);
/// [`MapError::Io`], with the old file unchanged.
pub fn save(path: impl AsRef<Path>, map: &TileMap) -> Result<(), MapError> {
    let path = path.as_ref();
    let format = MapFormat::of(path)?;
    let name = path.to_string_lossy();
    check_name(format, &name, map)?;
    let bytes = encode(format, map)?;
    check_length(bytes.len() as u64, &name)?;

    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{file_name}.{}.part", std::process::id()));
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|source| {
        // If this fails as well, the temporary file stays.
        let _ = fs::remove_file(&part);
        MapError::Io {
            place: SourceLocation::file(&name),
            action: "write the file",
            source,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder =
            std::env::temp_dir().join(format!("throng-map-io-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_saved_map_loads_and_leaves_no_other_file() {
        let folder = folder("saved");
        let map = TileMap::from_ascii("..@\n@..").unwrap();
        let names = ["a.map", "b.3x2.raw", "c.tmap", "d.png"];
        let names = &names[..if cfg!(feature = "png") { 4 } else { 3 }];
        for name in names {
            save(folder.join(name), &TileMap::new(3, 2, true).unwrap()).unwrap();
            save(folder.join(name), &map).unwrap();
            assert_eq!(load(folder.join(name)).unwrap(), map, "{name}");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), names.len());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn io_errors_name_the_file() {
        let folder = folder("refused");
        fs::create_dir_all(folder.join("folder.map")).unwrap();
        let map = TileMap::new(3, 2, true).unwrap();
        for (name, error) in [
            ("missing.map", load(folder.join("missing.map")).unwrap_err()),
            ("folder.map", load(folder.join("folder.map")).unwrap_err()),
            (
                "folder.map",
                save(folder.join("folder.map"), &map).unwrap_err(),
            ),
            (
                "none/a.map",
                save(folder.join("none/a.map"), &map).unwrap_err(),
            ),
            ("a.raw", save(folder.join("a.raw"), &map).unwrap_err()),
            ("a.gif", save(folder.join("a.gif"), &map).unwrap_err()),
        ] {
            assert!(
                error.file().is_some_and(|file| file.ends_with(name)),
                "{error}"
            );
        }
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            1,
            "nothing is left behind"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_larger_than_any_map_is_not_read() {
        let folder = folder("large");
        let path = folder.join("large.raw");
        // A sparse file: it has the size, but takes no disk space.
        File::create(&path)
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        let error = load(&path).unwrap_err();
        assert!(
            matches!(
                error,
                MapError::FileTooLarge {
                    found_bytes: 1_073_741_825,
                    ..
                }
            ),
            "{error}"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
