//! Promise: the encrypted user data of a connect token reaches the authenticator and the session's entity, over every transport; keys are
//! rotated while connections continue; the token service, also with TLS, and a program in another language make valid tokens.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use serde_json::Value;
use throng::net::bot_client::BotClient;
use throng::net::{
    ClientHandshakeError, ConnectToken, ConnectionError, EndpointSettings, KEY_BYTES,
    ListenSettings, PROTOCOL_ID, SecretKey, ServerHandshake, ServerHandshakeSettings, TokenClaims,
    TokenKey, TokenKeys, UdpClient, WebListener, listen,
};
use throng::prelude::*;
use throng::session::{Authentication, SessionUserData, USER_DATA_BYTES};
use throng::sim::clock::unix_ms;
use throng::wire::{ClientMessage, PROTOCOL_VERSION};

use crate::browsers::WebClient;
use crate::harness::{TempFolder, program, root, run_throng, send_signal, wait_for_log};
use crate::tls::{CertificateFiles, connect};
use crate::web_test_server::{LOOPBACK, WebTestServer, request};

/// A yard for external players.
const YARD: &str = r#"Scenario(name: "yard", seed: 9, duration_s: 20, settings: (overload: (measure: Off)),
    scenes: [Scene(name: "yard", map: Generate(Random(width_tiles: 40, height_tiles: 40, fill: 0)))],
    crowds: [Crowd(tag: "people", kind: "player", count: 2)])"#;

#[test]
fn user_data_of_a_token_reaches_hook_and_session() {
    let mut rig = WebTestServer::new(0, |_| ());
    let seen = Arc::<Mutex<Vec<(u64, Option<u8>)>>>::default();
    let of_hook = seen.clone();
    let world = rig.server.world_mut();
    world.insert_resource(Authentication::from_fn(move |login| {
        let first = login.user_data.map(|data| data.as_bytes()[0]);
        of_hook.lock().unwrap().push((login.player.0, first));
        login.claims.player
    }));
    let settings = ListenSettings::default();
    let sink = Box::new(world.resource::<WebListener>().sink());
    let udp = listen(world, LOOPBACK, SecretKey::INSECURE, settings, Some(sink)).unwrap();
    // Player 1 has no user data.
    let issue = |player: u8, server| {
        let mut claims = TokenClaims::new(player.into(), vec![server], unix_ms() / 1_000);
        if player > 1 {
            claims.user_data = [player; USER_DATA_BYTES];
        }
        ConnectToken::issue(&claims, SecretKey::INSECURE).unwrap()
    };
    let login = ClientMessage::login_by_token().to_bytes();
    let mut by_udp = [1, 2].map(|player| {
        let client = UdpClient::connect(issue(player, udp), EndpointSettings::default());
        (client.unwrap(), false)
    });
    let mut by_web = WebClient::connect(rig.address, request(&issue(3, rig.address)));
    by_web.send(&login);
    rig.step_until("all players are logged in", |rig| {
        for (client, has_sent) in &mut by_udp {
            let _ = client.update(|_| ());
            let _ = client.receive(|_| ());
            if !*has_sent && matches!(client.connection().is_open(), Ok(true)) {
                client.send(&login).unwrap();
                *has_sent = true;
            }
        }
        by_web.receive(|_| ());
        let sessions = rig.server.world().resource::<Sessions>();
        let players = sessions
            .iter()
            .filter(|(_, session)| session.player.is_some());
        players.count() == 3
    });
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [(1, None), (2, Some(2)), (3, Some(3))]);
    let world = rig.server.world();
    for (_, session) in world.resource::<Sessions>().iter() {
        let data = world.get::<SessionUserData>(session.client_entity);
        let player = session.player.unwrap().0;
        let expected = (player > 1).then_some([player as u8; USER_DATA_BYTES]);
        assert_eq!(data.map(|data| *data.as_bytes()), expected);
    }
}

/// Keys as the lines of a key file.
fn key_lines(keys: &[TokenKey]) -> String {
    let line = |key: &TokenKey| {
        let digits = key.secret.0.iter().map(|byte| format!("{byte:02x}"));
        format!(
            "{} {}\n",
            key.id.expect("an id"),
            digits.collect::<String>()
        )
    };
    keys.iter().map(line).collect()
}

fn key(id: u8) -> TokenKey {
    TokenKey::with_id(id.into(), SecretKey([id; KEY_BYTES]))
}

/// A process with an address in the first line of its output, and its log.
struct LoggedProcess {
    process: Child,
    address: SocketAddr,
    out: BufReader<ChildStdout>,
    log: BufReader<ChildStderr>,
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

impl LoggedProcess {
    fn start(arguments: &[&str]) -> Self {
        let mut command = program(arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut log = BufReader::new(process.stderr.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the output is UTF-8");
        let last = line.split_whitespace().next_back().unwrap_or_default();
        let url = last.split_once("://").map_or(last, |(_, url)| url);
        let Ok(address) = url.split('/').next().unwrap_or_default().parse() else {
            let mut cause = String::new();
            log.read_to_string(&mut cause).expect("the output is UTF-8");
            panic!("no address: {line} {cause}");
        };
        Self {
            process,
            address,
            out,
            log,
        }
    }

    /// Sends SIGHUP, and returns the log message about the keys.
    fn reload(&mut self) -> String {
        send_signal(&self.process, "-HUP");
        wait_for_log(&mut self.log, "token keys")
    }

    /// Sends SIGINT; returns the last line of the output.
    fn stop(mut self) -> String {
        send_signal(&self.process, "-INT");
        let status = self.process.wait().expect("the program ends");
        assert_eq!(status.code(), Some(0));
        let lines = self.out.by_ref().lines().map_while(Result::ok);
        lines.last().expect("a report")
    }
}

/// A client of a server process.
struct TokenHolder {
    client: UdpClient,
    bot: BotClient,
    packets: usize,
}

impl TokenHolder {
    fn new(player: u64, token: ConnectToken) -> Self {
        let client = UdpClient::connect(token, EndpointSettings::default()).unwrap();
        let bot = BotClient::new(player, 1);
        Self {
            client,
            bot,
            packets: 0,
        }
    }

    fn step(&mut self) -> Result<(), ConnectionError> {
        let (bot, packets) = (&mut self.bot, &mut self.packets);
        if self.client.connection().is_open()? {
            bot.update(|message| self.client.send(message).unwrap());
        }
        let mut receive = |packet: &[u8]| {
            *packets += 1;
            bot.receive(packet);
        };
        self.client.update(&mut receive)?;
        let _ = self.client.receive(&mut receive);
        std::thread::sleep(TICK);
        Ok(())
    }

    /// Connects and logs in.
    fn log_in(player: u64, token: ConnectToken) -> Self {
        let mut holder = Self::new(player, token);
        while holder.bot.position().is_none() {
            holder.step().expect("the token is valid");
        }
        holder
    }

    /// Waits until this many further packets have arrived.
    fn receive_more(&mut self, packets: usize) {
        let until = self.packets + packets;
        while self.packets < until {
            self.step().expect("the connection continues");
        }
    }
}

/// Time between two steps of a client.
const TICK: Duration = Duration::from_millis(5);

#[test]
fn keys_are_rotated_while_connections_live_on() {
    let folder = TempFolder::new();
    let file = folder.path("keys");
    let write = |keys: &[TokenKey], mode| {
        fs::write(&file, key_lines(keys)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    };
    let (old, new) = (key(1), key(2));
    write(&[old], 0o600);
    let yard = folder.write("yard.ron", YARD);
    let listen = ["serve", &yard, "--json", "--listen", "127.0.0.1:0"];
    let mut server = LoggedProcess::start(&[&listen[..], &["--key", &file]].concat());
    let address = server.address;
    let token = |player, timeout_s, key| {
        let unix_s = unix_ms() / 1_000;
        let claims = TokenClaims {
            timeout_s,
            expires_s: unix_s + 600,
            ..TokenClaims::new(player, vec![address], unix_s)
        };
        ConnectToken::issue(&claims, key).unwrap()
    };
    // Tokens made with the old key that are used later.
    let [later, too_late] = [token(11, 60, old), token(12, 2, old)];
    let first = TokenHolder::log_in(10, token(10, 60, old));
    // Both keys are valid.
    write(&[old, new], 0o600);
    let message = server.reload();
    assert!(message.contains("token keys replaced") && message.contains("1, 2"));
    let second = TokenHolder::log_in(11, later);
    let third = TokenHolder::log_in(13, token(13, 60, new));
    // A file that others can read, or that is damaged, changes nothing.
    write(&[new], 0o640);
    let message = server.reload();
    assert!(message.contains("not replaced") && message.contains("chmod 600"));
    write(&[new, new], 0o600);
    let message = server.reload();
    assert!(message.contains("not replaced") && message.contains("two keys have the id 2"));
    drop(TokenHolder::log_in(14, token(14, 60, old)));
    // The old key is removed.
    write(&[new], 0o600);
    let message = server.reload();
    assert!(message.contains("token keys replaced"), "{message}");
    let mut others = [first, second, third];
    let mut refused = TokenHolder::new(12, too_late);
    let end = loop {
        if let Err(end) = refused.step() {
            break end;
        }
        for other in &mut others {
            other.step().expect("the connection continues");
        }
    };
    let timed_out = ClientHandshakeError::TimedOut { servers: 1 };
    assert_eq!(end, ConnectionError::Failed(timed_out));
    drop(TokenHolder::log_in(15, token(15, 60, new)));
    for other in &mut others {
        other.receive_more(5);
    }
    let served: Value = serde_json::from_str(&server.stop()).unwrap();
    assert!(served["admitted"].as_u64() >= Some(5), "{served}");
    assert!(served["unknown_keys"].as_u64() >= Some(1), "{served}");
}

#[test]
fn readable_key_file_is_refused_and_keys_are_appended() {
    let folder = TempFolder::new();
    let file = folder.path("keys");
    let throng = |arguments: &[&str]| run_throng(&[&["token"], arguments].concat());
    assert_eq!(throng(&["--new-key", &file]).code, 0);
    let added = throng(&["--add-key", &file]);
    assert_eq!((added.code, added.out.as_str()), (0, "key 2\n"));
    assert_eq!(throng(&["--add-key", &file, "--key-id", "2"]).code, 2);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let issue = [
        "--player",
        "7",
        "--server",
        "127.0.0.1:7000",
        "--key",
        &file,
    ];
    let token = throng(&issue);
    let bytes = HEXLOWER.decode(token.out.trim().as_bytes()).unwrap();
    // Tokens are made with the first key.
    assert_eq!(ConnectToken::from_bytes(&bytes).unwrap().key_id(), Some(1));
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let refused = throng(&issue);
    assert!(refused.err.contains("found mode 640"), "{}", refused.err);
    assert_eq!(refused.code, 2);
}

/// Sends a request to the token service; returns the status and the body.
fn request_of(service: SocketAddr, line: &str, secret: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(service).unwrap();
    exchange(&mut stream, line, secret, body)
}

fn exchange(
    stream: &mut (impl Read + Write),
    line: &str,
    secret: &str,
    body: &str,
) -> (u16, String) {
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n");
    let secret = format!("Authorization: Bearer {secret}\r\n\r\n{body}");
    stream.write_all((head + &secret).as_bytes()).unwrap();
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The secret of the only login service.
const SECRET: &str = "0123456789abcdef";

/// The key file and the file with the secret of a token service.
fn service_files(folder: &TempFolder) -> (String, String) {
    let file = folder.path("keys");
    let secrets = folder.write("secrets", format!("login {SECRET}\n"));
    fs::write(&file, key_lines(&[key(3)])).unwrap();
    for path in [&file, &secrets] {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    (file, secrets)
}

#[test]
fn token_service_issues_tokens_to_holders_of_its_secret() {
    let folder = TempFolder::new();
    let (file, secrets) = service_files(&folder);
    let mut rig = WebTestServer::new(0, |_| ());
    let world = rig.server.world_mut();
    let sink = Box::new(world.resource::<WebListener>().sink());
    let keys = TokenKeys::new(vec![key(3), key(4)]).unwrap();
    let udp = listen(world, LOOPBACK, keys, ListenSettings::default(), Some(sink)).unwrap();
    let server = udp.to_string();
    let serve = ["tokens", "--listen", "127.0.0.1:0", "--server", &server];
    let from = ["--key", &file, "--secret-file", &secrets];
    let mut service = LoggedProcess::start(&[&serve[..], &from].concat());
    let address = service.address;
    let issue = |player: u64| {
        let body = format!(r#"{{"player": {player}, "user_data": "CQg="}}"#);
        let (status, reply) = request_of(address, "POST /tokens", SECRET, &body);
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!(status, 200, "{reply}");
        let token = reply["token"].as_str().unwrap();
        let token = ConnectToken::from_bytes(&BASE64.decode(token.as_bytes()).unwrap()).unwrap();
        assert_eq!(reply["key_id"], token.key_id().unwrap());
        token
    };
    let first = issue(21);
    // After SIGHUP the service uses the first key of the new file.
    fs::write(&file, key_lines(&[key(4), key(3)])).unwrap();
    assert!(service.reload().contains("4, 3"));
    let second = issue(22);
    assert_eq!(
        [&first, &second].map(ConnectToken::key_id),
        [Some(3), Some(4)]
    );
    for (player, token) in [(21, first), (22, second)] {
        let mut client = UdpClient::connect(token, EndpointSettings::default()).unwrap();
        let mut has_sent = false;
        rig.step_until("the player is logged in", |rig| {
            let _ = client.update(|_| ());
            let _ = client.receive(|_| ());
            if !has_sent && matches!(client.connection().is_open(), Ok(true)) {
                has_sent = client
                    .send(&ClientMessage::login_by_token().to_bytes())
                    .is_ok();
            }
            let sessions = rig.server.world().resource::<Sessions>();
            sessions.client_of(PlayerId(player)).is_some()
        });
        let sessions = rig.server.world().resource::<Sessions>();
        let session = sessions.client_of(PlayerId(player));
        let entity = session.and_then(|client| sessions.client_entity(client));
        let data = rig.server.world().get::<SessionUserData>(entity.unwrap());
        assert_eq!(data.unwrap().as_bytes()[..3], [9, 8, 0]);
    }
    assert_requests_are_refused(address, SECRET);
    let last = service.stop();
    assert!(last.contains("2 issued; refused: 3 without"), "{last}");
}

/// Requests that are invalid, or have no valid secret, are refused and counted.
fn assert_requests_are_refused(address: SocketAddr, secret: &str) {
    for (line, secret, body, status) in [
        ("POST /tokens", "0123456789abcdeg", r#"{"player": 7}"#, 401),
        ("POST /tokens", "", r#"{"player": 7}"#, 401),
        ("GET /metrics", "", "", 401),
        ("POST /tokens", secret, "{}", 400),
        ("GET /tokens", secret, "", 405),
        ("POST /players", secret, "", 404),
        ("POST /tokens", secret, &"x".repeat(9_000), 413),
        ("GET /healthz", "", "", 200),
        ("GET /openapi.json", "", "", 200),
    ] {
        let (found, reply) = request_of(address, line, secret, body);
        assert_eq!(found, status, "{line} {reply}");
    }
    let (_, metrics) = request_of(address, "GET /metrics", secret, "");
    for sample in [
        "throng_tokens_issued_total 2\n",
        "throng_token_requests_refused_total{reason=\"unauthorized\"} 3\n",
        "throng_token_requests_refused_total{reason=\"invalid\"} 4\n",
    ] {
        assert!(metrics.contains(sample), "{metrics}");
    }
}

#[test]
fn token_service_has_tls_and_reloads_its_certificate() {
    let folder = TempFolder::new();
    let (file, secrets) = service_files(&folder);
    let (files, old) = CertificateFiles::new();
    let [certificate, private] = files.paths();
    let mut service = LoggedProcess::start(&[
        "tokens",
        "--listen",
        "127.0.0.1:0",
        "--server",
        "203.0.113.5:7000",
        "--key",
        &file,
        "--secret-file",
        &secrets,
        "--tls-certificate",
        &certificate,
        "--tls-key",
        &private,
    ]);
    let address = service.address;
    let issue = |trusted| {
        let mut stream = connect(address, trusted)?;
        let (status, reply) = exchange(&mut stream, "POST /tokens", SECRET, r#"{"player": 7}"#);
        assert!(status == 200 && reply.contains("\"token\""), "{reply}");
        Ok::<_, std::io::Error>(())
    };
    issue(&old).expect("the certificate is trusted");
    // Without TLS nothing is read but the first byte.
    let (status, reply) = request_of(address, "POST /tokens", SECRET, r#"{"player": 7}"#);
    assert!(status == 400 && reply.contains("https:"), "{reply}");
    // Files that cannot be used change nothing. Each signal tries them, changed or not.
    fs::write(&certificate, "junk").unwrap();
    for _ in 0..2 {
        send_signal(&service.process, "-HUP");
        wait_for_log(&mut service.log, "TLS certificate not reloaded");
    }
    issue(&old).expect("the old certificate is in use");
    let new = files.replace();
    service.reload();
    while issue(&new).is_err() {
        std::thread::yield_now();
    }
    assert!(issue(&old).is_err(), "the old certificate is gone");
    let last = service.stop();
    assert!(last.contains("3 issued; refused: 0 without"), "{last}");
}

#[test]
fn unusable_certificate_of_the_token_service_is_explained() {
    let (files, _) = CertificateFiles::new();
    let [certificate, key] = files.paths();
    let listen = ["--listen", "127.0.0.1:0", "--server", "127.0.0.1:7000"];
    let issue = ["--player", "7", "--server", "127.0.0.1:7000"];
    let tls = |certificate, key| vec!["--tls-certificate", certificate, "--tls-key", key];
    for (arguments, options, reason) in [
        (listen, tls("/nowhere/chain.pem", &key), "/nowhere/chain"),
        (listen, tls(&key, &certificate), "files interchanged?"),
        (listen, vec!["--tls-certificate", &certificate], "--tls-key"),
        (issue, tls(&certificate, &key), "expected --listen, too"),
    ] {
        let output = run_throng(&[&["tokens"], &arguments[..], &options].concat());
        assert_eq!(output.code, 2, "{}", output.err);
        assert!(output.err.contains(reason), "{reason}: {}", output.err);
    }
}

/// Runs the documented recipe for login services in other languages. Needs Node.
#[test]
fn recipe_in_another_language_makes_valid_tokens() {
    let recipe = root().join("deploy/connect_token.mjs");
    let text = fs::read_to_string(&recipe).unwrap();
    let version = format!("({PROTOCOL_VERSION}n << 56n)");
    assert!(text.contains(&version), "expected {version} in the recipe");
    if Command::new("node").arg("--version").output().is_err() {
        // Skipped, because node is not installed.
        return;
    }
    let folder = TempFolder::new();
    let named = folder.write("named", format!("# a key\n{}", key_lines(&[key(5)])));
    let plain = folder.write("plain", "06".repeat(KEY_BYTES));
    let other = key(6).secret.into();
    let keys = TokenKeys::new(vec![key(5), other]).unwrap();
    let here: SocketAddr = "[::1]:7001".parse().unwrap();
    let settings = ServerHandshakeSettings::new(PROTOCOL_ID, vec![here]);
    let mut server = ServerHandshake::new(settings, keys).unwrap();
    for (file, id) in [(named, Some(5)), (plain, None)] {
        let servers = "203.0.113.5:7000,[::1]:7001,[2001:db8::5:1]:9";
        let mut node = Command::new("node");
        let node = node
            .arg(&recipe)
            .args([&file, "18446744073709551615", servers, "0102ff"]);
        let made = node.output().unwrap();
        let error = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "{error}");
        let digits = String::from_utf8(made.stdout).unwrap();
        let bytes = HEXLOWER.decode(digits.trim().as_bytes()).unwrap();
        let token = ConnectToken::from_bytes(&bytes).unwrap();
        assert_eq!((token.key_id(), token.timeout_s), (id, 10));
        let named = token.servers.iter().map(ToString::to_string);
        assert_eq!(named.collect::<Vec<_>>().join(","), servers);
        let times = (0, unix_ms() / 1_000);
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        let identity = server
            .accept_by_token(times, from, &mut request(&token))
            .unwrap();
        assert_eq!(identity.client, u64::MAX);
        assert_eq!(identity.user_data[..4], [1, 2, 255, 0]);
    }
}
