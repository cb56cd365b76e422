//! Marks over a picture: lines, discs, rings, letters. Only drawn pixels take memory, so a picture may be as large as the largest map.

use glam::Vec2;

use super::font;
use crate::image::Color;

/// Pixels drawn over a picture, later ones over earlier ones. Pixels left of or above it are dropped.
#[derive(Default)]
pub(super) struct Overlay {
    pixels: Vec<(u32, u32, Color)>,
}

impl Overlay {
    /// One pixel.
    pub(super) fn dot(&mut self, x: i32, y: i32, color: Color) {
        if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) {
            self.pixels.push((y, x, color));
        }
    }

    /// Draws the pixels of a square around a centre for which `is_in` is true, given their offset from the centre. `half` is half the side.
    fn stamp(&mut self, center: Vec2, half: f32, color: Color, is_in: impl Fn(Vec2) -> bool) {
        let (low, high) = (
            (center - half).floor().as_ivec2(),
            (center + half).ceil().as_ivec2(),
        );
        for y in low.y..=high.y {
            for x in low.x..=high.x {
                let way = Vec2::new(x as f32 + 0.5, y as f32 + 0.5) - center;
                if way.abs().max_element() <= half && is_in(way) {
                    self.dot(x, y, color);
                }
            }
        }
    }

    /// A filled circle.
    pub(super) fn disc(&mut self, center: Vec2, radius: f32, color: Color) {
        self.stamp(center, radius, color, |way| way.length() <= radius);
    }

    /// A filled square; `half` is half the side.
    pub(super) fn square(&mut self, center: Vec2, half: f32, color: Color) {
        self.stamp(center, half, color, |_| true);
    }

    /// A filled diamond.
    pub(super) fn diamond(&mut self, center: Vec2, radius: f32, color: Color) {
        self.stamp(center, radius, color, |way| {
            way.abs().element_sum() <= radius
        });
    }

    /// A ring with this outer radius.
    pub(super) fn ring(&mut self, center: Vec2, radius: f32, width: f32, color: Color) {
        let inner = radius - width;
        self.stamp(center, radius, color, |way| {
            (inner..=radius).contains(&way.length())
        });
    }

    /// A line with round ends.
    pub(super) fn line(&mut self, from: Vec2, to: Vec2, width: f32, color: Color) {
        self.disc(from, width / 2.0, color);
        self.disc(to, width / 2.0, color);
        let way = to - from;
        let steps = way.abs().max_element();
        if steps < 1.0 {
            return;
        }
        let is_flat = way.x.abs() >= way.y.abs();
        // Measured along the shorter axis, so that the line has the same width in every direction.
        let half = width * way.length() / steps / 2.0;
        for step in 0..=steps as i32 {
            let at = from + way * (step as f32 / steps);
            let (along, across) = if is_flat { (at.x, at.y) } else { (at.y, at.x) };
            let (low, high) = (
                (across - half).round() as i32,
                (across + half).round() as i32,
            );
            for across in low..high {
                let along = along.floor() as i32;
                let (x, y) = if is_flat {
                    (along, across)
                } else {
                    (across, along)
                };
                self.dot(x, y, color);
            }
        }
    }

    /// Draws text; each font pixel is a square of this side. Returns where the next letter would begin.
    pub(super) fn text(&mut self, x: u32, y: u32, size: u32, text: &str, color: Color) -> u32 {
        let mut left = x;
        for letter in text.chars() {
            for (column, row) in font::pixels(letter) {
                for dy in 0..size {
                    for dx in 0..size {
                        self.pixels
                            .push((y + row * size + dy, left + column * size + dx, color));
                    }
                }
            }
            left += font::ADVANCE * size;
        }
        left
    }

    /// Adds the pixels of another overlay, moved down.
    pub(super) fn append_below(&mut self, other: Self, down: u32) {
        let moved = other.pixels.into_iter();
        self.pixels
            .extend(moved.map(|(y, x, color)| (y + down, x, color)));
    }

    /// Removes and returns the pixels as y, x and colour, in drawing order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u32, u32, Color)> {
        self.pixels.drain(..)
    }

    /// The pixels row by row from the left, each once, in its last colour.
    pub(super) fn into_rows(mut self) -> Vec<(u32, u32, Color)> {
        self.pixels.reverse();
        // A stable sort after the reversal, so that the pixel drawn last comes first and is kept.
        self.pixels.sort_by_key(|(y, x, _)| (*y, *x));
        self.pixels.dedup_by_key(|(y, x, _)| (*y, *x));
        self.pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Color = [255, 0, 0];
    const BLUE: Color = [0, 0, 255];

    fn drawn(draw: impl FnOnce(&mut Overlay)) -> Vec<(u32, u32, Color)> {
        let mut overlay = Overlay::default();
        draw(&mut overlay);
        overlay.into_rows()
    }

    #[test]
    fn later_marks_lie_on_top_and_outside_pixels_are_skipped() {
        let pixels = drawn(|overlay| {
            overlay.dot(1, 0, RED);
            overlay.dot(0, 0, RED);
            overlay.dot(1, 0, BLUE);
            overlay.dot(-1, 0, BLUE);
        });
        assert_eq!(pixels, [(0, 0, RED), (0, 1, BLUE)]);
    }

    #[test]
    fn line_width_is_the_same_in_every_direction() {
        let center = Vec2::new(50.5, 50.5);
        for (x, y) in [
            (40.0, 0.0),
            (0.0, 40.0),
            (30.0, 30.0),
            (35.0, -12.0),
            (-9.0, 33.0),
        ] {
            let way = Vec2::new(x, y);
            let pixels = drawn(|overlay| overlay.line(center - way, center + way, 3.0, RED));
            // Samples across the middle of the line, in steps of a tenth of a pixel.
            let across = way.perp().normalize() / 10.0;
            let is_drawn = |step: &i32| {
                let at = center + across * *step as f32;
                pixels
                    .iter()
                    .any(|(y, x, _)| (*x, *y) == (at.x as u32, at.y as u32))
            };
            let width = (-60..60).filter(is_drawn).count() as f32 / 10.0;
            assert!((2.4..=4.5).contains(&width), "{way}: {width}");
            // The line has no gap from end to end.
            let steps = (0..=100).map(|step| center + way * (step as f32 / 50.0 - 1.0));
            let gaps = steps.filter(|at| {
                !pixels
                    .iter()
                    .any(|(y, x, _)| (*x, *y) == (at.x as u32, at.y as u32))
            });
            assert_eq!(gaps.count(), 0, "{way}");
        }
    }

    #[test]
    fn ring_is_empty_inside() {
        let center = Vec2::splat(20.5);
        let pixels = drawn(|overlay| overlay.ring(center, 8.0, 2.0, RED));
        let at = |x: u32, y: u32| pixels.contains(&(y, x, RED));
        assert!(at(13, 20) && at(27, 20) && at(20, 13));
        assert!(!at(20, 20) && !at(16, 20) && !at(30, 20));
    }
}
