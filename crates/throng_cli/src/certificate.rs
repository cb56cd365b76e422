//! The certificate of TCP ports: its options, and its reload by SIGHUP or when its files change.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use throng::net::{TlsCertificate, TlsFiles, TlsReloader};

use super::CliError;

/// How often the files of the certificate are looked at.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Options of the certificate.
#[derive(Debug, clap::Args)]
pub(super) struct CertificateArguments {
    /// Certificate for TLS on TCP: PEM file, the server's certificate first, then intermediate ones [default: no TLS]
    ///
    /// The file and the key are read again when they change, and on SIGHUP. Open connections are kept.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate: PEM file that only its owner and its group can read
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
}

impl CertificateArguments {
    /// Whether there is a certificate.
    pub const fn is_set(&self) -> bool {
        self.tls_certificate.is_some()
    }

    /// Reads the certificate, and starts to watch its files. `None` without one.
    pub fn open(&self) -> Result<Option<ServedCertificate>, CliError> {
        let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) else {
            return Ok(None);
        };
        let files = TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let failed = |error: String| CliError::new(format!("--tls-certificate: {error}"));
        let certificate = TlsCertificate::load(files).map_err(|error| failed(error.to_string()))?;
        let reloader = TlsReloader::start(certificate.clone(), RELOAD_INTERVAL);
        let served = ServedCertificate {
            certificate,
            reloader: reloader.map_err(|error| failed(error.to_string()))?,
            is_reload_requested: Arc::default(),
        };
        listen_for_hangup(&served.is_reload_requested);
        Ok(Some(served))
    }
}

/// The certificate of a running program, which is reloaded until this is dropped.
#[derive(Debug)]
pub(super) struct ServedCertificate {
    certificate: TlsCertificate,
    reloader: TlsReloader,
    /// Set by SIGHUP.
    is_reload_requested: Arc<AtomicBool>,
}

impl ServedCertificate {
    /// The certificate, for the settings of a port. A reload reaches all ports.
    pub fn certificate(&self) -> TlsCertificate {
        self.certificate.clone()
    }

    /// Requests a reload after SIGHUP. One atomic exchange.
    pub fn reload_if_requested(&self) {
        if self.is_reload_requested.swap(false, Ordering::Relaxed) {
            self.reloader.request();
        }
    }
}

/// From now on SIGHUP sets this, and no longer ends the program.
#[cfg(unix)]
fn listen_for_hangup(is_requested: &Arc<AtomicBool>) {
    let listening = signal_hook::flag::register(signal_hook::consts::SIGHUP, is_requested.clone());
    if let Err(error) = listening {
        tracing::warn!(%error, "SIGHUP not handled: the certificate is reloaded when its files change only");
    }
}

#[cfg(not(unix))]
fn listen_for_hangup(_: &Arc<AtomicBool>) {}
