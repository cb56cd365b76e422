//! PNG in builds without the feature `png`: an error that names the feature.

use crate::map::TileMap;
use crate::map::error::{MapError, SourcePlace};

pub(super) fn decode(file: &str, _: &[u8]) -> Result<TileMap, MapError> {
    Err(absent(SourcePlace::file(file)))
}

pub(super) fn encode(_: &TileMap) -> Result<Vec<u8>, MapError> {
    Err(absent(SourcePlace::default()))
}

fn absent(place: SourcePlace) -> MapError {
    MapError::Feature {
        place,
        what: "PNG images",
        feature: "png",
    }
}
