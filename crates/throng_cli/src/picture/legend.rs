//! The legend of a picture's marks, in a band below it, as wide as it is.

use glam::Vec2;

use super::font;
use super::overlay::Overlay;
use crate::image::Color;

/// The ground of the band.
pub(super) const GROUND: Color = [255, 255, 255];
pub(super) const INK: Color = [30, 30, 36];
pub(super) const GREY: Color = [110, 110, 118];

/// The sizes of a band, in pixels, by how many pixels a letter's are wide and high.
struct BandSizes {
    line: u32,
    margin: u32,
    /// The room of a mark before its word.
    sample: u32,
}

impl BandSizes {
    const fn of(letter: u32) -> Self {
        Self {
            line: (font::HEIGHT + 4) * letter,
            margin: 5 * letter,
            sample: 13 * letter,
        }
    }
}

/// The height of a line of a band, in pixels, by how many pixels a letter's are wide and high.
pub(super) const fn line_px(letter: u32) -> u32 {
    BandSizes::of(letter).line
}

/// A mark, as it is drawn in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swatch {
    Tile,
    Disc,
    Square,
    Diamond,
    Line,
    Ring,
}

/// A title, facts, and the meaning of marks.
#[derive(Default)]
pub(crate) struct Legend {
    pub title: String,
    /// A line each.
    pub facts: Vec<String>,
    pub marks: Vec<(Swatch, Color, String)>,
}

/// A band of this width, with its height; each pixel of a letter is this many pixels wide and high.
pub(super) fn draw(legend: &Legend, width: u32, letter: u32) -> (Overlay, u32) {
    let mut overlay = Overlay::default();
    let BandSizes {
        line,
        margin,
        sample,
    } = BandSizes::of(letter);
    let advance = font::ADVANCE * letter;
    let mut y = margin;
    let letters = (width.saturating_sub(2 * margin) / advance).max(8) as usize;
    let title = (legend.title.as_str(), INK);
    let facts = legend.facts.iter().map(|fact| (fact.as_str(), GREY));
    for (text, color) in std::iter::once(title).chain(facts) {
        for words in wrapped(text, letters) {
            overlay.text(margin, y, letter, &words, color);
            y += line;
        }
    }
    let mut x = margin;
    for (nth, (swatch, color, word)) in legend.marks.iter().enumerate() {
        let room = sample + (word.chars().count() as u32 + 2) * advance;
        if nth > 0 && x + room > width.saturating_sub(margin) {
            x = margin;
            y += line;
        }
        let center = Vec2::new(
            (x + sample / 2 - 2 * letter) as f32,
            (y + font::HEIGHT * letter / 2) as f32 - 1.0,
        );
        draw_swatch(&mut overlay, *swatch, center, letter as f32 / 2.0, *color);
        overlay.text(x + sample, y, letter, word, INK);
        x += room;
    }
    let height = if legend.marks.is_empty() { y } else { y + line };
    (overlay, height + margin / 2)
}

fn draw_swatch(overlay: &mut Overlay, swatch: Swatch, center: Vec2, unit: f32, color: Color) {
    match swatch {
        Swatch::Tile => {
            overlay.square(center, 8.0 * unit, GREY);
            overlay.square(center, 7.0 * unit, color);
        }
        Swatch::Disc => super::outlined_disc(overlay, center, 6.0 * unit, color),
        Swatch::Square => super::outlined_square(overlay, center, 5.0 * unit, color),
        Swatch::Diamond => super::outlined_diamond(overlay, center, 8.0 * unit, color),
        Swatch::Line => {
            let half = Vec2::X * 8.0 * unit;
            overlay.line(center - half, center + half, 4.0 * unit, color);
        }
        Swatch::Ring => super::outlined_ring(overlay, center, 8.0 * unit, color),
    }
}

/// Wraps words into lines of limited length. A longer word is cut.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word: String = word.chars().take(letters).collect();
        let last = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + 1 + word.chars().count() <= letters
        });
        match last {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) => {
                line.push(' ');
                line.push_str(&word);
            }
            None => lines.push(word),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legend_band_fits_its_lines() {
        let marks = ["player", "a kind with a long name", "npc"];
        let legend = Legend {
            title: "A town of many words that do not fit into one line".to_owned(),
            facts: vec!["500 m".to_owned()],
            marks: marks
                .map(|word| (Swatch::Disc, INK, word.to_owned()))
                .to_vec(),
        };
        for width in [320, 480, 2_000] {
            let (overlay, height) = draw(&legend, width, 2);
            for (y, x, _) in overlay.into_rows() {
                assert!(x < width && y < height, "{x}, {y} of {width} × {height}");
            }
        }
        assert!(draw(&legend, 2_000, 4).1 > draw(&legend, 2_000, 2).1);
        assert!(draw(&legend, 320, 2).1 > draw(&legend, 2_000, 2).1);
    }
}
