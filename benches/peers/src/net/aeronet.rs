//! `aeronet_transport`: the transport component without an app, driven by the functions that its systems call.

use std::time::{Duration, Instant};

use aeronet_io::Session;
use aeronet_transport::lane::{LaneIndex, LaneKind};
use aeronet_transport::{TransportConfig, recv::recv_on, send::flush_on};
use bytes::Bytes;

use super::end::{End, NETCODE_DATAGRAM_BYTES, Transport};

/// The longest packet, in bytes.
const MTU: usize = 1_200;

const LANES: [LaneKind; 2] = [LaneKind::UnreliableUnordered, LaneKind::ReliableOrdered];
const UNRELIABLE: LaneIndex = LaneIndex::new(0);
const ORDERED: LaneIndex = LaneIndex::new(1);

/// The transport with its default settings. No setting controls retransmission.
pub struct Aeronet;

impl Transport for Aeronet {
    type End = AeronetEnd;

    fn name(&self) -> &'static str {
        "aeronet_transport"
    }

    fn datagram_bytes(&self) -> u64 {
        NETCODE_DATAGRAM_BYTES
    }

    fn connect(&self, connections: usize) -> (Vec<AeronetEnd>, Vec<AeronetEnd>) {
        let zero = Instant::now();
        let session = Session::new(zero, MTU);
        let end = |_| AeronetEnd {
            transport: aeronet_transport::Transport::new(&session, LANES, LANES, zero)
                .expect("packets that are long enough"),
            config: TransportConfig::default(),
            zero,
        };
        let ends = || (0..connections).map(end).collect();
        (ends(), ends())
    }
}

pub struct AeronetEnd {
    transport: aeronet_transport::Transport,
    config: TransportConfig,
    zero: Instant,
}

impl AeronetEnd {
    fn at(&self, now_us: u64) -> Instant {
        self.zero + Duration::from_micros(now_us)
    }

    fn push(&mut self, now_us: u64, lane: LaneIndex, message: &[u8]) {
        let now = self.at(now_us);
        let message = Bytes::copy_from_slice(message);
        // A refused message shows up in the count of received ones.
        let _ = self.transport.send.push(lane, message, now);
    }
}

impl End for AeronetEnd {
    fn push_unreliable(&mut self, now_us: u64, message: &[u8]) {
        self.push(now_us, UNRELIABLE, message);
    }

    fn push_ordered(&mut self, now_us: u64, message: &[u8]) {
        self.push(now_us, ORDERED, message);
    }

    fn flush(&mut self, now_us: u64, _: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        let now = self.at(now_us);
        for packet in flush_on(&mut self.transport, now, MTU) {
            send(&packet);
        }
    }

    fn receive(
        &mut self,
        now_us: u64,
        datagram: &[u8],
        _: &mut Vec<u8>,
        mut deliver: impl FnMut(bool, &[u8]),
    ) {
        let now = self.at(now_us);
        recv_on(&mut self.transport, &self.config, now, datagram)
            .expect("a valid packet from the other end");
        for message in self.transport.recv.msgs.drain() {
            deliver(message.lane == ORDERED, &message.payload);
        }
        self.transport.recv.acks.drain().for_each(drop);
    }
}
