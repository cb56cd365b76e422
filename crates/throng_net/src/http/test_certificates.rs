//! Certificate files of tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::TlsFiles;

/// A folder with a certificate and its key, removed at the end.
pub struct TestFiles {
    folder: PathBuf,
}

impl TestFiles {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("throng-tls-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.path("certificate.pem"),
            key: self.path("key.pem"),
        }
    }

    /// A self-signed certificate and its key, as PEM.
    pub fn generate(name: &str) -> (String, String) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    /// Writes a new certificate with its key.
    pub fn replace(&self, name: &str) {
        let (certificate, key) = Self::generate(name);
        self.write_bytes(certificate.as_bytes(), key.as_bytes());
    }

    pub fn write_bytes(&self, certificate: &[u8], key: &[u8]) {
        fs::write(self.path("certificate.pem"), certificate).unwrap();
        let path = self.path("key.pem");
        fs::write(&path, key).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
