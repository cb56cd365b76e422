//! Pages that show what a run or a bench found: one file each, which needs no other, no network and no script.
//!
//! ```text
//! the object that `--json` prints ──▶ sections ──▶ charts ──▶ SVG paths ─┐
//!                                         └─▶ tables ────────────────────┴─▶ one HTML file
//! ```
//! | file | holds |
//! |---|---|
//! | `chart.rs` | plots: axes, areas, lines, bars |
//! | `explain.rs` | why a tick was slow |
//! | `numbers.rs` | numbers in words |
//! | `scene_maps.rs` | maps: where the crowd stood, and tracks |
//! | `html.rs` | the document round it all; texts made fit to stand in it |
//! | `run/` | the page of a run |
//! | `scale.rs` | axes: where their marks are |
//! | `style.css` | how it looks: light, dark, on a phone, printed |
//!
//! What is drawn stretches with the page, and what is written does not: marks and labels of axes are text beside the drawing,
//! so that they can be read on a phone. A set of the tick has the same colour everywhere; the nine are of Paul Tol's scheme
//! "muted" ("Colour schemes", 2021), which people with any kind of colour vision can tell apart.
//!
//! Invariants: whatever stands in a scenario, no text of it is markup; every page is well-formed XML.

pub(super) mod chart;
mod explain;
pub(super) mod html;
pub(super) mod numbers;
pub(super) mod run;
pub(super) mod scale;
mod scene_maps;

use std::path::Path;

use super::CliError;

/// Writes the page of a run, drawn from what `--json` prints.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_run(file: &Path, json: &str) -> Result<(), CliError> {
    let run = run::PageRun::parse(json).map_err(CliError::new)?;
    write(file, &run::page(&run))
}

/// Writes a page.
///
/// # Errors
/// When the file cannot be written.
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
