//! The demo page at `/`, from `assets/web`. Its scripts are compiled from `clients/web`; CI compiles them again and compares.

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use throng_nav::map::{TileMap, TileRect};

use crate::http::{CONTENT_POLICY, PublicOrigin};

pub(super) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($path:literal, $what:ident, $file:literal) => {
        ($path, $what, include_str!(concat!("../../web/", $file)))
    };
}

/// Path, content type and content of each file.
const FILES: [(&str, &str, &str); 21] = [
    file!("/", HTML, "index.html"),
    file!("/page.css", CSS, "page.css"),
    file!("/demo/page.js", SCRIPT, "demo/page.js"),
    file!("/demo/ghosts.js", SCRIPT, "demo/ghosts.js"),
    file!("/demo/bad_datagrams.js", SCRIPT, "demo/bad_datagrams.js"),
    file!("/demo/slow_session.js", SCRIPT, "demo/slow_session.js"),
    file!("/demo/minimap.js", SCRIPT, "demo/minimap.js"),
    file!("/demo/names.js", SCRIPT, "demo/names.js"),
    file!("/demo/words.js", SCRIPT, "demo/words.js"),
    file!("/src/client_message.js", SCRIPT, "src/client_message.js"),
    file!("/src/close_reason.js", SCRIPT, "src/close_reason.js"),
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

/// Bytes before the tiles of a map.
const MAP_HEADER_BYTES: usize = 12;

/// The walls of a scene, for the page: width and height in tiles (4 bytes each), the side of a tile in metres (`f32`), then one bit per
/// tile, 1 if it is blocked, row by row; each row starts at a new byte, lowest bit first. O(tiles).
#[must_use]
pub fn map_bytes(tiles: &TileMap, tile_m: f32) -> Vec<u8> {
    let (width, height) = (tiles.width(), tiles.height());
    let mut bytes = Vec::with_capacity(MAP_HEADER_BYTES + (width.div_ceil(8) * height) as usize);
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend(tile_m.to_le_bytes());
    for y in 0..height {
        bytes.extend((0..width.div_ceil(8)).map(|byte| eight_tiles(tiles, byte, y)));
    }
    bytes
}

/// Updates the bytes of a map to its current tiles; only those in the rectangle may have changed. O(tiles of the rectangle).
pub(super) fn update_map_bytes(bytes: &mut [u8], tiles: &TileMap, rect: TileRect) {
    let row_bytes = tiles.width().div_ceil(8);
    for y in rect.y..rect.bottom().min(tiles.height()) {
        for byte in rect.x / 8..rect.right().div_ceil(8).min(row_bytes) {
            // Tiles of a map with another size are ignored.
            if let Some(place) = bytes.get_mut(MAP_HEADER_BYTES + (y * row_bytes + byte) as usize) {
                *place = eight_tiles(tiles, byte, y);
            }
        }
    }
}

/// Eight tiles of a row, from a multiple of eight on. Tiles outside of the map count as free.
fn eight_tiles(tiles: &TileMap, byte: u32, y: u32) -> u8 {
    let is_set = |bit: &u32| {
        let x = byte * 8 + bit;
        x < tiles.width() && tiles.is_blocked((x as i32, y as i32).into())
    };
    (0..8).filter(is_set).fold(0, |set, bit| set | 1 << bit)
}

/// The page itself, with the address to which it connects, and its policy.
#[derive(Debug)]
pub(super) struct IndexPage {
    pub html: Bytes,
    /// The value of `Content-Security-Policy`, if it differs from that of all responses.
    pub policy: Option<HeaderValue>,
}

impl IndexPage {
    pub fn new(public: Option<&PublicOrigin>) -> Self {
        let (_, html) = page_file("/").unwrap_or_default();
        let Some(origin) = public else {
            return Self {
                html: Bytes::from_static(html.as_bytes()),
                policy: None,
            };
        };
        // An origin has no characters with a meaning in HTML or in a policy.
        let name = format!("<head>\n<meta name=\"public-origin\" content=\"{origin}\">");
        let policy = format!(
            "{CONTENT_POLICY}; connect-src 'self' {origin} {}",
            origin.websocket()
        );
        Self {
            html: html.replacen("<head>", &name, 1).into(),
            policy: HeaderValue::from_str(&policy).ok(),
        }
    }
}

/// Content type and text of a file.
pub(super) fn page_file(path: &str) -> Option<(&'static str, &'static str)> {
    let file = FILES.iter().find(|(at, ..)| *at == path);
    file.map(|&(_, what, text)| (what, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_nav::map::TileEdit;

    #[test]
    fn updated_map_bytes_match_a_fresh_encoding() {
        for (width, height) in [(1, 1), (8, 5), (19, 7), (40, 3)] {
            let mut tiles =
                TileMap::from_fn(width, height, |x, y| (x * 7 + y * 3) % 5 == 0).unwrap();
            let mut bytes = map_bytes(&tiles, 0.5);
            for nth in 0..60 {
                let (x, y) = (nth * 13 % width, nth * 5 % height);
                let (wide, high) = (1 + nth * 3 % 11, 1 + nth % 4);
                let rect = TileRect::new(x, y, wide.min(width - x), high.min(height - y));
                let edits = [TileEdit::Block, TileEdit::Free, TileEdit::Toggle];
                let edit = &edits[nth as usize % 3];
                if let Some(changed) = tiles.edit(rect, edit).unwrap() {
                    update_map_bytes(&mut bytes, &tiles, changed);
                }
                assert_eq!(bytes, map_bytes(&tiles, 0.5), "{rect:?}, {edit:?}");
            }
        }
    }

    #[test]
    fn page_names_the_public_origin_and_may_connect_to_it() {
        let plain = IndexPage::new(None);
        assert_eq!(plain.html, page_file("/").unwrap().1);
        assert!(plain.policy.is_none());
        let origin = "https://play.example.com:8443".parse().unwrap();
        let page = IndexPage::new(Some(&origin));
        let html = String::from_utf8(page.html.to_vec()).unwrap();
        let meta = "<meta name=\"public-origin\" content=\"https://play.example.com:8443\">";
        assert_eq!(html.matches(meta).count(), 1, "{html}");
        let policy = page.policy.unwrap();
        let policy = policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'self'"), "{policy}");
        let allowed =
            "connect-src 'self' https://play.example.com:8443 wss://play.example.com:8443";
        assert!(policy.ends_with(allowed), "{policy}");
    }

    #[test]
    fn page_references_exist() {
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
