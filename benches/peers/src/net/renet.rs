//! `renet`: its connection at both ends, without the connection table of its server.

use std::time::Duration;

use bytes::Bytes;
use renet::{ChannelConfig, ConnectionConfig, DefaultChannel, RenetClient, SendType};

use super::end::{End, NETCODE_DATAGRAM_BYTES, Transport};

/// The transport with its default channels; the ordered one retransmits unacknowledged messages after this time.
pub struct Renet {
    pub name: &'static str,
    /// Its default is 300 ms.
    pub resend_ms: u64,
}

impl Transport for Renet {
    type End = RenetEnd;

    fn name(&self) -> &'static str {
        self.name
    }

    fn datagram_bytes(&self) -> u64 {
        NETCODE_DATAGRAM_BYTES
    }

    fn connect(&self, connections: usize) -> (Vec<RenetEnd>, Vec<RenetEnd>) {
        let resend_time = Duration::from_millis(self.resend_ms);
        let channels = || {
            let timed = |channel: ChannelConfig| ChannelConfig {
                send_type: match channel.send_type {
                    SendType::ReliableOrdered { .. } => SendType::ReliableOrdered { resend_time },
                    other => other,
                },
                ..channel
            };
            DefaultChannel::config().into_iter().map(timed).collect()
        };
        let end = |_| {
            let mut connection = RenetClient::new(ConnectionConfig {
                server_channels_config: channels(),
                client_channels_config: channels(),
                ..ConnectionConfig::default()
            });
            connection.set_connected();
            RenetEnd {
                connection,
                now_us: 0,
            }
        };
        let ends = || (0..connections).map(end).collect();
        (ends(), ends())
    }
}

pub struct RenetEnd {
    connection: RenetClient,
    now_us: u64,
}

impl RenetEnd {
    fn advance(&mut self, now_us: u64) {
        if now_us > self.now_us {
            let passed = Duration::from_micros(now_us - self.now_us);
            self.connection.update(passed);
            self.now_us = now_us;
        }
    }
}

impl End for RenetEnd {
    fn push_unreliable(&mut self, _: u64, message: &[u8]) {
        let message = Bytes::copy_from_slice(message);
        self.connection
            .send_message(DefaultChannel::Unreliable, message);
    }

    fn push_ordered(&mut self, _: u64, message: &[u8]) {
        let message = Bytes::copy_from_slice(message);
        self.connection
            .send_message(DefaultChannel::ReliableOrdered, message);
    }

    fn flush(&mut self, now_us: u64, _: &mut Vec<u8>, mut send: impl FnMut(&[u8])) {
        self.advance(now_us);
        for packet in self.connection.get_packets_to_send() {
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
        self.advance(now_us);
        self.connection.process_packet(datagram);
        for (channel, is_ordered) in [
            (DefaultChannel::Unreliable, false),
            (DefaultChannel::ReliableOrdered, true),
        ] {
            let channel = u8::from(channel);
            while let Some(message) = self.connection.receive_message(channel) {
                deliver(is_ordered, &message);
            }
        }
    }
}
