//! The page at `/`, which walks in, as it lies under `assets/web`. Its scripts are compiled from `clients/web`, which CI does anew and
//! compares.

use crate::map::TileMap;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($path:literal, $what:ident, $file:literal) => {
        (
            $path,
            $what,
            include_str!(concat!("../../../assets/web/", $file)),
        )
    };
}

/// Where each of its files is, of which type, and the file.
const FILES: [(&str, &str, &str); 14] = [
    file!("/", HTML, "index.html"),
    file!("/page.css", CSS, "page.css"),
    file!("/demo/page.js", SCRIPT, "demo/page.js"),
    file!("/src/client_message.js", SCRIPT, "src/client_message.js"),
    file!("/src/codec.js", SCRIPT, "src/codec.js"),
    file!("/src/connection.js", SCRIPT, "src/connection.js"),
    file!("/src/datagrams.js", SCRIPT, "src/datagrams.js"),
    file!("/src/endpoint.js", SCRIPT, "src/endpoint.js"),
    file!("/src/ground.js", SCRIPT, "src/ground.js"),
    file!("/src/index.js", SCRIPT, "src/index.js"),
    file!("/src/mirror.js", SCRIPT, "src/mirror.js"),
    file!("/src/predictor.js", SCRIPT, "src/predictor.js"),
    file!("/src/server_message.js", SCRIPT, "src/server_message.js"),
    file!("/src/session.js", SCRIPT, "src/session.js"),
];

/// The walls of a scene, for the page: width and height in tiles (4 bytes each), the side of a tile in metres (`f32`), then a bit a
/// tile, 1 where it is blocked, row after row, each from a byte of its own on, lowest bit first. O(tiles).
#[must_use]
pub fn map_bytes(tiles: &TileMap, tile_m: f32) -> Vec<u8> {
    let (width, height) = (tiles.width(), tiles.height());
    let mut bytes = Vec::with_capacity(12 + (width.div_ceil(8) * height) as usize);
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend(tile_m.to_le_bytes());
    for y in 0..height as i32 {
        for first in (0..width as i32).step_by(8) {
            let is_set = |bit: &i32| first + bit < width as i32 && tiles.is_blocked(first + bit, y);
            let set = (0..8).filter(is_set).fold(0, |byte, bit| byte | 1 << bit);
            bytes.push(set);
        }
    }
    bytes
}

/// The type and the text of a file.
pub(super) fn page_file(path: &str) -> Option<(&'static str, &'static str)> {
    let file = FILES.iter().find(|(at, ..)| *at == path);
    file.map(|&(_, what, text)| (what, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_file_names_is_there() {
        let mut named = 0;
        for (path, what, text) in FILES {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let quoted = text
                .split(['"', '\''])
                .skip(1)
                .step_by(2)
                .filter(|quoted| quoted.ends_with(".js") || quoted.ends_with(".css"));
            for name in quoted {
                named += 1;
                let at = match name.split_once('/') {
                    Some((".", rest)) => format!("{folder}/{rest}"),
                    Some(("..", rest)) => format!("/{rest}"),
                    _ => name.to_owned(),
                };
                assert!(page_file(&at).is_some(), "{path} ({what}) names {name}");
            }
        }
        assert!(named > 10, "{named} are named");
    }
}
