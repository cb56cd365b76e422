//! `throng db`: maintenance of a player store.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::store::StoreAddress;
use super::{CliError, CliStatus, is_interrupted, listen_for_interrupt, print};
use throng::sim::clock::unix_ms;
use throng::store::{
    DisplayValue, StoreError, StoreInspection, StoredRow, dump_store, inspect_store, migrate_store,
};

/// Arguments of `throng db`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Db {
    #[command(subcommand)]
    action: DbAction,
}

const EXAMPLES: &str = "Examples:
  throng db migrate players.db
  throng db check players.db
  sqlite3 players.db \".backup backup.db\"
  throng db dump players.db | jq 'select(.values.coins > 500)'
  sqlite3 players.db \"SELECT * FROM player_value WHERE player = 7\"
  throng db check postgres://throng@localhost/game

A store is an SQLite file, which `run` and `serve` create and update. You may
read its tables: `player` has a row per player, with its lease; `player_value`
the attributes by name; `held_lease` which server holds which player; `server`
the last transaction of each process.
With Postgres (--store postgres://..., feature `postgres`) the tables are the
same, in the schema `throng`, and so are the commands.
A running server and readers do not disturb each other. Copy the file with
`.backup`, not with `cp`: the last saves can be in the file players.db-wal.";

#[derive(Debug, clap::Subcommand)]
enum DbAction {
    /// Create a store, or update the tables of an older one
    #[command(after_help = "Example: throng db migrate players.db")]
    Migrate {
        /// The file, created if it is missing; or postgres://USER@HOST/DATABASE
        store: PathBuf,
    },
    /// Check the consistency of a store
    #[command(after_help = "Example: throng db check players.db

Exit codes: 0 no errors, 1 errors found, 2 not readable or not a player store.")]
    Check {
        /// The file, or postgres://USER@HOST/DATABASE; it is not written
        store: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print every player, one JSON object per line
    #[command(after_help = "Example: throng db dump players.db | jq .values.coins")]
    Dump {
        /// The file, or postgres://USER@HOST/DATABASE; it is not written
        store: PathBuf,
    },
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl Db {
    /// Runs the subcommand.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        match self.action {
            DbAction::Migrate { store } => {
                let (name, before, now) = address(&store)?.migrate()?;
                print(&if before == now {
                    format!("{name}: schema {now}, up to date")
                } else {
                    format!("{name}: schema {before} → {now}")
                })?;
                Ok(CliStatus::Done)
            }
            DbAction::Check { store, json } => {
                let findings = address(&store)?.inspect()?;
                if json {
                    print(&to_json(&findings).to_string())?;
                } else {
                    let lines = text_lines(&findings, unix_ms());
                    lines.iter().try_for_each(|line| print(line))?;
                }
                Ok(if findings.problems.is_empty() {
                    CliStatus::Done
                } else {
                    CliStatus::Failed
                })
            }
            DbAction::Dump { store } => {
                listen_for_interrupt();
                let mut printed = Ok(());
                address(&store)?.dump(|row| {
                    printed = print(&row_json(&row).to_string());
                    printed.is_ok() && !is_interrupted()
                })?;
                printed?;
                Ok(if is_interrupted() {
                    super::interrupted_status()
                } else {
                    CliStatus::Done
                })
            }
        }
    }
}

fn address(store: &Path) -> Result<StoreAddress, CliError> {
    match store.to_str() {
        Some(address) => StoreAddress::parse(address, "throng db"),
        None => Ok(StoreAddress::File(store.to_owned())),
    }
}

impl StoreAddress {
    /// Updates the tables. Returns the name of the store, and the versions before and after.
    fn migrate(&self) -> Result<(String, i64, i64), StoreError> {
        match self {
            Self::File(path) => {
                let (before, now) = migrate_store(path)?;
                Ok((path.display().to_string(), before, now))
            }
            #[cfg(feature = "postgres")]
            Self::Server(source) => source.migrate(),
        }
    }

    fn inspect(&self) -> Result<StoreInspection, StoreError> {
        match self {
            Self::File(path) => inspect_store(path),
            #[cfg(feature = "postgres")]
            Self::Server(source) => source.inspect(),
        }
    }

    fn dump(&self, show: impl FnMut(StoredRow) -> bool) -> Result<(), StoreError> {
        match self {
            Self::File(path) => dump_store(path, show),
            #[cfg(feature = "postgres")]
            Self::Server(source) => source.dump(show),
        }
    }
}

fn text_lines(findings: &StoreInspection, now_ms: u64) -> Vec<String> {
    let mut lines = vec![
        format!("schema      {}", findings.version),
        format!("players     {}", findings.players),
        format!(
            "values      {} of {} attributes",
            findings.values,
            findings.attributes.len()
        ),
    ];
    for (server, &(count, last_ms)) in &findings.leases {
        let until = match last_ms.checked_sub(now_ms) {
            Some(left_ms) => format!("the last expires in {} s", left_ms / 1_000),
            None => "all expired".to_owned(),
        };
        lines.push(format!(
            "leases      {count} of server `{}`, {until}",
            super::escape::escaped(server)
        ));
    }
    let problems = findings.problems.iter();
    lines
        .extend(problems.map(|problem| format!("ERROR       {}", super::escape::escaped(problem))));
    if findings.problems.is_empty() {
        lines.push("no errors".to_owned());
    }
    lines
}

fn to_json(findings: &StoreInspection) -> Value {
    let leases = findings.leases.iter();
    let leases: Map<String, Value> = leases
        .map(|(server, (count, last_ms))| {
            let lease = json!({ "count": count, "last_expires_ms": last_ms });
            (server.clone(), lease)
        })
        .collect();
    json!({
        "schema": findings.version,
        "players": findings.players,
        "values": findings.values,
        "attributes": findings.attributes.values().collect::<Vec<_>>(),
        "leases": leases,
        "wrong": findings.problems,
    })
}

fn row_json(row: &StoredRow) -> Value {
    let values = row.values.iter().map(|(name, value)| {
        let value = match value {
            DisplayValue::Integer(number) => json!(number),
            DisplayValue::Real(number) => json!(number),
            DisplayValue::Text(text) => json!(text),
        };
        (name.clone(), value)
    });
    let lease = row.lease.as_ref().map(|(server, incarnation, expires_ms)| {
        json!({ "server": server, "incarnation": incarnation, "expires_ms": expires_ms })
    });
    json!({
        "player": row.player.0,
        "revision": row.revision,
        "tick": row.tick,
        "saved_ms": row.saved_ms,
        "epoch": row.epoch,
        "lease": lease,
        "values": values.collect::<Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_times_are_shown_in_whole_seconds() {
        let mut findings = StoreInspection::default();
        for (server, last_ms) in [("a", 12_999), ("b", 1_000), ("c", 999)] {
            findings.leases.insert(server.to_owned(), (3, last_ms));
        }
        let lines = text_lines(&findings, 1_000);
        let leases: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("leases      3 of server "))
            .collect();
        let expected = [
            "`a`, the last expires in 11 s",
            "`b`, the last expires in 0 s",
            "`c`, all expired",
        ];
        assert_eq!(leases, expected, "{lines:?}");
    }
}
