//! Notifies the service manager that the server is ready, alive or stopping, with the `sd_notify` protocol of systemd.

use std::time::Duration;

use throng::sim::clock::Stopwatch;

/// Sends states to the socket named by `NOTIFY_SOCKET`. Does nothing if it is not set.
#[derive(Debug)]
pub(super) struct Notifier {
    #[cfg(unix)]
    socket: Option<std::os::unix::net::UnixDatagram>,
    /// Time between two watchdog messages; `None` without a watchdog.
    every: Option<Duration>,
    last: Stopwatch,
}

impl Notifier {
    /// Opens the socket that the environment names.
    pub fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let is_ours =
            variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let every = variable("WATCHDOG_USEC").and_then(|text| watchdog_every(&text));
        Self {
            #[cfg(unix)]
            socket: socket(),
            every: every.filter(|_| is_ours),
            last: Stopwatch::start(),
        }
    }

    /// Reports that players can connect.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Reports a completed tick.
    pub fn tick(&mut self) {
        if self.every.is_some_and(|every| self.last.elapsed() >= every) {
            self.last = Stopwatch::start();
            self.send("WATCHDOG=1");
        }
    }

    /// Reports that the server is stopping.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    #[cfg(unix)]
    fn send(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::debug!(%error, state, "service manager not notified");
        }
    }

    #[cfg(not(unix))]
    fn send(&self, _: &str) {}
}

/// Half of the watchdog's timeout.
fn watchdog_every(text: &str) -> Option<Duration> {
    let us: u64 = text.parse().ok()?;
    (us > 0).then(|| Duration::from_micros(us / 2))
}

#[cfg(unix)]
fn socket() -> Option<std::os::unix::net::UnixDatagram> {
    let path = std::env::var_os("NOTIFY_SOCKET")?;
    let connected = || {
        let socket = std::os::unix::net::UnixDatagram::unbound()?;
        // A tick must not block on this socket.
        socket.set_nonblocking(true)?;
        connect(&socket, &path)?;
        Ok::<_, std::io::Error>(socket)
    };
    let failed = |error| tracing::warn!(%error, path = ?path, "NOTIFY_SOCKET not opened");
    connected().map_err(failed).ok()
}

#[cfg(unix)]
fn connect(
    socket: &std::os::unix::net::UnixDatagram,
    path: &std::ffi::OsStr,
) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(name) = path.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.connect_addr(&address);
    }
    socket.connect(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_is_notified_twice_per_timeout() {
        assert_eq!(watchdog_every("30000000"), Some(Duration::from_secs(15)));
        assert_eq!(["", "0", "x", "-1"].map(watchdog_every), [None; 4]);
    }
}
