//! Decoding of packets by a mirror.

use super::*;
use crate::wire::{
    Hello, ResumeToken, write_controlled_object, write_delta_header, write_despawn, write_motion,
    write_own_position, write_own_speed, write_scene, write_snapshot_header, write_unseen_header,
};
use proptest::prelude::*;

fn packet(sequence: u16, epoch: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    packet_of(Channel::Reliable, sequence, epoch, write)
}

fn packet_of(
    channel: Channel,
    sequence: u16,
    epoch: u8,
    write: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let header = PacketHeader {
        channel,
        epoch,
        sequence,
        tick: sequence,
        input: 0,
    };
    let mut bytes = header.to_bytes().to_vec();
    write(&mut bytes);
    bytes
}

fn greeted() -> Mirror {
    let mut mirror = Mirror::default();
    let hello = packet(0, 1, |bytes| {
        write_scene(bytes, 4, Vec2::splat(10.0));
        write_controlled_object(bytes, 7, 0);
        write_snapshot_header(bytes, 7, 0, 1, Motion::default(), 0);
    });
    mirror.receive(&hello).unwrap();
    mirror
}

#[test]
fn objects_are_listed_by_ascending_id() {
    let mut mirror = greeted();
    let more = packet(1, 1, |bytes| {
        for id in [300, 2, 41] {
            write_snapshot_header(bytes, id, id * 2, 3, Motion::default(), 0);
        }
    });
    mirror.receive(&more).unwrap();
    let all = mirror.objects();
    let all: Vec<_> = all
        .map(|(id, object)| (id, object.generation, object.kind))
        .collect();
    assert_eq!(all, [(2, 4, 3), (7, 0, 1), (41, 82, 3), (300, 600, 3)]);
}

#[test]
fn new_scene_drops_the_objects_of_the_old_one() {
    let mut mirror = greeted();
    assert_eq!(
        (mirror.ids(), mirror.controlled_object(), mirror.scene()),
        (vec![7], Some((7, 0)), Some(4))
    );
    mirror
        .receive(&packet(1, 2, |bytes| write_scene(bytes, 5, Vec2::ONE)))
        .unwrap();
    assert_eq!(
        (mirror.ids(), mirror.controlled_object(), mirror.scene()),
        (vec![], None, Some(5))
    );
}

#[test]
fn despawn_of_the_controlled_object_clears_the_mirror() {
    let mut mirror = greeted();
    let remote = UnseenObjectId {
        scene: 9,
        id: 1,
        generation: 0,
    };
    let others = packet(1, 1, |bytes| {
        write_snapshot_header(bytes, 8, 0, 1, Motion::default(), 0);
        write_unseen_header(bytes, remote, 0, 0);
        write_despawn(bytes, 7, 0);
    });
    mirror.receive(&others).unwrap();
    assert_eq!((mirror.ids(), mirror.unseen_objects().count()), (vec![], 0));
    assert_eq!((mirror.controlled_object(), mirror.scene()), (None, None));
    let again = packet(2, 2, |bytes| write_scene(bytes, 4, Vec2::ONE));
    mirror.receive(&again).unwrap();
    assert_eq!(mirror.scene(), Some(4));
}

#[test]
fn packet_out_of_context_is_an_error() {
    let despawn = |id, generation| move |bytes: &mut Vec<u8>| write_despawn(bytes, id, generation);
    let cases: [(Vec<u8>, MirrorError); 5] = [
        (
            packet(2, 1, |_| ()),
            MirrorError::Sequence {
                found: 2,
                expected: 1,
            },
        ),
        (
            packet(1, 2, despawn(7, 0)),
            MirrorError::Epoch {
                found: 2,
                expected: 1,
            },
        ),
        (
            packet(1, 1, despawn(7, 1)),
            MirrorError::UnknownObject {
                id: 7,
                generation: 1,
            },
        ),
        (
            packet(1, 1, |bytes| write_delta_header(bytes, 8, 0, 0)),
            MirrorError::UnknownObject {
                id: 8,
                generation: 0,
            },
        ),
        (
            packet(1, 1, |bytes| {
                write_snapshot_header(bytes, 7, 1, 0, Motion::default(), 0)
            }),
            MirrorError::AlreadyKnown {
                id: 7,
                generation: 1,
            },
        ),
    ];
    for (packet, error) in cases {
        assert_eq!(greeted().receive(&packet), Err(error));
    }
}

#[test]
fn newest_motion_wins_in_any_order_of_arrival() {
    let mut mirror = greeted();
    let walk = |at: u8| Motion::of(at, Vec2::splat(f32::from(at)), Vec2::X, 0, 0);
    let motion = |sequence, at, id| {
        packet_of(Channel::Unreliable, sequence, 1, |bytes| {
            write_motion(bytes, id, 0, walk(at));
        })
    };
    for (sequence, at, held) in [(5, 4, 4), (3, 3, 4), (5, 4, 4), (9, 8, 8), (7, 6, 8)] {
        mirror.receive(&motion(sequence, at, 7)).unwrap();
        assert_eq!(mirror.object(7).unwrap().motion, walk(held));
    }
    mirror.receive(&motion(10, 9, 99)).unwrap();
    let old_epoch = packet_of(Channel::Unreliable, 11, 0, |bytes| bytes.push(255));
    mirror.receive(&old_epoch).unwrap();
    assert_eq!(
        (mirror.object(7).unwrap().motion, mirror.ignored()),
        (walk(8), 5)
    );
}

#[test]
fn motion_is_extrapolated_at_the_current_time_rate() {
    let mut mirror = Mirror::default();
    let hello = Hello {
        client: 1,
        tick_millihertz: 20_000,
        tick: 0,
        mtu_bytes: 1200,
    };
    let walks = Motion::of(0, Vec2::ZERO, Vec2::X, 0, 0);
    let begins = packet(0, 1, |bytes| {
        hello.write(bytes);
        write_scene(bytes, 4, Vec2::splat(10.0));
        write_snapshot_header(bytes, 7, 0, 1, walks, 0);
    });
    mirror.receive(&begins).unwrap();
    let after = |mirror: &Mirror| mirror.position_after(7, 2.0).unwrap().x;
    assert_eq!((mirror.time_percent(), after(&mirror)), (100, 2.0));
    let slower = packet(1, 1, |bytes| {
        SessionNotice::TimeRate { percent: 25 }.write(bytes);
    });
    mirror.receive(&slower).unwrap();
    // A tick has the same length of simulated time, and takes four times as much real time.
    let of_tick = mirror.position(7, mirror.tick()).unwrap().x;
    assert_eq!((mirror.time_percent(), of_tick), (25, 0.05));
    assert_eq!(after(&mirror), of_tick + 0.5);
    // The next connection sends the rate again, unless it is 100 %.
    mirror.reconnect();
    mirror
        .receive(&packet(0, 1, |bytes| hello.write(bytes)))
        .unwrap();
    assert_eq!(mirror.time_percent(), 100);
}

#[test]
fn own_position_and_speed_end_with_their_scene() {
    let mut mirror = greeted();
    let own = packet(1, 1, |bytes| {
        write_own_position(bytes, Vec2::splat(3.0));
        write_own_speed(bytes, 5.0);
    });
    mirror.receive(&own).unwrap();
    assert_eq!(
        mirror.own_position().map(|own| own.position),
        Some(Vec2::splat(3.0))
    );
    assert_eq!(mirror.own_speed().map(|own| own.speed_m_s), Some(5.0));
    assert_eq!(mirror.own_step_m(), 5.0 * mirror.tick_s());
    mirror
        .receive(&packet(2, 2, |bytes| write_scene(bytes, 5, Vec2::ONE)))
        .unwrap();
    assert_eq!((mirror.own_position(), mirror.own_speed()), (None, None));
    assert_eq!(mirror.own_step_m(), 0.0);
}

#[test]
fn first_own_position_of_a_tick_is_kept() {
    let mut mirror = greeted();
    let position_at = |tick, at: f32| {
        packet_of(Channel::Unreliable, tick, 1, |bytes| {
            write_own_position(bytes, Vec2::splat(at));
        })
    };
    for (tick, at, held) in [(4, 1.0, 1.0), (4, 2.0, 1.0), (3, 3.0, 1.0), (5, 4.0, 4.0)] {
        mirror.receive(&position_at(tick, at)).unwrap();
        let own = mirror.own_position().map(|own| own.position);
        assert_eq!(own, Some(Vec2::splat(held)), "tick {tick}");
    }
    assert_eq!(mirror.ignored(), 2);
}

#[test]
fn oldest_notices_are_dropped_from_a_full_list() {
    let mut mirror = greeted();
    let notice = |position| SessionNotice::Queued { position };
    for position in 1..=NOTICES_MAX as u16 + 3 {
        let bytes = packet(position, 1, |bytes| notice(position.into()).write(bytes));
        mirror.receive(&bytes).unwrap();
    }
    let expected: Vec<_> = (4..=NOTICES_MAX as u32 + 3).map(notice).collect();
    assert_eq!(mirror.take_notices(), expected);
}

#[test]
fn received_bytes_count_reliable_messages_from_the_welcome_on() {
    let mut mirror = greeted();
    let walks = |bytes: &mut Vec<u8>| write_own_speed(bytes, 1.0);
    let welcome = SessionNotice::Welcome {
        player: 1,
        token: ResumeToken::default(),
    };
    let first = packet(1, 1, walks);
    let welcomed = packet(2, 1, |bytes| {
        welcome.write(bytes);
        walks(bytes);
    });
    let unreliable = packet_of(Channel::Unreliable, 9, 1, walks);
    let later = packet(3, 1, walks);
    let body = |packet: &[u8]| packet.len() as u32 - 8;
    let before = mirror.received_bytes();
    mirror.receive(&first).unwrap();
    assert_eq!(mirror.received_bytes(), before + body(&first));
    mirror.receive(&welcomed).unwrap();
    assert_eq!(mirror.received_bytes(), body(&welcomed));
    mirror.receive(&unreliable).unwrap();
    mirror.receive(&later).unwrap();
    assert_eq!(mirror.received_bytes(), body(&welcomed) + body(&later));
}

#[test]
fn time_rate_is_at_least_one_percent() {
    let mut mirror = greeted();
    for (nth, (percent, expected)) in (1..).zip([(0, 1), (1, 1), (100, 100), (200, 100)]) {
        let rate = packet(nth, 1, |bytes| {
            SessionNotice::TimeRate { percent }.write(bytes);
        });
        mirror.receive(&rate).unwrap();
        assert_eq!(mirror.time_percent(), expected, "{percent}");
    }
}

proptest! {
    #![proptest_config(draws!())]

    #[test]
    fn any_packet_is_applied_or_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut mirror = greeted();
        let _ = mirror.receive(&packet(1, 1, |packet| packet.extend(bytes)));
    }
}

proptest! {
    #![proptest_config(draws!())]

    /// Motions in a batch have the same effect as single ones, and are shown with the state before the effect.
    #[test]
    fn batched_motions_have_the_effect_of_single_ones(
        motions in prop::collection::vec((1_u32..9, 0_u32..2, 0_u8..12), 0..50),
        reliable in prop::bool::weighted(0.3),
        despawned in prop::option::of((0_usize..50, 1_u32..7)),
    ) {
        let mut together = greeted();
        let others = packet(1, 1, |bytes| {
            for id in 1..7 {
                write_snapshot_header(bytes, id, 0, 1, Motion::of(3, Vec2::ZERO, Vec2::ZERO, 0, 0), 0);
            }
        });
        together.receive(&others).unwrap();
        let mut one_by_one = together.clone();
        let channel = if reliable { Channel::Reliable } else { Channel::Unreliable };
        let write = |nth: usize, bytes: &mut Vec<u8>| {
            let (id, generation, at) = motions[nth];
            let there = Vec2::splat(nth as f32);
            write_motion(bytes, id, generation, Motion::of(at, there, Vec2::ZERO, 0, 0));
            if let Some((_, id)) = despawned.filter(|(after, _)| *after == nth) {
                write_despawn(bytes, id, 0);
            }
        };
        // All of one tick, like a packet that contains them all.
        let tick = 12;
        let packet_of_all = |sequence, all: std::ops::Range<usize>| {
            let header = PacketHeader { channel, epoch: 1, sequence, tick, input: 0 };
            let mut bytes = header.to_bytes().to_vec();
            all.for_each(|nth| write(nth, &mut bytes));
            bytes
        };
        let mut shown = Vec::new();
        let result = together.receive_each(&packet_of_all(2, 0..motions.len()), |mirror, message| {
            if let ServerMessage::Motion { id, .. } = *message {
                shown.push(mirror.object(id).map(|object| object.motion));
            }
        });
        let (mut expected, mut known) = (Ok(()), Vec::new());
        for (nth, &(id, ..)) in motions.iter().enumerate() {
            known.push(one_by_one.object(id).map(|object| object.motion));
            expected = one_by_one.receive(&packet_of_all(2 + nth as u16, nth..nth + 1));
            if expected.is_err() {
                break;
            }
        }
        prop_assert_eq!(result, expected);
        prop_assert_eq!(shown, known);
        prop_assert_eq!(together.ids(), one_by_one.ids());
        for id in together.ids() {
            prop_assert_eq!(together.object(id), one_by_one.object(id));
        }
        prop_assert_eq!(together.ignored(), one_by_one.ignored());
    }
}

#[test]
fn mirror_follows_another_process_on_the_same_connection() {
    let mut mirror = greeted();
    let hello = |tick| Hello {
        client: 3,
        tick_millihertz: 20_000,
        tick,
        mtu_bytes: 1_200,
    };
    let mut first = packet(1, 1, |bytes| hello(900).write(bytes));
    first[4..6].copy_from_slice(&900_u16.to_le_bytes());
    mirror.receive(&first).unwrap();
    assert_eq!((mirror.tick(), mirror.takeovers()), (900, 0));
    // The tick of the other process is lower, and its ticks are longer.
    let token = ResumeToken([4; 16]);
    let mut taken = packet(2, 2, |bytes| {
        let slow = Hello {
            tick_millihertz: 10_000,
            ..hello(20)
        };
        slow.write(bytes);
        SessionNotice::Resumed { keeps_state: false }.write(bytes);
        SessionNotice::Welcome { player: 5, token }.write(bytes);
    });
    taken[4..6].copy_from_slice(&20_u16.to_le_bytes());
    mirror.receive(&taken).unwrap();
    assert_eq!((mirror.tick(), mirror.takeovers()), (20, 1));
    assert_eq!((mirror.tick_s(), mirror.scene()), (0.1, None));
    assert_eq!(mirror.ids(), Vec::<u32>::new());
    // A late packet of the former process has no effect.
    let mut late = packet_of(Channel::Unreliable, 9, 1, |bytes| {
        write_own_position(bytes, Vec2::ONE);
    });
    late[4..6].copy_from_slice(&901_u16.to_le_bytes());
    mirror.receive(&late).unwrap();
    assert_eq!((mirror.tick(), mirror.ignored()), (20, 1));
    // Its scene has the ids of the former scene.
    let mut scene = packet(3, 3, |bytes| {
        write_scene(bytes, 4, Vec2::splat(10.0));
        write_controlled_object(bytes, 7, 0);
        write_snapshot_header(bytes, 7, 0, 1, Motion::default(), 0);
        write_own_position(bytes, Vec2::splat(2.0));
    });
    scene[4..6].copy_from_slice(&21_u16.to_le_bytes());
    mirror.receive(&scene).unwrap();
    let own = mirror.own_position().map(|own| (own.tick, own.position));
    assert_eq!(own, Some((21, Vec2::splat(2.0))));
    // The first Hello of a new connection is no takeover.
    mirror.reconnect();
    mirror
        .receive(&packet(0, 4, |bytes| hello(22).write(bytes)))
        .unwrap();
    assert_eq!(mirror.takeovers(), 1);
}
