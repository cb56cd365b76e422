//! The options of all TCP ports: certificates, proxies, and addresses for browsers.

use std::net::SocketAddr;

use throng::net::{AddressRange, PortSettings, PublicOrigin};

use super::CliError;
use super::certificate::{CertificateArguments, ServedCertificate};

/// A TCP port of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TcpPort {
    Web,
    Inspect,
    Metrics,
    Admin,
}

impl TcpPort {
    const ALL: [Self; 4] = [Self::Web, Self::Inspect, Self::Metrics, Self::Admin];

    /// The option that opens the port.
    const fn option(self) -> &'static str {
        match self {
            Self::Web => "--web",
            Self::Inspect => "--inspect",
            Self::Metrics => "--metrics",
            Self::Admin => "--admin",
        }
    }
}

/// Options of all TCP ports.
#[derive(Debug, clap::Args)]
pub(super) struct PortArguments {
    #[command(flatten)]
    certificate: CertificateArguments,
    /// TCP ports that use the certificate [default: all that are open]
    ///
    /// WebTransport makes its own certificate.
    #[arg(
        long,
        value_name = "PORTS",
        value_delimiter = ',',
        requires = "tls_certificate"
    )]
    tls_ports: Vec<TcpPort>,
    /// Address or network of a proxy that forwards clients to the TCP ports; may be repeated
    ///
    /// Connections from these addresses name the client's address in the header X-Forwarded-For or Forwarded, or in the PROXY protocol, so
    /// that limits and bans apply to the client and not to the proxy. From other addresses the headers are ignored.
    #[arg(long, value_name = "ADDR[/BITS]")]
    trusted_proxy: Vec<AddressRange>,
    /// Ports on which trusted proxies send a header of the PROXY protocol, version 2
    ///
    /// A connection from a trusted proxy without this header is refused on these ports.
    #[arg(
        long,
        value_name = "PORTS",
        value_delimiter = ',',
        requires = "trusted_proxy"
    )]
    proxy_protocol: Vec<TcpPort>,
    /// Origin under which browsers open the page of --web, such as https://play.example.com [default: its address]
    ///
    /// Needed behind a proxy, or for the name in the certificate: the page connects there, and links show it.
    #[arg(long, value_name = "URL", requires = "web")]
    public_origin: Option<PublicOrigin>,
}

impl PortArguments {
    /// Loads the certificate, and starts to watch its files. `addresses` are those of the open ports.
    pub(super) fn open(
        &self,
        addresses: impl Fn(TcpPort) -> Option<SocketAddr>,
    ) -> Result<TcpPorts<'_>, CliError> {
        let open: Vec<TcpPort> = TcpPort::ALL
            .into_iter()
            .filter(|port| addresses(*port).is_some())
            .collect();
        self.check(&open)?;
        let ports = TcpPorts {
            arguments: self,
            certificate: self.certificate.open()?,
            tls: if self.certificate.is_set() && self.tls_ports.is_empty() {
                open
            } else {
                self.tls_ports.clone()
            },
        };
        let shared = [TcpPort::Inspect, TcpPort::Metrics];
        let is_one = addresses(shared[0]).is_some() && addresses(shared[0]) == addresses(shared[1]);
        let differs = |of: &[TcpPort]| of.contains(&shared[0]) != of.contains(&shared[1]);
        for (option, listed) in [
            ("--tls-ports", &ports.tls),
            ("--proxy-protocol", &self.proxy_protocol),
        ] {
            if is_one && differs(listed) {
                return Err(CliError::new(format!(
                    "{option}: expected both or none of `inspect` and `metrics`, which have the same address"
                )));
            }
        }
        Ok(ports)
    }

    /// Fails if an option would have no effect.
    fn check(&self, open: &[TcpPort]) -> Result<(), CliError> {
        for (option, listed) in [
            ("--tls-ports", &self.tls_ports),
            ("--proxy-protocol", &self.proxy_protocol),
        ] {
            if let Some(closed) = listed.iter().find(|port| !open.contains(port)) {
                let needed = closed.option();
                return Err(CliError::new(format!(
                    "{option}: expected open ports only: {needed} is missing"
                )));
            }
        }
        let is_used = self.certificate.is_set() || !self.trusted_proxy.is_empty();
        if is_used && open.is_empty() {
            return Err(CliError::new(
                "--tls-certificate and --trusted-proxy are for TCP ports: expected --web, --inspect, --metrics or --admin, too",
            ));
        }
        Ok(())
    }

    /// Whether connections may come through a proxy.
    pub(super) const fn has_proxies(&self) -> bool {
        !self.trusted_proxy.is_empty()
    }

    pub(super) const fn public_origin(&self) -> Option<&PublicOrigin> {
        self.public_origin.as_ref()
    }
}

/// The TCP ports of a running server.
#[derive(Debug)]
pub(super) struct TcpPorts<'a> {
    arguments: &'a PortArguments,
    certificate: Option<ServedCertificate>,
    /// The ports that use the certificate.
    tls: Vec<TcpPort>,
}

impl TcpPorts<'_> {
    pub(super) fn settings(&self, port: TcpPort) -> PortSettings {
        let certificate = self.certificate.as_ref();
        let certificate = certificate.filter(|_| self.tls.contains(&port));
        PortSettings {
            tls: certificate.map(ServedCertificate::certificate),
            trusted_proxies: self.arguments.trusted_proxy.clone(),
            uses_proxy_protocol: self.arguments.proxy_protocol.contains(&port),
            ..PortSettings::default()
        }
    }

    /// The URL of a port for users to open; of the live page, if it has no origin of its own.
    pub(super) fn link(&self, port: TcpPort, address: SocketAddr) -> String {
        let public = match port {
            TcpPort::Web => self.arguments.public_origin(),
            TcpPort::Inspect | TcpPort::Metrics | TcpPort::Admin => None,
        };
        let scheme = if self.tls.contains(&port) {
            "https"
        } else {
            "http"
        };
        public.map_or_else(|| format!("{scheme}://{address}"), ToString::to_string)
    }

    /// Reloads the certificate if SIGHUP requested it. Costs one atomic exchange.
    pub(super) fn reload_if_requested(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload_if_requested();
        }
    }
}
