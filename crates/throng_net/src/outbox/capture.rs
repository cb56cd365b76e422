//! Writes packets to a file, and reads them back: [`CAPTURE_MAGIC`] describes the format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use throng_protocol::wire::CloseReason;
use throng_protocol::wire::{Channel, ClientId, WireError, WireReader};
use tracing::warn;

use super::sink::PacketSink;

/// The start of a capture: the eight bytes `TCAPTURE`, and the version of the format, 1.
///
/// Records follow until the end of the file. All integers are little endian.
///
/// | bytes | content |
/// |---|---|
/// | 0 | kind: 0 a packet of the reliable channel, 1 a packet of the unreliable channel, 2 a client was closed |
/// | 1–4 | the client, [`ClientId`] |
/// | 5–8 | length of what follows, in bytes |
/// | 9– | a packet: its bytes, with the header, as [`throng_protocol::wire`] documents; a closed client: the number of the [`CloseReason`], 1 byte, 1 to 13, as in *Closed* |
///
/// Records are in the order in which packets leave the outbox, before the transport or a simulated network: a packet that is lost later is
/// in the file. The packets of a client and channel are in order. A packet that was delayed by a simulated bandwidth limit is
/// among those of the tick in which it was sent; its header has the tick in which it was created. For a client that received no packets
/// there is only the record of its end. Nothing follows the record of a client's end.
pub const CAPTURE_MAGIC: [u8; 9] = *b"TCAPTURE\x01";

const CLOSED: u8 = 2;

/// Writes packets to a file.
#[derive(Debug)]
pub struct CaptureSink<W: Write> {
    writer: W,
    errors: u64,
}

impl CaptureSink<BufWriter<File>> {
    /// Creates a file, or overwrites an existing one.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Write> CaptureSink<W> {
    /// Writes to any writer.
    ///
    /// # Errors
    /// If the magic bytes cannot be written.
    pub fn new(mut to: W) -> io::Result<Self> {
        to.write_all(&CAPTURE_MAGIC)?;
        Ok(Self {
            writer: to,
            errors: 0,
        })
    }

    fn write_record(&mut self, kind: u8, client: ClientId, bytes: &[u8]) {
        let mut head = [0; 9];
        head[0] = kind;
        head[1..5].copy_from_slice(&client.0.to_le_bytes());
        head[5..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let written = self
            .writer
            .write_all(&head)
            .and_then(|()| self.writer.write_all(bytes));
        self.count_error(written);
    }

    fn count_error(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.errors += 1;
            if self.errors.is_power_of_two() {
                warn!(%error, errors = self.errors, "writing the capture failed: packets are missing in it");
            }
        }
    }
}

impl<W: Write + Send + Sync> PacketSink for CaptureSink<W> {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        self.write_record(channel.bit(), client, packet);
    }

    fn close(&mut self, client: ClientId, reason: CloseReason) {
        self.write_record(CLOSED, client, &[reason.number()]);
    }

    fn flush(&mut self) {
        let flushed = self.writer.flush();
        self.count_error(flushed);
    }

    fn errors(&self) -> u64 {
        self.errors
    }
}

/// A record of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureRecord<'a> {
    /// A packet that was sent: the client, the channel, and its bytes with the header.
    Packet(ClientId, Channel, &'a [u8]),
    /// A client was closed.
    Closed(ClientId, CloseReason),
}

/// The records of a capture, in order. An error is the last item.
///
/// # Errors
/// [`WireError`] if the bytes are not a valid capture; a truncated one ends with it.
pub fn read_capture(bytes: &[u8]) -> impl Iterator<Item = Result<CaptureRecord<'_>, WireError>> {
    let mut reader = WireReader::new(bytes);
    let mut state = Some(CAPTURE_MAGIC);
    let mut is_broken = false;
    std::iter::from_fn(move || {
        if is_broken || (state.is_none() && reader.is_empty()) {
            return None;
        }
        let record = state
            .take()
            .map_or(Ok(()), |magic| read_magic(&mut reader, &magic))
            .and_then(|()| {
                if reader.is_empty() {
                    return Ok(None);
                }
                read_record(&mut reader).map(Some)
            });
        is_broken = record.is_err();
        record.transpose()
    })
}

fn read_magic(reader: &mut WireReader, magic: &[u8]) -> Result<(), WireError> {
    let found = reader.bytes(magic.len())?;
    match found.iter().zip(magic).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(WireError::UnknownKind {
            at,
            found: found[at],
        }),
    }
}

fn read_record<'a>(reader: &mut WireReader<'a>) -> Result<CaptureRecord<'a>, WireError> {
    let at = reader.at();
    let head = reader.bytes(9)?;
    let word = |from: usize| {
        u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
    };
    let client = ClientId(word(1));
    let bytes = reader.bytes(word(5) as usize)?;
    Ok(match head[0] {
        0 => CaptureRecord::Packet(client, Channel::Reliable, bytes),
        1 => CaptureRecord::Packet(client, Channel::Unreliable, bytes),
        CLOSED => {
            let number = WireReader::new(bytes).byte()?;
            let reason = CloseReason::from_number(number).ok_or(WireError::UnknownKind {
                at: at + 9,
                found: number,
            })?;
            CaptureRecord::Closed(client, reason)
        }
        found => return Err(WireError::UnknownKind { at, found }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capture() -> Vec<u8> {
        let mut sink = CaptureSink::new(Vec::new()).unwrap();
        sink.deliver(ClientId(7), Channel::Reliable, b"first");
        sink.deliver(ClientId(300), Channel::Unreliable, b"");
        sink.close(ClientId(7), CloseReason::Replaced);
        sink.writer
    }

    #[test]
    fn capture_reads_back() {
        let capture = capture();
        let read: Result<Vec<_>, _> = read_capture(&capture).collect();
        let expected = [
            CaptureRecord::Packet(ClientId(7), Channel::Reliable, b"first"),
            CaptureRecord::Packet(ClientId(300), Channel::Unreliable, b""),
            CaptureRecord::Closed(ClientId(7), CloseReason::Replaced),
        ];
        assert_eq!(read.unwrap(), expected);
        let ends: Vec<usize> = (0..capture.len())
            .filter(|&cut| read_capture(&capture[..cut]).all(|record| record.is_ok()))
            .collect();
        // A capture may end after any record.
        assert_eq!(ends, [9, 23, 32]);
    }

    #[test]
    fn capture_write_errors_are_counted() {
        let mut room = [0; 12];
        let mut sink = CaptureSink::new(&mut room[..]).unwrap();
        sink.deliver(ClientId(1), Channel::Reliable, b"x");
        sink.deliver(ClientId(1), Channel::Reliable, b"x");
        assert_eq!(sink.errors(), 2);
    }

    proptest! {
        #![proptest_config(draws!())]

        #[test]
        fn any_bytes_read_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let broken = [&CAPTURE_MAGIC[..], &bytes].concat();
            for bytes in [&bytes, &broken] {
                let _ = read_capture(bytes).count();
            }
        }
    }
}
