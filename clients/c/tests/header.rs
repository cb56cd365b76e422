//! `throng.h` matches the library.

use std::path::Path;

use throng_client::CloseReason;

/// If this variable is set, the test writes the header instead of comparing it.
const WRITE: &str = "THRONG_WRITE_HEADER";

fn written() -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    let builder = ["status", "structs", "functions"]
        .iter()
        .fold(cbindgen::Builder::new(), |builder, file| {
            builder.with_src(package.join(format!("src/{file}.rs")))
        });
    let mut bytes = Vec::new();
    let bindings = builder.with_config(config).generate().unwrap();
    bindings.write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn header_matches_the_library() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("throng.h");
    let written = written();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let found = found.replace("\r\n", "\n");
    let differs = (1..)
        .zip(found.lines().zip(written.lines()))
        .find(|(_, (found, written))| found != written);
    assert!(
        found == written,
        "throng.h does not match src, first at {differs:?}: run this test with {WRITE}=1"
    );
}

#[test]
fn header_lists_every_close_reason() {
    let reasons = (0..=u8::MAX).filter_map(CloseReason::from_number);
    let named = reasons.map(|reason| format!("{} {}", reason.number(), reason.name()));
    let written = written().replace("\n   * ", " ").replace("\n  // ", " ");
    let named = Vec::from_iter(named).join(", ");
    assert!(written.contains(&named), "the header lacks {named}");
}
