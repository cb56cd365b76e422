use std::fs;
use std::path::PathBuf;

use super::*;
use crate::http::test_certificates::TestFiles;

#[test]
fn unusable_files_are_named_with_what_was_found() {
    let files = TestFiles::new();
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    let message = |certificate: &[u8], key: &[u8]| {
        files.write_bytes(certificate, key);
        let loaded = TlsCertificate::load(files.tls_files());
        loaded.map(|_| ()).unwrap_err().to_string()
    };
    let (chain, own) = TestFiles::generate("localhost");
    let (_, foreign) = TestFiles::generate("localhost");
    let (chain, own) = (chain.as_bytes(), own.as_bytes());
    for (certificate_bytes, key_bytes, place, found) in [
        (&b""[..], own, &certificate, "an empty file"),
        (b"hello", own, &certificate, "5 bytes that are not PEM"),
        (own, own, &certificate, "are both files interchanged?"),
        (chain, chain, &key, "are both files interchanged?"),
        (chain, b"", &key, "an empty file"),
        (
            chain,
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            &key,
            "openssl pkey",
        ),
        (
            chain,
            foreign.as_bytes(),
            &key,
            "is not the private key of the first certificate",
        ),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            own,
            &certificate,
            "cannot be used",
        ),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA",
            own,
            &certificate,
            "malformed PEM",
        ),
        (&vec![b'a'; 300_000], own, &certificate, "256 kB"),
    ] {
        let message = message(certificate_bytes, key_bytes);
        assert!(message.contains(&*place.to_string_lossy()), "{message}");
        assert!(message.contains(found), "{found}: {message}");
    }
    let missing = TlsFiles {
        certificate: PathBuf::from("/nowhere/certificate.pem"),
        key,
    };
    let message = TlsCertificate::load(missing).unwrap_err().to_string();
    assert!(message.contains("/nowhere/certificate.pem"), "{message}");
}

#[cfg(unix)]
#[test]
fn key_that_all_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let files = TestFiles::new();
    files.replace("localhost");
    for (mode, is_accepted) in [(0o600, true), (0o640, true), (0o644, false), (0o660, false)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(files.path("key.pem"), mode).unwrap();
        let loaded = TlsCertificate::load(files.tls_files());
        assert_eq!(loaded.is_ok(), is_accepted, "{loaded:?}");
        if let Err(error) = loaded {
            assert!(error.to_string().contains("chmod 640"), "{error}");
        }
    }
}

#[test]
fn changed_files_are_loaded_once_they_are_complete() {
    let files = TestFiles::new();
    files.replace("localhost");
    let certificate = TlsCertificate::load(files.tls_files()).unwrap();
    let first = certificate.sha256();
    assert!(!certificate.reload_if_changed().unwrap());
    // The certificate is replaced, its key not yet.
    let (chain, key) = TestFiles::generate("localhost");
    files.write_bytes(chain.as_bytes(), &fs::read(files.path("key.pem")).unwrap());
    assert!(!certificate.reload_if_changed().unwrap());
    files.write_bytes(chain.as_bytes(), key.as_bytes());
    assert!(!certificate.reload_if_changed().unwrap());
    assert_eq!(certificate.sha256(), first);
    assert!(certificate.reload_if_changed().unwrap());
    assert_ne!(certificate.sha256(), first);
    assert!(!certificate.reload_if_changed().unwrap());
}

#[test]
fn unusable_change_is_reported_once_and_keeps_the_old() {
    let files = TestFiles::new();
    files.replace("localhost");
    let certificate = TlsCertificate::load(files.tls_files()).unwrap();
    let first = certificate.sha256();
    let bytes = fs::read(files.path("certificate.pem")).unwrap();
    for broken in [&b"junk"[..], b""] {
        fs::write(files.path("certificate.pem"), broken).unwrap();
        assert!(!certificate.reload_if_changed().unwrap());
        assert!(certificate.reload_if_changed().is_err());
        assert!(!certificate.reload_if_changed().unwrap());
    }
    fs::remove_file(files.path("certificate.pem")).unwrap();
    assert!(!certificate.reload_if_changed().unwrap());
    assert!(certificate.reload_if_changed().is_err());
    // On request at once, and every time.
    assert!(certificate.reload().is_err());
    assert!(certificate.reload().is_err());
    assert_eq!(certificate.sha256(), first);
    fs::write(files.path("certificate.pem"), bytes).unwrap();
    certificate.reload().unwrap();
    assert_eq!(certificate.sha256(), first);
}

#[test]
fn reloader_loads_on_request() {
    let files = TestFiles::new();
    files.replace("localhost");
    let certificate = TlsCertificate::load(files.tls_files()).unwrap();
    let first = certificate.sha256();
    files.replace("localhost");
    let reloader =
        crate::http::TlsReloader::start(certificate.clone(), Duration::from_secs(3_600)).unwrap();
    reloader.request();
    // Ends after the pending request.
    drop(reloader);
    assert_ne!(certificate.sha256(), first);
}
