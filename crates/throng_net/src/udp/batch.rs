//! Many datagrams per system call on Linux; elsewhere one per call.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use arrayvec::ArrayVec;

#[cfg(not(target_os = "linux"))]
use one_a_call::{Headers, receive, send};

#[cfg(target_os = "linux")]
use batched_calls::{Headers, receive, send};

use crate::cipher::SEALING_BYTES;
use crate::packet::PACKET_BYTES_MAX;
use crate::path::NUMBERED_HEADER_BYTES;

/// The longest valid datagram.
pub(super) const DATAGRAM_BYTES_MAX: usize = PACKET_BYTES_MAX + SEALING_BYTES;

/// The longest datagram that is received: one byte more, so that a datagram that is too long is detected.
const RECEIVED_BYTES_MAX: usize = DATAGRAM_BYTES_MAX + NUMBERED_HEADER_BYTES + 1;

/// Maximum number of datagrams per call. With this many, the cost of the calls themselves is negligible.
const DATAGRAMS_MAX: usize = 64;

type DatagramBuffers = [[u8; RECEIVED_BYTES_MAX]; DATAGRAMS_MAX];

/// End of each datagram in its buffer, and its source address.
type DatagramEnds = ArrayVec<(usize, SocketAddr), DATAGRAMS_MAX>;

/// Received datagrams.
pub(super) struct ReceiveBatch {
    buffers: Box<DatagramBuffers>,
    ends: DatagramEnds,
    headers: Headers,
}

impl ReceiveBatch {
    pub fn new() -> Self {
        Self {
            buffers: Box::new([[0; RECEIVED_BYTES_MAX]; DATAGRAMS_MAX]),
            ends: DatagramEnds::new(),
            headers: Headers::new(),
        }
    }

    /// Waits for a datagram, and receives those that are available then. Longer datagrams are truncated to the buffer.
    ///
    /// # Errors
    /// The error of the system, also if the socket's timeout passed without a datagram.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.ends.clear();
        receive(socket, &mut self.buffers, &mut self.ends, &mut self.headers)
    }

    /// The datagrams of the last call, in order of arrival.
    pub fn datagrams(&mut self) -> impl Iterator<Item = (&mut [u8], SocketAddr)> {
        let received = self.buffers.iter_mut().zip(&self.ends);
        received.map(|(buffer, &(length, from))| (&mut buffer[..length], from))
    }
}

/// Sends datagrams in order. Reports those that cannot be sent, and continues with the next ones.
pub(super) fn send_all<'a>(
    socket: &UdpSocket,
    mut datagrams: impl Iterator<Item = (SocketAddr, &'a [u8])>,
    mut on_sent: impl FnMut(SocketAddr, &[u8], io::Result<()>),
) {
    loop {
        let batch: ArrayVec<_, DATAGRAMS_MAX> = datagrams.by_ref().take(DATAGRAMS_MAX).collect();
        if batch.is_empty() {
            return;
        }
        let mut left = &batch[..];
        while let Some(&(to, first)) = left.first() {
            match send(socket, left) {
                Ok(sent) => {
                    let (sent, rest) = left.split_at(sent.clamp(1, left.len()));
                    for &(to, datagram) in sent {
                        on_sent(to, datagram, Ok(()));
                    }
                    left = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error belongs to the first of them.
                Err(error) => {
                    on_sent(to, first, Err(error));
                    left = &left[1..];
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod batched_calls {
    use std::array::from_fn;
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;

    use arrayvec::ArrayVec;
    use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
    use rustix::net::addr::SocketAddrArg;
    use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

    use super::{DATAGRAMS_MAX, DatagramBuffers, DatagramEnds};

    /// Headers of the received datagrams.
    pub struct Headers(MultiHeaders<SockaddrStorage>);

    impl Headers {
        pub fn new() -> Self {
            Self(MultiHeaders::preallocate(DATAGRAMS_MAX, None))
        }
    }

    pub fn receive(
        socket: &UdpSocket,
        buffers: &mut DatagramBuffers,
        places: &mut DatagramEnds,
        headers: &mut Headers,
    ) -> io::Result<()> {
        let mut slices = buffers
            .each_mut()
            .map(|buffer| [IoSliceMut::new(&mut buffer[..])]);
        let (socket, flags) = (socket.as_raw_fd(), MsgFlags::MSG_WAITFORONE);
        let received = recvmmsg(socket, &mut headers.0, slices.iter_mut(), flags, None)?;
        // Such a socket receives no datagrams without an internet address; use an address that matches no client.
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        places.extend(received.map(|message| {
            let from = message.address.as_ref().and_then(address_of);
            (message.bytes, from.unwrap_or(unknown))
        }));
        Ok(())
    }

    fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = address
            .as_sockaddr_in()
            .map(|&v4| SocketAddr::V4(v4.into()));
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|&v6| SocketAddr::V6(v6.into()))
        })
    }

    /// Sends some of the datagrams, at least one. Returns how many.
    pub fn send(socket: &UdpSocket, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
        let slices: ArrayVec<_, DATAGRAMS_MAX> = datagrams
            .iter()
            .map(|(_, datagram)| [IoSlice::new(datagram)])
            .collect();
        let addresses: ArrayVec<SocketAddrAny, DATAGRAMS_MAX> =
            datagrams.iter().map(|(to, _)| to.as_any()).collect();
        let mut nothing: [_; DATAGRAMS_MAX] = from_fn(|_| SendAncillaryBuffer::default());
        let mut messages: ArrayVec<MMsgHdr, DATAGRAMS_MAX> = addresses
            .iter()
            .zip(&slices)
            .zip(&mut nothing)
            .map(|((to, datagram), nothing)| MMsgHdr::new_with_addr(to, datagram, nothing))
            .collect();
        Ok(sendmmsg(socket, &mut messages, SendFlags::empty())?)
    }
}

#[cfg(not(target_os = "linux"))]
mod one_a_call {
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    use super::{DatagramBuffers, DatagramPlaces};

    /// Nothing to store on this system.
    pub struct Headers;

    impl Headers {
        pub const fn new() -> Self {
            Self
        }
    }

    pub fn receive(
        socket: &UdpSocket,
        buffers: &mut DatagramBuffers,
        places: &mut DatagramEnds,
        _: &mut Headers,
    ) -> io::Result<()> {
        places.push(socket.recv_from(&mut buffers[0])?);
        Ok(())
    }

    pub fn send(socket: &UdpSocket, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
        let (to, datagram) = datagrams[0];
        socket.send_to(datagram, to).map(|_| 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn open(address: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(address).unwrap();
        let patience = Some(Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// Datagrams that are sent to two sockets in turn arrive complete, in order and with the sender's address.
    fn all_arrive(local: &str) {
        let (sender, from) = open(local);
        let receivers = [open(local), open(local)];
        let lengths = [0, 1, 700, 1_200];
        let datagrams: Vec<(SocketAddr, Vec<u8>)> = (0..2 * DATAGRAMS_MAX + 2)
            .map(|nth| (receivers[nth % 2].1, vec![nth as u8; lengths[nth / 2 % 4]]))
            .collect();
        let mut sent = Vec::new();
        let given = datagrams.iter().map(|(to, bytes)| (*to, &bytes[..]));
        send_all(&sender, given, |to, bytes, result| {
            result.unwrap();
            sent.push((to, bytes.to_vec()));
        });
        assert_eq!(sent, datagrams);
        let mut batch = ReceiveBatch::new();
        for (socket, address) in &receivers {
            let mut arrived = Vec::new();
            while arrived.len() < DATAGRAMS_MAX + 1 {
                batch.receive(socket).unwrap();
                arrived.extend(batch.datagrams().map(|(bytes, came)| {
                    assert_eq!(came, from);
                    (*address, bytes.to_vec())
                }));
            }
            let theirs = datagrams.iter().filter(|(to, _)| to == address);
            assert!(theirs.eq(&arrived));
        }
    }

    #[test]
    fn batched_datagrams_arrive_whole_and_in_order() {
        all_arrive("127.0.0.1:0");
        // Systems without IPv6 are rare; the test passes there.
        if UdpSocket::bind("[::1]:0").is_ok() {
            all_arrive("[::1]:0");
        }
    }

    #[test]
    fn unsendable_datagram_does_not_block_others() {
        let (sender, _) = open("127.0.0.1:0");
        let (receiver, to) = open("127.0.0.1:0");
        let too_long = vec![0; 70_000];
        let datagrams: [&[u8]; 5] = [&too_long, b"first", &too_long, &too_long, b"second"];
        let mut went = Vec::new();
        let given = datagrams.into_iter().map(|bytes| (to, bytes));
        send_all(&sender, given, |_, _, result| went.push(result.is_ok()));
        assert_eq!(went, [false, true, false, false, true]);
        let mut buffer = [0; 10];
        for sent in ["first", "second"] {
            let (length, _) = receiver.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], sent.as_bytes());
        }
    }
}
