//! An animation of a run: frames of the crowd, as an animated PNG.
//!
//! Pixels are palette indices. Each frame after the first contains only the bounding box of the pixels that differ from the frame before;
//! equal pixels in the box are transparent. So the file is small, and memory is constant for any length of run.
//!
//! Cost: O(pixels + objects) per frame, between ticks.

use std::io::Write;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::*;
use glam::UVec2;
use png::{BitDepth, BlendOp, ColorType, EncodingError};

use super::crowd::{COLORS, CrowdStyle, NEUTRAL, WALLS, drawn_objects, largest_scene};
use super::legend::{self, Legend};
use super::overlay::Overlay;
use super::{OUTLINE, outlined_diamond};
use crate::CliError;
use crate::image::{Color, FREE};
use crate::picture::Swatch;
use throng::map::{SceneMap, TileMap};
use throng::world::ObjectKinds;

/// Maximum width and height of the map, in pixels.
const SIDE_PX: u32 = 640;

/// Maximum number of frames.
const FRAMES_MAX: u64 = 120;

/// Frames per second of the animation.
const FRAMES_PER_S: u16 = 10;

/// Display time of the last frame, in tenths of a second.
const LAST_TENTHS: u16 = 15;

/// Number of shades from free to blocked ground.
const SHADES: usize = 8;

/// Maximum number of tiles sampled along each side of a pixel.
const SAMPLES_MAX: u32 = 4;

/// Side of a font pixel in the legend, in image pixels.
const LETTER_PX: u32 = 2;

/// The palette index of the transparent colour, which shows the previous frame.
const CLEAR: u8 = 0;

/// An animation that is being written.
pub(crate) struct Animation<W: Write> {
    path: PathBuf,
    title: String,
    tick_hz: f64,
    /// The writer, or the error after which no more frames are written.
    writer: Result<png::Writer<W>, EncodingError>,
    /// Ticks between two frames.
    frame_ticks: u64,
    frames: u32,
    written: u32,
    /// Size of the map area; the legend is below it.
    map_px: UVec2,
    size: UVec2,
    scene: Option<Entity>,
    map: AnimationMap,
    style: CrowdStyle,
    palette: Vec<Color>,
    /// Pixels of the current frame, and of the last one written.
    now: Vec<u8>,
    last: Vec<u8>,
}

/// The map of a scene, scaled to fit.
#[derive(Default)]
struct AnimationMap {
    /// The drawn scene and its number of edits.
    scene_and_edits: Option<(Entity, u64)>,
    /// Palette indices of a whole frame without objects.
    pixels: Vec<u8>,
    /// Pixels per metre.
    scale: f32,
}

impl<W: Write> Animation<W> {
    /// Starts an animation of a run of `ticks` ticks, and writes the first frame. It shows the scene with the most objects; when that
    /// closes, another one.
    pub(crate) fn start(
        to: W,
        path: &Path,
        world: &World,
        title: String,
        (ticks, tick_hz): (u64, f64),
    ) -> Self {
        let scene = largest_scene(world);
        let map = scene.and_then(|scene| world.get::<SceneMap>(scene));
        let map_px = map.map_or(UVec2::new(SIDE_PX, SIDE_PX / 2), |map| {
            fit(map.tiles(), UVec2::splat(SIDE_PX))
        });
        let seen = scene.map_or_else(Vec::new, |scene| drawn_objects(world, scene));
        let kinds = world.resource::<ObjectKinds>();
        let mut style = CrowdStyle::empty(kinds);
        style.count(&seen, kinds);
        let width = map_px.x.max(super::WIDTH_MIN);
        let legend = new_legend("-", &title, 0.0, &style, kinds);
        let (_, band) = legend::draw(&legend, width, LETTER_PX);
        // One line more than needed now, because more kinds and teams may appear.
        let size = UVec2::new(width, map_px.y + band + legend::line_px(LETTER_PX));
        let every = (ticks.div_ceil(FRAMES_MAX - 1))
            .max((tick_hz / f64::from(FRAMES_PER_S)).round() as u64)
            .max(1);
        let frames = (ticks / every + 1) as u32;
        let palette = palette();
        let pixels = (size.x * size.y) as usize;
        let mut animation = Self {
            path: path.to_owned(),
            title,
            tick_hz,
            writer: header(to, size, frames, &palette),
            frame_ticks: every,
            frames,
            written: 0,
            map_px,
            size,
            scene,
            map: AnimationMap::default(),
            style,
            palette,
            now: vec![CLEAR; pixels],
            last: vec![CLEAR; pixels],
        };
        animation.after_tick(world, 0);
        animation
    }

    /// Adds a frame if one is due. After an error no more frames are written.
    pub(crate) fn after_tick(&mut self, world: &World, tick: u64) {
        let is_due = tick.is_multiple_of(self.frame_ticks) && self.written < self.frames;
        if is_due && self.writer.is_ok() {
            self.draw(world, tick);
            self.write();
        }
    }

    /// Ends the animation.
    ///
    /// # Errors
    /// If the animation or one of its frames could not be written.
    pub(crate) fn finish(mut self) -> Result<(), CliError> {
        // The header announces the number of frames, so a stopped run repeats its last frame.
        while self.writer.is_ok() && self.written < self.frames {
            self.write();
        }
        let (path, size) = (self.path.display(), self.size);
        let finished = self.writer.and_then(png::Writer::finish);
        finished.map_err(|error| CliError::new(format!("could not write {path}: {error}")))?;
        tracing::info!(file = %path, width = size.x, height = size.y, "animation written");
        Ok(())
    }

    /// Draws the current crowd; without an open scene, keeps the last drawing.
    fn draw(&mut self, world: &World, tick: u64) {
        let is_open = self
            .scene
            .is_some_and(|scene| world.get::<SceneMap>(scene).is_some());
        if !is_open {
            self.scene = largest_scene(world);
        }
        let found = self
            .scene
            .and_then(|scene| Some((scene, world.get::<SceneMap>(scene)?)));
        let Some((scene, map)) = found else {
            if self.written == 0 {
                self.now.fill(color_index(&self.palette, legend::GROUND));
            }
            return;
        };
        let blank = color_index(&self.palette, legend::GROUND);
        self.map.update(scene, map, (self.map_px, self.size), blank);
        self.now.copy_from_slice(&self.map.pixels);
        let kinds = world.resource::<ObjectKinds>();
        let seen = drawn_objects(world, scene);
        self.style.count(&seen, kinds);
        let mut overlay = Overlay::default();
        for figure in self.style.draw_order(&seen) {
            let (swatch, color) = self.style.style_of(figure, kinds);
            let at = figure.at_m * self.map.scale;
            match swatch {
                // The marks are so small that an outline would cover most of them.
                Swatch::Square => overlay.square(at, 1.75, color),
                Swatch::Diamond => outlined_diamond(&mut overlay, at, 6.0, color),
                _ => overlay.disc(at, 2.2, color),
            }
            self.draw_overlay(&mut overlay, self.map_px.y);
        }
        let size = map.size_m();
        let facts = format!("{} x {} m, {} objects", size.x, size.y, seen.len());
        let seconds = tick as f64 / self.tick_hz;
        let legend = new_legend(&facts, &self.title, seconds, &self.style, kinds);
        let (band, _) = legend::draw(&legend, self.size.x, LETTER_PX);
        overlay.append_below(band, self.map_px.y);
        self.draw_overlay(&mut overlay, self.size.y);
    }

    /// Draws marks into the frame, down to this row.
    fn draw_overlay(&mut self, overlay: &mut Overlay, bottom: u32) {
        let width = self.size.x;
        for (y, x, color) in overlay.drain() {
            if y < bottom && x < width {
                self.now[(y * width + x) as usize] = color_index(&self.palette, color);
            }
        }
    }

    /// Writes the pixels that differ from the last frame.
    fn write(&mut self) {
        let Ok(writer) = &mut self.writer else { return };
        let is_first = self.written == 0;
        let (low, high) = if is_first {
            (UVec2::ZERO, self.size)
        } else {
            changed_rect(&self.last, &self.now, self.size.x as usize)
        };
        let mut numbers = Vec::with_capacity(((high - low).x * (high - low).y) as usize);
        for y in low.y..high.y {
            let row = (y * self.size.x) as usize;
            let places = row + low.x as usize..row + high.x as usize;
            let pixels = self.now[places.clone()].iter().zip(&self.last[places]);
            numbers.extend(pixels.map(|(now, last)| if now == last { CLEAR } else { *now }));
        }
        self.written += 1;
        let is_last = self.written == self.frames;
        if let Err(error) = append(writer, (low, high), &numbers, is_last) {
            self.writer = Err(error);
        }
        self.last.copy_from_slice(&self.now);
    }
}

impl AnimationMap {
    /// Redraws the map if the scene changed or the map was edited.
    fn update(&mut self, scene: Entity, map: &SceneMap, (room, size): (UVec2, UVec2), blank: u8) {
        if self.scene_and_edits == Some((scene, map.version())) {
            return;
        }
        self.scene_and_edits = Some((scene, map.version()));
        let tiles = map.tiles();
        let px = fit(tiles, room);
        let tiles_a_pixel = tiles.width() as f32 / px.x as f32;
        self.scale = 1.0 / (tiles_a_pixel * map.tile_m());
        self.pixels.clear();
        self.pixels.resize((size.x * size.y) as usize, blank);
        let samples = (tiles_a_pixel.ceil() as u32).clamp(1, SAMPLES_MAX);
        let place = |pixel: u32, nth: u32| {
            let along = pixel as f32 + (nth as f32 + 0.5) / samples as f32;
            (along * tiles_a_pixel) as i32
        };
        for y in 0..px.y {
            for x in 0..px.x {
                let tiles_of_pixel = (0..samples * samples)
                    .map(|nth| (place(x, nth % samples), place(y, nth / samples)));
                let blocked = tiles_of_pixel
                    .filter(|&(x, y)| tiles.is_blocked((x, y).into()))
                    .count();
                let shade = blocked * (SHADES - 1) / (samples * samples) as usize;
                self.pixels[(y * size.x + x) as usize] = 1 + shade as u8;
            }
        }
    }
}

/// The size in pixels of a map scaled to fit into `room`; when enlarged, a tile gets a whole number of pixels.
fn fit(map: &TileMap, room: UVec2) -> UVec2 {
    let tiles = UVec2::new(map.width(), map.height());
    let enlarged = (room / tiles).min_element();
    if enlarged > 0 {
        return tiles * enlarged.min(super::SCALE_MAX);
    }
    let scale = (room.as_vec2() / tiles.as_vec2()).min_element();
    let px = (tiles.as_vec2() * scale).as_uvec2();
    px.clamp(UVec2::ONE, room)
}

/// The smallest box that contains all pixels that differ, with an exclusive end; one pixel if none differs.
fn changed_rect(last: &[u8], now: &[u8], width: usize) -> (UVec2, UVec2) {
    let (mut low, mut high) = (UVec2::MAX, UVec2::ZERO);
    let rows = last.chunks_exact(width).zip(now.chunks_exact(width));
    for (y, (last, now)) in rows.enumerate().filter(|(_, (last, now))| last != now) {
        let differs = |x: &usize| last[*x] != now[*x];
        let (Some(first), Some(end)) = ((0..width).find(differs), (0..width).rfind(differs)) else {
            continue;
        };
        low = low.min(UVec2::new(first as u32, y as u32));
        high = high.max(UVec2::new(end as u32 + 1, y as u32 + 1));
    }
    if high == UVec2::ZERO {
        return (UVec2::ZERO, UVec2::ONE);
    }
    (low, high)
}

fn new_legend(
    facts: &str,
    title: &str,
    seconds: f64,
    style: &CrowdStyle,
    kinds: &ObjectKinds,
) -> Legend {
    Legend {
        title: format!("{title}, {seconds:.1} s"),
        facts: vec![facts.to_owned()],
        marks: style.legend(kinds),
    }
}

/// All colours by their palette index.
fn palette() -> Vec<Color> {
    let mixed = |shade: usize| {
        let part = shade as f32 / (SHADES - 1) as f32;
        let channel = |nth: usize| {
            let (free, wall) = (f32::from(FREE[nth]), f32::from(WALLS[nth]));
            (free + (wall - free) * part).round() as u8
        };
        [channel(0), channel(1), channel(2)]
    };
    let clear = std::iter::once([0; 3]);
    let marks = COLORS.into_iter().chain([NEUTRAL, OUTLINE, super::CASING]);
    (clear.chain((0..SHADES).map(mixed)))
        .chain(marks)
        .chain([legend::INK, legend::GREY])
        .collect()
}

/// The palette index of a colour.
fn color_index(palette: &[Color], color: Color) -> u8 {
    let mut drawn = palette.iter().skip(1);
    let place = drawn.position(|known| *known == color);
    debug_assert!(place.is_some(), "{color:?} is not in the palette");
    1 + place.unwrap_or_default() as u8
}

/// The writer of frames, after the file header.
fn header<W: Write>(
    to: W,
    size: UVec2,
    frames: u32,
    palette: &[Color],
) -> Result<png::Writer<W>, EncodingError> {
    let mut encoder = png::Encoder::new(to, size.x, size.y);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette.concat());
    // Only the first colour is transparent.
    encoder.set_trns(vec![0]);
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_animated(frames, 0)?;
    encoder.set_frame_delay(1, FRAMES_PER_S)?;
    encoder.set_blend_op(BlendOp::Over)?;
    encoder.write_header()
}

/// Appends a frame that consists of one box.
fn append<W: Write>(
    writer: &mut png::Writer<W>,
    (low, high): (UVec2, UVec2),
    numbers: &[u8],
    is_last: bool,
) -> Result<(), EncodingError> {
    if is_last {
        writer.set_frame_delay(LAST_TENTHS, 10)?;
    }
    // In this order, because each setting is validated against the others.
    writer.reset_frame_position()?;
    writer.set_frame_dimension(high.x - low.x, high.y - low.y)?;
    writer.set_frame_position(low.x, low.y)?;
    writer.write_image_data(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng::world::Scenes;

    #[test]
    fn frame_holds_only_changed_pixels() {
        let last = vec![1; 5 * 4];
        let mut now = last.clone();
        assert_eq!(changed_rect(&last, &now, 5), (UVec2::ZERO, UVec2::ONE));
        (now[5 + 3], now[2 * 5 + 1]) = (2, 2);
        let (low, high) = (UVec2::new(1, 1), UVec2::new(4, 3));
        assert_eq!(changed_rect(&last, &now, 5), (low, high));
    }

    /// An animation of five seconds without a scene, stopped after two frames.
    fn stopped(to: impl Write) -> Result<(), CliError> {
        let mut world = World::new();
        world.init_resource::<Scenes>();
        world.init_resource::<ObjectKinds>();
        let (path, length) = (Path::new("a.png"), (100, 20.0));
        let mut animation = Animation::start(to, path, &world, "a".into(), length);
        animation.after_tick(&world, 2);
        animation.finish()
    }

    #[test]
    fn stopped_animation_has_all_announced_frames() {
        let mut bytes = Vec::new();
        assert!(stopped(&mut bytes).is_ok());
        let decoder = png::Decoder::new(std::io::Cursor::new(&bytes));
        let mut reader = decoder.read_info().unwrap();
        assert_eq!(reader.info().animation_control.unwrap().num_frames, 51);
        let mut picture = vec![0; reader.output_buffer_size().unwrap()];
        for _ in 0..51 {
            reader.next_frame(&mut picture).unwrap();
        }
        assert!(reader.next_frame(&mut picture).is_err());
    }

    #[test]
    fn unwritable_animation_is_reported_at_its_end() {
        for room in [0, 100, 1_000] {
            let error = stopped(&mut vec![0; room][..]).unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains("could not write a.png"), "{error}");
        }
    }

    #[test]
    fn maps_of_any_shape_fit() {
        let room = UVec2::new(640, 300);
        for (width, height, expected) in [
            (100, 100, UVec2::new(300, 300)),
            (2_000, 1_000, UVec2::new(600, 300)),
            (64_000, 1, UVec2::new(640, 1)),
            (3, 2, UVec2::new(192, 128)),
        ] {
            let map = TileMap::new(width, height, true).unwrap();
            assert_eq!(fit(&map, room), expected, "{width} x {height}");
        }
    }
}
