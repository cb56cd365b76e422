//! The TLS certificate of TCP ports, from files that may change while it is in use.
//!
//! ```text
//! files ─▶ read ─▶ check ─▶ current certificate ─▶ each new handshake
//! ```
//! Invariant: a certificate that cannot be used never replaces one that can. Open connections keep theirs.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ring::digest::{Context, SHA256, digest};
use thiserror::Error;
use throng_core::clock::unix_ms;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig,
};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A certificate chain and its private key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate first, then the intermediate ones.
    pub certificate: PathBuf,
    /// The private key of the first certificate, without a passphrase. On Unix only its owner and its group may be able to read it.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is longer than any certificate chain.
    #[error("{path}: expected a PEM file of at most {} kB, found more", FILE_BYTES_MAX >> 10)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The key can be read by users who are neither its owner nor in its group.
    #[error(
        "{path}: expected a private key that only its owner and its group can read, found mode {mode:03o}: run `chmod 640 {path}`; \
         replace the certificate if others could have read the key"
    )]
    KeyReadable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file has no certificate.
    #[error(
        "{path}: expected a certificate chain in PEM format (`-----BEGIN CERTIFICATE-----`), found {found}"
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// Its content.
        found: String,
    },
    /// The file has no private key that can be read.
    #[error(
        "{path}: expected a private key in PEM format, without a passphrase (`-----BEGIN PRIVATE KEY-----`), found {found}"
    )]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Its content.
        found: String,
    },
    /// The file is damaged.
    #[error("{path}: malformed PEM file: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error.
        source: pem::Error,
    },
    /// The key belongs to another certificate.
    #[error(
        "{key} is not the private key of the first certificate in {certificate}: expected the server's certificate first, then the \
         intermediate ones, and the key for which it was issued"
    )]
    KeyMismatch {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// The certificate or the key is of a kind that cannot be used.
    #[error(
        "{certificate}, {key}: expected an X.509 certificate with an ECDSA (P-256, P-384), Ed25519 or RSA (2,048 bits or more) key, \
         found one that cannot be used: {source}"
    )]
    Unusable {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// The error.
        source: Error,
    },
}

/// The certificate of TCP ports. Clones share it, so that a reload reaches all ports.
#[derive(Clone)]
pub struct TlsCertificate(Arc<TlsShared>);

struct TlsShared {
    files: TlsFiles,
    current: Arc<CurrentCertificate>,
    config: Arc<ServerConfig>,
    changes: Mutex<FileChanges>,
}

impl TlsCertificate {
    /// Reads and checks the files. Logs a warning if the certificate has expired, or is not valid yet.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = FileContents::read(&files);
        let fingerprint = FileContents::fingerprint(&contents);
        let current = Arc::new(CurrentCertificate {
            key: RwLock::new(contents?.certified_key(&files)?),
        });
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let mut config = builder
            .map_err(|source| unusable(&files, source))?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(TlsShared {
            files,
            current,
            config: Arc::new(config),
            changes: Mutex::new(FileChanges::new(fingerprint)),
        })))
    }

    /// Reads the files again. New connections use the new certificate, open ones are not affected.
    ///
    /// # Errors
    /// [`TlsError`]; the old certificate stays in use then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let contents = FileContents::read(&self.0.files);
        let fingerprint = FileContents::fingerprint(&contents);
        self.changes().mark_tried(fingerprint);
        self.replace(contents)
    }

    /// Like [`reload`](Self::reload) if the files have changed and were the same at the last call: a file that is being written is not
    /// read half. Returns whether they were loaded. Two reads, whatever it returns.
    ///
    /// # Errors
    /// [`TlsError`], once for each change.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let contents = FileContents::read(&self.0.files);
        let fingerprint = FileContents::fingerprint(&contents);
        if !self.changes().observe(fingerprint) {
            return Ok(false);
        }
        self.replace(contents).map(|()| true)
    }

    /// The SHA-256 of the server's certificate.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        let key = self.0.current.get();
        key.cert
            .first()
            .map_or([0; 32], |leaf| sha256(leaf.as_ref()))
    }

    /// The configuration of the server's end of a handshake.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.clone()
    }

    fn replace(&self, contents: Result<FileContents, TlsError>) -> Result<(), TlsError> {
        let key = contents?.certified_key(&self.0.files)?;
        let current = self.0.current.key.write();
        *current.unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }

    fn changes(&self) -> MutexGuard<'_, FileChanges> {
        let changes = self.0.changes.lock();
        changes.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TlsCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("TlsCertificate");
        fields.field("files", &self.0.files).finish_non_exhaustive()
    }
}

/// Whether both are the same certificate, also after a reload.
impl PartialEq for TlsCertificate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The certificate for the next handshake.
#[derive(Debug)]
struct CurrentCertificate {
    key: RwLock<Arc<CertifiedKey>>,
}

impl CurrentCertificate {
    fn get(&self) -> Arc<CertifiedKey> {
        let key = self.key.read();
        key.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

/// The bytes of both files.
struct FileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// Who may read the key: its mode on Unix, otherwise 0.
    key_mode: u32,
}

impl FileContents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let (certificate, _) = read_file(&files.certificate)?;
        let (key, key_mode) = read_file(&files.key)?;
        Ok(Self {
            certificate,
            key,
            key_mode,
        })
    }

    /// Differs if the content of a file, or the reason why it cannot be read, differs.
    fn fingerprint(contents: &Result<Self, TlsError>) -> [u8; 32] {
        match contents {
            Ok(Self {
                certificate,
                key,
                key_mode,
            }) => {
                let mut hashed = Context::new(&SHA256);
                hashed.update(&sha256(certificate));
                hashed.update(&sha256(key));
                hashed.update(&key_mode.to_le_bytes());
                bytes_of(hashed.finish())
            }
            Err(error) => sha256(error.to_string().as_bytes()),
        }
    }

    fn certified_key(&self, files: &TlsFiles) -> Result<Arc<CertifiedKey>, TlsError> {
        let path = || files.certificate.clone();
        let chain = CertificateDer::pem_slice_iter(&self.certificate);
        let chain = chain.collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|source| TlsError::Malformed {
            path: path(),
            source,
        })?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate {
                path: path(),
                found: describe_pem(&self.certificate),
            });
        }
        let path = || files.key.clone();
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::NoKey {
                path: path(),
                found: describe_pem(&self.key),
            },
            source => TlsError::Malformed {
                path: path(),
                source,
            },
        })?;
        // Packages of certificates give their keys to a group, and containers mount secrets in the same way.
        if self.key_mode & 0o027 != 0 {
            return Err(TlsError::KeyReadable {
                path: path(),
                mode: self.key_mode,
            });
        }
        let key = CertifiedKey::from_der(chain, key, &default_provider());
        let key = key.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::KeyMismatch {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            },
            source => unusable(files, source),
        })?;
        warn_if_not_valid_now(&key, &files.certificate);
        Ok(Arc::new(key))
    }
}

fn unusable(files: &TlsFiles, source: Error) -> TlsError {
    let TlsFiles { certificate, key } = files.clone();
    TlsError::Unusable {
        certificate,
        key,
        source,
    }
}

/// Whether the files have changed since they were loaded, and are complete.
#[derive(Debug)]
struct FileChanges {
    /// The files that were loaded, or refused.
    tried: [u8; 32],
    /// The files at the last look.
    seen: [u8; 32],
}

impl FileChanges {
    const fn new(loaded: [u8; 32]) -> Self {
        Self {
            tried: loaded,
            seen: loaded,
        }
    }

    fn mark_tried(&mut self, found: [u8; 32]) {
        *self = Self::new(found);
    }

    /// Whether to load these files: they are new, and the same as at the last look.
    fn observe(&mut self, found: [u8; 32]) -> bool {
        let is_complete = self.seen == found;
        self.seen = found;
        if !is_complete || self.tried == found {
            return false;
        }
        self.tried = found;
        true
    }
}

/// The content of a file, and its mode.
fn read_file(path: &Path) -> Result<(Vec<u8>, u32), TlsError> {
    let failed = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mode = mode_of(&file).map_err(failed)?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        return Err(TlsError::TooLong {
            path: path.to_owned(),
        });
    }
    Ok((bytes, mode))
}

#[cfg(unix)]
fn mode_of(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt;

    Ok(file.metadata()?.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &File) -> io::Result<u32> {
    Ok(0)
}

/// What a file contains instead of what was expected.
fn describe_pem(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    let text = String::from_utf8_lossy(bytes);
    let labels = text.lines().filter_map(|line| {
        let label = line.trim().strip_prefix("-----BEGIN ")?;
        label.strip_suffix("-----")
    });
    match labels.collect::<Vec<_>>().as_slice() {
        [] => format!("{} bytes that are not PEM", bytes.len()),
        ["ENCRYPTED PRIVATE KEY", ..] => {
            "a key with a passphrase: remove it with `openssl pkey -in FILE -out NEW`".to_owned()
        }
        [first, ..] if first.ends_with("PRIVATE KEY") => {
            "a private key: are both files interchanged?".to_owned()
        }
        ["CERTIFICATE", ..] => "a certificate: are both files interchanged?".to_owned(),
        [first, ..] => format!("`-----BEGIN {first}-----`"),
    }
}

/// Logs if browsers will refuse the certificate because of its time. Its issuer is not checked: only a client knows whom it trusts.
fn warn_if_not_valid_now(key: &CertifiedKey, path: &Path) {
    let Some(leaf) = key.cert.first() else { return };
    let Ok(leaf) = ParsedCertificate::try_from(leaf) else {
        return;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_millis(unix_ms()));
    let checked = verify_server_cert_signed_by_trust_anchor(
        &leaf,
        &RootCertStore::empty(),
        &[],
        now,
        default_provider().signature_verification_algorithms.all,
    );
    let path = path.display();
    match checked {
        Err(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => tracing::warn!(%path, "TLS certificate has expired: browsers will refuse it"),
        Err(Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => tracing::warn!(%path, "TLS certificate is not valid yet: browsers will refuse it"),
        _ => {}
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    bytes_of(digest(&SHA256, bytes))
}

fn bytes_of(hash: ring::digest::Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.as_ref());
    bytes
}

#[cfg(test)]
mod tests;
