//! The frames of a tick, and where they go.

use crate::wire::ClientId;

/// Takes frames as they leave the server.
pub trait Sink: Send + Sync {
    /// Takes one frame for one client. Must not block.
    fn deliver(&mut self, client: ClientId, frame: &[u8]);
}

/// Counts and forgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingSink {
    /// Frames taken.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Sink for CountingSink {
    fn deliver(&mut self, _client: ClientId, frame: &[u8]) {
        self.frames += 1;
        self.bytes += frame.len() as u64;
    }
}

/// Frames side by side in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    ends: Vec<(ClientId, usize)>,
}

impl Frames {
    /// Appends a frame that `write` writes; a frame of no bytes is none.
    pub fn push(&mut self, client: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= start, "a frame only appends");
        if self.bytes.len() > start {
            self.ends.push((client, self.bytes.len()));
        }
    }

    /// Moves the frames of another buffer behind these; where there are none yet, the buffers are exchanged and nothing is
    /// copied.
    pub fn append(&mut self, other: &mut Self) {
        if self.ends.is_empty() {
            debug_assert!(self.bytes.is_empty(), "all bytes are in frames");
            std::mem::swap(self, other);
            return;
        }
        let offset = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.ends.extend(
            other
                .ends
                .drain(..)
                .map(|(client, end)| (client, end + offset)),
        );
    }

    /// The frames, in the order of pushing.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(client, end)| {
            let frame = &self.bytes[start..end];
            start = end;
            (client, frame)
        })
    }

    /// Forgets all frames and keeps the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_order_and_bytes_over_an_append() {
        let (mut a, mut b) = (Frames::default(), Frames::default());
        a.push(ClientId(1), |bytes| bytes.extend([1, 2]));
        a.push(ClientId(2), |_| ());
        b.push(ClientId(3), |bytes| bytes.push(3));
        b.push(ClientId(1), |bytes| bytes.extend([4, 5, 6]));
        a.append(&mut b);
        let all: Vec<(u32, Vec<u8>)> = a
            .iter()
            .map(|(client, frame)| (client.0, frame.to_vec()))
            .collect();
        assert_eq!(all, [(1, vec![1, 2]), (3, vec![3]), (1, vec![4, 5, 6])]);
        assert_eq!(b.iter().count(), 0);
    }
}
