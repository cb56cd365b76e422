//! The options of the administration API.

use std::net::SocketAddr;
use std::path::PathBuf;

use bevy_ecs::prelude::*;
use throng::net::PortSettings;
use throng_inspect::{AdminSettings, AdminTokens, AuditLog, AuditRecord, open_admin};

use crate::CliError;
use crate::secret_file::read_secret;

/// Options of the administration API.
#[derive(Debug, clap::Args)]
pub(super) struct AdminArguments {
    /// Address of the administration API: list, kick and ban players [default: off]
    ///
    /// Requests contain tokens: keep it on a loopback address, or give it TLS. GET /openapi.json describes it.
    #[arg(long, value_name = "ADDR:PORT", requires = "admin_tokens")]
    admin: Option<SocketAddr>,
    /// File with the tokens of operators, one `NAME TOKEN` per line; only its owner may be able to read it
    #[arg(long, value_name = "FILE", requires = "admin")]
    admin_tokens: Option<PathBuf>,
    /// File that stores bans across restarts (JSON) [default: bans end with the process]
    #[arg(long, value_name = "FILE", requires = "admin")]
    bans: Option<PathBuf>,
    /// File for the audit log: kicks, bans, lifted bans, actions of live pages and take-overs are appended [default: the log only]
    ///
    /// One JSON object per line, which names the requester: the operator, `page` for a live page without an operator's token, or the user
    /// who started the server with --take-over.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

impl AdminArguments {
    /// The address to listen on, if the API is on.
    pub(super) const fn address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Opens the audit log, and records in it if a server name is taken over; opens the API, if it is on, and returns its address.
    pub(super) fn open(
        &self,
        world: &mut World,
        port: PortSettings,
        taken_over: Option<&str>,
    ) -> Result<Option<SocketAddr>, CliError> {
        if let Some(path) = &self.audit_log {
            let log = AuditLog::open(path);
            let log = log.map_err(|error| CliError::new(format!("{}: {error}", path.display())))?;
            if let Some(server) = taken_over {
                log.record(AuditRecord {
                    target: format!("server {server}"),
                    outcome: "requested at the start".to_owned(),
                    ..AuditRecord::now(&user(), None, "take_over")
                });
            }
            world.insert_resource(log);
        }
        let (Some(address), Some(path)) = (self.admin, &self.admin_tokens) else {
            return Ok(None);
        };
        let tokens = read_secret(path)?.parse::<AdminTokens>();
        let tokens =
            tokens.map_err(|error| CliError::new(format!("{}: {error}", path.display())))?;
        let settings = AdminSettings {
            address,
            port,
            tokens,
            ban_file: self.bans.clone(),
            audit_log: self.audit_log.clone(),
        };
        let opened = open_admin(world, settings);
        opened
            .map(Some)
            .map_err(|error| CliError::new(error.to_string()))
    }
}

/// The user who runs this process, for the audit log.
fn user() -> String {
    let variable = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    let found = variable("SUDO_USER").or_else(|| variable("USER"));
    found
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(|| "the user of the server".to_owned())
}
