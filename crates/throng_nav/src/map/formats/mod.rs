//! The file formats of maps, each a pair of functions between bytes and a map; none accesses the disk.
//!
//! | file | holds |
//! |---|---|
//! | `movingai`, `letters` | `.map`: text, one letter per tile, the format of the benchmark maps of pathfinding research; its letters |
//! | `raw` | `.raw`: one byte per tile, 0 = free |
//! | `tmap` | `.tmap`, packed: one bit per tile, with a version, a checksum, and sections of prepared data |
//! | `png` | `.png`: an image, one pixel per tile, dark = blocked; with the feature `png` |
//! | `no_png` | the same functions in builds without that feature: an error that names it |
//! | `patch` | `.patch`: MovingAI's lists of patterns that replace tiles of a map |
//!
//! Invariants: `decode(encode(map)) == map` for every format that can hold the map's size; no input panics, and sizes
//! are checked against the limits of maps before memory is allocated for them.

mod letters;
mod movingai;
mod patch;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "no_png.rs"]
mod png;
mod raw;
mod tmap;

pub use letters::TileLetter;
pub use movingai::count_letters;
pub use patch::decode_patches;

use std::sync::Arc;

use super::TileMap;
use super::error::{MapError, SourceLocation};

/// A file format of maps. All are known in every build; [`MapFormat::Png`] is read and written with the feature `png` only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapFormat {
    /// MovingAI text, `.map`.
    MovingAi,
    /// One byte per tile, `.raw`.
    Raw,
    /// Packed bits with a checksum, `.tmap`.
    Tmap,
    /// An image, `.png`.
    Png,
}

impl MapFormat {
    /// All formats, also those that this build can neither read nor write.
    pub const ALL: [Self; 4] = [Self::MovingAi, Self::Raw, Self::Tmap, Self::Png];

    /// The extension of the format's files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::MovingAi => "map",
            Self::Raw => "raw",
            Self::Tmap => "tmap",
            Self::Png => "png",
        }
    }

    /// The format of a file by the extension of its name, in upper or lower case.
    ///
    /// # Errors
    /// [`MapError::UnknownFormat`], which lists the known extensions.
    pub fn of(path: impl AsRef<std::path::Path>) -> Result<Self, MapError> {
        let path = path.as_ref();
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy());
        let known = extension.as_ref().and_then(|extension| {
            Self::ALL
                .into_iter()
                .find(|format| extension.eq_ignore_ascii_case(format.extension()))
        });
        known.ok_or_else(|| MapError::UnknownFormat {
            place: SourceLocation::file(&path.to_string_lossy()),
            found: extension.map_or_else(
                || "without an extension".into(),
                |found| format!("`.{found}`"),
            ),
        })
    }
}

/// Reads a map from the bytes of a file.
///
/// `name` identifies the file in errors; for [`MapFormat::Raw`] it may also contain the size, as in `town.300x200.raw`.
///
/// # Errors
/// [`MapError`] with the location, the value found and the value expected; [`MapError::MissingFeature`] if this build does not have
/// the format.
pub fn decode(format: MapFormat, name: &str, bytes: &[u8]) -> Result<TileMap, MapError> {
    match format {
        MapFormat::MovingAi => movingai::decode(name, bytes),
        MapFormat::Raw => raw::decode(name, bytes),
        MapFormat::Tmap => tmap::decode(name, bytes, || Arc::new(bytes.to_vec())),
        MapFormat::Png => png::decode(name, bytes),
    }
}

/// The same for owned bytes: the sections of a `.tmap` are not copied.
pub(super) fn decode_owned(
    format: MapFormat,
    name: &str,
    bytes: Vec<u8>,
) -> Result<TileMap, MapError> {
    if format != MapFormat::Tmap {
        return decode(format, name, &bytes);
    }
    let file = Arc::new(bytes);
    tmap::decode(name, &file, || file.clone())
}

/// Writes a map as the bytes of a file. Only a [`MapFormat::Tmap`] file also holds the map's [sections](TileMap::parts).
///
/// A [`MapFormat::Raw`] file of a map that is not square must have the size in its name;
/// [`save`](super::save) checks that.
///
/// # Errors
/// [`MapError::Png`] if the encoder fails, [`MapError::MissingFeature`] if this build does not have the format.
pub fn encode(format: MapFormat, map: &TileMap) -> Result<Vec<u8>, MapError> {
    match format {
        MapFormat::MovingAi => Ok(movingai::encode(map)),
        MapFormat::Raw => Ok(raw::encode(map)),
        MapFormat::Tmap => tmap::encode(map),
        MapFormat::Png => png::encode(map),
    }
}

/// Fails if a file with this name could not be read back as this map.
pub(super) fn check_name(format: MapFormat, name: &str, map: &TileMap) -> Result<(), MapError> {
    match format {
        MapFormat::Raw => raw::check_name(name, map),
        MapFormat::MovingAi | MapFormat::Tmap | MapFormat::Png => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::map::tiles::mix;

    /// The formats that this build can read and write.
    fn built() -> impl Iterator<Item = MapFormat> {
        let is_built = |format: &MapFormat| cfg!(feature = "png") || *format != MapFormat::Png;
        MapFormat::ALL.into_iter().filter(is_built)
    }

    #[cfg(not(feature = "png"))]
    #[test]
    fn png_without_its_feature_is_an_error_naming_it() {
        let map = TileMap::new(2, 2, false).unwrap();
        let refused = [
            encode(MapFormat::Png, &map).unwrap_err(),
            decode(MapFormat::Png, "a.png", &[]).unwrap_err(),
        ];
        assert!(
            refused
                .iter()
                .all(|error| error.to_string().contains("feature `png`"))
        );
    }

    fn maps() -> impl Strategy<Value = TileMap> {
        (1u32..150, 1u32..20, any::<u64>()).prop_map(|(width, height, seed)| {
            TileMap::from_fn(width, height, |x, y| {
                mix(seed ^ u64::from(y) << 32 ^ u64::from(x)) % 100 < 35
            })
            .unwrap()
        })
    }

    /// Changes to a file's bytes: overwrite, insert, cut off, repeat.
    fn mutate(bytes: &mut Vec<u8>, mutations: &[(u8, usize, u8)]) {
        for (kind, at, value) in mutations {
            if bytes.is_empty() {
                return;
            }
            let at = at % bytes.len();
            match kind {
                0 => bytes[at] = *value,
                1 => bytes.insert(at, *value),
                2 => drop(bytes.remove(at)),
                3 => bytes.truncate(at),
                _ => bytes.extend_from_within(at..),
            }
        }
    }

    proptest! {
        #![proptest_config(draws!(256))]

        #[test]
        fn maps_round_trip_through_every_format(map in maps()) {
            for format in built() {
                let name = format!("test.{}x{}.{}", map.width(), map.height(), format.extension());
                let decoded = decode(format, &name, &encode(format, &map).unwrap());
                prop_assert_eq!(decoded.unwrap(), map.clone(), "{:?}", format);
            }
        }

        #[test]
        fn damaged_files_never_panic_a_decoder(
            map in maps(),
            mutations in prop::collection::vec((0u8..5, any::<usize>(), any::<u8>()), 1..5),
        ) {
            for format in built() {
                let mut bytes = encode(format, &map).unwrap();
                mutate(&mut bytes, &mutations);
                match decode(format, "damaged.raw", &bytes) {
                    Ok(map) => prop_assert!(map.free_count() <= map.rect().tile_count()),
                    Err(error) => prop_assert!(error.to_string().starts_with("damaged.raw"), "{}", error),
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic_a_decoder(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for format in built() {
                let _ = decode(format, "noise", &bytes);
                // After a valid beginning, so that the noise gets past the first check.
                let mut known = encode(format, &TileMap::new(9, 5, true).unwrap()).unwrap();
                known.truncate(bytes.len() % known.len());
                known.extend(&bytes);
                let _ = decode(format, "noise", &known);
            }
        }

        #[test]
        fn tmap_file_with_any_wrong_byte_is_refused(map in maps(), at in any::<usize>(), change in 1u8..) {
            let mut bytes = encode(MapFormat::Tmap, &map).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= change;
            prop_assert!(decode(MapFormat::Tmap, "test.tmap", &bytes).is_err());
        }
    }

    #[test]
    fn extension_selects_the_format_and_unknown_ones_list_all() {
        for format in MapFormat::ALL {
            assert_eq!(
                MapFormat::of(format!("a/b.c/town.{}", format.extension())).unwrap(),
                format
            );
            assert_eq!(
                MapFormat::of(format!("TOWN.{}", format.extension().to_uppercase())).unwrap(),
                format
            );
        }
        for (name, found) in [
            ("town.bmp", "`.bmp`"),
            ("town", "without an extension"),
            ("", "without"),
        ] {
            let error = MapFormat::of(name).unwrap_err().to_string();
            assert!(error.contains(found), "{error}");
            assert!(
                MapFormat::ALL
                    .iter()
                    .all(|format| error.contains(format.extension())),
                "{error}"
            );
        }
    }
}
