//! The messages about party members, and their bytes: kind of the bus, version, kind, then the entries. Numbers are in little endian.

use throng_core::ids::{PartyId, PlayerId};

const PARTY_VALUES_KIND: u8 = 40;

/// Raise it when the bytes change. Nodes ignore messages with another version.
const VERSION: u8 = 1;

const STATUS: u8 = 0;
const REQUEST: u8 = 1;
const VALUES: u8 = 2;
const GONE: u8 = 3;

/// The length of a removed value.
const REMOVED: u16 = u16::MAX;

/// The longest value of an attribute, and the maximum number of attributes, as in messages to clients.
const VALUE_BYTES_MAX: usize = 255;
const VALUES_MAX: usize = 256;

/// A message is complete when it has this many bytes: with one member more it is still within the limit of the bus.
pub(super) const MESSAGE_BYTES: usize = 32 * 1_024;

/// A member of a party on the node of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberStatus {
    pub party: PartyId,
    pub player: PlayerId,
    /// The epoch with which it has arrived on its node.
    pub epoch: u64,
    /// The number of its newest values.
    pub number: u32,
}

/// Values of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberValues {
    pub status: MemberStatus,
    /// The number of the values that this changes; `None` if these are all values.
    pub base: Option<u32>,
    pub kind: u16,
    /// By ascending number of the attribute; `None` for a removed value.
    pub values: Vec<(u16, Option<Vec<u8>>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartyMessage {
    Status(Vec<MemberStatus>),
    /// All values of these players are needed.
    Request(Vec<PlayerId>),
    Values(Vec<MemberValues>),
    /// The players have left the node or their parties, with their epochs. Not sent for those that move.
    Gone(Vec<(PlayerId, u64)>),
}

/// Why a message is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidPartyMessage {
    /// Another format.
    Version,
    Malformed,
}

impl PartyMessage {
    /// Encodes it, in several messages if it is long.
    pub fn to_messages(&self) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        match self {
            Self::Status(all) => write_all(&mut messages, STATUS, all, |bytes, status| {
                write_status(bytes, status);
            }),
            Self::Request(all) => write_all(&mut messages, REQUEST, all, |bytes, player| {
                bytes.extend_from_slice(&player.0.to_le_bytes());
            }),
            Self::Values(all) => write_all(&mut messages, VALUES, all, write_values),
            Self::Gone(all) => write_all(&mut messages, GONE, all, |bytes, (player, epoch)| {
                bytes.extend_from_slice(&player.0.to_le_bytes());
                bytes.extend_from_slice(&epoch.to_le_bytes());
            }),
        }
        messages
    }

    /// Reads a message; `None` if the bytes are another kind of message.
    pub fn from_bytes(bytes: &[u8]) -> Option<Result<Self, InvalidPartyMessage>> {
        let (&PARTY_VALUES_KIND, rest) = bytes.split_first()? else {
            return None;
        };
        let Some((&VERSION, rest)) = rest.split_first() else {
            return Some(Err(InvalidPartyMessage::Version));
        };
        let message = rest.split_first().and_then(|(&kind, entries)| {
            let mut reader = FieldReader(entries);
            match kind {
                STATUS => read_all(&mut reader, read_status).map(Self::Status),
                REQUEST => read_all(&mut reader, |it| it.player()).map(Self::Request),
                VALUES => read_all(&mut reader, read_values).map(Self::Values),
                GONE => {
                    let read = |it: &mut FieldReader| Some((it.player()?, it.u64()?));
                    read_all(&mut reader, read).map(Self::Gone)
                }
                _ => None,
            }
        });
        Some(message.ok_or(InvalidPartyMessage::Malformed))
    }
}

fn write_all<T>(
    messages: &mut Vec<Vec<u8>>,
    kind: u8,
    entries: &[T],
    write: impl Fn(&mut Vec<u8>, &T),
) {
    for entry in entries {
        let is_full = |bytes: &Vec<u8>| bytes.len() >= MESSAGE_BYTES;
        if messages.last().is_none_or(is_full) {
            messages.push(vec![PARTY_VALUES_KIND, VERSION, kind]);
        }
        if let Some(bytes) = messages.last_mut() {
            write(bytes, entry);
        }
    }
}

fn write_status(bytes: &mut Vec<u8>, status: &MemberStatus) {
    bytes.extend_from_slice(&status.party.0.to_le_bytes());
    bytes.extend_from_slice(&status.player.0.to_le_bytes());
    bytes.extend_from_slice(&status.epoch.to_le_bytes());
    bytes.extend_from_slice(&status.number.to_le_bytes());
}

fn write_values(bytes: &mut Vec<u8>, of: &MemberValues) {
    write_status(bytes, &of.status);
    bytes.push(u8::from(of.base.is_some()));
    bytes.extend_from_slice(&of.base.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&of.kind.to_le_bytes());
    bytes.extend_from_slice(&(of.values.len() as u16).to_le_bytes());
    for (id, value) in &of.values {
        bytes.extend_from_slice(&id.to_le_bytes());
        let length = value.as_ref().map_or(REMOVED, |value| value.len() as u16);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(value.as_deref().unwrap_or(&[]));
    }
}

/// Reads entries up to the end. At least one.
fn read_all<T>(
    reader: &mut FieldReader,
    read: impl Fn(&mut FieldReader) -> Option<T>,
) -> Option<Vec<T>> {
    let mut all = vec![read(reader)?];
    while !reader.0.is_empty() {
        all.push(read(reader)?);
    }
    Some(all)
}

fn read_status(reader: &mut FieldReader) -> Option<MemberStatus> {
    Some(MemberStatus {
        party: PartyId(reader.u32()?),
        player: reader.player()?,
        epoch: reader.u64()?,
        number: reader.u32()?,
    })
}

fn read_values(reader: &mut FieldReader) -> Option<MemberValues> {
    let status = read_status(reader)?;
    let [has_base] = reader.take()?;
    let base = reader.u32()?;
    let kind = reader.u16()?;
    let count = usize::from(reader.u16()?);
    if has_base > 1 || count > VALUES_MAX {
        return None;
    }
    let is_full = has_base == 0;
    let mut values: Vec<(u16, Option<Vec<u8>>)> = Vec::with_capacity(count);
    for _ in 0..count {
        let (id, length) = (reader.u16()?, reader.u16()?);
        let value = match length {
            REMOVED if is_full => return None,
            REMOVED => None,
            _ => Some(reader.bytes(usize::from(length))?.to_vec()),
        };
        let is_long = value.as_ref().is_some_and(|it| it.len() > VALUE_BYTES_MAX);
        if is_long || values.last().is_some_and(|(before, _)| *before >= id) {
            return None;
        }
        values.push((id, value));
    }
    Some(MemberValues {
        status,
        base: (!is_full).then_some(base),
        kind,
        values,
    })
}

/// Reads fields from the front of bytes.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn player(&mut self) -> Option<PlayerId> {
        self.u64().map(PlayerId)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::bus::MESSAGE_BYTES_MAX;

    fn status(player: u64) -> MemberStatus {
        MemberStatus {
            party: PartyId(0x0102_0304),
            player: PlayerId(player),
            epoch: 1 << 40,
            number: u32::MAX,
        }
    }

    fn all_kinds() -> [PartyMessage; 5] {
        let change = MemberValues {
            status: status(1),
            base: Some(7),
            kind: 9,
            values: vec![
                (2, Some(vec![1, 2, 3])),
                (300, None),
                (301, Some(Vec::new())),
            ],
        };
        let full = MemberValues {
            base: None,
            values: vec![(2, Some(vec![7; VALUE_BYTES_MAX]))],
            ..change.clone()
        };
        [
            PartyMessage::Status(vec![status(u64::MAX), status(3)]),
            PartyMessage::Request(vec![PlayerId(4), PlayerId(5)]),
            PartyMessage::Values(vec![change, full]),
            PartyMessage::Values(vec![MemberValues {
                status: status(1),
                base: None,
                kind: 0,
                values: Vec::new(),
            }]),
            PartyMessage::Gone(vec![(PlayerId(4), 8)]),
        ]
    }

    #[test]
    fn messages_survive_their_bytes_and_shorter_ones_are_invalid() {
        for message in all_kinds() {
            let messages = message.to_messages();
            let [bytes] = &messages[..] else {
                panic!("{} messages", messages.len());
            };
            assert_eq!(PartyMessage::from_bytes(bytes), Some(Ok(message)));
            for length in 1..bytes.len() {
                let read = PartyMessage::from_bytes(&bytes[..length]);
                // A message may end after each of its entries.
                if let Some(Ok(read)) = read {
                    assert_eq!(read.to_messages(), [&bytes[..length]]);
                }
            }
            let mut other = bytes.clone();
            other[1] = VERSION + 1;
            let refused = Some(Err(InvalidPartyMessage::Version));
            assert_eq!(PartyMessage::from_bytes(&other), refused);
            other[0] = PARTY_VALUES_KIND + 1;
            assert_eq!(PartyMessage::from_bytes(&other), None);
        }
        assert_eq!(PartyMessage::from_bytes(&[]), None);
        let no_entry = [PARTY_VALUES_KIND, VERSION, STATUS];
        let malformed = Some(Err(InvalidPartyMessage::Malformed));
        assert_eq!(PartyMessage::from_bytes(&no_entry), malformed);
    }

    #[test]
    fn values_twice_or_too_long_or_wrongly_removed_are_invalid() {
        let of = |base, values| {
            let status = status(1);
            let values = MemberValues {
                status,
                base,
                kind: 0,
                values,
            };
            let messages = PartyMessage::Values(vec![values]).to_messages();
            PartyMessage::from_bytes(&messages[0])
        };
        let malformed = Some(Err(InvalidPartyMessage::Malformed));
        assert_eq!(
            of(None, vec![(1, Some(vec![])), (1, Some(vec![]))]),
            malformed
        );
        assert_eq!(of(None, vec![(1, Some(vec![0; 256]))]), malformed);
        assert_eq!(of(None, vec![(1, None)]), malformed);
        assert!(matches!(of(Some(1), vec![(1, None)]), Some(Ok(_))));
        let many = (0..257).map(|id| (id, None)).collect();
        assert_eq!(of(Some(1), many), malformed);
    }

    #[test]
    fn changed_bytes_never_panic_and_what_is_read_is_written_back() {
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        for _ in 0..50_000 {
            let all = all_kinds();
            let message = &all[rng.random_range(0..all.len())];
            let mut bytes = message.to_messages().remove(0);
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(2..bytes.len());
                bytes[at] = rng.random();
            }
            bytes.truncate(rng.random_range(2..=bytes.len()));
            let Some(Ok(read)) = PartyMessage::from_bytes(&bytes) else {
                continue;
            };
            let again = read.to_messages();
            assert_eq!(PartyMessage::from_bytes(&again[0]), Some(Ok(read)));
        }
    }

    #[test]
    fn long_messages_are_divided() {
        let longest = MemberValues {
            status: status(1),
            base: None,
            kind: 0,
            values: (0..256).map(|id| (id, Some(vec![1; 255]))).collect(),
        };
        let messages = PartyMessage::Values(vec![longest; 3]).to_messages();
        assert!(messages.iter().all(|bytes| bytes.len() < MESSAGE_BYTES_MAX));
        assert_eq!(messages.len(), 3);
        let many = PartyMessage::Status((0..5_000).map(status).collect());
        let messages = many.to_messages();
        assert!(
            messages
                .iter()
                .all(|bytes| bytes.len() < MESSAGE_BYTES + 100)
        );
        let mut read = Vec::new();
        for bytes in &messages {
            let Some(Ok(PartyMessage::Status(part))) = PartyMessage::from_bytes(bytes) else {
                panic!("no status");
            };
            read.extend(part);
        }
        assert_eq!(PartyMessage::Status(read), many);
    }
}
