//! Promise: the browser client agrees with this library: the test vectors in its package equal the results of this library's mirror,
//! predictor and encoders.

use std::fs;

use glam::Vec2;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use throng::map::TileMap;
use throng::movement::{Ground, PlayerStep, direction_of};
use throng::net::{ClientHandshake, ConnectToken, map_bytes};
use throng::sync::{AttributeValues, Mirror, Predictor};
use throng::wire::{
    Channel, ChannelState, ChatScope, ClientInput, ClientMessage, CloseReason, Hello, InputMotion,
    LoginRefusal, Motion, PacketHeader, PacketWriter, QuantizedPosition, ResumeToken,
    SessionNotice, UnseenObjectId, write_announce, write_attribute, write_controlled_object,
    write_delta_header, write_despawn, write_forget_unseen, write_motion, write_own_position,
    write_own_speed, write_removed_attribute, write_scene, write_snapshot_header,
    write_unseen_delta_header, write_unseen_header,
};

use crate::datagram_vectors::{changed_datagrams, datagrams, first_datagram};
use crate::harness::root;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that sends given messages in packets of at most 500 bytes, and records what the mirror knows after each.
#[derive(Default)]
struct VectorWriter {
    header: PacketHeader,
    reliable: ChannelState,
    unreliable: ChannelState,
    steps: Vec<Value>,
    mirror: Mirror,
}

impl VectorWriter {
    /// The packets of one message, or of several that stay together.
    fn packets(&mut self, channel: Channel, write: impl FnOnce(&mut Vec<u8>)) -> Vec<Vec<u8>> {
        let (mut messages, mut packets) = (Vec::new(), Vec::new());
        write(&mut messages);
        let state = match channel {
            Channel::Reliable => &mut self.reliable,
            Channel::Unreliable => &mut self.unreliable,
        };
        let header = PacketHeader {
            channel,
            ..self.header
        };
        PacketWriter::new(500).write(header, state, [&messages[..]], |packet| {
            packets.push(packet.to_vec());
        });
        packets
    }

    fn write_on(&mut self, channel: Channel, write: impl FnOnce(&mut Vec<u8>)) {
        for packet in self.packets(channel, write) {
            self.receive(&packet);
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.write_on(Channel::Reliable, write);
    }

    fn notify(&mut self, notice: SessionNotice) {
        self.write(|bytes| notice.write(bytes));
    }

    /// The mirror receives a packet; a step records its state after that.
    fn receive(&mut self, packet: &[u8]) {
        let fault = self.mirror.receive(packet).err();
        assert!(fault.is_none(), "{fault:?}");
        let notices: Vec<String> = self.mirror.take_notices().iter().map(notice_name).collect();
        let state = mirror_state(&self.mirror);
        self.steps
            .push(json!({ "packet": hex(packet), "notices": notices, "state": state }));
    }
}

fn notice_name(notice: &SessionNotice) -> String {
    match *notice {
        SessionNotice::Queued { position: place } => format!("queued {place}"),
        SessionNotice::Welcome { player, token } => format!("welcome {player} {}", hex(&token.0)),
        SessionNotice::Loading { scene, size } => format!("loading {scene} {}", size.metres()),
        SessionNotice::Closed { reason, refusal } => match refusal {
            Some(LoginRefusal::WrongPlayer { token, login }) => {
                format!("closed {reason} wrongPlayer {token} {login}")
            }
            Some(LoginRefusal::Unverified) => format!("closed {reason} unverified"),
            Some(_) => format!("closed {reason} byGame"),
            None => format!("closed {reason}"),
        },
        SessionNotice::Pong { number, tick } => format!("pong {number} {tick}"),
        SessionNotice::ResumeRefused => "notResumed".to_owned(),
        SessionNotice::Resumed { keeps_state: keeps } => format!("continued {keeps}"),
        SessionNotice::TimeRate { percent } => format!("timeRate {percent}"),
    }
}

fn values(attributes: &AttributeValues) -> Value {
    let values = attributes.iter().map(|(id, value)| json!([id, hex(value)]));
    values.collect()
}

/// The whole state of a mirror.
fn mirror_state(mirror: &Mirror) -> Value {
    let object = |id: u32| {
        let object = mirror.object(id).expect("the id is of a known object");
        let Motion {
            position, velocity, ..
        } = object.motion;
        let at = mirror
            .position_after(id, 0.25)
            .expect("the object is known");
        json!({
            "id": id, "generation": object.generation, "kind": object.kind, "tick": object.motion_tick,
            "units": [position.x, position.y], "velocity": velocity, "heading": object.motion.heading,
            "floor": object.motion.floor, "isJump": object.motion.discontinuity,
            "later": at.to_array(), "attributes": values(&object.attributes),
        })
    };
    let remote = |(of, remote): (UnseenObjectId, &throng::sync::MirrorUnseenObject)| {
        json!({
            "scene": of.scene, "id": of.id, "generation": of.generation,
            "kind": remote.kind, "attributes": values(&remote.attributes),
        })
    };
    let own_position = mirror
        .own_position()
        .map(|own| json!([own.tick, own.input, own.position.x, own.position.y]));
    json!({
        "scene": mirror.scene(), "size": mirror.size_m().to_array(), "own": mirror.controlled_object().map(|own| json!([own.0, own.1])),
        "ownPosition": own_position, "ownSpeed": mirror.own_speed().map(|own| json!([own.tick, own.speed_m_s])), "tick": mirror.tick(), "tickS": mirror.tick_s(),
        "timePercent": mirror.time_percent(), "input": mirror.handled_input(), "received": mirror.received_bytes(),
        "packets": mirror.packets(), "ignored": mirror.ignored(), "announces": mirror.announcements(),
        "objects": mirror.ids().into_iter().map(object).collect::<Value>(),
        "remotes": mirror.unseen_objects().map(remote).collect::<Value>(),
    })
}

fn moving(at: u8, x: f32, velocity: Vec2) -> Motion {
    Motion::of(at, Vec2::new(x, 30.25), velocity, 77, 0)
}

/// A client enters a scene, and sees other objects there.
fn write_login(writer: &mut VectorWriter) {
    let tick = u64::from(u16::MAX) * 3 + 1;
    writer.header.tick = tick as u16;
    let hello = Hello {
        client: 300,
        tick_millihertz: 20_000,
        tick,
        mtu_bytes: 500,
    };
    writer.write(|bytes| hello.write(bytes));
    writer.notify(SessionNotice::Queued { position: 128 });
    let token = ResumeToken(std::array::from_fn(|nth| nth as u8 * 16));
    let player = u64::MAX - 5;
    writer.notify(SessionNotice::Welcome { player, token });
    let size = QuantizedPosition { x: 6_400, y: 3_201 };
    writer.notify(SessionNotice::Loading { scene: 7, size });
    writer.header.epoch = 1;
    let tick = writer.header.tick as u8;
    writer.write(|bytes| {
        write_scene(bytes, 7, size.metres());
        write_controlled_object(bytes, 200, 3);
        write_snapshot_header(bytes, 200, 3, 2, moving(tick, 10.0, Vec2::ZERO), 2);
        write_attribute(bytes, 0, &[]);
        write_attribute(bytes, 300, b"own");
        write_own_position(bytes, Vec2::new(10.003, 30.249));
        write_own_speed(bytes, 3.0);
        let walks = Motion {
            floor: 4,
            ..moving(tick, 60.5, Vec2::new(1.5, -2.25))
        };
        write_snapshot_header(bytes, 1, 0, 65_535, walks, 0);
    });
}

/// Events while a client is in a scene, beyond the overflow of the 16-bit tick.
fn write_world(writer: &mut VectorWriter) {
    for nth in 0..6_u16 {
        writer.header.tick = writer.header.tick.wrapping_add(nth * 7);
        writer.header.input = nth;
        let tick = writer.header.tick as u8;
        writer.write_on(Channel::Unreliable, |bytes| {
            let walks = Motion {
                discontinuity: nth == 3,
                ..moving(tick, 60.0 - f32::from(nth), Vec2::new(-100.0, 0.004))
            };
            write_motion(bytes, 1, 0, walks);
            // A late motion, and one of an unknown object.
            let late = tick.wrapping_sub(200);
            write_motion(bytes, 200, 3, moving(late, 1.0, Vec2::X));
            write_motion(bytes, 99, 0, moving(tick, 1.0, Vec2::X));
            write_own_position(bytes, Vec2::new(10.1 + f32::from(nth), 30.3));
        });
    }
    writer.write(|bytes| {
        write_own_speed(bytes, 4.25);
        write_delta_header(bytes, 200, 3, 3);
        write_attribute(bytes, 5, &[1; 255]);
        write_removed_attribute(bytes, 300);
        write_removed_attribute(bytes, 301);
        write_announce(bytes, Some((1, 0)), b"well met");
    });
    let of = UnseenObjectId {
        scene: 9,
        id: 4,
        generation: 1,
    };
    writer.write(|bytes| {
        write_unseen_header(bytes, of, 3, 1);
        write_attribute(bytes, 1, b"far");
        let scene = UnseenObjectId {
            scene: 7,
            id: 0,
            generation: 0,
        };
        write_unseen_header(bytes, scene, 0, 1);
        write_attribute(bytes, 0, &[2]);
        write_unseen_delta_header(bytes, of, 2);
        write_attribute(bytes, 2, b"new");
        write_removed_attribute(bytes, 1);
    });
    // A message in fragments, with a packet of another channel in between.
    let mut parts = writer.packets(Channel::Reliable, |bytes| {
        write_announce(bytes, None, &[b'x'; 1_200]);
    });
    assert!(parts.len() > 2);
    let between = writer.packets(Channel::Unreliable, |bytes| {
        write_announce(bytes, None, b"meanwhile");
    });
    parts.splice(1..1, between);
    for packet in parts {
        writer.receive(&packet);
    }
    writer.notify(SessionNotice::TimeRate { percent: 50 });
    writer.notify(SessionNotice::Pong {
        number: 70_000,
        tick: 1 << 40,
    });
    writer.write(|bytes| {
        write_forget_unseen(bytes, of);
        write_despawn(bytes, 1, 0);
    });
}

/// A client reconnects, changes its scene, loses its object, and is closed.
fn write_logout(writer: &mut VectorWriter) {
    writer.header.epoch = 2;
    writer.notify(SessionNotice::ResumeRefused);
    writer.notify(SessionNotice::Resumed { keeps_state: true });
    writer.write(|bytes| write_despawn(bytes, 200, 3));
    let of_old = writer.packets(Channel::Unreliable, |bytes| {
        write_motion(bytes, 5, 0, Motion::default());
    });
    writer.header.epoch = 3;
    let tick = writer.header.tick as u8;
    writer.write(|bytes| {
        write_scene(bytes, 8, Vec2::splat(20.0));
        write_controlled_object(bytes, 5, 0);
        write_snapshot_header(bytes, 5, 0, 2, moving(tick, 3.0, Vec2::ZERO), 0);
    });
    writer.receive(&of_old[0]);
    writer.notify(SessionNotice::Resumed { keeps_state: false });
    for refusal in [
        LoginRefusal::ByGame,
        LoginRefusal::Unverified,
        LoginRefusal::WrongPlayer { token: 8, login: 7 },
    ] {
        let refusal = Some(refusal);
        writer.notify(SessionNotice::Closed { reason: 9, refusal });
    }
    writer.notify(SessionNotice::Closed {
        reason: 4,
        refusal: None,
    });
}

/// Packets with changed bytes: whether the mirror accepts them, and its state if it does.
fn changed_packets(before: &[Value]) -> Vec<Value> {
    let mut random = Pcg64Mcg::seed_from_u64(16);
    let mut below = |most: usize| random.next_u32() as usize % most;
    let packets: Vec<Vec<u8>> = before
        .iter()
        .map(|step| {
            let digits = step["packet"].as_str().expect("hexadecimal digits");
            let bytes = (0..digits.len()).step_by(2);
            bytes
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits"))
                .collect()
        })
        .collect();
    let mut steps = Vec::new();
    while steps.len() < 400 {
        let nth = below(packets.len());
        let mut mirror = Mirror::default();
        for packet in &packets[..nth] {
            mirror
                .receive(packet)
                .expect("the original packet is valid");
        }
        let mut packet = packets[nth].clone();
        for _ in 0..=below(2) {
            let at = below(packet.len());
            packet[at] = [packet[at] ^ (1 << below(8)), 0, 0xff, below(32) as u8][below(4)];
        }
        packet.truncate(packet.len() - [0, 0, 0, below(packet.len())][below(4)]);
        if packet.len() > 200 {
            continue;
        }
        let fits = mirror.receive(&packet).is_ok();
        let state = fits.then(|| {
            json!([
                mirror.scene(),
                mirror.tick(),
                mirror.received_bytes(),
                mirror.ids(),
                mirror.ignored()
            ])
        });
        steps.push(json!({ "after": nth, "packet": hex(&packet), "state": state }));
    }
    let fitting = steps.iter().filter(|step| !step["state"].is_null()).count();
    assert!((40..360).contains(&fitting), "{fitting} fit");
    steps
}

/// Adds a client message: its name, its parameters, and its bytes.
fn add_message(messages: &mut Vec<Value>, name: &str, parameters: Value, message: ClientMessage) {
    messages.push(json!([name, parameters, hex(&message.to_bytes())]));
}

fn bytes(bytes: &[u8]) -> Value {
    json!({ "hex": hex(bytes) })
}

/// Messages about the session, and custom messages of games.
fn session_messages(messages: &mut Vec<Value>) {
    let token = ResumeToken([9; 16]);
    let big = |number: u64| json!({ "big": number.to_string() });
    let mut add = |name: &str, parameters, message: ClientMessage| {
        add_message(messages, name, parameters, message)
    };
    let credential = b"open";
    let player = u64::MAX;
    add(
        "login",
        json!([big(player), bytes(credential)]),
        ClientMessage::Login { player, credential },
    );
    add("login", json!([big(1)]), ClientMessage::login(1));
    add("logout", json!([]), ClientMessage::Logout);
    for received in [None, Some(u32::MAX)] {
        let resume = ClientMessage::Resume {
            player: 300,
            token,
            received,
        };
        add(
            "resume",
            json!([big(300), bytes(&token.0), received]),
            resume,
        );
    }
    add("ready", json!([128]), ClientMessage::Ready { scene: 128 });
    add(
        "ping",
        json!([4_000_000_000_u32]),
        ClientMessage::Ping {
            number: 4_000_000_000,
        },
    );
    add(
        "viewCap",
        json!([60_000]),
        ClientMessage::ViewCap { players: 60_000 },
    );
    add(
        "interact",
        json!([5, 6, 700]),
        ClientMessage::Interact {
            id: 5,
            generation: 6,
            verb: 700,
        },
    );
    add("queueFor", json!([2]), ClientMessage::QueueFor { mode: 2 });
    add("cancelQueue", json!([]), ClientMessage::CancelQueue);
    add(
        "answerMatch",
        json!([true]),
        ClientMessage::AnswerMatch { accept: true },
    );
    let (scope, text) = (ChatScope::Party, "grüß dich ✓");
    add("say", json!([2, text]), ClientMessage::Chat { scope, text });
    add(
        "user",
        json!([500, bytes(b"own")]),
        ClientMessage::Custom {
            kind: 500,
            bytes: b"own",
        },
    );
}

/// Messages that move a player.
fn motion_messages(messages: &mut Vec<Value>) {
    let at = QuantizedPosition { x: 6_401, y: 3 };
    let place = json!({ "x": 100.012, "y": 0.054 });
    let mut add = |name: &str, parameters, message: ClientMessage| {
        add_message(messages, name, parameters, message)
    };
    add(
        "move",
        json!([place, 200]),
        ClientMessage::Move {
            to: at,
            heading: 200,
        },
    );
    add("face", json!([255]), ClientMessage::Face { heading: 255 });
    for (motion, motion_json) in [
        (InputMotion::Stand, json!({ "kind": "stand" })),
        (InputMotion::To(at), json!({ "kind": "to", "to": place })),
        (
            InputMotion::Towards(129),
            json!({ "kind": "towards", "direction": 129 }),
        ),
    ] {
        let input = ClientInput {
            seq: 0xfffe,
            client_tick: 258,
            motion,
            heading: 7,
            buttons: 1 << 31,
        };
        let parameters = json!([{ "seq": 0xfffe, "clientTick": 258, "motion": motion_json, "heading": 7, "buttons": 1_u32 << 31 }]);
        add("input", parameters, ClientMessage::Input(input));
    }
    add("moveTo", json!([place]), ClientMessage::MoveTo { to: at });
    add(
        "moveTo",
        json!([{ "x": -3.0, "y": 1e12 }]),
        ClientMessage::MoveTo {
            to: QuantizedPosition { x: 0, y: u32::MAX },
        },
    );
    add("stop", json!([]), ClientMessage::Stop);
}

/// A connect token with recognizable bytes, and the connect request made from it.
fn token_and_request() -> Value {
    let mut token: Vec<u8> = b"NETCODE 1.02\0".to_vec();
    for number in [3_u64, 100, 200] {
        token.extend(number.to_le_bytes());
    }
    token.extend((0..24 + 1_024).map(|nth| (nth % 251) as u8));
    token.extend(10_i32.to_le_bytes());
    token.extend([1, 0, 0, 0, 1, 127, 0, 0, 1, 0x40, 0x1f]);
    token.resize(2_048, 0xab);
    let mut request = Vec::new();
    let read = ConnectToken::from_bytes(&token).expect("a token");
    ClientHandshake::new(read).update(0, &mut request);
    json!({ "token": hex(&token), "request": hex(&request) })
}

/// The close reasons of a server.
fn close_reasons() -> Vec<Value> {
    let all = CloseReason::ALL.iter();
    all.map(|reason| json!({ "number": reason.number(), "text": reason.to_string() }))
        .collect()
}

/// A client predicts its position; the server agrees, except for one correction.
fn predicted() -> Vec<Value> {
    let mut writer = VectorWriter::default();
    write_login(&mut writer);
    let mut predictor = Predictor::default();
    let step = PlayerStep {
        ground: None,
        size_m: writer.mirror.size_m(),
        step_m: writer.mirror.own_step_m(),
    };
    let mut steps: Vec<Value> = writer
        .steps
        .drain(..)
        .map(|step| json!({ "packet": step["packet"] }))
        .collect();
    predictor.reconcile(&step, &writer.mirror);
    let mut places = vec![Vec2::ZERO];
    for nth in 0..90_u16 {
        let direction = (nth * 5 % 256) as u8;
        let motion = match nth % 30 {
            11 => InputMotion::Stand,
            23 => InputMotion::To(QuantizedPosition {
                x: 5 * 64 + u32::from(nth),
                y: 60,
            }),
            _ => InputMotion::Towards(direction),
        };
        let motion_json = match motion {
            InputMotion::Stand => json!({ "kind": "stand" }),
            InputMotion::To(to) => {
                json!({ "kind": "to", "to": { "x": to.metres().x, "y": to.metres().y } })
            }
            InputMotion::Towards(direction) => json!({ "kind": "towards", "direction": direction }),
        };
        let input = ClientInput {
            motion,
            ..ClientInput::default()
        };
        let input = predictor
            .apply_input(&step, input)
            .expect("few inputs are unacknowledged");
        let at = predictor.position().expect("the client has an object");
        places.push(at);
        steps.push(json!({ "act": motion_json, "seq": input.seq, "at": at.to_array() }));
        writer.header.tick = writer.header.tick.wrapping_add(1);
        if nth % 3 == 2 && nth > 4 {
            // The server is some inputs behind, and disagrees once.
            let handled = nth - 3;
            writer.header.input = handled;
            let apart = if nth == 44 {
                Vec2::new(0.5, -0.25)
            } else {
                Vec2::ZERO
            };
            let confirmed = places[usize::from(handled)] + apart;
            for packet in writer.packets(Channel::Unreliable, |bytes| {
                write_own_position(bytes, confirmed)
            }) {
                writer.mirror.receive(&packet).expect("it fits");
                let corrected = predictor.reconcile(&step, &writer.mirror);
                let at = predictor.position().expect("the client has an object");
                if corrected.is_some() {
                    let later = usize::from(handled)..places.len();
                    let moved = predictor.unhandled().map(|(_, to)| to);
                    places.splice(later, std::iter::once(confirmed).chain(moved));
                }
                let off = corrected.map(|corrected| corrected.error_m);
                steps.push(json!({ "packet": hex(&packet), "off": off, "at": at.to_array() }));
            }
        }
    }
    steps
}

/// Walls in the format of the page, and steps between them.
fn walked() -> Vec<Value> {
    let mut random = Pcg64Mcg::seed_from_u64(23);
    let tiles = TileMap::from_fn(43, 30, |_, _| random.next_u32() % 5 == 0).expect("a map");
    let (tile_m, step_m) = (0.5, 0.4);
    let size_m = Vec2::new(21.5, 15.0);
    let step = PlayerStep {
        ground: Some(Ground {
            tiles: &tiles,
            tile_m,
        }),
        size_m,
        step_m,
    };
    let mut steps = vec![
        json!({ "map": hex(&map_bytes(&tiles, tile_m)), "stepM": step_m, "size": size_m.to_array() }),
    ];
    let mut below = |most: u32| random.next_u32() % most;
    while steps.len() < 400 {
        // Some steps begin at corners and borders of tiles, and in walls.
        let grain = [64.0, 2.0][below(2) as usize];
        let [x, y] = [22 * 64, 16 * 64].map(|most| below(most) as f32 / 64.0);
        let from = (Vec2::new(x, y) * grain).floor() / grain;
        let direction = below(256) as u8;
        let from = from.min(size_m);
        let to = step.towards(from, direction);
        steps.push(json!([from.x, from.y, direction, to.x, to.y]));
    }
    steps
}

/// One value per line, so that a diff shows the changed value.
fn listed(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[test]
fn web_client_vectors_match_this_library() {
    let folder = root().join("clients/web/tests/vectors");
    if !folder.is_dir() {
        // The published package does not contain the web client.
        return;
    }
    let mut writer = VectorWriter::default();
    write_login(&mut writer);
    write_world(&mut writer);
    write_logout(&mut writer);
    let directions: Vec<Value> = (0..=255)
        .map(|nth| json!(direction_of(nth).to_array()))
        .collect();
    let mut messages = Vec::new();
    session_messages(&mut messages);
    motion_messages(&mut messages);
    let made = [
        ("packets.json", listed(&writer.steps)),
        ("changed.json", listed(&changed_packets(&writer.steps))),
        ("said.json", listed(&messages)),
        ("predicted.json", listed(&predicted())),
        ("directions.json", listed(&directions)),
        ("walked.json", listed(&walked())),
        ("token.json", listed(&[token_and_request()])),
        ("reasons.json", listed(&close_reasons())),
        ("datagrams.json", listed(&datagrams())),
        ("changed_datagrams.json", listed(&changed_datagrams())),
        ("first_datagram.json", listed(&first_datagram())),
    ];
    let fresh = root().join("target/web-vectors");
    fs::create_dir_all(&fresh).unwrap();
    let mut stale = Vec::new();
    for (name, text) in made {
        if fs::read_to_string(folder.join(name)).ok().as_deref() != Some(&text) {
            fs::write(fresh.join(name), text).unwrap();
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} of {} differ; if that is intended, copy the new ones from {}",
        folder.display(),
        fresh.display()
    );
}
