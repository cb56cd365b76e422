//! The NATS server and the Postgres server of the demo.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use throng::sim::clock::Stopwatch;
use throng::store::PostgresSource;
use throng_cluster::PostgresRows;

use super::folder::{DemoFolder, last_lines, secret};
use super::process::DemoProcess;
use crate::CliError;
use crate::is_interrupted;

/// How long a server may take to start.
const START_TIME: Duration = Duration::from_secs(60);

/// How long a request of the demo to the rows may take.
const ROWS_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two attempts.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Where Debian, Fedora, Homebrew and others put Postgres, if it is not in PATH.
const POSTGRES_FOLDERS: [&str; 4] = [
    "/usr/lib/postgresql",
    "/usr/local/lib/postgresql",
    "/opt/homebrew/opt/postgresql",
    "/usr/pgsql",
];

/// Both servers, until this is dropped.
pub(super) struct DemoServers {
    /// Addresses with credentials.
    pub nats: String,
    pub postgres: String,
    servers: [DemoServer; 2],
}

/// A server: how it is started, and its process unless it was killed.
struct DemoServer {
    name: &'static str,
    start: Box<dyn Fn() -> Result<DemoProcess, CliError>>,
    process: Option<DemoProcess>,
}

/// The ports of servers. Systems take the ports of clients from higher numbers, so that no client gets the port of a server that was killed.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port that is free now, for TCP and UDP.
pub(super) fn free_port() -> Result<u16, CliError> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = u32::from(PORTS.end - PORTS.start);
    // Another demo begins elsewhere.
    let first = std::process::id().wrapping_mul(97) % ports;
    for _ in PORTS {
        let nth = first + u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + (nth % ports) as u16;
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return Ok(port);
        }
    }
    let (start, end) = (PORTS.start, PORTS.end);
    let message = format!("no port from {start} to {end} is free on 127.0.0.1");
    Err(CliError::new(message))
}

/// Calls `attempt` until it succeeds.
pub(super) fn retry<T>(
    what: &str,
    time: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, CliError>,
) -> Result<T, CliError> {
    let begun = Stopwatch::start();
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        if is_interrupted() {
            return Err(CliError::new(format!("interrupted before {what}")));
        }
        if begun.elapsed() > time {
            let seconds = time.as_secs();
            return Err(CliError::new(format!("{what}: not within {seconds} s")));
        }
        thread::sleep(RETRY_DELAY);
    }
}

impl DemoServers {
    /// Starts both, and waits until they reply.
    pub fn start(folder: &DemoFolder) -> Result<Self, CliError> {
        let programs = postgres_programs()?;
        let (nats_server, nats) = start_nats(folder)?;
        let (postgres_server, postgres) = start_postgres(folder, programs)?;
        Ok(Self {
            nats,
            postgres,
            servers: [nats_server, postgres_server],
        })
    }

    /// The number of servers.
    pub const COUNT: usize = 2;

    /// Kills a server; returns its name.
    pub fn kill(&mut self, nth: usize) -> String {
        let server = &mut self.servers[nth];
        if let Some(mut process) = server.process.take() {
            process.kill();
        }
        server.name.to_owned()
    }

    /// Starts a killed server again.
    pub fn restart(&mut self, nth: usize) -> Result<(), CliError> {
        let server = &mut self.servers[nth];
        server.process = Some((server.start)()?);
        Ok(())
    }

    /// Starts servers again that have ended by themselves: Postgres does as long as processes of the killed one still use its memory.
    pub fn keep_running(&mut self) -> Result<(), CliError> {
        for server in &mut self.servers {
            if let Some(process) = &mut server.process
                && process.check().is_err()
            {
                *process = (server.start)()?;
            }
        }
        Ok(())
    }

    /// The rows of the cluster.
    pub fn rows(&self) -> PostgresRows {
        PostgresRows::new(&PostgresSource::new(&self.postgres), ROWS_TIMEOUT)
    }
}

fn missing(program: &str, package: &str) -> CliError {
    let message = format!("the program `{program}` is missing: expected it in PATH");
    CliError::new(message).with_help(format!(
        "install it: on Debian and Ubuntu `apt install {package}`, elsewhere the package of that name"
    ))
}

fn start_nats(folder: &DemoFolder) -> Result<(DemoServer, String), CliError> {
    let (port, password) = (free_port()?, secret()?);
    // Not in the arguments, which others can see.
    let settings = format!(
        "host: \"127.0.0.1\"\nport: {port}\nauthorization {{ user: \"throng\", password: \"{password}\" }}\n"
    );
    let settings = folder.write("nats.conf", &settings)?;
    let program = std::env::var("THRONG_NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
    let version = Command::new(&program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(missing("nats-server", "nats-server"));
    }
    let log = folder.file("nats.log");
    let start = move || {
        let mut command = Command::new(&program);
        command.arg("-c").arg(&settings);
        DemoProcess::start("nats-server", command, &log)
    };
    let mut process = start()?;
    retry("the NATS server replies", START_TIME, || {
        process.check()?;
        Ok(TcpStream::connect(("127.0.0.1", port)).ok())
    })?;
    let address = format!("nats://throng:{password}@127.0.0.1:{port}");
    let server = DemoServer {
        name: "NATS",
        start: Box::new(start),
        process: Some(process),
    };
    Ok((server, address))
}

/// The folder with `initdb` and `postgres`; empty if they are in PATH.
fn postgres_programs() -> Result<PathBuf, CliError> {
    let has = |folder: &Path| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(folder) = std::env::split_paths(&path).find(|folder| has(folder)) {
        return Ok(folder);
    }
    let mut found = Vec::new();
    for folder in POSTGRES_FOLDERS {
        let versions = fs::read_dir(folder).into_iter().flatten().flatten();
        let candidates = versions.map(|version| version.path().join("bin"));
        found.extend(
            candidates
                .chain([Path::new(folder).join("bin")])
                .filter(|bin| has(bin)),
        );
    }
    let number = |bin: &PathBuf| {
        let version = bin.parent().and_then(Path::file_name);
        version
            .and_then(|name| name.to_str()?.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    let newest = found
        .into_iter()
        .max_by(|a, b| number(a).total_cmp(&number(b)));
    newest.ok_or_else(|| missing("initdb", "postgresql"))
}

fn start_postgres(
    folder: &DemoFolder,
    programs: PathBuf,
) -> Result<(DemoServer, String), CliError> {
    let (port, password) = (free_port()?, secret()?);
    let data = folder.file("postgres");
    let password_file = folder.write("postgres.password", &password)?;
    let failed = |error: std::io::Error| CliError::new(format!("Postgres not started: {error}"));
    fs::create_dir(&data).map_err(failed)?;
    let user = ServerUser::new(&[&data, &password_file])?;
    let log = folder.file("initdb.log");
    let mut command = user.command(&programs.join("initdb"), &data);
    command
        .args([
            "-U",
            "throng",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
        ])
        .arg("--pwfile")
        .arg(&password_file)
        .arg("-D")
        .arg(data.join("db"));
    let mut creating = DemoProcess::start("initdb", command, &log)?;
    if !creating.wait(START_TIME) {
        let said = last_lines(&log);
        return Err(CliError::new(format!("initdb failed: {said}")));
    }
    let log = folder.file("postgres.log");
    let start = move || {
        let mut command = user.command(&programs.join("postgres"), &data);
        command
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            // The data is temporary.
            .args(["-c", "fsync=off", "-c", "unix_socket_directories="])
            .arg("-D")
            .arg(data.join("db"));
        DemoProcess::start("postgres", command, &log)
    };
    let mut process = start()?;
    let address = format!("postgres://throng:{password}@127.0.0.1:{port}/postgres");
    let source = PostgresSource::new(&address);
    retry("the Postgres server replies", START_TIME, || {
        process.check()?;
        let is_listening = TcpStream::connect(("127.0.0.1", port)).is_ok();
        let connected = is_listening.then(|| PostgresRows::new(&source, ROWS_TIMEOUT).connect());
        Ok(connected.and_then(Result::ok))
    })?;
    let server = DemoServer {
        name: "Postgres",
        start: Box::new(start),
        process: Some(process),
    };
    Ok((server, address))
}

/// The user that the Postgres server runs as: it refuses to run as root.
struct ServerUser(Option<(u32, u32)>);

impl ServerUser {
    /// Chooses the user, and gives these files to it.
    #[cfg(unix)]
    fn new(files: &[&Path]) -> Result<Self, CliError> {
        use std::os::unix::fs::{MetadataExt, chown};

        let failed = |error| CliError::new(format!("Postgres not started: {error}"));
        let is_root = fs::metadata(files[0]).map_err(failed)?.uid() == 0;
        if !is_root {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd").map_err(failed)?;
        let ids = |name: &str| {
            let mut lines = users
                .lines()
                .map(|line| line.split(':').collect::<Vec<_>>());
            let fields = lines.find(|fields| fields.first() == Some(&name))?;
            Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
        };
        let Some((user, group)) = ids("postgres").or_else(|| ids("nobody")) else {
            let message = "Postgres refuses to run as root, and there is no user `postgres`";
            return Err(CliError::new(message).with_help("run the demo as another user"));
        };
        for file in files {
            chown(file, Some(user), Some(group)).map_err(failed)?;
        }
        Ok(Self(Some((user, group))))
    }

    #[cfg(not(unix))]
    fn new(_: &[&Path]) -> Result<Self, CliError> {
        Ok(Self(None))
    }

    /// A command of this user.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env("LC_ALL", "C");
        #[cfg(unix)]
        if let Some((user, group)) = self.0 {
            use std::os::unix::process::CommandExt;
            command.uid(user).gid(group);
        }
        command
    }
}
