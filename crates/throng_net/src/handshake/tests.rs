//! The server's handshake, against our client and another implementation of the standard.

mod keys;
mod returns;
mod sites;

use renetcode::{
    ClientAuthentication, NetcodeClient, NetcodeServer, ServerAuthentication, ServerConfig,
    ServerResult,
};
use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::cipher::{DecryptError, SealedKind, SecretKey};
use crate::inbox::DisconnectReason;
use crate::token::{ConnectToken, TokenClaims, TokenError};
use crate::token_keys::TokenKey;

const PROTOCOL: u64 = 77;
const KEY: SecretKey = SecretKey([5; 32]);

fn server() -> SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

fn address(nth: u16) -> SocketAddr {
    SocketAddr::new([10, 0, (nth >> 8) as u8, nth as u8].into(), 4_000)
}

fn server_handshake() -> ServerHandshake {
    ServerHandshake::new(ServerHandshakeSettings::new(PROTOCOL, vec![server()]), KEY).unwrap()
}

fn claims(client: u64) -> TokenClaims {
    TokenClaims {
        protocol: PROTOCOL,
        client,
        created_s: 100,
        expires_s: 130,
        timeout_s: 5,
        servers: vec![server()],
        user_data: std::array::from_fn(|nth| nth as u8),
    }
}

fn token(client: u64) -> ConnectToken {
    ConnectToken::issue(&claims(client), KEY).unwrap()
}

fn request(token: &ConnectToken) -> Vec<u8> {
    let mut packet = Vec::new();
    ClientHandshake::new(token.clone()).update(0, &mut packet);
    packet
}

/// The server's reply to a packet at 100 s.
fn reply_of(
    gate: &mut ServerHandshake,
    from: SocketAddr,
    packet: &[u8],
) -> Result<Vec<u8>, ServerHandshakeError> {
    let mut answer = Vec::new();
    let admitted = gate.receive((0, 100), from, &mut packet.to_vec(), false, &mut answer);
    admitted.map(|_| answer)
}

/// Completes the handshake of a client.
fn accepted(gate: &mut ServerHandshake, client: &mut ClientHandshake) -> AcceptedClient {
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    for now_us in (0..1_000_000).step_by(50_000) {
        client.update(now_us, &mut packet);
        if packet.is_empty() {
            continue;
        }
        let came = gate.receive((now_us, 100), address(1), &mut packet, false, &mut answer);
        let admitted = came.unwrap();
        client.receive(now_us, &mut answer).unwrap();
        if let Some(admitted) = admitted {
            return admitted;
        }
    }
    panic!("it was not let in");
}

#[test]
fn token_holder_connects_and_both_ends_exchange_packets() {
    let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token(9)));
    let mut admitted = accepted(&mut gate, &mut client);
    assert_eq!((admitted.client, admitted.timeout_s), (9, 5));
    assert_eq!(admitted.user_data, claims(9).user_data);
    assert_eq!((gate.half_open(), client.is_connected()), (0, Ok(true)));
    let mut line = client.into_cipher().unwrap();
    let mut packet = Vec::new();
    for nth in 0..300_u16 {
        line.seal(SealedKind::Payload, &nth.to_le_bytes(), &mut packet);
        let (kind, body) = admitted.cipher.open(&mut packet).unwrap();
        assert_eq!(
            (kind, &*body),
            (SealedKind::Payload, &nth.to_le_bytes()[..])
        );
        admitted
            .cipher
            .seal(SealedKind::Payload, b"back", &mut packet);
        assert_eq!(line.open(&mut packet).unwrap().1, b"back");
    }
}

/// A token of another implementation of the standard.
fn renetcode_token() -> renetcode::ConnectToken {
    renetcode::ConnectToken::generate(
        Duration::from_secs(100),
        PROTOCOL,
        30,
        9,
        5,
        vec![server()],
        Some(&claims(9).user_data),
        &KEY.0,
    )
    .unwrap()
}

#[test]
fn token_of_another_implementation_is_accepted() {
    let mut bytes = Vec::new();
    renetcode_token().write(&mut bytes).unwrap();
    // It writes the id of the client before the token of the standard.
    bytes.drain(..8);
    bytes.resize(crate::CONNECT_TOKEN_BYTES, 0);
    let token = ConnectToken::from_bytes(&bytes).unwrap();
    let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token));
    let admitted = accepted(&mut gate, &mut client);
    assert_eq!((admitted.client, admitted.timeout_s), (9, 5));
    assert_eq!(admitted.user_data, claims(9).user_data);
}

#[test]
fn another_implementation_accepts_our_token() {
    for id in [None, Some(7)] {
        let key = TokenKey { id, secret: KEY };
        accept_by_another_implementation(&ConnectToken::issue(&claims(9), key).unwrap());
    }
}

fn accept_by_another_implementation(token: &ConnectToken) {
    let mut theirs = NetcodeServer::new(ServerConfig {
        current_time: Duration::from_secs(100),
        max_clients: 4,
        protocol_id: PROTOCOL,
        public_addresses: vec![server()],
        authentication: ServerAuthentication::Secure { private_key: KEY.0 },
    });
    let now = Duration::from_secs(100);
    let bytes = [&9_u64.to_le_bytes()[..], &token.to_bytes()].concat();
    let connect_token = renetcode::ConnectToken::read(&mut &bytes[..]).unwrap();
    let authentication = ClientAuthentication::Secure { connect_token };
    let mut client = NetcodeClient::new(now, authentication).unwrap();
    for _ in 0..10 {
        let Some((packet, _)) = client.update(Duration::from_millis(300)) else {
            continue;
        };
        match theirs.process_packet(address(1), packet) {
            ServerResult::PacketToSend { payload, .. } => {
                client.process_packet(payload);
            }
            ServerResult::ClientConnected {
                client_id,
                user_data,
                ..
            } => return assert_eq!((client_id, *user_data), (9, claims(9).user_data)),
            _ => {}
        }
    }
    panic!("the token was not accepted");
}

/// The first packets of a client and of the server after a handshake at this server, with numbers 0 to 2 each.
fn first_packets(gate: &mut ServerHandshake, token: &ConnectToken) -> Vec<Vec<u8>> {
    let mut client = ClientHandshake::new(token.clone());
    let mut admitted = accepted(gate, &mut client);
    let mut cipher = client.into_cipher().unwrap();
    let mut packets = Vec::new();
    for _ in 0..3 {
        for cipher in [&mut cipher, &mut admitted.cipher] {
            let mut packet = Vec::new();
            cipher.seal(SealedKind::KeepAlive, &[0; 8], &mut packet);
            packets.push(packet);
        }
    }
    packets
}

#[test]
fn keys_with_numbers_never_repeat_on_servers_or_restarts() {
    let token = token(9);
    // Two servers of a token, or one before and after a restart: same key, no memory of used tokens. The content of the packets is the
    // same, and so are their numbers: with the same key, the packets would be the same.
    let [one, other] = [(); 2].map(|()| first_packets(&mut server_handshake(), &token));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one[0], other[0], "the same kind");
        assert_ne!(one[2..], other[2..], "the same key stream");
    }
}

#[test]
fn replayed_challenge_does_not_repeat_a_key() {
    // An attacker repeats the challenge of another server to the same token.
    let (mut gate, token) = (server_handshake(), token(9));
    let challenge = reply_of(&mut gate, address(1), &request(&token)).unwrap();
    let response = || {
        let mut client = ClientHandshake::new(token.clone());
        let mut packet = Vec::new();
        client.update(0, &mut packet);
        client.receive(0, &mut challenge.clone()).unwrap();
        let mut cipher = client.cipher_for_test();
        cipher.seal(SealedKind::KeepAlive, &[0; 8], &mut packet);
        packet
    };
    assert_ne!(response(), response());
}

#[test]
fn repeated_request_and_restart_do_not_break_a_handshake() {
    let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token(9)));
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    client.update(0, &mut packet);
    let again = packet.clone();
    let first = reply_of(&mut gate, address(1), &packet).unwrap();
    client.receive(0, &mut first.clone()).unwrap();
    // The request arrives twice: the response to the first challenge is still valid.
    reply_of(&mut gate, address(1), &again).unwrap();
    client.update(50_000, &mut packet);
    let admitted = gate.receive((0, 100), address(1), &mut packet, false, &mut answer);
    assert!(admitted.unwrap().is_some());
    client.receive(60_000, &mut answer).unwrap();
    assert_eq!(client.is_connected(), Ok(true));

    // The server restarts after its challenge: the client requests again.
    let mut client = ClientHandshake::new(token(10));
    client.update(0, &mut packet);
    let mut challenge = reply_of(&mut gate, address(2), &packet).unwrap();
    client.receive(0, &mut challenge).unwrap();
    let mut gate = server_handshake();
    for now_us in (0..2_000_000).step_by(50_000) {
        client.update(now_us, &mut packet);
        if packet.is_empty() {
            continue;
        }
        let times = (now_us, 100);
        if gate
            .receive(times, address(2), &mut packet, false, &mut answer)
            .is_ok()
        {
            client.receive(now_us, &mut answer).unwrap();
        }
    }
    assert_eq!(client.is_connected(), Ok(true));
}

/// A client with this version, which its requests contain, and an unchanged token.
fn request_of_version(version: u32) -> Vec<u8> {
    let mut packet = request(&token(1));
    packet[12..14].copy_from_slice(&(version as u16).to_le_bytes());
    packet
}

#[test]
fn client_of_another_version_learns_both_versions() {
    let (mut gate, own) = (server_handshake(), throng_protocol::wire::PROTOCOL_VERSION);
    for found in [own - 1, own + 1, 500] {
        let (mut packet, mut answer) = (request_of_version(found), Vec::new());
        let refused = gate.receive((0, 100), address(1), &mut packet, false, &mut answer);
        let expected = ServerHandshakeError::Version {
            found,
            expected: own,
        };
        assert_eq!(refused.unwrap_err(), expected);
        assert!(
            (1..packet.len()).contains(&answer.len()),
            "{}",
            answer.len()
        );
    }
    // The refusal as it is shown by a client whose server is newer, or older.
    for (server, update) in [(own + 1, "client"), (own - 1, "server")] {
        let (mut client, mut packet) = (ClientHandshake::new(token(1)), Vec::new());
        client.update(0, &mut packet);
        let mut refusal = reply_to_other_version();
        refusal[12..14].copy_from_slice(&(server as u16).to_le_bytes());
        refusal[22..46].copy_from_slice(&packet[30..54]);
        client.receive(0, &mut refusal.clone()).unwrap();
        client.update(400_000, &mut packet);
        assert_eq!(client.is_connected(), Ok(false), "it may be forged");
        client.update(500_000, &mut packet);
        let failed = client.is_connected().unwrap_err().to_string();
        let expected =
            format!("the server speaks protocol {server}, this client {own}: update the {update}");
        assert_eq!(failed, expected);
    }
    // Of another game.
    let elsewhere = TokenClaims {
        protocol: 78,
        ..claims(1)
    };
    let other = ConnectToken::issue(&elsewhere, KEY).unwrap();
    let (mut client, mut packet) = (ClientHandshake::new(other), Vec::new());
    client.update(0, &mut packet);
    let mut answer = Vec::new();
    let refused = gate.receive((0, 100), address(2), &mut packet, false, &mut answer);
    let expected = ServerHandshakeError::ProtocolId {
        found: 78,
        expected: PROTOCOL,
    };
    assert_eq!(refused.unwrap_err(), expected);
    client.receive(0, &mut answer).unwrap();
    client.update(500_000, &mut packet);
    let expected = ClientHandshakeError::ProtocolId {
        server: PROTOCOL,
        token: 78,
    };
    assert_eq!(client.is_connected(), Err(expected));
}

/// A refusal of this server.
fn reply_to_other_version() -> Vec<u8> {
    let (mut packet, mut answer) = (request_of_version(1), Vec::new());
    let refused = server_handshake().receive((0, 100), address(1), &mut packet, false, &mut answer);
    assert!(refused.is_err());
    answer
}

#[test]
fn token_of_a_client_refused_as_full_can_be_used_again() {
    let (mut gate, first) = (server_handshake(), token(3));
    // Denied before or after the token was proven: when the server has no slot, or no room in its next tick.
    for (nth, is_full) in [(1, true), (2, false)] {
        let mut client = ClientHandshake::new(first.clone());
        let (mut packet, mut answer) = (Vec::new(), Vec::new());
        for now_us in [0, 200_000] {
            client.update(now_us, &mut packet);
            let times = (now_us, 100);
            let came = gate.receive(times, address(nth), &mut packet, is_full, &mut answer);
            if let Some(admitted) = came.unwrap() {
                gate.deny(100, admitted, &mut answer);
            }
            client.receive(now_us, &mut answer).unwrap();
        }
        assert_eq!(client.is_connected(), Err(ClientHandshakeError::Denied));
    }
    // From a new socket, so from another port.
    let admitted = accepted(&mut gate, &mut ClientHandshake::new(first.clone()));
    assert!(!admitted.token.resumes_only);
    let returns = gate.returns();
    returns.end_connection(admitted.token, DisconnectReason::Closed, 100);
    let again = reply_of(&mut gate, address(1), &request(&first));
    assert_eq!(again, Err(ServerHandshakeError::TokenUsed));
    let mut request = request(&token(4));
    let times = (0, 100);
    let bearer = gate.accept_by_token(times, address(1), &mut request.clone());
    gate.release_token(100, bearer.unwrap().token);
    let again = gate.accept_by_token(times, address(5), &mut request.clone());
    assert!(again.is_ok());
    let used = gate.accept_by_token(times, address(5), &mut request);
    assert_eq!(used.unwrap_err(), ServerHandshakeError::TokenUsed);
}

#[test]
fn forged_refusal_ends_no_handshake() {
    let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token(9)));
    let mut packet = Vec::new();
    client.update(0, &mut packet);
    // An attacker that does not see the request does not know its nonce.
    assert!(client.receive(0, &mut reply_to_other_version()).is_err());
    // One that sees it is still slower than a challenge.
    let mut refusal = reply_to_other_version();
    refusal[12] ^= 1;
    refusal[22..46].copy_from_slice(&packet[30..54]);
    client.receive(0, &mut refusal.clone()).unwrap();
    accepted(&mut gate, &mut client);
    client.receive(0, &mut refusal).unwrap();
    client.update(900_000, &mut packet);
    assert_eq!(client.is_connected(), Ok(true));
}

#[test]
fn refusals_are_limited_and_smaller_than_requests() {
    let mut gate = server_handshake();
    let mut answered = |nth: u16, length: usize| {
        let (mut packet, mut answer) = (request_of_version(1), Vec::new());
        packet.resize(length, 0);
        let refused = gate.receive((0, 100), address(nth), &mut packet, false, &mut answer);
        assert!(refused.is_err() && answer.len() * 4 < length.max(200));
        !answer.is_empty()
    };
    // Requests of other versions may be shorter or longer, but not so short that the refusal costs more than they do.
    assert!(!answered(1, 100) && answered(1, 256) && answered(1, 1_400));
    let of_one_address = (0..100).filter(|_| answered(2, 1_078)).count();
    assert_eq!(of_one_address, 32);
    let of_all = (3..3_000).filter(|&nth| answered(nth, 1_078)).count();
    assert!((500..=1_000).contains(&of_all), "{of_all}");
}

#[test]
fn forged_requests_do_not_lock_out_their_sender_address() {
    let mut gate = server_handshake();
    let mut forged = request(&token(1));
    *forged.last_mut().unwrap() ^= 1;
    for _ in 0..1_000 {
        assert!(reply_of(&mut gate, address(1), &forged).is_err());
    }
    let answer = reply_of(&mut gate, address(1), &request(&token(1)));
    assert!(answer.is_ok_and(|answer| !answer.is_empty()));
}

#[test]
fn requests_over_the_rate_limit_are_refused() {
    let settings = ServerHandshakeSettings {
        reserve_requests_per_s: 100,
        ..ServerHandshakeSettings::new(PROTOCOL, vec![server()])
    };
    let mut gate = ServerHandshake::new(settings, KEY).unwrap();
    let mut forged = request(&token(1));
    *forged.last_mut().unwrap() ^= 1;
    let checked = (0..1_000).filter(|_| {
        let refused = reply_of(&mut gate, address(1), &forged).unwrap_err();
        refused != ServerHandshakeError::RateLimited
    });
    assert_eq!(checked.count(), 32 + 100);
}

#[test]
fn challenge_response_is_accepted_only_in_time() {
    // The token is valid until 130 s.
    for (late_us, unix_s, is_admitted) in [
        (4_900_000, 104, true),
        (5_000_000, 105, false),
        (1_000_000, 130, false),
    ] {
        let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token(9)));
        let (mut packet, mut answer) = (Vec::new(), Vec::new());
        client.update(0, &mut packet);
        let asked = gate.receive((0, 100), address(1), &mut packet, false, &mut answer);
        assert!(asked.unwrap().is_none());
        client.receive(0, &mut answer).unwrap();
        client.update(50_000, &mut packet);
        let times = (late_us, unix_s);
        let admitted = gate.receive(times, address(1), &mut packet, false, &mut answer);
        assert_eq!(
            admitted.is_ok_and(|it| it.is_some()),
            is_admitted,
            "{times:?}"
        );
        assert_eq!(gate.half_open(), 0);
    }
}

#[test]
fn invalid_request_is_not_answered() {
    let good = request(&token(1));
    let changed = |at: usize| {
        let mut packet = good.clone();
        packet[at] ^= 1;
        packet
    };
    let elsewhere = TokenClaims {
        servers: vec!["127.0.0.1:1".parse().unwrap()],
        ..claims(1)
    };
    let elsewhere = request(&ConnectToken::issue(&elsewhere, KEY).unwrap());
    let over = TokenClaims {
        created_s: 1,
        expires_s: 100,
        ..claims(1)
    };
    let over = request(&ConnectToken::issue(&over, KEY).unwrap());
    let stranger = ConnectToken::issue(&claims(1), SecretKey([6; 32])).unwrap();
    let forged = ServerHandshakeError::Token(TokenError::Forged);
    for (packet, expected) in [
        (
            Vec::new(),
            ServerHandshakeError::UnexpectedPacket { found: 0 },
        ),
        (
            good[..500].to_vec(),
            ServerHandshakeError::UnexpectedPacket { found: 500 },
        ),
        (changed(22), forged),
        (changed(40), forged),
        (changed(100), forged),
        (changed(REQUEST_BYTES - 1), forged),
        (request(&stranger), forged),
        (elsewhere, ServerHandshakeError::WrongServer),
        (over, ServerHandshakeError::Expired { expires_s: 100 }),
    ] {
        let mut gate = server_handshake();
        assert_eq!(reply_of(&mut gate, address(1), &packet), Err(expected));
        assert_eq!(gate.half_open(), 0);
    }
}

#[test]
fn token_is_accepted_once_and_has_one_half_open_handshake() {
    let (mut gate, first) = (server_handshake(), token(1));
    let mut client = ClientHandshake::new(first.clone());
    let admitted = accepted(&mut gate, &mut client);
    let returns = gate.returns();
    returns.end_connection(admitted.token, DisconnectReason::Closed, 100);
    let again = request(&first);
    for nth in [1, 2] {
        assert_eq!(
            reply_of(&mut gate, address(nth), &again),
            Err(ServerHandshakeError::TokenUsed)
        );
    }
    let other = request(&token(2));
    assert!(reply_of(&mut gate, address(3), &other).is_ok());
    assert_eq!(
        reply_of(&mut gate, address(4), &other),
        Err(ServerHandshakeError::TokenUsed)
    );
    // The client may change its network. A request that is repeated from many addresses still has one half-open handshake.
    let mut answered = 0;
    for nth in 0..80 {
        let (when, mut packet) = ((0, 100 + u64::from(nth) / 4), other.clone());
        let said = gate.receive(when, address(10 + nth), &mut packet, false, &mut Vec::new());
        answered += u64::from(said.is_ok());
        assert_eq!(gate.half_open(), 1);
    }
    assert_eq!(
        answered, 9,
        "once per two seconds in 20 seconds, except the first"
    );
}

#[test]
fn unproven_addresses_get_small_replies_and_bounded_memory() {
    let settings = ServerHandshakeSettings {
        half_open_max: 20,
        used_tokens_max: 30,
        ..ServerHandshakeSettings::new(PROTOCOL, vec![server()])
    };
    let mut gate = ServerHandshake::new(settings, KEY).unwrap();
    let (mut came, mut went, mut answered) = (0, 0, 0);
    for nth in 0..100 {
        let packet = request(&token(u64::from(nth)));
        came += packet.len();
        let answer = reply_of(&mut gate, address(nth), &packet);
        went += answer.as_ref().map_or(0, Vec::len);
        answered += usize::from(answer.is_ok());
    }
    assert!(
        3 * went < came && answered == 20,
        "{went} of {came} bytes, {answered}"
    );
    assert_eq!((gate.half_open(), gate.used_token_count()), (20, 20));
    // Handshakes without a reply make room after a while, and tokens when they expire.
    let mut late = request(&token(200));
    let mut answer = Vec::new();
    let when = (6_000_000, 100);
    let came = gate.receive(when, address(200), &mut late, false, &mut answer);
    assert!(came.is_ok() && gate.half_open() == 1);
}

#[test]
fn requests_of_one_address_are_rate_limited() {
    let mut gate = server_handshake();
    let packet = request(&token(1));
    let mut answered = 0;
    for now_us in (0..2_000_000).step_by(1_000) {
        let mut answer = Vec::new();
        let mut packet = packet.clone();
        let came = gate.receive((now_us, 100), address(1), &mut packet, false, &mut answer);
        answered += usize::from(came.is_ok());
    }
    assert!((60..=120).contains(&answered), "{answered} of 2,000");
}

#[test]
fn response_to_another_challenge_is_refused() {
    let mut gate = server_handshake();
    let (first, second) = (token(1), token(2));
    let mut clients = [first, second].map(ClientHandshake::new);
    let mut packet = Vec::new();
    for (nth, client) in clients.iter_mut().enumerate() {
        client.update(0, &mut packet);
        let mut answer = reply_of(&mut gate, address(nth as u16), &packet).unwrap();
        client.receive(0, &mut answer).unwrap();
    }
    let [first, second] = &mut clients;
    first.swap_challenges(second);
    first.update(200_000, &mut packet);
    let refused = reply_of(&mut gate, address(0), &packet);
    assert_eq!(refused, Err(ServerHandshakeError::InvalidChallengeResponse));
    // At the address of the other client it cannot be decrypted.
    let refused = reply_of(&mut gate, address(1), &packet);
    assert_eq!(
        refused,
        Err(ServerHandshakeError::Decrypt(DecryptError::Forged))
    );
    assert_eq!(gate.half_open(), 2);
}

#[test]
fn client_handshake_fails_with_its_reason() {
    let mut client = ClientHandshake::new(token(1));
    let (mut packet, mut requests) = (Vec::new(), 0);
    for now_us in (0..7_000_000).step_by(33_000) {
        client.update(now_us, &mut packet);
        requests += usize::from(!packet.is_empty());
    }
    let failed = ClientHandshakeError::TimedOut { servers: 1 };
    assert_eq!(client.is_connected(), Err(failed));
    assert!((35..=50).contains(&requests), "{requests} in five seconds");
    assert!(client.into_cipher().is_none());

    let patient = TokenClaims {
        timeout_s: -1,
        ..claims(1)
    };
    let mut client = ClientHandshake::new(ConnectToken::issue(&patient, KEY).unwrap());
    for second in 0..31 {
        client.update(second * 1_000_000, &mut packet);
    }
    assert_eq!(client.is_connected(), Err(ClientHandshakeError::Expired));

    let (mut gate, mut client) = (server_handshake(), ClientHandshake::new(token(3)));
    let mut answer = Vec::new();
    for now_us in [0, 200_000] {
        client.update(now_us, &mut packet);
        let came = gate.receive((0, 100), address(1), &mut packet, true, &mut answer);
        assert!(came.unwrap().is_none());
        client.receive(now_us, &mut answer).unwrap();
    }
    assert_eq!(client.is_connected(), Err(ClientHandshakeError::Denied));
}

#[test]
fn ipv4_mapped_addresses_are_counted_one_by_one() {
    let mapped = |last: u8| std::net::Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped();
    let [one, other] = [1, 2].map(|last| network_of(mapped(last).into()));
    assert_ne!(one, other, "a socket on [::] sees all IPv4 peers this way");
    assert_eq!(one, network_of([10, 0, 0, 1].into()));
    // The network of an IPv6 address counts, not the host.
    let [one, same, other] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
        .map(|address| network_of(address.parse().unwrap()));
    assert_eq!(one, same);
    assert_ne!(one, other);
}
