//! Decoding of packets by a mirror.

use super::*;
use crate::wire::{
    Hello, write_controlled_object, write_delta_header, write_despawn, write_motion, write_scene,
    write_snapshot_header, write_unseen_header,
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
    let told = |sequence, at, id| {
        packet_of(Channel::Unreliable, sequence, 1, |bytes| {
            write_motion(bytes, id, 0, walk(at));
        })
    };
    for (sequence, at, held) in [(5, 4, 4), (3, 3, 4), (5, 4, 4), (9, 8, 8), (7, 6, 8)] {
        mirror.receive(&told(sequence, at, 7)).unwrap();
        assert_eq!(mirror.object(7).unwrap().motion, walk(held));
    }
    mirror.receive(&told(10, 9, 99)).unwrap();
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
