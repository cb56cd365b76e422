//! The header of the PROXY protocol, version 2: a load balancer sends it first on each connection, to name the client.
//!
//! The format is that of section 2.2 of `proxy-protocol.txt` by HAProxy. Its extensions (TLVs) are skipped unread.
//!
//! Invariant: of any peer, at most [`PROXY_HEADER_BYTES_MAX`] bytes are read and stored. Cost: two reads, and one allocation.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of every header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of the fixed part: signature, version and command, family, length of the rest.
const HEAD_BYTES: usize = 16;

/// The longest header that is accepted, in bytes. The addresses take up to 232, the rest is for extensions.
pub const PROXY_HEADER_BYTES_MAX: usize = 4 << 10;

/// How version 1 begins.
const VERSION_1: &[u8] = b"PROXY ";

/// Why a connection has no valid header.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyHeaderError {
    /// There is no header.
    #[error(
        "expected a header of the PROXY protocol, version 2, found something else: enable it in the proxy (`send-proxy-v2`), or disable \
         it in the server"
    )]
    Missing,
    /// The header has the text format.
    #[error(
        "expected a header of the PROXY protocol, version 2, found version 1: configure the proxy for version 2 (`send-proxy-v2`)"
    )]
    Version1,
    /// The header has an unknown version or command.
    #[error("expected version 2 and command 0 or 1 of the PROXY protocol, found the byte {0:#04x}")]
    Command(u8),
    /// The header has an unknown address family, or none of TCP.
    #[error("expected TCP over IPv4 or IPv6 in the PROXY header, found the byte {0:#04x}")]
    Family(u8),
    /// The header is too long.
    #[error("expected a PROXY header of at most {PROXY_HEADER_BYTES_MAX} bytes, found {0}")]
    TooLong(usize),
    /// The header is too short for its addresses.
    #[error("expected at least {expected} bytes of addresses in the PROXY header, found {found}")]
    TooShort {
        /// For this family.
        expected: usize,
        /// In the header.
        found: usize,
    },
    /// More bytes are needed.
    #[error("expected a whole PROXY header, found its first {0} bytes")]
    Incomplete(usize),
    /// The connection broke.
    #[error("reading the PROXY header failed: {0}")]
    Io(#[from] io::Error),
}

/// Which addresses follow the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressKind {
    /// None that are used: the proxy itself connects, or does not know the client.
    Ignored,
    V4,
    V6,
    /// Paths of Unix sockets: the client is on the machine of the proxy.
    Path,
}

/// The fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProxyHead {
    kind: AddressKind,
    /// Bytes after the fixed part.
    rest: usize,
}

impl ProxyHead {
    fn parse(head: &[u8; HEAD_BYTES]) -> Result<Self, ProxyHeaderError> {
        if head.starts_with(VERSION_1) {
            return Err(ProxyHeaderError::Version1);
        }
        let [command, family, high, low] = match head.split_first_chunk() {
            Some((&SIGNATURE, &[command, family, high, low])) => [command, family, high, low],
            _ => return Err(ProxyHeaderError::Missing),
        };
        let rest = usize::from(u16::from_be_bytes([high, low]));
        let kind = match (command, family) {
            // LOCAL: its family is ignored.
            (0x20, _) | (0x21, 0x00) => AddressKind::Ignored,
            (0x21, 0x31 | 0x32) => AddressKind::Path,
            (0x21, 0x11) => AddressKind::V4,
            (0x21, 0x21) => AddressKind::V6,
            (0x21, family) => return Err(ProxyHeaderError::Family(family)),
            (command, _) => return Err(ProxyHeaderError::Command(command)),
        };
        let expected = match kind {
            AddressKind::Ignored => 0,
            AddressKind::V4 => 12,
            AddressKind::V6 => 36,
            AddressKind::Path => 216,
        };
        if HEAD_BYTES + rest > PROXY_HEADER_BYTES_MAX {
            return Err(ProxyHeaderError::TooLong(HEAD_BYTES + rest));
        }
        if rest < expected {
            return Err(ProxyHeaderError::TooShort {
                expected,
                found: rest,
            });
        }
        Ok(Self { kind, rest })
    }

    /// The client's address in the bytes after the fixed part.
    fn source(self, rest: &[u8]) -> Option<SocketAddr> {
        let (ip, port): (std::net::IpAddr, _) = match self.kind {
            AddressKind::Ignored | AddressKind::Path => return None,
            AddressKind::V4 => (
                Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
                rest.get(8..10)?,
            ),
            AddressKind::V6 => (
                Ipv6Addr::from(*rest.first_chunk::<16>()?).into(),
                rest.get(32..34)?,
            ),
        };
        let port = u16::from_be_bytes(*port.first_chunk()?);
        Some(SocketAddr::new(ip.to_canonical(), port))
    }
}

/// Decodes the header at the start of these bytes. Returns the client's address, or `None` if the proxy itself connects, and the length of
/// the header.
///
/// # Errors
/// [`ProxyHeaderError`].
pub fn decode_proxy_header(bytes: &[u8]) -> Result<(Option<SocketAddr>, usize), ProxyHeaderError> {
    let incomplete = || ProxyHeaderError::Incomplete(bytes.len());
    let (head, rest) = bytes.split_first_chunk().ok_or_else(incomplete)?;
    let head = ProxyHead::parse(head)?;
    let rest = rest.get(..head.rest).ok_or_else(incomplete)?;
    Ok((head.source(rest), HEAD_BYTES + head.rest))
}

/// Reads the header of a connection, and nothing after it. The caller limits the time. Returns the client's address, or `None` if the proxy
/// itself connects.
///
/// # Errors
/// [`ProxyHeaderError`].
pub async fn read_proxy_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).await?;
    let head = ProxyHead::parse(&head)?;
    let mut rest = vec![0; head.rest];
    stream.read_exact(&mut rest).await?;
    Ok(head.source(&rest))
}

#[cfg(test)]
mod tests;
