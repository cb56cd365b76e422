//! Bounds, and the behaviour at each bound.

use throng_core::memory::MemoryUse;
use throng_protocol::wire::CLIENT_MESSAGE_BYTES_MAX;

use super::{Talk, content};
use crate::conditioner::{LossModel, NetworkConditioner};
use crate::{CountersStart, EndpointSettings, PacketStamp, ReliableEndpoint, SendError, StreamId};

const TICK_US: u64 = 33_000;

/// Flushes once and returns the packets.
fn flushed(end: &mut ReliableEndpoint, now_us: u64, budget_bytes: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let stamp = PacketStamp::default();
    end.flush(now_us, stamp, budget_bytes, &mut Vec::new(), |packet| {
        packets.push(packet.to_vec());
    });
    packets
}

#[test]
fn memory_is_bounded_when_acknowledgements_stop() {
    let settings = EndpointSettings {
        backlog_bytes_max: 100_000,
        ..EndpointSettings::default()
    };
    let mut end = ReliableEndpoint::new(settings);
    let (mut most, mut behind_at) = (0, None);
    for tick in 0..1_000_u64 {
        for (nth, stream) in StreamId::ALL.into_iter().enumerate() {
            let pushed = end.push(stream, &content(tick, 1 + nth * 50));
            if let Err(SendError::SendQueueFull { .. }) = pushed {
                behind_at.get_or_insert(tick);
            }
        }
        for _ in 0..20 {
            end.push_unreliable(&[1; 100]).unwrap();
        }
        let longest = end.packet_bytes_max();
        for packet in flushed(&mut end, tick * TICK_US, usize::MAX) {
            assert!(packet.len() <= longest);
        }
        most = most.max(end.heap_bytes());
    }
    assert!(behind_at.is_some() && end.is_send_queue_full());
    assert!(most < 400_000, "{most} bytes");
    assert!(end.pending_bytes() <= 100_000);
}

/// A client that sends a message of this many bytes on each stream: the most memory that the server's end uses for it, and whether the
/// connection ended.
fn memory_for_client_messages(message_bytes: usize) -> (usize, bool) {
    let mut server = ReliableEndpoint::new(EndpointSettings::default());
    let mut hostile = ReliableEndpoint::new(EndpointSettings {
        send_message_bytes_max: 1 << 20,
        backlog_bytes_max: usize::MAX,
        ..EndpointSettings::default().for_client()
    });
    for stream in StreamId::ALL {
        hostile.push(stream, &vec![1; message_bytes]).unwrap();
    }
    let (mut most, mut is_over) = (0, false);
    for tick in 0..500_u64 {
        let now_us = tick * TICK_US;
        for packet in flushed(&mut hostile, now_us, usize::MAX) {
            let taken = server.receive(now_us, &packet, |_| ());
            is_over |= taken.is_err_and(|refused| refused.is_fatal());
            most = most.max(server.heap_bytes());
        }
        for packet in flushed(&mut server, now_us, usize::MAX) {
            let _ = hostile.receive(now_us, &packet, |_| ());
        }
    }
    (most, is_over)
}

#[test]
fn client_messages_pin_little_memory_at_the_server() {
    // The longest that a client may send.
    let (most, is_over) = memory_for_client_messages(CLIENT_MESSAGE_BYTES_MAX);
    assert!(most < 64_000 && !is_over, "{most} bytes");
    // A longer one ends the connection as soon as its length is read.
    for message_bytes in [CLIENT_MESSAGE_BYTES_MAX + 1, 1 << 20] {
        let (most, is_over) = memory_for_client_messages(message_bytes);
        assert!(most < 64_000 && is_over, "{message_bytes}: {most} bytes");
    }
}

#[test]
fn client_message_over_the_limit_is_refused_at_the_sender() {
    let mut client = ReliableEndpoint::new(EndpointSettings::default().for_client());
    let most = CLIENT_MESSAGE_BYTES_MAX;
    let message = vec![1; most + 1];
    let refused = SendError::TooLong {
        found: most + 1,
        most,
    };
    assert_eq!(client.push(StreamId::World, &message), Err(refused));
    assert_eq!(client.push(StreamId::World, &message[1..]), Ok(()));
}

#[test]
fn silent_receiver_is_sent_little() {
    let mut end = ReliableEndpoint::new(EndpointSettings::default());
    for _ in 0..50 {
        end.push(StreamId::World, &[1; 400]).unwrap();
    }
    let bytes = |end: &mut ReliableEndpoint, from_s: u64, to_s: u64| -> usize {
        let ticks = (from_s * 30)..(to_s * 30);
        let packets = ticks.flat_map(|tick| flushed(end, tick * TICK_US, usize::MAX));
        packets.map(|packet| packet.len()).sum()
    };
    let first = bytes(&mut end, 0, 5);
    let later = bytes(&mut end, 5, 10);
    assert!(later <= first, "{first} bytes, then {later}");
    assert!(
        later <= 6 * 20_400,
        "all of it more often than once a second"
    );
}

#[test]
fn lost_last_packet_is_resent_after_a_probe_timeout() {
    let model = NetworkConditioner::with_loss(LossModel::Independent(0.0));
    let mut talk = Talk::new(
        EndpointSettings::default(),
        CountersStart::default(),
        model,
        2,
    );
    // Until the path counts as free of loss, so that there are no copies.
    for _ in 0..1_500 {
        talk.down.push(&mut talk.duplex.server, StreamId::World, 9);
        talk.tick().unwrap();
    }
    talk.run_until_complete(30).unwrap();
    talk.duplex.server.path.set_model(NetworkConditioner {
        bytes_max: 0,
        ..model
    });
    talk.down.push(&mut talk.duplex.server, StreamId::World, 9);
    talk.tick().unwrap();
    talk.duplex.server.path.set_model(model);
    // The round trip is 128 ms, including the wait for the client's tick; a keep-alive packet would come a second later.
    talk.run_until_complete(13).unwrap();
    assert!(talk.duplex.server.endpoint.stats().timeouts > 0);
}

#[test]
fn flush_stays_within_call_and_connection_budgets() {
    let settings = EndpointSettings {
        bytes_per_s: 10_000,
        burst_bytes: 5_000,
        ..EndpointSettings::default()
    };
    let mut end = ReliableEndpoint::new(settings);
    end.push(StreamId::Bulk, &vec![3; 60_000]).unwrap();
    let size = |packets: &[Vec<u8>]| -> usize {
        let overhead = 28 + usize::from(settings.sealing_bytes);
        packets.iter().map(|packet| packet.len() + overhead).sum()
    };
    assert!(size(&flushed(&mut end, 0, 700)) <= 700);
    assert!(size(&flushed(&mut end, 1, 20)) == 0);
    let mut sent = 0;
    for tick in 0..100 {
        sent += size(&flushed(&mut end, tick * TICK_US, usize::MAX));
    }
    assert!(sent <= 5_000 + 33_000, "{sent} bytes in 3.3 s");
    assert!(sent >= 30_000, "{sent} bytes in 3.3 s");
}

/// The result of 30 s with more traffic than a rate of 30,000 bytes per second allows: the shares of the budget for stream bytes sent
/// again, and for unreliable messages.
fn shares_of_a_narrow_budget(message_bytes: usize) -> (f64, f64) {
    const TICKS: usize = 900;
    let settings = EndpointSettings {
        bytes_per_s: 30_000,
        burst_bytes: 2_000,
        backlog_bytes_max: usize::MAX,
        ..EndpointSettings::default()
    };
    let model = NetworkConditioner {
        delay_us: 200_000,
        ..NetworkConditioner::with_loss(LossModel::Independent(0.1))
    };
    let mut talk = Talk::new(settings, CountersStart::default(), model, 11);
    let mut most = 0;
    for _ in 0..TICKS {
        talk.down
            .push(&mut talk.duplex.server, StreamId::World, message_bytes);
        for _ in 0..10 {
            talk.down.push_unreliable(&mut talk.duplex.server, 100);
            most += 108;
        }
        talk.tick().unwrap();
    }
    let stats = talk.duplex.server.endpoint.stats();
    let spent = 30_000.0 * TICKS as f64 * 0.033;
    let unreliable = most - 108 * stats.unreliable_dropped;
    (
        stats.stream_bytes_retransmitted as f64 / spent,
        unreliable as f64 / spent,
    )
}

#[test]
fn copies_take_a_quarter_of_the_budget() {
    // Three copies of everything would take half of it.
    let (again, _) = shares_of_a_narrow_budget(200);
    assert!((0.15..0.32).contains(&again), "{again}");
}

#[test]
fn unreliable_messages_keep_a_quarter_of_the_budget() {
    let (_, unreliable) = shares_of_a_narrow_budget(1_500);
    assert!((0.15..0.3).contains(&unreliable), "{unreliable}");
}

#[test]
fn newest_unreliable_messages_are_sent_and_dropped_are_counted() {
    let mut end = ReliableEndpoint::new(EndpointSettings {
        packets_per_flush_max: 1,
        ..EndpointSettings::default()
    });
    for nth in 0..30_u8 {
        end.push_unreliable(&[nth; 100]).unwrap();
    }
    let packets = flushed(&mut end, 0, usize::MAX);
    assert_eq!(packets.len(), 1);
    let read = crate::packet::ParsedPacket::read(&packets[0]).unwrap();
    let came: Vec<u8> = read.unreliable().map(|message| message[0]).collect();
    assert_eq!(came, Vec::from_iter(30 - came.len() as u8..30));
    assert_eq!(end.stats().unreliable_dropped, 30 - came.len() as u64);
    assert_eq!(flushed(&mut end, TICK_US, usize::MAX).len(), 0);
}

#[test]
fn unsendable_message_is_refused_with_a_reason() {
    let mut end = ReliableEndpoint::new(EndpointSettings::default());
    assert_eq!(end.push(StreamId::World, &[]), Err(SendError::Empty));
    let long = vec![0; (1 << 20) + 1];
    assert!(matches!(
        end.push(StreamId::World, &long),
        Err(SendError::TooLong {
            most: 1_048_576,
            ..
        })
    ));
    let most = end.unreliable_bytes_max();
    assert!(end.push_unreliable(&long[..=most]).is_err());
    assert_eq!(end.push_unreliable(&long[..most]), Ok(()));
    let packets = flushed(&mut end, 0, usize::MAX);
    assert!(packets[0].len() <= end.packet_bytes_max());
    assert_eq!(packets.len(), 1);
}

#[test]
fn reliable_carrier_gets_everything_once_and_immediately() {
    let settings = EndpointSettings::default().for_reliable_carrier();
    let said = |times: [u64; 3]| {
        let mut end = ReliableEndpoint::new(settings);
        let mut packets = Vec::new();
        for (nth, now_us) in times.into_iter().enumerate() {
            end.push(StreamId::World, &content(nth as u64, 5_000))
                .unwrap();
            end.push_unreliable(&[nth as u8; 50]).unwrap();
            packets.extend(flushed(&mut end, now_us, usize::MAX));
            assert_eq!(end.pending_bytes(), 0);
        }
        packets
    };
    let packets = said([0, 1, 2]);
    assert_eq!(packets, said([9_000_000, 5, u64::MAX]));
    let mut client = ReliableEndpoint::new(settings.for_client());
    let mut came = (0, 0);
    for packet in &packets {
        let taken = client.receive(0, packet, |delivery| match delivery.stream {
            Some(_) => {
                assert_eq!(delivery.bytes, content(came.0, 5_000));
                came.0 += 1;
            }
            None => came.1 += 1,
        });
        assert_eq!(taken, Ok(()));
    }
    assert_eq!(came, (3, 3));
}

#[test]
fn client_memory_is_small_and_freed_after_a_long_message() {
    let model = NetworkConditioner::with_loss(LossModel::Independent(0.1));
    let mut talk = Talk::new(
        EndpointSettings::default(),
        CountersStart::default(),
        model,
        9,
    );
    let some_ticks = |talk: &mut Talk| {
        for _ in 0..60 {
            talk.down.push(&mut talk.duplex.server, StreamId::World, 32);
            talk.down.push_unreliable(&mut talk.duplex.server, 150);
            talk.up.push_unreliable(&mut talk.duplex.client, 12);
            talk.tick().unwrap();
        }
        talk.run_until_complete(300).unwrap();
        let server = &talk.duplex.server.endpoint;
        let client = &talk.duplex.client.endpoint;
        [server, client].map(|end| end.heap_bytes() + size_of::<ReliableEndpoint>())
    };
    let [server, client] = some_ticks(&mut talk);
    assert!(
        server <= 12_000 && client <= 12_000,
        "{server} and {client} bytes"
    );
    talk.down
        .push(&mut talk.duplex.server, StreamId::Bulk, 300_000);
    talk.run_until_complete(3_000).unwrap();
    let [server, client] = some_ticks(&mut talk);
    assert!(
        server <= 24_000 && client <= 24_000,
        "{server} and {client} bytes"
    );
}

#[test]
fn stopped_or_backward_time_causes_no_panic() {
    let mut end = ReliableEndpoint::new(EndpointSettings::default());
    let mut other = ReliableEndpoint::new(EndpointSettings::default().for_client());
    for now_us in [u64::MAX, 0, u64::MAX / 2, 5, 5, u64::MAX] {
        let _ = end.push(StreamId::World, &[1; 100]);
        for packet in flushed(&mut end, now_us, usize::MAX) {
            let _ = other.receive(now_us, &packet, |_| ());
        }
        for packet in flushed(&mut other, now_us, usize::MAX) {
            let _ = end.receive(now_us, &packet, |_| ());
        }
    }
}

#[test]
fn eight_unreliable_packets_are_acknowledged_at_the_next_flush() {
    let [mut sender, mut receiver] =
        [(); 2].map(|()| ReliableEndpoint::new(EndpointSettings::default()));
    for nth in 1..=8_u64 {
        sender.push_unreliable(&content(nth, 9)).unwrap();
        for packet in flushed(&mut sender, nth, usize::MAX) {
            receiver.receive(nth, &packet, |_| ()).unwrap();
        }
        let answers = flushed(&mut receiver, nth, usize::MAX);
        assert_eq!(answers.len(), usize::from(nth == 8), "after {nth}");
        for answer in answers {
            sender.receive(nth, &answer, |_| ()).unwrap();
        }
    }
    assert_eq!(sender.stats().packets_arrived, 8);
}
