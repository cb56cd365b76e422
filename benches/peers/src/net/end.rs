//! The common interface of the transports: connections with two ends, which take messages and packets. Times are in microseconds.

/// A transport. Its connections are open when the bench gets them.
pub trait Transport {
    type End: End;

    /// Its name in rows, with any setting that is not the default.
    fn name(&self) -> &'static str;

    /// Bytes per datagram on top of what [`flush`](End::flush) sends: the IP and UDP headers, 28, and the encryption if the packets do not
    /// include it.
    fn datagram_bytes(&self) -> u64;

    /// Opens this many connections: the server's ends, and the client's ends in the same order.
    fn connect(&self, connections: usize) -> (Vec<Self::End>, Vec<Self::End>);
}

/// One end of a connection. Times never go backwards.
pub trait End {
    /// Sends a message that may be lost.
    fn push_unreliable(&mut self, now_us: u64, message: &[u8]);

    /// Sends a message that arrives once, after all earlier ones of this kind.
    fn push_ordered(&mut self, now_us: u64, message: &[u8]);

    /// Sends pending data as datagrams. `scratch` is a buffer for implementations, and does not count as memory of the end.
    fn flush(&mut self, now_us: u64, scratch: &mut Vec<u8>, send: impl FnMut(&[u8]));

    /// Receives a datagram, and passes on the messages that it completes; the flag is set for ordered ones.
    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        scratch: &mut Vec<u8>,
        deliver: impl FnMut(bool, &[u8]),
    );

    /// When the end has to be flushed between ticks, if it has timers of its own.
    fn wakes_us(&mut self) -> Option<u64> {
        None
    }

    /// Whether the end replies to datagrams at once, so that it is flushed after each.
    fn answers_at_once(&self) -> bool {
        false
    }
}

/// The IP and UDP headers, and the overhead of netcode's encryption: a byte for the kind, three for a number, a tag of 16.
pub const NETCODE_DATAGRAM_BYTES: u64 = 28 + 20;
