//! Servers that tests start, and rows on them.

pub mod rows;

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

/// Rounds of 10 ms or more after which a server counts as not started.
const ROUNDS_MAX: u32 = 6_000;

/// A port that no other test of this process gets, and that is not one of those that the system gives to clients.
fn free_port() -> u16 {
    static NTH: AtomicU16 = AtomicU16::new(0);
    loop {
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (std::process::id() % 100) as u16 * 100 + nth % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A NATS server of a test, which is killed at the end.
pub struct NatsServer {
    port: u16,
    arguments: Vec<String>,
    child: Child,
}

impl NatsServer {
    /// `None` if the program is missing.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let port = free_port();
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let child = Self::spawn(port, &arguments)?;
        let mut server = Self {
            port,
            arguments,
            child,
        };
        server.until_it_listens();
        Some(server)
    }

    fn spawn(port: u16, arguments: &[String]) -> Option<Child> {
        let named = std::env::var("THRONG_NATS_SERVER").ok();
        let mut command = Command::new(named.as_deref().unwrap_or("nats-server"));
        command
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let spawned = command.spawn();
        assert!(named.is_none() || spawned.is_ok(), "{spawned:?}");
        spawned.ok()
    }

    fn until_it_listens(&mut self) {
        let mut rounds = 0;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the NATS server has ended: {ended:?}");
            rounds += 1;
            assert!(rounds < ROUNDS_MAX, "the NATS server does not listen");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn restart(&mut self) {
        self.child = Self::spawn(self.port, &self.arguments).unwrap();
        self.until_it_listens();
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
