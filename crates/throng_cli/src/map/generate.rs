//! `throng map generate`: a map from a recipe, a size and a seed.
//!
//! Each flag is a field of the recipe, with dashes instead of underscores and without the unit. A recipe refuses flags for fields that it
//! does not have.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::escape::escaped;
use crate::{CliError, print, whole_number};
use throng::map::{self, MapRecipe};

/// Arguments of `throng map generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GenerateMap {
    /// Map to write; the extension decides the format
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Kind of map
    #[arg(long, value_enum, default_value = "town")]
    recipe: RecipeName,
    /// Width and height in tiles [default: those of the recipe]
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<(u32, u32)>,
    /// Seed; the same recipe, size and seed give the same map
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number)]
    seed: u64,
    #[command(flatten)]
    fields: RecipeFields,
}

const EXAMPLES: &str = "Examples:
  throng map generate keep.tmap --size 600x400 --gates 2 --seed 7
  throng map generate maze.png --recipe maze --corridor 3
  throng map generate hall.map --recipe cave --size 200x200 --fill 0.44

The same maps as in a scenario's `map: Generate(Town(width_tiles: 600, …))`.
After --seed, each recipe accepts its own options and refuses the others.";

/// The recipes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecipeName {
    /// Walls with gates, streets, houses, a square in the middle
    Town,
    /// Rounded halls, all connected
    Cave,
    /// A maze with exactly one path between any two tiles
    Maze,
    /// A grid of rooms with doors, all connected
    Rooms,
    /// Each tile blocked by chance
    Random,
}

impl RecipeName {
    /// The name in scenarios.
    const fn variant(self) -> &'static str {
        match self {
            Self::Town => "Town",
            Self::Cave => "Cave",
            Self::Maze => "Maze",
            Self::Rooms => "Rooms",
            Self::Random => "Random",
        }
    }

    /// The name on the command line.
    fn name(self) -> String {
        self.variant().to_lowercase()
    }
}

/// The fields of all recipes.
#[derive(Clone, Debug, Default, clap::Args)]
struct RecipeFields {
    /// town: width of the avenues and gates, in tiles
    #[arg(long, value_name = "N")]
    avenue: Option<u32>,
    /// town: width of a street
    #[arg(long, value_name = "N")]
    street: Option<u32>,
    /// town: width of an alley
    #[arg(long, value_name = "N")]
    alley: Option<u32>,
    /// town: longest side of a block of houses
    #[arg(long, value_name = "N")]
    block: Option<u32>,
    /// town: side of the walled core, as a share of the map
    #[arg(long, value_name = "SHARE")]
    core_share: Option<f64>,
    /// town: thickness of the wall
    #[arg(long, value_name = "N")]
    wall: Option<u32>,
    /// town: open gates, from 0 to 4
    #[arg(long, value_name = "N")]
    gates: Option<u32>,
    /// town: share of blocks that are parks
    #[arg(long, value_name = "SHARE")]
    park_share: Option<f64>,
    /// cave, random: share of tiles that are blocked at first
    #[arg(long, value_name = "SHARE")]
    fill: Option<f64>,
    /// cave: number of smoothing steps
    #[arg(long, value_name = "N")]
    smoothing_rounds: Option<u32>,
    /// maze: width of a corridor
    #[arg(long, value_name = "N")]
    corridor: Option<u32>,
    /// rooms: side of a room
    #[arg(long, value_name = "N")]
    room: Option<u32>,
    /// rooms: width of a door
    #[arg(long, value_name = "N")]
    door: Option<u32>,
    /// rooms: share of walls with an extra door
    #[arg(long, value_name = "SHARE")]
    extra_doors: Option<f64>,
}

impl RecipeFields {
    /// The given values: the flag, the recipe's field, and the value.
    fn given_flags(&self) -> Vec<(&'static str, &'static str, Value)> {
        let tiles = |value: Option<u32>| value.map(|value| json!(value));
        let share = |value: Option<f64>| value.map(|value| json!(value));
        let all = [
            ("--avenue", "avenue_tiles", tiles(self.avenue)),
            ("--street", "street_tiles", tiles(self.street)),
            ("--alley", "alley_tiles", tiles(self.alley)),
            ("--block", "block_tiles", tiles(self.block)),
            ("--core-share", "core_share", share(self.core_share)),
            ("--wall", "wall_tiles", tiles(self.wall)),
            ("--gates", "gates", tiles(self.gates)),
            ("--park-share", "park_share", share(self.park_share)),
            ("--fill", "fill", share(self.fill)),
            (
                "--smoothing-rounds",
                "smoothing_rounds",
                tiles(self.smoothing_rounds),
            ),
            ("--corridor", "corridor_tiles", tiles(self.corridor)),
            ("--room", "room_tiles", tiles(self.room)),
            ("--door", "door_tiles", tiles(self.door)),
            ("--extra-doors", "extra_doors", share(self.extra_doors)),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(flag, field, value)| Some((flag, field, value?)))
            .collect()
    }
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once(['x', 'X', '×']);
    sides
        .and_then(|(width, height)| Some((width.trim().parse().ok()?, height.trim().parse().ok()?)))
        .ok_or_else(|| "expected width and height in tiles, such as 600x400".to_owned())
}

impl GenerateMap {
    /// Generates the map, writes it, and prints a summary.
    pub(super) fn run(&self, quiet: bool) -> Result<(), CliError> {
        // Checks the output before the map is generated.
        map::MapFormat::of(&self.output).map_err(|error| self.explain_file_error(error))?;
        let recipe = self.recipe()?;
        let made =
            map::generate(&recipe, self.seed).map_err(|error| self.explain_recipe_error(error))?;
        super::save(&self.output, &made)?;
        if quiet {
            return Ok(());
        }
        let tiles = made.rect().tile_count();
        let regions = made.region_count();
        print(&format!(
            "{}: {}, {} × {} tiles, seed {}; {:.1} % free, {regions} region{}",
            escaped(&self.output.to_string_lossy()),
            self.recipe.name(),
            made.width(),
            made.height(),
            self.seed,
            100.0 * made.free_count() as f64 / tiles.max(1) as f64,
            if regions == 1 { "" } else { "s" },
        ))
    }

    fn recipe(&self) -> Result<MapRecipe, CliError> {
        let mut fields = Map::new();
        if let Some((width, height)) = self.size {
            fields.insert("width_tiles".to_owned(), json!(width));
            fields.insert("height_tiles".to_owned(), json!(height));
        }
        for (flag, field, value) in self.fields.given_flags() {
            if !has_field(self.recipe, field, &value) {
                let others = RecipeName::value_variants().iter();
                let others = others.filter(|other| has_field(**other, field, &value));
                let others: Vec<String> =
                    others.map(|other| format!("`{}`", other.name())).collect();
                return Err(CliError::new(format!(
                    "{flag} does nothing for a `{}`: it is for {}",
                    self.recipe.name(),
                    others.join(", ")
                )));
            }
            fields.insert(field.to_owned(), value);
        }
        serde_json::from_value(json!({ self.recipe.variant(): fields }))
            .map_err(|error| CliError::new(format!("invalid recipe: {error}")))
    }

    /// Explains an error of the file name; if the name is that of a recipe, the error shows the right option.
    fn explain_file_error(&self, error: map::MapError) -> CliError {
        let named = self.output.to_string_lossy();
        let mut recipes = RecipeName::value_variants().iter();
        if recipes.any(|recipe| recipe.name() == named) {
            return CliError::new(format!(
                "expected a map file to write, such as {named}.tmap, found a recipe: use --recipe {named}"
            ));
        }
        CliError::from(error)
    }

    /// Explains an error of the recipe, with the names of the command line.
    fn explain_recipe_error(&self, error: map::MapError) -> CliError {
        let map::MapError::Recipe {
            field,
            found,
            expected,
        } = &error
        else {
            return CliError::from(error);
        };
        let of_field = |given: &(&'static str, &'static str, Value)| given.1 == *field;
        let given = self.fields.given_flags();
        let flag = given.iter().find(|given| of_field(given));
        let name = match (flag, *field) {
            (Some((flag, ..)), _) => *flag,
            (None, "width_tiles") => "the width of --size",
            (None, "height_tiles") => "the height of --size",
            (None, field) => field,
        };
        CliError::new(format!("{name} is {found}, expected {expected}"))
    }
}

/// Whether a recipe has a field.
fn has_field(recipe: RecipeName, field: &str, value: &Value) -> bool {
    let alone = json!({ recipe.variant(): { field: value } });
    serde_json::from_value::<MapRecipe>(alone).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_flags_and_recipe_fields_match() {
        let all = RecipeFields {
            avenue: Some(1),
            street: Some(1),
            alley: Some(1),
            block: Some(1),
            core_share: Some(0.5),
            wall: Some(1),
            gates: Some(1),
            park_share: Some(0.5),
            fill: Some(0.5),
            smoothing_rounds: Some(1),
            corridor: Some(1),
            room: Some(1),
            door: Some(1),
            extra_doors: Some(0.5),
        };
        let given = all.given_flags();
        for (flag, field, value) in &given {
            let takers = RecipeName::value_variants().iter();
            assert!(
                takers
                    .clone()
                    .any(|recipe| has_field(*recipe, field, value)),
                "{flag}"
            );
        }
        for recipe in RecipeName::value_variants() {
            let made: MapRecipe = serde_json::from_value(json!({ recipe.variant(): {} })).unwrap();
            let fields = serde_json::to_value(made).unwrap();
            for field in fields[recipe.variant()].as_object().unwrap().keys() {
                let is_size = ["width_tiles", "height_tiles"].contains(&field.as_str());
                let has_flag = given.iter().any(|(_, name, _)| name == field);
                assert!(is_size || has_flag, "{field} of {recipe:?}");
            }
        }
    }

    #[test]
    fn size_is_two_numbers() {
        assert_eq!(size("600x400"), Ok((600, 400)));
        assert_eq!(size("600 × 400"), Ok((600, 400)));
        for bad in ["600", "x", "600x", "-1x5", "axb"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
