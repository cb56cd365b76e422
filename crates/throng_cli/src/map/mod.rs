//! `throng map`: shows, converts, prepares, renders and generates maps.
//!
//! | file | holds |
//! |---|---|
//! | `generate` | maps from a recipe |
//! | `letters` | the letters of a MovingAI map file |
//! | `prepare` | maps with search data |
//! | this file | everything else |

mod generate;
mod letters;
mod prepare;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use glam::IVec2;

pub(crate) use self::letters::{letter_lines, letters_json, letters_of};

use self::generate::GenerateMap;
use self::prepare::PrepareMap;
use super::escape::escaped;
use super::outputs::check_output;
use super::picture::{SCALE_MAX, default_scale};
use super::{CliError, CliStatus, image, print};
use throng::map::{self, RegionId, TileMap};
use throng::nav::{Algorithm, Diagonal, NavMap};

/// Arguments of `throng map`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: throng map info assets/maps/village.tmap")]
pub(super) struct Map {
    #[command(subcommand)]
    action: MapAction,
}

/// Commands for maps. The file extension decides the format: .map (MovingAI), .raw, .tmap, .png.
#[derive(Debug, clap::Subcommand)]
enum MapAction {
    /// Print size, share of free tiles, regions, memory and load time
    #[command(after_help = "Example: throng map info --json keep.map")]
    Info {
        /// The map
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a map in another format; prepared search data is only kept from .tmap to .tmap
    #[command(after_help = "Example: throng map convert keep.map keep.tmap")]
    Convert {
        /// The map to read
        #[arg(value_name = "IN")]
        input: PathBuf,
        /// Map to write; the extension decides the format
        #[arg(value_name = "OUT")]
        output: PathBuf,
    },
    Prepare(PrepareMap),
    /// Draw a map as an image, with a colour for each region
    #[command(after_help = "Example: throng map render keep.map keep.png --scale 4")]
    Render {
        /// The map to read
        #[arg(value_name = "IN")]
        input: PathBuf,
        /// The image to write
        #[arg(value_name = "OUT.png")]
        output: PathBuf,
        /// Pixels per tile; small maps are enlarged by default
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_MAX)))]
        scale: Option<u32>,
    },
    /// Generate a map from a recipe and a seed
    Generate(GenerateMap),
}

/// Maximum size of an image, in pixels.
const PIXELS_MAX: u64 = 1 << 30;

impl Map {
    pub(super) fn run(&self, quiet: bool) -> Result<CliStatus, CliError> {
        match &self.action {
            MapAction::Info { file, json } => info(file, *json)?,
            MapAction::Convert { input, output } => {
                check_output(output, &[input])?;
                save(output, &open(input)?)?;
            }
            MapAction::Render {
                input,
                output,
                scale,
            } => {
                image::check_name(output)?;
                check_output(output, &[input])?;
                render(&open(input)?, output, *scale)?;
            }
            MapAction::Prepare(prepare) => prepare.run()?,
            MapAction::Generate(generate) => generate.run(quiet)?,
        }
        Ok(CliStatus::Done)
    }
}

/// Loads a map, and logs it.
pub(super) fn open(file: &Path) -> Result<TileMap, CliError> {
    let start = Instant::now();
    let map = map::load(file)?;
    tracing::info!(
        file = %escaped(&file.to_string_lossy()),
        width = map.width(),
        height = map.height(),
        ms = start.elapsed().as_secs_f64() * 1e3,
        "map read"
    );
    Ok(map)
}

fn save(file: &Path, map: &TileMap) -> Result<(), CliError> {
    map::save(file, map)?;
    let bytes = std::fs::metadata(file).map_or(0, |found| found.len());
    tracing::info!(
        file = %escaped(&file.to_string_lossy()),
        width = map.width(),
        height = map.height(),
        bytes,
        "map written"
    );
    Ok(())
}

fn info(file: &Path, json: bool) -> Result<(), CliError> {
    let start = Instant::now();
    let map = map::load(file)?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let letters = letters_of(file)?;
    let memory = map.memory();
    let tiles = u64::from(map.width()) * u64::from(map.height());
    let free_share = map.free_count() as f64 / tiles as f64;
    let largest = map.largest_region().map_or(0, |(_, tiles)| tiles);
    let (prepared, refused) = prepared_in(&map);
    if json {
        let info = serde_json::json!({
            "map": file.display().to_string(),
            "width": map.width(),
            "height": map.height(),
            "tiles": tiles,
            "free_tiles": map.free_count(),
            "free_share": free_share,
            "letters": letters_json(&letters),
            "regions": map.region_count(),
            "largest_region_tiles": largest,
            "memory": {
                "rows_bytes": memory.rows_bytes,
                "columns_bytes": memory.columns_bytes,
                "regions_bytes": memory.regions_bytes,
                "parts_bytes": memory.sections_bytes,
            },
            "prepared": prepared,
            "refused": refused,
            "load_ms": load_ms,
        });
        return print(&info.to_string());
    }
    let largest_share = if map.free_count() == 0 {
        0.0
    } else {
        100.0 * largest as f64 / map.free_count() as f64
    };
    let regions = map.region_count();
    print(&format!(
        "map             {}",
        escaped(&file.to_string_lossy())
    ))?;
    print(&format!(
        "size            {} × {} tiles",
        map.width(),
        map.height()
    ))?;
    print(&format!(
        "free            {:.1} % ({} tiles)",
        100.0 * free_share,
        map.free_count()
    ))?;
    for (side, list) in letter_lines(&letters) {
        print(&format!("  {side:<14}{list}"))?;
    }
    print(&format!(
        "regions         {regions}, the largest with {largest_share:.1} % of the free tiles"
    ))?;
    print(&format!(
        "memory rows     {}",
        bytes(memory.rows_bytes as u64)
    ))?;
    print(&format!(
        "memory columns  {}",
        bytes(memory.columns_bytes as u64)
    ))?;
    print(&format!(
        "memory regions  {}",
        bytes(memory.regions_bytes as u64)
    ))?;
    for (rule, prepared_bytes) in prepared {
        let prepared_bytes = bytes(prepared_bytes as u64);
        print(&format!("prepared        {rule}: {prepared_bytes}"))?;
    }
    for refused in refused {
        print(&format!("not usable      {refused}"))?;
    }
    print(&format!("load time       {load_ms:.1} ms"))
}

/// The search data in a map's file: its bytes per movement rule, and the parts that are not usable.
fn prepared_in(map: &TileMap) -> (BTreeMap<&'static str, usize>, Vec<String>) {
    let mut prepared = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for rule in Diagonal::ALL {
        let (nav_map, unusable) = NavMap::from_sections(rule, map);
        let prepared_bytes = nav_map.prepared_bytes(Algorithm::JpsGraph);
        if prepared_bytes > 0 {
            prepared.insert(rule.name(), prepared_bytes);
        }
        // Data that belongs to neither rule is reported once, as unusable.
        refused.extend(unusable.iter().map(ToString::to_string));
    }
    (prepared, refused.into_iter().collect())
}

fn bytes(count: u64) -> String {
    match count {
        0..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{:.1} KiB", count as f64 / 1_024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

/// Writes a map as a PNG image, one square of pixels per tile.
fn render(map: &TileMap, output: &Path, scale: Option<u32>) -> Result<(), CliError> {
    let scale = scale.unwrap_or_else(|| default_scale(map));
    let pixels = map.rect().tile_count() * u64::from(scale).pow(2);
    if pixels > PIXELS_MAX {
        return Err(CliError::new(format!(
            "--scale {scale} makes an image of {} × {} pixels, expected at most {PIXELS_MAX} in all",
            u64::from(map.width()) * u64::from(scale),
            u64::from(map.height()) * u64::from(scale)
        )));
    }
    let largest = map.largest_region().map(|(region, _)| region);
    image::write(
        output,
        map.width() * scale,
        map.height() * scale,
        |y, row| {
            for x in 0..map.width() {
                let region = map.region(IVec2::new(x as i32, (y / scale) as i32));
                for _ in 0..scale {
                    row.extend_from_slice(&color(region, largest));
                }
            }
        },
    )
}

/// Blocked tiles are dark, the largest region is nearly white, and every other region has a light tint of its own.
fn color(region: Option<RegionId>, largest: Option<RegionId>) -> [u8; 3] {
    match region {
        None => image::BLOCKED,
        Some(_) if region == largest => image::FREE,
        Some(RegionId(id)) => {
            // A multiplicative hash gives neighbouring ids different tints.
            let [a, b, c, _] = id.wrapping_mul(0x9e37_79b1).to_le_bytes();
            [110 + a / 2, 110 + b / 2, 110 + c / 2]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_with_their_unit() {
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(3 << 20), "3.0 MiB");
    }

    #[test]
    fn tint_differs_from_blocked_and_from_the_largest_region() {
        let largest = Some(RegionId(1));
        for id in 2..1000 {
            let tint = color(Some(RegionId(id)), largest);
            assert_ne!(tint, color(None, largest));
            assert_ne!(tint, color(largest, largest));
        }
    }
}
