//! The player store of a run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;

use super::CliError;
use super::outputs::open;
use super::seconds::seconds;
use throng::sim::AfterTick;
use throng::store::{
    PlayerStore, PlayerStoreSettings, PlayersSaved, SqliteSource, StoreFactory, StoreReplyMode,
    close_player_store,
};
use throng_scenario::RunOptions;
use throng_scenario::crowd::TradePlugin;

/// Arguments of `throng run` about players that persist.
#[derive(Debug, Default, clap::Args)]
pub(super) struct RunStore {
    /// Save players, which trade with each other, in this file or database
    ///
    /// An SQLite file, created if it is missing; or, in a build with the feature `postgres`, postgres://USER@HOST/DATABASE (schema
    /// `throng`). Every player starts with 100 coins and 2 wares. Players are loaded at login; both sides of a trade are saved in one
    /// transaction. `throng db` checks and prints the store.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// With --store: name of this server, under which it leases players
    ///
    /// While a server with this name is running, a second one refuses logins unless it is started with --take-over. The name is free at
    /// once after an orderly stop, and 60 s after a crash.
    #[arg(
        long,
        value_name = "NAME",
        requires = "store",
        default_value_if("store", clap::builder::ArgPredicate::IsPresent, "throng")
    )]
    server: Option<String>,
    /// With --store: take over the server's name and its players from a running server
    #[arg(long, requires = "store")]
    take_over: bool,
    /// With --store: how long players play on without the store, after the end of their leases
    ///
    /// A lease lasts 60 s. After that, players are logged out; they are saved when the store is back. With this option they first play on
    /// for this time. If the store is back by then, they continue and are saved, except players that another server has taken over: these
    /// are logged out, and lose everything since their last save. If only this server has lost the store, its players may also log in
    /// elsewhere.
    #[arg(long, value_name = "TIME", requires = "store", value_parser = seconds, default_value = "0s")]
    unsaved_play: f64,
    /// With --store: maximum time to save all players at the end
    ///
    /// The program exits as soon as they are saved. If the store is away for so long, the changes since the last save are lost.
    #[arg(long, value_name = "TIME", requires = "store", value_parser = seconds, default_value = "30s")]
    save_timeout: f64,
    /// With --store: log each transaction once it is durable, one line each
    ///
    /// The lines are `TICK PLAYER=REVISION …`, each written before the next tick starts.
    #[arg(long, value_name = "FILE", requires = "store")]
    pub acknowledged: Option<PathBuf>,
}

impl RunStore {
    /// The server name to take over, if that was requested.
    pub(super) fn taken_over(&self) -> Option<&str> {
        self.server.as_deref().filter(|_| self.take_over)
    }

    /// The files of the store, which no other output may overwrite.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let path = self.store.as_deref().filter(|url| !is_postgres(url));
        let path = path.map(path_of);
        let of = |path: &str| ["", "-wal", "-shm"].map(|end| PathBuf::from(format!("{path}{end}")));
        path.map_or_else(Vec::new, |path| of(path).to_vec())
    }

    /// Adds a player store to a run. Opens the store once, so that errors are reported before the run begins, and adds its output to the
    /// `files`, which are truncated then. After the run, the returned flag tells whether players could not be saved.
    pub(super) fn add_to(
        &self,
        options: &mut RunOptions,
        in_real_time: bool,
        files: &mut Vec<File>,
    ) -> Result<Arc<AtomicBool>, CliError> {
        let is_unsaved = Arc::new(AtomicBool::new(false));
        let Some(url) = &self.store else {
            return Ok(is_unsaved);
        };
        let mut source = source_of(url)?;
        source
            .open()
            .map_err(|error| CliError::new(error.to_string()))?;
        let settings = PlayerStoreSettings {
            server: self.server.clone().unwrap_or_default(),
            take_over: self.take_over,
            reply_mode: if in_real_time {
                StoreReplyMode::WhenReady
            } else {
                StoreReplyMode::NextTick
            },
            ..PlayerStoreSettings::default()
        };
        let settings = settings.unsaved_play(Duration::from_secs_f64(self.unsaved_play));
        let log = self.acknowledged.as_deref().map(open).transpose()?;
        let log = log.map(|(file, writer)| {
            files.push(file);
            Mutex::new(writer)
        });
        options.configure.push(Box::new(move |app: &mut App| {
            app.add_plugins(TradePlugin).insert_resource(settings);
            app.world_mut()
                .resource_mut::<PlayerStore>()
                .open(source)
                .unwrap_or_else(|error| {
                    tracing::error!(%error, "store not opened: players will not be saved");
                });
            if let Some(log) = log {
                // The system only writes to its own file, so its order does not matter.
                let write = move |saved: MessageReader<PlayersSaved>| log_acknowledged(&log, saved);
                app.add_systems(FixedUpdate, write.in_set(AfterTick).ambiguous_with_all());
            }
        }));
        let is_unsaved_flag = Arc::clone(&is_unsaved);
        let timeout = Duration::from_secs_f64(self.save_timeout);
        options.at_end.push(Box::new(move |world| {
            is_unsaved_flag.store(!close_player_store(world, timeout), Ordering::Relaxed);
        }));
        Ok(is_unsaved)
    }
}

fn is_postgres(address: &str) -> bool {
    address.starts_with("postgres:") || address.starts_with("postgresql:")
}

/// Where a store is.
#[derive(Debug)]
pub(super) enum StoreAddress {
    /// A file.
    File(PathBuf),
    /// A database server.
    #[cfg(feature = "postgres")]
    Server(throng::store::PostgresSource),
}

impl StoreAddress {
    /// Parses the value of a command line option; `name` is the option.
    pub(super) fn parse(address: &str, name: &str) -> Result<Self, CliError> {
        if is_postgres(address) {
            server(address, name)
        } else {
            Ok(Self::File(PathBuf::from(path_of(address))))
        }
    }
}

#[cfg(feature = "postgres")]
fn server(address: &str, _name: &str) -> Result<StoreAddress, CliError> {
    let source = throng::store::PostgresSource::new(address);
    Ok(StoreAddress::Server(source))
}

#[cfg(not(feature = "postgres"))]
fn server(_address: &str, name: &str) -> Result<StoreAddress, CliError> {
    Err(CliError::new(format!(
        "{name}: expected a file, found a Postgres server: this program was built without the feature `postgres` \
         (cargo build --release --features postgres)"
    )))
}

/// Opens the store at an address.
fn source_of(url: &str) -> Result<Box<dyn StoreFactory>, CliError> {
    match StoreAddress::parse(url, "--store")? {
        StoreAddress::File(path) if path == Path::new(":memory:") => Err(CliError::new(
            "--store: expected a file, found `:memory:`, which is lost when the program ends",
        )),
        StoreAddress::File(path) => Ok(Box::new(SqliteSource::new(path))),
        #[cfg(feature = "postgres")]
        StoreAddress::Server(source) => Ok(Box::new(source)),
    }
}

fn path_of(url: &str) -> &str {
    url.strip_prefix("sqlite:").unwrap_or(url)
}

/// Writes one line per transaction, each with a single write, so that only the last line can be incomplete after a crash.
fn log_acknowledged(log: &Mutex<BufWriter<File>>, mut saved: MessageReader<PlayersSaved>) {
    let Ok(mut log) = log.lock() else {
        return;
    };
    for PlayersSaved { tick, revisions } in saved.read() {
        let mut line = tick.to_string();
        for (player, revision) in revisions {
            line.push_str(&format!(" {}={revision}", player.0));
        }
        line.push('\n');
        if let Err(error) = log.write_all(line.as_bytes()).and_then(|()| log.flush()) {
            tracing::error!(%error, "acknowledgement log not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_address_is_a_file_or_an_error_with_a_hint() {
        for url in ["a.db", "sqlite:a.db"] {
            assert!(format!("{:?}", source_of(url).unwrap()).contains("\"a.db\""));
        }
        let url = "postgres://a:hidden@localhost/a";
        let source = source_of(url);
        assert_eq!(source.is_ok(), cfg!(feature = "postgres"));
        assert!(!format!("{source:?}").contains("hidden"));
        let text = format!("{:?}", StoreAddress::parse(url, "throng db"));
        assert!(!text.contains("hidden"));
        assert_eq!(
            text.contains("--features postgres"),
            cfg!(not(feature = "postgres"))
        );
        assert!(source_of(":memory:").is_err());
    }
}
