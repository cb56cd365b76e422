//! The options of the administration API.

use std::net::SocketAddr;
use std::path::PathBuf;

use bevy_ecs::prelude::*;
use throng::net::PortSettings;
use throng_inspect::{AdminSettings, AdminTokens, open_admin};

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
    /// File that keeps bans over restarts (JSON) [default: bans end with the process]
    #[arg(long, value_name = "FILE", requires = "admin")]
    bans: Option<PathBuf>,
    /// File to which each kick, ban and lifted ban is appended, as a JSON object per line [default: the log only]
    #[arg(long, value_name = "FILE", requires = "admin")]
    audit_log: Option<PathBuf>,
}

impl AdminArguments {
    /// The address to listen on, if the API is on.
    pub(super) const fn address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Opens the API, if it is on, and returns its address.
    pub(super) fn open(
        &self,
        world: &mut World,
        port: PortSettings,
    ) -> Result<Option<SocketAddr>, CliError> {
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
