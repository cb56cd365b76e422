//! Clients that come back with their tokens.

use super::*;

#[test]
fn client_whose_connection_was_lost_returns_with_its_token() {
    let (mut gate, token) = (server_handshake(), token(3));
    let returns = gate.returns();
    // A client that connects at a time, and the use of its token, if it is admitted.
    let connect = |gate: &mut ServerHandshake, nth: u16, unix_s: u64| {
        let mut client = ClientHandshake::new(token.clone());
        let (mut packet, mut answer) = (Vec::new(), Vec::new());
        for now_us in [0, 200_000] {
            client.update(now_us, &mut packet);
            let times = (unix_s * 1_000_000 + now_us, unix_s);
            let admitted = gate.receive(times, address(nth), &mut packet, false, &mut answer);
            if let Some(admitted) = admitted.ok()? {
                return Some(admitted.token);
            }
            client.receive(now_us, &mut answer).ok()?;
        }
        None
    };
    let lost = DisconnectReason::Lost;
    // The end of its handshake is lost, so it tries again.
    connect(&mut gate, 1, 101).unwrap();
    let first = connect(&mut gate, 1, 102).unwrap();
    assert!(!first.resumes_only);
    returns.confirm_connection(first);
    // It comes back from another network before the server misses it, and after the token has expired (at 130 s).
    let second = connect(&mut gate, 2, 125).unwrap();
    let third = connect(&mut gate, 3, 140).unwrap();
    assert!(second.resumes_only && third.resumes_only);
    // The end of its former connections does not end its right to return.
    returns.end_connection(first, DisconnectReason::Closed, 140);
    returns.end_connection(second, lost, 141);
    returns.end_connection(third, lost, 200);
    assert!(connect(&mut gate, 4, 230).is_none(), "30 s later");
    let fourth = connect(&mut gate, 4, 229).unwrap();
    // A client that left, or that the server has closed, does not return.
    returns.end_connection(fourth, DisconnectReason::Closed, 229);
    assert!(connect(&mut gate, 5, 232).is_none());
    // Nor does one whose token was never used.
    let mut gate = server_handshake();
    assert!(connect(&mut gate, 1, 140).is_none());
}

#[test]
fn client_of_another_gateway_resumes_with_an_expired_token() {
    let gateway = || {
        let settings = ServerHandshakeSettings {
            late_resume_s: 1_000,
            ..ServerHandshakeSettings::new(PROTOCOL, vec![server()])
        };
        ServerHandshake::new(settings, KEY).unwrap()
    };
    let token = token(3);
    // The token expires at 130 s.
    for (unix_s, expected) in [
        (129, Some(false)),
        (130, Some(true)),
        (1_129, Some(true)),
        (1_130, None),
    ] {
        let times = (unix_s * 1_000_000, unix_s);
        let mut gate = gateway();
        let returns = gate.returns();
        let mut client = ClientHandshake::new(token.clone());
        let (mut packet, mut answer, mut admitted) = (Vec::new(), Vec::new(), None);
        for now_us in [0, 200_000] {
            client.update(now_us, &mut packet);
            let times = (times.0 + now_us, unix_s);
            let reply = gate.receive(times, address(1), &mut packet, false, &mut answer);
            match reply {
                Ok(found) => admitted = found,
                Err(error) => assert_eq!(error, ServerHandshakeError::Expired { expires_s: 130 }),
            }
            let _ = client.receive(now_us, &mut answer);
        }
        let resumes_only = admitted.as_ref().map(|it| it.token.resumes_only);
        assert_eq!(resumes_only, expected, "over UDP at {unix_s} s");
        if let Some(admitted) = admitted {
            // Once, as with a token that has not expired.
            returns.end_connection(admitted.token, DisconnectReason::Closed, unix_s);
            let later = (times.0 + 3_000_000, unix_s + 3);
            let again = gate.receive(later, address(2), &mut request(&token), false, &mut answer);
            let expected = match unix_s {
                1_129 => ServerHandshakeError::Expired { expires_s: 130 },
                _ => ServerHandshakeError::TokenUsed,
            };
            assert_eq!(again.err(), Some(expected));
        }
        let mut gate = gateway();
        let bearer = gate.accept_by_token(times, address(1), &mut request(&token));
        let resumes_only = bearer.ok().map(|it| it.resumes_only);
        assert_eq!(resumes_only, expected, "in a browser at {unix_s} s");
    }
}
