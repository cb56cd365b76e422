//! `throng serve`: runs a scenario in real time for players from the network.
//!
//! | file | holds |
//! |---|---|
//! | `shutdown` | the phases between a signal and the end |
//! | `notify` | messages to the service manager |
//! | `admin` | the administration API |
//! | `agones` | reports to Agones |
//! | `external_players` | objects of players who connect |
//! | `summary` | the output at the end |

mod admin;
mod agones;
mod external_players;
mod notify;
mod shutdown;
mod summary;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bevy_ecs::prelude::*;

use super::address::address;
use super::key_file::KeyFile;
use super::key_reload::KeyReloader;
use super::mirror_check::MirrorCheckServer;
use super::page_actions;
use super::ports::{PortArguments, TcpPort, TcpPorts};
use super::seconds::seconds;
use super::set::Set;
use super::store::RunStore;
use super::{
    CliError, CliStatus, Printer, cores, is_interrupted, listen_for_interrupt, outputs, page_token,
    print, whole_number,
};
use throng::map::SceneMap;
use throng::net::{
    ListenError, ListenSettings, PublicOrigin, TokenKeys, WebListener, listen, listen_web,
    stop_listening, stop_listening_web,
};
use throng::outbox::PacketSink;
use throng::server::Pace;
use throng::session::Sessions;
use throng::world::Scenes;
use throng_inspect::{InspectAddresses, InspectPlugin, InspectSettings, open_inspector};
use throng_scenario::crowd::{ATTRIBUTE_NAMES, SyntheticClients, halt_crowds};
use throng_scenario::{self as scenario, Behaviours, LoadedScenario, RunOptions, ScenarioRun};

use admin::AdminArguments;
use agones::{AgonesArguments, AgonesReports, AgonesSdk};
use external_players::{ExternalPlayers, names_json};
use notify::Notifier;
use shutdown::Shutdown;
use summary::{ListenStats, as_json, lines, tick_times};

/// Arguments of `throng serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// A scenario file, a built-in's name, or - for the standard input
    #[arg(default_value = "town")]
    scenario: String,
    #[command(flatten)]
    set: Set,
    /// UDP address to listen on; port 0 takes any free port
    ///
    /// Without this and --web: 127.0.0.1:7000.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Address for browsers; port 0 takes any free port
    ///
    /// Browsers connect over WebSocket, and over WebTransport if this program was built with `--features webtransport`.
    /// WebTransport uses the same UDP port, unless --listen has it. The server makes its certificate itself, a new one every six days.
    /// The address also serves a page to play in. Without --key the page logs in as a guest; with it, open it with ?token=….
    #[arg(long, value_name = "ADDR:PORT")]
    web: Option<SocketAddr>,
    /// Public address of this server, as clients use it; may be repeated
    ///
    /// Tokens contain one of these. Needed if the server listens on all addresses.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    public: Vec<SocketAddr>,
    /// Address of the live page [default: off]
    ///
    /// On other than loopback addresses the page needs a token.
    #[arg(long, value_name = "ADDR:PORT")]
    inspect: Option<SocketAddr>,
    /// Token of the live page, 8 to 128 letters and digits [default: generated and printed if needed]
    ///
    /// Other users of the machine can see it in the list of processes: use a file, or the environment variable
    /// THRONG_INSPECT_TOKEN.
    #[arg(long, value_name = "TOKEN", requires = "inspect")]
    inspect_token: Option<String>,
    /// File with the token of the live page; only its owner may be able to read it
    #[arg(
        long,
        value_name = "FILE",
        requires = "inspect",
        conflicts_with = "inspect_token"
    )]
    inspect_token_file: Option<PathBuf>,
    /// Origin under which browsers open the live page, such as https://ops.example.com [default: its address]
    ///
    /// The page then works under this name, and on this machine.
    #[arg(long, value_name = "URL", requires = "inspect")]
    inspect_origin: Option<PublicOrigin>,
    /// Let live pages run actions: edit tiles, spawn crowds, all that a script can do
    ///
    /// Everyone who can open the page may do so. A run with such actions cannot be
    /// reproduced from its scenario and seed.
    #[arg(long, alias = "inspect-cues", requires = "inspect")]
    inspect_actions: bool,
    /// Address of Prometheus metrics, /healthz and /readyz [default: off]
    ///
    /// They need no token: keep the address private.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    admin: AdminArguments,
    #[command(flatten)]
    ports: PortArguments,
    #[command(flatten)]
    agones: AgonesArguments,
    #[command(flatten)]
    key: KeyFile,
    /// Maximum number of connected clients
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    clients_max: u32,
    /// Seed, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = whole_number)]
    seed: Option<u64>,
    /// How long to serve [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,
    /// After SIGTERM or SIGINT: how long everything continues, including new logins
    ///
    /// /readyz answers 503 from the signal on. Choose the time that your load balancer needs to notice.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "0s")]
    drain_lead: f64,
    /// After --drain-lead: maximum time for players inside to play on; new logins are refused
    ///
    /// The server stops earlier if no client is connected. At the end all players are saved and disconnected.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "0s")]
    drain: f64,
    /// Threads of the simulation [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// For tests: publish the server's state here, for `throng client --mirror-check`
    #[arg(long, alias = "truth", value_name = "ADDR:PORT")]
    mirror_check: Option<SocketAddr>,
    /// Print one JSON object at the end instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: RunStore,
}

const EXAMPLES: &str = "Examples:
  throng serve town
  throng serve town --listen 0.0.0.0:7000 --public 203.0.113.5:7000 \\
      --key server.key
  throng serve town --web 127.0.0.1:8000
  throng serve town --web 0.0.0.0:443 --public 203.0.113.5:443 \\
      --key server.key --tls-certificate chain.pem --tls-key key.pem \\
      --public-origin https://play.example.com
  throng serve town --inspect 127.0.0.1:7777 --metrics 127.0.0.1:9100
  throng client 100 --connect 127.0.0.1:7000 --loss 10%

Runs the scenario in real time. A client with a token from `throng token` may
log in as the token's player. It then controls a new player like those of the
scenario's first player crowd. Expectations are not checked.
Ctrl-C or SIGTERM: /readyz answers 503; after --drain-lead new logins are
refused; after --drain all players are saved and disconnected. A second signal
ends the program at once. SIGHUP: the files of --key and of the certificate are
read again; connections stay open. Slow ticks are logged, at most one per
second.
Secrets in the environment: THRONG_STORE, THRONG_INSPECT_TOKEN.";

/// The default address.
const LISTEN_DEFAULT: ([u8; 4], u16) = ([127, 0, 0, 1], 7_000);

/// Limit of connect requests per second from one loopback address.
const LOOPBACK_REQUESTS_PER_S: u32 = 4_096;

/// Maximum number of ticks to close all sessions at the end.
const DRAIN_TICKS_MAX: u64 = 200;

/// Prints the addresses of the pages.
fn print_pages(
    ports: &TcpPorts<'_>,
    mirror_check: Option<&MirrorCheckServer>,
    open: &InspectAddresses,
    settings: &InspectSettings,
) -> Result<(), CliError> {
    if let Some(check) = mirror_check {
        print(&format!("mirror check: {}", check.address))?;
    }
    if let Some(address) = open.page {
        let token = settings.token.as_deref().unwrap_or_default();
        let mark = if token.is_empty() { "" } else { "#" };
        let link = settings.public_origin.as_ref().map_or_else(
            || ports.link(TcpPort::Inspect, address),
            ToString::to_string,
        );
        print(&format!("inspect page: {link}/{mark}{token}"))?;
    }
    if let Some(address) = open.metrics {
        let link = ports.link(TcpPort::Metrics, address);
        print(&format!("metrics: {link}/metrics"))?;
    }
    Ok(())
}

impl Serve {
    /// Serves until it must stop.
    pub(super) fn run(mut self, quiet: bool) -> Result<CliStatus, CliError> {
        let Some(loaded) = self.load(quiet)? else {
            return Ok(CliStatus::InvalidInput);
        };
        let agones = self.agones.sdk_server()?;
        if let Some(sdk) = agones.filter(|_| self.public.is_empty()) {
            self.public = sdk.public_addresses()?;
        }
        let addresses = self.addresses();
        let bound = [addresses.udp, addresses.web].into_iter().flatten();
        let keys = if self.public.is_empty() {
            self.key.read(&bound.collect::<Vec<_>>())?
        } else {
            self.key.read(&self.public)?
        };
        let ports = self.open_ports()?;
        let inspect_settings = self.inspect_settings(&loaded, &ports, quiet)?;
        let (mut options, mut files) = (self.options(&loaded), Vec::new());
        options.configure.push(Box::new(|app| {
            app.add_plugins(InspectPlugin);
        }));
        let is_unsaved = self.store.add_to(&mut options, true, &mut files)?;
        let mut playing = ScenarioRun::new(loaded, options)?;
        outputs::truncate(&files)?;
        let world = playing.server().world_mut();
        let mut external_players = ExternalPlayers::new(world)?;
        let mut listening = self.listen(
            world,
            addresses,
            (&keys, &ports),
            external_players.spec.speed_m_s,
        )?;
        let mirror_check = self.mirror_check.map(MirrorCheckServer::listen);
        let mirror_check = mirror_check.transpose()?;
        let inspector = open_inspector(world, inspect_settings.clone())
            .map_err(|error| CliError::new(error.to_string()))?;
        let admin_port = ports.settings(TcpPort::Admin);
        let taken_over = self.store.taken_over();
        listening.admin = self.admin.open(world, admin_port, taken_over)?;
        listen_for_interrupt();
        let _reloader = KeyReloader::start(&self.key, &keys)?;
        if !quiet {
            listening.print(&ports)?;
            print_pages(&ports, mirror_check.as_ref(), &inspector, &inspect_settings)?;
        }
        let mut agones = agones
            .map(AgonesSdk::start)
            .transpose()
            .map_err(|error| CliError::new(error.to_string()))?;
        let around = (mirror_check.as_ref(), &ports, agones.as_mut());
        let served = self.serve(&mut playing, &mut external_players, around);
        let stats = close(&mut playing);
        let (ticks, tick_ms) = tick_times(playing.server().world());
        let cues = playing.external_action_count();
        playing.close();
        // Agones deletes the pod after this.
        if let Some(agones) = agones {
            agones.finish();
        }
        served.map_err(|error| CliError::new(error.to_string()))?;
        if self.json {
            print(&as_json(&stats, ticks, tick_ms, cues).to_string())?;
        } else if !quiet {
            let lines = lines(&stats, ticks, tick_ms, cues);
            lines.iter().try_for_each(|line| print(line))?;
        }
        if is_unsaved.load(Ordering::Relaxed) {
            return Err(CliError::new("--store: not all players could be saved"));
        }
        // Being stopped is the normal end.
        Ok(CliStatus::Done)
    }

    /// Opens the certificate of the TCP ports.
    fn open_ports(&self) -> Result<TcpPorts<'_>, CliError> {
        self.ports.open(|port| match port {
            TcpPort::Web => self.web,
            TcpPort::Inspect => self.inspect,
            TcpPort::Metrics => self.metrics,
            TcpPort::Admin => self.admin.address(),
        })
    }

    /// Loads the scenario without its expectations; `None` if it has errors, which are printed.
    fn load(&self, quiet: bool) -> Result<Option<LoadedScenario>, CliError> {
        let mut loaded = scenario::load_with(&self.scenario, &self.set.values)?;
        loaded.scenario.expect.clear();
        let printer = Printer::for_stderr();
        let review = loaded.review(ATTRIBUTE_NAMES, &Behaviours::default());
        if !review.errors.is_empty() {
            let errors = review.errors.into_iter().map(CliError::from);
            errors.for_each(|error| printer.error(&error));
            return Ok(None);
        }
        // Most other warnings are about the end of a run.
        if !quiet {
            let warnings = loaded.old_names();
            let warnings = warnings.iter().map(CliError::from);
            warnings.for_each(|warning| printer.warning(&warning));
        }
        Ok(Some(loaded))
    }

    /// The addresses to listen on.
    fn addresses(&self) -> ListenAddresses {
        let udp = match (self.listen, self.web) {
            (None, None) => Some(SocketAddr::from(LISTEN_DEFAULT)),
            (listen, _) => listen,
        };
        let web = self.web;
        ListenAddresses {
            udp,
            web,
            ..ListenAddresses::default()
        }
    }

    /// Opens the listeners, and returns their addresses.
    fn listen(
        &self,
        world: &mut World,
        at: ListenAddresses,
        (keys, ports): (&TokenKeys, &TcpPorts<'_>),
        speed_m_s: f32,
    ) -> Result<ListenAddresses, CliError> {
        let mut settings = ListenSettings {
            public_addresses: self.public.clone(),
            ..ListenSettings::default()
        };
        settings.udp.clients_max = self.clients_max as usize;
        settings.web.clients_max = self.clients_max as usize;
        settings.web.serve_demo_page = true;
        settings.web.guest_speed_m_s = Some(speed_m_s);
        #[cfg(feature = "webtransport")]
        let web_port = at.web.map(|web| web.port());
        #[cfg(feature = "webtransport")]
        if web_port.is_some_and(|port| port == 0 || Some(port) != at.udp.map(|udp| udp.port())) {
            settings.web.webtransport = Some(throng::net::WebTransportSettings::default());
        }
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        settings.web.port = ports.settings(TcpPort::Web);
        settings.web.public_origin = self.ports.public_origin().cloned();
        // If proxies forward clients, loopback connections may come from other machines.
        let is_local = !self.ports.has_proxies();
        if is_local && [at.udp, at.web].iter().flatten().all(is_here) {
            settings.requests_per_s = LOOPBACK_REQUESTS_PER_S;
            settings.web.unauthenticated_per_address_max = u32::MAX;
        }
        let failed = |error: ListenError| CliError::new(error.to_string());
        let mut others: Box<dyn PacketSink> = world.resource::<SyntheticClients>().sink();
        let mut bound = ListenAddresses::default();
        if let Some(address) = at.web {
            let address = listen_web(world, address, keys.clone(), &settings, Some(others));
            bound.web = Some(address.map_err(failed)?);
            let synthetic = world.resource::<SyntheticClients>().sink();
            let web = world.resource::<WebListener>();
            #[cfg(feature = "webtransport")]
            {
                bound.certificate_sha256 = web.certificate_sha256();
            }
            web.set_names(names_json(world));
            for (scene, entity) in world.resource::<Scenes>().iter() {
                if let Some(map) = world.get::<SceneMap>(entity) {
                    web.set_map(scene.0, map.tiles(), map.tile_m());
                }
            }
            others = Box::new(web.sink().with_fallback(Some(synthetic)));
        }
        if let Some(address) = at.udp {
            let address = listen(world, address, keys.clone(), settings, Some(others));
            bound.udp = Some(address.map_err(failed)?);
        }
        Ok(bound)
    }

    /// Runs ticks until the run ends or the server is stopped.
    fn serve(
        &self,
        playing: &mut ScenarioRun,
        external_players: &mut ExternalPlayers,
        (mirror_check, ports, mut agones): (
            Option<&MirrorCheckServer>,
            &TcpPorts<'_>,
            Option<&mut AgonesReports>,
        ),
    ) -> std::io::Result<()> {
        let times = [self.drain_lead, self.drain].map(Duration::from_secs_f64);
        let mut ending = Shutdown::new(times[0], times[1]);
        let mut notifier = Notifier::from_environment();
        notifier.ready();
        let mut is_halted = false;
        loop {
            let had_begun = ending.has_started();
            let is_over = ending.is_finished(playing.server().world_mut(), is_interrupted());
            if ending.has_started() && !had_begun {
                notifier.stopping();
            }
            if is_over || !playing.step()? {
                if !ending.has_started() {
                    notifier.stopping();
                }
                return Ok(());
            }
            notifier.tick();
            ports.reload_if_requested();
            let world = playing.server().world_mut();
            external_players.spawn_characters(world);
            external_players.handle_requests(world);
            external_players.send_map_edits(world);
            if let Some(agones) = &mut agones {
                agones.tick(world, external_players.has_had_player);
            }
            page_actions::run_page_actions(playing);
            let world = playing.server().world_mut();
            if mirror_check.is_some_and(|check| check.handle_requests(world)) && !is_halted {
                is_halted = true;
                playing.stop_script();
            }
            if is_halted {
                // Repeated in every tick, because pending searches still deliver paths.
                halt_crowds(playing.server().world_mut());
            }
        }
    }

    /// The settings of the inspector, with a token if other machines can reach it.
    fn inspect_settings(
        &self,
        loaded: &LoadedScenario,
        ports: &TcpPorts<'_>,
        quiet: bool,
    ) -> Result<InspectSettings, CliError> {
        let mut token = self.page_token()?;
        let is_open = self.inspect.is_some_and(|page| !page.ip().is_loopback());
        if is_open && token.is_none() {
            if quiet {
                return Err(CliError::new(
                    "--quiet with --inspect on a public address needs --inspect-token-file: a generated token would not be printed",
                ));
            }
            token = Some(page_token::generated()?);
        }
        Ok(InspectSettings {
            metrics: self.metrics,
            page: self.inspect,
            token,
            metrics_port: ports.settings(TcpPort::Metrics),
            page_port: ports.settings(TcpPort::Inspect),
            public_origin: self.inspect_origin.clone(),
            action_presets: self
                .inspect_actions
                .then(|| page_actions::action_presets(loaded)),
            pace: None,
        })
    }

    /// The token of the live page, if one is given.
    fn page_token(&self) -> Result<Option<String>, CliError> {
        if let Some(token) = &self.inspect_token {
            return Ok(Some(token.clone()));
        }
        let token = page_token::given(self.inspect_token_file.as_deref())?;
        Ok(token.filter(|_| self.inspect.is_some()))
    }

    fn options(&self, loaded: &LoadedScenario) -> RunOptions {
        let ticks = self.duration.map(|duration_s| {
            let ticks = duration_s * loaded.scenario.tick_hz;
            ticks.round() as u64
        });
        RunOptions {
            has_external_clients: true,
            seed: self.seed,
            ticks: Some(ticks.unwrap_or(u64::MAX)),
            threads: self.threads.map_or_else(cores, usize::from),
            pace: Pace::RealTime,
            ..RunOptions::default()
        }
    }
}

/// The addresses that the server listens on.
#[derive(Clone, Copy, Debug, Default)]
struct ListenAddresses {
    udp: Option<SocketAddr>,
    web: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    /// Hash of the WebTransport certificate, if there is one.
    certificate_sha256: Option<[u8; 32]>,
}

impl ListenAddresses {
    fn print(&self, ports: &TcpPorts<'_>) -> Result<(), CliError> {
        if let Some(address) = self.udp {
            print(&format!("listening on {address}"))?;
        }
        if let Some(address) = self.web {
            let link = ports.link(TcpPort::Web, address);
            print(&format!("play in the browser: {link}/"))?;
        }
        if let Some(address) = self.admin {
            let link = ports.link(TcpPort::Admin, address);
            print(&format!("administration: {link}/players"))?;
        }
        if let Some(sha256) = self.certificate_sha256 {
            let digits: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
            print(&format!(
                "WebTransport: the certificate's SHA-256 is {digits}"
            ))?;
        }
        Ok(())
    }
}

/// Closes all sessions, then the sockets.
fn close(playing: &mut ScenarioRun) -> ListenStats {
    let server = playing.server();
    server.set_pace(Pace::AsFastAsPossible);
    server.world_mut().resource_mut::<Sessions>().drain();
    for _ in 0..DRAIN_TICKS_MAX {
        server.step(1);
        if server.world().resource::<Sessions>().is_empty() {
            break;
        }
    }
    let world = server.world_mut();
    ListenStats {
        udp: stop_listening(world),
        web: stop_listening_web(world),
    }
}
