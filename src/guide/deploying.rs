//! Running it for real.
//!
//! ```no_run
//! use throng::outbox::OutboxSettings;
//! use throng::prelude::*;
//!
//! let mut server = Server::builder()
//!     .workers(2)
//!     .pace(Pace::RealTime)
//!     .plugins(|app: &mut bevy_app::App| {
//!         // Packets are put together by a thread of their own, behind a ring of bytes.
//!         app.insert_resource(OutboxSettings { shards: 1, ..OutboxSettings::default() });
//!         app.insert_resource(NavSettings { budget_ms: Some(5.0), ..NavSettings::default() });
//!     })
//!     .build();
//! loop {
//!     server.step(20);
//!     if server.slipped().as_millis() > 0 {
//!         // Late ticks were let go: this machine is too small for this crowd.
//!     }
//! }
//! ```
//!
//! * **How large a machine**: `throng bench tick --players N` on it, then your own scenario with your own counts. Believe p99,
//!   not the mean, and leave half of the tick free.
//! * **Bounds**: every queue has a limit, a policy at it and a counter. Raise a limit only with the counter in sight.
//! * **Lines**: the server listens on UDP by `net::listen`, and lets in who has a token that your login
//!   service made with the same key; `throng serve` does so for a scenario, and `throng client` tries it over links that lose
//!   packets; before a client of your own, or one that already is a program, `throng relay` is such a link. With the feature `web` browsers come by `net::listen_web` (`throng serve --web`), with the same tokens. It speaks no TLS: beyond
//!   this machine a proxy with a certificate stands before it, and since all then come from one address, `requests_per_s` and
//!   `strangers_of_address_max` are to be as large for it as for all. A page may be from anywhere: a token lets in, and nothing that a
//!   browser sends by itself. With the feature `webtransport` they come by datagrams, too, on UDP of the same port, past the proxy; the certificate is
//!   the server's own, made anew every six days, and its hash is told by the page's server. Other transports plug in as it does: [`Sink`](crate::outbox::Sink) is the way out, the
//!   [`TransportHandle`](crate::session::TransportHandle) the way in; its [page](crate::session::transport) has the contract.
//! * **Overload**: a server in real time watches what its ticks cost. At a mean of 80 % of the tick it tells clients of the same
//!   objects less often, at 90 % enters and paths wait, at 95 % logins stand in the line, and at 100 % time slows down, to a
//!   quarter at most, which clients are told. A step up takes at least a second, one down five; each is left again below 50, 60,
//!   65 and 70 %. [`OverloadSettings`](crate::sim::OverloadSettings) sets all of it, `measure: LoadMeasure::Off` switches it off.
//!   A server that often reaches the first step needs fewer players or more cores. Who runs ticks by a loop of its own sets
//!   `LoadMeasure::Clock`, and slows that loop down on [`OverloadChanged`](crate::sim::OverloadChanged).
//! * **Who they are**: nobody is a player by saying so. Give the server an
//!   [`Authenticator`](crate::session::Authenticator), or have the transport check a token.
//! * **Who gets in**: [`SessionSettings`](crate::session::SessionSettings) has how many may be inside, how many are let in a tick,
//!   whose places are kept, and how long a lost line keeps its session. To stop, call
//!   [`Sessions::drain`](crate::session::Sessions::drain) and go on with ticks until there are no sessions;
//!   [`reopen`](crate::session::Sessions::reopen) calls it off. Try your limits in a scenario first: `settings: (session: (…))`.
//! * **Spectators** are objects with a `Viewer`, without a `Viewable`; give the client control of one, and
//!   [`Follows`](crate::movement::Follows) if it is to go with a player.
//! * **Warnings** go to `tracing`; without a subscriber (`tracing_subscriber::fmt::init()`) nobody sees them.
//! * **Whoever falls behind** is logged out with `LogoutReason::Behind`, so that one bad line costs bounded memory.
//! * **Maps** that are large are written once by `throng map prepare town.map town.tmap`: what paths are searched on is read with
//!   them then, ten times as fast as it is built. A scene may open at any time. No tick waits for its map: what is not built when
//!   it is due is adopted when it is done, and until then paths are searched on the map's bits.
//!   [`Navigator::builds`](crate::nav::Navigator::builds) counts what came late. A loop of your own in real time sets
//!   `wait_for_builds: false` in [`NavSettings`](crate::nav::NavSettings); a server does without.
//! * **Not deterministic in real time**: `budget_ms`, builds that come late and the arrival of messages depend on the clock.
//!   Scenarios leave them as they are, and are as long as they are not played with `--realtime`.
//! * **The program** that is shipped: `cargo build --profile dist` spends a minute more on linking.
