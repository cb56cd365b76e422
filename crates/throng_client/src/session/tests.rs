//! A session without a socket: packets in, messages out, at times of its own.

mod own_object;

use throng_protocol::wire::{
    Channel, Hello, Motion, PacketHeader, write_announce, write_controlled_object, write_despawn,
    write_motion, write_own_position, write_own_speed, write_scene, write_snapshot_header,
};

use super::*;

const OWN: u32 = 7;
const OTHER: u32 = 8;

/// The server's end of a session. Its ticks take 50 ms.
struct Far {
    session: ClientSession,
    sequence: u16,
    tick: u16,
}

impl Far {
    /// Another process takes the client over. Its tick is lower, its ticks are longer, and its object has the ids of the former one.
    fn take_over(&mut self) {
        self.tick = 3;
        self.send(0.5, |bytes| {
            let hello = Hello {
                client: 9,
                tick_millihertz: 10_000,
                tick: 3,
                mtu_bytes: 1_200,
            };
            hello.write(bytes);
            SessionNotice::Resumed { keeps_state: false }.write(bytes);
            let token = ResumeToken([5; 16]);
            SessionNotice::Welcome { player: 7, token }.write(bytes);
            write_scene(bytes, 1, Vec2::splat(50.0));
            write_controlled_object(bytes, OWN, 0);
            let at = Motion::of(3, Vec2::splat(30.0), Vec2::ZERO, 0, 0);
            write_snapshot_header(bytes, OWN, 0, 0, at, 0);
            write_own_position(bytes, Vec2::splat(30.0));
            write_own_speed(bytes, 2.0);
        });
    }

    /// A session that has logged in and controls an object at (10, 10).
    fn new() -> Self {
        let mut far = Self {
            session: ClientSession::new(ClientSettings::default()),
            sequence: 0,
            tick: 100,
        };
        far.said(0.0);
        far.send(0.0, |bytes| {
            let hello = Hello {
                client: 1,
                tick_millihertz: 20_000,
                tick: 100,
                mtu_bytes: 1_200,
            };
            hello.write(bytes);
            let token = ResumeToken([3; 16]);
            SessionNotice::Welcome { player: 7, token }.write(bytes);
            write_scene(bytes, 1, Vec2::splat(50.0));
            write_controlled_object(bytes, OWN, 0);
            let at = Motion::of(100, Vec2::splat(10.0), Vec2::ZERO, 0, 0);
            write_snapshot_header(bytes, OWN, 0, 0, at, 0);
            write_own_position(bytes, Vec2::splat(10.0));
            write_own_speed(bytes, 2.0);
        });
        far.events();
        far
    }

    /// Delivers a reliable packet of the current tick.
    fn send(&mut self, now_s: f64, write: impl FnOnce(&mut Vec<u8>)) {
        let header = PacketHeader {
            channel: Channel::Reliable,
            epoch: 1,
            sequence: self.sequence,
            tick: self.tick,
            input: 0,
        };
        self.sequence += 1;
        let mut packet = header.to_bytes().to_vec();
        write(&mut packet);
        self.session.receive(&packet, now_s).unwrap();
    }

    fn notify(&mut self, now_s: f64, notice: SessionNotice) {
        self.send(now_s, |bytes| notice.write(bytes));
    }

    /// The object of another player stands here since this tick.
    fn show_other(&mut self, now_s: f64, generation: u32, at: Vec2) {
        let stands = Motion::of(self.tick as u8, at, Vec2::ZERO, 0, 0);
        self.send(now_s, |bytes| {
            write_snapshot_header(bytes, OTHER, generation, 0, stands, 0);
        });
    }

    /// What the session sends now, by kind. Inputs are counted.
    fn said(&mut self, now_s: f64) -> (Vec<String>, usize) {
        let (mut others, mut inputs) = (Vec::new(), 0);
        self.session.update(now_s, |message| match message {
            ClientMessage::Input(_) => inputs += 1,
            ClientMessage::Ping { .. } => others.push("ping".to_owned()),
            ClientMessage::Login { .. } => others.push("login".to_owned()),
            ClientMessage::Resume { player, .. } => others.push(format!("resume {player}")),
            other => others.push(format!("{other:?}")),
        });
        (others, inputs)
    }

    fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.session.next_event()).collect()
    }
}

#[test]
fn resumed_session_that_is_refused_logs_in_anew() {
    let mut far = Far::new();
    far.session.reconnect();
    assert_eq!(far.said(1.0).0[0], "resume 7");
    far.sequence = 0;
    far.notify(1.1, SessionNotice::ResumeRefused);
    assert_eq!(far.events(), [ClientEvent::ResumeFailed]);
    assert_eq!(far.said(1.2).0, ["login"]);
    assert_eq!(far.said(1.3).0, [""; 0], "once");
}

#[test]
fn resuming_session_sends_nothing_until_the_reply() {
    let mut far = Far::new();
    assert_eq!(far.said(1.0).1, 1);
    far.session.reconnect();
    assert_eq!(far.said(2.0), (vec!["resume 7".to_owned()], 0));
    assert_eq!(far.said(2.5), (vec![], 0));
    far.sequence = 0;
    let token = ResumeToken([6; 16]);
    far.notify(2.6, SessionNotice::Resumed { keeps_state: true });
    assert_eq!(far.said(2.7), (vec![], 0));
    far.notify(2.8, SessionNotice::Welcome { player: 7, token });
    assert_eq!(far.said(2.9), (vec!["ping".to_owned()], 1));
}

#[test]
fn reconnect_forgets_the_close_reason() {
    let mut far = Far::new();
    let closed = SessionNotice::Closed {
        reason: CloseReason::Kicked.number(),
        refusal: None,
    };
    far.notify(0.1, closed);
    assert_eq!(far.session.close_reason(), Some(CloseReason::Kicked));
    far.session.reconnect();
    assert_eq!(far.session.close_reason(), None);
}

#[test]
fn pings_are_sent_at_their_interval() {
    let mut far = Far::new();
    let pings = (1..=42).filter(|nth| {
        let (said, _) = far.said(f64::from(*nth) / 10.0);
        said.contains(&"ping".to_owned())
    });
    assert_eq!(pings.collect::<Vec<i32>>(), [1, 11, 21, 31, 41]);
}

#[test]
fn clock_starts_again_at_a_new_time_rate() {
    let mut far = Far::new();
    let pong = |far: &mut Far, now_s: f64| {
        let mut number = None;
        far.session.next_ping_s = 0.0;
        far.session.update(now_s, |message| {
            if let ClientMessage::Ping { number: of } = *message {
                number = Some(of);
            }
        });
        let (number, tick) = (number.unwrap(), u64::from(far.tick));
        far.notify(now_s, SessionNotice::Pong { number, tick });
    };
    assert_eq!(far.session.server_tick(1.0), None);
    pong(&mut far, 1.0);
    assert!((far.session.server_tick(2.0).unwrap() - 120.0).abs() < 1e-6);
    far.notify(2.0, SessionNotice::TimeRate { percent: 50 });
    assert_eq!(
        far.session.server_tick(2.0),
        None,
        "its samples are of 20 Hz"
    );
    far.tick = 120;
    pong(&mut far, 2.5);
    assert!((far.session.server_tick(3.5).unwrap() - 130.0).abs() < 1e-6);
}

#[test]
fn session_continues_with_another_server_process() {
    let mut far = Far::new();
    far.show_other(0.0, 0, Vec2::splat(20.0));
    far.said(0.02);
    let old_ping = far.session.clock.as_mut().unwrap().start_ping(0.02);
    far.notify(
        0.03,
        SessionNotice::Pong {
            number: old_ping,
            tick: 100,
        },
    );
    assert!(far.session.server_tick(0.1).is_some());
    let old_ping = far.session.clock.as_mut().unwrap().start_ping(0.04);
    far.events();
    far.take_over();
    let events = far.events();
    assert_eq!(
        events[0],
        ClientEvent::SceneEntered {
            scene: 1,
            size_m: Vec2::splat(50.0)
        }
    );
    assert!(
        events.contains(&ClientEvent::Resumed { keeps_state: false }),
        "{events:?}"
    );
    assert!(
        events.contains(&ClientEvent::Welcomed { player: 7 }),
        "{events:?}"
    );
    assert_eq!(
        far.session.server_tick(0.5),
        None,
        "the samples of the clock are those of the former process"
    );
    assert_eq!(far.session.tick_received_s, 0.5);
    assert!(
        far.session
            .own_position(9.0)
            .unwrap()
            .distance(Vec2::splat(30.0))
            < 0.5
    );
    // The client sends no login, and a ping for the new clock at once.
    let (said, _) = far.said(0.51);
    assert_eq!(said, ["ping"]);
    // The reply to a ping to the former process is ignored.
    far.notify(
        0.52,
        SessionNotice::Pong {
            number: old_ping,
            tick: 3,
        },
    );
    assert_eq!(far.session.server_tick(0.6), None);
    // A lost connection is resumed with the new token.
    far.session.reconnect();
    let mut resumed = None;
    far.session.update(1.0, |message| {
        if let ClientMessage::Resume { token, .. } = *message {
            resumed = Some(token);
        }
    });
    assert_eq!(resumed, Some(ResumeToken([5; 16])));
}

#[test]
fn inputs_of_a_stall_are_not_made_up_for() {
    let mut far = Far::new();
    assert_eq!(far.said(0.01).1, 1);
    assert_eq!(far.said(0.04).1, 0, "not before the next tick");
    // Up to four ticks late, it catches up.
    assert_eq!(far.said(0.249).1, 4);
    // From five on, it goes on with one.
    assert_eq!(far.said(0.46).1, 1);
    assert_eq!(far.said(60.0).1, 1);
    assert_eq!(far.said(60.049).1, 0);
    assert_eq!(far.said(60.051).1, 1);
}

#[test]
fn successor_of_an_object_is_shown_where_it_is() {
    let mut far = Far::new();
    far.show_other(0.0, 0, Vec2::splat(20.0));
    // It moves a metre at once, which is smoothed.
    far.tick += 1;
    let moved = Motion::of(far.tick as u8, Vec2::new(21.0, 20.0), Vec2::ZERO, 0, 0);
    far.send(0.05, |bytes| write_motion(bytes, OTHER, 0, moved));
    let at = |far: &Far, now_s| far.session.position(OTHER, now_s).unwrap();
    assert!(at(&far, 0.05).distance(Vec2::splat(20.0)) < 1e-3);
    assert!(at(&far, 5.0).distance(Vec2::new(21.0, 20.0)) < 1e-3);
    far.send(0.06, |bytes| write_despawn(bytes, OTHER, 0));
    far.show_other(0.06, 1, Vec2::splat(30.0));
    assert_eq!(at(&far, 0.06), Vec2::splat(30.0));
}

#[test]
fn object_is_not_shown_before_the_last_tick() {
    let mut far = Far::new();
    let walks = Motion::of(100, Vec2::splat(20.0), Vec2::X, 0, 0);
    far.send(1.0, |bytes| {
        write_snapshot_header(bytes, OTHER, 0, 0, walks, 0)
    });
    far.tick += 20;
    far.send(2.0, |bytes| write_own_speed(bytes, 2.5));
    let at = |now_s| far.session.position(OTHER, now_s).unwrap().x;
    assert!((at(2.0) - 21.0).abs() < 1e-3, "{}", at(2.0));
    assert!((at(2.5) - 21.5).abs() < 1e-3, "{}", at(2.5));
    // Frames of a game may be late.
    assert_eq!(at(1.9), at(2.0));
}

#[test]
fn oldest_events_are_dropped_and_counted() {
    let mut far = Far::new();
    let announced = |nth: u32| ClientEvent::Announced {
        about: None,
        bytes: nth.to_le_bytes().to_vec(),
    };
    let count = EVENTS_MAX as u32 + 3;
    for first in (0..count).step_by(4_096) {
        far.send(0.1, |bytes| {
            for nth in first..count.min(first + 4_096) {
                write_announce(bytes, None, &nth.to_le_bytes());
            }
        });
    }
    assert_eq!(far.session.missed_events(), 3);
    let events = far.events();
    assert_eq!(events.len(), EVENTS_MAX);
    assert_eq!(
        (&events[0], events.last()),
        (&announced(3), Some(&announced(count - 1)))
    );
}
