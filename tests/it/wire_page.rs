//! Promise: the page of the wire format, the pages of the file formats and the server agree. A decoder that was written from the pages
//! alone reads the capture, the event log and the figures of a run in which connections are lost and resumed, objects change scenes, and
//! simulated connections have low bandwidth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::{TempFolder, root, run_throng};

const HELLO: u8 = 7;
const WELCOME: u8 = 14;
const CLOSED: u8 = 16;
const RESUMED: u8 = 19;

/// Reads numbers as the page describes them.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn le(&mut self, count: usize) -> u64 {
        let bytes = self.take(count).iter().rev();
        bytes.fold(0, |all, &byte| all << 8 | u64::from(byte))
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                assert!(byte != 0 || shift == 7, "a varint is as short as possible");
                return value;
            }
        }
    }
}

/// The part of a message that the checks need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Kind(u8),
    /// A *Snapshot* or a *Delta*, with its object.
    Values(u8, u64),
}

/// The attributes of a message, by number.
type Values<'a> = BTreeMap<u64, Option<&'a [u8]>>;

fn read_values<'a>(bytes: &mut Bytes<'a>) -> Values<'a> {
    let mut values = Values::new();
    for _ in 0..bytes.varint() {
        let (id, length) = (bytes.varint(), bytes.varint());
        let value = (length < 256).then(|| bytes.take(length as usize));
        assert!(
            values.insert(id, value).is_none(),
            "an attribute occurs once in a message"
        );
    }
    values
}

fn read_motion(bytes: &mut Bytes) {
    let (_, flags) = (bytes.byte(), bytes.byte());
    assert!(flags < 8);
    bytes.varint();
    bytes.varint();
    bytes.byte();
    if flags & 2 != 0 {
        assert_ne!(
            bytes.take(4),
            [0; 4],
            "a motion with velocity flag has a velocity"
        );
    }
    bytes.take(usize::from(flags >> 2));
}

/// Reads a message; returns its kind and its attributes.
fn read_message<'a>(bytes: &mut Bytes<'a>) -> (Seen, Values<'a>) {
    let kind = bytes.byte();
    let varints = |bytes: &mut Bytes, count: u8| {
        (0..count).for_each(|_| {
            bytes.varint();
        });
    };
    let mut object = 0;
    let mut values = Values::new();
    match kind {
        1 | 15 => varints(bytes, 3),
        2 | 3 => varints(bytes, 2),
        4 => {
            object = bytes.varint();
            varints(bytes, 2);
            read_motion(bytes);
            values = read_values(bytes);
        }
        5 => {
            object = bytes.varint();
            varints(bytes, 1);
            values = read_values(bytes);
            assert!(!values.is_empty(), "a delta has an attribute");
        }
        6 => {
            varints(bytes, 2);
            read_motion(bytes);
        }
        HELLO => {
            assert_eq!(bytes.varint(), 4, "the version");
            varints(bytes, 4);
        }
        9 => {
            varints(bytes, 2);
            let length = bytes.varint();
            bytes.take(length as usize);
        }
        10 => {
            varints(bytes, 4);
            read_values(bytes);
        }
        11 => {
            varints(bytes, 3);
            assert!(!read_values(bytes).is_empty(), "a delta has an attribute");
        }
        12 => varints(bytes, 3),
        13 => varints(bytes, 1),
        WELCOME => {
            varints(bytes, 1);
            bytes.take(16);
        }
        CLOSED => {
            let reason = bytes.byte();
            assert!((1..=13).contains(&reason));
            if reason == 9 && bytes.byte() == 2 {
                varints(bytes, 2);
            }
        }
        17 => varints(bytes, 2),
        18 => {}
        RESUMED => assert!(bytes.byte() < 2),
        20 => assert!((1..=100).contains(&bytes.byte())),
        21 => {
            bytes.take(8);
        }
        22 => {
            bytes.take(4);
        }
        unknown => panic!("the page has no message of kind {unknown}"),
    }
    let is_snapshot_or_delta = matches!(kind, 4 | 5);
    let seen = if is_snapshot_or_delta {
        Seen::Values(kind, object)
    } else {
        Seen::Kind(kind)
    };
    (seen, values)
}

/// The decoder's state of a client.
#[derive(Default)]
struct Client {
    epoch: Option<u8>,
    /// The fragmented message that is not complete: its length and its bytes so far.
    split: Option<(u64, Vec<u8>)>,
    sequences: [u16; 2],
    /// The values of the snapshots of the current tick.
    snapshots: (u64, BTreeMap<(u64, u64), Vec<u8>>),
    is_closed: bool,
}

/// Counts of the checked cases.
#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    closed_packets: u64,
    resumes: u64,
    snapshots: u64,
    deltas: u64,
    close_records: u64,
}

impl Client {
    fn packet(&mut self, channel: u8, packet: &[u8], counts: &mut Counts) {
        counts.packets += 1;
        assert!(!self.is_closed, "no packet follows the end of a client");
        let mut bytes = Bytes(packet);
        assert_eq!(bytes.byte(), channel, "the flags");
        let epoch = bytes.byte();
        let (sequence, tick, input) = (bytes.le(2) as u16, bytes.le(2), bytes.le(2));
        let expected = &mut self.sequences[usize::from(channel)];
        assert_eq!(
            sequence, *expected,
            "sequence numbers of each channel count from 0"
        );
        *expected = expected.wrapping_add(1);
        if bytes.0.first() == Some(&8) {
            let whole = self.fragment(bytes);
            if let Some(whole) = whole {
                self.messages(&whole, (epoch, tick, input), counts);
            }
        } else {
            assert!(
                channel == 1 || self.split.is_none(),
                "fragments are consecutive"
            );
            self.messages(bytes.0, (epoch, tick, input), counts);
        }
    }

    fn fragment(&mut self, mut bytes: Bytes) -> Option<Vec<u8>> {
        bytes.byte();
        let (_, length, offset) = (bytes.le(2), bytes.varint(), bytes.varint());
        let (whole, held) = self.split.get_or_insert_with(|| (length, Vec::new()));
        assert_eq!((*whole, held.len() as u64), (length, offset));
        held.extend_from_slice(bytes.0);
        let is_whole = held.len() as u64 == length;
        is_whole.then(|| self.split.take().map(|(_, held)| held))?
    }

    fn messages(
        &mut self,
        messages: &[u8],
        (epoch, tick, input): (u8, u64, u64),
        counts: &mut Counts,
    ) {
        if self.snapshots.0 != tick {
            self.snapshots = (tick, BTreeMap::new());
        }
        let mut bytes = Bytes(messages);
        let mut kinds = Vec::new();
        while !bytes.0.is_empty() {
            let (seen, values) = read_message(&mut bytes);
            match seen {
                Seen::Values(4, object) => {
                    counts.snapshots += 1;
                    for (id, value) in values {
                        let value = value.expect("a snapshot removes nothing");
                        self.snapshots.1.insert((object, id), value.to_vec());
                    }
                }
                Seen::Values(_, object) => {
                    counts.deltas += 1;
                    for (id, value) in values {
                        let known = self.snapshots.1.get(&(object, id));
                        let is_repeated = known.map(Vec::as_slice) == value && value.is_some();
                        assert!(!is_repeated, "a delta repeats {id} of object {object}");
                    }
                }
                Seen::Kind(kind) => kinds.push(kind),
            }
        }
        if kinds.contains(&RESUMED) {
            counts.resumes += 1;
            let expected: Vec<u8> = kinds
                .iter()
                .copied()
                .filter(|kind| [HELLO, RESUMED, WELCOME].contains(kind))
                .collect();
            assert_eq!(expected, [HELLO, RESUMED, WELCOME], "the reply to Resume");
            assert_eq!(
                self.epoch, None,
                "Hello is in the first packet of a connection"
            );
            // The session had a scene, whose epoch is 1 or more, or no scene yet.
            assert!(epoch >= 1, "a resume counts as an epoch");
        }
        if kinds.contains(&CLOSED) {
            counts.closed_packets += 1;
            assert_eq!(input, 0, "the packet with Closed names no input");
            assert_eq!(kinds.last(), Some(&CLOSED), "no message follows");
        }
        self.epoch = Some(epoch);
    }
}

/// Decodes a capture as the page of `CAPTURE_MAGIC` describes it.
fn decode_capture(capture: &[u8]) -> Counts {
    let mut bytes = Bytes(capture);
    assert_eq!(bytes.take(9), b"TCAPTURE\x01");
    let mut counts = Counts::default();
    let mut clients: BTreeMap<u64, Client> = BTreeMap::new();
    while !bytes.0.is_empty() {
        let (kind, client, length) = (bytes.byte(), bytes.le(4), bytes.le(4));
        let content = bytes.take(length as usize);
        let client = clients.entry(client).or_default();
        if kind == 2 {
            counts.close_records += 1;
            assert!(content.len() == 1 && (1..=13).contains(&content[0]));
            assert!(
                !std::mem::replace(&mut client.is_closed, true),
                "a client ends once"
            );
        } else {
            client.packet(kind, content, &mut counts);
        }
    }
    counts
}

/// The fields of each event type, from the page.
fn documented_events() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root().join("docs/event_log.md")).unwrap();
    let names = |cell: &str| -> Vec<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let mut events = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        let fields: BTreeSet<String> = names(cells[2]).into_iter().collect();
        for kind in names(cells[1]) {
            events.insert(kind, fields.clone());
        }
    }
    events
}

/// Checks every line of an event log: its fields are those on the page, and no object occurs before its `spawn`. Returns the event types
/// that occurred, and the number of objects that changed scenes within one tick.
fn check_events(log: &str) -> (BTreeSet<String>, u64) {
    let documented = documented_events();
    let (mut types, mut standing) = (BTreeSet::new(), BTreeSet::new());
    let (mut despawns, mut moves) = ((0, 0), 0);
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = event["type"].as_str().unwrap();
        let mut fields: BTreeSet<String> = event.as_object().unwrap().keys().cloned().collect();
        for common in ["type", "tick", "scene"] {
            assert!(fields.remove(common), "{line}");
        }
        assert_eq!(documented.get(kind), Some(&fields), "{line}");
        types.insert(kind.to_owned());
        let (tick, scene) = (event["tick"].as_u64(), event["scene"].as_u64());
        match kind {
            "spawn" => {
                assert!(event["viewable"].is_boolean() && event["viewer"].is_boolean());
                assert!(standing.insert((scene, event["id"].as_u64())), "{line}");
                moves += u64::from(despawns.0 == tick.unwrap_or_default() && despawns.1 > 0);
            }
            "despawn" => {
                assert!(standing.remove(&(scene, event["id"].as_u64())), "{line}");
                let tick = tick.unwrap_or_default();
                despawns = if despawns.0 == tick {
                    (tick, despawns.1 + 1)
                } else {
                    (tick, 1)
                };
            }
            "team" | "hide" | "cap" | "cell" | "pos" => {
                assert!(standing.contains(&(scene, event["id"].as_u64())), "{line}");
            }
            "enter" => {
                for end in ["viewer", "target"] {
                    assert!(standing.contains(&(scene, event[end].as_u64())), "{line}");
                }
            }
            _ => {}
        }
    }
    (types, moves)
}

#[test]
fn capture_log_and_figures_agree_with_their_pages() {
    let folder = TempFolder::new();
    let [capture, events, csv] = ["packets", "events", "csv"].map(|name| folder.path(name));
    let run = run_throng(&[
        "run",
        "churn",
        "--duration",
        "12s",
        "--threads",
        "2",
        "--json",
        "--capture",
        &capture,
        "--events",
        &events,
        "--positions",
        "--csv",
        &csv,
    ]);
    assert!(run.code < 2, "{}", run.err);
    let counts = decode_capture(&fs::read(&capture).unwrap());
    let counts_text = format!("{counts:?}");
    assert!(
        counts.resumes > 0 && counts.closed_packets > 0 && counts.close_records > 0,
        "{counts_text}"
    );
    assert!(
        counts.snapshots > 1_000 && counts.deltas > 1_000,
        "{counts_text}"
    );
    // Every tick counts the packets sent in it, and the sum is complete.
    let figures = fs::read_to_string(&csv).unwrap();
    let mut lines = figures.lines();
    let column = lines
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "packets");
    let column = column.expect("the figures have packets");
    let counted = lines.map(|line| line.split(',').nth(column).unwrap().parse::<u64>().unwrap());
    assert_eq!(counted.sum::<u64>(), counts.packets);
    let (types, moves) = check_events(&fs::read_to_string(&events).unwrap());
    for needed in [
        "spawn",
        "despawn",
        "cell",
        "enter",
        "leave",
        "pos",
        "resume",
        "connection_lost",
    ] {
        assert!(types.contains(needed), "{needed} did not occur: {types:?}");
    }
    assert!(moves > 0, "no object changed its scene");
}
