//! Datagrams that a server has to refuse, by kind.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::cipher::{HANDSHAKE_VERSION, LONG_NONCE_BYTES, SealedKind, TAG_BYTES};
use crate::handshake::{ClientHandshake, REQUEST_BYTES};
use crate::token::{ConnectToken, PRIVATE_BYTES, PROTOCOL_ID};

/// Size in bytes of the random noise. Each datagram contains a part of it.
const NOISE_BYTES: usize = 1 << 16;

/// The longest datagram of noise, in bytes.
const LENGTH_MAX: usize = 1_200;

/// Bytes of a request before the nonce.
const HEAD_BYTES: usize = REQUEST_BYTES - PRIVATE_BYTES - LONG_NONCE_BYTES;

/// Bytes of a nonce that name the key of a token.
const KEY_NAME_BYTES: usize = 8;

/// How often a wrong answer follows a valid request, which makes the server expect one.
const ANSWERS_PER_REQUEST: u64 = 256;

/// A kind of hostile datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostileKind {
    /// Random bytes, 1 to 1,200 of them.
    RandomBytes,
    /// Connect requests with tokens that the server's key did not seal.
    ForgedRequests,
    /// Connect requests of other versions and games.
    OtherVersions,
    /// Valid connect requests, again and again.
    ReplayedRequests,
    /// Wrong answers to a challenge, and the valid requests that lead to it.
    WrongAnswers,
    /// Datagrams of established connections, again and again.
    ReplayedData,
    /// All of them in turn.
    Mixed,
}

impl HostileKind {
    /// The kinds that a trial sends one after the other.
    pub const SINGLE: [Self; 6] = [
        Self::RandomBytes,
        Self::ForgedRequests,
        Self::OtherVersions,
        Self::ReplayedRequests,
        Self::WrongAnswers,
        Self::ReplayedData,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandomBytes => "random bytes",
            Self::ForgedRequests => "forged requests",
            Self::OtherVersions => "other versions",
            Self::ReplayedRequests => "replayed requests",
            Self::WrongAnswers => "wrong answers",
            Self::ReplayedData => "replayed data",
            Self::Mixed => "all kinds",
        }
    }
}

/// The connect request for a token.
#[must_use]
pub fn request_of(token: ConnectToken) -> Vec<u8> {
    let mut request = Vec::new();
    ClientHandshake::new(token).update(0, &mut request);
    request
}

/// Makes hostile datagrams. The same seed makes the same ones.
#[derive(Debug)]
pub struct HostilePackets {
    random: Pcg64Mcg,
    noise: Vec<u8>,
    /// Valid requests, sent in turn.
    requests: Vec<Vec<u8>>,
    /// Datagrams of established connections, sent in turn.
    captured: Vec<Vec<u8>>,
    /// When forged tokens expire, in seconds since 1970.
    expires_s: u64,
    packet: Vec<u8>,
    made: u64,
}

impl HostilePackets {
    /// `requests` are valid connect requests, `captured` datagrams of established connections. Forged tokens expire at `expires_s`, in
    /// seconds since 1970.
    #[must_use]
    pub fn new(seed: u64, requests: Vec<Vec<u8>>, captured: Vec<Vec<u8>>, expires_s: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let noise = (0..NOISE_BYTES).map(|_| random.random()).collect();
        Self {
            random,
            noise,
            requests,
            captured,
            expires_s,
            packet: Vec::new(),
            made: 0,
        }
    }

    /// The next datagram of a kind. Kinds that repeat requests or datagrams send random bytes if there are none.
    pub fn next(&mut self, kind: HostileKind) -> &[u8] {
        let nth = self.made;
        self.made += 1;
        let kind = match kind {
            HostileKind::Mixed => HostileKind::SINGLE[nth as usize % HostileKind::SINGLE.len()],
            kind => kind,
        };
        self.packet.clear();
        let turn = (nth / HostileKind::SINGLE.len() as u64) as usize;
        match kind {
            HostileKind::ForgedRequests => self.write_request(HANDSHAKE_VERSION, PROTOCOL_ID),
            HostileKind::OtherVersions if nth.is_multiple_of(2) => {
                let mut version = HANDSHAKE_VERSION;
                version[HANDSHAKE_VERSION.len() - 1] ^= 0x80;
                self.write_request(version, PROTOCOL_ID);
            }
            HostileKind::OtherVersions => self.write_request(HANDSHAKE_VERSION, !PROTOCOL_ID),
            HostileKind::ReplayedRequests => self.write_one_of(turn, |all| &all.requests),
            HostileKind::WrongAnswers if nth.is_multiple_of(ANSWERS_PER_REQUEST) => {
                self.write_one_of(0, |all| &all.requests);
            }
            HostileKind::WrongAnswers => {
                self.packet.push(SealedKind::Response as u8);
                self.write_noise(LONG_NONCE_BYTES + 64 + TAG_BYTES);
            }
            HostileKind::ReplayedData => self.write_one_of(nth as usize, |all| &all.captured),
            HostileKind::RandomBytes | HostileKind::Mixed => {
                let length = self.random.random_range(1..=LENGTH_MAX);
                self.write_noise(length);
            }
        }
        &self.packet
    }

    fn write_noise(&mut self, length: usize) {
        let at = self.random.random_range(0..NOISE_BYTES - length);
        self.packet.extend_from_slice(&self.noise[at..at + length]);
    }

    /// A request whose token names the key of a valid one, with a sealed part of noise.
    fn write_request(&mut self, version: [u8; HANDSHAKE_VERSION.len()], protocol: u64) {
        self.packet.push(0);
        self.packet.extend_from_slice(&version);
        self.packet.extend_from_slice(&protocol.to_le_bytes());
        self.packet.extend_from_slice(&self.expires_s.to_le_bytes());
        debug_assert_eq!(self.packet.len(), HEAD_BYTES);
        let valid = self.requests.first();
        let key = valid.and_then(|valid| valid.get(HEAD_BYTES..HEAD_BYTES + KEY_NAME_BYTES));
        self.packet.extend_from_slice(key.unwrap_or_default());
        self.write_noise(REQUEST_BYTES - self.packet.len());
    }

    fn write_one_of(&mut self, turn: usize, of: impl Fn(&Self) -> &Vec<Vec<u8>>) {
        let mut packet = std::mem::take(&mut self.packet);
        let all = of(self);
        if let Some(one) = all.get(turn % all.len().max(1)) {
            packet.extend_from_slice(one);
            self.packet = packet;
        } else {
            self.packet = packet;
            self.write_noise(LENGTH_MAX);
        }
    }
}
