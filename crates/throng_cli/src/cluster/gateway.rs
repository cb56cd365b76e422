//! `throng gateway`: holds the connections of clients, and passes them to the nodes of a cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throng::net::{
    ListenSettings, PROTOCOL_ID, TokenKeys, UdpServer, WebServer, start_udp_server,
    start_web_server,
};
use throng::outbox::PacketSink;
use throng::sim::clock::unix_ms;
use throng::wire::CloseReason;
use throng_cluster::{BusPeer, ClientGateway, GatewayId, GatewaySettings};
use throng_inspect::MetricsServer;

use super::bus_args::{BusArguments, connect};
use super::{LOOPBACK_REQUESTS_PER_S, SIGNAL_INTERVAL, metrics};
use crate::address::address;
use crate::key_file::KeyFile;
use crate::key_reload::KeyReloader;
use crate::ports::{PortArguments, TcpPort, TcpPorts};
use crate::{CliError, CliStatus, is_interrupted, listen_for_interrupt, print};

/// How long the end waits until nodes know that the clients are gone.
const CLOSE_TIME: Duration = Duration::from_millis(200);

/// A client that hears nothing for a few times as long can try another gateway. While its node is away, a client gets no other packets.
const KEEP_ALIVE_US: u64 = 100_000;

/// How long after its expiry the token of a client lets it resume its session here after its own gateway has died, in seconds: a day.
const LATE_RESUME_S: u64 = 86_400;

/// Arguments of `throng gateway`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayCommand {
    /// Name of this gateway, unique in the cluster
    #[arg(long, value_name = "NAME", value_parser = super::node::name)]
    name: String,
    /// UDP address to listen on; port 0 takes any free port
    #[arg(long, value_name = "ADDR:PORT", required_unless_present = "web")]
    listen: Option<SocketAddr>,
    /// Address for browsers; port 0 takes any free port
    ///
    /// Browsers connect over WebSocket, and over WebTransport if this program was built with `--features webtransport`.
    #[arg(long, value_name = "ADDR:PORT")]
    web: Option<SocketAddr>,
    /// Public address of this gateway, as clients use it; may be repeated
    ///
    /// Tokens contain one of these. Needed if the gateway listens on all addresses.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    public: Vec<SocketAddr>,
    /// Address of Prometheus metrics, /healthz and /readyz [default: off]
    ///
    /// They need no token: keep the address private.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    bus: BusArguments,
    #[command(flatten)]
    key: KeyFile,
    #[command(flatten)]
    ports: PortArguments,
    /// Maximum number of connected clients
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    clients_max: u32,
}

const EXAMPLES: &str = "Examples:
  throng gateway --name g1 --listen 0.0.0.0:7000 --public 203.0.113.5:7000 \\
      --bus nats://10.0.0.2:4222 --bus-user-file nats.user \\
      --cluster-key cluster.key --key server.key
  throng gateway --name g1 --listen 127.0.0.1:7000 --bus nats://127.0.0.1:4222 \\
      --cluster-key cluster.key

A client needs a token that names its player. Nodes are found by their presence
on the bus. Ctrl-C or SIGTERM: clients are closed because the server is shutting
down; they resume at another gateway that their token names. SIGHUP: the files
of --key and of the certificate are read again.
Of two gateways with one name the one that started later goes on.
Secrets in the environment: THRONG_BUS.";

/// The sockets of clients.
#[derive(Default)]
struct Endpoints {
    udp: Option<UdpServer>,
    web: Option<WebServer>,
}

impl Endpoints {
    /// Where packets for clients go.
    fn sink(&self) -> Box<dyn PacketSink> {
        let web = || -> Option<Box<dyn PacketSink>> {
            let web = self.web.as_ref()?;
            Some(Box::new(web.sink()))
        };
        match &self.udp {
            Some(udp) => Box::new(udp.sink().with_fallback(web())),
            None => web().unwrap_or_else(|| Box::new(throng::outbox::MemorySink::default())),
        }
    }

    fn print(&self, ports: &TcpPorts<'_>) -> Result<(), CliError> {
        if let Some(udp) = &self.udp {
            print(&format!("listening on {}", udp.address()))?;
        }
        if let Some(web) = &self.web {
            let link = ports.link(TcpPort::Web, web.address());
            print(&format!("browsers: {link}/"))?;
        }
        Ok(())
    }

    /// Passes on what waits for clients, and closes the sockets.
    fn stop(self) {
        if let Some(udp) = self.udp {
            udp.stop();
        }
        if let Some(web) = self.web {
            web.stop();
        }
    }
}

impl GatewayCommand {
    /// Runs until a signal.
    pub(crate) fn run(self, quiet: bool) -> Result<CliStatus, CliError> {
        let ports = self.open_ports()?;
        let bound: Vec<SocketAddr> = self.listen.into_iter().chain(self.web).collect();
        let keys = self.key.read(if self.public.is_empty() {
            &bound
        } else {
            &self.public
        })?;
        let (key, settings) = (self.bus.key()?, self.bus.settings()?);
        let run = unix_ms();
        let own = BusPeer::Gateway(GatewayId::of_name(&self.name));
        let bus = connect(&settings, &key, own, run);
        let bus = bus.map_err(|error| CliError::new(format!("--bus: {error}")))?;
        let settings = GatewaySettings {
            name: self.name.clone(),
            protocol_id: PROTOCOL_ID,
            ..GatewaySettings::default()
        };
        let mut gateway = ClientGateway::new(settings, bus, run);
        let endpoints = self.listen(&gateway, &keys, &ports)?;
        let started = gateway.start(endpoints.sink());
        started.map_err(|error| CliError::new(error.to_string()))?;
        let gateway = Arc::new(gateway);
        let metrics = self.open_metrics(&gateway, &ports)?;
        listen_for_interrupt();
        let _reloader = KeyReloader::start(&self.key, &keys)?;
        if !quiet {
            endpoints.print(&ports)?;
            if let Some(metrics) = &metrics {
                let link = ports.link(TcpPort::Metrics, metrics.address());
                print(&format!("metrics: {link}/metrics"))?;
            }
        }
        let clash = self.wait(&gateway, &ports);
        if let Some(metrics) = &metrics {
            metrics.set_stopping();
        }
        gateway.close(CloseReason::Stopping);
        // The thread of the gateway passes the closes on, and tells nodes.
        std::thread::sleep(CLOSE_TIME);
        endpoints.stop();
        clash.map_or(Ok(CliStatus::Done), Err)
    }

    /// Waits for a signal; returns an error if another process has the id of this gateway.
    fn wait(&self, gateway: &ClientGateway, ports: &TcpPorts<'_>) -> Option<CliError> {
        while !is_interrupted() {
            ports.reload_if_requested();
            if let Some(clash) = gateway.clash() {
                let (own, other) = (&self.name, clash.name);
                return Some(if *own == other {
                    let message =
                        format!("--name: another gateway with the name `{own}` has started");
                    CliError::new(message).with_help("give each gateway a name of its own")
                } else {
                    let message =
                        format!("--name: the gateways `{own}` and `{other}` get the same id");
                    CliError::new(message).with_help("give one of them another name")
                });
            }
            std::thread::sleep(SIGNAL_INTERVAL);
        }
        None
    }

    fn open_ports(&self) -> Result<TcpPorts<'_>, CliError> {
        self.ports.open(|port| match port {
            TcpPort::Web => self.web,
            TcpPort::Metrics => self.metrics,
            TcpPort::Inspect | TcpPort::Admin => None,
        })
    }

    fn open_metrics(
        &self,
        gateway: &Arc<ClientGateway>,
        ports: &TcpPorts<'_>,
    ) -> Result<Option<MetricsServer>, CliError> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let of_server = gateway.clone();
        let gather = move || metrics::of_gateway(&of_server);
        let port = ports.settings(TcpPort::Metrics);
        let opened = MetricsServer::start(address, port, gather);
        let failed =
            |error| CliError::new(format!("--metrics: cannot listen on {address}: {error}"));
        opened.map(Some).map_err(failed)
    }

    /// Opens the sockets of clients.
    fn listen(
        &self,
        gateway: &ClientGateway,
        keys: &TokenKeys,
        ports: &TcpPorts<'_>,
    ) -> Result<Endpoints, CliError> {
        let mut settings = ListenSettings {
            public_addresses: self.public.clone(),
            late_resume_s: LATE_RESUME_S,
            ..ListenSettings::default()
        };
        settings.udp.clients_max = self.clients_max as usize;
        settings.udp.endpoint.keep_alive_us = KEEP_ALIVE_US;
        settings.web.clients_max = self.clients_max as usize;
        settings.web.serve_demo_page = true;
        settings.web.port = ports.settings(TcpPort::Web);
        settings.web.public_origin = self.ports.public_origin().cloned();
        #[cfg(feature = "webtransport")]
        if self.web.is_some_and(|web| {
            web.port() == 0 || Some(web.port()) != self.listen.map(|udp| udp.port())
        }) {
            settings.web.webtransport = Some(throng::net::WebTransportSettings::default());
        }
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        let mut bound = self.listen.iter().chain(&self.web);
        if !self.ports.has_proxies() && bound.all(is_here) {
            settings.requests_per_s = LOOPBACK_REQUESTS_PER_S;
        }
        let failed = |error: throng::net::ListenError| CliError::new(error.to_string());
        let handler = gateway.handler();
        let mut endpoints = Endpoints::default();
        if let Some(address) = self.listen {
            let udp = start_udp_server(address, keys.clone(), &settings, &handler);
            endpoints.udp = Some(udp.map_err(failed)?);
        }
        if let Some(address) = self.web {
            let web = start_web_server(address, keys.clone(), &settings, &handler);
            endpoints.web = Some(web.map_err(failed)?);
        }
        Ok(endpoints)
    }
}
