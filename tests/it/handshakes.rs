//! Invariants of token parsing and of handshakes between a server and clients whose packets are changed; used by the fuzzer, and by the
//! test that replays its corpus.
//!
//! The input is read both as a token and as a script with three bytes per step: flags with the client, a position, and a change.

use std::net::SocketAddr;

use crate::net::{
    ClientHandshake, ConnectToken, KEY_BYTES, SecretKey, ServerHandshake, ServerHandshakeError,
    ServerHandshakeSettings, TokenClaims,
};

const KEY: SecretKey = SecretKey([7; KEY_BYTES]);

const UNIX_S: u64 = 1_000;

/// Maximum number of steps of a script; the rest of the input is ignored.
const STEPS_MAX: usize = 60;

const HALF_OPEN_MAX: usize = 3;

struct Handshakes {
    server: ServerHandshake,
    clients: Vec<ClientHandshake>,
    accepted: Vec<bool>,
    now_us: u64,
    /// The last packet of each client, to be sent again.
    sent: Vec<Vec<u8>>,
}

impl Handshakes {
    fn new() -> Self {
        let server = SocketAddr::from(([127, 0, 0, 1], 7_000));
        let settings = ServerHandshakeSettings {
            half_open_max: HALF_OPEN_MAX,
            requests_per_s: 1_000,
            ..ServerHandshakeSettings::new(
                TokenClaims::new(0, Vec::new(), 0).protocol,
                vec![server],
            )
        };
        let client = |player| {
            let claims = TokenClaims::new(player, vec![server], UNIX_S);
            ClientHandshake::new(ConnectToken::issue(&claims, KEY).expect("the claims are valid"))
        };
        Self {
            server: ServerHandshake::new(settings, KEY)
                .expect("the system provides random numbers"),
            clients: (0..4).map(client).collect(),
            accepted: vec![false; 4],
            now_us: 1,
            sent: vec![Vec::new(); 4],
        }
    }

    fn step(&mut self, [flags, at, change]: [u8; 3]) {
        let nth = usize::from(flags & 3);
        self.now_us += 60_000 * u64::from(flags >> 6);
        let mut packet = Vec::new();
        self.clients[nth].update(self.now_us, &mut packet);
        if packet.is_empty() {
            packet.clone_from(&self.sent[nth]);
        }
        self.sent[nth].clone_from(&packet);
        let port = 1
            + nth as u16
            + if flags & 0x20 == 0 {
                0
            } else {
                u16::from(at & 1)
            };
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        let is_changed = flags & 4 != 0 && !packet.is_empty();
        if is_changed {
            let at = usize::from(at) * packet.len() / 256;
            packet[at] ^= change | 1;
        }
        let length = packet.len();
        let (mut answer, times) = (Vec::new(), (self.now_us, UNIX_S + 1));
        let result = self
            .server
            .receive(times, from, &mut packet, flags & 8 != 0, &mut answer);
        assert!(
            answer.len() <= length,
            "{} reply bytes for {length}",
            answer.len()
        );
        assert!(self.server.half_open() <= HALF_OPEN_MAX);
        match result {
            Err(
                ServerHandshakeError::Version { .. }
                | ServerHandshakeError::ProtocolId { .. }
                | ServerHandshakeError::UnknownConnection,
            ) => assert!(answer.is_empty() || answer.len() < length),
            Err(_) => assert!(answer.is_empty(), "an invalid packet gets no reply"),
            Ok(Some(admitted)) => {
                assert!(!is_changed, "a changed packet admitted a client");
                let client = admitted.client as usize;
                self.accepted[client] = true;
                // A client sends its last packet again if it has not received the end of the handshake.
                let is_connected = self.clients[client].is_connected() == Ok(true);
                assert!(
                    !is_connected,
                    "the token of a connected client was accepted again"
                );
            }
            Ok(None) => {}
        }
        if answer.is_empty() || flags & 0x10 != 0 {
            return;
        }
        let is_sound = change & 0x80 == 0;
        if !is_sound {
            let at = usize::from(at) * answer.len() / 256;
            answer[at] ^= change;
        }
        let received = self.clients[nth].receive(self.now_us, &mut answer);
        assert!(
            is_sound || received.is_err(),
            "a changed reply was accepted"
        );
        let is_connected = self.clients[nth].is_connected() == Ok(true);
        assert!(
            !is_connected || self.accepted[nth],
            "the client is connected without being admitted"
        );
    }
}

pub fn check(input: &[u8]) {
    if let Ok(token) = ConnectToken::from_bytes(input) {
        let again = ConnectToken::from_bytes(&token.to_bytes());
        assert_eq!(again, Ok(token));
    }
    let mut handshakes = Handshakes::new();
    let (steps, _) = input.as_chunks::<3>();
    steps
        .iter()
        .take(STEPS_MAX)
        .for_each(|&step| handshakes.step(step));
}
