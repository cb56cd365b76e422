//! Images inside a page: a picture or an animation that the same command wrote, so that the page stays a single file.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::html::{section, text};
use super::numbers::bytes;
use crate::CliError;

/// The largest image that is embedded, in bytes; for a larger one the page shows the file name.
const IMAGE_BYTES_MAX: u64 = 16 << 20;

/// An image of a run.
#[derive(Clone, Debug)]
pub(crate) struct PageImage {
    /// What it shows.
    pub caption: &'static str,
    /// The name of its file.
    file: String,
    /// Its size, in bytes.
    size: u64,
    /// Its content as PNG; `None` if it is too large.
    png: Option<Vec<u8>>,
}

impl PageImage {
    /// Reads an image from its file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path, caption: &'static str) -> Result<Self, CliError> {
        Self::read_up_to(path, caption, IMAGE_BYTES_MAX)
    }

    fn read_up_to(path: &Path, caption: &'static str, max: u64) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::new(format!("could not read `{}`: {error}", path.display()))
        };
        // A pipe cannot be read a second time.
        let found = fs::metadata(path).map_err(failed)?;
        let mut png = None;
        if found.is_file() && found.len() <= max {
            let mut content = Vec::new();
            let file = File::open(path).map_err(failed)?;
            file.take(max).read_to_end(&mut content).map_err(failed)?;
            png = Some(content);
        }
        Ok(Self {
            caption,
            file: path.display().to_string(),
            size: found.len(),
            png,
        })
    }

    fn markup(&self) -> String {
        let caption = self.caption;
        match &self.png {
            Some(png) => format!(
                "<figure class=\"image\"><figcaption><b>{caption}</b></figcaption>\
                 <img alt=\"{caption}\" src=\"data:image/png;base64,{}\"/></figure>\n",
                base64(png)
            ),
            None => format!(
                "<p class=\"none\">{caption}: see <code>{}</code> ({}), which is too large for this page.</p>\n",
                text(&self.file),
                bytes(self.size as f64)
            ),
        }
    }
}

/// The section with the images; empty without any.
pub(super) fn images(all: &[PageImage]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let about = "Drawn by the same command; the legend below each explains the colours.";
    let drawn: String = all.iter().map(PageImage::markup).collect();
    section("images", "Images", about, &drawn)
}

/// Base 64 with padding: RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |nth: usize| u32::from(group.get(nth).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place > group.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::html::is_well_formed;

    #[test]
    fn base64_matches_the_test_vectors_of_the_rfc() {
        for (raw, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(raw.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn small_image_is_embedded_and_large_one_is_named() {
        let path = std::env::temp_dir().join(format!("throng-image-{}.png", std::process::id()));
        fs::write(&path, b"foobar").unwrap();
        let shown = |max| {
            let image = PageImage::read_up_to(&path, "The crowd", max).unwrap();
            images(&[image])
        };
        let (small, large) = (shown(6), shown(5));
        assert!(
            small.contains("src=\"data:image/png;base64,Zm9vYmFy\""),
            "{small}"
        );
        assert!(
            !large.contains("data:") && large.contains("(6 B), which is too large"),
            "{large}"
        );
        assert_eq!(
            (is_well_formed(&small), is_well_formed(&large)),
            (Ok(()), Ok(()))
        );
        fs::remove_file(&path).unwrap();
        assert!(PageImage::read(&path, "The crowd").is_err());
        assert_eq!(images(&[]), "");
    }
}
