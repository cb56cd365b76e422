//! What the transports have in common, as the bench sees it: connections of two ends, to which messages and packets are given, with the
//! time in microseconds.

/// A way of sending messages. Its connections are open when the bench gets them.
pub trait Transport {
    type End: End;

    /// What it is called in rows, with the setting that is not its default.
    fn name(&self) -> &'static str;

    /// What a datagram has beside what [`flush`](End::flush) gives, in bytes: the heads of IP and UDP, 28, and what seals it, where
    /// that is not in it.
    fn datagram_bytes(&self) -> u64;

    /// So many connections: the server's ends, and the client's end of each in the same order.
    fn connect(&self, connections: usize) -> (Vec<Self::End>, Vec<Self::End>);
}

/// One end of a connection. Times never go back.
pub trait End {
    /// Says something that may be lost.
    fn push_unreliable(&mut self, now_us: u64, message: &[u8]);

    /// Says something that comes once and after whatever was said like this before.
    fn push_ordered(&mut self, now_us: u64, message: &[u8]);

    /// Sends what there is to send, as datagrams. `scratch` is for whoever needs a buffer, and not counted as memory of the end.
    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, send: impl FnMut(&[u8]));

    /// Takes a datagram, and hands the messages over that are complete with it; the flag is set for those that are ordered.
    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        scratch: &mut Vec<u8>,
        deliver: impl FnMut(bool, &[u8]),
    );

    /// When it is to be flushed without a tick, if it has timers of its own.
    fn wakes_us(&mut self) -> Option<u64> {
        None
    }

    /// Whether it answers datagrams at once, and is flushed behind each.
    fn answers_at_once(&self) -> bool {
        false
    }
}

/// The heads of IP and UDP, and what netcode's sealing adds: a byte of kind, three of a number, a tag of 16.
pub const NETCODE_DATAGRAM_BYTES: u64 = 28 + 20;
