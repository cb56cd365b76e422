//! What the fuzzer found worth keeping, replayed: any bytes are messages or an error, and messages of any lengths come back.

use std::fs;

use crate::packets;
use crate::rig::root;

#[test]
fn the_corpus_is_replayed() {
    let folder = root().join("tests/corpus/packets");
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        packets::check(&fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 20, "{replayed} inputs were found");
}

#[test]
fn inputs_like_those_of_the_corpus_hold_too() {
    let folder = root().join("tests/corpus/packets");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut state = 11_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for path in paths {
        let seed = fs::read(path).unwrap();
        for _ in 0..2_000 {
            let mut input = seed.clone();
            for _ in 0..=random(4) {
                let at = random(input.len() + 1);
                match random(4) {
                    0 => input.truncate(at),
                    1 => input.insert(at, random(256) as u8),
                    2 => input.extend_from_within(at..),
                    _ => {
                        if let Some(byte) = input.get_mut(at) {
                            *byte = [0, 1, 8, 127, 128, 255, random(256) as u8][random(7)];
                        }
                    }
                }
                input.truncate(1 << 12);
            }
            packets::check(&input);
        }
    }
}
