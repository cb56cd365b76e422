//! Settings of the token service.

use std::net::SocketAddr;

use throng::net::TokenKeys;
use throng_net::PortSettings;

use crate::admin::AdminTokens;

/// Settings of the token service.
///
/// ```
/// use throng_inspect::{AdminTokens, TokenService, TokenServiceSettings};
/// use throng_net::{PortSettings, SecretKey};
///
/// fn start(key: SecretKey) -> Result<TokenService, Box<dyn std::error::Error>> {
///     let callers: AdminTokens = "login-service 3f9c2b7a41d8e605".parse()?;
///     Ok(TokenService::start(TokenServiceSettings {
///         address: "127.0.0.1:9300".parse()?,
///         port: PortSettings::default(),
///         callers,
///         keys: key.into(),
///         servers: vec!["192.0.2.7:7000".parse()?],
///         lifetime_s: 30,
///         timeout_s: 10,
///     })?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TokenServiceSettings {
    /// The address to listen on.
    pub address: SocketAddr,
    /// TLS, and proxies in front of the port. On other than loopback addresses one of both is needed, since requests contain secrets.
    pub port: PortSettings,
    /// Who may request tokens: a name and a secret each. With two entries a secret can be replaced without an interruption.
    pub callers: AdminTokens,
    /// The keys of the servers. The first one seals the tokens; a clone can [replace](TokenKeys::replace) them later.
    pub keys: TokenKeys,
    /// The servers of a token whose request names none.
    pub servers: Vec<SocketAddr>,
    /// How long a token can be used to connect, in seconds, if the request does not say.
    pub lifetime_s: u32,
    /// After how many seconds without a packet a connection ends, if the request does not say.
    pub timeout_s: u32,
}
