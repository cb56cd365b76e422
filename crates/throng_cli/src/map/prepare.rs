//! `throng map prepare`: writes a map with its search data.

use std::path::PathBuf;

use super::{check_output, open, save};
use crate::CliError;
use throng::map::MapFormat;
use throng::nav::{Algorithm, Diagonal, NavMap, NavSettings};

/// Write a map as a .tmap file that includes prepared search data
///
/// A server that opens such a map loads the search data instead of building it. Edits work as usual. Data that does not match
/// the tiles, or is damaged, is reported and built again. The file needs a few bytes per tile.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: throng map prepare keep.map keep.tmap")]
pub(super) struct PrepareMap {
    /// The map to read
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The map to write
    #[arg(value_name = "OUT.tmap")]
    output: PathBuf,
    /// Whether a diagonal step may cut a corner; servers use no-cut. For both: no-cut,cut
    #[arg(long, value_name = "no-cut|cut", value_delimiter = ',', default_value = "no-cut", value_parser = diagonal)]
    diagonal: Vec<Diagonal>,
}

fn diagonal(name: &str) -> Result<Diagonal, String> {
    let rule = Diagonal::ALL.into_iter().find(|rule| rule.name() == name);
    rule.ok_or_else(|| "expected `no-cut` or `cut`".to_owned())
}

impl PrepareMap {
    pub(super) fn run(&self) -> Result<(), CliError> {
        if MapFormat::of(&self.output)? != MapFormat::Tmap {
            return Err(CliError::new(format!(
                "`{}` cannot hold prepared search data: use a name that ends in .tmap",
                self.output.display()
            )));
        }
        check_output(&self.output, &[&self.input])?;
        let map = open(&self.input)?;
        let bytes_per_tile_max = NavSettings::default().graph_bytes_per_tile_max;
        // Data that a server would discard is not written.
        let graph_bytes_max = (bytes_per_tile_max * map.rect().tile_count() as f32) as usize;
        let mut parts = Vec::new();
        for rule in Diagonal::ALL {
            if self.diagonal.contains(&rule) {
                let mut nav_map = NavMap::new(rule);
                nav_map.prepare_with_limit(&map, Algorithm::JpsGraph, graph_bytes_max);
                parts.extend(nav_map.to_sections(&map));
            }
        }
        save(&self.output, &map.with_sections(parts))
    }
}
