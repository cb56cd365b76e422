//! Which requests are allowed.

use throng_net::http::{PublicOrigin, is_cross_site, is_loopback};

/// What an address serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InspectAccess {
    /// Metrics, liveness and readiness.
    pub metrics: bool,
    /// The page and its live data.
    pub page: bool,
    /// Whether only this machine reaches it.
    pub is_local: bool,
    /// Whether only probes are answered, because too many connections are open.
    pub is_probe_only: bool,
    /// The token of the page, if it has one.
    pub token: Option<String>,
    /// The origin of the page as browsers see it, if it is not that of the address.
    pub public_origin: Option<PublicOrigin>,
}

/// The paths of the page's files.
pub(super) const PAGE_PATHS: [&str; 12] = [
    "/",
    "/page.css",
    "/page.js",
    "/map.js",
    "/picture.js",
    "/ticks.js",
    "/dom.js",
    "/search.js",
    "/sessions.js",
    "/matches.js",
    "/picked.js",
    "/operator.js",
];

/// A requested route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InspectRoute {
    /// Metrics.
    Metrics,
    /// Liveness: whether ticks go on.
    Health,
    /// Readiness: whether players can play.
    Ready,
    /// A file of the page, by its index in [`PAGE_PATHS`].
    Page(usize),
    /// The live data.
    Live,
    /// A request to the administration API, which checks the operator's token.
    Admin,
}

/// The start of the paths of the administration API at the address of the page.
pub(super) const ADMIN_PREFIX: &str = "/admin";

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteDenied {
    /// The path does not exist.
    Unknown,
    /// Too many connections are open for anything but probes.
    Busy,
    /// The method is not a read.
    Method,
    /// The token is missing or wrong.
    Token,
    /// The request comes from another site's page, or uses a host name that is not this machine's.
    ForeignOrigin,
}

/// The head of a request, as far as it is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestHead<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
}

impl InspectAccess {
    /// The route of a request, if it is allowed.
    pub fn route(&self, head: RequestHead) -> Result<InspectRoute, RouteDenied> {
        let route = match head.path {
            "/healthz" => InspectRoute::Health,
            "/readyz" => InspectRoute::Ready,
            _ if self.is_probe_only => return Err(RouteDenied::Busy),
            "/metrics" if self.metrics => InspectRoute::Metrics,
            "/live" if self.page => InspectRoute::Live,
            path if self.page && is_admin(path) => {
                self.check_origin(head)?;
                return Ok(InspectRoute::Admin);
            }
            path => {
                let place = PAGE_PATHS.iter().position(|known| *known == path);
                let place = place.filter(|_| self.page);
                InspectRoute::Page(place.ok_or(RouteDenied::Unknown)?)
            }
        };
        if !["GET", "HEAD"].contains(&head.method) {
            return Err(RouteDenied::Method);
        }
        if route == InspectRoute::Live {
            self.check_access(head)?;
        }
        // A browser sends the host name that it used. A foreign name that points to this machine (DNS rebinding) is refused.
        let is_own = |host: &str| {
            let public = self.public_origin.as_ref();
            is_loopback(host) || public.is_some_and(|public| public.has_host(host))
        };
        if route == InspectRoute::Metrics && self.is_local && !head.host.is_none_or(is_own) {
            return Err(RouteDenied::ForeignOrigin);
        }
        Ok(route)
    }

    /// Whether a page may receive live data.
    fn check_access(&self, head: RequestHead) -> Result<(), RouteDenied> {
        let given = head.query.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            (name == "token").then_some(value)
        });
        self.check_bearer(head, given)
    }

    /// The same with a token that is not in the query.
    pub fn check_bearer(&self, head: RequestHead, given: Option<&str>) -> Result<(), RouteDenied> {
        self.check_origin(head)?;
        let Some(token) = &self.token else {
            return Ok(());
        };
        let is_right = given.is_some_and(|given| constant_time_eq(given, token));
        is_right.then_some(()).ok_or(RouteDenied::Token)
    }

    /// Whether a request does not come from a page of another site.
    fn check_origin(&self, head: RequestHead) -> Result<(), RouteDenied> {
        // Such a page runs in the operator's browser and can reach everything that the browser can.
        if is_cross_site(head.host, head.origin, self.public_origin.as_ref()) {
            return Err(RouteDenied::ForeignOrigin);
        }
        // A foreign name that points to this machine is refused.
        if self.token.is_none() && !head.host.is_some_and(is_loopback) {
            return Err(RouteDenied::ForeignOrigin);
        }
        Ok(())
    }
}

fn is_admin(path: &str) -> bool {
    let rest = path.strip_prefix(ADMIN_PREFIX);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a text can be the token of a page: part of a URL, and long enough.
pub(super) fn is_page_token(text: &str) -> bool {
    (8..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Compares in constant time.
pub(super) fn constant_time_eq(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes());
    let differing = differing.fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> RequestHead<'_> {
        RequestHead {
            method: "GET",
            path,
            host: Some("127.0.0.1:7777"),
            ..RequestHead::default()
        }
    }

    #[test]
    fn address_serves_only_its_routes() {
        let metrics = InspectAccess {
            metrics: true,
            ..InspectAccess::default()
        };
        assert_eq!(metrics.route(get("/metrics")), Ok(InspectRoute::Metrics));
        assert_eq!(metrics.route(get("/healthz")), Ok(InspectRoute::Health));
        assert_eq!(metrics.route(get("/")), Err(RouteDenied::Unknown));
        assert_eq!(metrics.route(get("/live")), Err(RouteDenied::Unknown));
        let page = InspectAccess {
            page: true,
            ..InspectAccess::default()
        };
        assert_eq!(page.route(get("/")), Ok(InspectRoute::Page(0)));
        assert_eq!(page.route(get("/metrics")), Err(RouteDenied::Unknown));
        let post = RequestHead {
            method: "POST",
            ..get("/readyz")
        };
        assert_eq!(page.route(post), Err(RouteDenied::Method));
    }

    #[test]
    fn loopback_metrics_need_a_loopback_host_name() {
        let from = |is_local, host| {
            let access = InspectAccess {
                metrics: true,
                is_local,
                ..InspectAccess::default()
            };
            let head = get("/metrics");
            access.route(RequestHead { host, ..head })
        };
        for host in [None, Some("localhost:9100"), Some("[::1]:9100")] {
            assert_eq!(from(true, host), Ok(InspectRoute::Metrics), "{host:?}");
        }
        let rebound = Some("rebound.example:9100");
        assert_eq!(from(true, rebound), Err(RouteDenied::ForeignOrigin));
        assert_eq!(from(false, rebound), Ok(InspectRoute::Metrics));
    }

    #[test]
    fn admin_requests_come_from_the_page_itself() {
        let page = InspectAccess {
            page: true,
            ..InspectAccess::default()
        };
        let kick = RequestHead {
            method: "POST",
            ..get("/admin/players/7/kick")
        };
        assert_eq!(page.route(kick), Ok(InspectRoute::Admin));
        let own = Some("http://127.0.0.1:7777");
        let from = |origin| RequestHead { origin, ..kick };
        assert_eq!(page.route(from(own)), Ok(InspectRoute::Admin));
        let other = Some("http://other.example");
        let refused = Err(RouteDenied::ForeignOrigin);
        assert_eq!(page.route(from(other)), refused);
        let rebound = RequestHead {
            host: Some("rebound.example:7777"),
            ..kick
        };
        assert_eq!(page.route(rebound), refused);
        let unknown = Err(RouteDenied::Unknown);
        assert_eq!(page.route(get("/administrators")), unknown);
        let metrics = InspectAccess {
            metrics: true,
            ..InspectAccess::default()
        };
        assert_eq!(metrics.route(kick), unknown);
        let probes = InspectAccess {
            is_probe_only: true,
            ..page
        };
        assert_eq!(probes.route(kick), Err(RouteDenied::Busy));
    }

    #[test]
    fn page_token_is_required_if_set() {
        let access = InspectAccess {
            page: true,
            token: Some("open-sesame".into()),
            ..InspectAccess::default()
        };
        let with = |query| RequestHead {
            query,
            host: Some("198.51.100.7:7777"),
            ..get("/live")
        };
        for wrong in [
            "",
            "token=",
            "token=open-sesam",
            "token=open-sesamf",
            "x=open-sesame",
        ] {
            assert_eq!(
                access.route(with(wrong)),
                Err(RouteDenied::Token),
                "{wrong}"
            );
        }
        let right = access.route(with("a=b&token=open-sesame"));
        assert_eq!(right, Ok(InspectRoute::Live));
    }

    #[test]
    fn page_behind_a_proxy_has_its_public_origin() {
        let access = InspectAccess {
            page: true,
            metrics: true,
            is_local: true,
            token: Some("open-sesame".into()),
            public_origin: Some("https://ops.example.com".parse().unwrap()),
            ..InspectAccess::default()
        };
        let live = |host, origin| {
            access.route(RequestHead {
                query: "token=open-sesame",
                host: Some(host),
                origin: Some(origin),
                ..get("/live")
            })
        };
        // Whether or not the proxy passes on the host name.
        for host in ["ops.example.com", "127.0.0.1:7777"] {
            assert_eq!(
                live(host, "https://ops.example.com"),
                Ok(InspectRoute::Live)
            );
        }
        assert_eq!(
            live("evil.example", "https://evil.example"),
            Err(RouteDenied::ForeignOrigin)
        );
        let metrics = |host| {
            access.route(RequestHead {
                host: Some(host),
                ..get("/metrics")
            })
        };
        assert_eq!(metrics("ops.example.com"), Ok(InspectRoute::Metrics));
        assert_eq!(metrics("evil.example"), Err(RouteDenied::ForeignOrigin));
    }

    #[test]
    fn other_origins_are_refused() {
        let access = InspectAccess {
            page: true,
            ..InspectAccess::default()
        };
        let from = |host, origin| {
            access.route(RequestHead {
                host,
                origin,
                ..get("/live")
            })
        };
        let here = [
            (Some("127.0.0.1:7777"), None),
            (Some("127.0.0.1:7777"), Some("http://127.0.0.1:7777")),
            (Some("localhost:7777"), Some("http://localhost:7777")),
            (Some("[::1]:7777"), Some("http://[::1]:7777")),
        ];
        for (host, origin) in here {
            assert_eq!(from(host, origin), Ok(InspectRoute::Live), "{host:?}");
        }
        let foreign = [
            (Some("127.0.0.1:7777"), Some("https://example.org")),
            (Some("127.0.0.1:7777"), Some("null")),
            (
                Some("rebound.example:7777"),
                Some("http://rebound.example:7777"),
            ),
            (Some("127.0.0.1.example.org"), None),
            (None, None),
        ];
        for (host, origin) in foreign {
            assert_eq!(
                from(host, origin),
                Err(RouteDenied::ForeignOrigin),
                "{host:?}"
            );
        }
    }
}
