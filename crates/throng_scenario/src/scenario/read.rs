//! Reading the text of a scenario from disk or standard input, with a size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::text::{BYTE_ORDER_MARK, ScenarioError, SourceError};

/// Maximum size of a scenario in bytes: all its files together, with the values of parameters in them.
pub const SCENARIO_BYTES_MAX: u64 = 4 << 20;

/// Reads a file as text, up to the maximum size of a scenario.
pub(super) fn read_text(path: &Path) -> Result<String, ScenarioError> {
    let failed = |source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    };
    let too_large = |found_bytes| ScenarioError::TooLarge {
        path: path.to_owned(),
        found_bytes,
        bytes_max: SCENARIO_BYTES_MAX,
    };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > SCENARIO_BYTES_MAX {
        return Err(too_large(length));
    }
    // The file may grow while it is read, so the reader has the limit as well.
    read_limited(file, path)
}

/// Reads everything as text, up to the maximum size of a scenario. `path` is its name in errors.
pub(super) fn read_limited(from: impl Read, path: &Path) -> Result<String, ScenarioError> {
    let mut bytes = Vec::new();
    let read = from.take(SCENARIO_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > SCENARIO_BYTES_MAX {
        return Err(ScenarioError::TooLarge {
            path: path.to_owned(),
            found_bytes: bytes.len() as u64,
            bytes_max: SCENARIO_BYTES_MAX,
        });
    }
    let mark = BYTE_ORDER_MARK.to_string();
    if bytes.starts_with(mark.as_bytes()) {
        bytes.drain(..mark.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let message = format!(
            "expected text in UTF-8, found byte {:#04x}",
            error.as_bytes()[valid]
        );
        let span = valid..valid + char::REPLACEMENT_CHARACTER.len_utf8();
        let mistake = SourceError::new(&path.display().to_string(), &text, span, (message, None));
        ScenarioError::Syntax(Box::new(mistake))
    })
}
