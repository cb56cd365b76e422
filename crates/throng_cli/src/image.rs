//! Writes PNG images row by row, so that memory does not grow with the image.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::CliError;

/// Red, green and blue.
pub(super) type Color = [u8; 3];

/// The colour of blocked tiles.
pub(super) const BLOCKED: Color = [40, 42, 54];

/// The colour of free tiles.
pub(super) const FREE: Color = [245, 245, 240];

/// Writes an image. `fill(y, row)` appends the colours of the pixels of row y to an empty list.
///
/// Fails if the name does not end in .png, or the file cannot be written.
pub(super) fn write(
    output: &Path,
    width: u32,
    height: u32,
    mut fill: impl FnMut(u32, &mut Vec<u8>),
) -> Result<(), CliError> {
    check_name(output)?;
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(format!("could not write {}: {error}", output.display()))
    };
    let file = File::create(output).map_err(|error| failed(&error))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| failed(&error))?;
    let mut stream = writer.stream_writer().map_err(|error| failed(&error))?;
    let mut row = Vec::with_capacity(width as usize * 3);
    for y in 0..height {
        row.clear();
        fill(y, &mut row);
        stream.write_all(&row).map_err(|error| failed(&error))?;
    }
    stream.finish().map_err(|error| failed(&error))?;
    tracing::info!(file = %output.display(), width, height, "image written");
    Ok(())
}

/// Fails unless a file name ends in .png.
pub(super) fn check_name(output: &Path) -> Result<(), CliError> {
    let is_png = output
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
    if is_png {
        return Ok(());
    }
    Err(CliError::new(format!(
        "expected an image file OUT.png, found {}",
        output.display()
    )))
}
