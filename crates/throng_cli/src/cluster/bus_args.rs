//! Options of the bus: NATS server, credentials, key of the cluster.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use throng_cluster::{BusPeer, ClusterKey, MessageBus, NatsSettings, NatsTransport};

use crate::CliError;
use crate::secret_file::read_secret;

/// How a process reaches the others.
#[derive(Debug, clap::Args)]
pub(super) struct BusArguments {
    /// NATS server of the cluster: nats://HOST:PORT, or tls://HOST:PORT for an encrypted connection
    ///
    /// A server on another machine requires credentials: give them with --bus-user-file, or as nats://USER:PASSWORD@HOST:PORT in the
    /// environment variable THRONG_BUS. Other users of the machine can see arguments in the list of processes.
    #[arg(long, value_name = "URL", env = "THRONG_BUS", hide_env_values = true)]
    bus: String,
    /// File with USER:PASSWORD, or a token, for the NATS server; only its owner may be able to read it
    #[arg(long, value_name = "FILE")]
    bus_user_file: Option<PathBuf>,
    /// First part of all NATS subjects, so that several clusters can share a server
    #[arg(long, value_name = "NAME", default_value = "throng")]
    bus_prefix: String,
    /// File with the key of the cluster, 64 hexadecimal digits: `openssl rand -hex 32`
    ///
    /// All nodes and gateways have the same key. Messages without it are refused. Only its owner may be able to read the file.
    #[arg(long, value_name = "FILE")]
    cluster_key: PathBuf,
}

impl BusArguments {
    /// The key of the cluster.
    pub fn key(&self) -> Result<ClusterKey, CliError> {
        let named = |error: &dyn Display| CliError::new(format!("--cluster-key: {error}"));
        let text = read_secret(&self.cluster_key).map_err(|error| named(&error))?;
        let path = self.cluster_key.display();
        ClusterKey::from_hex(&text).map_err(|error| named(&format!("{path}: {error}")))
    }

    /// The settings of the connection.
    pub fn settings(&self) -> Result<NatsSettings, CliError> {
        let user = self.bus_user_file.as_deref().map(read_user).transpose();
        let user = user.map_err(|error| CliError::new(format!("--bus-user-file: {error}")))?;
        let address = match user {
            Some(user) => with_user(&self.bus, &user)?,
            None => self.bus.clone(),
        };
        Ok(NatsSettings {
            prefix: self.bus_prefix.clone(),
            ..NatsSettings::new(address)
        })
    }
}

/// Connects an end of the bus.
pub(super) fn connect(
    settings: &NatsSettings,
    key: &ClusterKey,
    own: BusPeer,
    run: u64,
) -> Result<MessageBus, String> {
    let transport = NatsTransport::connect(settings, own).map_err(|error| error.to_string())?;
    Ok(MessageBus::new(Box::new(transport), key.clone(), own, run))
}

/// User and password, or a token, of a file.
fn read_user(path: &Path) -> Result<String, CliError> {
    let text = read_secret(path)?;
    if text.is_empty() || text.contains(char::is_whitespace) {
        // The error does not repeat the text, which is a secret.
        let message = "expected USER:PASSWORD, or a token, in one line without spaces";
        return Err(CliError::new(format!("{}: {message}", path.display())));
    }
    Ok(text)
}

/// Adds credentials to an address without any.
fn with_user(address: &str, user: &str) -> Result<String, CliError> {
    if address.contains('@') {
        let message =
            "--bus-user-file: expected an address without credentials, found one with `@`";
        return Err(CliError::new(message));
    }
    let (scheme, host) = address.split_once("://").unwrap_or(("nats", address));
    let parts: Vec<String> = user.splitn(2, ':').map(percent_encoded).collect();
    Ok(format!("{scheme}://{}@{host}", parts.join(":")))
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_added_to_an_address_without_any() {
        for (address, user, expected) in [
            ("nats://h:4222", "me:a@b/c", "nats://me:a%40b%2Fc@h:4222"),
            ("tls://h", "token", "tls://token@h"),
            ("h:4222", "me:a:b", "nats://me:a%3Ab@h:4222"),
        ] {
            assert_eq!(with_user(address, user).unwrap(), expected);
        }
        assert!(with_user("nats://a:b@h", "me:x").is_err());
    }
}
