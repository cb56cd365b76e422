//! A child process, which ends with the demo.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use throng::sim::clock::Stopwatch;

use super::folder::last_lines;
use crate::CliError;

/// Between two looks at a process that is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A child process. It is killed when this is dropped.
pub(super) struct DemoProcess {
    name: String,
    log: PathBuf,
    child: Child,
}

impl DemoProcess {
    /// Starts a program, whose output goes to a log. It is not in the process group of the terminal, so that Ctrl-C reaches this process only.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| CliError::new(format!("{name} not started: {error}"));
        let file = File::options().create(true).append(true).open(log);
        let file = file.map_err(failed)?;
        let errors = file.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child: command.spawn().map_err(failed)?,
        })
    }

    /// Fails if the process has ended.
    pub fn check(&mut self) -> Result<(), CliError> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.ended(status)),
            _ => Ok(()),
        }
    }

    fn ended(&self, status: ExitStatus) -> CliError {
        let (name, said) = (&self.name, last_lines(&self.log));
        CliError::new(format!("{name} has ended ({status}): {said}"))
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Requests the end.
    pub fn terminate(&self) {
        #[cfg(unix)]
        let _ = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .stderr(Stdio::null())
            .status();
    }

    /// Waits for the end, at most for this time. Returns whether it has ended in order.
    pub fn wait(&mut self, time: Duration) -> bool {
        let begun = Stopwatch::start();
        while begun.elapsed() < time {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
