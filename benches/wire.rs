//! Encoding and decoding of messages.

use criterion::Criterion;
use glam::Vec2;
use throng::wire::{ClientMessage, Motion, ServerMessage, WireReader, write_motion};

const MESSAGES: u32 = 1_000;

pub fn bench(criterion: &mut Criterion) {
    let moves: Vec<ClientMessage> = (0..MESSAGES)
        .map(|n| ClientMessage::move_to(Vec2::new(n as f32, 1_000.0 - n as f32), n as u8))
        .collect();
    let mut bytes = Vec::new();
    criterion.bench_function(&format!("wire::encode_move/{MESSAGES}"), |bencher| {
        bencher.iter(|| {
            bytes.clear();
            moves.iter().for_each(|message| message.encode(&mut bytes));
            assert!(bytes.len() > 4 * moves.len());
        });
    });
    let encoded: Vec<Vec<u8>> = moves
        .iter()
        .map(|message| {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            bytes
        })
        .collect();
    criterion.bench_function(&format!("wire::decode_move/{MESSAGES}"), |bencher| {
        bencher.iter(|| {
            for (bytes, message) in encoded.iter().zip(&moves) {
                assert_eq!(ClientMessage::decode(bytes), Ok(*message));
            }
        });
    });
    let motions: Vec<Motion> = (0..MESSAGES)
        .map(|n| {
            Motion::of(
                n as u8,
                Vec2::new(n as f32, 7.5),
                Vec2::new(3.0, -1.5),
                n as u8,
                0,
            )
        })
        .collect();
    let mut packet = Vec::new();
    criterion.bench_function(&format!("wire::encode_motion/{MESSAGES}"), |bencher| {
        bencher.iter(|| {
            packet.clear();
            motions
                .iter()
                .zip(1..)
                .for_each(|(&motion, id)| write_motion(&mut packet, id, 1, motion));
            assert!(packet.len() > 8 * motions.len());
        });
    });
    criterion.bench_function(&format!("wire::decode_motion/{MESSAGES}"), |bencher| {
        bencher.iter(|| {
            let mut reader = WireReader::new(&packet);
            for (&expected, of) in motions.iter().zip(1..) {
                let Ok(ServerMessage::Motion { id, motion, .. }) = ServerMessage::read(&mut reader)
                else {
                    panic!("expected a motion");
                };
                assert_eq!((id, motion), (of, expected));
            }
            assert!(reader.is_empty());
        });
    });
}
