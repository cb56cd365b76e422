//! Files with the secret keys that seal connect tokens.
//!
//! A file has one key per line: its id, a space and 64 hexadecimal digits. Empty lines and lines that begin with `#` are ignored. One key
//! may have no id; its line has only the digits. At most [`TOKEN_KEYS_MAX`](throng::net::TOKEN_KEYS_MAX) keys are used.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use throng::net::{InvalidTokenKeys, KEY_BYTES, SecretKey, TokenKey, TokenKeys};

use super::CliError;
use super::secret_file::read_secret;

/// The keys of connect tokens.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct KeyFile {
    /// File with the secret keys; may be repeated; without it a public test key, on loopback only
    ///
    /// One key per line: its id, a space and 64 hexadecimal digits, as written by `throng token --new-key`. Servers accept
    /// tokens of all keys, 16 at most; tokens are made with the first one. Only its owner may be able to read the file.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
}

impl KeyFile {
    /// Arguments with a single file.
    pub fn single(path: &Path) -> Self {
        Self {
            key: vec![path.to_owned()],
        }
    }

    /// The keys for these servers; the first key seals new tokens. Without files it is the public test key, for loopback addresses only.
    pub fn read(&self, servers: &[SocketAddr]) -> Result<TokenKeys, CliError> {
        if self.key.is_empty() {
            let elsewhere = servers.iter().find(|server| !server.ip().is_loopback());
            return match elsewhere {
                None => Ok(TokenKeys::from(SecretKey::INSECURE)),
                Some(server) => Err(CliError::new(format!(
                    "{server} is not a loopback address: pass --key FILE; the built-in test key is public"
                ))),
            };
        }
        TokenKeys::new(self.read_files()?).map_err(invalid)
    }

    /// Whether key files are given.
    pub fn has_files(&self) -> bool {
        !self.key.is_empty()
    }

    /// Reads the files again, and replaces the keys. On an error the keys do not change.
    #[cfg_attr(not(unix), expect(dead_code, reason = "SIGHUP is a Unix signal"))]
    pub fn reload(&self, keys: &TokenKeys) -> Result<(), CliError> {
        keys.replace(self.read_files()?).map_err(invalid)
    }

    fn read_files(&self) -> Result<Vec<TokenKey>, CliError> {
        let mut keys = Vec::new();
        for path in &self.key {
            keys.append(&mut read_keys(path)?);
        }
        Ok(keys)
    }
}

fn invalid(error: InvalidTokenKeys) -> CliError {
    CliError::new(format!("--key: {error}"))
}

/// The keys of a file, at least one.
fn read_keys(path: &Path) -> Result<Vec<TokenKey>, CliError> {
    let named = |what: String| CliError::new(format!("{}: {what}", path.display()));
    let text = read_secret(path)?;
    let mut keys = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The error does not repeat the line, because it may contain a key.
        let key = parse_key(line).ok_or_else(|| {
            named(format!(
                "line {}: expected the id of a key, such as 1, a space and 64 hexadecimal digits",
                nth + 1
            ))
        })?;
        if key.secret == SecretKey::INSECURE {
            let problem = "expected a secret key, found the public test key (zeros)";
            return Err(named(format!("line {}: {problem}", nth + 1)));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(named(
            "expected at least one key of 64 hexadecimal digits".to_owned(),
        ));
    }
    Ok(keys)
}

fn parse_key(line: &str) -> Option<TokenKey> {
    let (id, digits) = match line.split_once(char::is_whitespace) {
        None => (None, line),
        Some((id, digits)) => (Some(id), digits.trim()),
    };
    let is_number = |id: &str| id.bytes().all(|digit| digit.is_ascii_digit());
    let id = match id {
        None => None,
        Some(id) => Some(id.parse().ok().filter(|_| is_number(id))?),
    };
    let bytes = from_hex(digits).filter(|bytes| bytes.len() == KEY_BYTES)?;
    let secret = SecretKey(bytes.try_into().ok()?);
    Some(TokenKey { id, secret })
}

/// Writes a new random key to a new file, and never overwrites a file. On Unix only its owner can read it.
pub(super) fn write_new_key(path: &Path, id: Option<u32>) -> Result<(), CliError> {
    let line = new_line(id.unwrap_or(1))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    append(options.open(path), &line, path)
}

/// Appends a new random key to a file, with the next free id if none is given. Returns the id.
pub(super) fn append_new_key(path: &Path, id: Option<u32>) -> Result<u32, CliError> {
    let mut keys = read_keys(path)?;
    let next = match keys.iter().filter_map(|key| key.id).max() {
        None => Some(1),
        Some(last) => last.checked_add(1),
    };
    let id = id.or(next);
    let id = id.ok_or_else(|| CliError::new("pass --key-id: the greatest id is in use"))?;
    // Validates the keys together with the new one, so that no invalid file is written.
    keys.push(TokenKey::with_id(id, SecretKey([1; KEY_BYTES])));
    TokenKeys::new(keys).map_err(|error| CliError::new(format!("{}: {error}", path.display())))?;
    let has_end = std::fs::read(path).is_ok_and(|bytes| bytes.ends_with(b"\n"));
    let line = format!("{}{}", if has_end { "" } else { "\n" }, new_line(id)?);
    append(OpenOptions::new().append(true).open(path), &line, path)?;
    Ok(id)
}

fn new_line(id: u32) -> Result<String, CliError> {
    let key = SecretKey::random().map_err(|error| CliError::new(error.to_string()))?;
    Ok(format!("{id} {}\n", to_hex(&key.0)))
}

fn append(file: std::io::Result<File>, line: &str, path: &Path) -> Result<(), CliError> {
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| CliError::not_written(path, &error))
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_bytes_or_none() {
        assert_eq!(from_hex(&to_hex(&[0, 9, 255])), Some(vec![0, 9, 255]));
        for none in ["0", "0g", "+1", "ää"] {
            assert_eq!(from_hex(none), None, "{none}");
        }
    }

    #[test]
    fn line_is_an_id_and_a_key_or_a_key_alone() {
        let digits = "0a".repeat(KEY_BYTES);
        let secret = SecretKey([10; KEY_BYTES]);
        for (line, id) in [
            (digits.clone(), None),
            (format!("0 {digits}"), Some(0)),
            (format!("4294967295 \t{digits}"), Some(u32::MAX)),
        ] {
            assert_eq!(parse_key(&line), Some(TokenKey { id, secret }), "{line}");
        }
        for line in [
            format!("+1 {digits}"),
            format!("-1 {digits}"),
            format!("4294967296 {digits}"),
            format!("a {digits}"),
            format!("1 {digits} 2"),
            format!("1 {digits}0a"),
            digits[2..].to_owned(),
            "1".to_owned(),
        ] {
            assert_eq!(parse_key(&line), None, "{line}");
        }
    }

    #[test]
    fn server_without_a_key_accepts_loopback_only() {
        let (here, there) = (["127.0.0.1:7000"], ["127.0.0.1:7000", "203.0.113.5:7000"]);
        let read = |servers: &[&str]| {
            let servers: Vec<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
            KeyFile::default().read(&servers)
        };
        assert!(read(&here).is_ok_and(|keys| keys.has_test_key()));
        assert!(read(&there).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn keys_are_written_appended_and_read_again() {
        let path = std::env::temp_dir().join(format!("throng-keys-{}", std::process::id()));
        let file = KeyFile {
            key: vec![path.clone()],
        };
        write_new_key(&path, None).unwrap();
        let keys = file.read(&[]).unwrap();
        let first = keys.first();
        assert_eq!(keys.ids(), [Some(1)]);
        assert!(
            write_new_key(&path, None).is_err(),
            "an existing key file is not overwritten"
        );
        assert_eq!(append_new_key(&path, None).unwrap(), 2);
        assert_eq!(append_new_key(&path, Some(9)).unwrap(), 9);
        assert!(append_new_key(&path, Some(2)).is_err());
        file.reload(&keys).unwrap();
        assert_eq!(keys.ids(), [Some(1), Some(2), Some(9)]);
        assert_eq!(keys.first(), first);
        // The last line of an edited file may have no line break.
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3);
        std::fs::write(&path, text.trim_end()).unwrap();
        assert_eq!(append_new_key(&path, None).unwrap(), 10);
        file.reload(&keys).unwrap();
        assert_eq!(keys.ids(), [Some(1), Some(2), Some(9), Some(10)]);
        // An invalid file changes nothing.
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        for bad in [
            "",
            "# none\n",
            "1 abc\n",
            &format!("1 {}\n", "0".repeat(64)),
        ] {
            write(bad);
            let error = file.reload(&keys).unwrap_err();
            assert!(format!("{error:?}").contains("expected"), "{error:?}");
        }
        let twice = format!("3 {0}\n3 {1}\n", "0a".repeat(32), "0b".repeat(32));
        write(&twice);
        assert!(format!("{:?}", file.reload(&keys)).contains("have the id 3"));
        std::fs::remove_file(&path).unwrap();
        assert!(file.reload(&keys).is_err());
        assert_eq!(keys.ids(), [Some(1), Some(2), Some(9), Some(10)]);
    }
}
