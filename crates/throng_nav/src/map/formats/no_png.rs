//! PNG in builds without the feature `png`: an error that names the feature.

use crate::map::TileMap;
use crate::map::error::{MapError, SourceLocation};

pub(super) fn decode(file: &str, _: &[u8]) -> Result<TileMap, MapError> {
    Err(absent(SourceLocation::file(file)))
}

pub(super) fn encode(_: &TileMap) -> Result<Vec<u8>, MapError> {
    Err(absent(SourceLocation::default()))
}

fn absent(place: SourceLocation) -> MapError {
    MapError::MissingFeature {
        place,
        what: "PNG images",
        feature: "png",
    }
}
