//! `throng serve` as a child process: its counters, memory and CPU time, and the datagrams that the system dropped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::CliError;
use crate::key_file::{KeyFile, write_new_key};
use crate::token::issue;
use throng::net::{ConnectToken, TokenKey};

/// Validity of the tokens, and timeout of their connections, in seconds.
const TOKEN_S: u64 = 60;
const TIMEOUT_S: i32 = 10;

/// Clock ticks per second in /proc: the same on all Linux machines.
const PROC_HZ: f64 = 100.0;

/// Timeout of a request for the server's metrics.
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);

/// Counters of the server's UDP socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServerCounters {
    pub clients: u64,
    pub datagrams_in: u64,
    /// Accepted datagrams, by kind.
    pub accepted: BTreeMap<String, u64>,
    /// Refused datagrams, by reason.
    pub refused: BTreeMap<String, u64>,
}

impl ServerCounters {
    /// Parses metrics in the Prometheus text format.
    fn parse(text: &str) -> Self {
        let mut counters = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let value = value as u64;
            let (name, label) = name.split_once('{').unwrap_or((name, ""));
            let label = label.split('"').nth(1).unwrap_or_default().to_owned();
            match name {
                "throng_net_clients" => counters.clients = value,
                "throng_net_datagrams_total" if label == "in" => counters.datagrams_in = value,
                "throng_net_accepted_datagrams_total" => _ = counters.accepted.insert(label, value),
                "throng_net_refused_datagrams_total" => _ = counters.refused.insert(label, value),
                _ => {}
            }
        }
        counters
    }

    /// Number of datagrams that are accepted or refused in one of the counters.
    pub fn accounted(&self) -> u64 {
        self.accepted.values().chain(self.refused.values()).sum()
    }

    /// The difference to earlier counters.
    pub fn since(&self, before: &Self) -> Self {
        let since = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            now.iter()
                .map(|(name, count)| {
                    let before = then.get(name).copied().unwrap_or(0);
                    (name.clone(), count.saturating_sub(before))
                })
                .collect()
        };
        Self {
            clients: self.clients,
            datagrams_in: self.datagrams_in.saturating_sub(before.datagrams_in),
            accepted: since(&self.accepted, &before.accepted),
            refused: since(&self.refused, &before.refused),
        }
    }
}

/// A running server.
pub(super) struct ServerProcess {
    child: Child,
    /// Its IPv4 address on this machine, and its IPv6 address if it has one.
    pub address: SocketAddr,
    pub address_v6: Option<SocketAddr>,
    metrics: SocketAddr,
    key: TokenKey,
    _folder: TrialFolder,
}

/// A temporary folder, removed when dropped.
struct TrialFolder(PathBuf);

impl TrialFolder {
    fn new() -> std::io::Result<Self> {
        let name = format!("throng-bench-hostile-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A former process that was killed may have left its folder.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(error: std::io::Error) -> CliError {
    CliError::new(format!("could not start the server of the trial: {error}"))
}

impl ServerProcess {
    /// Starts this program as a server of the town. It listens on all addresses, so that it applies the limits of a public server.
    pub fn start() -> Result<Self, CliError> {
        let folder = TrialFolder::new().map_err(failed)?;
        let key_file = folder.0.join("key");
        write_new_key(&key_file, None)?;
        let key = KeyFile::single(&key_file).read(&[])?.first();
        let has_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let free = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
        let port = free.and_then(|socket| socket.local_addr());
        let port = port.map_err(failed)?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address_v6 = has_v6.then(|| SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        let log = folder.0.join("log");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            .args(["serve", "town", "--metrics", "127.0.0.1:0", "--listen"])
            .arg(if has_v6 {
                format!("[::]:{port}")
            } else {
                format!("0.0.0.0:{port}")
            })
            .args(["--public", &address.to_string()])
            .arg("--key")
            .arg(&key_file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).map_err(failed)?);
        if let Some(address) = address_v6 {
            command.args(["--public", &address.to_string()]);
        }
        let mut child = command.spawn().map_err(failed)?;
        let metrics = wait_for_metrics(&mut child);
        let Some(metrics) = metrics else {
            let _ = child.kill();
            let _ = child.wait();
            let text = fs::read_to_string(&log).unwrap_or_default();
            let text = text.trim();
            return Err(CliError::new(format!(
                "the server of the trial did not start: {text}"
            )));
        };
        Ok(Self {
            child,
            address,
            address_v6,
            metrics,
            key,
            _folder: folder,
        })
    }

    /// A handle for another thread that observes the server.
    pub fn observer(&self) -> ServerObserver {
        ServerObserver {
            process: self.child.id(),
            port: self.address.port(),
            metrics: self.metrics,
        }
    }

    /// A handle for another thread that issues tokens for the server.
    pub fn issuer(&self) -> TokenIssuer {
        TokenIssuer {
            servers: vec![self.address],
            key: self.key,
        }
    }
}

/// Waits until the server prints the address of its metrics. The rest of its output is read and discarded.
fn wait_for_metrics(child: &mut Child) -> Option<SocketAddr> {
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    let found = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let rest = line.strip_prefix("metrics: http://")?;
        rest.split('/').next()?.parse().ok()
    })?;
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    Some(found)
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Kills the process, which has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Issues connect tokens for a server.
#[derive(Clone)]
pub(super) struct TokenIssuer {
    servers: Vec<SocketAddr>,
    key: TokenKey,
}

impl TokenIssuer {
    pub fn token(&self, player: u64) -> Result<ConnectToken, CliError> {
        issue(player, self.servers.clone(), (TOKEN_S, TIMEOUT_S), self.key)
    }

    /// The expiry of a token that is issued now, in seconds since 1970.
    pub fn expires_s() -> u64 {
        throng::sim::clock::unix_ms() / 1_000 + TOKEN_S
    }
}

/// Observes a server from outside its process.
#[derive(Clone, Copy)]
pub(super) struct ServerObserver {
    process: u32,
    port: u16,
    metrics: SocketAddr,
}

impl ServerObserver {
    /// The server's counters. Takes about a tick of the server.
    pub fn counters(&self) -> Result<ServerCounters, CliError> {
        let read = || {
            let mut stream = TcpStream::connect(self.metrics)?;
            stream.set_read_timeout(Some(METRICS_TIMEOUT))?;
            let host = self.metrics;
            write!(
                stream,
                "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        let text = read().map_err(failed)?;
        Ok(ServerCounters::parse(&text))
    }

    /// Resident memory, in bytes; 0 without /proc.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes.unwrap_or(0) * 1_024
    }

    /// CPU time used so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process));
        let stat = stat.unwrap_or_default();
        // The process name before the parenthesis may contain spaces.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let times = fields.split_whitespace().skip(11).take(2);
        times
            .filter_map(|text| text.parse::<f64>().ok())
            .sum::<f64>()
            / PROC_HZ
    }

    /// Datagrams that the system dropped because the socket's buffer was full.
    pub fn dropped(&self) -> u64 {
        let of = |path: &str| {
            let table = fs::read_to_string(Path::new(path)).unwrap_or_default();
            dropped_in(&table, self.port)
        };
        of("/proc/net/udp") + of("/proc/net/udp6")
    }
}

/// The drops of the sockets with this port, from the text of /proc/net/udp.
fn dropped_in(table: &str, port: u16) -> u64 {
    let port = format!(":{port:04X}");
    let of_port = table.lines().filter(|line| {
        let local = line.split_whitespace().nth(1);
        local.is_some_and(|local| local.ends_with(&port))
    });
    let drops = of_port.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
    drops.sum()
}

/// CPU time of this thread, in seconds; 0 without /proc.
pub(super) fn thread_cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_counters_are_read_from_metrics() {
        let text = "HTTP/1.1 200 OK\r\n\r\n# HELP a b\nthrong_net_clients 3\n\
            throng_net_datagrams_total{direction=\"in\"} 21\n\
            throng_net_datagrams_total{direction=\"out\"} 40\n\
            throng_net_accepted_datagrams_total{kind=\"client\"} 9\n\
            throng_net_refused_datagrams_total{reason=\"no_connection\"} 2\n\
            throng_net_refused_datagrams_total{reason=\"invalid_token\"} 1e1\n";
        let found = ServerCounters::parse(text);
        assert_eq!((found.clients, found.datagrams_in), (3, 21));
        assert_eq!(found.accounted(), 21);
        let since = found.since(&ServerCounters::parse(&text.replace("1e1", "4")));
        assert_eq!(since.refused["invalid_token"], 6);
        assert_eq!((since.datagrams_in, since.accounted()), (0, 6));
    }

    #[test]
    fn drops_are_those_of_the_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
            100: 0100007F:1B58 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0 17\n \
            101: 0100007F:1B59 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0 5\n";
        assert_eq!(dropped_in(table, 7_000), 17);
    }
}
