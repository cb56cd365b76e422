//! The bytes of a piece: several messages of several clients.
//!
//! | bytes | contents |
//! |---|---|
//! | 0 | [`PIECE_KIND`] |
//! | 1–8 | the id of the link at the sender |
//! | 9–16 | the id of the link at the receiver; 0 if the sender does not know it yet |
//! | 17–24 | number of the first reliable message in this piece |
//! | 25–32 | number of reliable messages of the receiver that have arrived |
//! | 33 | 0; 1 if messages are missing; 2 if the receiver has to reply |
//! | 34– | for each message its client in 4 bytes, its length in 4 bytes with the highest bit set if it is reliable, the time that it has waited at the sender in 2 bytes, and its bytes |
//!
//! Numbers are little endian.

/// The first byte of a piece. A [`BusMessage`](crate::BusMessage), a message to players and a presence have smaller ones.
pub(super) const PIECE_KIND: u8 = 64;

/// Length of the header of a piece, and of the header of a message in it, in bytes.
pub(super) const PIECE_HEADER_BYTES: usize = 34;
pub(super) const ENTRY_HEADER_BYTES: usize = 10;

/// The longest time that a message is said to have waited, in milliseconds.
pub(super) const WAITED_MS_MAX: u16 = 1_000;

const RELIABLE: u32 = 1 << 31;

/// A client, by the number that its gateway has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkClient(
    /// The number.
    pub u32,
);

/// The header of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceHeader {
    pub from: u64,
    pub to: u64,
    pub first: u64,
    pub acknowledged: u64,
    pub wish: PieceWish,
}

/// The request of the sender of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceWish {
    Nothing,
    /// Repeat the messages after the acknowledged ones.
    Missing,
    /// Reply with any piece.
    Reply,
}

/// A message in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceEntry<'b> {
    pub client: LinkClient,
    pub is_reliable: bool,
    /// The time from its arrival at the sender until the sender sent this piece, in milliseconds: at most [`WAITED_MS_MAX`]. The clocks of the
    /// two ends may differ.
    pub waited_ms: u16,
    pub bytes: &'b [u8],
}

pub(super) fn write_header(header: PieceHeader, piece: &mut Vec<u8>) {
    piece.push(PIECE_KIND);
    piece.extend_from_slice(&header.from.to_le_bytes());
    piece.extend_from_slice(&header.to.to_le_bytes());
    piece.extend_from_slice(&header.first.to_le_bytes());
    piece.extend_from_slice(&header.acknowledged.to_le_bytes());
    piece.push(header.wish as u8);
}

pub(super) fn write_entry(entry: PieceEntry<'_>, piece: &mut Vec<u8>) {
    let flag = if entry.is_reliable { RELIABLE } else { 0 };
    piece.extend_from_slice(&entry.client.0.to_le_bytes());
    piece.extend_from_slice(&(entry.bytes.len() as u32 | flag).to_le_bytes());
    piece.extend_from_slice(&entry.waited_ms.to_le_bytes());
    piece.extend_from_slice(entry.bytes);
}

/// Reads a whole piece; `None` if the bytes are invalid.
pub(super) fn read(piece: &[u8]) -> Option<(PieceHeader, Vec<PieceEntry<'_>>)> {
    let (header, mut rest) = piece.split_first_chunk::<PIECE_HEADER_BYTES>()?;
    let number = |at: usize| {
        let field = header[at..].first_chunk()?;
        Some(u64::from_le_bytes(*field))
    };
    let wish = match header[33] {
        0 => PieceWish::Nothing,
        1 => PieceWish::Missing,
        2 => PieceWish::Reply,
        _ => return None,
    };
    if header[0] != PIECE_KIND {
        return None;
    }
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (fields, after) = rest.split_first_chunk::<ENTRY_HEADER_BYTES>()?;
        let client = u32::from_le_bytes(*fields.first_chunk()?);
        let length = u32::from_le_bytes(*fields[4..].first_chunk()?);
        let waited_ms = u16::from_le_bytes(*fields[8..].first_chunk()?);
        let (bytes, after) = after.split_at_checked((length & !RELIABLE) as usize)?;
        entries.push(PieceEntry {
            client: LinkClient(client),
            is_reliable: length & RELIABLE != 0,
            waited_ms: waited_ms.min(WAITED_MS_MAX),
            bytes,
        });
        rest = after;
    }
    let header = PieceHeader {
        from: number(1)?,
        to: number(9)?,
        first: number(17)?,
        acknowledged: number(25)?,
        wish,
    };
    Some((header, entries))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn pieces_survive_their_bytes_and_cut_ones_are_none() {
        let header = PieceHeader {
            from: 3,
            to: 1 << 33,
            first: u64::MAX - 1,
            acknowledged: 5,
            wish: PieceWish::Reply,
        };
        let entry = |client, is_reliable, bytes| PieceEntry {
            client: LinkClient(client),
            is_reliable,
            waited_ms: (client % 1_000) as u16,
            bytes,
        };
        let entries = [
            entry(u32::MAX, true, &b"hello"[..]),
            entry(0, false, b""),
            entry(7, false, b"x"),
        ];
        let mut piece = Vec::new();
        write_header(header, &mut piece);
        let mut whole = vec![piece.len()];
        for entry in entries {
            write_entry(entry, &mut piece);
            whole.push(piece.len());
        }
        assert_eq!(read(&piece), Some((header, entries.to_vec())));
        // A longer wait is limited.
        let mut late = piece.clone();
        late[PIECE_HEADER_BYTES + 8..PIECE_HEADER_BYTES + 10].fill(255);
        let waited = read(&late).map(|(_, entries)| entries[0].waited_ms);
        assert_eq!(waited, Some(WAITED_MS_MAX));
        for length in 0..piece.len() {
            let is_whole = whole.contains(&length);
            assert_eq!(read(&piece[..length]).is_some(), is_whole, "{length}");
        }
        piece[33] = 3;
        assert_eq!(read(&piece), None);
    }

    #[test]
    fn random_bytes_are_read_without_a_panic() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        for _ in 0..20_000 {
            let mut piece = vec![PIECE_KIND; 1];
            let length = rng.random_range(0..80);
            piece.extend((0..length).map(|_| rng.random_range(0..=255_u8)));
            if let Some(wish) = piece.get_mut(PIECE_HEADER_BYTES - 1) {
                *wish %= 4;
            }
            // Short lengths, so that some entries are complete.
            for high in [40, 41] {
                if let Some(byte) = piece.get_mut(high) {
                    *byte &= 128;
                }
            }
            if let Some((_, entries)) = read(&piece) {
                let bytes: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
                let headers = PIECE_HEADER_BYTES + entries.len() * ENTRY_HEADER_BYTES;
                assert_eq!(bytes + headers, piece.len());
            }
        }
    }
}
