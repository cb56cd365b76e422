//! `throng tokens --listen`: tokens for a login service, by HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use throng::net::PortSettings;
use throng_inspect::{AdminTokens, TokenService, TokenServiceSettings};

use super::certificate::{CertificateArguments, ServedCertificate};
use super::key_file::KeyFile;
use super::key_reload::KeyReloader;
use super::secret_file::read_secret;
use super::{CliError, CliStatus, is_interrupted, listen_for_interrupt, print};

/// The environment variable with the secret.
const SECRET: &str = "THRONG_TOKENS_SECRET";

/// Time between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Options of the token service.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArguments {
    /// Serve tokens by HTTP at this address instead of printing one: POST /tokens
    ///
    /// Requests contain secrets: keep it on a loopback address, or give it TLS. --server, --lifetime and --timeout are the defaults
    /// of requests.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["player", "new_key", "add_key"])]
    pub listen: Option<SocketAddr>,
    /// File with the secrets of login services, one `NAME SECRET` per line; only its owner may be able to read it
    ///
    /// A secret has 16 to 128 letters and digits (`openssl rand -hex 16`). Without this, the environment variable
    /// THRONG_TOKENS_SECRET has the secret.
    #[arg(long, value_name = "FILE", requires = "listen")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    certificate: CertificateArguments,
}

impl ServiceArguments {
    /// Whether an option would have no effect.
    pub fn check(&self) -> Result<(), CliError> {
        if self.certificate.is_set() && self.listen.is_none() {
            return Err(CliError::new(
                "--tls-certificate is for the token service: expected --listen, too",
            ));
        }
        Ok(())
    }

    /// Serves requests until a signal.
    pub fn run(
        &self,
        address: SocketAddr,
        key: &KeyFile,
        servers: Vec<SocketAddr>,
        (lifetime_s, timeout_s): (u64, i32),
    ) -> Result<CliStatus, CliError> {
        if servers.is_empty() && !key.has_files() {
            return Err(CliError::new(
                "--listen without --server needs --key FILE: tokens of the built-in test key are for loopback addresses",
            ));
        }
        let keys = key.read(&servers)?;
        let certificate = self.certificate.open()?;
        let _reloader = KeyReloader::start(key, &keys)?;
        let service = TokenService::start(TokenServiceSettings {
            address,
            port: PortSettings {
                tls: certificate.as_ref().map(ServedCertificate::certificate),
                ..PortSettings::default()
            },
            callers: self.callers()?,
            keys,
            servers,
            lifetime_s: lifetime_s.try_into().unwrap_or(u32::MAX),
            timeout_s: timeout_s.try_into().unwrap_or(0),
        });
        let service = service.map_err(|error| CliError::new(error.to_string()))?;
        listen_for_interrupt();
        let scheme = if certificate.is_some() {
            "https"
        } else {
            "http"
        };
        let address = service.address();
        print(&format!("token service: {scheme}://{address}/tokens"))?;
        while !is_interrupted() {
            if let Some(certificate) = &certificate {
                certificate.reload_if_requested();
            }
            std::thread::sleep(SIGNAL_INTERVAL);
        }
        let stats = service.stats();
        print(&format!(
            "tokens      {} issued; refused: {} without a valid secret, {} invalid, {} over the limit of connections",
            stats.issued, stats.unauthorized, stats.invalid, stats.too_many
        ))?;
        Ok(CliStatus::Done)
    }

    fn callers(&self) -> Result<AdminTokens, CliError> {
        let (source, text) = match &self.secret_file {
            Some(path) => (path.display().to_string(), read_secret(path)?),
            None => {
                let secret = std::env::var(SECRET).map_err(|_| {
                    CliError::new(format!(
                        "--listen needs --secret-file FILE, or the environment variable {SECRET}"
                    ))
                })?;
                (SECRET.to_owned(), format!("environment {}", secret.trim()))
            }
        };
        let callers = text.parse::<AdminTokens>();
        callers.map_err(|error| CliError::new(format!("{source}: {error}")))
    }
}
