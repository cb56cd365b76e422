//! The common interface of the transports for the bench: connections of two ends, which take messages and packets, with the time
//! in microseconds.

/// A transport. Its connections are open when the bench gets them.
pub trait Transport {
    type End: End;

    /// Its name in rows, with its non-default setting.
    fn name(&self) -> &'static str;

    /// The overhead of a datagram beyond [`flush`](End::flush), in bytes: the heads of IP and UDP, 28, and the encryption if it
    /// is not included.
    fn datagram_bytes(&self) -> u64;

    /// This many connections: the server's ends, and the client's end of each in the same order.
    fn connect(&self, connections: usize) -> (Vec<Self::End>, Vec<Self::End>);
}

/// One end of a connection. Times never go back.
pub trait End {
    /// Sends a message that may be lost.
    fn push_unreliable(&mut self, now_us: u64, message: &[u8]);

    /// Sends a message that arrives once, after all earlier ones of this kind.
    fn push_ordered(&mut self, now_us: u64, message: &[u8]);

    /// Flushes pending data as datagrams. `scratch` is a buffer for implementations, and not counted as memory of the end.
    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, send: impl FnMut(&[u8]));

    /// Receives a datagram, and returns the messages completed by it; the flag is set for ordered ones.
    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        scratch: &mut Vec<u8>,
        deliver: impl FnMut(bool, &[u8]),
    );

    /// When it has to be flushed without a tick, if it has its own timers.
    fn wakes_us(&mut self) -> Option<u64> {
        None
    }

    /// Whether it replies to datagrams at once, and is flushed after each.
    fn answers_at_once(&self) -> bool {
        false
    }
}

/// The heads of IP and UDP, and the overhead of netcode's encryption: a byte of kind, three of a number, a tag of 16.
pub const NETCODE_DATAGRAM_BYTES: u64 = 28 + 20;
