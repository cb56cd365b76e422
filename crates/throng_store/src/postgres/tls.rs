//! Encryption of a connection: the settings in an address, and the trusted certificates.
//!
//! `sslmode=require` and `verify-full` are the same here: the certificate of the server and its host name are verified. All other modes
//! connect without encryption.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::task::AbortHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors::NamedDatabase;
use crate::error::{StoreError, StoreErrorKind};

/// Environment variable with the certificate file if the address does not name one, as in other Postgres clients.
const ROOTS_VARIABLE: &str = "PGSSLROOTCERT";

/// An address, and how to connect to it.
pub(super) struct Address {
    pub config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Address {
    pub fn parse(url: &str, unnamed: &NamedDatabase) -> Result<Self, StoreError> {
        let (rest, roots) = take_parameter(url, "sslrootcert");
        let (without_mode, mode) = take_parameter(&rest, "sslmode");
        let is_encrypted = matches!(
            mode.as_deref(),
            Some("require" | "verify-ca" | "verify-full")
        );
        let text = if is_encrypted { &without_mode } else { &rest };
        let parsed = text.parse();
        let mut config: Config = parsed.map_err(|error| unnamed.error(error))?;
        let mut tls = None;
        if is_encrypted {
            config.ssl_mode(SslMode::Require);
            let roots = roots.or_else(|| std::env::var(ROOTS_VARIABLE).ok());
            tls = Some(connector(roots.as_deref(), unnamed)?);
        }
        Ok(Self { config, tls })
    }

    /// Connects, and returns a handle that stops the connection.
    pub async fn connect(&self) -> Result<(Client, AbortHandle), Error> {
        // Later calls drive the connection, and return its errors.
        if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await?;
            return Ok((client, tokio::spawn(connection).abort_handle()));
        }
        let (client, connection) = self.config.connect(NoTls).await?;
        Ok((client, tokio::spawn(connection).abort_handle()))
    }
}

fn connector(roots: Option<&str>, named: &NamedDatabase) -> Result<MakeRustlsConnect, StoreError> {
    let fault = |cause: String| named.store_error(StoreErrorKind::Unreachable, cause);
    let mut trusted = RootCertStore::empty();
    match roots.filter(|&path| path != "system") {
        Some(path) => {
            let wrong =
                |cause: &dyn std::fmt::Display| fault(format!("certificates `{path}`: {cause}"));
            let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                trusted.add(certificate).map_err(|error| wrong(&error))?;
            }
            if trusted.is_empty() {
                return Err(wrong(&"expected certificates in PEM, found none"));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            trusted.add_parsable_certificates(found.certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(error.to_string()))?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// An address without one of its parameters, and the value of that. Values of `key=value` addresses contain no spaces.
fn take_parameter(url: &str, key: &str) -> (String, Option<String>) {
    let value_of = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        (name == key).then(|| value.to_owned())
    };
    if !url.contains("://") {
        let mut pairs = url.split_whitespace();
        let Some((pair, value)) = pairs.find_map(|pair| Some((pair, value_of(pair)?))) else {
            return (url.to_owned(), None);
        };
        let value = value.trim_matches('\'').to_owned();
        return (url.replacen(pair, "", 1), Some(value));
    }
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let mut value = None;
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let found = value_of(pair);
            let is_kept = found.is_none();
            value = found.or_else(|| value.take());
            is_kept
        })
        .collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    let value = value.map(|value| percent_decoded(&value));
    (format!("{base}{mark}{}", kept.join("&")), value)
}

/// Decodes the percent-encoding of an address.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| first == b'%');
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escape.unwrap_or(first));
        rest = if escape.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_removed_from_addresses() {
        for (url, rest, value) in [
            ("postgres://a@b/c", "postgres://a@b/c", None),
            (
                "postgres://a@b/c?sslmode=require",
                "postgres://a@b/c",
                Some("require"),
            ),
            (
                "postgres://a@b/c?x=1&sslmode=%2Fa%20b&y=2",
                "postgres://a@b/c?x=1&y=2",
                Some("/a b"),
            ),
            (
                "host=b sslmode='require' user=a",
                "host=b  user=a",
                Some("require"),
            ),
            ("host=b notsslmode=1", "host=b notsslmode=1", None),
        ] {
            let expected = (rest.to_owned(), value.map(str::to_owned));
            assert_eq!(take_parameter(url, "sslmode"), expected);
        }
    }
}
