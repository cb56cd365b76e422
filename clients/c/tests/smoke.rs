//! A C game plays on a real server: `smoke.c`, compiled against `throng.h`, linked with the shared library and with the static one.
#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use glam::Vec2;
use throng::net::{ConnectToken, ListenSettings, SecretKey, TokenClaims, listen, stop_listening};
use throng::prelude::*;
use throng::sim::StateHasher;
use throng::sim::clock::unix_ms;
use throng::sync::{AnnouncementScope, AttributeSpec};
use throng::wire::{Channel, Encoding};
use throng::world::ObjectHashAppExt;

/// Timeout of the game.
const PATIENCE: Duration = Duration::from_secs(180);

/// Libraries that rustc requires for linking a static library.
const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// An attribute that viewers of an object receive.
#[derive(Component)]
struct Gold(u16);

impl StateHashed for Gold {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.0.into());
    }
}

/// A message of the game.
struct Greeting;

impl ClientMessageType for Greeting {
    fn read(bytes: &[u8]) -> Option<Self> {
        (bytes == b"hi").then_some(Self)
    }
}

/// A server with a scene that contains an object with gold, and a wall; players start at (10, 20).
struct Town {
    server: Server,
    scene: Entity,
    tokens: [PathBuf; 2],
}

fn tiles() -> Arc<TileMap> {
    Arc::new(TileMap::from_fn(80, 80, |x, _| x == 30).unwrap())
}

impl Town {
    fn open(folder: &Path) -> Self {
        let plugins = |app: &mut bevy_app::App| {
            let gold = AttributeSpec::new("gold", 40, Encoding::U16).to(Audience::VIEWERS);
            app.replicate_field(gold, |gold: &Gold| gold.0);
            app.hash_component::<Gold>("gold");
            app.register_client_message::<Greeting>(3);
        };
        let mut server = Server::builder()
            .tick_hz(100.0)
            .pace(Pace::RealTime)
            .plugins(plugins)
            .build();
        let map = SceneMap::new(tiles(), 0.5);
        let spec = SceneSpec {
            size_m: map.size_m(),
            ..SceneSpec::default()
        };
        let world = server.world_mut();
        let scene = open_scene(world, spec, map).unwrap();
        let place = (InScene(scene), Position(Vec2::new(12.0, 20.0)));
        world.spawn((Npc, place, Gold(515)));
        let key = SecretKey::random().unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let address = listen(world, local, key, ListenSettings::default(), None).unwrap();
        let tokens = ["first", "second"].map(|name| {
            let created_s = unix_ms() / 1_000;
            let claims = TokenClaims {
                expires_s: created_s + 3_600,
                timeout_s: 60,
                ..TokenClaims::new(7, vec![address], created_s)
            };
            let path = folder.join(name);
            let token = ConnectToken::issue(&claims, key).unwrap();
            std::fs::write(&path, token.to_bytes()).unwrap();
            path
        });
        Self {
            server,
            scene,
            tokens,
        }
    }

    /// Runs ticks until the game has ended.
    fn play(&mut self, game: &mut Child) {
        let began = Instant::now();
        while game.try_wait().unwrap().is_none() {
            if began.elapsed() > PATIENCE {
                game.kill().unwrap();
            }
            self.server.step(1);
            let world = self.server.world_mut();
            let new: Vec<LoggedIn> = world.resource_mut::<Messages<LoggedIn>>().drain().collect();
            for login in new {
                let place = (InScene(self.scene), Position(Vec2::new(10.0, 20.0)));
                world.spawn((
                    Player,
                    login.player,
                    ControlledBy(login.client_entity),
                    MaxSpeed(6.0),
                    place,
                ));
            }
            let mut received = world.resource_mut::<Messages<FromClient<Greeting>>>();
            let received: Vec<Entity> = received
                .drain()
                .filter_map(|received| received.entity)
                .collect();
            for own in received {
                let of = world.get::<Object>(own).unwrap().reference();
                world.write_message(AnnouncementRequest {
                    about: Some(of),
                    scope: AnnouncementScope::Viewers(of),
                    channel: Channel::Reliable,
                    ttl_ticks: 100,
                    bytes: b"hello".to_vec(),
                });
            }
        }
    }
}

/// Runs the compiler, which must print nothing.
fn compile(arguments: &[OsString]) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];
    let package = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new(compiler);
    command.args(warnings).args(["-I", package]).args(arguments);
    let done = command.output().expect("there is a C compiler");
    let output = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {output}");
}

/// Runs the compiled program with its own server.
fn play(folder: &Path, libraries: &[OsString]) {
    std::fs::create_dir_all(folder).unwrap();
    let program = folder.join("smoke");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smoke.c");
    let mut arguments = vec!["-std=c11".into(), "-g".into(), "-o".into()];
    arguments.extend([program.clone().into_os_string(), source.into_os_string()]);
    arguments.extend_from_slice(libraries);
    arguments.push("-lm".into());
    compile(&arguments);
    let mut town = Town::open(folder);
    let mut game = Command::new(&program)
        .args(&town.tokens)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    town.play(&mut game);
    let done = game.wait_with_output().unwrap();
    stop_listening(town.server.world_mut());
    let output = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {output}", done.status);
    assert_eq!(output, "");
    std::fs::remove_dir_all(folder).unwrap();
}

/// The folder with the libraries of this build.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

fn joined(first: &str, path: PathBuf) -> OsString {
    let mut whole = OsString::from(first);
    whole.push(path);
    whole
}

#[test]
fn game_runs_with_the_shared_library() {
    let find_it = joined("-Wl,-rpath,", built());
    let library = built().join("libthrong_client_c.so").into_os_string();
    play(&folder("shared"), &[library, find_it]);
}

#[test]
fn game_runs_with_the_static_library() {
    let mut libraries = vec![built().join("libthrong_client_c.a").into_os_string()];
    libraries.extend(SYSTEM_LIBRARIES.map(OsString::from));
    play(&folder("static"), &libraries);
}

/// Checks that a source compiles.
fn check(language: &str, source: PathBuf) {
    let mut arguments = Vec::from(["-fsyntax-only", "-x", language].map(OsString::from));
    arguments.push(source.into_os_string());
    compile(&arguments);
}

#[test]
fn header_compiles_as_cpp() {
    let header = folder("cpp").with_extension("cc");
    std::fs::write(&header, "#include \"throng.h\"\n").unwrap();
    check("c++", header.clone());
    std::fs::remove_file(header).unwrap();
}

/// The example of the README.
fn readme_example() -> &'static str {
    let readme = include_str!("../README.md");
    let shown = readme
        .split("```")
        .find_map(|part| part.strip_prefix("c\n"));
    shown.expect("it shows some C")
}

#[test]
fn readme_example_reports_a_failed_connection() {
    let folder = folder("readme");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("game.c"), folder.join("game"));
    std::fs::write(&source, readme_example()).unwrap();
    let arguments = ["-std=c11".into(), "-o".into(), program.clone().into()];
    let libraries = [
        source.into_os_string(),
        built().join("libthrong_client_c.so").into_os_string(),
        joined("-Wl,-rpath,", built()),
    ];
    compile(&[&arguments[..], &libraries[..]].concat());
    let run = || {
        Command::new(&program)
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    let failed = run();
    assert_eq!(failed.status.code(), Some(2), "there is no token");
    // Nothing listens on this port, and the token has a timeout of one second.
    let claims = TokenClaims {
        timeout_s: 1,
        ..TokenClaims::new(7, vec!["127.0.0.1:9".parse().unwrap()], unix_ms() / 1_000)
    };
    let token = ConnectToken::issue(&claims, SecretKey([3; 32])).unwrap();
    std::fs::write(folder.join("token"), token.to_bytes()).unwrap();
    let failed = run();
    let output = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{output}");
    assert!(
        output.starts_with("no answer from any of the token's servers (1): none runs there"),
        "{output}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}
