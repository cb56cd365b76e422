//! `throng bench`: systems, and the whole tick, under synthetic load, beside references.
//!
//! ```text
//! systems ──▶ one file a system ──▶ [`BenchRow`]s ──▶ table or JSON on stdout
//! ```
//! | file | holds |
//! |---|---|
//! | `nav/`, `aoi`, `matchmaking`, `outbox`, `sync` | the rows of a system |
//! | `tick` | the whole tick under a crowd |
//! | `rows` | [`BenchRow`], and how rows are shown |
//!
//! A row is one piece of work, done by throng and, where there is one, by a reference, in turn or each by itself as the file says,
//! in the same process, on the same input, with results compared. Input is generated from fixed seeds; only the times differ from run to run.

mod aoi;
mod matchmaking;
mod nav;
mod outbox;
mod rows;
mod sync;
mod tick;

use clap::ValueEnum;

use super::{ExitStatus, Failure, cores, listen_for_interrupt, print};
use crate::server::pools;
use rows::BenchRow;
pub(super) use rows::number;

/// Arguments of `throng bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Bench {
    /// What to measure; everything by default
    #[arg(value_enum, value_name = "SYSTEM")]
    systems: Vec<System>,
    /// Measure shorter
    #[arg(long)]
    quick: bool,
    /// Crowds for `tick`, in place of a search for the largest
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = players())]
    players: Vec<u32>,
    /// Threads for `nav`, `aoi` and `tick`; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print a JSON array of rows in place of tables
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  throng bench tick --players 2000,10000
  throng bench nav matchmaking --quick
  throng bench tick

`tick` plays a crowd in a town of 2,500 players a km²: 80 % walk along paths,
10 % gather in the square, the rest potters about or stands; a quarter as many
NPCs chase them. Every player sends 10 messages a second, changes an attribute
twice a second, sees at most 100 players, and has its packets made, which are
counted and forgotten. After 12 s in which all set out, 30 s are measured (10 s
for each step of the search, 5 s with --quick). What the synthetic clients do
themselves runs between ticks and is not in the figures. Memory is that of the
process, its map and the clients included, less what it had at the start.";

fn players() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(crate::crowd::LOAD_PLAYERS_MAX))
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum System {
    /// All algorithms beside A*; building, edits, a full tick
    Nav,
    /// View lists, beside a pool of pairs and plain sets
    Aoi,
    /// A heartbeat over 10,000 parties, beside arrival order
    Matchmaking,
    /// Packets and the sender's ring, beside queues of objects
    Outbox,
    /// Dirty masks beside flags and sets; a walking crowd
    Sync,
    /// The whole tick under a crowd
    Tick,
}

impl Bench {
    /// Measures, prints, and says whether all targets were met.
    pub(super) fn run(self, quiet: bool) -> Result<ExitStatus, Failure> {
        listen_for_interrupt();
        let systems = if self.systems.is_empty() {
            System::value_variants()
        } else {
            &self.systems
        };
        let mut rows = Vec::new();
        let threads = self.threads.map_or_else(cores, usize::from);
        // Those that measure without an app are spread over the same pools as those with one.
        pools(threads).create_default_pools();
        for system in systems {
            match system {
                System::Nav => self.tell(&nav::measure(self.quick, threads)?, &mut rows, quiet)?,
                System::Aoi => self.tell(&aoi::measure(self.quick, threads)?, &mut rows, quiet)?,
                System::Matchmaking => {
                    self.tell(&matchmaking::measure(self.quick)?, &mut rows, quiet)?
                }
                System::Outbox => self.tell(&outbox::measure(self.quick)?, &mut rows, quiet)?,
                System::Sync => self.tell(&sync::measure(self.quick)?, &mut rows, quiet)?,
                System::Tick => {
                    let bench = tick::TickBench {
                        threads,
                        quick: self.quick,
                        quiet,
                        tables: !self.json && !quiet,
                    };
                    rows.extend(bench.measure(&self.players)?);
                }
            }
        }
        if self.json {
            let text = serde_json::to_string_pretty(&rows);
            print(&text.map_err(|error| Failure::new(error.to_string()))?)?;
        }
        let missed = rows.iter().any(|row| row.meets == Some(false));
        Ok(if missed {
            ExitStatus::Unmet
        } else {
            ExitStatus::Done
        })
    }

    /// Prints the rows of a system as a table, if tables are wanted, and keeps them.
    fn tell(&self, new: &[BenchRow], rows: &mut Vec<BenchRow>, quiet: bool) -> Result<(), Failure> {
        if !self.json && !quiet {
            print(&rows::table(new))?;
        }
        rows.extend_from_slice(new);
        Ok(())
    }
}
