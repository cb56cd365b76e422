//! Invariants of tokens of any bytes, and of a gate and clients whose packets are changed in any way; used by the fuzzer, and by
//! the test that replays its corpus.
//!
//! The input is a token, and a script of three bytes per step: sender, receiver and address, and the change on the way.

use std::net::SocketAddr;

use crate::net::{
    ClientHandshake, ConnectToken, KEY_BYTES, SecretKey, ServerHandshake, ServerHandshakeError,
    ServerHandshakeSettings, TokenClaims,
};

const KEY: SecretKey = SecretKey([7; KEY_BYTES]);

const UNIX_S: u64 = 1_000;

/// Steps of a script; what follows is not looked at.
const STEPS_MAX: usize = 60;

const HALF_OPEN_MAX: usize = 3;

struct Handshakes {
    server: ServerHandshake,
    clients: Vec<ClientHandshake>,
    accepted: Vec<bool>,
    now_us: u64,
    /// The last packet of each, to be sent again.
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
            ClientHandshake::new(ConnectToken::issue(&claims, KEY).expect("it is in order"))
        };
        Self {
            server: ServerHandshake::new(settings, KEY).expect("the system has randomness"),
            clients: (0..4).map(client).collect(),
            accepted: vec![false; 4],
            now_us: 1,
            sent: vec![Vec::new(); 4],
        }
    }

    fn step(&mut self, [what, at, change]: [u8; 3]) {
        let nth = usize::from(what & 3);
        self.now_us += 60_000 * u64::from(what >> 6);
        let mut packet = Vec::new();
        self.clients[nth].update(self.now_us, &mut packet);
        if packet.is_empty() {
            packet.clone_from(&self.sent[nth]);
        }
        self.sent[nth].clone_from(&packet);
        let port = 1
            + nth as u16
            + if what & 0x20 == 0 {
                0
            } else {
                u16::from(at & 1)
            };
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        let is_changed = what & 4 != 0 && !packet.is_empty();
        if is_changed {
            let at = usize::from(at) * packet.len() / 256;
            packet[at] ^= change | 1;
        }
        let length = packet.len();
        let (mut answer, times) = (Vec::new(), (self.now_us, UNIX_S + 1));
        let told = self
            .server
            .receive(times, from, &mut packet, what & 8 != 0, &mut answer);
        assert!(
            answer.len() <= length,
            "{} bytes for {length}",
            answer.len()
        );
        assert!(self.server.half_open() <= HALF_OPEN_MAX);
        match told {
            Err(
                ServerHandshakeError::Version { .. }
                | ServerHandshakeError::ProtocolId { .. }
                | ServerHandshakeError::UnknownConnection,
            ) => assert!(answer.is_empty() || answer.len() < length),
            Err(_) => assert!(answer.is_empty(), "unauthenticated addresses get no answer"),
            Ok(Some(admitted)) => {
                assert!(!is_changed, "a packet that was changed let somebody in");
                let client = admitted.client as usize;
                self.accepted[client] = true;
                // A client tries again if it has not received the end of its handshake.
                let is_in = self.clients[client].is_connected() == Ok(true);
                assert!(!is_in, "the token of a connected client was used again");
            }
            Ok(None) => {}
        }
        if answer.is_empty() || what & 0x10 != 0 {
            return;
        }
        let is_sound = change & 0x80 == 0;
        if !is_sound {
            let at = usize::from(at) * answer.len() / 256;
            answer[at] ^= change;
        }
        let heard = self.clients[nth].receive(self.now_us, &mut answer);
        assert!(is_sound || heard.is_err(), "a changed answer was heard");
        let is_in = self.clients[nth].is_connected() == Ok(true);
        assert!(!is_in || self.accepted[nth], "it was not let in");
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
