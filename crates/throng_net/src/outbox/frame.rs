//! The frames that a ring carries to a sender thread: the tick's shared bytes once, then updates that refer to them.
//!
//! A frame is a kind byte and its content. *Shared*: the shared bytes, valid until the next such frame. *Updates*: the tick (8 bytes), then
//! updates: client (4), epoch (1), reason to close or 0 (1), input (2), number of reliable and of unreliable spans (4 each), length of the
//! private bytes (4), the spans (8 bytes each), the private bytes. All integers are little endian. Only this process reads frames.

use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{ClientId, WireReader};

use super::batch::{ClientUpdate, ClientUpdateHeader, MessageSpan, SPAN_BYTES};

const SHARED: u8 = 0;
const UPDATES: u8 = 1;

/// Bytes of an update before its spans.
pub(super) const UPDATE_HEADER_BYTES: usize = 20;

/// A frame that is being read.
pub(super) enum Frame<'a> {
    /// New shared bytes.
    Shared(&'a [u8]),
    /// Updates of a tick.
    Updates {
        /// The tick.
        tick: u64,
        /// The updates, one after the other.
        lines: WireReader<'a>,
    },
}

/// An update that is being read.
pub(super) struct FrameUpdate<'a> {
    pub header: ClientUpdateHeader,
    reliable: &'a [u8],
    unreliable: &'a [u8],
    private: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame. `None` if it is invalid, which is a bug.
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let mut reader = WireReader::new(frame);
        Some(match reader.byte().ok()? {
            SHARED => Self::Shared(reader.remaining()),
            UPDATES => Self::Updates {
                tick: u64::from_le_bytes(bytes(&mut reader)?),
                lines: reader,
            },
            _ => return None,
        })
    }
}

impl<'a> FrameUpdate<'a> {
    /// Reads the next update; `None` at the end.
    pub fn read(lines: &mut WireReader<'a>) -> Option<Self> {
        let mut word = || bytes(lines).map(u32::from_le_bytes);
        let client = ClientId(word()?);
        let [epoch, close, input @ ..] = word()?.to_le_bytes();
        let [reliable, unreliable, own] = [word()?, word()?, word()?].map(|count| count as usize);
        Some(Self {
            header: ClientUpdateHeader {
                client,
                epoch,
                input: u16::from_le_bytes(input),
                close: CloseReason::from_number(close),
            },
            reliable: lines.bytes(reliable * SPAN_BYTES).ok()?,
            unreliable: lines.bytes(unreliable * SPAN_BYTES).ok()?,
            private: lines.bytes(own).ok()?,
        })
    }

    /// The messages of the reliable channel.
    pub fn reliable<'m>(&'m self, shared: &'m [u8]) -> impl Iterator<Item = &'m [u8]> {
        spans(self.reliable).map(|span| span.bytes(shared, self.private))
    }

    /// The messages of the unreliable channel.
    pub fn unreliable<'m>(&'m self, shared: &'m [u8]) -> impl Iterator<Item = &'m [u8]> {
        spans(self.unreliable).map(|span| span.bytes(shared, self.private))
    }
}

fn bytes<const COUNT: usize>(reader: &mut WireReader) -> Option<[u8; COUNT]> {
    reader.bytes(COUNT).ok()?.try_into().ok()
}

fn spans(bytes: &[u8]) -> impl Iterator<Item = MessageSpan> {
    let (spans, _) = bytes.as_chunks::<SPAN_BYTES>();
    spans.iter().map(|&bytes| MessageSpan::from_bytes(bytes))
}

/// Starts a frame of shared bytes.
pub(super) fn write_shared(frame: &mut Vec<u8>, shared: &[u8]) {
    frame.clear();
    frame.push(SHARED);
    frame.extend_from_slice(shared);
}

/// Starts a frame of updates.
pub(super) fn begin_updates(frame: &mut Vec<u8>, tick: u64) {
    frame.clear();
    frame.push(UPDATES);
    frame.extend_from_slice(&tick.to_le_bytes());
}

/// Appends an update unchanged.
pub(super) fn write_update(frame: &mut Vec<u8>, line: ClientUpdate) {
    let counts = [
        line.reliable.len(),
        line.unreliable.len(),
        line.private.len(),
    ];
    write_header(frame, line.header, counts);
    write_spans(frame, line.reliable);
    write_spans(frame, line.unreliable);
    frame.extend_from_slice(line.private);
}

/// Appends an update with some of its reliable messages, as private messages.
pub(super) fn write_reliable(frame: &mut Vec<u8>, head: ClientUpdateHeader, messages: &[&[u8]]) {
    let own: usize = messages.iter().map(|message| message.len()).sum();
    write_header(frame, head, [messages.len(), 0, own]);
    let mut end = 0;
    for message in messages {
        let start = end;
        end += message.len();
        frame.extend_from_slice(&MessageSpan::private(start, end).to_bytes());
    }
    for message in messages {
        frame.extend_from_slice(message);
    }
}

fn write_header(frame: &mut Vec<u8>, head: ClientUpdateHeader, counts: [usize; 3]) {
    let [c0, c1, c2, c3] = head.client.0.to_le_bytes();
    let [i0, i1] = head.input.to_le_bytes();
    let close = head.close.map_or(0, CloseReason::number);
    frame.extend_from_slice(&[c0, c1, c2, c3, head.epoch, close, i0, i1]);
    for count in counts {
        frame.extend_from_slice(&(count as u32).to_le_bytes());
    }
}

fn write_spans(frame: &mut Vec<u8>, spans: &[MessageSpan]) {
    let start = frame.len();
    frame.resize(start + spans.len() * SPAN_BYTES, 0);
    let (places, _) = frame[start..].as_chunks_mut::<SPAN_BYTES>();
    for (place, span) in places.iter_mut().zip(spans) {
        *place = span.to_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::batch::BatchPart;

    #[test]
    fn client_updates_read_back() {
        let shared = b"shared";
        let mut part = BatchPart::default();
        for client in [7, 8] {
            part.begin_client(ClientId(client), 3, 0x0201);
            part.reliable(MessageSpan::shared(0, 6));
            part.write_reliable(|bytes| bytes.extend(b"own"));
            part.unreliable(MessageSpan::shared(1, 3));
            part.close(CloseReason::SlowConsumer);
        }
        part.end_client();
        let mut frame = Vec::new();
        begin_updates(&mut frame, 99);
        part.updates()
            .for_each(|line| write_update(&mut frame, line));
        let head = part.update(0).unwrap().header;
        write_reliable(&mut frame, head, &[b"one", b"two"]);
        let Some(Frame::Updates {
            tick: 99,
            mut lines,
        }) = Frame::read(&frame)
        else {
            panic!("lines were written");
        };
        for client in [7, 8] {
            let line = FrameUpdate::read(&mut lines).unwrap();
            assert_eq!(
                line.header,
                ClientUpdateHeader {
                    client: ClientId(client),
                    ..head
                }
            );
            let reliable: Vec<&[u8]> = line.reliable(shared).collect();
            assert_eq!(reliable, [&b"shared"[..], b"own"]);
            assert_eq!(line.unreliable(shared).collect::<Vec<_>>(), [b"ha"]);
        }
        let line = FrameUpdate::read(&mut lines).unwrap();
        assert_eq!(line.reliable(&[]).collect::<Vec<_>>(), [b"one", b"two"]);
        assert_eq!(line.unreliable(&[]).count(), 0);
        assert!(FrameUpdate::read(&mut lines).is_none());
        for cut in 10..frame.len() {
            let Some(Frame::Updates { mut lines, .. }) = Frame::read(&frame[..cut]) else {
                panic!("the kind and the tick are there");
            };
            while FrameUpdate::read(&mut lines).is_some() {}
        }
        assert!(Frame::read(&[9]).is_none() && Frame::read(&[]).is_none());
    }
}
