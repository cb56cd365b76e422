//! A temporary folder with keys, logs and data.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use throng::net::SecretKey;

use crate::CliError;
use crate::key_file::{to_hex, write_new_key};

/// A folder that only its owner can read, removed when dropped.
pub(super) struct DemoFolder {
    path: PathBuf,
}

/// Random hexadecimal digits.
pub(super) fn secret() -> Result<String, CliError> {
    let key = SecretKey::random().map_err(|error| CliError::new(error.to_string()))?;
    Ok(to_hex(&key.0))
}

impl DemoFolder {
    /// Makes the folder, with keys for the cluster and for tokens.
    pub fn new() -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("throng-demo-{}", &secret()?[..16]));
        let mut builder = fs::DirBuilder::new();
        // Others may pass through it: the database server runs as another user.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o711);
        let made = builder.create(&path);
        made.map_err(|error| CliError::not_written(&path, &error))?;
        let folder = Self { path };
        folder.write("cluster.key", &secret()?)?;
        write_new_key(&folder.file("server.key"), None)?;
        Ok(folder)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a new file that only its owner can read.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, CliError> {
        let path = self.file(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| CliError::not_written(&path, &error))?;
        Ok(path)
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The last lines of a log, for an error.
pub(super) fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
