//! Tokens of pages that are open beyond this machine.

use std::path::Path;

use throng::net::SecretKey;

use super::CliError;
use super::secret_file::read_secret;

/// The environment variable with the token of a page.
const VARIABLE: &str = "THRONG_INSPECT_TOKEN";

/// Random bytes of a generated token.
const BYTES: usize = 16;

/// The token of a file, otherwise that of the environment, if one is given.
pub(super) fn given(file: Option<&Path>) -> Result<Option<String>, CliError> {
    match file {
        Some(path) => read_secret(path).map(Some),
        None => Ok(std::env::var(VARIABLE).ok()),
    }
}

/// A new token.
pub(super) fn generated() -> Result<String, CliError> {
    let key = SecretKey::random().map_err(|error| CliError::new(error.to_string()))?;
    let digits = key.0.iter().take(BYTES);
    Ok(digits.map(|byte| format!("{byte:02x}")).collect())
}
