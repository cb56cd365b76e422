//! `throng token`: creates keys of servers and connect tokens, or serves tokens by HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::address::address;
use super::key_file::{KeyFile, append_new_key, to_hex, write_new_key};
use super::seconds::seconds;
use super::token_service::ServiceArguments;
use super::{CliError, CliStatus, print, whole_number};
use throng::net::{ConnectToken, TokenClaims, TokenKey};
use throng::sim::clock::unix_ms;

/// Arguments of `throng token`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TokenCommand {
    /// Id of the player that the token admits
    #[arg(long, value_name = "N", value_parser = whole_number)]
    #[arg(required_unless_present_any = ["new_key", "add_key", "listen"])]
    player: Option<u64>,
    /// Public address of the server; may be repeated
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    #[arg(required_unless_present_any = ["new_key", "add_key", "listen"])]
    server: Vec<SocketAddr>,
    #[command(flatten)]
    key: KeyFile,
    /// How long the token can be used to connect
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "30s")]
    lifetime: f64,
    /// The connection ends after this time without a packet
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    timeout: f64,
    /// Create a secret key instead of a token, and write it to this new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["player", "server", "key", "add_key"])]
    new_key: Option<PathBuf>,
    /// Create a secret key instead of a token, and append it to this file of keys
    #[arg(long, value_name = "FILE", conflicts_with_all = ["player", "server", "key"])]
    add_key: Option<PathBuf>,
    /// Id of the created key [default: 1, or the next after those of the file]
    #[arg(long, value_name = "N", conflicts_with_all = ["player", "listen"])]
    key_id: Option<u32>,
    #[command(flatten)]
    service: ServiceArguments,
}

const EXAMPLES: &str = "Examples:
  throng token --new-key server.key
  throng token --player 7 --server 203.0.113.5:7000 --key server.key
  throng token --add-key server.key
  throng tokens --listen 127.0.0.1:7080 --secret-file secrets \\
      --server 203.0.113.5:7000 --key server.key
  throng tokens --listen 10.0.0.7:443 --secret-file secrets \\
      --server 203.0.113.5:7000 --key server.key \\
      --tls-certificate chain.pem --tls-key key.pem

A token has 2,048 bytes, as defined by the netcode 1.02 standard, and is printed
as hexadecimal digits. It admits its holder once, as that player: send it over a
secure channel. It contains the id of its key, so that a server can accept
several keys.
With --listen, programs request tokens by POST /tokens, with a secret. GET
/openapi.json describes it. SIGHUP reads the files of --key and of the
certificate again. The secret can be in the environment, too:
THRONG_TOKENS_SECRET.";

/// Issues a token for one player, valid from now on.
pub(super) fn issue(
    player: u64,
    servers: Vec<SocketAddr>,
    (lifetime_s, timeout_s): (u64, i32),
    key: TokenKey,
) -> Result<ConnectToken, CliError> {
    let unix_s = unix_ms() / 1_000;
    let claims = TokenClaims {
        expires_s: unix_s.saturating_add(lifetime_s),
        timeout_s,
        ..TokenClaims::new(player, servers, unix_s)
    };
    ConnectToken::issue(&claims, key).map_err(|error| CliError::new(error.to_string()))
}

impl TokenCommand {
    /// Prints a token, or writes a key.
    pub(super) fn run(self) -> Result<CliStatus, CliError> {
        self.service.check()?;
        if let Some(path) = &self.new_key {
            write_new_key(path, self.key_id)?;
            return Ok(CliStatus::Done);
        }
        if let Some(path) = &self.add_key {
            let id = append_new_key(path, self.key_id)?;
            print(&format!("key {id}"))?;
            return Ok(CliStatus::Done);
        }
        let times = (self.lifetime.ceil() as u64, self.timeout.ceil() as i32);
        if let Some(address) = self.service.listen {
            return self.service.run(address, &self.key, self.server, times);
        }
        let key = self.key.read(&self.server)?.first();
        let token = issue(self.player.unwrap_or_default(), self.server, times, key)?;
        print(&to_hex(&token.to_bytes()))?;
        Ok(CliStatus::Done)
    }
}
