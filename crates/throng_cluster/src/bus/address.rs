//! The addresses of NATS servers, and their credentials.

use std::net::IpAddr;

use async_nats::{ConnectOptions, ServerAddr};
use thiserror::Error;

/// Why there is no connection to a NATS server. No error contains a password.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BusConnectError {
    /// The address is invalid.
    #[error("NATS address: {cause}; expected nats://user:password@host:port")]
    Address {
        /// Why it is invalid.
        cause: String,
    },
    /// The prefix is invalid.
    #[error("prefix of NATS subjects: expected letters, digits, `-` and `_`")]
    Prefix,
    /// A server on another machine needs credentials.
    #[error(
        "NATS server {host} is not on this machine, so credentials are required: nats://user:password@{host}"
    )]
    CredentialsRequired {
        /// The host.
        host: String,
    },
    /// The server refuses the credentials.
    #[error("NATS server {host} refuses the credentials")]
    CredentialsRefused {
        /// The host.
        host: String,
    },
    /// The server cannot be reached.
    #[error("NATS server {host} not reached: {cause}")]
    Unreachable {
        /// The host.
        host: String,
        /// Why.
        cause: String,
    },
}

/// Reads an address. Without credentials, only servers on this machine are allowed: a server that strangers can reach would let them read all
/// messages.
pub(super) fn parse(address: &str) -> Result<ServerAddr, BusConnectError> {
    let parsed: Result<ServerAddr, _> = address.parse();
    let parsed = parsed.map_err(|error| BusConnectError::Address {
        cause: error.to_string(),
    })?;
    let host = parsed.host();
    if host.is_empty() {
        let cause = "it names no host".to_owned();
        return Err(BusConnectError::Address { cause });
    }
    let is_loopback = host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    if !is_loopback && parsed.username().is_none() {
        let host = host.to_owned();
        return Err(BusConnectError::CredentialsRequired { host });
    }
    Ok(parsed)
}

/// Adds the user and password, or the token, of an address to the options: the client library does not take them from the address.
pub(super) fn with_credentials(options: ConnectOptions, address: &ServerAddr) -> ConnectOptions {
    match (address.username(), address.password()) {
        (Some(user), Some(password)) => {
            options.user_and_password(percent_decoded(user), percent_decoded(password))
        }
        (Some(token), None) => options.token(percent_decoded(token)),
        (None, _) => options,
    }
}

/// Decodes the percent-encoding of an address.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_required_outside_loopback() {
        for address in [
            "nats://localhost:4222",
            "127.0.0.1:4222",
            "nats://127.9.9.9",
            "nats://[::1]:4222",
            "nats://user:secret@10.0.0.7:4222",
            "tls://token@nats.example.org",
        ] {
            assert!(parse(address).is_ok(), "{address}");
        }
        for address in [
            "nats://10.0.0.7:4222",
            "nats.example.org",
            "nats://localhost.example.org",
            "nats://[2001:db8::1]",
            "nats://0.0.0.0",
        ] {
            let error = parse(address).unwrap_err();
            let is_expected = matches!(error, BusConnectError::CredentialsRequired { .. });
            assert!(is_expected, "{address}: {error}");
        }
        for address in ["", "http://localhost", "nats://"] {
            let error = parse(address).unwrap_err();
            let is_expected = matches!(error, BusConnectError::Address { .. });
            assert!(is_expected, "{address}: {error}");
        }
    }

    #[test]
    fn credentials_are_decoded() {
        for (text, expected) in [
            ("secret", "secret"),
            ("a%40b%2Fc", "a@b/c"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("", ""),
        ] {
            assert_eq!(percent_decoded(text), expected);
        }
    }
}
