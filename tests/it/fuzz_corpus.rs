//! Replays the fuzzer's corpus: any bytes are messages or an error, and messages of any length round-trip.

use std::fs;

use crate::harness::root;
use crate::{endpoints, handshakes, inbound, packets, proxy_headers, store_rows, ticket_scripts};

/// Targets: the name, the check, and the number of mutations per corpus input.
const TARGETS: [(&str, fn(&[u8]), usize); 7] = [
    ("packets", packets::check, 2_000),
    ("inbound", inbound::check, 2_000),
    ("endpoints", endpoints::check, 50),
    ("handshakes", handshakes::check, 50),
    ("proxy_headers", proxy_headers::check, 2_000),
    ("tickets", ticket_scripts::check, 50),
    ("store_rows", store_rows::check, 10),
];

/// The corpus inputs of a target, sorted by name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = root().join("tests/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn fuzz_corpus_is_replayed() {
    for (target, check, _) in TARGETS {
        let inputs = corpus(target);
        inputs.iter().for_each(|input| check(input));
        assert!(inputs.len() >= 20, "{} inputs were found", inputs.len());
    }
}

#[test]
fn mutated_corpus_inputs_pass() {
    let mut state = 11_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for (target, check, alike) in TARGETS {
        for seed in corpus(target) {
            for _ in 0..alike {
                check(&mutated(&seed, &mut random));
            }
        }
    }
}

fn mutated(seed: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut input = seed.to_vec();
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
    input
}
