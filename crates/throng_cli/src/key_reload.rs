//! SIGHUP: servers and the token service reload their key files.
//!
//! A separate thread waits for the signal and reads the files, so the tick does not wait for a disk.

use throng::net::TokenKeys;

use super::CliError;
use super::key_file::KeyFile;

/// Reloads key files. An invalid file is logged and changes nothing.
#[cfg(unix)]
fn reload(files: &KeyFile, keys: &TokenKeys) {
    match files.reload(keys) {
        // Logged as a warning, like other changes of a running server, so that operators see it.
        Ok(()) => tracing::warn!(ids = %names(keys), "token keys replaced"),
        Err(error) => tracing::warn!(
            ids = %names(keys),
            "token keys not replaced, the old ones stay valid: {error}"
        ),
    }
}

/// The ids of the keys, for the log.
#[cfg(unix)]
fn names(keys: &TokenKeys) -> String {
    let names = keys.ids().into_iter();
    let names = names.map(|id| id.map_or("without id".to_owned(), |id| id.to_string()));
    names.collect::<Vec<_>>().join(", ")
}

/// The thread that waits for the signal; it ends when this is dropped.
#[cfg(unix)]
pub(super) struct KeyReloader {
    signals: signal_hook::iterator::Handle,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[cfg(unix)]
impl KeyReloader {
    /// Starts to reload the files at each SIGHUP; `None` without files.
    pub fn start(files: &KeyFile, keys: &TokenKeys) -> Result<Option<Self>, CliError> {
        if !files.has_files() {
            return Ok(None);
        }
        let failed = |error| CliError::new(format!("SIGHUP cannot be handled: {error}"));
        let mut signals =
            signal_hook::iterator::Signals::new([signal_hook::consts::SIGHUP]).map_err(failed)?;
        let handle = signals.handle();
        let (files, keys) = (files.clone(), keys.clone());
        let thread = std::thread::Builder::new().name("key-reload".into());
        let thread = thread.spawn(move || signals.forever().for_each(|_| reload(&files, &keys)));
        Ok(Some(Self {
            signals: handle,
            thread: Some(thread.map_err(failed)?),
        }))
    }
}

#[cfg(unix)]
impl Drop for KeyReloader {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("key reload thread panicked: token keys are not read again");
        }
    }
}

/// This system has no signal for a reload.
#[cfg(not(unix))]
pub(super) struct KeyReloader;

#[cfg(not(unix))]
impl KeyReloader {
    pub fn start(_: &KeyFile, _: &TokenKeys) -> Result<Option<Self>, CliError> {
        Ok(None)
    }
}
