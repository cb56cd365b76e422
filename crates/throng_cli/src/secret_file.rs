//! Files with secrets: keys and tokens.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::CliError;

/// Maximum size of a file, in bytes.
const BYTES_MAX: u64 = 4 << 10;

/// Reads a secret without surrounding white space. On Unix only the owner may have access to the file.
pub(super) fn read_secret(path: &Path) -> Result<String, CliError> {
    let named = |what: &str| CliError::new(format!("{}: {what}", path.display()));
    let failed = |error: std::io::Error| named(&error.to_string());
    let file = File::open(path).map_err(failed)?;
    check_mode(&file, path)?;
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(failed)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(named("expected a secret of at most 4 kB, found more"));
    }
    Ok(text.trim().to_owned())
}

#[cfg(unix)]
fn check_mode(file: &File, path: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let name = path.display();
    let metadata = file.metadata();
    let metadata = metadata.map_err(|error| CliError::new(format!("{name}: {error}")))?;
    let mode = metadata.permissions().mode() & 0o777;
    // A systemd credential belongs to root and is readable by the group of the process.
    let is_passed_on = metadata.uid() == 0 && own_user().is_some_and(|user| user != 0);
    let others = if is_passed_on { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(CliError::new(format!(
            "{name}: expected a file that only its owner can read, found mode {mode:03o}: run `chmod 600 {name}`; make a new \
             key if others could have read it"
        )));
    }
    Ok(())
}

/// The user of this process, if /proc is available.
#[cfg(unix)]
fn own_user() -> Option<u32> {
    let process = std::fs::metadata("/proc/self").ok()?;
    Some(std::os::unix::fs::MetadataExt::uid(&process))
}

#[cfg(not(unix))]
fn check_mode(_: &File, _: &Path) -> Result<(), CliError> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secret_is_read_only_if_private_and_short() {
        let path = std::env::temp_dir().join(format!("throng-secret-{}", std::process::id()));
        let read = |mode: u32, text: &[u8]| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read_secret(&path);
            fs::remove_file(&path).unwrap();
            read.map_err(|failure| format!("{failure:?}"))
        };
        assert_eq!(read(0o600, b" abc\n"), Ok("abc".to_owned()));
        for mode in [0o640, 0o604, 0o660] {
            let error = read(mode, b"abc").unwrap_err();
            assert!(error.contains("chmod 600"), "{error}");
        }
        let error = read(0o600, &[b'a'; 5_000]).unwrap_err();
        assert!(error.contains("4 kB"), "{error}");
        assert!(read(0o600, &[0xff; 10]).is_err());
        // An endless file that all users can read.
        assert!(read_secret(Path::new("/dev/zero")).is_err());
    }
}
