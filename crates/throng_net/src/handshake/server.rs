//! The server's side of a handshake, for addresses without a connection.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use thiserror::Error;
use throng_protocol::wire::{ClientId, CloseReason};

use super::request_bucket::RequestBucket;
use super::used_tokens::{TokenProof, TokenUse, UsedTokenError, UsedTokens};
use super::version::{SpokenProtocol, write_refusal};
use super::{REQUEST_BYTES, network_of, site_of};
use crate::cipher::{
    ConnectionCipher, ConnectionRandom, DecryptError, RandomnessUnavailable, SealedKind, SecretKey,
    TAG_BYTES, open_handshake, random_bytes, seal_handshake,
};
use crate::inbox::DisconnectReason;
use crate::path::read_numbered;
use crate::reset::{RESET_BYTES, ResetGrant, ResetKey, RunId};
use crate::token::{
    ConnectToken, PRIVATE_BYTES, PrivateToken, TOKEN_ADDRESSES_MAX, TokenClaims, TokenError,
    USER_DATA_BYTES,
};
use crate::token_keys::TokenKeys;

/// Number of buckets that the addresses share.
const BUCKETS: usize = 1_024;

/// A site may send this many times as many requests as an address.
const ADDRESSES_PER_SITE: u32 = 8;

/// Time between two challenges to an address with an empty bucket, in microseconds.
const RESERVE_ANSWER_US: u64 = 100_000;

/// Settings and limits of the server's handshakes.
///
/// ```
/// use throng_net::ServerHandshakeSettings;
///
/// // A small server that is reached at one address.
/// let address = "192.0.2.7:7000".parse()?;
/// let settings = ServerHandshakeSettings { clients_max: 200, ..ServerHandshakeSettings::new(1, vec![address]) };
/// assert_eq!(settings.requests_per_s, 32);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerHandshakeSettings {
    /// Number of the game and its version.
    pub protocol: u64,
    /// The addresses of this server. A token has to name one of them.
    pub addresses: Vec<SocketAddr>,
    /// Half-open handshakes: clients that were challenged and have not replied yet. More are refused.
    pub half_open_max: usize,
    /// How long a challenge is valid, in microseconds.
    pub half_open_us_max: u64,
    /// Used tokens that are stored until they expire, so that none is used twice. When the table is full, new tokens are refused.
    pub used_tokens_max: usize,
    /// The table of used tokens. Handshakes that share it admit each token once between them.
    pub used_tokens: UsedTokens,
    /// How long a client whose connection was lost may return with its token, in seconds, over UDP or in a browser. It then resumes its
    /// session, and cannot log in.
    pub return_s: u64,
    /// How long after its expiry a token lets its client resume a session here that it began at another gateway, in seconds. 0 for a server
    /// without gateways: it has no such sessions.
    pub late_resume_s: u64,
    /// Requests per second of one address (IPv6: of a network of 64 bits), and the burst after a pause. All addresses of a site, a network
    /// of 24 bits (IPv6: 48 bits), together have eight times as many.
    pub requests_per_s: u32,
    /// Requests per second, of all addresses together, that are checked although their address has exceeded its rate. Sender addresses can
    /// be forged; with this reserve an attacker needs at least as many forged requests to block another address. A check takes 4 µs.
    pub reserve_requests_per_s: u32,
    /// Clients of another version or game that get a refusal per second, of all addresses together. More get no answer.
    pub refusals_per_s: u32,
    /// Resets per second of connections that the server does not know, of all addresses together. More get no answer.
    pub resets_per_s: u32,
    /// The same of one address (IPv6: of a network of 64 bits).
    pub resets_per_address_per_s: u32,
    /// Maximum number of clients, sent in keep-alive packets.
    pub clients_max: u32,
}

impl ServerHandshakeSettings {
    /// Default limits, for a server at these addresses.
    #[must_use]
    pub fn new(protocol: u64, addresses: Vec<SocketAddr>) -> Self {
        Self {
            protocol,
            addresses,
            half_open_max: 1_024,
            half_open_us_max: 5_000_000,
            used_tokens_max: 65_536,
            used_tokens: UsedTokens::default(),
            return_s: 30,
            late_resume_s: 0,
            requests_per_s: 32,
            reserve_requests_per_s: 50_000,
            refusals_per_s: 1_000,
            resets_per_s: 4_000,
            resets_per_address_per_s: 256,
            clients_max: 10_000,
        }
    }
}

/// Why a packet is refused. Clients of another version or game, and of connections that the server does not know, get an answer; others do
/// not.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHandshakeError {
    /// Neither a connect request, nor a packet of a client that was challenged.
    #[error("{found} bytes are not a connect request, and the address was not challenged")]
    UnexpectedPacket {
        /// Its length in bytes.
        found: usize,
    },
    /// A packet of a connection that this server does not know: it has restarted, or the connection has ended.
    #[error("the packet belongs to a connection that this server does not know")]
    UnknownConnection,
    /// A request of another version.
    #[error("the client speaks protocol {found}, this server {expected}")]
    Version {
        /// Version of the client; 0 if it does not speak this protocol at all.
        found: u32,
        /// Version of the server.
        expected: u32,
    },
    /// A request with the token of another game, or of another version of it.
    #[error("the token has the protocol id {found:#x}, this server {expected:#x}")]
    ProtocolId {
        /// Protocol id of the token.
        found: u64,
        /// Protocol id of the server.
        expected: u64,
    },
    /// The token has expired, or the challenge was answered too late.
    #[error(
        "the token expired at {expires_s} s (unix time), or its challenge was answered too late"
    )]
    Expired {
        /// When it expired.
        expires_s: u64,
    },
    /// The address exceeded its rate of requests.
    #[error("too many requests from this address")]
    RateLimited,
    /// A request with an invalid token, or with one of an unknown key.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is for other servers.
    #[error("the token is for other servers")]
    WrongServer,
    /// The token has admitted a client, or was used from another address less than two seconds ago.
    #[error("the token was used before, or just now from another address")]
    TokenUsed,
    /// The table of half-open handshakes or of used tokens is full.
    #[error("{waiting} handshakes or tokens are pending, no more are accepted")]
    TableFull {
        /// Number of entries.
        waiting: usize,
    },
    /// A packet of a challenged client that is not sealed with its key.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    /// A packet of a challenged client that does not contain the challenge.
    #[error("the packet does not answer the challenge")]
    InvalidChallengeResponse,
    /// The operating system provides no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessUnavailable),
}

impl ServerHandshakeError {
    /// Whether the token was sealed with a key that the server does not have, or no longer.
    pub(crate) const fn is_unknown_key(&self) -> bool {
        matches!(
            self,
            Self::Token(TokenError::UnknownKeyId { .. } | TokenError::NoKeyId)
        )
    }
}

/// A client that has proven its token and its address.
#[derive(Debug)]
pub struct AcceptedClient {
    /// Id of the client, from its token.
    pub client: u64,
    /// Address of the client.
    pub address: SocketAddr,
    /// The connection ends after this number of seconds without a packet. Below 0: never.
    pub timeout_s: i32,
    /// User data of the token, written by its issuer.
    pub user_data: [u8; USER_DATA_BYTES],
    /// The encryption of the connection.
    pub cipher: ConnectionCipher,
    pub(crate) token: TokenUse,
    /// What it needs to recognise a reset, once the connection has a number.
    pub(crate) reset: ResetGrant,
}

/// A client that was challenged and has not replied yet.
#[derive(Debug)]
struct HalfOpen {
    mac: [u8; TAG_BYTES],
    expires_s: u64,
    client: u64,
    timeout_s: i32,
    user_data: [u8; USER_DATA_BYTES],
    to_server: SecretKey,
    to_client: SecretKey,
    /// The content of the challenge, from which the keys of the connection are derived. The client proves its address by its response.
    random: ConnectionRandom,
    since_us: u64,
}

/// The identity in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenIdentity {
    /// Id of the client.
    pub client: u64,
    /// The connection ends after this number of seconds without a packet. Below 0: never.
    pub timeout_s: i32,
    /// User data of the token, written by its issuer.
    pub user_data: [u8; USER_DATA_BYTES],
    /// The client has returned after its connection was lost: it may resume its session, and cannot log in.
    pub resumes_only: bool,
    pub(crate) token: TokenUse,
}

/// Which clients may return with their tokens, after their connections have ended.
#[derive(Clone, Debug)]
pub(crate) struct ClientReturns {
    used_tokens: UsedTokens,
    return_s: u64,
}

impl ClientReturns {
    /// The first packet of a client over its connection was received.
    pub fn confirm_connection(&self, token: TokenUse) {
        self.used_tokens.confirm(token);
    }

    /// The connection of a client has ended. If it was lost, the client may return for a while.
    pub fn end_connection(&self, token: TokenUse, reason: DisconnectReason, unix_s: u64) {
        let until_s = match reason {
            DisconnectReason::Lost => unix_s.saturating_add(self.return_s),
            DisconnectReason::Closed | DisconnectReason::Moved => 0,
        };
        self.used_tokens.end(token, until_s);
    }
}

/// A token that is genuine, for this server, and not expired.
struct CheckedToken {
    private: PrivateToken,
    mac: [u8; TAG_BYTES],
    expires_s: u64,
    /// Whether the reserve paid for the check, because the address has exceeded its rate.
    from_reserve: bool,
}

const fn site_requests_per_s(settings: &ServerHandshakeSettings) -> u32 {
    settings.requests_per_s.saturating_mul(ADDRESSES_PER_SITE)
}

/// The server's side of all handshakes.
#[derive(Debug)]
pub struct ServerHandshake {
    settings: ServerHandshakeSettings,
    keys: TokenKeys,
    half_open: BTreeMap<SocketAddr, HalfOpen>,
    used_tokens: UsedTokens,
    /// One bucket per hash of an address.
    buckets: Vec<RequestBucket>,
    /// One bucket per hash of a site.
    site_buckets: Vec<RequestBucket>,
    /// The reserve, shared by addresses with an empty bucket.
    reserve: RequestBucket,
    refusals: RequestBucket,
    resets: RequestBucket,
    /// One bucket per hash of an address.
    address_resets: Vec<RequestBucket>,
    reset_key: ResetKey,
    hasher: RandomState,
}

impl ServerHandshake {
    /// Accepts tokens sealed with these keys. A clone of the keys can [replace](TokenKeys::replace) them later.
    ///
    /// # Errors
    /// [`RandomnessUnavailable`] if the system provides no random bytes.
    pub fn new(
        settings: ServerHandshakeSettings,
        keys: impl Into<TokenKeys>,
    ) -> Result<Self, RandomnessUnavailable> {
        let keys = keys.into();
        let full = RequestBucket::full(settings.requests_per_s);
        let site = RequestBucket::full(site_requests_per_s(&settings));
        Ok(Self {
            half_open: BTreeMap::new(),
            used_tokens: settings.used_tokens.clone(),
            buckets: vec![full; BUCKETS],
            site_buckets: vec![site; BUCKETS],
            reserve: RequestBucket::full(settings.reserve_requests_per_s),
            refusals: RequestBucket::full(settings.refusals_per_s),
            resets: RequestBucket::full(settings.resets_per_s),
            address_resets: vec![RequestBucket::full(settings.resets_per_address_per_s); BUCKETS],
            reset_key: ResetKey::new(&keys.first().secret, &settings.addresses)?,
            keys,
            hasher: RandomState::new(),
            settings,
        })
    }

    /// Number of half-open handshakes.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Number of stored used tokens.
    #[must_use]
    pub fn used_token_count(&self) -> usize {
        self.used_tokens.len()
    }

    /// Handles a packet from an address without a connection, decrypting it in place. Replaces `answer` by the reply, or empties it if
    /// there is none. `unix_s` is the time since 1970 in seconds; `now_us` is a monotonic clock. With `is_full`, clients that prove their
    /// address are denied.
    ///
    /// # Errors
    /// [`ServerHandshakeError`]; then there is no reply, except to a client of another version or game, or of an unknown connection.
    pub fn receive(
        &mut self,
        (now_us, unix_s): (u64, u64),
        from: SocketAddr,
        packet: &mut [u8],
        is_full: bool,
        answer: &mut Vec<u8>,
    ) -> Result<Option<AcceptedClient>, ServerHandshakeError> {
        answer.clear();
        if packet.first() == Some(&0) {
            self.check_version(packet).inspect_err(|refused| {
                let per_s = self.settings.refusals_per_s;
                let is_noise = matches!(refused, ServerHandshakeError::Version { found: 0, .. });
                if !is_noise
                    && self.try_take_request(now_us, from)
                    && self.refusals.try_consume(now_us, per_s)
                {
                    write_refusal(self.settings.protocol, packet, answer);
                }
            })?;
            if packet.len() == REQUEST_BYTES {
                self.challenge((now_us, unix_s), from, packet, answer)?;
                return Ok(None);
            }
        }
        if let Some(numbered) = read_numbered(packet) {
            let (run, client) = (numbered.run, numbered.client);
            if numbered.sealed.len() >= RESET_BYTES && self.try_take_reset(now_us, from) {
                self.reset_key.write_reset(run, client, answer);
            }
            return Err(ServerHandshakeError::UnknownConnection);
        }
        self.accept((now_us, unix_s), from, packet, is_full, answer)
    }

    fn try_take_reset(&mut self, now_us: u64, from: SocketAddr) -> bool {
        let at = self.bucket_of(from);
        let (settings, of_address) = (&self.settings, &mut self.address_resets[at]);
        of_address.try_consume(now_us, settings.resets_per_address_per_s)
            && self.resets.try_consume(now_us, settings.resets_per_s)
    }

    fn bucket_of(&self, from: SocketAddr) -> usize {
        self.hasher.hash_one(network_of(from.ip())) as usize % BUCKETS
    }

    /// The run of this server, which packets with a number contain.
    pub(crate) const fn run(&self) -> RunId {
        self.reset_key.run()
    }

    /// What the client of a connection needs to recognise a reset.
    pub(crate) fn reset_grant(&self, client: ClientId) -> ResetGrant {
        self.reset_key.grant(client)
    }

    /// Returns the token of a client that proved it, but for which there was no room: it may be used again.
    pub(crate) fn release_token(&self, unix_s: u64, token: TokenUse) {
        let until_s = unix_s.saturating_add(self.settings.return_s);
        self.used_tokens.release(token, until_s);
    }

    /// What the transport has to call when the connection of a client has ended.
    pub(crate) fn returns(&self) -> ClientReturns {
        ClientReturns {
            used_tokens: self.used_tokens.clone(),
            return_s: self.settings.return_s,
        }
    }

    /// Denies an admitted client, because there is no room for it after all: writes the answer, and returns its token.
    pub(crate) fn deny(&self, unix_s: u64, mut admitted: AcceptedClient, answer: &mut Vec<u8>) {
        self.release_token(unix_s, admitted.token);
        let full = [CloseReason::Full.number()];
        admitted.cipher.seal(SealedKind::Disconnect, &full, answer);
    }

    /// Admits a client by its request alone, which is decrypted in place. Only for transports that prove the address of the client, such as
    /// TCP. A client whose connection was lost is admitted again by the same request, to [resume](crate::inbox::VerifiedIdentity) its
    /// session; so the transport has to be encrypted, except on the local machine.
    ///
    /// # Errors
    /// [`ServerHandshakeError`].
    pub fn accept_by_token(
        &mut self,
        (now_us, unix_s): (u64, u64),
        from: SocketAddr,
        request: &mut [u8],
    ) -> Result<TokenIdentity, ServerHandshakeError> {
        let found = request.len();
        if request.first() == Some(&0) {
            self.check_version(request)?;
        }
        if found != REQUEST_BYTES || request[0] != 0 {
            return Err(ServerHandshakeError::UnexpectedPacket { found });
        }
        let proof = TokenProof::Request;
        let token = self.check_token((now_us, unix_s), from, request, proof)?;
        self.record_token(unix_s, &token, from, proof)?;
        let used = self
            .used_tokens
            .spend(&token.mac, proof, (unix_s, token.expires_s));
        let used = used.ok_or(ServerHandshakeError::TokenUsed)?;
        let PrivateToken {
            client,
            timeout_s,
            user_data,
            ..
        } = token.private;
        Ok(TokenIdentity {
            client,
            timeout_s,
            user_data,
            resumes_only: used.resumes_only,
            token: used,
        })
    }

    /// Issues a token that this server accepts for half a minute.
    ///
    /// # Errors
    /// [`TokenError`] if the system provides no random bytes.
    pub fn issue(&self, client: u64, unix_s: u64) -> Result<ConnectToken, TokenError> {
        let mut servers = self.settings.addresses.clone();
        servers.truncate(TOKEN_ADDRESSES_MAX);
        let claims = TokenClaims {
            protocol: self.settings.protocol,
            ..TokenClaims::new(client, servers, unix_s)
        };
        ConnectToken::issue(&claims, self.keys.first())
    }

    /// Checks the version and the protocol id of a request.
    fn check_version(&self, packet: &[u8]) -> Result<(), ServerHandshakeError> {
        let expected = SpokenProtocol::of_game(self.settings.protocol);
        match SpokenProtocol::of_request(packet) {
            Some(found) if found.version != expected.version => {
                Err(ServerHandshakeError::Version {
                    found: found.version,
                    expected: expected.version,
                })
            }
            Some(found) if found.id != expected.id => Err(ServerHandshakeError::ProtocolId {
                found: found.id,
                expected: expected.id,
            }),
            _ => Ok(()),
        }
    }

    /// Checks the token of a request: the expiry, the key, the rate of its address, the encryption, the server.
    fn check_token(
        &mut self,
        (now_us, unix_s): (u64, u64),
        from: SocketAddr,
        packet: &mut [u8],
        proof: TokenProof,
    ) -> Result<CheckedToken, ServerHandshakeError> {
        let (head, private) = packet.split_at_mut(REQUEST_BYTES - PRIVATE_BYTES);
        let number = |at: usize| {
            let bytes = head[at..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (mut nonce, mut mac) = ([0; 24], [0; TAG_BYTES]);
        nonce.copy_from_slice(&head[30..54]);
        mac.copy_from_slice(&private[PRIVATE_BYTES - TAG_BYTES..]);
        let expires_s = number(22);
        if !self.is_in_time((unix_s, expires_s), &mac, proof) {
            return Err(ServerHandshakeError::Expired { expires_s });
        }
        let key = self.keys.of_token(&nonce);
        let key = key.ok_or_else(|| TokenError::unknown_key(&nonce))?;
        let is_spare = !self.try_take_request(now_us, from);
        let spare_per_s = self.settings.reserve_requests_per_s;
        if is_spare && !self.reserve.try_consume(now_us, spare_per_s) {
            return Err(ServerHandshakeError::RateLimited);
        }
        let bound_to = (self.settings.protocol, expires_s);
        let private = PrivateToken::open(private, bound_to, &nonce, &key)?;
        let is_here = |server| self.settings.addresses.contains(server);
        if !private.servers.iter().any(is_here) {
            return Err(ServerHandshakeError::WrongServer);
        }
        Ok(CheckedToken {
            private,
            mac,
            expires_s,
            from_reserve: is_spare,
        })
    }

    /// Whether a token may be used, if it is genuine: to log in, or later to resume a session.
    fn is_in_time(&self, times: (u64, u64), mac: &[u8; TAG_BYTES], proof: TokenProof) -> bool {
        let (unix_s, expires_s) = times;
        unix_s < expires_s.saturating_add(self.settings.late_resume_s)
            || self.used_tokens.may_return(mac, proof, unix_s)
    }

    /// Records a token as used. If another address used it before, removes the half-open handshake of that address: a token has at most one
    /// half-open handshake.
    fn record_token(
        &mut self,
        unix_s: u64,
        token: &CheckedToken,
        from: SocketAddr,
        proof: TokenProof,
    ) -> Result<(), ServerHandshakeError> {
        let most = self.settings.used_tokens_max;
        let times = (unix_s, token.expires_s);
        let remembered = self
            .used_tokens
            .record((token.mac, proof), from, times, most);
        let before = remembered.map_err(|refused| match refused {
            UsedTokenError::Used => ServerHandshakeError::TokenUsed,
            UsedTokenError::TableFull { waiting } => ServerHandshakeError::TableFull { waiting },
        })?;
        if let Some(before) = before
            && self
                .half_open
                .get(&before)
                .is_some_and(|it| it.mac == token.mac)
        {
            self.half_open.remove(&before);
        }
        Ok(())
    }

    fn challenge(
        &mut self,
        (now_us, unix_s): (u64, u64),
        from: SocketAddr,
        packet: &mut [u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), ServerHandshakeError> {
        let token = self.check_token((now_us, unix_s), from, packet, TokenProof::Keys)?;
        // The sender address may be forged, so it gets few replies.
        let before = self.half_open.get(&from).filter(|_| token.from_reserve);
        if before.is_some_and(|it| now_us.saturating_sub(it.since_us) < RESERVE_ANSWER_US) {
            return Err(ServerHandshakeError::RateLimited);
        }
        self.make_room(now_us, from)?;
        self.record_token(unix_s, &token, from, TokenProof::Keys)?;
        let CheckedToken {
            private,
            mac,
            expires_s,
            ..
        } = token;
        // A repeated request gets the same challenge, so that the client's response to an earlier one is valid.
        let before = self.half_open.get(&from).filter(|it| it.mac == mac);
        let random = before.map_or_else(random_bytes, |it| Ok(it.random))?;
        let protocol = self.settings.protocol;
        let key = &private.to_client;
        seal_handshake(key, protocol, SealedKind::Challenge, &random, answer)?;
        debug_assert!(
            answer.len() <= REQUEST_BYTES,
            "no more goes out than came in"
        );
        let half_open = HalfOpen {
            mac,
            expires_s,
            client: private.client,
            timeout_s: private.timeout_s,
            user_data: private.user_data,
            to_server: private.to_server,
            to_client: private.to_client,
            random,
            since_us: now_us,
        };
        self.half_open.insert(from, half_open);
        Ok(())
    }

    /// Takes a request out of the buckets of an address and of its site. Returns false, and takes nothing, if one of them is empty: so an
    /// address cannot empty the bucket of its site, and a site not the buckets that its networks share with others.
    pub(crate) fn try_take_request(&mut self, now_us: u64, from: SocketAddr) -> bool {
        let at = self.bucket_of(from);
        let of_site = self.hasher.hash_one(site_of(from.ip())) as usize % BUCKETS;
        let (per_s, site_per_s) = (
            self.settings.requests_per_s,
            site_requests_per_s(&self.settings),
        );
        self.buckets[at].has_request(now_us, per_s)
            && self.site_buckets[of_site].try_consume(now_us, site_per_s)
            && self.buckets[at].try_consume(now_us, per_s)
    }

    /// Makes room in the table of half-open handshakes.
    fn make_room(&mut self, now_us: u64, from: SocketAddr) -> Result<(), ServerHandshakeError> {
        if self.half_open.len() < self.settings.half_open_max || self.half_open.contains_key(&from)
        {
            return Ok(());
        }
        let most_us = self.settings.half_open_us_max;
        self.half_open
            .retain(|_, half_open| now_us.saturating_sub(half_open.since_us) < most_us);
        let waiting = self.half_open.len();
        if waiting < self.settings.half_open_max {
            Ok(())
        } else {
            Err(ServerHandshakeError::TableFull { waiting })
        }
    }

    fn accept(
        &mut self,
        (now_us, unix_s): (u64, u64),
        from: SocketAddr,
        packet: &mut [u8],
        is_full: bool,
        answer: &mut Vec<u8>,
    ) -> Result<Option<AcceptedClient>, ServerHandshakeError> {
        let found = packet.len();
        let stranger = ServerHandshakeError::UnexpectedPacket { found };
        let half_open = self.half_open.get(&from).ok_or(stranger)?;
        let expires_s = half_open.expires_s;
        let waited_us = now_us.saturating_sub(half_open.since_us);
        let (mac, proof) = (half_open.mac, TokenProof::Keys);
        let is_in_time = self.is_in_time((unix_s, expires_s), &mac, proof);
        if !is_in_time || waited_us >= self.settings.half_open_us_max {
            self.half_open.remove(&from);
            return Err(ServerHandshakeError::Expired { expires_s });
        }
        let protocol = self.settings.protocol;
        let (kind, body) = open_handshake(&half_open.to_server, protocol, packet)?;
        let (random, client_random) = body.split_at_checked(half_open.random.len()).unzip();
        let client_random: Option<&ConnectionRandom> =
            client_random.and_then(|random| random.try_into().ok());
        let (SealedKind::Response, Some(client_random), true) =
            (kind, client_random, random == Some(&half_open.random[..]))
        else {
            return Err(ServerHandshakeError::InvalidChallengeResponse);
        };
        let Some(half_open) = self.half_open.remove(&from) else {
            return Err(stranger);
        };
        if is_full {
            self.used_tokens.forget_unused(&half_open.mac);
            seal_handshake(
                &half_open.to_client,
                protocol,
                SealedKind::Denied,
                &[],
                answer,
            )?;
            return Ok(None);
        }
        let used = self.used_tokens.spend(&mac, proof, (unix_s, expires_s));
        let used = used.ok_or(ServerHandshakeError::TokenUsed)?;
        let keys = [&half_open.to_client, &half_open.to_server];
        let mut line = ConnectionCipher::new(protocol, keys, [&half_open.random, client_random]);
        let mut welcome = [0; 8];
        welcome[4..].copy_from_slice(&self.settings.clients_max.to_le_bytes());
        line.seal(SealedKind::KeepAlive, &welcome, answer);
        Ok(Some(AcceptedClient {
            client: half_open.client,
            address: from,
            timeout_s: half_open.timeout_s,
            user_data: half_open.user_data,
            token: used,
            reset: ResetGrant::default(),
            cipher: line,
        }))
    }
}
