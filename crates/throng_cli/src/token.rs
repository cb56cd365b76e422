//! `throng token`: keys of servers, and connect tokens.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::address::address;
use super::seconds::seconds;
use super::secret_file::read_secret;
use super::{CliError, CliStatus, print, whole_number};
use throng::net::{ConnectToken, KEY_BYTES, SecretKey, TokenClaims};
use throng::sim::clock::unix_ms;

/// Arguments of `throng token`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TokenCommand {
    /// Id of the player that the token admits
    #[arg(long, value_name = "N", value_parser = whole_number, required_unless_present = "new_key")]
    player: Option<u64>,
    /// Public address of the server; may be repeated
    #[arg(long, value_name = "HOST:PORT", value_parser = address, required_unless_present = "new_key")]
    server: Vec<SocketAddr>,
    #[command(flatten)]
    key: KeyFile,
    /// How long the token can be used to connect
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "30s")]
    lifetime: f64,
    /// The connection ends after this time without a packet
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    timeout: f64,
    /// Create a secret key instead of a token, and write it to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["player", "server", "key"])]
    new_key: Option<PathBuf>,
}

/// The key that tokens are sealed with.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct KeyFile {
    /// The server's secret key; without it a public test key, on loopback only
    ///
    /// A file with 64 hexadecimal digits, as written by `throng token --new-key`; only its owner may be able to read it.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  throng token --new-key server.key
  throng token --player 7 --server 203.0.113.5:7000 --key server.key

A token has 2,048 bytes, as defined by the netcode 1.02 standard, and is printed
as hexadecimal digits. It admits its holder once, as that player: send it over a
secure channel.";

impl KeyFile {
    /// The key for these servers.
    pub fn read(&self, servers: &[SocketAddr]) -> Result<SecretKey, CliError> {
        let Some(path) = &self.key else {
            let elsewhere = servers.iter().find(|server| !server.ip().is_loopback());
            return match elsewhere {
                None => Ok(SecretKey::INSECURE),
                Some(server) => Err(CliError::new(format!(
                    "{server} is not a loopback address: pass --key FILE; the built-in test key is public"
                ))),
            };
        };
        let named = |what: &str| CliError::new(format!("{}: {what}", path.display()));
        let digits = read_secret(path)?;
        let bytes = from_hex(&digits).filter(|bytes| bytes.len() == KEY_BYTES);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        let key = bytes.map(SecretKey);
        key.ok_or_else(|| named("expected a key of 64 hexadecimal digits"))
    }
}

/// A token for one player, valid from now on.
pub(super) fn issue(
    player: u64,
    servers: Vec<SocketAddr>,
    (lifetime_s, timeout_s): (u64, i32),
    key: &SecretKey,
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
        if let Some(path) = &self.new_key {
            let key = SecretKey::random().map_err(|error| CliError::new(error.to_string()))?;
            write_key(path, &to_hex(&key.0))?;
            return Ok(CliStatus::Done);
        }
        let key = self.key.read(&self.server)?;
        let times = (self.lifetime.ceil() as u64, self.timeout.ceil() as i32);
        let token = issue(self.player.unwrap_or_default(), self.server, times, &key)?;
        print(&to_hex(&token.to_bytes()))?;
        Ok(CliStatus::Done)
    }
}

/// Writes a key to a new file only, so that none is overwritten; on Unix only its owner can read it.
fn write_key(path: &Path, digits: &str) -> Result<(), CliError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(path)
        .and_then(|mut file| writeln!(file, "{digits}"));
    written.map_err(|error| CliError::not_written(path, &error))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_bytes_or_none() {
        assert_eq!(from_hex(&to_hex(&[0, 9, 255])), Some(vec![0, 9, 255]));
        for none in ["0", "0g", "+1", "ää"] {
            assert_eq!(from_hex(none), None, "{none}");
        }
    }

    #[test]
    fn server_without_a_key_accepts_loopback_only() {
        let (here, there) = (["127.0.0.1:7000"], ["127.0.0.1:7000", "203.0.113.5:7000"]);
        let read = |servers: &[&str]| {
            let servers: Vec<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
            KeyFile::default().read(&servers)
        };
        assert_eq!(read(&here).ok(), Some(SecretKey::INSECURE));
        assert!(read(&there).is_err());
    }
}
