//! HTML pages of runs and benches: one self-contained file each, without network access. They say everything without scripts, too.
//!
//! ```text
//! the object that `--json` prints ──▶ sections ──▶ charts ──▶ SVG paths ─┐
//!                                         └─▶ tables ────────────────────┴─▶ one HTML file
//! ```
//! | file | holds |
//! |---|---|
//! | `chart.rs` | plots: axes, areas, lines, bars |
//! | `contents.rs` | the table of contents |
//! | `cross.html` | a script: marks the time below the pointer in all plots |
//! | `embed.rs` | pictures and animations inside a page |
//! | `explain.rs` | why a tick was slow |
//! | `numbers.rs` | formatted numbers |
//! | `scene_maps.rs` | maps: heat map of the crowd, and tracks |
//! | `html.rs` | the HTML document; escaping of texts |
//! | `run/` | the page of a run |
//! | `scale.rs` | axes: where their marks are |
//! | `style.css` | the style: light, dark, on a phone, printed |
//!
//! Drawings stretch with the page, text does not: labels of axes are text next to the drawing, so that they are readable on a phone. A set
//! of the tick has the same colour everywhere; the nine colours are Paul Tol's scheme "muted" ("Colour schemes", 2021), which people with
//! any kind of colour vision can distinguish.
//!
//! Invariants: no text of a scenario is interpreted as markup; every page is well-formed XML.

pub(super) mod chart;
pub(super) mod contents;
pub(super) mod embed;
mod explain;
pub(super) mod html;
pub(super) mod numbers;
pub(super) mod run;
pub(super) mod scale;
mod scene_maps;

use std::path::Path;

use super::CliError;
use embed::PageImage;

/// Writes the page of a run, made from the output of `--json`, with images.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write_run(file: &Path, json: &str, images: &[PageImage]) -> Result<(), CliError> {
    let run = run::PageRun::parse(json).map_err(CliError::new)?;
    write(file, &run::page(&run, images))
}

/// Writes a page.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(file: &Path, page: &str) -> Result<(), CliError> {
    std::fs::write(file, page).map_err(|error| {
        CliError::new(format!(
            "could not write --report {}: {error}",
            file.display()
        ))
    })?;
    tracing::info!(file = %file.display(), "report written");
    Ok(())
}
