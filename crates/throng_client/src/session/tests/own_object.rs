//! The controlled object: its speed, its prediction, and where it is shown.

use super::*;
use throng_protocol::wire::{
    Channel, Hello, PacketHeader, write_controlled_object, write_own_position, write_own_speed,
    write_scene, write_snapshot_header,
};

fn packet(sequence: u16, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header = PacketHeader {
        channel: Channel::Reliable,
        epoch: 1,
        sequence,
        tick: 7,
        input: 0,
    };
    let mut bytes = header.to_bytes().to_vec();
    write(&mut bytes);
    bytes
}

/// Client 1 joins at tick 7, at 20 ticks per second.
const HELLO: Hello = Hello {
    client: 1,
    tick_millihertz: 20_000,
    tick: 7,
    mtu_bytes: 1_200,
};

#[test]
fn client_walks_at_the_speed_of_the_server_without_a_correction() {
    let mut session = ClientSession::new(ClientSettings::default());
    let at = Vec2::splat(10.0);
    let begins = packet(0, |bytes| {
        HELLO.write(bytes);
        write_scene(bytes, 4, Vec2::splat(100.0));
        write_controlled_object(bytes, 7, 0);
        let stands = throng_protocol::wire::Motion::of(7, at, Vec2::ZERO, 0, 0);
        write_snapshot_header(bytes, 7, 0, 1, stands, 0);
        write_own_position(bytes, at);
        write_own_speed(bytes, 2.0);
    });
    session.receive(&begins, 1.0).unwrap();
    session.set_controls(ControlState::towards(0));
    let walk = |session: &mut ClientSession, from_s: f64| {
        for frame in 0..20 {
            session.update(from_s + f64::from(frame) * 0.05, |_| {});
        }
        session.predictor.position().unwrap().x
    };
    let walked_x = walk(&mut session, 1.0);
    assert!((walked_x - 12.0).abs() < 0.15, "{walked_x}");
    // Twice as fast: inputs that the server has not handled count double, and the shown position does not jump.
    let shown = session.own_position(2.0).unwrap();
    session
        .receive(&packet(1, |bytes| write_own_speed(bytes, 4.0)), 2.0)
        .unwrap();
    let led_x = session.predictor.position().unwrap().x;
    assert!((led_x - 14.0).abs() < 0.3, "{led_x}");
    assert!(session.own_position(2.0).unwrap().distance(shown) < 1e-4);
    let further_x = walk(&mut session, 2.0);
    assert!((further_x - led_x - 4.0).abs() < 0.3, "{further_x}");
    let events = std::iter::from_fn(|| session.next_event());
    let corrected = |event: &ClientEvent| matches!(event, ClientEvent::Corrected(_));
    assert!(!events.into_iter().any(|event| corrected(&event)));
}

#[test]
fn refused_login_names_both_players() {
    let settings = ClientSettings {
        player: Some(7),
        ..ClientSettings::default()
    };
    let mut session = ClientSession::new(settings);
    let mut said = Vec::new();
    session.update(1.0, |message| said.push(message.to_bytes()));
    assert_eq!(said, [ClientMessage::login(7).to_bytes()]);
    let refusal = Some(LoginRefusal::WrongPlayer { token: 8, login: 7 });
    let closed = packet(0, |bytes| {
        let reason = CloseReason::Refused.number();
        SessionNotice::Closed { reason, refusal }.write(bytes);
    });
    session.receive(&closed, 1.0).unwrap();
    assert_eq!(session.refusal(), refusal);
    let reason = Some(CloseReason::Refused);
    let event = ClientEvent::Closed { reason, refusal };
    assert_eq!(session.next_event(), Some(event));
    let text = session.refusal().unwrap().to_string();
    assert_eq!(text, "this token is for player 8, the login names player 7");
    // Without a player, the token says who it is.
    let mut session = ClientSession::new(ClientSettings::default());
    session.update(1.0, |message| said.push(message.to_bytes()));
    assert_eq!(said[1], ClientMessage::login_by_token().to_bytes());
}

#[test]
fn slowed_server_receives_one_input_per_tick() {
    let mut session = ClientSession::new(ClientSettings::default());
    let begins = packet(0, |bytes| {
        HELLO.write(bytes);
        write_scene(bytes, 4, Vec2::splat(100.0));
        write_controlled_object(bytes, 7, 0);
        let stands = throng_protocol::wire::Motion::of(7, Vec2::splat(10.0), Vec2::ZERO, 0, 0);
        write_snapshot_header(bytes, 7, 0, 1, stands, 0);
        write_own_speed(bytes, 1.5);
    });
    session.receive(&begins, 1.0).unwrap();
    session.set_controls(ControlState::towards(0));
    let mut now_s = 1.0;
    let mut inputs = |session: &mut ClientSession| {
        let mut count = 0;
        for _ in 0..200 {
            session.update(now_s, |message| {
                count += i32::from(matches!(message, ClientMessage::Input(_)));
            });
            now_s += 0.01;
        }
        (count, now_s)
    };
    let (count, at_s) = inputs(&mut session);
    assert!((39..=41).contains(&count), "{count}");
    let slower = packet(1, |bytes| {
        SessionNotice::TimeRate { percent: 25 }.write(bytes);
    });
    session.receive(&slower, at_s).unwrap();
    let (count, mut at_s) = inputs(&mut session);
    assert!((9..=11).contains(&count), "{count}");
    // Between two inputs it is shown on the way, not at its end.
    let to = session.predictor.position();
    while session.predictor.position() == to {
        at_s += 0.01;
        session.update(at_s, |_| {});
    }
    let shown = [0.0, 0.05, 0.1, 0.15].map(|later| session.own_position(at_s + later));
    let x = shown.map(|at| at.map_or(0.0, |at| at.x));
    let to = session.predictor.position().map_or(0.0, |at| at.x);
    assert!(x.is_sorted() && x[0] < to, "{x:?}, to {to}");
    // The server sends nothing more: the object moves as long as inputs may wait, and then stands in every frame.
    for _ in 0..8_000 {
        session.update(at_s, |_| {});
        at_s += 0.01;
    }
    let to = session.predictor.position();
    for _ in 0..20 {
        session.update(at_s, |_| {});
        at_s += 0.01;
        assert_eq!(session.own_position(at_s), to);
    }
}
