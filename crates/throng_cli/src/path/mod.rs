//! `throng path`: finds paths, compares the times of algorithms, and checks known lengths.
//!
//! ```text
//! map, queries (and edits) ──▶ [`QueryPlan`] ──▶ measure: an algorithm after the other ──▶ table or JSON on stdout
//!                                                       └──▶ render: the last search as an image
//! ```
//! | file | holds |
//! |---|---|
//! | `measure` | runs all queries of a plan with one algorithm |
//! | `results` | correct and wrong results, as a table and as JSON |
//! | `render` | a search as an image |
//!
//! The reference lengths are those of the `.scen` file, which hold without cut corners; for a single query, and if corners may be cut, the
//! reference is the first algorithm's result. The exit code is 1 if any result differs. A search that stopped at the node limit is counted
//! separately and not checked. If an algorithm has no result at all, its optimality is not proven: exit code 1 as well.

mod measure;
mod render;
mod results;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bevy_tasks::{ComputeTaskPool, TaskPoolBuilder};
use glam::{IVec2, UVec2};

use self::measure::{MeasuredAnswers, PlanStep, QueryPlan, Task, measure};
use self::results::PathResults;
use super::map::{letters_of, open};
use super::outputs::check_output;
use super::{
    CliError, image, interrupted_status, is_interrupted, listen_for_interrupt, print, progress,
};
use crate::CliStatus as Exit;
use throng::map::{self, TileEdit, TileMap};
use throng::nav::{Algorithm, Diagonal, PathQuery, Scen, ScenCommand, ScenQuery, parse_scen};
use throng::sim::Workers;

/// Arguments of `throng path`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(super) struct Paths {
    /// Map file; optional for a .scen file of version 2, which starts with free tiles
    #[arg(long, value_name = "FILE", required_unless_present = "scen")]
    map: Option<PathBuf>,
    /// File of queries with known lengths, and edits between them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to"])]
    scen: Option<PathBuf>,
    /// Start tile
    #[arg(long, value_name = "X,Y", value_parser = tile, requires = "to", required_unless_present = "scen")]
    #[arg(allow_hyphen_values = true)]
    from: Option<IVec2>,
    /// Goal tile
    #[arg(long, value_name = "X,Y", value_parser = tile, requires = "from", required_unless_present = "scen")]
    #[arg(allow_hyphen_values = true)]
    to: Option<IVec2>,
    /// Algorithms, separated by commas, or `all` [default: jps-graph]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = algorithms)]
    algorithm: Vec<AlgorithmChoice>,
    /// Whether a diagonal step may cut a corner
    #[arg(long, value_name = "no-cut|cut", default_value = "no-cut", value_parser = diagonal)]
    diagonal: Diagonal,
    /// Number of nodes after which a search stops
    #[arg(long, value_name = "N|none", default_value = "none", value_parser = node_limit)]
    node_limit: NodeLimit,
    /// Run only every Nth query of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,
    /// Run each query N times and use its shortest time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Threads that share the queries of the file [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Draw the last query's search by the first algorithm
    #[arg(long, value_name = "FILE.png")]
    render: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "throng path --map <FILE> --from <X,Y> --to <X,Y> [OPTIONS]
       throng path [--map <FILE>] --scen <FILE> [OPTIONS]";

const EXAMPLES: &str = "Examples:
  throng path --map keep.map --from 3,4 --to 90,80 --render path.png
  throng path --map keep.map --scen keep.map.scen --algorithm all --stride 10

Tiles are counted from 0, x to the right and y down; `throng map info` prints
a map's size. Algorithms: astar, jps, jps-bit, jps-bit-prune, jps-bit-pre,
jps-bit-prune-pre, jps-graph (the fastest). All give the same lengths.";

/// The value of `--algorithm`: one, or all.
#[derive(Clone, Copy, Debug)]
enum AlgorithmChoice {
    All,
    One(Algorithm),
}

#[derive(Clone, Copy, Debug)]
struct NodeLimit(Option<u32>);

fn tile(text: &str) -> Result<IVec2, String> {
    text.split_once(',')
        .and_then(|(x, y)| Some(IVec2::new(x.trim().parse().ok()?, y.trim().parse().ok()?)))
        .ok_or_else(|| "expected two whole numbers of tiles, such as 12,34".to_owned())
}

fn algorithms(name: &str) -> Result<AlgorithmChoice, String> {
    if name == "all" {
        return Ok(AlgorithmChoice::All);
    }
    name.parse()
        .map(AlgorithmChoice::One)
        .map_err(|error| format!("{error} or `all`"))
}

fn diagonal(name: &str) -> Result<Diagonal, String> {
    let rule = Diagonal::ALL.into_iter().find(|rule| rule.name() == name);
    rule.ok_or_else(|| "expected `no-cut` or `cut`".to_owned())
}

fn node_limit(text: &str) -> Result<NodeLimit, String> {
    if text == "none" {
        return Ok(NodeLimit(None));
    }
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit
        .map(|limit| NodeLimit(Some(limit)))
        .ok_or_else(|| "expected a number of nodes from 1, or `none`".to_owned())
}

impl Paths {
    pub(super) fn run(&self, quiet: bool) -> Result<Exit, CliError> {
        if self.scen.is_none() {
            for (flag, is_given) in [
                ("--stride", self.stride.is_some()),
                ("--threads", self.threads.is_some()),
            ] {
                if is_given {
                    return Err(CliError::new(format!(
                        "{flag} does nothing for one path: it applies to the queries of --scen"
                    )));
                }
            }
        }
        if let Some(output) = &self.render {
            image::check_name(output)?;
            let inputs: Vec<&Path> = [&self.map, &self.scen]
                .into_iter()
                .filter_map(Option::as_deref)
                .collect();
            check_output(output, &inputs)?;
        }
        let mut plan = self.plan()?;
        let threads = self.threads.map_or(1, usize::from);
        ComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(threads).build());
        listen_for_interrupt();
        let algorithms = self.algorithms();
        let bar = progress((plan.tasks.len() * algorithms.len()) as u64, "query", quiet);
        let mut all = Vec::new();
        for algorithm in &algorithms {
            let workers = Workers::new(threads);
            let measured = measure(&plan, *algorithm, self.repeat, workers, &bar)?;
            tracing::info!(
                algorithm = algorithm.name(),
                ms = measured.prepare_ms,
                prepared_bytes = measured.prepared_bytes(),
                scratch_bytes = measured.scratch_bytes,
                "algorithm prepared"
            );
            if all.is_empty() && !self.has_lengths() {
                set_expected(&mut plan.tasks, &measured);
            }
            all.push(measured);
            if is_interrupted() {
                break;
            }
        }
        bar.finish_and_clear();
        let findings = PathResults {
            plan: &plan,
            all: &all,
            letters: self
                .map
                .as_deref()
                .map_or_else(|| Ok(Vec::new()), letters_of)?,
            map: self.map.as_deref(),
            is_single: self.scen.is_none(),
        };
        if self.json {
            print(&findings.json().to_string())?;
        } else if quiet {
            findings.print_failures();
        } else {
            print(&findings.table())?;
        }
        if let Some(output) = &self.render {
            draw(output, &plan, &all)?;
        }
        let is_met = !findings.has_wrong() && findings.has_answers();
        if is_interrupted() {
            return Ok(interrupted_status());
        }
        Ok(if is_met { Exit::Done } else { Exit::Failed })
    }

    /// Whether the file's lengths are the reference.
    fn has_lengths(&self) -> bool {
        self.scen.is_some() && self.diagonal == Diagonal::NoCut
    }

    /// The requested algorithms, each once.
    fn algorithms(&self) -> Vec<Algorithm> {
        let mut algorithms = Vec::new();
        for chosen in &self.algorithm {
            let named = match chosen {
                AlgorithmChoice::All => Algorithm::ALL.to_vec(),
                AlgorithmChoice::One(algorithm) => vec![*algorithm],
            };
            for algorithm in named {
                if !algorithms.contains(&algorithm) {
                    algorithms.push(algorithm);
                }
            }
        }
        if algorithms.is_empty() {
            algorithms.push(Algorithm::default());
        }
        algorithms
    }

    fn plan(&self) -> Result<QueryPlan, CliError> {
        let map = self.map.as_deref().map(open).transpose()?;
        match (&self.scen, map, self.from, self.to) {
            (Some(scen), map, ..) => self.plan_from_scen(scen, map),
            (None, Some(map), Some(from), Some(to)) => {
                check_end("--from", &map, from)?;
                check_end("--to", &map, to)?;
                Ok(QueryPlan {
                    map: Arc::new(map),
                    diagonal: self.diagonal,
                    patches: Vec::new(),
                    steps: vec![PlanStep::Query(0..1)],
                    tasks: vec![Task {
                        index: 0,
                        query: self.query(from, to),
                        expected: None,
                    }],
                })
            }
            _ => Err(CliError::new(
                "expected --map FILE and --scen FILE, or --map FILE, --from X,Y and --to X,Y",
            )),
        }
    }

    /// Every Nth query of a `.scen` file, and all edits before the last of these queries.
    fn plan_from_scen(&self, file: &Path, map: Option<TileMap>) -> Result<QueryPlan, CliError> {
        let name = file.display().to_string();
        let scen = parse_scen(&name, &read_scen(file)?)?;
        let patches = match &scen.patch_file {
            Some(patch_file) => map::load_patches(file.with_file_name(patch_file))?,
            None => Vec::new(),
        };
        scen.check_patches(&name, &patches)?;
        let map = starting_map(&name, &scen, map)?;
        let (mut steps, mut tasks, mut index) = (Vec::new(), Vec::new(), 0);
        let mut planned = 0;
        let stride = self.stride.unwrap_or(1) as usize;
        for command in &scen.commands {
            match command {
                ScenCommand::Query(query) => {
                    if index % stride == 0 {
                        tasks.push(Task {
                            index,
                            query: self.query(query.from, query.to),
                            expected: self.has_lengths().then_some(*query),
                        });
                    }
                    index += 1;
                }
                ScenCommand::Patch(patch) => {
                    if planned < tasks.len() {
                        steps.push(PlanStep::Query(planned..tasks.len()));
                        planned = tasks.len();
                    }
                    let number = patch.patch as usize;
                    steps.push(PlanStep::Edit {
                        rect: patch.rect(&patches[number]),
                        patch: number,
                    });
                }
            }
        }
        steps.push(PlanStep::Query(planned..tasks.len()));
        // Edits after the last query change no result, and the image shows the map at the time of that query.
        while let [.., PlanStep::Edit { .. }, PlanStep::Query(range)] = steps.as_slice()
            && range.is_empty()
        {
            steps.remove(steps.len() - 2);
        }
        Ok(QueryPlan {
            map: Arc::new(map),
            diagonal: self.diagonal,
            patches: patches.into_iter().map(TileEdit::Write).collect(),
            steps,
            tasks,
        })
    }

    fn query(&self, from: IVec2, to: IVec2) -> PathQuery {
        PathQuery {
            node_limit: self.node_limit.0,
            ..PathQuery::new(from, to)
        }
    }
}

/// Fails if an end of a path is not walkable.
fn check_end(name: &str, map: &TileMap, tile: IVec2) -> Result<(), CliError> {
    if !map.rect().contains(tile) {
        return Err(CliError::new(format!(
            "{name} {},{} is outside the map's {} × {} tiles",
            tile.x,
            tile.y,
            map.width(),
            map.height()
        )));
    }
    if !map.is_free(tile) {
        return Err(CliError::new(format!(
            "{name} {},{} is a blocked tile, expected a free one",
            tile.x, tile.y
        )));
    }
    Ok(())
}

/// The text of a `.scen` file, with a size limit.
pub(crate) fn read_scen(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(map::FILE_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(CliError::new(format!(
            "could not read {}: {error}",
            file.display()
        ))),
    }
}

/// The map that a `.scen` file starts from.
fn starting_map(name: &str, scen: &Scen, map: Option<TileMap>) -> Result<TileMap, CliError> {
    let is_static = scen.patch_file.is_none();
    match (map, scen.size) {
        (Some(map), _) => {
            scen.check_size(name, UVec2::new(map.width(), map.height()))?;
            Ok(map)
        }
        (None, Some(size)) if !is_static => Ok(TileMap::new(size.x, size.y, false)?),
        (None, _) => Err(CliError::new(format!(
            "{name}: --map FILE is needed: the file has no patches that define a map"
        ))),
    }
}

/// Makes the first algorithm's results the reference for the others.
fn set_expected(tasks: &mut [Task], first: &MeasuredAnswers) {
    for (task, answer) in tasks.iter_mut().zip(&first.answers) {
        task.expected = answer
            .and_then(|answer| answer.length_tiles())
            .map(|length_tiles| ScenQuery {
                bucket: 0,
                from: task.query.from,
                to: task.query.to,
                length_tiles,
            });
    }
}

fn draw(output: &Path, plan: &QueryPlan, all: &[MeasuredAnswers]) -> Result<(), CliError> {
    match (all.first(), plan.tasks.last()) {
        (Some(one), Some(task)) => render::render(output, one, task.query),
        _ => Err(CliError::new("no query to draw")),
    }
}
